"""Fewer edges that reach the same, and sets of numbers by sorting."""

from __future__ import annotations

import random

import numpy as np
import pytest

from isolang._native import reduced_edges
from isolang.problem.distinct import distinct, distinct_rows, is_among


def reached(nodes, edges):
    """All pairs of a node and another one that it reaches."""
    after = {v: {b for a, b in edges if a == v} for v in range(nodes)}
    found = set()
    for start in range(nodes):
        seen, todo = set(), [start]
        while todo:
            new = after[todo.pop()] - seen
            seen |= new
            todo += new
        found |= {(start, v) for v in seen}
    return found


@pytest.mark.parametrize("seed", range(300))
def test_what_is_reached_stays_the_same(seed):
    """Of graphs with cycles and without, and each edge is left once at most."""
    rng = random.Random(seed)
    nodes = rng.randint(0, 9)
    order = rng.sample(range(nodes), nodes)
    edges = [
        (order[i], order[j])
        for i in range(nodes)
        for j in range(nodes)
        if (i < j and rng.random() < 0.5) or (seed % 3 == 0 and rng.random() < 0.1)
    ]
    edges += rng.sample(edges, len(edges) // 2)
    given = np.array(edges, np.int32).reshape(-1, 2)
    kept = [tuple(edge) for edge in reduced_edges(nodes, given).tolist()]
    assert len(set(kept)) == len(kept)
    assert set(kept) <= set(edges)
    assert reached(nodes, kept) == reached(nodes, edges)


def test_an_order_of_many_becomes_its_neighbours():
    """850,000 edges of a total order, as those of the versions of one key are."""
    first, second = np.triu_indices(1_300, 1)
    kept = reduced_edges(1_300, np.stack((first, second), axis=1).astype(np.int32))
    assert kept.tolist() == [[i, i + 1] for i in range(1_299)]


def test_a_node_that_is_none_is_refused():
    with pytest.raises(ValueError, match="no such node"):
        reduced_edges(2, np.array([[0, 2]], np.int32))


def test_sets_of_numbers_are_those_of_numpy():
    rng = np.random.default_rng(1)
    for size in (0, 1, 2, 50):
        some = rng.integers(-20, 20, size).astype(np.int64)
        others = rng.integers(-20, 20, 7).astype(np.int64)
        assert distinct(some).tolist() == np.unique(some).tolist()
        assert is_among(others, some).tolist() == np.isin(others, some).tolist()
        rows = rng.integers(-2, 2, (size, 3)).astype(np.int32)
        assert distinct_rows(rows).tolist() == np.unique(rows, axis=0).tolist()


class Counted(int):
    """A number that counts how often it is compared, and cannot be hashed."""

    compared = 0
    __hash__ = None

    def __lt__(self, other):
        Counted.compared += 1
        return int(self) < int(other)


def test_numbers_close_to_each_other_cost_no_more_than_others():
    """They are sorted, in n log n comparisons, and not hashed: close ones all meet there."""
    size = 1_024
    numbers = [(i // 32) * 10_001 + i % 32 for i in range(size)]
    random.Random(1).shuffle(numbers)
    ids = np.array([Counted(n) for n in numbers], dtype=object)
    assert len(distinct(ids)) == size
    assert 0 < Counted.compared < 2 * size * 10
    Counted.compared = 0
    assert is_among(ids, ids).all()
    assert 0 < Counted.compared < 4 * size * 10
