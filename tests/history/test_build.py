"""``History.from_transactions``: what goes in comes out; wrong input is named with its place."""

import pytest
from hypothesis import given, settings
from support.histories import transactions

from isolang.errors import HistoryError
from isolang.history import UNKNOWN, History, Keyword, Transaction


def typed(x):
    """Values compared with their types: 1, True and 1.0 are equal in Python, and not here."""
    if isinstance(x, list | tuple):
        return [type(x).__name__, *map(typed, x)]
    return (type(x).__name__, repr(x))


def shape(txns):
    sessions = {}
    return [
        (
            [typed(op) for op in t.ops],
            sessions.setdefault(t.session, len(sessions)),
            t.status,
            t.begin,
            t.end,
            t.label,
            t.failed,
        )
        for t in txns
    ]


@settings(max_examples=300, deadline=None)
@given(transactions())
def test_round_trip(txns):
    """Transactions come back as they were given, with the types of keys and values."""
    assert shape(History.from_transactions(txns).transactions()) == shape(txns)


def test_typed_values():
    """1, "1", :1, 1.0 and true are five keys."""
    ops = [("w", k, 1) for k in (1, "1", Keyword("1"), 1.0, True)]
    h = History.from_transactions([Transaction(ops)])
    assert h.columns.n_keys() == 5
    assert [h.key(k) for k in range(5)] == ["1", '"1"', ":1", "1.0", "true"]


def test_real_time_needs_both_ends_of_every_committed_transaction():
    full = Transaction([("w", 1, 1)], begin=1, end=2)
    crashed = Transaction([("w", 1, 2)], begin=1, status="maybe")
    half = Transaction([("w", 1, 3)], begin=1)
    assert History.from_transactions([full, crashed]).columns.has_time
    without = History.from_transactions([full, half])
    assert not without.columns.has_time
    assert without.real_time == (
        "none: not every committed transaction has both a begin and an end "
        "(2 of 2 have one of them)"
    )
    assert without.ignored == ("the times of 2 transactions",)


def test_initial_values():
    h = History.from_transactions([Transaction([("r", "x", 0), ("r", "y", 7)])], initial={"x": 0})
    assert h.initial_values() == {"x": 0}
    assert History.from_transactions(
        [Transaction([("r", "x", 0)])], initial=0
    ).initial_values() == {"x": 0}
    h = History.from_transactions([Transaction([("w", "x", 1), ("w", "x", 2)], status="initial")])
    assert h.initial_values() == {"x": 2}
    assert h.label(0) == "T0"
    assert h.counts()["transactions"] == 0


def test_names():
    h = History.from_transactions(
        [
            Transaction([("w", "x", "a")], session="c1", label=7),
            Transaction([("r", "x", UNKNOWN)], session="c2", label=7),
            Transaction([("r", "x", [1, "b"])], session="c2", label=8, failed=(0,)),
            Transaction([("append", "x", Keyword("k"))], session="c2", label=9),
            Transaction([], session="c3", label=7),
            Transaction([], session="c3", label=7),
            Transaction([], session="c3", label=0),
        ]
    )
    labels = [h.label(t) for t in range(7)]
    assert labels == ["T7@c1", "T7@c2", "T8", "T9", "T7@c3#4", "T7@c3#5", "T0@c3"]
    assert h.label(h.t0) == "T0"
    ops = [h.describe_op(op) for op in range(4)]
    assert ops == ['w(x, "a")', "r(x, ?)", 'r(x, [1 "b"]) failed', "append(x, :k)"]
    assert h.where_op(2) == "<memory> transaction 3, operation 1"
    assert h.where(h.t0) == "the initial state"


FORMS = (
    'expected ("r", key, result), ("w", key, value) or ("append", key, value); '
    "a read may have its source as a fourth element"
)


@pytest.mark.parametrize(
    ("txn", "message"),
    [
        (Transaction([("q", 1, 2)]), f", operation 1: unknown operation (got 'q', {FORMS})"),
        (Transaction([("r", 1)]), f", operation 1: not an operation (got ('r', 1), {FORMS})"),
        (
            Transaction([("w", 1, UNKNOWN)]),
            ", operation 1: a write of an unknown value; a write's value must be given",
        ),
        (
            Transaction([("w", 1, {})]),
            ", operation 1: a key or value of a type that has no exact text (got dict, expected "
            "None, bool, int, float, str or Keyword); convert it to a string first",
        ),
        (
            Transaction([("w", 1, float("nan"))]),
            ", operation 1: a value that is not equal to itself (got NaN); use a string or None",
        ),
        (Transaction([], begin=3, end=1), ": it ends before it begins (got begin 3, end 1)"),
        (
            Transaction([], begin=1.5),
            ": begin: not an integer (got 1.5); give times as integers, e.g. nanoseconds",
        ),
        (
            Transaction([], status="ok"),
            ": unknown status (got 'ok', expected one of committed, aborted, maybe, initial)",
        ),
        (
            Transaction([("append", 1, 1)], status="initial"),
            ", operation 1: an append in the initial transaction (lists start empty); "
            "append it later",
        ),
        (
            Transaction([("r", 1, 1, (0, 0))]),
            ", operation 1: its source is no write of the same key (got (0, 0))",
        ),
        (
            Transaction([("r", 1, 1, (0, 9))]),
            ", operation 1: not a source (got (0, 9), expected (transaction, operation) counted "
            'from 0, "initial" or "missing")',
        ),
        (Transaction([], failed=(0,)), ": failed names operations that are not there (got {0})"),
        (
            Transaction([], session=[]),
            ": a session that is not hashable (got []); use a number or a string",
        ),
    ],
)
def test_wrong_input(txn, message):
    with pytest.raises(HistoryError) as error:
        History.from_transactions([txn], name="mine")
    assert str(error.value) == f"mine transaction 1{message}"


def test_not_a_transaction():
    with pytest.raises(HistoryError) as error:
        History.from_transactions([[("r", 1, 2)]])
    assert str(error.value) == (
        "<memory> transaction 1: not a Transaction (got list, expected Transaction)"
    )
