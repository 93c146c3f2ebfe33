"""Checks the fields of Python transactions, and adds groups, times and so on to the columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, TypeGuard

from isolang._native import Columns
from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.clock import Clock
from isolang.history.transaction import STATUS_ALIASES, Transaction
from isolang.history.values import INTEGER, encode, preview


def is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Return whether a value is a list, a tuple or another sequence, but not a string."""
    # An isinstance check with an abstract class would take longer than all other work on an
    # operation.
    return type(value) in (tuple, list) or (
        isinstance(value, Sequence) and not isinstance(value, str | bytes)
    )


def require_sequence(value: object, where: str) -> Sequence[Any]:
    """Check that a value is a sequence, and return it.

    Raises:
        HistoryError: the value is not a sequence.
    """
    if not is_sequence(value):
        raise HistoryError(f"{where}: not a list (got {preview(value)}, expected a list)")
    return value


def status_code(status: object, where: str) -> int:
    """Return the code for a status given as a word.

    Raises:
        HistoryError: the status is unknown.
    """
    name = STATUS_ALIASES.get(status, status) if isinstance(status, str) else status
    if name not in c.STATUS_NAMES:
        expected = ", ".join((*c.STATUS_NAMES, *STATUS_ALIASES))
        raise HistoryError(
            f"{where}: unknown status (got {preview(status)}, expected one of {expected})"
        )
    return c.STATUS_NAMES.index(name)


def transaction_number(number: object, ordinal: int, where: str) -> int:
    """Return the transaction number given by the user, or the ordinal if there is none.

    Raises:
        HistoryError: the number is not a 64-bit integer.
    """
    if number is None:
        return ordinal
    if not isinstance(number, int) or isinstance(number, bool) or not -(2**63) <= number < 2**63:
        raise HistoryError(
            f"{where}: not a number (got {preview(number)}, expected an integer of 64 bits)"
        )
    return number


def failed_operations(failed: object, operations: int, where: str) -> set[int]:
    """Check the indices of the operations that failed by themselves, and return them."""
    numbers = require_sequence(failed, f"{where}: failed")
    for number in numbers:
        if not isinstance(number, int) or not 0 <= number < operations:
            raise HistoryError(
                f"{where}: failed names an operation that does not exist (got {preview(number)}, "
                f"expected a number from 0 to {operations - 1})"
            )
    return set(numbers)


def add_group(columns: Columns, index: int, transaction: Transaction, where: str) -> None:
    """Add a transaction's group, if it has one, to the columns."""
    if transaction.group is not None:
        columns.set_group(index, *encode(transaction.group, f"{where}: the group"))


def add_versions(columns: Columns, index: int, transaction: Transaction, where: str) -> None:
    """Add the versions stated by a transaction's operations to the columns."""
    if transaction.versions is None:
        return
    versions = require_sequence(transaction.versions, f"{where}: versions")
    if len(versions) != len(transaction.ops):
        raise HistoryError(
            f"{where}: wrong number of versions (got {len(versions)}, expected one for each "
            f"of {len(transaction.ops)} operations, or None in its place)"
        )
    for i, (op, version) in enumerate(zip(transaction.ops, versions, strict=True)):
        if version is None:
            continue
        at = f"{where}: the version of operation {i + 1}"
        if op[0] not in ("r", "w", "insert", "delete") or (
            op[0] == "r" and isinstance(op[2], list)
        ):
            raise HistoryError(f"{at}: not an operation on a register (got {preview(op)})")
        if len(op) == 4 and op[3] is not None:
            raise HistoryError(
                f"{at}: the read states both its source and its version (got {preview(op)})"
            )
        kind, payload = encode(version, at)
        if columns.versions_ordered and kind != INTEGER:
            raise HistoryError(
                f"{at}: not a 64-bit integer, though versions are ordered (got {preview(version)})"
            )
        columns.set_version(columns.operation_at(index, i + 1), kind, payload)


def add_names(columns: Columns, index: int, transaction: Transaction, where: str) -> None:
    """Add a transaction's labels and requested level to the columns."""
    label, level = transaction.label, transaction.level
    if label is None and level is None:
        return
    labels = () if label is None else (label,) if isinstance(label, str) else label
    if not isinstance(labels, Sequence) or not all(isinstance(name, str) for name in labels):
        raise HistoryError(
            f"{where}: wrong label (got {preview(label)}, expected a name or several)"
        )
    if labels:
        columns.set_labels(index, list(labels))
    if level is not None and not isinstance(level, str):
        raise HistoryError(f"{where}: wrong level (got {preview(level)}, expected a name)")
    if level is not None:
        columns.set_level(index, level)


def add_times(
    columns: Columns, clock: Clock, index: int, transaction: Transaction, where: str
) -> None:
    """Add the times of a transaction's operations and of its COMMIT to the columns.

    Raises:
        HistoryError: the times are out of order, or not between the transaction's begin and end.
    """
    times, commit = transaction.times, transaction.commit
    if times is None and commit is None:
        return
    begin = clock.time(transaction.begin, c.UNKNOWN_BEGIN, f"{where}: begin")
    end = clock.time(transaction.end, c.UNKNOWN_END, f"{where}: end")
    intervals = () if times is None else require_sequence(times, f"{where}: times")
    if times is not None and len(intervals) != len(transaction.ops):
        raise HistoryError(
            f"{where}: wrong number of times (got {len(intervals)}, expected one pair for "
            f"each of {len(transaction.ops)} operations, or None in its place)"
        )
    scans = [i for i, op in enumerate(transaction.ops) if op[0] == "scan"]
    number = dict(zip(reversed(scans), count(columns.statements() - 1, -1), strict=False))
    for i, interval in enumerate(intervals):
        at = f"{where}: the times of operation {i + 1}"
        if interval is None:
            continue
        pair = require_sequence(interval, at)
        if len(pair) != 2:
            raise HistoryError(f"{at}: not a pair (got {preview(interval)}, expected two times)")
        sent = clock.time(pair[0], c.UNKNOWN_BEGIN, at)
        answered = clock.time(pair[1], c.UNKNOWN_END, at)
        known = [begin, sent, answered, end]
        known = [at for at in known if at not in (c.UNKNOWN_BEGIN, c.UNKNOWN_END)]
        if known != sorted(known):
            raise HistoryError(
                f"{at}: the times are out of order (got {preview(interval)}, expected times "
                f"between begin {transaction.begin} and end {transaction.end})"
            )
        if i in number:
            columns.set_statement_times(number[i], sent, answered)
        else:
            columns.set_operation_times(columns.operation_at(index, i + 1), sent, answered)
    sent = clock.time(commit, c.UNKNOWN_BEGIN, f"{where}: commit")
    if sent != c.UNKNOWN_BEGIN and not begin <= sent <= end:
        raise HistoryError(
            f"{where}: COMMIT was sent outside the transaction (got {commit}, expected a time "
            f"between begin {transaction.begin} and end {transaction.end})"
        )
    answered = end if transaction.status == "committed" else c.UNKNOWN_END
    columns.set_commit_times(index, sent, answered)
