"""Reads that name their source: what they mean, told by histories of which the values tell it."""

import random
from collections import Counter

import pytest
from support.named_sources import LEVELS, by_value, has_two_values, random_history
from support.sampling import quick_first

import isolang
from isolang.history import UNKNOWN, History, Transaction


@pytest.mark.parametrize("seed", quick_first(range(8), 4, rest="campaign"))
def test_a_named_source_means_what_a_value_of_its_own_means(seed):
    """Each verdict is that of the history by value, unless a version has two values; certified."""
    rng = random.Random(seed)
    outcomes = Counter()
    for _ in range(120):
        txns = random_history(rng)
        level = rng.choice(LEVELS)
        verdict = isolang.check(History.from_transactions(txns), level)
        assert verdict.certified, (level, txns, verdict.reason)
        expected = isolang.check(History.from_transactions(by_value(txns)), level).outcome
        contradiction = has_two_values(txns) and level != "pl-1"
        if contradiction:
            expected = "invalid"
        assert verdict.outcome == expected, (level, txns)
        outcomes[expected, contradiction] += 1
    assert len(outcomes) == 3, outcomes


def test_a_read_of_an_unknown_result_says_nothing():
    """Neither the engine nor a checker takes the source that it names."""
    txns = [
        Transaction([("w", "x", 1), ("r", "y", UNKNOWN, "initial")], session=0),
        Transaction([("w", "y", 1), ("r", "x", UNKNOWN, "initial")], session=1),
        Transaction([("r", "y", UNKNOWN, "missing")], session=2),
    ]
    for level in LEVELS:
        verdict = isolang.check(History.from_transactions(txns), level)
        assert (verdict.outcome, verdict.certified) == ("valid", True)
        assert verdict.ignored
