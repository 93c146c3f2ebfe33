"""The tool against brute force on reads that say less than a version."""

from __future__ import annotations

import random

import pytest
from oracle import semantics
from oracle.generate import well_formed
from oracle.generate_rows import cas_history, set_history
from oracle.history import show
from oracle.pipeline import Levels

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
