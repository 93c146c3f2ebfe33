"""The tool against brute force on reads that say less than a version."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from oracle import moments, semantics
from oracle.generate import well_formed
from oracle.generate_rows import cas_history, row_history, set_history
from oracle.history import show
from oracle.pipeline import Levels
from oracle.simulate import disturbed, timed_history

KINDS = {"sets": set_history, "cas": cas_history}


@pytest.fixture(scope="module")
def levels() -> Levels:
    """Event graphs, weak levels and a level with sets of readers."""
    return Levels(("pl-2", "rc", "ra", "cc-vis", "mr", "psi", "pc-co", "si", "ser", "sser"))


@pytest.mark.parametrize("kind", KINDS)
def test_tool_agrees_with_brute_force(levels: Levels, kind: str) -> None:
    """Every verdict is certified and the one that trying everything gives."""
    compared = 0
    for number in range(60):
        history = KINDS[kind](random.Random(number))
        if not well_formed(history):
            continue
        try:
            expected, wrong = levels.compare(history, seed=number)
        except semantics.TooLargeError:
            continue
        assert not wrong, f"{show(history)}: {wrong}"
        compared += len(expected)
    assert compared > 300


def test_levels_that_predicates_tell_apart() -> None:
    """PL-2.99, as Adya says and as databases with locks on rows have it, and cursor stability."""
    levels = Levels(("pl-2", "pl-cs", "pl-2-99", "locking-repeatable-read", "pl-3"))
    apart: Counter[tuple[str, str]] = Counter()
    for number in range(120):
        history = row_history(random.Random(f"rows {number}"))
        if not well_formed(history):
            continue
        expected, wrong = levels.compare(history, seed=number)
        assert not wrong, f"{show(history)}: {wrong}"
        for weaker in ("locking-repeatable-read", "pl-2-99"):
            for stronger in ("pl-2-99", "pl-3"):
                verdicts = expected[weaker], expected[stronger]
                apart[weaker, stronger] += verdicts == ("valid", "invalid")
    assert sorted(pair for pair, count in apart.items() if not count) == [("pl-2-99", "pl-2-99")]


def test_reads_of_statements_in_time() -> None:
    """What was committed when a statement was sent, with clocks that are right or wrong."""
    levels = Levels(("consistent-read-by-statement", "postgresql-read-committed"))
    found: Counter[str] = Counter()
    for number in range(40):
        rng = random.Random(f"statements {number}")
        kind = moments.KINDS[rng.choice(("bounded-si", "postgresql-read-committed"))]
        history = timed_history(rng, kind, transactions=3, fault=True)
        history = disturbed(rng, history)
        if not well_formed(history):
            continue
        expected, wrong = levels.compare(history, seed=number, error=rng.choice((0, 0, 2)))
        assert not wrong, f"{show(history)}: {wrong}"
        found += Counter(expected.values())
    assert min(found.values()) >= 5, found
