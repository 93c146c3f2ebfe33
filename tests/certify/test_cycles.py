"""Cycle steps by definition: those of the engine on litmus histories, and some that are none."""

from functools import cache

import pytest
from support.certify import history, txn
from support.paths import ROOT
from support.sampling import quick_first

import isolang
from isolang.certify.claim import Claim
from isolang.certify.cycles import Cycles
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.evaluator import has_cycle
from isolang.certify.facts import Facts
from isolang.certify.refutation import follow_steps
from isolang.certify.steps import CycleStep, Edge
from isolang.language.classify.route import route
from isolang.language.library import list_library
from isolang.language.load import load_spec

LITMUS = sorted((ROOT / "tests" / "litmus").glob("**/*.edn"))
LEVELS = [e.name for e in list_library() if not e.alias_of]
INSIDE = ("po", "tx")
"""Steps inside a transaction: it has them whether a walk names them or not."""


@cache
def routes():
    """Return each level of the library with its compiled form; collecting tests needs neither."""
    levels = {name: load_spec(name) for name in LEVELS}
    return {name: (spec, route(spec)) for name, spec in levels.items()}


def accepted(cycles, check, edges):
    try:
        cycles.require(check, edges)
    except CertificateRejected:
        return False
    return True


def may_be(facts, edges):
    """Whether the writers of each key can be in the order that the edges say."""
    claim = Claim(facts, edges)
    return all(not has_cycle(claim.relation("ww", key)) for key in claim.keys)


@pytest.mark.slow
@pytest.mark.parametrize("part", quick_first(range(8), 4, rest="campaign"))
def test_each_cycle_step_of_the_engine_holds_by_definition(part):
    """At every level of the library; and none does with an edge left out."""
    steps = 0
    for path in LITMUS[part::24]:
        h = isolang.load_history(str(path))
        facts = Facts(h)
        for name, (spec, compiled) in routes().items():
            try:
                verdict = isolang.check(h, compiled, timeout=30)
            except isolang.IsolangError:  # it has no times, or no groups
                continue
            if verdict.outcome != "invalid":
                continue
            cycles = Cycles(facts, spec)
            for step in verdict.refutation.steps:
                if not isinstance(step, CycleStep):
                    continue
                steps += 1
                assert accepted(cycles, step.check, step.edges), (path.name, name, step)
                for i, edge in enumerate(step.edges):
                    rest = (*step.edges[:i], *step.edges[i + 1 :])
                    if rest and edge.relation not in INSIDE and may_be(facts, rest):
                        assert not accepted(cycles, step.check, rest), (path.name, name, rest)
    assert steps > 10


SKEW = history(txn("r(x,nil) w(y,1)", 1), txn("r(y,nil) w(x,1)", 2))
# T0 is number 2; x and y are keys 0 and 1; operations: 0 r(x), 1 w(y), 2 r(y), 3 w(x).
TO_AND_FRO = (Edge("rw", 0, 1, 0, 0, 2), Edge("rw", 1, 0, 1, 2, 2))


@pytest.mark.parametrize(
    "check",
    [
        r"irreflexive (wr | ww | rw) ; (rw \ so) as c",
        "not acyclic wr | ww | rw as c",
        "require rw ; rw in so as c",
    ],
)
def test_what_a_part_does_not_say_of_the_whole_is_not_certified(check):
    """Less is not more: what is missing in a step need not be missing in the history."""
    spec = load_spec(f'include "adya.iso"\n{check}\n')
    with pytest.raises(
        NotCertifiedError, match="may fail on a part although it holds on the whole"
    ):
        Cycles(Facts(SKEW), spec).require("c", TO_AND_FRO)
    steps = [("cycle", "c", [edge.plain() for edge in TO_AND_FRO]), ("rup", [])]
    followed = follow_steps(SKEW, spec, steps)
    assert (followed.cycles, followed.accepted) == (1, 0)
    assert "although it holds on the whole" in followed.outside


def test_monotone_checks_of_any_form_are_evaluated():
    """Intersections, inverses and filters too, which no automaton of words has."""
    facts = Facts(SKEW)
    for check, holds in (
        ("empty rw & rw^-1 as c", True),
        (r"irreflexive rw ; [W] ; (rw \ id) as c", True),
        ("irreflexive for x: [W[x]] ; rw ; [R[x]] as c", False),
        ("empty (rw ; rw) & so as c", False),
    ):
        spec = load_spec(f'include "adya.iso"\n{check}\n')
        assert accepted(Cycles(facts, spec), "c", TO_AND_FRO) == holds, check


def test_a_transaction_does_not_overwrite_what_it_read_itself():
    """`rw` leaves out the identity, also where the step has the read and the own later version."""
    one = history(txn("w(x,1) w(y,1)", 1), txn("r(x,1) w(x,2) w(y,2)", 2))
    # x and y are keys 0 and 1; operation 2 is r(x).
    step = (
        Edge("wr", 0, 1, 0, 2), Edge("ww", 1, 0, 1), Edge("ww", 0, 1, 0), Edge("ww", 1, 0, 1),
    )  # fmt: skip
    for check, holds in (("rw[x]", False), ("wr[x]^-1 ; ww[x]", True)):
        spec = load_spec(f'include "adya.iso"\nirreflexive for x: {check} as c\n')
        assert accepted(Cycles(Facts(one), spec), "c", step) == holds, check


def test_edges_must_join():
    """Else they could pass transactions that are left out."""
    spec = load_spec("ser")
    edges = [TO_AND_FRO[0].plain(), TO_AND_FRO[0].plain()]
    with pytest.raises(CertificateRejected, match="an edge ends at"):
        follow_steps(SKEW, spec, [("cycle", "SER", edges), ("rup", [])])


def test_an_order_without_t0_at_its_beginning_is_not_certified():
    """``before(key, T0, b)`` would be no fact then."""
    text = 'include "prelude.iso"\nexists o : order on T containing {}\nrequire obs(wr) in o as c\n'
    Cycles(Facts(SKEW), load_spec(text.format("so | wr | vo")))
    for containing, said in (("wr | vo", "T0 need not come first"), ("so | wr", "contain vo")):
        with pytest.raises(NotCertifiedError, match=said):
            Cycles(Facts(SKEW), load_spec(text.format(containing)))
