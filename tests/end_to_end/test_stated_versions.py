"""Versions that operations state: sources, orders, and what they contradict, at every level."""

from __future__ import annotations

import io
import random

import pytest
from oracle.history import parse, to_edn
from oracle.pipeline import Levels, to_tool, tool_verdict_of

from isolang.api import check, load_history, load_spec
from isolang.certify.certificate import Certificate, verify
from isolang.certify.errors import CertificateRejected
from isolang.certify.native import check_natively
from isolang.certify.proofs import Refutation, Witness, check_proof
from isolang.certify.steps import AnomalyStep, CycleStep, Edge, RupStep
from isolang.history import History, Transaction
from isolang.language.classify.route import route
from isolang.limits import Work
from isolang.pipeline import decision

#: Histories that contradict themselves by what they state, whatever the level.
CONTRADICTIONS = {
    "another value": "w(x,1)#3 || r(x,2)#3",
    "another value than an own write": "w(x,1)#3 r(x,2)#3",
    "another value than an aborted write": "!w(x,1)#3 || r(x,2)#3",
    "two values of what nobody wrote": "w(x,1) || w(x,2) || r(x,1)#3 || r(x,2)#3",
    "nobody wrote it": "w(x,1)#3 || r(x,1)#4",
    "written twice": "w(x,1)#3 || w(x,1)#3",
    "written twice by one": "w(x,1)#3 w(x,2)#3",
    "written backwards": "#w(x,1)#4 w(x,2)#3",
    "two versions at first": "r(x,nil)#1 || r(x,nil)#2",
    "older than the first": "#w(x,1)#3 || r(x,nil)#4",
}

#: Histories that do not, and what they are at some level.
JUDGED = [
    # A version names its write, where the value would leave a choice or none.
    ("w(x,1)#1 || w(x,1)#2 -> r(x,1)#1 || r(x,1)#2 -> r(x,1)#1", "ser", "valid"),
    ("w(x,1)#1 -> w(x,1)#2 || r(x,1)#2 -> r(x,1)#1", "ser", "invalid"),
    ("w(x,1) -> w(x,1) || r(x,1) -> r(x,1)", "ser", "valid"),
    # What states nothing is judged by its value.
    ("w(x,1) -> w(x,1)#2 || r(x,1)#2 -> r(x,1)#1", "ser", "valid"),
    # The order of blind writers is stated, and the reads exclude it or not.
    ("#w(x,1)#1 || w(x,2)#2 || r(x,1) -> r(x,2)", "ser", "valid"),
    ("#w(x,1)#2 || w(x,2)#1 || r(x,1) -> r(x,2)", "ser", "invalid"),
    ("w(x,1)#2 || w(x,2)#1 || r(x,1) -> r(x,2)", "ser", "valid"),
    # Only the last write of a transaction has a place in the order.
    ("#w(x,1)#1 w(x,2)#4 || w(x,3)#2", "pl-1", "valid"),
    ("#w(x,1)#1 w(y,1)#2 || w(x,2)#2 w(y,2)#1", "pl-1", "invalid"),
    # An unknown outcome names its write, and orders nothing.
    ("#?w(x,1)#2 || w(x,2)#1 || r(x,1)#2 -> r(x,2)#1", "ser", "valid"),
    ("?w(x,1)#2 || r(x,1)#2", "pl-2", "valid"),
    ("?w(x,1)#2 || ?w(x,1)#2 || r(x,1)#2", "pl-2", "valid"),
    ("!w(x,1)#2 || r(x,1)#2", "pl-2", "invalid"),
    ("!w(x,1)#2 || r(x,1)#2", "pl-1", "valid"),
    # What was there at first may have a version.
    ("#w(x,1)#3 || r(x,nil)#1", "ser", "valid"),
    ("r(x,nil)#1 || r(x,nil)#1 w(x,2)#2", "ser", "valid"),
    ("w(x,1)#1 r(x,1)#2 || w(x,1)#2", "pl-2", "invalid"),
    ("w(x,1)#1 w(x,2)#2 || r(x,1)#1", "pl-2", "invalid"),
    # A read after an own write saw that one, or states another version than it does; whether some
    # other write may have made that version is no matter.
    ("w(x,4) || w(x,5)#3 r(x,5)#4", "pl-2", "invalid"),
    ("w(x,4) || w(x,5)#3 r(x,5)#4", "pl-1", "valid"),
    ("#w(x,4) || r(x,4)#2 w(x,5)#3 r(x,5)#4", "pl-2", "invalid"),
    ("w(x,4) || w(x,5)#3 r(x,5)#3", "ser", "valid"),
    ("w(x,4) || w(x,5)#3 r(x,5)", "ser", "valid"),
    ("w(x,4) || w(x,5) r(x,5)#4", "ser", "valid"),
    ("w(x,4)#3 w(x,5) r(x,5)#4", "ser", "valid"),
    ("w(x,5) w(x,5)#3 r(x,5)#4", "pl-2", "invalid"),
    ("w(x,5)#3 r(x,5)#4 w(x,5)", "pl-2", "invalid"),
    ("?w(x,5)#4 || ?w(x,5)#4 || w(x,5)#3 r(x,5)#4", "pl-2", "invalid"),
    ("?w(x,5)#4 || w(x,5)#4 r(x,5)#4", "ser", "valid"),
    ("w(x,4) || ?w(x,5)#3 r(x,5)#4 || r(x,5)", "pl-2", "invalid"),
    ("w(x,4) || ?w(x,5)#3 r(x,5)#4", "pl-2", "valid"),
]


@pytest.mark.parametrize("level", ["pl-1", "pl-2", "ra", "si", "ser", "psi", "linearizable"])
@pytest.mark.parametrize("text", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_what_contradicts_itself_violates_every_level(text, level):
    """Certified, by both checkers, with a sentence that names the versions."""
    if level == "linearizable":
        text = text.replace(" || ", " @0-9 || ") + " @0-9"
    history = load_history(io.BytesIO(to_edn(parse(text)).encode()), format="edn")
    verdict = check(history, level)
    assert (verdict.outcome, verdict.certified) == ("invalid", True)
    assert verdict.violation.anomaly == "contradicting versions"
    told = verify(verdict.certificate(), history, load_spec(level))
    assert told.natively
    assert told.by_definition


@pytest.mark.parametrize(("text", "level", "expected"), JUDGED)
def test_both_sides_say_what_was_found_by_hand(text, level, expected):
    """The oracle and the tool."""
    history = parse(text)
    assert Levels([level]).expected(history) == {level: expected}
    assert tool_verdict_of(to_tool(history), route(load_spec(level))) == expected
    assert tool_verdict_of(to_tool(parse(text)), route(load_spec(level))) == expected


def test_a_read_after_an_own_write_states_the_version_of_that_write():
    """Another one is not its own write, certified by both checkers; the sentence says why."""
    history = to_tool(parse("#w(x,4) || r(x,4)#2 w(x,5)#3 r(x,5)#4"))
    verdict = check(history, "pl-2")
    assert (verdict.outcome, verdict.certified) == ("invalid", True)
    assert verdict.violation.anomaly == "not my own write"
    assert verdict.violation.relaxed["without the versions that it states"] == "valid"
    text = verdict.violation.argument.conclusion.text
    assert "operation 3), as version 4, though its own w(x, 5) at" in text
    assert text.endswith("operation 2 made version 3.")
    told = verify(verdict.certificate(), history, load_spec("pl-2"))
    assert told.natively
    assert told.by_definition


#: Blind writers of one key whose order only the stated versions give, and a reader of both.
_BY_ORDER = "#w(x,1)#2 || w(x,2)#1 || r(x,1) -> r(x,2)"
#: A value that two wrote, and of which only the stated version says which one was read.
_BY_SOURCE = "w(x,1)#1 -> w(x,1)#2 || r(x,1)#2 -> r(x,1)#1"


@pytest.mark.parametrize("text", [_BY_ORDER, _BY_SOURCE, *CONTRADICTIONS.values()])
def test_a_refutation_that_uses_versions_is_judged_again_without(text):
    """The verdict says what the history is by its values alone, and so does --ignore-versions."""
    verdict = check(to_tool(parse(text)), "ser")
    assert verdict.outcome == "invalid"
    alone = check(to_tool(parse(text)).without_versions(), "ser")
    assert verdict.violation.relaxed["without the versions that it states"] == alone.outcome
    ignoring = load_history(io.BytesIO(to_edn(parse(text)).encode()), ignore_versions=True)
    assert check(ignoring, "ser").outcome == alone.outcome
    assert not ignoring.columns.has_versions


def test_judging_a_hard_history_again_ends_after_a_little_work(monkeypatch):
    """Of few values, keys and many blind writers, whose values alone are a question of seconds."""
    given = []
    monkeypatch.setattr(
        decision, "Work", lambda amount: given.append(amount) or Work(amount), raising=True
    )
    rng = random.Random(3)
    state = dict.fromkeys(range(20), (None, 0))
    transactions = []
    for n in range(1_000):
        ops, versions = [], []
        for _ in range(4):
            key = rng.randrange(20)
            value, version = state[key]
            if rng.random() < 0.5:
                value, version = rng.randint(1, 2), version + 1
                state[key] = value, version
                ops.append(("w", key, value))
            else:
                ops.append(("r", key, value))
            versions.append(version)
        transactions.append(Transaction(ops, session=n % 50, versions=versions))
    for value, version in ((1, 2), (2, 1)):  # the reader sees them against the order of versions
        transactions += [
            Transaction(
                [(kind, "z", value)],
                session="reader" if kind == "r" else f"writer {value}",
                versions=[version],
            )
            for kind in "wr"
        ]
    history = History.from_transactions(transactions, versions="ordered")
    verdict = check(history, "ser")
    assert verdict.certified
    assert verdict.violation.relaxed["without the versions that it states"] == "unknown"
    assert max(given) <= 20_000 + 20 * history.columns.operations()


def test_a_refutation_that_uses_none_is_not_judged_again():
    """A lost update by values alone says nothing of versions."""
    text = "w(x,1)#1 || r(x,1)#1 w(x,2)#2 || r(x,1)#1 w(x,3)#3"
    verdict = check(to_tool(parse(text)), "si")
    assert verdict.violation.anomaly == "lost update"
    assert not verdict.violation.relaxed


def test_the_argument_names_the_versions_that_it_takes_an_order_from():
    """The reader can look them up in the file."""
    (cycle,) = [
        edge
        for edge in check(to_tool(parse(_BY_ORDER)), "ser").violation.argument.conclusion.edges
        if "version" in edge.text
    ]
    assert "as version 1 comes before 2" in cycle.text


def test_a_contradiction_is_told_in_words():
    """Who stated what, and why that cannot be."""
    said = {
        name: check(to_tool(parse(text)), "pl-1").anomalies[0].examples[0]
        for name, text in CONTRADICTIONS.items()
    }
    assert "read x = 2 as version 3" in said["another value"]
    assert "one version has only one value" in said["another value"]
    assert "a version that no transaction wrote" in said["nobody wrote it"]
    assert "a version is written only once" in said["written twice"]
    assert "its version comes later" in said["written backwards"]
    assert "there was one initial version" in said["two versions at first"]
    assert "comes before it" in said["older than the first"]


def test_equal_numbers_of_two_keys_order_nothing():
    """A log has the order of versions of each key, and is no order of transactions.

    Taken for one, it would convict a snapshot that shows a later COMMIT and misses an earlier one,
    as PostgreSQL's do.
    """
    text = "#w(x,1)#1 || w(y,1)#2 || r(x,nil) r(y,1)#2"
    assert check(to_tool(parse(text)), "ser").outcome == "valid"
    text = "#w(x,1)#1 || w(y,1)#2 || r(x,nil) r(y,1)#2 || r(x,1)#1 r(y,nil)"
    assert check(to_tool(parse(text)), "psi").outcome == "valid"


# --- certificates that claim more than the history states ---


def _both_refuse(history, level, proof):
    spec = load_spec(level)
    with pytest.raises(CertificateRejected):
        check_natively(history, route(spec).spec, proof)
    with pytest.raises(CertificateRejected):
        check_proof(history, spec, proof)


@pytest.mark.parametrize("text", [_BY_ORDER, _BY_SOURCE, *CONTRADICTIONS.values()])
def test_a_proof_by_versions_is_refused_of_the_history_without(text):
    """Both checkers read what the history states, and believe nothing that it does not."""
    history = to_tool(parse(text))
    proof = check(history, "ser").refutation
    _both_refuse(history.without_versions(), "ser", proof)


@pytest.mark.parametrize("level", ["pl-1", "ser"])
@pytest.mark.parametrize("text", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_no_witness_makes_up_for_a_contradiction(text, level):
    """That of the history without its versions is refused."""
    history = to_tool(parse(text))
    alone = history.without_versions()
    verdict = check(alone, level)
    if verdict.outcome == "valid":
        _both_refuse(history, level, verdict.witness)


def test_a_witness_with_another_order_or_source_is_refused():
    """Also where a check would not mind."""
    for text in ("#w(x,1)#1 || w(x,2)#2", "w(x,1)#1 || w(x,1)#2 || r(x,1)#1"):
        history = to_tool(parse(text))
        right = check(history, "pl-2").witness
        order = right.order_txn[::-1].copy()
        source = right.source.copy()
        if "r(" in text:
            source[source >= 0] = 1
        else:
            assert right.order_txn.tolist() == [0, 1]
        wrong = Witness.of(
            source, right.order_start, order if text[:2] == "#w" else right.order_txn
        )
        check_natively(history, route(load_spec("pl-2")).spec, right)
        _both_refuse(history, "pl-2", wrong)


@pytest.mark.parametrize(
    "step",
    [
        AnomalyStep(10, 0, 0, 1, 1),
        AnomalyStep(10, 2, 2),
        AnomalyStep(10, 2, 2, 0, 0),
        AnomalyStep(10, 0, 0, 0, 0),
        CycleStep("G0", (Edge("ww", 1, 0, 0), Edge("ww", 0, 1, 0))),
    ],
    ids=str,
)
def test_forged_steps_are_refused(step):
    """Operations that state versions, and no contradiction."""
    history = to_tool(parse("#w(x,1)#1 || w(x,2)#2 || r(x,2)#2"))
    _both_refuse(history, "pl-1", Refutation((step, RupStep(()))))


def test_an_order_that_is_stated_may_be_used_without_a_step():
    """As that of a list read; its opposite is false."""
    history = to_tool(parse("#w(x,1)#1 || w(x,2)#2 w(y,1) || r(x,2) r(y,1)"))
    verdict = check(history, "ser")
    assert (verdict.outcome, verdict.certified) == ("valid", True)


def test_a_certificate_says_that_versions_were_ignored(tmp_path):
    """It is verified by reading the history in the same way again."""
    path = tmp_path / "h.edn"
    path.write_text(to_edn(parse(_BY_ORDER)))
    history = load_history(path, ignore_versions=True)
    certificate = check(history, "ser").certificate()
    assert Certificate.load(certificate.save(tmp_path)).history_options == {"ignore_versions": True}
