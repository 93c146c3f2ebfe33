"""Specifications nobody wrote: random expressions over ``so rt wr ww rw``, and of one key.

Either the classifier refuses one with a reason, or its automata decide every small history as the
oracle does.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from oracle.expressions import (
    HARD,
    Checks,
    random_checks,
    random_filtered_checks,
    random_predicate_checks,
    random_wide_checks,
    spec_text,
)
from oracle.history import show
from oracle.judged import judged
from oracle.pipeline import tool_verdict
from support.sampling import quick_first

from isolang.api import load_spec
from isolang.language.classify.event_graph import NotAnEventGraph, Plan, classify
from isolang.language.classify.route import native_plan
from isolang.language.meaning.core import Spec
from isolang.language.meaning.show import show_check


def compare(
    rng: random.Random,
    checks: Checks,
    histories: int,
    *,
    compiled: Callable[[Spec], Plan] = classify,
) -> int:
    """Compares on some histories; 0 if the specification is refused."""
    text = 'include "adya.iso"\n' + "\n".join(map(show_check, checks)) + "\n"
    spec = load_spec(text)
    try:
        plan = compiled(spec)
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
        assert got == expected, f"{text}{show(history)}: {got}, expected {expected}"
        compared += 1
    return compared


@pytest.mark.slow
@pytest.mark.parametrize("part", quick_first(range(6), 4, rest="campaign"))
def test_random_expressions(part: int) -> None:
    rng = random.Random(2_000 + part)
    results = [compare(rng, random_checks(rng), 6) for _ in range(40)]
    assert any(results), "nothing was accepted"
    assert not all(results), "nothing was refused"


@pytest.mark.slow
@pytest.mark.parametrize("part", quick_first(range(4), 2, rest="campaign"))
def test_random_checks_of_one_key_and_return_paths(part: int) -> None:
    rng = random.Random(3_000 + part)
    results = [compare(rng, random_wide_checks(rng), 6, compiled=native_plan) for _ in range(40)]
    assert any(results), "nothing was accepted"
    assert not all(results), "nothing was refused"


def test_random_steps_between_accesses() -> None:
    """``for x: [W[x]] ; rt ; [R[x]]`` and its like, with times of operations, too."""
    rng = random.Random(4_000)
    checks = (random_filtered_checks(rng) for _ in range(30))
    results = [compare(rng, c, 4, compiled=native_plan) for c in checks]
    assert any(results), "nothing was accepted"
    assert not all(results), "nothing was refused"


@pytest.mark.slow
def test_random_checks_of_predicates() -> None:
    """Item and predicate dependencies are told apart, also by specifications nobody wrote."""
    rng = random.Random(5_000)
    checks = (random_predicate_checks(rng) for _ in range(30))
    results = [compare(rng, c, 4, compiled=native_plan) for c in checks]
    assert sum(map(bool, results)) > 20, results


@pytest.mark.parametrize(
    "checks", HARD, ids=lambda c: spec_text(c).split("\n", 2)[2].replace("\n", ", ")
)
def test_specifications_that_stress_the_version_order(checks: Checks) -> None:
    """Without ``ww``, or with ``ww`` that does not compose, an order of writes must still be
    found.
    """
    compare(random.Random(3), checks, 20)
