"""Converts predicates from Python objects to EDN text, which the native readers understand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from isolang.errors import HistoryError
from isolang.history.values import Keyword, column_text, preview, value_text

if TYPE_CHECKING:
    from isolang._native import Columns

_JOINS = ("and", "or", "not")


def predicate_text(predicate: object, where: str) -> str:
    """Return the EDN text of a predicate.

    Raises:
        HistoryError: the object does not have the form of a predicate. The native reader detects
            all other mistakes.
    """
    if isinstance(predicate, str):
        return predicate
    if isinstance(predicate, Mapping):
        parts = []
        for name, part in predicate.items():
            text = predicate_text(part, where) if name == "where" else value_text(part, where)
            parts.append(f"{column_text(str(name))} {text}")
        return "{" + " ".join(parts) + "}"
    if predicate is True:
        return ":true"
    if not isinstance(predicate, Sequence) or not predicate:
        msg = f"{where}: not a predicate (got {preview(predicate)}, expected a tuple such as "
        raise HistoryError(msg + '("=", column, value))')
    head, *parts = predicate
    name = _name(head, where)
    if name in _JOINS:
        return f"[:{name} {' '.join(predicate_text(part, where) for part in parts)}]"
    column = [column_text(_name(parts[0], where))] if parts else []
    values = [
        f"[{' '.join(value_text(v, where) for v in part)}]"
        if isinstance(part, list | tuple | set | frozenset) and name == "in"
        else value_text(part, where)
        for part in parts[1:]
    ]
    return f"[:{name} {' '.join([*column, *values])}]"


def _name(name: object, where: str) -> str:
    if isinstance(name, Keyword):
        return name.name
    if isinstance(name, str):
        return name
    raise HistoryError(f"{where}: not the name of a column in a predicate (got {preview(name)})")


def derive_set_reads(columns: Columns, where: Callable[[int, int], str]) -> None:
    """Derive each predicate read's set-reads, which state that keys had no matching row.

    Set-reads derived by an earlier call are replaced, so the function can be called again after the
    rows of T0 have changed.

    Raises:
        HistoryError: a predicate cannot be evaluated on a row.
    """
    try:
        columns.lower_predicates()
    except ValueError as error:
        txn, position, what = str(error).split(" ", 2)
        raise HistoryError(f"{where(int(txn), int(position))}: {what}") from None
