"""Levels whose walks begin and end in one session, and what a single ``wr`` must not close.

Processor consistency is compared with its definition, an order for each session; random checks
with the oracle's evaluation; prefix consistency with session guarantees with the axioms tried out.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from oracle import definitions, relational, semantics
from oracle.generate import any_history
from oracle.generate_literature import literature_history
from oracle.history import History, parse, show
from oracle.pipeline import to_tool, tool_verdict
from oracle.predicates import rich
from support.sampling import quick_first

from isolang.api import check, load_spec
from isolang.certify.proofs import check_proof
from isolang.language.classify.event_graph import NotAnEventGraph
from isolang.language.classify.route import native_plan, route
from isolang.verdict import Invalid, Unknown


def judged(history: History, text: str) -> str:
    """The verdict of the engine, which both twins accept."""
    spec, tool = load_spec(text), to_tool(history)
    verdict = check(tool, route(spec))
    assert verdict.certified, (text, show(history), verdict.certified_reason)
    assert not isinstance(verdict, Unknown)
    check_proof(tool, spec, verdict.refutation if isinstance(verdict, Invalid) else verdict.witness)
    return str(verdict.outcome)


@pytest.mark.parametrize("part", range(3))
def test_processor_consistency_by_definition(part: int) -> None:
    seen: Counter[bool] = Counter()
    for number in range(150):
        history = literature_history(random.Random(f"processor {part} {number}"))
        if rich(history):
            continue
        holds = definitions.pram(history, coherent=True)
        assert judged(history, "processor") == ("valid" if holds else "invalid"), show(history)
        seen[holds] += 1
    assert min(seen.values()) > 15


@pytest.mark.parametrize(
    ("operations", "outcome"),
    [
        ("r(x,2) -> w(y,1) || r(y,1) -> w(x,2)", "valid"),  # from itself, by way of two sessions
        ("r(x,1) -> w(x,1)", "invalid"),
        ("r(x,2) -> w(x,1) || w(x,2) || r(x,1) -> r(x,2)", "invalid"),  # x = 2 after x = 1
        ("w(x,1) -> w(y,1) || w(y,2) -> w(x,2) || r(y,2) -> r(y,1) || r(x,1) -> r(x,2)", "valid"),
        ("w(x,1) -> w(y,1) || w(y,2) -> w(x,2) || r(y,1) -> r(y,2) || r(x,2) -> r(x,1)", "invalid"),
        ("w(x,1) || r(x,1) w(y,1) || r(y,1) -> r(x,nil)", "valid"),  # a causality violation
        ("w(x,1) -> w(y,1) || r(y,1) -> r(x,nil)", "invalid"),
    ],
)
def test_processor_litmus(operations: str, outcome: str) -> None:
    history = parse(operations)
    assert definitions.pram(history, coherent=True) == (outcome == "valid")
    assert judged(history, "processor") == outcome


def random_level(rng: random.Random) -> str:
    """Walks with one ``wr``, which need not compose, beside what forbids their loops."""
    base = rng.choice(("so | ww", "[W] ; (so | ww) ; [W]", "ww", "so"))
    after = rng.choice(("so?", "so", "(so ; [W])?", "ww?"))
    before = rng.choice(("e^*", "e", "e?", "e^+"))
    word = f"{before} ; wr ; {after}" if rng.random() < 0.5 else f"wr ; {after} ; {before}"
    more = rng.choice(("", "irreflexive e^* ; (wr | so) ; rw as c\n", "acyclic wr as c\n"))
    return (
        f'include "adya.iso"\nlet e = {base}\nacyclic e | ww as a\nirreflexive {word} as b\n{more}'
    )


@pytest.mark.slow
@pytest.mark.parametrize("part", quick_first(range(3), rest="campaign"))
def test_walks_back_to_a_source_by_definition(part: int) -> None:
    rng = random.Random(f"source {part}")
    seen: Counter[str] = Counter()
    for _ in range(12):
        text = random_level(rng)
        spec = load_spec(text)
        try:
            native_plan(spec)
        except NotAnEventGraph:
            seen["refused"] += 1
            continue
        for _ in range(12):
            history = any_history(rng)
            try:
                (holds,) = semantics.satisfied(history, [spec.checks], limit=3_000)
            except semantics.TooLargeError:
                continue
            expected = "valid" if holds else "invalid"
            assert judged(history, text) == expected, (text, show(history))
            seen[expected] += 1
    assert min(seen["valid"], seen["invalid"]) > 5, seen


PREFIX = """
include "visibility-nosession.iso"
require ar ; vis in vis as prefix
{}
"""
GUARANTEES = (
    "require [W] ; so ; [R] in vis as ryw",
    "require vis ; [R] ; so ; [R] in vis as mr",
    "require [W] ; so ; [W] in ar as mw",
)


@pytest.mark.parametrize("chosen", [(0,), (1,), (0, 1), (0, 1, 2)])
def test_prefix_consistency_with_session_guarantees(chosen: tuple[int, ...]) -> None:
    """Natively, and as the axioms say by themselves."""
    text = PREFIX.format("\n".join(GUARANTEES[i] for i in chosen))
    spec = load_spec(text)
    way = route(spec)
    assert way.kind == "event graph"
    rng = random.Random(f"prefix {chosen}")
    seen: Counter[bool] = Counter()
    while sum(seen.values()) < 60:
        history = any_history(rng)
        if len(history) > 4:
            continue
        try:
            holds = relational.satisfied(history, spec, limit=3_000)
        except semantics.TooLargeError:
            continue
        expected = "valid" if holds else "invalid"
        assert tool_verdict(history, way) == expected, show(history)
        seen[holds] += 1
    assert min(seen.values()) > 3, seen
