"""Jepsen's operations in JSON: the maps of the EDN writer, with strings for keywords."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.history.values import NIL, STRING
from isolang.history.writers import WriteReport, edn

if TYPE_CHECKING:
    from isolang.history.history import History


class _Json(edn.Syntax):
    format = "jepsen-json"
    target = replace(edn.Syntax.target, name="JSON", hint="EDN can express it")

    def atom(self, kind: int, payload: object) -> str:
        if kind == NIL:
            return "null"
        return json.dumps(payload) if kind == STRING else str(payload)

    def operation(self, name: str, key: str, value: str) -> str:
        return f'["{name}",{key},{value}]'

    def elements(self, texts: Iterable[str]) -> str:
        return "[" + ",".join(texts) + "]"

    def line(self, index: int, kind: str, process: str, time: int | None, value: str) -> str:
        when = "" if time is None else f',"time":{time}'
        return (
            f'{{"index":{index},"type":"{kind}","process":{process}{when},'
            f'"f":"txn","value":{value}}}'
        )


def encode(history: History, *, renumber: bool, drop: frozenset[str]) -> tuple[bytes, WriteReport]:
    """Encode a history.

    Raises:
        HistoryError: if JSON cannot express it.
    """
    return edn.encode(history, renumber=renumber, drop=drop, syntax=_Json())
