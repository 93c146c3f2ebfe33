"""Cross-checking: that pairs agree, and what happens when an encoding is wrong."""

from __future__ import annotations

import os
import random

import pytest
from msgspec.structs import replace
from support.broken_encodings import BROKEN
from support.cli import LOST_UPDATE, THIN_AIR, VALID, run_here

from isolang import check, load_history, load_spec
from isolang.encodings.registry import ENCODINGS
from isolang.errors import SolverError
from isolang.language.classify.event_graph import classify
from isolang.language.classify.route import native_plan, route
from isolang.pipeline.crosscheck import claim_of, cross_check, disagree, parse_pair, partners
from isolang.solvers.registry import ENGINE, SOLVERS, Pair, stages_of, supported_pairs

SER = classify(load_spec("ser"))
pytestmark = pytest.mark.skipif(
    "ISOLANG_SANITIZED" in os.environ, reason="mostly other people's native code"
)

#: T1 sees one of T2's two writes, and not the other.
FRACTURED = "w(0,1,1,1)\nw(1,1,1,1)\nw(0,2,1,2)\nw(1,2,1,2)\nr(0,2,2,3)\nr(1,1,2,3)\n"
#: Two transactions that read from one another.
CYCLE = "r(91,2,91,901)\nw(90,1,91,901)\nr(90,1,92,902)\nw(91,2,92,902)\n"
#: What is written later in the history is seen first.
BACKWARDS = "w(90,1,91,901)\nw(90,2,92,902)\nr(90,2,93,903)\nr(90,1,93,904)\n"


@pytest.fixture
def broken(monkeypatch):
    for name, encoding in BROKEN.items():
        monkeypatch.setitem(ENCODINGS, name, encoding)


def store(transactions: int = 40, seed: int = 3) -> str:
    """What the sessions of a serial store saw, in Plume text, with reads of initial values."""
    rng, state, lines, value = random.Random(seed), {}, [], 0
    for txn in range(1, transactions + 1):
        session = rng.randrange(6)
        for key in rng.sample(range(8), 3):
            if rng.random() < 0.6:
                lines.append(f"r({key},{state.get(key, 0)},{session},{txn})")
            else:
                value += 1
                state[key] = value
                lines.append(f"w({key},{value},{session},{txn})")
    return "\n".join(lines) + "\n"


def skewed() -> str:
    """The same, and a write skew of two further transactions."""
    one = "r(90,0,91,901)\nr(91,0,91,901)\nw(90,1,91,901)\n"
    other = "r(90,0,92,902)\nr(91,0,92,902)\nw(91,1,92,902)\n"
    return store() + one + other


@pytest.mark.parametrize(("name", "text"), [("forgets", skewed()), ("invents", store())])
def test_a_broken_encoding_is_caught_and_shrinks(broken, tmp_path, capfd, name, text):
    """Exit 4; the history is saved, and the smallest part with it: four transactions at most."""
    path = tmp_path / "history.plume"
    path.write_text(text)
    run = run_here(
        capfd, "check", "--spec", "ser", "--cross-check", f"{name}/native/none",
        "--certificate", tmp_path / "saved", "-o", "json", path,
    )  # fmt: skip
    assert run.code == 4
    (report,) = run.reports()
    assert report["verdict"] == "unknown"
    assert report["reason"].startswith("disagreement:")
    found = report["cross_check"]
    minimal = load_history(found["minimal"].split(" (")[0])
    assert minimal.counts()["transactions"] <= 4
    assert load_history(found["history"].split(" (")[0]).counts()["transactions"] > 4
    pairs = (ENGINE, parse_pair(f"{name}/native/none"))
    said = [claim_of(minimal, SER, pair, seconds=20).outcome for pair in pairs]
    assert disagree(said), "the smallest part shows it, too"


def test_the_broken_pair_itself_is_no_verdict(broken, tmp_path, capfd):
    """What it accepts, the checker refuses; what it refuses, the engine cannot prove."""
    for name, text, begins in (
        ("forgets", skewed(), "certificate rejected"),
        ("invents", store(), "disagreement"),
    ):
        path = tmp_path / name
        path.write_text(text)
        run = run_here(
            capfd, "--spec", "ser", "--encoding", name, "--solver", "native", "--prune", "none",
            "--certificate", tmp_path, "-o", "json", path,
        )  # fmt: skip
        assert run.code == 4
        assert run.reports()[0]["reason"].startswith(begins)


@pytest.mark.parametrize(("text", "code"), [(VALID, 0), (LOST_UPDATE, 1), (THIN_AIR, 1)])
@pytest.mark.parametrize("which", ["auto", "all"])
def test_agreement_changes_nothing(tmp_path, capfd, text, code, which):
    path = tmp_path / "h"
    path.write_text(text)
    run = run_here(capfd, "--spec", "si", "--cross-check", which, "-o", "json", path)
    (report,) = run.reports()
    assert run.code == code
    assert report["cross_check"]["summary"].endswith("other pairs agree")
    outcomes = {c["outcome"] for c in report["cross_check"]["claims"]}
    assert outcomes == {report["verdict"]}
    if which == "all":
        stages = [p for e, _ in supported_pairs() for p in stages_of(e) if p != "known"]
        assert len(report["cross_check"]["claims"]) == len(stages)


def test_the_option_stands_alone(tmp_path, capfd):
    """``--cross-check HISTORY``: the history is no name of a pair."""
    path = tmp_path / "h"
    path.write_text(VALID)
    assert "other pairs agree" in run_here(capfd, "--spec", "si", "--cross-check", path).out


def test_the_partner_shares_nothing():
    for encoding, solver in supported_pairs():
        for prune in stages_of(encoding):
            chosen = Pair(encoding, solver, prune)
            (partner,) = partners(chosen, "auto")
            assert not partner.shares_with(chosen)
            assert (partner.prune == "none") == (prune != "none")
    for spec in ("rc", "cc-vis", "psi"):
        weak = route(load_spec(spec))
        for encoding, solver in supported_pairs(weak):
            chosen = Pair(encoding, solver, stages_of(encoding)[-1])
            found = partners(chosen, "auto", weak)
            if solver == "native" and encoding == "relational":
                assert [str(p) for p in found] == [str(ENGINE), "relational/clingo/none"]
            else:
                assert not any(p.shares_with(chosen) for p in found)


def test_too_little_time_is_said(tmp_path):
    """Beyond the size that the partner can decide, the verdict rests on its certificate."""
    path = tmp_path / "h"
    path.write_text(store())
    history = load_history(str(path))
    found = cross_check(history, SER, ENGINE, partners(ENGINE, "auto"), seconds=1e-6)
    assert not found.disagreement
    assert "rests on its certificate" in found.summary()


def test_no_such_pair():
    for text in (
        "one_variable",
        "one_variable/nobody/none",
        "none/native/none",
        "one_variable/sat/some",
    ):
        with pytest.raises(SolverError, match="got '"):
            partners(ENGINE, text)


def test_wrong_names_are_usage_errors(tmp_path, capfd):
    for option in ("--solver=nobody", "--encoding=nothing", "--prune=trees", "--cross-check=x/y/z"):
        run = run_here(capfd, "--spec", "si", option, tmp_path)
        assert run.code == 2
        assert "got '" in run.err


def test_every_choice_is_explained(tmp_path):
    path = tmp_path / "h"
    path.write_text(VALID)
    history, spec = load_history(str(path)), load_spec("si")
    assert "fastest" in check(history, spec).choice
    verdict = check(history, spec, solver="z3")
    assert (verdict.solver, verdict.encoding, verdict.prune) == ("z3", "integer_order", "fixpoint")
    assert "works best with z3" in verdict.choice
    verdict = check(history, spec, encoding="monosat", solver="sat:glucose4", prune="none")
    assert (verdict.solver, verdict.certified, verdict.choice) == ("sat:glucose4", True, "")


def test_a_specification_that_a_theorem_decides(tmp_path, capfd):
    """One of the other pairs does without the theorem, and what it finds is what was asked for."""
    path = tmp_path / "h"
    for text, code in ((VALID, 0), (LOST_UPDATE, 1)):
        path.write_text(text)
        run = run_here(capfd, "--spec", "si-vis", "--cross-check", "-o", "json", path)
        (report,) = run.reports()
        claims = {c["pair"].split("/")[0]: c["outcome"] for c in report["cross_check"]["claims"]}
        assert run.code == code
        assert claims.keys() == {"event-graph", "one_variable", "relational"}
        assert set(claims.values()) == {report["verdict"]}
        run = run_here(capfd, "--spec", "si-vis", "--solver", "z3", "-o", "json", path)
        assert (run.code, run.reports()[0]["certified"]) == (code, True)


def test_a_broken_theorem_is_caught(tmp_path, monkeypatch):
    """The form that a theorem gives is one thing that pairs would share."""
    weaker = native_plan(load_spec("rc"))
    wrong = replace(route(load_spec("ser-co")), automata=weaker.automata)
    path = tmp_path / "h"
    path.write_text(LOST_UPDATE)
    history = load_history(str(path))
    found = cross_check(history, wrong, ENGINE, partners(ENGINE, "auto", wrong), seconds=20)
    said = {c.pair.encoding: c.outcome for c in found.claims}
    assert found.disagreement
    assert said["relational"] == "invalid"


@pytest.mark.parametrize("spec", ["rc", "ra", "cc", "cc-vis", "psi", "mr"])
def test_weak_levels(tmp_path, capfd, spec):
    """Where no automaton's pair applies, the relational encoding with another solver does."""
    path = tmp_path / "h"
    for text in (VALID, LOST_UPDATE, store(), THIN_AIR, FRACTURED):
        path.write_text(text)
        run = run_here(capfd, "--spec", spec, "--cross-check", "-o", "json", path)
        (report,) = run.reports()
        first, other = report["cross_check"]["claims"]
        assert first["outcome"] == other["outcome"] == report["verdict"]
        assert other["pair"] == "relational/clingo/none"
        assert not other["detail"].startswith("not proved")


def test_a_specification_that_runs_relationally(tmp_path, capfd):
    """There is one encoding only; the other pair has another solver, and proofs of its own."""
    spec = tmp_path / "mine.iso"
    spec.write_text(
        'include "adya.iso"\nempty (wr ; ww) & id as no-return\nacyclic so | wr | ww | rw as SER\n'
    )
    path = tmp_path / "h"
    for text, code in ((VALID, 0), (LOST_UPDATE, 1), (store(12), 0)):
        path.write_text(text)
        run = run_here(capfd, "--spec", spec, "--cross-check", "all", "-o", "json", path)
        (report,) = run.reports()
        assert run.code == code
        claims = report["cross_check"]["claims"]
        assert [c["pair"].split("/")[1] for c in claims] == [*SOLVERS]
        assert {c["outcome"] for c in claims} == {report["verdict"]}
        assert all("accepted" in c["detail"] for c in claims)


@pytest.mark.parametrize(
    ("name", "spec", "text"),
    [
        ("forgets_edges", "ra-adya", CYCLE),
        ("forgets_edges", "ser", CYCLE),
        ("invents_an_order", "cc", BACKWARDS),
    ],
)
def test_a_broken_relational_encoding_is_caught_and_shrinks(
    broken, tmp_path, capfd, name, spec, text
):
    path = tmp_path / "h"
    path.write_text(store(16) + text)
    run = run_here(
        capfd, "check", "--spec", spec, "--cross-check", f"{name}/native/none",
        "--certificate", tmp_path / "saved", "-o", "json", path,
    )  # fmt: skip
    (report,) = run.reports()
    assert (run.code, report["verdict"]) == (4, "unknown")
    minimal = load_history(report["cross_check"]["minimal"].split(" (")[0])
    assert minimal.counts()["transactions"] <= 4


def test_too_much_for_a_pair_is_said(tmp_path):
    """The relational encoding is not begun where it would take minutes and gigabytes."""
    weak = route(load_spec("psi-vis"))
    text = "".join(f"w(0,{i},{i},{i})\n" for i in range(1, 900))
    path = tmp_path / "h"
    path.write_text(text)
    history = load_history(str(path))
    found = cross_check(history, weak, ENGINE, partners(ENGINE, "auto", weak), seconds=20)
    assert [c.outcome for c in found.claims] == ["valid", "unknown"]
    assert "too much" in found.claims[1].detail
    assert "rests on its certificate" in found.summary()


def test_no_time_for_a_proof(monkeypatch):
    """A solver's *no* without a proof is a verdict, but never a certified one."""
    import io

    from isolang.pipeline import prove

    def late(*_):
        raise TimeoutError

    monkeypatch.setattr(prove, "prove", late)
    history = load_history(io.BytesIO(LOST_UPDATE.encode()), "plume")
    verdict = check(history, load_spec("si"), solver="z3", timeout=20)
    assert (verdict.outcome, verdict.certified) == ("invalid", False)
    assert verdict.violation.anomaly == "no model"
    assert "integer_order/z3/fixpoint finds no model" in verdict.certified_reason
