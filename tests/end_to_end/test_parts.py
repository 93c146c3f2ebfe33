"""Specifications that the engine decides in parts: any checks, beside a level that is native."""

from __future__ import annotations

import random

import pytest
from oracle.parts import compare, labelled, small
from oracle.specifications import (
    random_text,
    random_text_beside_a_level,
    random_text_of_labels,
)
from support.sampling import quick_first

from isolang.api import load_spec


@pytest.mark.slow
@pytest.mark.parametrize("seed", quick_first(range(6), 2, rest="campaign"))
def test_random_checks_beside_a_level(seed: int) -> None:
    """Verdicts and flags are the oracle's, proofs are accepted again, and each way is taken."""
    rng = random.Random(700 + seed)
    ways = set()
    for _ in range(30):
        text = random_text_beside_a_level(rng)
        spec = load_spec(text)
        for _ in range(3):
            wrong, way = compare(rng, spec)
            assert wrong == "", text
            ways.add(way)
    assert {"valid by engine", "invalid by engine", "invalid by search"} <= ways, ways


@pytest.mark.parametrize("seed", range(2))
def test_random_specifications_in_parts(seed: int) -> None:
    """Specifications of which perhaps no part is native."""
    rng = random.Random(800 + seed)
    for _ in range(24):
        text = random_text(rng)
        spec = load_spec(text)
        for _ in range(2):
            wrong, _ = compare(rng, spec)
            assert wrong == "", text


@pytest.mark.slow
@pytest.mark.parametrize("seed", quick_first(range(4), 1, rest="campaign"))
def test_orders_of_labelled_transactions(seed: int) -> None:
    """Several orders, each of the transactions with a label, are what the oracle says they are."""
    rng = random.Random(900 + seed)
    ways = set()
    for _ in range(60):
        text = random_text_of_labels(rng)
        spec = load_spec(text)
        for _ in range(3):
            wrong, way = compare(rng, spec, labelled(rng, small(rng)))
            assert wrong == "", text
            ways.add(way)
    assert {"valid by search", "invalid by search"} <= ways, ways
