"""Witnesses by hand: each wrong one is refused by both checkers and for its own reason."""

import pytest
from support.certify import PL1, SER, SI, SSER, history, txn, verdicts_of_both

from isolang._native import Columns, verify_witness
from isolang.certify.errors import CertificateRejected
from isolang.certify.native import native_checks
from isolang.certify.proofs import Witness
from isolang.certify.witness import check_witness
from isolang.history import History

# T0 is number 3. Operations: 0 w(x,1) | 1 r(x,1) 2 w(x,2) 3 w(y,1) | 4 r(x,2) 5 r(y,nil) 6 r(y,nil)
H = history(txn("w(x,1)", 1), txn("r(x,1) w(x,2) w(y,1)", 2), txn("r(x,1) r(y,nil) r(y,nil)", 3))
SOURCE = [-1, 0, -1, -1, 0, 3, 3]
START, ORDER = [0, 2, 3], [0, 1, 1]


def reason(h, s, source, start, order):
    w = Witness.of(source, start, order)
    native = verify_witness(h.columns, native_checks(s), w.source, w.order_start, w.order_txn)
    assert native, "the native checker accepts"
    with pytest.raises(CertificateRejected) as caught:
        check_witness(h, s, source, start, order)
    return f"{caught.value} / {native}"


def changed(values, at, value):
    return [*values[:at], value, *values[at + 1 :]]


def test_the_right_one():
    assert verdicts_of_both(H, SER, Witness.of(SOURCE, START, ORDER)) == ("accepted", "accepted")


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        (1, 3, "cannot read from transaction 3"),
        (1, 1, "cannot read from transaction 1"),
        (1, -1, "has no source"),
        (5, -1, "has no source"),
        (5, 1, "cannot read from transaction 1"),
        (0, 3, "is no external read"),
        (2, 0, "is no external read"),
    ],
)
def test_a_wrong_source(at, value, said):
    assert said in reason(H, SER, changed(SOURCE, at, value), START, ORDER)


@pytest.mark.parametrize("value", [4, -2, 1000])
def test_a_source_that_is_no_transaction(value):
    proof = Witness.of(changed(SOURCE, 1, value), START, ORDER)
    assert verdicts_of_both(H, SER, proof) == ("rejected", "rejected")


def test_wrong_orders():
    assert "violating cycle" in reason(H, SER, SOURCE, START, [1, 0, 1])
    assert "not a permutation" in reason(H, SER, SOURCE, START, [0, 0, 1])
    assert "not a permutation" in reason(H, SER, SOURCE, [0, 1, 2], [0, 1])
    assert "not a permutation" in reason(H, SER, SOURCE, [0, 3, 4], [0, 1, 2, 1])
    assert "not a permutation" in reason(H, SER, SOURCE, [0, 2, 2], [0, 1])
    for start in ([0, 2], [0, 2, 4], [1, 2, 3], [0, 3, 2, 3], []):
        assert "order_start" in reason(H, SER, SOURCE, start, ORDER)
    assert "decreases" in reason(H, SER, SOURCE, [0, 4, 3], ORDER)
    assert "source has" in reason(H, SER, SOURCE[1:], START, ORDER)


def test_writers_that_are_not_included_are_skipped():
    h = history(txn("w(x,1)", 1, "maybe"), txn("w(x,2)", 2), txn("w(x,3)", 3, "aborted"))
    for order in ([1], [0, 1], [1, 0], [2, 1, 0], [0, 0, 1, 77, -4]):
        proof = Witness.of([-1] * 3, [0, len(order)], order)
        assert verdicts_of_both(h, SER, proof) == ("accepted", "accepted")
    assert "not a permutation" in reason(h, SER, [-1] * 3, [0, 1], [0])


def test_a_maybe_transaction_is_in_once_it_is_read():
    h = history(txn("w(x,1) w(y,1)", 1, "maybe"), txn("r(x,1)", 2), txn("w(x,1)", 3))
    left_out = Witness.of([-1, -1, 2, -1], [0, 1, 1], [2])
    assert verdicts_of_both(h, SER, left_out) == ("accepted", "accepted")
    assert "not a permutation" in reason(h, SER, [-1, -1, 0, -1], [0, 1, 1], [2])
    included = Witness.of([-1, -1, 0, -1], [0, 2, 3], [0, 2, 0])
    assert verdicts_of_both(h, SER, included) == ("accepted", "accepted")


def test_the_reads_of_a_maybe_transaction_count_once_it_is_in():
    h = history(txn("r(y,7) w(x,1)", 1, "maybe"), txn("r(x,1)", 2))
    assert "has no source" in reason(h, SER, [-1, -1, 0], [0, 0, 1], [0])
    assert verdicts_of_both(h, SER, Witness.of([-1, -1, 0], [0, 0, 1], [0])) == (
        "rejected",
        "rejected",
    )
    assert verdicts_of_both(h, SER, Witness.of([2, -1, 0], [0, 0, 1], [0])) == (
        "rejected",
        "rejected",
    )


def test_intrinsic_anomalies_matter_iff_reads_are_judged():
    h = history(txn("w(x,1) r(x,2)", 1), txn("w(x,2)", 2))
    assert "intrinsic anomaly" in reason(h, SER, [-1] * 3, [0, 2], [0, 1])
    assert verdicts_of_both(h, PL1, Witness.of([-1] * 3, [0, 2], [0, 1])) == (
        "accepted",
        "accepted",
    )


def test_orders_contain_what_lists_show():
    h = history(txn("a(x,1)", 1), txn("a(x,2)", 2), txn("a(x,3)", 3), txn("r(x,[2 1])", 4))
    assert verdicts_of_both(h, SI, Witness.of([-1, -1, -1, 0], [0, 3], [1, 0, 2])) == (
        "accepted",
        "accepted",
    )
    for order in ([0, 1, 2], [1, 2, 0], [2, 1, 0]):
        assert "list read" in reason(h, PL1, [-1, -1, -1, 0], [0, 3], order)
    assert "cannot read from" in reason(h, SI, [-1, -1, -1, 1], [0, 3], [1, 0, 2])


@pytest.mark.parametrize("shown", ["[1 2]", "[1 1 2]"])
def test_what_a_list_lacks_comes_after_all_that_it_shows(shown):
    """No order has a transaction both before and after another; a repeated element changes nothing.

    It does not take the place of the missing one.
    """
    torn = history(txn("a(x,1) a(x,3)", 1), txn("a(x,2)", 2), txn(f"r(x,{shown})", 3))
    for order in ([0, 1], [1, 0]):
        assert "list read" in reason(torn, PL1, [-1, -1, -1, 1], [0, 2], order)
    assert verdicts_of_both(torn, PL1, [("anomaly", 8, 2, 3, 0, -1)]) == ("accepted", "accepted")


def test_an_element_that_two_may_have_appended_is_not_certified():
    h = history(txn("a(x,1)", 1), txn("a(x,1)", 2), txn("r(x,[1])", 3))
    proof = Witness.of([-1, -1, 0], [0, 2], [0, 1])
    assert verdicts_of_both(h, SER, proof) == ("not certified", "not certified")
    assert verdicts_of_both(h, SER, [("choice", 2)]) == ("not certified", "not certified")


def test_a_key_of_two_kinds_is_not_certified():
    h = history(txn("a(x,1) w(x,2)", 1), txn("r(x,2)", 3))
    proof = Witness.of([-1, -1, 0], [0, 1], [0])
    assert verdicts_of_both(h, SER, proof) == ("not certified", "not certified")


def test_a_transaction_that_ends_before_it_begins_is_not_certified():
    columns = Columns()
    columns.begin_transaction(0, 0, 1, 1, begin=5, end=3)
    columns.add_op(1, columns.intern_key(1, 1), columns.intern_value(1, 1), 1)
    columns.has_time = True
    h = History(columns=columns, name="backwards", format="memory")
    assert verdicts_of_both(h, SSER, Witness.of([-1], [0, 1], [0])) == (
        "not certified",
        "not certified",
    )
    assert verdicts_of_both(h, SER, Witness.of([-1], [0, 1], [0])) == ("accepted", "accepted")


def explicit(source):
    """One reader of x = 1 that names where it comes from; two writers of that value, and T0's."""
    h = history(txn("w(x,1)", 1), txn("w(x,5) w(x,1)", 2), txn("r(x,1)", 3))
    h.columns.set_source(3, source)
    return h


@pytest.mark.parametrize(("named", "right"), [(0, 0), (2, 1), (-2, 3)])
def test_a_named_source_is_the_only_candidate(named, right):
    h = explicit(named)
    for u in (0, 1, 3):
        expected = "accepted" if u == right else "rejected"
        proof = Witness.of([-1, -1, -1, u], [0, 2], [0, 1] if u == 1 else [1, 0])
        assert verdicts_of_both(h, PL1, proof) == (expected, expected)


@pytest.mark.parametrize(("named", "kind"), [(-3, 0), (1, 2)])
def test_a_named_source_that_is_none(named, kind):
    """Missing: thin air; overwritten by its own transaction: an intermediate read."""
    h = explicit(named)
    for u in (-1, 0, 1, 3):
        proof = Witness.of([-1, -1, -1, u], [0, 2], [0, 1])
        assert verdicts_of_both(h, SER, proof) == ("rejected", "rejected")
    for claimed in (0, 1, 2, 3):
        expected = "accepted" if claimed == kind else "rejected"
        assert verdicts_of_both(h, SER, [("anomaly", claimed, 2, 3, -1, -1)]) == (
            expected,
            expected,
        )


def test_initial_values():
    h = history(txn("r(x,0) w(x,1)", 1), txn("r(x,nil)", 2), initial=0)
    assert verdicts_of_both(h, SER, Witness.of([2, -1, 2], [0, 1], [0])) == ("accepted", "accepted")
    declared = history(
        txn("w(x,5) w(x,6)", 1, "initial"), txn("r(x,6) w(x,1)", 1), txn("r(x,nil)", 2)
    )
    right = Witness.of([-1, -1, 3, -1, 3], [0, 1], [1])
    assert verdicts_of_both(declared, SER, right) == ("accepted", "accepted")
    overwritten = history(txn("w(x,5) w(x,6)", 1, "initial"), txn("r(x,5)", 1))
    assert verdicts_of_both(overwritten, SER, Witness.of([-1, -1, 2], [0, 0], [])) == (
        "rejected",
        "rejected",
    )


def test_out_of_time_is_not_certified():
    h = history(*(txn(f"w(x,{i})", 1) for i in range(3000)))
    w = Witness.of([-1] * 3000, [0, 3000], list(range(3000)))
    checks = native_checks(SER)
    slow = verify_witness(h.columns, checks, w.source, w.order_start, w.order_txn, seconds=1e-7)
    assert slow == "not certified: timeout"
    enough = verify_witness(h.columns, checks, w.source, w.order_start, w.order_txn, seconds=60.0)
    assert enough == ""
