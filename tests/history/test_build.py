"""``History.from_transactions``: what goes in comes out; wrong input is named with its place."""

import datetime as dt
import io
from decimal import Decimal
from random import Random
from uuid import UUID

import pytest
from hypothesis import given, settings
from support.histories import transactions

from isolang.api import load_history
from isolang.errors import HistoryError
from isolang.history import UNKNOWN, History, Keyword, Transaction, write_history
from isolang.history.build import _ColumnsBuilder


def typed(x):
    """Values compared with their types: 1, True and 1.0 are equal in Python, and not here.

    Of zeros the sign does not count: ``-0.0`` comes back as ``0.0``.
    """
    if isinstance(x, list | tuple):
        return [type(x).__name__, *map(typed, x)]
    return (type(x).__name__, repr(x + 0.0 if isinstance(x, float) else x))


def shape(txns):
    sessions = {}
    return [
        (
            [typed(op) for op in t.ops],
            sessions.setdefault(t.session, len(sessions)),
            t.status,
            t.begin,
            t.end,
            t.number,
            t.failed,
        )
        for t in txns
    ]


@pytest.mark.slow
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


def test_real_time_is_known_where_nothing_committed():
    """Nothing ended before anything began; but without any time there is nothing to go by."""
    crashed = Transaction([("w", 1, 1)], status="maybe", begin=1)
    assert History.from_transactions([crashed]).columns.has_time
    assert not History.from_transactions([]).columns.has_time


def test_real_time_needs_both_ends_of_every_committed_transaction():
    full = Transaction([("w", 1, 1)], begin=1, end=2)
    crashed = Transaction([("w", 1, 2)], begin=1, status="maybe")
    half = Transaction([("w", 1, 3)], begin=1)
    assert History.from_transactions([full, crashed]).columns.has_time
    without = History.from_transactions([full, half])
    assert not without.columns.has_time
    assert without.real_time == (
        "none, because not every committed transaction has both a begin and an end (2 of "
        "2 transactions have at least one of them)"
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
    assert h.name_of(0) == "T0"
    assert h.counts()["transactions"] == 0


def test_names():
    h = History.from_transactions(
        [
            Transaction([("w", "x", "a")], session="c1", number=7),
            Transaction([("r", "x", UNKNOWN)], session="c2", number=7),
            Transaction([("r", "x", [1, "b"])], session="c2", number=8, failed=(0,)),
            Transaction([("append", "x", Keyword("k"))], session="c2", number=9),
            Transaction([], session="c3", number=7),
            Transaction([], session="c3", number=7),
            Transaction([], session="c3", number=0),
        ]
    )
    numbers = [h.name_of(t) for t in range(7)]
    assert numbers == ["T7@c1", "T7@c2", "T8", "T9", "T7@c3#4", "T7@c3#5", "T0@c3"]
    assert h.name_of(h.t0) == "T0"
    ops = [h.describe_op(op) for op in range(4)]
    assert ops == ['w(x, "a")', "r(x, ?)", 'r(x, [1 "b"]) failed', "append(x, :k)"]
    assert h.where_op(2) == "<memory> transaction 3, operation 1"
    assert h.where(h.t0) == "the initial state"


FORMS = (
    'expected ("r", key, result), ("w", key, value), ("append", key, value), '
    '("r-in", key, values) or ("r-not-in", key, values); '
    'an "r" may have its source as a fourth element'
)


@pytest.mark.parametrize(
    ("txn", "message"),
    [
        (Transaction([("q", 1, 2)]), f", operation 1: unknown operation (got 'q', {FORMS})"),
        (Transaction([("r", 1)]), f", operation 1: not an operation (got ('r', 1), {FORMS})"),
        (
            Transaction([("w", 1, UNKNOWN)]),
            ", operation 1: the write has no value; every write must state its value",
        ),
        (
            Transaction([("w", 1, {1})]),
            (
                ", operation 1: a key or value of this type has no exact text (got set, expected "
                "None, bool, int, float, str, Decimal, UUID, bytes, a date or time, a tuple or a "
                "dictionary of these, or Keyword); convert it to a string first"
            ),
        ),
        (
            Transaction([("w", 1, float("nan"))]),
            ", operation 1: a value that is not equal to itself (got NaN); use a string or None",
        ),
        (
            Transaction([], begin=3, end=1),
            ": the transaction ends before it begins (got begin 3, end 1)",
        ),
        (
            Transaction([], begin="1.5"),
            ": begin: not a time (got '1.5', expected an integer of nanoseconds, a float of "
            "seconds or a datetime)",
        ),
        (
            Transaction([], begin=1.5, end=2),
            (
                ": end: the history mixes two kinds of times (got an integer after a float); use "
                "one clock"
            ),
        ),
        (
            Transaction([], status="ok"),
            ": unknown status (got 'ok', expected one of committed, aborted, maybe, initial, "
            "indeterminate, info)",
        ),
        (
            Transaction([("append", 1, 1)], status="initial"),
            (
                ", operation 1: the initial transaction cannot contain an append (lists start "
                "empty, expected only writes)"
            ),
        ),
        (
            Transaction([("w", 1, 1), ("r", 1, 1)], status="initial"),
            (
                ", operation 2: the initial transaction cannot contain a read (it precedes all "
                "other transactions, expected only writes)"
            ),
        ),
        (
            Transaction([], number="a"),
            ": not a number (got 'a', expected an integer of 64 bits)",
        ),
        (
            Transaction([("w", 1, 10**5000)]),
            (
                ", operation 1: the integer has more than 4300 digits (got 16610 bits); use its "
                "hash or a string"
            ),
        ),
        (
            Transaction([(10**5000,)]),
            f", operation 1: not an operation (got a tuple without a text, {FORMS})",
        ),
        (Transaction(3), ": the operations: not a list (got 3, expected a list)"),
        (
            Transaction([("r", 1, 1, (0, 0))]),
            (", operation 1: the source of the read is not a write of the same key (got (0, 0))"),
        ),
        (
            Transaction([("r", 1, 1, (0, 9))]),
            ", operation 1: not a source (got (0, 9), expected (transaction, operation) counted "
            'from 0, "initial" or "missing")',
        ),
        (
            Transaction([], failed=(0,)),
            (
                ": failed names an operation that does not exist (got 0, expected a number from "
                "0 to -1)"
            ),
        ),
        (
            Transaction([], session=[]),
            ": the session is not hashable (got []); use a number or a string",
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


def test_sessions_are_named_for_all_or_for_none():
    """Without a name each transaction is a session of its own; T0 is in none."""
    reader = Transaction([("r", "x", 1)])
    h = History.from_transactions([Transaction([("w", "x", 0)], status="initial"), reader, reader])
    assert h.counts()["sessions"] == 2
    assert h.session == "each transaction is a session of its own, because none names a session"
    named = Transaction([("w", "x", 1)], session=None)  # None is a name
    with pytest.raises(HistoryError) as error:
        History.from_transactions([named, reader])
    assert str(error.value) == (
        "<memory> transaction 2: the transaction names no session, but transaction 1 "
        "does; name a session for all transactions or for none (then each is a session "
        "of its own)"
    )


@pytest.mark.parametrize("status", ["maybe", "indeterminate", "info"])
def test_names_of_an_unknown_outcome(status):
    """Jepsen's word and the field's are taken, too."""
    h = History.from_transactions([Transaction([("w", 1, 2)], status=status)])
    assert (h.status(0), h.counts()["maybe"]) == ("maybe", 1)


VALUES = [
    Decimal("1.5"), Decimal("-1E+30"), UUID(int=7), b"\x00\xff", True, 1.5, 2**70, (), (1, None),
    (1, "a\n\"\\", (True, Decimal("0.1"), Keyword("k"), UUID(int=1)), b"x"), dt.date(2020, 1, 2),
    dt.datetime(2020, 1, 2, 3, 4, 5, 6), dt.datetime(2020, 1, 2, tzinfo=dt.UTC), dt.time(1, 2),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
def test_values_of_databases_keep_their_type(value):
    """As keys and as values, back as Python objects and through EDN."""
    h = History.from_transactions([Transaction([("w", value, value), ("r", value, value)])])
    histories = [h]
    if not isinstance(value, tuple):  # a list there, as what a list held
        out = io.BytesIO()
        write_history(h, out, format="edn")
        histories.append(load_history(io.BytesIO(out.getvalue())))
    for history in histories:
        for _, key, found in history.transaction(0).ops:
            assert (key, found) == (value, value)
            assert type(key) is type(found) is type(value)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (-0.0, 0.0),
        (Decimal("1.50"), Decimal("1.5")),
        (Decimal("-0.00"), Decimal(0)),
        (
            dt.datetime(2020, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),
            dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
        ),
        (bytearray(b"a"), b"a"),
    ],
)
def test_equal_values_are_one_value(written, read):
    """A database returns what it was given in another spelling."""
    h = History.from_transactions([Transaction([("w", 1, written), ("r", 1, read)])])
    assert h.columns.op_value[0] == h.columns.op_value[1]


def test_times_of_three_kinds():
    """Nanoseconds, seconds, datetimes: the last two become nanoseconds."""
    when = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    second = dt.timedelta(seconds=1)
    for begin, end in ((10**9, 2 * 10**9), (1.0, 2.0), (when, when + second)):
        h = History.from_transactions([Transaction([], begin=begin, end=end)])
        assert h.columns.txn_end[0] - h.columns.txn_begin[0] == 10**9
    h = History.from_transactions([Transaction([], begin=when, end=when)])
    assert h.transaction(0).begin == int(when.timestamp()) * 10**9


class _Other(tuple):
    """A sequence that the native code does not take."""


class _Rows(dict):
    """Rows that it does not take."""


@pytest.mark.parametrize("seed", range(30))
def test_plain_operations_are_what_all_are(seed):
    """The native code adds what is plain, and Python the rest: into the same columns."""
    random = Random(seed)
    scalars = [
        0,
        1,
        -1,
        2**63 - 1,
        -(2**63),
        2**63,
        2**70,
        True,
        1.0,
        "",
        "1",
        "ä\0b",
        Keyword("x"),
    ]

    def value(none=True):
        return random.choice([*scalars, None] if none else scalars)

    def operation():
        key = value()
        kind = random.choice(["r", "r", "w", "insert", "append", "delete", "r-in", "scan"])
        if kind == "delete":
            return (kind, key)
        if kind == "scan":
            predicate = random.choice(["[:= :value 1]", ("between", "value", 0, 5)])
            rows = {value(): value(none=False) for _ in range(random.randrange(4))}
            return (kind, predicate, random.choice([rows, rows, UNKNOWN]))
        if kind == "r-in" or (kind == "r" and random.random() < 0.3):
            return (kind, key, [value() for _ in range(random.randrange(3))])
        return (kind, key, UNKNOWN if kind == "r" and random.random() < 0.2 else value())

    def other(op):
        return _Other(_Rows(part) if isinstance(part, dict) else part for part in op)

    def columns(programs):
        builder = _ColumnsBuilder([Transaction(ops, session=0) for ops in programs], initial, "h")
        for index, transaction in enumerate(builder.transactions):
            builder.add(index, transaction)
        return builder.columns.__getstate__()

    initial = random.choice([None, 7, {1: 2}])
    programs = [[operation() for _ in range(random.randrange(6))] for _ in range(8)]
    plain = [random.choice([tuple, list])(ops) for ops in programs]
    assert columns(plain) == columns([_Other(map(other, ops)) for ops in programs])
