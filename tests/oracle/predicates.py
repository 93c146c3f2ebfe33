"""Predicates on rows, with the three values of SQL, and what a predicate read says of each key.

A predicate is a tuple: ``("=", column, constant)`` and the other comparisons ``!= < <= > >=``,
``("between", column, low, high)`` with both ends, ``("in", column, (constant, …))``,
``("null", column)``, ``("mod", column, modulus, rest)``, ``("and", p, …)``, ``("or", p, …)``,
``("not", p)``. The column ``key`` is the key; a row that is no ``Row`` has the one column
``value``.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .before import held, names_of_initial
from .history import DEAD, UNKNOWN, History, Op, Row, Txn, is_list_key, keys, last_write, renamed

Predicate = tuple[Any, ...]

_COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def truth(p: Predicate, key: str, row: object) -> bool | None:
    """True, False, or None for SQL's unknown: what a comparison with NULL gives."""
    head = p[0]
    if head == "not":
        value = truth(p[1], key, row)
        return None if value is None else not value
    if head in ("and", "or"):
        values = [truth(q, key, row) for q in p[1:]]
        decisive = head == "or"
        if decisive in values:
            return decisive
        return None if None in values else not decisive
    column = _column(p[1], key, row)
    if head == "null":
        return column is None
    if head == "between":
        return truth(("and", (">=", p[1], p[2]), ("<=", p[1], p[3])), key, row)
    if head == "in":
        return truth(("or", *(("=", p[1], v) for v in p[2])), key, row)
    if column is None or p[-1] is None:
        return None
    if head == "mod":
        assert column == int(column), "of what is no integer databases say different things"
        return (int(column) - int(p[3])) % int(p[2]) == 0 and 0 <= p[3] < p[2]
    return bool(_COMPARE[head](column, p[2]))


def _column(name: str, key: str, row: object) -> Any:
    if name == "key":
        return key
    if isinstance(row, Row):
        return dict(row.columns)[name]
    assert name == "value"
    return row


def matches(p: Predicate, key: str, row: object) -> bool:
    """Whether a version is returned: no row never is, nor is one of which SQL does not know."""
    return row is not None and row != DEAD and truth(p, key, row) is True


# --- lowering ---


def lower(history: History, initial: object = None) -> History:
    """The same with reads of single keys in place of predicate reads, and writes in place of rows.

    A returned row is a read of it, and one of nothing if it does not match. A key that was not
    returned and of which some version matches is read, too: none of these. What aborted was never
    there, and what it was told of rows says nothing. Where nothing was seen, it was the initial
    version or a deleted row.
    """
    history = tuple(untold(t) if t.status == "aborted" else t for t in history)
    rows: dict[str, set[object]] = {
        k: set() if is_list_key(history, k) else {held(initial, k)} for k in keys(history)
    }
    for t in history:
        for op in t.ops:
            if op[0] in ("w", "insert") and t.status != "aborted":
                rows[op[1]].add(op[2])
    deleted = deletes(history, initial)
    place: dict[tuple[int, int], int] = {}
    low = []
    for i, t in enumerate(history):
        made, first = _lower_transaction(t, rows, deleted)
        place |= {(i, j): at for j, at in enumerate(first)}
        named = tuple((first[j], source) for j, source in t.sources)
        low.append(replace(made, sources=named))
    return renamed(tuple(low), lambda i, j: (i, place[i, j]))


def untold(t: Txn) -> Txn:
    """The transaction without the rows that its predicate reads returned."""
    return replace(t, ops=tuple((*op[:2], ()) if op[0] == "scan" else op for op in t.ops))


def deletes(history: History, initial: object) -> dict[str, tuple[object, ...]]:
    """The keys that were deleted, each with the versions that a read of nil may have seen.

    Of a row that was loaded, nil is only ever the deleted one, if a transaction that may have taken
    effect left it deleted: then a version of it is nil by itself, and no longer names T0's.
    """
    deleted = [(t, j, op[1]) for t in history for j, op in enumerate(t.ops) if op[0] == "delete"]
    left = {key for t, j, key in deleted if t.status != "aborted" and last_write(t, key) == j}

    def named_nil(key: str) -> bool:
        """Whether T0's version is nil, too."""
        loaded = held(initial, key) is not None
        return None in names_of_initial(initial, key) and not (loaded and key in left)

    return {key: (None, DEAD) if named_nil(key) else (DEAD,) for _, _, key in deleted}


def _lower_transaction(
    t: Txn, rows: dict[str, set[object]], deleted: dict[str, tuple[object, ...]]
) -> tuple[Txn, list[int]]:
    """The transaction, and where each of its operations begins."""
    ops: list[Op] = []
    statements: list[int] = []
    first: list[int] = []
    for number, op in enumerate(t.ops):
        made = [op] if t.named(number) is not None else lower_op(op, rows, deleted)
        first.append(len(ops))
        ops += made
        statements += [t.statement(number)] * len(made)
    sent = {t.statement(j): at for j, at in reversed([*enumerate(t.times or ())])}
    times = t.times and tuple(sent[s] for s in statements)
    return replace(t, ops=tuple(ops), statements=tuple(statements), times=times), first


def lower_op(
    op: Op, rows: dict[str, set[object]], deleted: dict[str, tuple[object, ...]]
) -> Sequence[Op]:
    """What takes the place of one operation."""
    match op:
        case ("scan", predicate, returned):
            out: list[Op] = []
            found = dict(returned)
            for key, versions in rows.items():
                if key in found:
                    right = matches(predicate, key, found[key])
                    out.append(("r", key, found[key]) if right else ("in", key, ()))
                    continue
                matching = [v for v in versions if matches(predicate, key, v)]
                if matching:
                    out.append(("miss", key, tuple(sorted(matching, key=repr))))
            # What says nothing of any key is still a statement, with its times.
            return out or [("silent", next(iter(rows), "none"), UNKNOWN)]
        case ("insert", key, row):
            return [("w", key, row)]
        case ("delete", key):
            return [("w", key, DEAD)]
        case ("r", key, None) if key in deleted:
            return [("in", key, deleted[key])]
        case ("in" | "notin", key, versions) if key in deleted and None in versions:
            return [(op[0], key, (*versions, DEAD))]
    return [op]


def rich(history: History) -> bool:
    """Whether there are rows: only some of the tool's forms can say them."""
    return any(
        op[0] in ("scan", "insert", "delete") or isinstance(op[-1], Row)
        for t in history
        for op in t.ops
    )
