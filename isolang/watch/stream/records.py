"""Converts a history's transactions to Python records, faster than the history itself does."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from isolang.history import columns as c
from isolang.history.transaction import Op, Transaction, label_value
from isolang.history.values import UNKNOWN, decode

if TYPE_CHECKING:
    from isolang.history.history import History

_LONG_AGO: Final = -(2**62)


def transactions(history: History) -> list[Transaction]:
    """Return the same transactions as :meth:`History.transactions`, but faster.

    Each key and each value is decoded only once, and the native columns are read as whole arrays.
    If the history has real time, a transaction with an unknown begin gets a begin before all other
    times.
    """
    columns = history.columns
    plain = not len(columns.statement_start) and not columns.has_operation_times
    if not plain or bool((columns.op_source != c.SOURCE_BY_VALUE).any()):
        found = history.transactions()
        if not columns.has_time:
            return list(found)
        return [t if t.begin is not None else replace(t, begin=_LONG_AGO) for t in found]
    keys = [decode(*columns.key(k)) for k in range(columns.n_keys())]
    values = [decode(*columns.value(v)) for v in range(columns.n_values())]
    deleted = columns.deleted
    starts, elements = columns.list_start.tolist(), columns.list_values.tolist()

    def operation(kind: int, key: int, value: int) -> Op:
        if kind == c.WRITE and value == deleted:
            return ("delete", keys[key])
        result: Any = UNKNOWN
        if value != c.UNKNOWN_VALUE:
            if kind in c.LISTS:
                result = [values[v] for v in elements[starts[value] : starts[value + 1]]]
            else:
                result = values[value]
        return (c.KIND_NAMES[kind], keys[key], result)

    ops = list(
        map(
            operation,
            columns.op_kind.tolist(),
            columns.op_key.tolist(),
            columns.op_value.tolist(),
        )
    )
    timed = columns.has_time
    fine = bool(columns.op_ok.all())
    groups = columns.txn_group.tolist()
    sessions: list[Any] = list(history.session_names) or list(range(columns.sessions))
    return [
        Transaction(
            ops=ops[first:end],
            session=sessions[session],
            status=c.STATUS_NAMES[status],
            begin=(_LONG_AGO if timed else None) if begin == c.UNKNOWN_BEGIN else begin,
            end=None if until == c.UNKNOWN_END else until,
            number=number,
            failed=() if fine else tuple((columns.op_ok[first:end] == 0).nonzero()[0].tolist()),
            group=decode(*columns.group(groups[t])) if groups else None,
            label=label_value(history.labels_of(t)),
            level=history.level_of(t) or None,
        )
        for t, ((first, end), session, status, begin, until, number) in enumerate(
            zip(
                pairwise(columns.op_start.tolist()),
                columns.txn_session.tolist(),
                columns.txn_status.tolist(),
                columns.txn_begin.tolist(),
                columns.txn_end.tolist(),
                columns.txn_number.tolist(),
                strict=True,
            )
        )
    ]
