"""The check that nothing can be chosen, by trying everything."""

import io
import random
from collections import Counter

import pytest
from oracle.generate import any_history, well_formed
from oracle.history import parse, show
from oracle.pipeline import Levels, to_tool

import isolang
from isolang.api import load_history, load_spec
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.exhaustion import check_exhaustion

LONG_FORK = "w(x,1) || w(y,1) || r(x,1) -> r(y,nil) || r(y,1) -> r(x,nil)"
CAUSALITY = "r(x,1) w(y,1) || r(y,1) r(x,nil) || w(x,1) || w(x,1)"


@pytest.mark.parametrize("level", ["pc-vis", "si-vis", "ser-vis"])
def test_a_long_fork_by_visibility(level):
    """What the axioms force into a relation is not tried both ways."""
    check_exhaustion(to_tool(parse(LONG_FORK)), load_spec(level), range(6))


def test_a_repeated_value_by_visibility():
    """Each of two sources of a read is refuted."""
    check_exhaustion(to_tool(parse(CAUSALITY)), load_spec("cc-vis-nosession"), range(4))


@pytest.mark.parametrize("level", ["cc-vis", "psi-vis", "si-vis", "ra-vis", "ser-co"])
def test_it_refutes_what_the_oracle_refutes(level):
    """Of small random histories: neither a choice nor a refutation is missed."""
    rng, levels, spec = random.Random(5), Levels([level]), load_spec(level)
    seen = Counter()
    for _ in range(150):
        history = any_history(rng)
        if len(history) > 4 or not well_formed(history):
            continue
        expected = levels.expected(history).get(level)
        if expected not in ("valid", "invalid"):
            continue
        try:
            members = [i for i, t in enumerate(history) if t.status != "aborted"]
            check_exhaustion(to_tool(history), spec, members)
        except CertificateRejected:
            got = "valid"
        except NotCertifiedError:
            continue
        else:
            got = "invalid"
        assert got == expected, show(history)
        seen[got] += 1
    assert len(seen) == 2


RULES = {
    "plain": """
        exists before : relation on T
        require so | wr in before as step
        require before ; before in before as transitive
        irreflexive before as loop
    """,
    "bounds": """
        exists before : relation on T containing so | wr
        require before ; (so | wr) in before as longer
        empty before & id as loop
    """,
    "keyed": """
        exists past[x] : relation on T
        for each x: require [W[x]] ; (so | wr) in past[x] as begin
        for each x: require past[x] ; (so | wr) in past[x] as step
        for each x: irreflexive past[x] as loop
    """,
    "of each other": """
        exists one : relation on T
        exists other : relation on T
        require so | wr | other ; (so | wr) in one as odd
        require one ; (so | wr) in other as even
        irreflexive one as odd-loop
        irreflexive other as even-loop
    """,
}


@pytest.mark.parametrize("rules", RULES)
def test_what_rules_force_into_relations_is_not_tried(rules):
    """A cycle of sessions and reads violates them, and nothing else does.

    Without rules for all relations together, there are too many choices to try.
    """
    spec = load_spec(f'include "prelude.iso"\n{RULES[rules]}')
    cyclic = load_spec('include "prelude.iso"\nacyclic so | wr as loop\n')
    seen = Counter()
    rng = random.Random(6)
    for _ in range(150):
        history = to_tool(any_history(rng))
        expected = isolang.check(history, cyclic)
        if expected.outcome == "unknown" or not expected.certified:
            continue
        verdict = isolang.check(history, spec)
        if verdict.outcome != "unknown":
            assert (verdict.outcome, verdict.certified) == (expected.outcome, True)
            seen[verdict.outcome] += 1
    assert seen["valid"] > 20
    assert seen["invalid"] > 2


NOTHING = """\
{:type :ok, :process 0, :f :txn, :value [[:r :y nil]]}
{:type :fail, :process 0, :f :txn, :value [[:w :x 4]]}
{:type :fail, :process 0, :f :txn, :value [[:w :z 4]]}
"""


@pytest.mark.parametrize(
    "check",
    [
        'irreflexive [W["x"]]',
        'empty [W["x"]] ; [W["z"]]',
        'empty for x in "z": [W[x]]',
        'require W["x"] * W["z"] in so',
        'empty [W["x"]] \\ [W["y"]] | [W["z"]] ; [W["*"]]',
        "empty [W]",
        'empty (tx ; [W["z"]] ; tx^-1)',
        "empty (tx ; tx^-1) \\ id",
        "empty (last-write * last-write) \\ id",
    ],
)
def test_what_t0_alone_violates_keeps_its_keys(check):
    """T0 wrote every key: those that a check names, and more than one, though nobody else did."""
    history = load_history(io.BytesIO(NOTHING.encode()), format="edn")
    verdict = isolang.check(history, load_spec(f'include "operations.iso"\n{check} as c'))
    assert (verdict.outcome, verdict.certified) == ("invalid", True)
    assert verdict.refutation.transactions == ()
    assert "for T0, which wrote the initial state, meets `c`" in str(
        verdict.violation.argument.conclusion
    )


@pytest.mark.parametrize("check", ['empty [W["q"]]', 'empty [W["x"]] ; rw', "empty tx ; rw"])
def test_what_t0_does_not_violate_is_not_refuted(check):
    """No key of the name, or nothing before T0."""
    history = load_history(io.BytesIO(NOTHING.encode()), format="edn")
    spec = load_spec(f'include "operations.iso"\n{check} as c')
    assert isolang.check(history, spec).outcome == "valid"
    with pytest.raises(CertificateRejected):
        check_exhaustion(history, spec, [])
