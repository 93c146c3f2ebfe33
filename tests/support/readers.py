"""Converts the columns of the native readers to plain Python objects, for tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

COMMITTED, ABORTED, INDETERMINATE = 0, 1, 2
READ, WRITE, APPEND, READ_LIST = "r", "w", "append", "list"
KINDS = (READ, WRITE, APPEND, READ_LIST, "r-in", "r-not-in")
UNKNOWN = "?"
BEGIN_UNKNOWN, END_UNKNOWN = -(2**63), 2**63 - 1
BY_VALUE, FROM_INITIAL, MISSING = -1, -2, -3


def atom(pair: tuple[int, Any]) -> Any:
    """Return an atom as a Python value.

    The value is None, an int, "text", ":keyword", or a tuple with the text of any other atom.
    """
    kind, payload = pair
    if kind <= 3:
        return payload
    return f":{payload}" if kind == 4 else (payload,)


@dataclass
class Txn:
    session: int
    status: int
    ops: list[tuple[str, Any, Any]]
    begin: int
    end: int
    number: int
    position: int
    ok: list[bool] = field(default_factory=list)
    source: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


def transactions(columns: Any) -> list[Txn]:
    columns.validate()
    lists = columns.list_start
    out = []
    for t in range(columns.transactions()):
        first, last = int(columns.op_start[t]), int(columns.op_start[t + 1])
        ops = []
        for i in range(first, last):
            kind, value = KINDS[columns.op_kind[i]], int(columns.op_value[i])
            if value == -1:
                shown: Any = UNKNOWN
            elif kind not in (READ, WRITE, APPEND):
                elements = columns.list_values[lists[value] : lists[value + 1]]
                shown = [atom(columns.value(int(e))) for e in elements]
            else:
                shown = atom(columns.value(value))
            ops.append((kind, atom(columns.key(int(columns.op_key[i]))), shown))
        out.append(
            Txn(
                session=int(columns.txn_session[t]),
                status=int(columns.txn_status[t]),
                ops=ops,
                begin=int(columns.txn_begin[t]),
                end=int(columns.txn_end[t]),
                number=int(columns.txn_number[t]),
                position=int(columns.txn_position[t]),
                ok=[bool(b) for b in columns.op_ok[first:last]],
                source=[int(s) for s in columns.op_source[first:last]],
                lines=[int(p) for p in columns.op_position[first:last]],
            )
        )
    return out
