"""A violation as JSON values; docs/output.md describes them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from isolang.explain.violation import (
    ArgumentView,
    CycleView,
    PlainReason,
    SplitView,
    Violation,
)

_KINDS = {
    CycleView: "cycle",
    SplitView: "split",
    PlainReason: "sentence",
    ArgumentView: "argument",
}


def plain(violation: Violation) -> dict[str, Any]:
    """The violation as dicts, lists, strings and numbers; each node of the tree has a ``kind``."""
    value: dict[str, Any] = _plain(violation)
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        kind = _KINDS.get(type(value))
        inner = {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        return inner if kind is None else {"kind": kind, **inner}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
