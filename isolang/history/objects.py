"""Converts a history's transactions and operations to Python objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from isolang.arrays import np
from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.transaction import Op, Transaction, label_value
from isolang.history.values import UNKNOWN, Value, decode

if TYPE_CHECKING:
    from isolang.history.described import DescribedColumns
    from isolang.history.history import History
    from isolang.history.statements import Statements


def op_object(history: History, op: int) -> Op:
    """Return an operation as a tuple in the form used by :class:`Transaction`."""
    columns = history.columns
    kind, key = int(columns.op_kind[op]), history.key_object(int(columns.op_key[op]))
    atom, source = int(columns.op_value[op]), int(columns.op_source[op])
    result: Any
    if history.is_delete(op):
        return ("delete", key)
    if atom == c.UNKNOWN_VALUE:
        result = UNKNOWN
    elif kind in c.LISTS:
        result = [history.value_object(v) for v in history.list_values(atom)]
    else:
        result = history.value_object(atom)
    by_version = columns.has_versions and columns.op_version[op] != c.NO_VERSION
    if source == c.SOURCE_BY_VALUE or by_version:
        return (c.KIND_NAMES[kind], key, result)
    where: Any = {c.SOURCE_INITIAL: "initial", c.SOURCE_MISSING: "missing"}.get(source)
    if where is None:
        txn = history.transaction_of(source)
        where = (txn, operation_indices(history, txn)[source - int(columns.op_start[txn])])
    return (c.KIND_NAMES[kind], key, result, where)


def transaction_object(history: History, txn: int) -> Transaction:
    """Return the transaction with this number as a Python object."""
    columns = history.columns
    places = operation_indices(history, txn)
    begin, end = int(columns.txn_begin[txn]), int(columns.txn_end[txn])
    session, ops = int(columns.txn_session[txn]), history.operations_of(txn)
    return Transaction(
        ops=_operation_objects(history, txn),
        session=history.session_names[session] if history.session_names else session,
        status=history.status(txn),
        begin=None if begin == c.UNKNOWN_BEGIN else begin,
        end=None if end == c.UNKNOWN_END else end,
        number=int(columns.txn_number[txn]),
        failed=tuple(
            sorted({i for i, op in zip(places, ops, strict=True) if not columns.op_ok[op]})
        ),
        times=_operation_times(history, txn),
        commit=_commit(history, txn),
        group=_transaction_group(history, txn),
        versions=_stated_versions(history, txn),
        label=label_value(history.labels_of(txn)),
        level=history.level_of(txn) or None,
        unit=history.unit_of(txn) or None,
    )


def statements_of_operations(
    history: DescribedColumns, txn: int, statements: Statements
) -> Statements:
    """Return the recorded statements of a transaction if there is one for each operation.

    The operations of a transaction that did not commit are those of its invocation, but its
    completion may state the statements of other operations. Then nothing is known.

    Raises:
        HistoryError: the transaction committed, and the numbers differ.
    """
    operations = sum(1 for _ in numbered_operations(history, txn))
    if len(statements) == operations:
        return statements
    if history.status(txn) != "committed":
        return ()
    raise HistoryError(
        f"{history.files[0]}:{int(history.columns.txn_position[txn])}: wrong number of statements "
        f"(got {len(statements)}, expected one for each of {operations} operations)"
    )


def operation_statements(history: History, txn: int) -> Statements:
    """Return the statement of each operation in the columns; empty if none are recorded."""
    found = history.statements_of(txn)
    return [found[place] for place in operation_indices(history, txn)] if found else ()


def _stated_versions(history: History, txn: int) -> list[Value] | None:
    """Return the version stated by each operation in ``_operation_objects``, in the same order.

    Return ``None`` if no operation of the transaction states a version.
    """
    if not history.columns.has_versions:
        return None
    stated = [None if scan else history.version(i) for scan, i in numbered_operations(history, txn)]
    return None if all(version is None for version in stated) else stated


def _transaction_group(history: History, txn: int) -> Value:
    groups = history.columns.txn_group
    return decode(*history.columns.group(int(groups[txn]))) if len(groups) else None


def _operation_times(
    history: History, txn: int
) -> list[tuple[int | None, int | None] | None] | None:
    """Return the times at which each operation in ``_operation_objects`` was sent and answered.

    Unknown times are ``None``. The times come from the clock that measured when transactions began.
    """
    columns = history.columns
    if not columns.has_operation_times or columns.two_clocks:
        return None
    known: list[tuple[int | None, int | None] | None] = []
    for scan, i in numbered_operations(history, txn):
        sent = int((columns.statement_sent if scan else columns.op_begin)[i])
        answered = int((columns.statement_answered if scan else columns.op_end)[i])
        one = None if sent == c.UNKNOWN_BEGIN else sent
        other = None if answered == c.UNKNOWN_END else answered
        known.append(None if one is None and other is None else (one, other))
    return known if any(known) else None


def _commit(history: History, txn: int) -> int | None:
    if not history.columns.has_operation_times or history.columns.two_clocks:
        return None
    sent = int(history.columns.commit_begin[txn])
    return None if sent == c.UNKNOWN_BEGIN else sent


def _statements_of(history: DescribedColumns, txn: int) -> range:
    first, end = np.searchsorted(history.columns.statement_txn, [txn, txn + 1]).tolist()
    return range(first, end)


def numbered_operations(history: DescribedColumns, txn: int) -> Iterator[tuple[bool, int]]:
    """Yield a pair for each operation tuple: whether it is a predicate read, and the number.

    The columns number predicate reads and operations separately.
    """
    columns, ops = history.columns, history.operations_of(txn)
    at = ops.start
    for s in _statements_of(history, txn):
        yield from ((False, op) for op in range(at, int(columns.statement_start[s])))
        yield True, s
        at = int(columns.statement_end[s])
    yield from ((False, op) for op in range(at, ops.stop))


def _operation_objects(history: History, txn: int) -> list[Op]:
    """Return a transaction's operations as tuples, with one tuple for each predicate read."""
    return [
        _predicate_read_object(history, i) if scan else op_object(history, i)
        for scan, i in numbered_operations(history, txn)
    ]


def operation_indices(history: History, txn: int) -> list[int]:
    """Return, for each operation in the columns, its index in ``Transaction.ops``."""
    columns, ops = history.columns, history.operations_of(txn)
    places: list[int] = []
    before = 0  # the number of operation tuples before the current one
    at = ops.start
    for s in _statements_of(history, txn):
        start, end = int(columns.statement_start[s]), int(columns.statement_end[s])
        places += range(before, before + start - at)
        before += start - at
        places += [before] * (end - start)
        before += 1
        at = end
    return [*places, *range(before, before + ops.stop - at)]


def _predicate_read_object(history: History, s: int) -> Op:
    columns = history.columns
    number = int(columns.statement_predicate[s])
    judged = number < 0 or columns.statement_known[s] == c.PARTLY_KNOWN
    predicate = None if judged else columns.predicates[number]
    if not columns.statement_known[s]:
        return ("scan", predicate, UNKNOWN)
    rows: dict[Any, Any] = {}
    missed: dict[Any, Any] = {}
    for op in range(int(columns.statement_start[s]), int(columns.statement_end[s])):
        kind, atom = int(columns.op_kind[op]), int(columns.op_value[op])
        key = history.key_object(int(columns.op_key[op]))
        if kind == c.READ:
            rows[key] = history.value_object(atom)
            continue
        values = [history.value_object(v) for v in history.list_values(atom)]
        if kind == c.READ_ONE_OF:
            (rows[key],) = values
        else:
            missed[key] = values
    return ("scan", predicate, rows) if predicate else ("scan", None, rows, missed)
