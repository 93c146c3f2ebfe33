"""Viper's JSON logs: one file is one session, one line one committed transaction.

``i`` (insert) and ``d`` (delete) first read what was there, a value, a tombstone or nothing, and
then write: a delete leaves a tombstone with a value of its own. So each is a read and a write here,
and a read of a tombstone is matched by its value like any other; the flags *is_dead* and *ready*
say nothing more.

The fourth slot of ``r`` is *is_dead* in Viper's own logs and the transaction's outcome in
IsoVista's. Where nobody deletes, nothing can be dead: a ``true`` there shows that the slots are
outcomes.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from isolang.errors import HistoryError, UnsupportedError
from isolang.history import columns as c
from isolang.history.initial import declare_initial
from isolang.history.readers.native import Files, read_regular
from isolang.history.readers.reading import Reading, counted, show_json, text_of
from isolang.history.sources import plain_name
from isolang.history.values import encode

if TYPE_CHECKING:
    from isolang._native import Columns

_FORMS = (
    'expected ["r", key, value, dead], ["w", key, value, succeeded], '
    '["i", key, value, read, dead, succeeded, …] or ["d", …]'
)
_SLOTS = {"r": 3, "w": 3, "i": 6, "d": 6}  # at least


class _Op(Struct):
    kind: int
    key: Any
    value: Any
    flag: bool | None  # slot 4 of r and w
    ok: bool = True


class _Transaction(Struct):
    ops: list[_Op]
    file: int
    line: int
    initial: bool
    status: int = c.COMMITTED


class _Log(Struct):
    """What was seen over all files."""

    transactions: list[_Transaction] = field(default_factory=list)
    initial: _Transaction | None = None
    deletes: bool = False
    dead_reads: int = 0
    unknown_fields: set[str] = field(default_factory=set)


def read_viper(files: Files, timeout: float = 0.0) -> Reading:
    """Read the logs of one history.

    Args:
        files: name and contents of each log; each is a session.
        timeout: seconds; 0 for no limit.

    Raises:
        HistoryError: naming file and line.
        UnsupportedError: for range queries, naming file and line.
    """
    regular = read_regular("viper", files, timeout)
    if regular is None:
        return read_any_viper(files)
    columns, say = regular
    return _reading(columns, files, _Log(), outcomes=say["outcomes"])


def read_any_viper(files: Files) -> Reading:
    """The same of any logs, regular or not, and slower."""
    from isolang._native import Columns

    log = _Log()
    for number, (name, data) in enumerate(files):
        _read_file(log, number, name, text_of(name, data))
    outcomes = not log.deletes and log.dead_reads > 0
    if outcomes:
        _apply_outcomes(log)
    columns = Columns()
    sessions: dict[int, int] = {}
    ordinal = 0
    for transaction in log.transactions:
        session = sessions.setdefault(transaction.file, len(sessions))
        ordinal += not transaction.initial
        _add(columns, transaction, session, 0 if transaction.initial else ordinal)
    columns.validate()
    if log.initial is not None:
        txn = log.transactions.index(log.initial)
        declare_initial(columns, txn, f"{files[log.initial.file][0]}: line {log.initial.line}")
    _mark_initial_reads(columns, declared=log.initial is not None)
    return _reading(columns, files, log, outcomes=outcomes)


def _reading(columns: Columns, files: Files, log: _Log, *, outcomes: bool) -> Reading:
    """Columns, and what to say of them.

    Args:
        columns: the history.
        files: the logs.
        log: what was seen in them that is not regular.
        outcomes: whether the fourth slots are outcomes of transactions.
    """
    import numpy as np

    notes = []
    if outcomes:
        notes.append("the fourth slot of an operation is its transaction's outcome (IsoVista's)")
    aborted = int(np.count_nonzero(columns.txn_status == c.ABORTED))
    if aborted:
        notes.append(f"{counted(aborted, 'transaction')} with the outcome false: aborted")
    found = int(np.count_nonzero(columns.op_source == c.SOURCE_INITIAL))
    if found:
        notes.append(f"{counted(found, 'read')} of a value that nobody wrote: the initial state")
    ignored = []
    failed = int(np.count_nonzero(columns.op_ok == 0))
    if failed:
        ignored.append(counted(failed, "failed operation"))
    if log.unknown_fields:
        ignored.append(f"unknown fields: {', '.join(sorted(log.unknown_fields))}")
    with_some = np.flatnonzero(np.bincount(columns.txn_file)).tolist()
    empty = [plain_name(name) for i, (name, _) in enumerate(files) if i not in with_some]
    if empty:
        ignored.append(f"{counted(len(empty), 'log')} without transactions: {', '.join(empty)}")
    initial = "any read of a value that nobody wrote, as Viper has it"
    if log.initial is not None:
        initial = 'what the "isInitial" transaction wrote, nil, or a 0 that nobody wrote'
    return Reading(
        columns=columns,
        position_unit="line",
        initial=initial,
        session="one log file",
        real_time="none: the format has no times",
        ignored=tuple(ignored),
        notes=tuple(notes),
        session_names=tuple(plain_name(files[f][0]).removesuffix(".log") for f in with_some),
    )


def _read_file(log: _Log, number: int, name: str, text: str) -> None:
    for line_number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{name}: line {line_number}"
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as e:
            reason = getattr(e, "msg", str(e))
            msg = f"{where}: not JSON ({reason}); each line holds one transaction"
            raise HistoryError(msg) from None
        if not isinstance(found, dict) or not isinstance(found.get("value"), list):
            msg = (
                f'{where}: not a transaction (got {show_json(found)}, expected {{"value": [...]}})'
            )
            raise HistoryError(msg)
        log.unknown_fields.update(found.keys() - {"value", "isInitial"})
        initial = found.get("isInitial", False)
        if not isinstance(initial, bool):
            msg = f'{where}: "isInitial" is no truth value (got {show_json(initial)})'
            raise HistoryError(msg)
        transaction = _Transaction([], number, line_number, initial)
        for i, op in enumerate(found["value"], 1):
            _op(log, transaction, op, f"{where}, operation {i}")
        if initial:
            if log.initial is not None:
                msg = f'{where}: a second "isInitial" transaction'
                raise HistoryError(msg)
            log.initial = transaction
        log.transactions.append(transaction)


def _op(log: _Log, transaction: _Transaction, op: Any, where: str) -> None:
    kind = op[0] if isinstance(op, list) and op else None
    if kind == "range":
        if not transaction.initial:
            msg = (
                f"{where}: a range query, which reads the absence of keys too and cannot be judged "
                "key by key; hint: a history of r, w, i and d can"
            )
            raise UnsupportedError(msg)
        _initial_range(transaction, op, where)
        return
    if not isinstance(kind, str) or kind not in _SLOTS or len(op) < _SLOTS[kind]:
        msg = f"{where}: not an operation (got {show_json(op)}, {_FORMS})"
        raise HistoryError(msg)
    key, value = _scalar(op[1], "key", where), _scalar(op[2], "value", where)
    if kind in "rw":
        flag = _flag(op[3], where) if len(op) > 3 else None
        if kind == "w":
            transaction.ops.append(_Op(c.WRITE, key, value, flag, flag is not False))
        else:
            log.dead_reads += flag is True
            transaction.ops.append(_Op(c.READ, key, _nil(value), flag))
        return
    log.deletes = True
    ok = _flag(op[5], where)
    _flag(op[4], where)
    if op[3] is not None:
        read = _nil(_scalar(op[3], "value", where))
        transaction.ops.append(_Op(c.READ, key, read, None, ok))
    transaction.ops.append(_Op(c.WRITE, key, value, None, ok))


def _initial_range(transaction: _Transaction, op: list[Any], where: str) -> None:
    """The initial state as the answer to a query of everything; tombstones are values too."""
    if len(op) < 4 or not all(isinstance(rows, list) for rows in op[3:5]):
        msg = f"{where}: not a range (got {show_json(op)}, expected rows of {{id, val}})"
        raise HistoryError(msg)
    for row in [row for rows in op[3:5] for row in rows]:
        if not isinstance(row, dict) or not {"id", "val"} <= row.keys():
            msg = f'{where}: not a row (got {show_json(row)}, expected {{"id": key, "val": value}})'
            raise HistoryError(msg)
        key, value = _scalar(row["id"], "key", where), _scalar(row["val"], "value", where)
        transaction.ops.append(_Op(c.WRITE, key, value, None))


def _scalar(found: Any, what: str, where: str) -> Any:
    if isinstance(found, list | dict) or (isinstance(found, float) and math.isnan(found)):
        msg = f"{where}: not a {what} (got {show_json(found)}, expected a number or a string)"
        raise HistoryError(msg)
    encode(found, where)  # half a character, which JSON can spell
    return found


def _nil(value: Any) -> Any:
    return None if value == "nil" else value


def _flag(found: Any, where: str) -> bool:
    if not isinstance(found, bool):
        msg = f"{where}: not a truth value (got {show_json(found)}, expected true or false)"
        raise HistoryError(msg)
    return found


def _apply_outcomes(log: _Log) -> None:
    """Read the fourth slots as outcomes: a transaction whose slots are false was aborted."""
    for transaction in log.transactions:
        for op in transaction.ops:
            op.ok = True
        if transaction.ops and not transaction.initial:
            flags = {op.flag for op in transaction.ops}
            if flags == {False}:
                transaction.status = c.ABORTED
            else:  # a mix: the slot of a write is still its own
                for op in transaction.ops:
                    op.ok = op.kind == c.READ or op.flag is not False


def _add(columns: Columns, transaction: _Transaction, session: int, label: int) -> None:
    columns.begin_transaction(
        session, transaction.status, label, transaction.line, transaction.file
    )
    for op in transaction.ops:
        key = columns.intern_key(*encode(op.key, "key"))
        value = columns.intern_value(*encode(op.value, "value"))
        columns.add_op(op.kind, key, value, transaction.line, op.ok)


def _mark_initial_reads(columns: Columns, *, declared: bool) -> None:
    """Reads that no write of the key explains come from the initial state.

    With a declared initial state only 0 may be unexplained; any other value stays a read of what
    nobody wrote.
    """
    import numpy as np

    pair = columns.op_key.astype(np.int64) * columns.n_values() + columns.op_value
    writes = columns.op_kind == c.WRITE
    reads = (columns.op_kind == c.READ) & (columns.op_value != c.NIL_ATOM)
    unmatched = reads & ~np.isin(pair, pair[writes])
    if declared:
        zeros = [columns.intern_value(1, 0), columns.intern_value(3, "0")]
        unmatched &= np.isin(columns.op_value, zeros)
    for op in np.flatnonzero(unmatched).tolist():
        columns.set_source(op, c.SOURCE_INITIAL)
