"""A check outside the fast fragment does not make the whole level slow."""

from __future__ import annotations

import time

import pytest
from oracle import relational
from oracle.history import parse
from oracle.pipeline import to_tool

from isolang import History, Transaction
from isolang.api import check
from isolang.certify.certificate import Certificate, verify
from isolang.certify.errors import CertificateRejected
from isolang.language.classify.route import route
from isolang.language.load import load_spec
from isolang.simulator import Workload, generate

SI = 'spec mine "mine"\ninclude "adya.iso"\nacyclic (so | wr | ww) ; rw? as si\n'
NO_SWAP = "empty wr & wr^-1 as no-swap\n"
SKEW = "flag acyclic so | wr | ww | rw as skew\n"


@pytest.fixture(scope="module")
def large():
    """More transactions than definitions alone are evaluated on."""
    return generate(Workload(transactions=3_000, rule="snapshot", keys=300, sessions=10))


@pytest.fixture(scope="module")
def weak():
    return generate(Workload(transactions=3_000, rule="causal", keys=300, sessions=10))


def again(verdict, text):
    """Who accepts the proof, read again from its file."""
    proof = Certificate.from_json(verdict.certificate().to_json())
    return str(verify(proof, verdict.history, load_spec(text)))


def test_the_part_of_the_engine_refutes_the_whole(weak):
    verdict = check(weak, SI + NO_SWAP)
    assert (verdict.outcome, verdict.certified, verdict.encoding) == (
        "invalid",
        True,
        "event-graph",
    )
    assert "the other checks are violated whether or not `no-swap` holds" in verdict.notes
    assert again(verdict, SI + NO_SWAP).startswith("native checker (all), by definition (all: ")


@pytest.mark.slow
def test_a_model_of_the_part_may_meet_the_rest(large):
    """The certificate is of all checks: each is put to the checker that decides it."""
    verdict = check(large, SI + NO_SWAP)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert verdict.spec.checks[-1].name == "no-swap"
    said = "native checker (all but check no-swap), by definition (those)"
    assert again(verdict, SI + NO_SWAP) == said
    other = load_spec(SI + "empty wr as nobody-reads\n")
    with pytest.raises(CertificateRejected, match="nobody-reads"):
        verify(Certificate.of(large, other, verdict.witness), large, other)


@pytest.mark.slow
def test_what_no_model_of_the_part_meets_is_searched_for_and_refused_at_once(large):
    """A search of so many transactions is beyond every timeout, which the estimate finds early."""
    start = time.monotonic()
    verdict = check(large, SI + "empty rw & rw^-1 as no-skew\n", timeout=60)
    assert (verdict.outcome, verdict.cause) == ("unknown", "unsupported")
    assert "3000 transactions make more than 20000000 steps" in verdict.reason
    assert time.monotonic() - start < 30


def test_a_flag_is_a_run_of_the_engine(large):
    verdict = check(large, SI + SKEW)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert "flag `skew` holds" in verdict.notes
    assert again(verdict, SI + SKEW).startswith(
        "native checker (all); not by definition: 3000 transactions"
    )
    serial = generate(Workload(transactions=3_000, rule="serializable", keys=300, sessions=10))
    found = check(serial, SI + SKEW)
    assert "flag `skew` does not hold, because some choice satisfies it" in found.notes


@pytest.mark.parametrize("text", ["empty wr & vis^-1 as c", "irreflexive wr ; vis as c"])
def test_an_order_and_a_visibility_are_made_for_the_checks_that_name_them(text):
    history = to_tool(parse("w(x,1) -> r(x,1) || r(x,1) w(y,2) || r(y,2)"))
    text = f'include "si-vis.iso"\n{text}\n'
    verdict = check(history, text)
    assert (verdict.outcome, verdict.certified, verdict.encoding) == ("valid", True, "event-graph")
    assert set(verdict.witness.chosen) == {"rf", "ar", "vis"}
    assert again(verdict, text).startswith("by definition (all)")


def test_where_the_model_found_does_not_do_another_one_is_searched_for():
    """Both writers are unread, so that either may come first; the check wants the second one."""
    history = History.from_transactions(
        [Transaction([("w", "x", n)], session=n, number=n) for n in (1, 2)]
    )
    for forbidden in ("ww \\ (ww & (W * W))", "ww ; ww ; ww"):
        verdict = check(history, f'include "adya.iso"\nacyclic ww as c\nempty {forbidden} as d\n')
        assert (verdict.outcome, verdict.certified) == ("valid", True)
    order = 'include "adya.iso"\nexists o : order on T\nacyclic ww as c\nrequire ww in o as d\n'
    verdict = check(history, order)
    assert (verdict.outcome, verdict.certified, verdict.encoding) == ("valid", True, "relational")


def test_a_flag_that_alone_looks_at_reads_leaves_aborted_reads_allowed():
    """Made an axiom it would have them judged; so it is not, and the search decides it."""
    history = to_tool(parse("!w(x,1) || r(x,1) w(y,1) || w(y,2)"))
    verdict = check(history, 'include "pl-1.iso"\nflag acyclic ww | wr as f\n')
    assert verdict.outcome == "valid"
    assert "flag `f` does not hold, because some choice satisfies it" in verdict.notes


def test_the_route_says_which_part_is_the_engine_s():
    way = route(load_spec(SI + NO_SWAP + SKEW))
    assert [check.name for check in way.parts.part.checks] == ["si"]
    assert way.reasons[-1] == (
        "decided in parts: the engine finds a model of `si`, then `no-swap` is evaluated "
        "on it; if the model does not satisfy it, all checks are decided together"
    )
    assert route(load_spec('include "adya.iso"\nempty wr as c\n')).parts is None


def test_a_rule_that_says_nothing_does_not_stop_the_others():
    """`vis in vis` of a guarantee's own visibility."""
    history = to_tool(parse("w(x,1) || r(x,1) -> r(x,nil)"))
    for level in ("mr", "cc-vis"):
        text = f'include "{level}.iso"\nrequire vis in vis as nothing\n'
        assert check(history, text).outcome == check(history, level).outcome == "invalid"


def test_checks_of_which_no_walk_has_a_read_are_not_the_engine_s():
    """It would take any source for a read, also one in a transaction whose own reads are wrong."""
    history = to_tool(parse("?w(x,1) r(x,nil) w(x,1) || r(x,1) -> w(x,1)"))
    for more in ("", "acyclic ww as d\n"):
        verdict = check(history, f'include "adya.iso"\nirreflexive wr as c\n{more}')
        assert (verdict.outcome, verdict.certified) == ("valid", True)


@pytest.mark.parametrize(
    ("text", "operations"),
    [
        ("acyclic wr as c", "w(x,1) -> r(x,nil) -> r(y,1) || r(x,1) w(y,1) || r(y,1)"),
        ("acyclic wr as c\nacyclic so as d", "w(x,1) r(y,1) || r(x,1) -> w(y,1)"),
    ],
)
def test_what_the_part_does_not_choose_must_still_exist(text, operations):
    """An order that contains `so` and `wr` is asked for, though no check of the part names it."""
    text = f'include "prelude.iso"\nexists co : order on T containing so | wr | vo\n{text}\n'
    spec, history = load_spec(text), to_tool(parse(operations))
    assert "with `co`" in route(spec).reasons[-1]
    expected = "valid" if relational.satisfied(parse(operations), spec) else "invalid"
    verdict = check(history, text)
    assert (verdict.outcome, verdict.certified) == (expected, True)
    again(verdict, text)


def test_a_proof_by_an_anomaly_is_accepted_beside_a_check_that_nothing_meets():
    history = to_tool(parse("!w(x,1) || r(x,1)"))
    text = 'include "pl-1.iso"\nacyclic [T] | wr as c\n'
    verdict = check(history, text)
    assert (verdict.outcome, verdict.certified) == ("invalid", True)
    assert "by definition (all" in again(verdict, text)


def test_a_flag_that_alone_looks_at_reads_leaves_unread_transactions_in():
    """One of unknown outcome whose reads are wrong may be in, if nothing else looks at reads."""
    text = (
        "?r(x,[3 4 5]) r(x,[3 4 5]) append(x,3) || append(x,4) append(x,5) "
        "|| !r(x,[3 4 5]) -> !r(x,[3 4]) append(x,8)"
    )
    spec = 'include "pl-1.iso"\nflag not require ((wr & wr))^-1 in ((vo)^-1)^+ as f\n'
    held = relational.flags(parse(text), load_spec(spec))["f"]
    word = "holds" if held else "does not hold, because some choice satisfies it"
    assert f"flag `f` {word}" in check(to_tool(parse(text)), spec).notes
