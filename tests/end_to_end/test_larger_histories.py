"""Histories too large for brute force, whose verdicts are known by construction.

What the clients of a correct store see satisfies the level of the store; with a forbidden pattern
on keys of its own beside it, it does not, however large the rest is.
"""

from __future__ import annotations

import random

import pytest
from oracle.generate import run_store
from oracle.history import History, Txn, parse
from oracle.pipeline import tool_verdict

from isolang.api import load_spec
from isolang.language.classify.event_graph import Plan, classify

#: store -> what its histories satisfy; one of the strongest levels suffices to imply the others,
#: but weaker ones take other paths through the engine.
SATISFIES = {
    "serial": ("sser", "ser", "strong-si", "si", "pc", "ser-nosession", "pl-3"),
    "snapshot": ("strong-si", "strong-si-nosession", "si", "si-nosession", "pc"),
    "prefix": ("pc", "pc-nosession", "pl-2"),
}

#: pattern -> (a level that forbids it, one that allows it), all sessions concurrent
PATTERNS = {
    "r(a,nil) r(b,nil) w(a,1) || r(a,nil) r(b,nil) w(b,1)": ("ser", "si"),
    "r(a,nil) w(a,1) || r(a,nil) w(a,1)": ("si", "pc"),
    "w(a,1) || w(b,1) || r(a,1) r(b,nil) || r(a,nil) r(b,1)": ("pc", "pl-2"),
    "w(a,1) -> r(a,nil)": ("pc", "ser-nosession"),
    "r(b,1) w(a,1) || r(a,1) w(b,1)": ("pl-2", "pl-1"),
}


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    names = {n for row in (*SATISFIES.values(), *PATTERNS.values()) for n in row}
    return {name: classify(load_spec(name)) for name in names}


def a_store_history(rng: random.Random, store: str) -> History:
    return run_store(
        rng,
        store,
        # Under PC a list read after an own append counts as one of the final list.
        lists=store != "prefix" and rng.random() < 0.3,
        keys=rng.choice((2, 4, 8)),
        transactions=rng.choice((20, 40, 60)),
        sessions=rng.choice((3, 6)),
    )


@pytest.mark.parametrize("store", SATISFIES)
def test_a_correct_store(plans: dict[str, Plan], store: str) -> None:
    rng = random.Random(21)
    for number in range(20):
        history = a_store_history(rng, store)
        for level in SATISFIES[store]:
            assert tool_verdict(history, plans[level], seed=number) == "valid", (level, history)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_forbidden_pattern_beside_it(plans: dict[str, Plan], pattern: str) -> None:
    rng = random.Random(22)
    forbids, allows = PATTERNS[pattern]
    for number in range(12):
        beside = tuple(Txn(100 + t.session, t.ops) for t in parse(pattern))
        history = (*a_store_history(rng, "serial"), *beside)
        assert tool_verdict(history, plans[forbids], seed=number) == "invalid"
        assert tool_verdict(history, plans[allows], seed=number) == "valid"
