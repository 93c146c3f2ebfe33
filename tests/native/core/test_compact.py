"""Columns that store only what differs from a rule read as if they stored every entry."""

from __future__ import annotations

import pickle
import random
from copy import copy

import pytest

from isolang import _native
from isolang.history import columns as c

MOST = 2**63 - 1


def _columns(positions: list[int], sources: list[int], failed: set[int]) -> _native.Columns:
    columns = _native.Columns()
    key = columns.intern_key(1, 1)
    for first in range(0, len(positions), 3):
        columns.begin_transaction(0, c.COMMITTED, first, positions[first], first % 2)
        for op in range(first, min(first + 3, len(positions))):
            columns.add_op(c.READ, key, 0, positions[op], op not in failed, sources[op])
    return columns


def _random_columns(seed: int) -> tuple[_native.Columns, list[int], list[int], set[int]]:
    rng = random.Random(seed)
    size, positions = rng.randrange(1, 40), [0]
    while len(positions) < size:  # runs of equal steps, single jumps, and the largest jumps
        step = rng.choice([0, 1, 7, -5, rng.randrange(-99, 99)])
        positions += [positions[-1] + step * i for i in range(1, rng.randrange(2, 6))]
        positions += rng.choice([[], [MOST, -MOST - 1, 0]])
    positions = positions[:size]
    sources = [c.SOURCE_BY_VALUE] * size
    failed = set()
    if rng.random() < 0.7:
        sources[rng.randrange(size)] = rng.randrange(-3, size)
        failed = {rng.randrange(size) for _ in range(rng.randrange(3))}
    return _columns(positions, sources, failed), positions, sources, failed


@pytest.mark.parametrize("seed", range(60))
def test_a_compact_column_has_every_entry(seed: int) -> None:
    """Positions, sources and failures are read as they were added, also from a copy or a pickle."""
    columns, positions, sources, failed = _random_columns(seed)
    for same in (columns, copy(columns), pickle.loads(pickle.dumps(columns))):
        assert same.op_position.tolist() == positions
        assert same.txn_position.tolist() == positions[::3]
        assert same.op_source.tolist() == sources
        assert same.op_ok.tolist() == [op not in failed for op in range(len(positions))]
        assert same.txn_file.tolist() == [first % 2 for first in range(0, len(positions), 3)]


def test_a_view_shows_a_later_change() -> None:
    """A change of one source shows in the column that Python has already seen."""
    columns = _columns([1, 2, 3], [c.SOURCE_BY_VALUE] * 3, set())
    sources = columns.op_source
    columns.set_source(1, c.SOURCE_INITIAL)
    assert sources.tolist() == columns.op_source.tolist() == [-1, c.SOURCE_INITIAL, -1]
    columns.set_source(1, c.SOURCE_BY_VALUE)
    assert columns.op_source.tolist() == [-1, -1, -1]


def test_a_column_grows_after_python_has_seen_it() -> None:
    """Entries added later are in the column, too."""
    columns = _columns([4, 5], [c.SOURCE_BY_VALUE] * 2, set())
    assert columns.op_position.tolist() == [4, 5]
    assert columns.op_ok.tolist() == [1, 1]
    columns.add_op(c.READ, 0, 0, 9, False, 0)
    assert columns.op_position.tolist() == [4, 5, 9]
    assert columns.op_ok.tolist() == [1, 1, 0]
    assert columns.op_source.tolist() == [-1, -1, 0]
    assert columns.operation_at(0, 9) == 2
