"""Intrinsic anomalies by name, with the evidence that a user reads; and what is refused."""

from __future__ import annotations

import pytest

import isolang
from isolang.certify.certificate import verify
from isolang.errors import UnsupportedError
from isolang.history import History, Transaction
from isolang.problem import AnomalyKind, InclusionStatus, build_problem, find_order_contradiction


def txn(*ops, **options):
    return Transaction(list(ops), **{"session": "own", **options})


def history(*transactions, **options):
    given = [
        t if isinstance(t, Transaction) else Transaction(list(t), session=i)
        for i, t in enumerate(transactions)
    ]
    return History.from_transactions(given, **options)


def only_evidence(*transactions, **options):
    h = history(*transactions, **options)
    (anomaly,) = build_problem(h).anomalies()
    return anomaly.kind, anomaly.evidence(h)


ABORTED = {"status": "aborted"}
W, R, A = "w", "r", "append"

CASES = {
    "nobody wrote it": (
        [[(R, "x", 5)]],
        "thin-air read",
        "T1 read x = 5 (<memory> transaction 1, operation 1), which no transaction wrote",
    ),
    "a write that is not there": (
        [[(R, "x", 5, "missing")]],
        "thin-air read",
        (
            "T1 read x = 5 (<memory> transaction 1, operation 1), from a write that the "
            "input names but does not contain"
        ),
    ),
    "an element nobody appended": (
        [[(A, "x", 1)], [(R, "x", [1, 7])]],
        "thin-air read",
        "T2 read x = [1 7] (<memory> transaction 2, operation 1), whose element 7 no transaction "
        "appended",
    ),
    "G1a": (
        [[(R, "x", 5)], txn((W, "x", 5), **ABORTED)],
        "aborted read (G1a)",
        "T1 read x = 5 (<memory> transaction 1, operation 1), which only the aborted T2 wrote "
        "(<memory> transaction 2, operation 1)",
    ),
    "a failed operation": (
        [[(R, "x", 5)], txn((W, "x", 5), failed=(0,), session=1)],
        "aborted read (G1a)",
        "T1 read x = 5 (<memory> transaction 1, operation 1), which only an operation of T2 that "
        "failed wrote (<memory> transaction 2, operation 1)",
    ),
    "an aborted element in the middle": (
        [[(A, "x", 1), (A, "x", 3)], txn((A, "x", 2), **ABORTED), [(R, "x", [2, 1, 3])]],
        "aborted read (G1a)",
        "T3 read x = [2 1 3] (<memory> transaction 3, operation 1), whose element 2 only the "
        "aborted T2 appended (<memory> transaction 2, operation 1)",
    ),
    "G1b": (
        [[(W, "x", 5), (W, "x", 6)], [(R, "x", 5)]],
        "intermediate read (G1b)",
        "T2 read x = 5 (<memory> transaction 2, operation 1), which T1 overwrote before it ended "
        "(w(x, 5) at <memory> transaction 1, operation 1)",
    ),
    "G1b in a list": (
        [[(A, "x", 1), (A, "x", 2)], [(R, "x", [1])]],
        "intermediate read (G1b)",
        "T2 read x = [1] (<memory> transaction 2, operation 1), which ends inside the appends of "
        "T1: after append(x, 1) at <memory> transaction 1, operation 1",
    ),
    "its own later write": (
        [[(R, "x", 5), (W, "x", 5)]],
        "future read",
        "T1 read x = 5 (<memory> transaction 1, operation 1), which T1 itself wrote only later "
        "(<memory> transaction 1, operation 2)",
    ),
    "another's write after its own": (
        [[(W, "x", 5), (R, "x", 6)], [(W, "x", 6)]],
        "not my own write",
        "T1 read x = 6 (<memory> transaction 1, operation 2), though its own w(x, 5) at <memory> "
        "transaction 1, operation 1 came before",
    ),
    "its own write before last": (
        [[(W, "x", 5), (W, "x", 6), (R, "x", 5)]],
        "not my last write",
        "T1 read x = 5 (<memory> transaction 1, operation 3), its own w(x, 5) at <memory> "
        "transaction 1, operation 1, though it had written the key again since",
    ),
    "two orders": (
        [[(A, "x", 1)], [(A, "x", 2)], [(R, "x", [1, 2])], [(R, "x", [2, 1])]],
        "incompatible order",
        "T4 read x = [2 1] (<memory> transaction 4, operation 1), but T3 read [1 2] (<memory> "
        "transaction 3, operation 1): neither is a prefix of the other",
    ),
    "an element twice": (
        [[(A, "x", 1)], [(R, "x", [1, 1])]],
        "duplicate element",
        (
            "T2 read x = [1 1] (<memory> transaction 2, operation 1), which shows the "
            "append(x, 1) at <memory> transaction 1, operation 1 of T1 more often than it "
            "happened"
        ),
    ),
    "G0": (
        [[(A, "x", 1), (A, "x", 2)], [(A, "x", 3)], [(R, "x", [1, 3, 2])]],
        "split append (G0)",
        (
            "T3 read x = [1 3 2] (<memory> transaction 3, operation 1), where the appends of "
            "T1 do not appear together, complete and in the order in which they were made "
            "(append(x, 2) at <memory> transaction 1, operation 2)"
        ),
    ),
    "not what it names": (
        [[(W, "x", 5)], [(R, "x", 6, (0, 0))]],
        "two values of one version",
        "T2 read x = 6 (<memory> transaction 2, operation 1), though it names the version that T1 "
        "wrote as 5 (<memory> transaction 1, operation 1)",
    ),
    "two initial values": (
        [[(R, "x", 5, "initial")], [(R, "x", 6, "initial")]],
        "two values of one version",
        "T2 read x = 6 (<memory> transaction 2, operation 1), though it names the version that T1 "
        "read as 5 (<memory> transaction 1, operation 1)",
    ),
    "not what was declared": (
        [txn((W, "x", 5), status="initial"), [(R, "x", 6, "initial")]],
        "two values of one version",
        "T2 read x = 6 (<memory> transaction 2, operation 1), though it names the initial version, "
        "which is 5",
    ),
}


TWO_VALUES = {
    "one transaction, the initial version": [[(R, "x", 98, "initial"), (R, "x", 99, "initial")]],
    "two transactions": [[(R, "x", 98, "initial")], [(R, "x", 99, "initial")]],
    "another than its writer wrote": [[(W, "x", 1)], [(R, "x", 2, (0, 0))]],
    "its own write": [[(W, "x", 1), (R, "x", 2, (0, 0))]],
    "the write, and another": [[(W, "x", 1)], [(R, "x", 1, (0, 0)), (R, "x", 2, (0, 0))]],
    "another than is declared": [
        txn((W, "x", 5), status="initial"),
        [(R, "x", 5, "initial"), (R, "x", 6, (0, 0))],
    ],
}


@pytest.mark.parametrize("transactions", TWO_VALUES.values(), ids=TWO_VALUES)
@pytest.mark.parametrize("level", ["pl-2", "rc", "ra", "psi", "si", "ser"])
def test_a_version_has_one_value(transactions, level):
    """Who reads a version by name, and sees another value, contradicts the history; certified."""
    h = history(*transactions)
    verdict = isolang.check(h, level)
    assert (verdict.outcome, verdict.violation.anomaly) == ("invalid", "two values")
    assert verdict.certified
    assert build_problem(h).anomalies()[0].kind.title == "two values of one version"


def test_values_of_a_named_version_that_agree():
    """The same value twice, and nil for the initial version, are no contradiction; nor at PL-1."""
    h = history([(R, "x", 98, "initial"), (R, "x", 98, "initial"), (R, "x", None, "initial")])
    assert isolang.check(h, "ser").outcome == "valid"
    h = history([(W, "y", 1), (R, "x", 98, "initial"), (R, "x", 99, "initial")])
    assert isolang.check(h, "pl-1").outcome == "valid"


@pytest.mark.parametrize(("transactions", "title", "evidence"), CASES.values(), ids=CASES)
def test_evidence(transactions, title, evidence):
    """Each kind has a name, and one sentence in the words and places of the input."""
    kind, text = only_evidence(*transactions)
    assert (kind.title, text) == (title, evidence)


def test_counts_and_first_examples():
    """All anomalies are counted; examples come in the order of the history."""
    h = history(*([(R, "x", i), (R, "y", 1)] for i in range(1, 6)), [(W, "y", 1), (W, "y", 2)])
    problem = build_problem(h)
    assert problem.anomaly_counts() == {
        AnomalyKind.THIN_AIR_READ: 5,
        AnomalyKind.INTERMEDIATE_READ: 5,
    }
    assert [a.txn for a in problem.anomalies(AnomalyKind.THIN_AIR_READ, limit=2)] == [0, 1]
    assert len(problem.anomalies()) == 10


def test_no_anomaly_where_another_source_explains_the_value():
    """A value that one transaction overwrote and another wrote last is read from the latter."""
    h = history([(W, "x", 5), (W, "x", 6)], [(W, "x", 5)], [(R, "x", 5)])
    native = build_problem(h).native
    assert len(native.anomalies) == 0
    assert native.writer_txn[native.candidate].tolist() == [1]


@pytest.mark.parametrize("seen", [0, None])
def test_the_initial_value_and_nil_are_both_initial(seen):
    """T0 wrote the declared initial value, and nil always means T0 as well."""
    native = build_problem(history([(R, "x", seen)], initial=0)).native
    assert native.writer_txn[native.candidate].tolist() == [1]


def test_a_declared_initial_transaction_is_t0():
    """Its last writes are the initial values; what it overwrote itself nobody can read."""
    initial = txn((W, "x", 1), (W, "x", 2), status="initial", session="init")
    native = build_problem(history(initial, [(R, "x", 2)], [(R, "x", 1)])).native
    assert native.inclusion.tolist() == [
        InclusionStatus.OUT,
        InclusionStatus.IN,
        InclusionStatus.IN,
        InclusionStatus.IN,
    ]
    assert native.writer_txn[native.candidate].tolist() == [3]
    assert native.anomalies.tolist() == [[AnomalyKind.INTERMEDIATE_READ, 2, 3, 0, 0]]


def test_a_named_source_in_the_initial_transaction():
    """Its last write of the key is T0's; one that it overwrote is none."""
    initial = txn((W, "x", 1), (W, "x", 2), status="initial", session="init")
    native = build_problem(history(initial, [(R, "x", 2, (0, 1))], [(R, "x", 1, (0, 0))])).native
    assert native.writer_txn[native.candidate].tolist() == [3]
    assert native.anomalies.tolist() == [[AnomalyKind.INTERMEDIATE_READ, 2, 3, 0, 0]]


def test_a_maybe_transaction_is_in_only_if_read():
    """Unread: out. The only source of a committed read: in. One of two sources: optional."""
    maybe = {"status": "maybe"}
    unread = build_problem(history(txn((W, "x", 1), **maybe)))
    assert unread.native.inclusion[:-1].tolist().count(InclusionStatus.OUT) == 1
    assert unread.ignored() == ("1 transaction of unknown outcome that no transaction read from",)
    read = build_problem(history(txn((W, "x", 1), **maybe), [(R, "x", 1)]))
    assert read.native.inclusion[:-1].tolist().count(InclusionStatus.IN) == 2
    either = build_problem(history(txn((W, "x", 1), **maybe), [(W, "x", 1)], [(R, "x", 1)]))
    assert either.native.inclusion[:-1].tolist().count(InclusionStatus.OPTIONAL) == 1


def test_a_maybe_transaction_has_no_end():
    """It may take effect at any later time, whatever the input says of its end."""
    maybe = txn((W, "x", 1), status="maybe", begin=1, end=2, session=0)
    h = history(maybe, txn((R, "x", 1), begin=3, end=4, session=1))
    native = build_problem(h).native
    assert native.has_time
    assert native.end.tolist()[:2] == [2**63 - 1, 4]
    assert native.unfinished.tolist() == [1, 0, 0]


def test_inclusion_is_followed_through_maybe_transactions():
    """A maybe transaction that is in brings its own sources with it."""
    maybe = {"status": "maybe"}
    chain = [txn((R, "x", i), (W, "x", i + 1), **maybe, session=i) for i in range(5)]
    problem = build_problem(history(*chain, txn((R, "x", 5), session=9), initial=0))
    assert problem.native.inclusion[:-1].tolist().count(InclusionStatus.IN) == 6


def test_an_optional_transaction_that_contradicts_itself():
    """It cannot be in: it is listed with the reason, and its anomaly is not one of the history."""
    odd = txn((W, "y", 7), (R, "y", 8), (W, "x", 1), status="maybe", session=0)
    native = build_problem(history(odd, [(W, "x", 1)], [(R, "x", 1)])).native
    assert native.impossible.tolist() == [0]
    assert native.impossible_reason.tolist() == [[AnomalyKind.NOT_OWN_WRITE, 0, 1, 0, 0]]
    assert len(native.anomalies) == 0


def test_reads_that_say_nothing_are_counted():
    """Unknown results and failed operations constrain nothing, and are not dropped silently."""
    from isolang.history import UNKNOWN

    problem = build_problem(history([(R, "x", UNKNOWN)], txn((R, "x", 3), failed=(0,))))
    assert problem.ignored() == (
        "1 operation that failed",
        "1 read whose result is unknown",
    )
    assert len(problem.native.read_op) == 0
    assert problem.anomalies() == []


def test_list_order():
    """Reads show a chain; what none of them shows comes after it."""
    h = history([(A, "x", 1)], [(A, "x", 2)], [(A, "x", 3)], [(A, "x", 4)], [(R, "x", [2, 1])])
    native = build_problem(h).native
    txns = native.writer_txn
    pairs = zip(txns[native.vo_before].tolist(), txns[native.vo_after].tolist(), strict=True)
    assert set(pairs) == {(1, 0), (0, 2), (0, 3)}


def test_a_read_after_own_appends_shows_order_but_needs_no_source():
    """``append x 2, r x [1 2]``: T1's element precedes the reader's own."""
    h = history([(A, "x", 1)], [(A, "x", 2), (R, "x", [1, 2])])
    native = build_problem(h).native
    assert len(native.read_op) == 0
    assert native.writer_txn[native.vo_before].tolist() == [0]
    assert native.writer_txn[native.vo_after].tolist() == [1]


REFUSED = {
    "register and list": (
        [[(W, "x", 1)], [(A, "x", 2)]],
        "<memory>: key x: used as a register by T1 (at 1) and as a list by T2 (at 1), "
        "expected one of the two",
    ),
    "ambiguous inside a block": (
        [[(A, "x", 1)], [(A, "x", 2), (A, "x", 1)], [(R, "x", [2, 1])]],
        "<memory>: key x: the list read of T3 (at 1) shows element 1, appended by T1 (at 1) "
        "and T2 (at 2), expected one transaction per element",
    ),
    "ambiguous element": (
        [[(A, "x", 1)], [(A, "x", 1)], [(R, "x", [1])]],
        "<memory>: key x: the list read of T3 (at 1) shows element 1, appended by T1 (at 1) "
        "and T2 (at 1), expected one transaction per element",
    ),
}


@pytest.mark.parametrize(("transactions", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_expressed_is_refused(transactions, message):
    """Never a guess: the message says key, value and transactions."""
    with pytest.raises(UnsupportedError) as error:
        build_problem(history(*transactions))
    assert str(error.value) == message


def test_what_own_appends_decide_is_judged_whoever_appended_the_rest():
    """T4 read [1 2] again after its own append of 3: wrong, though several appended 3."""
    given = history(
        [(A, "x", 1)],
        [(A, "x", 2)],
        [(A, "x", 3)],
        [(R, "x", [1, 2]), (A, "x", 3), (R, "x", [1, 2])],
        [(R, "x", [1, 2, 3])],
    )
    problem = build_problem(given)
    assert [a.kind for a in problem.anomalies()] == [AnomalyKind.NOT_OWN_WRITE]
    assert "appended by T3 (at 1) and T4 (at 2)" in problem.native.refusal
    verdict = isolang.check(given, "pl-2")
    assert (verdict.outcome, verdict.certified) == ("invalid", True)
    verify(verdict.certificate(), given, isolang.load_spec("pl-2"))
    assert isolang.check(given, "pl-1").outcome == "unknown"  # it judges no reads


def test_an_order_that_only_a_maybe_transaction_shows_is_refused():
    """It would hold only if that transaction took place."""
    reader = txn((R, "x", [1]), (W, "y", 1), status="maybe", session="m")
    others = [[(A, "x", 1)], [(A, "x", 2)], [(W, "y", 1)], [(R, "y", 1)]]
    with pytest.raises(UnsupportedError, match="outcome is unknown"):
        build_problem(history(reader, *others))


def test_duplicate_elements_of_an_aborted_transaction_are_no_ambiguity():
    """Only the committed one can be meant."""
    h = history([(A, "x", 1)], txn((A, "x", 1), **ABORTED), [(R, "x", [1])])
    native = build_problem(h).native
    assert native.writer_txn[native.candidate].tolist() == [0]


@pytest.mark.parametrize(
    ("transactions", "contradicts"),
    [
        ([[(A, "x", 1)], [(A, "x", 2)], [(R, "x", [1, 2])], [(R, "x", [2, 1])]], True),
        ([[(A, "x", 1), (A, "x", 2)], [(A, "x", 3)], [(R, "x", [1, 3, 2])]], True),
        ([[(A, "x", 1), (A, "x", 2)], [(R, "x", [2, 1])]], False),
        ([[(A, "x", 1), (A, "x", 3)], [(A, "x", 2)], [(R, "x", [1, 1, 2])]], True),
        ([[(A, "x", 1)], [(A, "x", 2)], *([(R, "x", v)] for v in ([9] * 3, [1, 2], [2, 1]))], True),
        ([[(A, "x", 1)], [(A, "x", 2)], *([(R, "x", v)] for v in ([9] * 3, [2], [2, 1]))], False),
        ([[(R, "x", 1)]], False),
    ],
)
def test_order_contradictions(transactions, contradicts):
    """PL-1 judges no reads, but no ``ww`` contains two orders; a transaction's own is no matter."""
    found = find_order_contradiction(build_problem(history(*transactions)))
    assert (found is not None) == contradicts


def test_long_lists_are_cut_in_messages():
    """Evidence stays readable when a list has thousands of elements."""
    h = history([(A, "x", 1)], [(R, "x", [1, *range(2, 3000)])])
    (anomaly,) = build_problem(h).anomalies()
    text = anomaly.evidence(h)
    assert len(text) < 250
    assert "(2999 elements)" in text
