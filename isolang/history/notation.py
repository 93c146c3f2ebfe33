"""Reads small histories written on one line, such as ``r(x,nil) w(x,1) -> r(x,1) || w(x,2)``.

Sessions are separated by ``||``, and transactions within a session by ``->``. Operations are
``r(key,value)``, ``w(key,value)``, ``append(key,element)`` and ``rp(key,none)``, a predicate read
that finds no row for the key. A value is ``nil``, a number, a word, or a list such as ``[1 2]``. A
``!`` before a transaction marks it as aborted, and a ``?`` as indeterminate. Marks may follow the
operations: ``@3-7`` gives the transaction's begin and end, ``%g`` its group, ``#a,b`` its labels,
and ``^ser`` its requested level.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from isolang.errors import HistoryError

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.history.transaction import StatusName

_OPERATION: Final = re.compile(
    r"(?P<name>r|w|a|append|rp)\(\s*(?P<key>[^\s,()\[\]]+)\s*,\s*"
    r"(?P<value>\[[^\[\]()]*\]|[^\s,()\[\]]+)\s*\)\s*"
)
_MARK: Final = re.compile(
    r"(?:@(?P<begin>-?\d+)-(?P<end>\d+)|%(?P<group>\S+)|#(?P<label>[^\s,]+(?:,[^\s,]+)*)"
    r"|\^(?P<level>\S+))\s*"
)
_STATUS: Final[dict[str, StatusName]] = {"!": "aborted", "?": "maybe"}
_EXPECTED: Final = (
    "r(key,value), w(key,value), append(key,element) or rp(key,none), after them @3-7, %group, "
    "#label or ^level, between transactions `->` or `||`"
)


def read_line(text: str) -> History:
    """Return the history described by a line.

    Raises:
        HistoryError: the text is not a history; the message names the column.

    >>> [t.ops for t in read_line("r(x,nil) w(x,1) -> r(x,1)").transactions()]
    [[('r', 'x', None), ('w', 'x', 1)], [('r', 'x', 1)]]
    """
    from isolang.history.history import History
    from isolang.history.transaction import Transaction

    transactions = []
    at = 0
    for session, own in enumerate(text.split("||"), 1):
        for piece in own.split("->"):
            begin = at + len(piece) - len(piece.lstrip())
            transactions.append(
                Transaction(session=session, **_transaction(text, begin, at + len(piece)))
            )
            at += len(piece) + 2
    return History.from_transactions(transactions, name=text)


def _transaction(text: str, at: int, end: int) -> dict[str, Any]:
    """Parse the transaction between two columns of a text and return its fields."""
    fields: dict[str, Any] = {"ops": []}
    if at < end and text[at] in _STATUS:
        fields["status"] = _STATUS[text[at]]
        at += 1
        at += len(text[at:end]) - len(text[at:end].lstrip())
    while at < end and (found := _OPERATION.match(text, at, end)):
        fields["ops"].append(_operation(*found.group("name", "key", "value")))
        at = found.end()
    while at < end and (found := _MARK.match(text, at, end)):
        for name, text_of_mark in found.groupdict().items():
            if text_of_mark is not None:
                fields[name] = (
                    int(text_of_mark) if name in ("begin", "end")
                    else tuple(text_of_mark.split(",")) if name == "label" else text_of_mark
                )  # fmt: skip
        at = found.end()
    if at < end or not fields["ops"]:
        got = repr(text[at:end].strip()) if at < end else "nothing"
        raise HistoryError(f"column {at + 1}: not a transaction (got {got}, expected {_EXPECTED})")
    return fields


def _operation(name: str, key: str, value: str) -> tuple[Any, ...]:
    if name == "rp":
        if value != "none":
            raise HistoryError(f"rp({key},{value}): a line cannot give rows (expected none)")
        return ("scan", ("=", "key", key), {})
    name = "append" if name == "a" else name
    if value.startswith("["):
        return (name, key, [_value(one) for one in value[1:-1].replace(",", " ").split()])
    return (name, key, _value(value))


def _value(text: str) -> int | str | None:
    if text == "nil":
        return None
    return int(text) if re.fullmatch(r"-?\d+", text, re.ASCII) else text
