"""Real time inside a group of sessions: ``group-rt``, and strong partition snapshot isolation."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from oracle import definitions, relational, semantics
from oracle.generate import any_history, random_times
from oracle.generate_literature import MOST, with_groups
from oracle.history import History, parse, show, timed
from oracle.pipeline import to_tool, tool_verdict
from oracle.predicates import lower
from support.sampling import quick_first

from isolang.api import check, load_spec
from isolang.certify.proofs import check_proof
from isolang.errors import HistoryError
from isolang.history import History as ToolHistory
from isolang.history import Transaction
from isolang.language.classify.route import native_plan, route
from isolang.verdict import Invalid, Unknown


def grouped(rng: random.Random) -> History:
    """A small history with times, and groups for some of its transactions."""
    while True:
        history = any_history(rng)
        if not timed(history):
            history = random_times(rng, history)
        if history and len(history) <= MOST and timed(history):
            history = with_groups(rng, history)
            if any(t.group for t in history):
                return history


@pytest.mark.slow
@pytest.mark.parametrize("part", quick_first(range(2), rest="campaign"))
def test_strong_partition_si_by_definition(part: int) -> None:
    """Both twins accept each verdict, and the engine's other encodings give the same."""
    spec = load_spec("strong-partition-si")
    plan = native_plan(spec)
    seen: Counter[str] = Counter()
    for number in range(150):
        history = grouped(random.Random(part << 20 | number))
        expected = definitions.strong_partition_si(history)
        tool = to_tool(history)
        verdict = check(tool, plan)
        assert verdict.outcome == ("valid" if expected else "invalid"), show(history)
        assert verdict.certified, show(history)
        assert not isinstance(verdict, Unknown)
        check_proof(
            tool, spec, verdict.refutation if isinstance(verdict, Invalid) else verdict.witness
        )
        if number % 5 == 0:
            for encoding, solver in (("one_variable", "auto"), ("relational", "auto")):
                other = check(tool, plan, encoding=encoding, solver=solver)
                assert other.outcome == verdict.outcome, (encoding, show(history))
        seen[verdict.outcome] += 1
        seen["between"] += expected and tool_verdict(history, _STRONG) == "invalid"
        seen["apart"] += not expected and tool_verdict(history, _SI) == "valid"
    assert min(seen["valid"], seen["invalid"]) > 10
    assert min(seen["between"], seen["apart"]) > 1, seen


_SI, _STRONG = (route(load_spec(name)) for name in ("si", "strong-si"))


@pytest.mark.parametrize(
    ("operations", "valid"),
    [
        ("w(x,1) @0-1 %a || r(x,nil) @2-3 %a", False),
        ("w(x,1) @0-1 %a || r(x,nil) @2-3 %b", True),
        ("w(x,1) @0-2 %a || r(x,nil) @2-3 %a", True),  # equal times are no order
        ("w(x,1) @0-1 || r(x,nil) @2-3 || r(y,nil) @4-5 %a", True),  # of no group
        ("?w(x,1) @0-1 %a || r(x,nil) @2-3 %a || r(x,1) @0-9 %b", True),
        ("w(x,1) @0-1 %a || r(x,1) w(y,1) @2-3 %b || r(y,1) r(x,nil) @4-5 %c", False),
        ("w(x,1) @0-1 %a || r(x,nil) w(y,1) @2-3 %b || r(y,1) r(x,nil) @4-5 %a", False),
        ("r(x,nil) r(y,nil) w(x,1) @0-9 %a || r(x,nil) r(y,nil) w(y,1) @0-9 %a", True),
        ("w(x,1) @0-1 %a || w(x,2) @2-3 %a || r(x,2) @4-5 %b || r(x,1) @6-7 %c", True),
        ("w(x,1) @0-1 %a || w(x,2) @2-3 %a || r(x,2) @4-5 %b || r(x,1) @6-7 %b", False),
    ],
)
def test_litmus(operations: str, valid: bool) -> None:
    history = parse(operations)
    assert show(parse(show(history))) == show(history)
    assert definitions.strong_partition_si(history) == valid
    verdict = tool_verdict(history, native_plan(load_spec("strong-partition-si")))
    assert verdict == ("valid" if valid else "invalid")


@pytest.mark.slow
def test_one_group_is_strong_si_and_one_for_each_session_is_si() -> None:
    plan = native_plan(load_spec("strong-partition-si"))
    for number in range(60):
        history = grouped(random.Random(number))
        one = tuple(replace(t, group="a") for t in history)
        each = tuple(replace(t, group=f"g{t.session}") for t in history)
        assert tool_verdict(one, plan) == tool_verdict(one, _STRONG), show(history)
        in_order = all(  # else real time says more of a session than its order
            b.begin is None or a.end is None or a.end < b.begin or a.session != b.session
            for i, a in enumerate(each)
            for b in each[i + 1 :]
        )
        if in_order:
            assert tool_verdict(each, plan) == tool_verdict(each, _SI), show(history)


SHAPES = (
    "acyclic {base} | group-rt as a",
    "acyclic ({base} | group-rt) ; rw? as a",
    "acyclic group-rt ; ({base}) | rw as a",
    "acyclic {base} | ww as a\nirreflexive (wr | group-rt) ; rw as b",
    "acyclic wr | ww | group-rt as a\nirreflexive (wr | group-rt)^+ ; rw as b",
    "for each x: acyclic group-rt | wr[x] | ww[x] | rw[x] as a",
    "acyclic wr | ww as a\nfor each x: irreflexive group-rt ; rw[x] as b",
)


@pytest.mark.parametrize("shape", SHAPES)
def test_specifications_by_definition(shape: str) -> None:
    """Alone, in return paths and in graphs of one key, on random histories."""
    rng = random.Random(shape)
    seen: Counter[str] = Counter()
    for _ in range(4):
        base = rng.choice(("wr", "wr | ww", "so | wr", "ww", "wr | ww | rw"))
        spec = load_spec(f'include "adya.iso"\n{shape.format(base=base)}\n')
        plan = native_plan(spec)
        for number in range(25):
            history = grouped(random.Random(f"{base} {number}"))
            try:
                (holds,) = semantics.satisfied(history, [spec.checks], limit=3_000)
            except semantics.TooLargeError:
                continue
            expected = "valid" if holds else "invalid"
            tool = to_tool(history)
            verdict = check(tool, plan)
            assert verdict.outcome == expected, (spec.checks, show(history))
            assert verdict.certified, (spec.checks, show(history))
            assert not isinstance(verdict, Unknown)
            check_proof(
                tool, spec, verdict.refutation if isinstance(verdict, Invalid) else verdict.witness
            )
            seen[expected] += 1
    assert min(seen["valid"], seen["invalid"]) > 3, seen


AXIOMS = {
    "read your writes": (
        "visibility-nosession",
        "require [W] ; group-rt ; [R] in vis as own",
    ),
    "causal": ("visibility", "require vis ; vis in vis as a\nrequire group-rt in vis as b"),
    "monotonic reads": (
        "visibility-nosession",
        "require vis ; [R] ; group-rt ; [R] in vis as own",
    ),
    "commit order": (
        "commit-order",
        "require obs((so | wr | group-rt)^+) in co as a\nrequire group-rt in co as b",
    ),
}


@pytest.mark.parametrize("axioms", AXIOMS)
def test_axioms_by_definition(axioms: str) -> None:
    """What is visible, or in the order, by the real time of a group is decided natively."""
    fragment, text = AXIOMS[axioms]
    spec = load_spec(f'include "{fragment}.iso"\n{text}\n')
    plan = native_plan(spec)
    seen: Counter[str] = Counter()
    for number in range(50):
        history = grouped(random.Random(f"{axioms} {number}"))
        try:
            holds = relational.satisfied(lower(history), spec, limit=30_000)
        except semantics.TooLargeError:
            continue
        tool = to_tool(history)
        verdict = check(tool, plan)
        assert verdict.outcome == ("valid" if holds else "invalid"), show(history)
        assert verdict.certified, show(history)
        assert not isinstance(verdict, Unknown)
        check_proof(
            tool, spec, verdict.refutation if isinstance(verdict, Invalid) else verdict.witness
        )
        seen[verdict.outcome] += 1
    assert min(seen["valid"], seen["invalid"]) > 5, seen


def test_a_history_without_groups_is_refused() -> None:
    history = to_tool(parse("w(x,1) @0-1 || r(x,nil) @2-3"))
    with pytest.raises(HistoryError, match="refers to groups"):
        check(history, "strong-partition-si")


def test_a_history_without_times_is_refused() -> None:
    history = ToolHistory.from_transactions([Transaction([("w", "x", 1)], group="a")])
    with pytest.raises(HistoryError, match="uses real time"):
        check(history, "strong-partition-si")
