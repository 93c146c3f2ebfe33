"""What a specification asks to be shown of the relations that were chosen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from isolang.certify.relations import LARGEST, world_of
from isolang.certify.world import bits

if TYPE_CHECKING:
    from isolang.certify.certificate import Relations
    from isolang.history.history import History
    from isolang.language.core import Core, Spec

_MOST = 20


def shown_of(history: History, spec: Spec, proof: Relations) -> Iterator[str]:
    """One line for each ``show``: its pairs, or elements, the first few.

    Args:
        history: the history.
        spec: the specification.
        proof: relations that meet it.
    """
    if not spec.shows or len(proof.included) > LARGEST:
        return
    world = world_of(history, spec, proof.included, proof.chosen)
    for name, e in spec.shows:
        value = world.value(e)
        if _is_set(e):
            items = [_name(history, i) for i in bits(value.get(0, 0))]
        else:
            items = [
                f"{_name(history, i)} → {_name(history, j)}"
                for i in sorted(value)
                for j in bits(value[i])
            ]
        more = f", and {len(items) - _MOST} more" if len(items) > _MOST else ""
        yield f"{name}: {', '.join(items[:_MOST]) or 'nothing'}{more}"


def _is_set(e: Core) -> bool:
    from isolang.language.core import Diff, Domain, ForKey, Inter, Range, Rel, Union

    match e:
        case Rel():
            return e.name in ("T", "W", "R")
        case Domain() | Range():
            return True
        case Union() | Inter():
            return _is_set(e.parts[0])
        case Diff():
            return _is_set(e.left)
        case ForKey():
            return _is_set(e.body)
        case _:
            return False


def _name(history: History, element: int) -> str:
    t0 = history.t0
    if element <= t0:
        return history.label(element)
    op = element - t0 - 1
    if op < history.columns.operations():
        return f"{history.describe_op(op)} of {history.label(history.transaction_of(op))}"
    return f"w({history.key(op - history.columns.operations())}, initial) of T0"
