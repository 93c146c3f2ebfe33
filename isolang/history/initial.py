"""Makes a transaction the initial transaction T0, as declared by the format or the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.arrays import np
from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.predicates import derive_set_reads

if TYPE_CHECKING:
    from isolang._native import Columns


def has_rows(columns: Columns) -> bool:
    """Return whether the history has rows: a predicate read or a delete.

    In such a history, a read of nil says that there was no row.
    """
    return bool(len(columns.statement_txn)) or columns.deleted != c.NO_ATOM


def is_row(columns: Columns, value: int) -> bool:
    """Return whether a value that T0 wrote is a row, and neither nil nor a deletion."""
    return value not in (c.NIL_ATOM, columns.deleted)


def replace_nil_if_rows(columns: Columns) -> None:
    """If the history has rows, make each initial row replace nil as the value of its key."""
    if has_rows(columns):
        for key in np.flatnonzero(columns.initial_value != c.NIL_ATOM).tolist():
            columns.set_initial_value(key, int(columns.initial_value[key]), alone=True)


def declare_initial(
    columns: Columns,
    txn: int,
    where: str,
    unit: str = "line",
    *,
    rows: bool | None = None,
    lowered: bool = True,
) -> None:
    """Turn a transaction into the initial transaction T0.

    Its last writes become the initial values of their keys. Its operations stay in the columns, but
    it no longer counts as a transaction. If a read names one of these last writes as its source, T0
    becomes the source. If the columns contain set-reads for rows that predicate reads did not
    return (``lowered``), these set-reads are derived anew from the remaining rows.

    If the initial values are ``rows`` (by default, if the history has rows), nil does not name
    them: the row was there, so a read of nil would have to follow its deletion.

    Raises:
        HistoryError: the transaction appends to a list; lists must be empty in the initial state.
    """
    last: dict[int, int] = {}
    for op in range(int(columns.op_start[txn]), int(columns.op_start[txn + 1])):
        if not columns.op_ok[op]:
            continue
        if columns.op_kind[op] == c.APPEND:
            msg = (
                f"{where}: the initial transaction cannot contain an append; lists start empty, "
                "so only a transaction with nothing but writes can be the initial one"
            )
            raise HistoryError(msg)
        if columns.op_kind[op] == c.WRITE:
            last[int(columns.op_key[op])] = op
    columns.set_status(txn, c.INITIAL)
    alone = has_rows(columns) if rows is None else rows
    for key, op in last.items():
        value = int(columns.op_value[op])
        columns.set_initial_value(key, value, alone=alone and is_row(columns, value))
    reads = np.flatnonzero(np.isin(columns.op_source, np.fromiter(last.values(), np.int64)))
    for op in reads.tolist():
        columns.set_source(op, c.SOURCE_INITIAL)
    if lowered:  # mutant: python-stale-predicates
        derive_set_reads(columns, lambda _, position: f"{where}, {unit} {position}")
    columns.name_sources()


def declare_numbered(columns: Columns, number: int, name: str, unit: str = "line") -> int:
    """Make the transaction with this number the initial transaction and return its index.

    This function implements the ``--initial`` option.

    Raises:
        HistoryError: no transaction, or more than one, has this number; the transaction was
            aborted; or the file already declares a different initial transaction.
    """
    numbers = columns.txn_number
    found = np.flatnonzero(numbers == number)
    if len(found) == 0:
        have = "the history is empty"
        if len(numbers):
            have = f"numbers run from {numbers.min()} to {numbers.max()}"
        msg = f"{name}: no transaction has the number {number} ({have}); see `isocheck stats`"
        raise HistoryError(msg)
    if len(found) > 1:
        places = ", ".join(str(p) for p in columns.txn_position[found[:3]])
        more = ", …" if len(found) > 3 else ""
        msg = (
            f"{name}: {len(found)} transactions have the number {number} (at positions "
            f"{places}{more}), and only one transaction can be the initial one; give them "
            "different numbers"
        )
        raise HistoryError(msg)
    txn = int(found[0])
    declared = np.flatnonzero(columns.txn_status == c.INITIAL)
    if len(declared) and int(declared[0]) != txn:
        msg = f"{name}: the file itself declares another initial transaction; leave out --initial"
        raise HistoryError(msg)
    if columns.txn_status[txn] == c.ABORTED:
        msg = f"{name}: transaction {number} was aborted, so it cannot be the initial one"
        raise HistoryError(msg)
    declare_initial(columns, txn, f"{name}: transaction {number}", unit)
    return txn
