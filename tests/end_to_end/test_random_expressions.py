"""Specifications nobody wrote: random expressions over ``so rt wr ww rw``.

Either the classifier refuses one with a reason, or its automata decide every small history as the
oracle does.
"""

from __future__ import annotations

import random

import pytest
from oracle.expressions import HARD, Checks, random_checks, spec_text
from oracle.history import show
from oracle.judged import judged
from oracle.pipeline import tool_verdict

from isolang.api import load_spec
from isolang.language.classify.event_graph import NotAnEventGraph, classify


def compare(rng: random.Random, checks: Checks, histories: int) -> int:
    """Compares on some histories; 0 if the specification is refused."""
    spec = load_spec(spec_text(checks))
    try:
        plan = classify(spec)
    except NotAnEventGraph as error:
        refusal = error
    else:
        refusal = None
    if refusal is not None:
        assert refusal.reason.strip(), "a refusal must say why"
        return 0
    compared = 0
    for history, expected in judged(rng, checks, histories):
        got = tool_verdict(history, plan, seed=compared)
        assert got == expected, f"{spec_text(checks)}{show(history)}: {got}, expected {expected}"
        compared += 1
    return compared


@pytest.mark.parametrize("part", range(6))
def test_random_expressions(part: int) -> None:
    rng = random.Random(2_000 + part)
    results = [compare(rng, random_checks(rng), 6) for _ in range(40)]
    assert any(results), "nothing was accepted"
    assert not all(results), "nothing was refused"


@pytest.mark.parametrize(
    "checks", HARD, ids=lambda c: spec_text(c).split("\n", 2)[2].replace("\n", ", ")
)
def test_specifications_that_stress_the_version_order(checks: Checks) -> None:
    """Without ``ww``, or with ``ww`` that does not compose, an order of writes must still be
    found.
    """
    compare(random.Random(3), checks, 20)
