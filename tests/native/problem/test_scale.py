"""The pre-pass stays linear where histories are lopsided."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from isolang import _native

READ, WRITE, APPEND, READ_LIST = range(4)
SIZE = 60_000


def one_key():
    """All operations on one key, each in a transaction of its own, all values different."""
    columns = _native.Columns()
    key = columns.intern_key(3, "x")
    for i in range(SIZE // 2):
        value = columns.intern_value(1, i)
        columns.begin_transaction(i % 10, 0, i, i)
        columns.add_op(WRITE, key, value, i)
        columns.begin_transaction(10 + i % 10, 0, i, i)
        columns.add_op(READ, key, value, i)
    return columns, SIZE // 2, 0


def one_transaction():
    """A transaction that reads a key in all its versions, and one that writes them all."""
    columns = _native.Columns()
    key = columns.intern_key(3, "x")
    values = [columns.intern_value(1, i) for i in range(SIZE // 2)]
    for t, kind in enumerate((WRITE, READ)):
        columns.begin_transaction(t, 0, t, t)
        for value in values:
            columns.add_op(kind, key, value, t)
    return columns, 1, SIZE // 2 - 1  # the last write has a reader, the others were overwritten


def wrong_own_reads():
    """A transaction that overwrites a key again and again, and reads it as it was at first."""
    columns = _native.Columns()
    key = columns.intern_key(3, "x")
    columns.begin_transaction(0, 0, 0, 0)
    columns.add_op(WRITE, key, columns.intern_value(1, 0), 0)
    for i in range(1, SIZE // 2):
        columns.add_op(WRITE, key, columns.intern_value(1, i), i)
        columns.add_op(READ, key, columns.intern_value(1, 0), i)
    return columns, 0, SIZE // 2 - 1


def many_keys():
    """As many keys as operations."""
    columns = _native.Columns()
    value = columns.intern_value(1, 7)
    for i in range(SIZE // 2):
        key = columns.intern_key(1, i)
        columns.begin_transaction(i % 10, 0, i, i)
        columns.add_op(WRITE, key, value, i)
        columns.add_op(READ, key, value, i)
    return columns, 0, 0


def long_list():
    """A list that is read in all its lengths: the elements shown are many times the operations."""
    columns = _native.Columns()
    key = columns.intern_key(3, "x")
    values = [columns.intern_value(1, i) for i in range(1500)]
    for i, value in enumerate(values):
        columns.begin_transaction(i % 10, 0, i, i)
        columns.add_op(APPEND, key, value, i)
        columns.begin_transaction(10 + i % 10, 0, i, i)
        columns.add_op(READ_LIST, key, columns.add_list(values[: i + 1]), i)
    return columns, len(values), 0


def damaged_list():
    """The same, and every read shows its first element once more."""
    columns = _native.Columns()
    key = columns.intern_key(3, "x")
    values = [columns.intern_value(1, i) for i in range(1000)]
    for i, value in enumerate(values):
        columns.begin_transaction(i % 10, 0, i, i)
        columns.add_op(APPEND, key, value, i)
        columns.begin_transaction(10 + i % 10, 0, i, i)
        columns.add_op(READ_LIST, key, columns.add_list([*values[: i + 1], values[0]]), i)
    # Each read ends in element 0 and shows it twice; all but the longest contradict the longest.
    return columns, len(values), 2 * len(values) - 1


def maybe_chain():
    """Maybe transactions that are in only because the next one is: a fixpoint of many rounds."""
    columns = _native.Columns()
    key = columns.intern_key(3, "x")
    values = [columns.intern_value(1, i) for i in range(SIZE // 2)]
    for i, (seen, written) in enumerate(pairwise(values)):
        columns.begin_transaction(i, 2, i, i)
        if i:
            columns.add_op(READ, key, seen, i)
        columns.add_op(WRITE, key, written, i)
    columns.begin_transaction(0, 0, 0, 0)
    columns.add_op(READ, key, values[-1], 0)
    return columns, SIZE // 2 - 1, 0


@pytest.mark.parametrize(
    "make",
    [one_key, one_transaction, wrong_own_reads, many_keys, long_list, damaged_list, maybe_chain],
)
def test_linear(make):
    """The result is right, and takes a small part of the time that quadratic work would."""
    columns, reads, anomalies = make()
    start = time.process_time()
    problem = _native.build_problem(columns)
    assert time.process_time() - start < 1
    assert len(problem.read_op) == reads
    assert len(problem.anomalies) == anomalies
