"""Given relations between transactions that access one key: ``for x: [W[x]] ; rt ; [R[x]]``.

The other side is the oracle's semantics, which evaluates the axioms as they are written; every
verdict is certified by both checkers.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from oracle import semantics
from oracle.generate import any_history
from oracle.history import History, parse, show, timed
from oracle.moments import KINDS
from oracle.pipeline import to_tool
from oracle.simulate import disturbed, timed_history

from isolang.api import check, load_spec
from isolang.certify.proofs import check_proof
from isolang.comparison.normal import normal
from isolang.comparison.walks import prove_implication
from isolang.language.classify.event_graph import NotAnEventGraph
from isolang.language.classify.route import native_plan
from isolang.verdict import Invalid, Unknown

SETS = ("W[x]", "R[x]", "W[x] | R[x]")


def step(rng: random.Random, given: str) -> str:
    """A step between accesses of one key; ``co`` of a database would contain it, or nearly."""
    return f"(for x: [{rng.choice(SETS)}] ; {given} ; [{rng.choice(SETS)}])"


def random_text(rng: random.Random, given: str) -> str:
    """A level of ``acyclic`` and ``irreflexive`` checks with one or two such steps."""
    base = rng.choice(("wr", "wr | ww", "so | wr", "ww", "wr | ww | rw"))
    some = " | ".join(step(rng, given) for _ in range(rng.choice((1, 1, 2))))
    shape = rng.choice((
        f"acyclic {base} | {some} as a",
        f"acyclic {base} | {some} | rw as a",
        f"acyclic ({base} | {some}) ; rw? as a",
        f"acyclic wr | ww as a\nirreflexive {some} ; rw as b",
        f"acyclic {base} | ww | {some} as a\nirreflexive (wr | {some}) ; rw as b",
        f"acyclic wr | ww | {some} as a\nirreflexive (wr | {some})^+ ; rw as b",
    ))  # fmt: skip
    return f'include "adya.iso"\n{shape}\n'


def random_histories(rng: random.Random, given: str, count: int) -> list[History]:
    """What some database may have done, with the times that the relation speaks of."""
    if given == "so":
        return [any_history(rng) for _ in range(count)]
    if given == "rt":
        every = (any_history(rng) for _ in range(20 * count))
        return [h for h in every if timed(h)][:count]
    found = []
    for _ in range(count):
        history = timed_history(rng, rng.choice(list(KINDS.values())), fault=rng.random() < 0.7)
        if rng.random() < 0.5:
            history = disturbed(rng, history)
        # The oracle's moments of an indeterminate transaction count where it is included.
        found.append(tuple(t for t in history if t.status != "maybe"))
    return [history for history in found if history]


def as_by_definition(given: str, seed: int, texts: int) -> Counter[str]:
    """Compare; the verdicts, counted."""
    rng = random.Random(f"steps {given} {seed}")
    seen: Counter[str] = Counter()
    for _ in range(texts):
        text = random_text(rng, given)
        spec = load_spec(text)
        try:
            plan = native_plan(spec)
        except NotAnEventGraph:
            seen["refused"] += 1
            continue
        for number, history in enumerate(random_histories(rng, given, 6)):
            try:
                (holds,) = semantics.satisfied(history, [spec.checks], limit=3_000)
            except semantics.TooLargeError:
                continue
            tool = to_tool(history)
            verdict = check(tool, plan)
            expected = "valid" if holds else "invalid"
            assert verdict.outcome == expected, (text, show(history))
            assert verdict.certified, (text, show(history), verdict.certified_reason)
            seen[expected] += 1
            assert not isinstance(verdict, Unknown)
            judged = verdict.refutation if isinstance(verdict, Invalid) else verdict.witness
            check_proof(tool, spec, judged)
            if number == 0 and plan.kind == "event graph":
                other = check(tool, plan, encoding="one_variable", prune="none")
                assert other.outcome == expected, (text, show(history))
    return seen


@pytest.mark.parametrize("given", ["so", "rt", "done", "late"])
def test_as_by_definition(given: str) -> None:
    seen = as_by_definition(given, 0, 12)
    assert min(seen["valid"], seen["invalid"]) > 5


CONFLICTS = """
include "adya.iso"
acyclic so | wr | ww | rw | (for x: [W[x] | R[x]] ; rt ; [W[x] | R[x]]) as strict-per-key
"""


@pytest.mark.parametrize(
    ("operations", "outcome"),
    [
        ("w(x,1) @1-2 || r(x,nil) @3-4", "invalid"),
        ("w(x,1) @1-2 || r(x,nil) @2-4", "valid"),  # equal times are no order
        ("w(x,1) w(y,1) @1-9 || r(x,1) @2-3 || r(x,nil) @4-5", "invalid"),
        ("w(x,1) @1-2 || w(y,1) @3-4 || r(x,nil) r(y,1) @1-5", "valid"),  # of no common key
    ],
)
def test_only_between_accesses_of_one_key(operations: str, outcome: str) -> None:
    verdict = check(to_tool(parse(operations)), load_spec(CONFLICTS))
    assert (verdict.outcome, verdict.certified) == (outcome, True)


def test_why_is_said_with_the_key() -> None:
    """The argument names the key that both accessed."""
    verdict = check(to_tool(parse("w(x,1) @1-2 || r(x,nil) @3-4")), load_spec(CONFLICTS))
    assert isinstance(verdict, Invalid)
    assert "T1 wrote x, which T2 read; T1 had ended before T2 began" in str(verdict)


def test_compared_by_proof() -> None:
    """A step between accesses of one key is a step of the relation, and no more."""
    strict, plain = normal(load_spec("sser")), normal(load_spec("ser"))
    of_keys = normal(load_spec(CONFLICTS))
    assert prove_implication(strict, of_keys) is not None
    assert prove_implication(of_keys, plain) is not None
    assert prove_implication(of_keys, of_keys) is not None
    assert prove_implication(plain, of_keys) is None
    assert prove_implication(of_keys, strict) is None
