"""Histories put together: transactions of one appended to another say what they said."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.histories import transactions as histories

from isolang import _native
from isolang.history import UNKNOWN, History, Transaction


def append(to, history: History, txns, *, first: int = 0, in_flight: bool = False) -> None:
    sessions = np.arange(first, first + history.columns.sessions, dtype=np.int32)
    to.append(history.columns, np.array(txns, np.int32), sessions, in_flight)


def told(columns) -> list[Transaction]:
    return list(History(columns=columns, name="m", format="memory").transactions())


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_two_halves_are_the_whole(data):
    """Every second transaction, then the others: the columns fit, and each says the same."""
    given_ = data.draw(histories(sources=False))
    history = History.from_transactions(given_)
    n = history.columns.transactions()
    to = _native.Columns()
    order = [*range(0, n, 2), *range(1, n, 2)]
    append(to, history, order[: (n + 1) // 2])
    append(to, history, order[(n + 1) // 2 :])
    to.has_time = history.columns.has_time
    to.validate()
    before = told(history.columns)
    assert [repr(t) for t in told(to)] == [repr(before[t]) for t in order]


def test_keys_and_values_are_those_of_both():
    """Equal ones get one number, whatever their numbers were; initial values come along."""
    one = History.from_transactions([Transaction([("w", "x", 1), ("append", "l", "a")])])
    two = History.from_transactions(
        [Transaction([("r", "l", ["b", "a"]), ("r", "x", 1), ("delete", "y"), ("r", "z", 5)])],
        initial={"z": 5},
    )
    to = _native.Columns()
    append(to, one, [0])
    append(to, two, [0], first=1)
    to.validate()
    assert to.n_keys() == 4
    history = History(columns=to, name="m", format="memory")
    assert history.initial_values() == {"z": 5}
    assert [t.ops for t in history.transactions()] == [
        [("w", "x", 1), ("append", "l", "a")],
        [("r", "l", ["b", "a"]), ("r", "x", 1), ("delete", "y"), ("r", "z", 5)],
    ]
    assert to.op_value[0] == to.op_value[3]


def test_in_flight_only_writes_are_known():
    """The outcome, the end, and what reads returned come with the completion."""
    history = History.from_transactions(
        [
            Transaction(
                [
                    ("w", "x", 1),
                    ("r", "l", [1]),
                    ("r-in", "y", [1]),
                    ("scan", ("=", "value", 1), {}),
                ],
                begin=1,
                end=2,
                times=[(1, 1), (1, 1), (1, 1), (1, 1)],
                commit=2,
            )
        ]
    )
    to = _native.Columns()
    append(to, history, [0], in_flight=True)
    to.validate()
    (found,) = told(to)
    assert [op[-1] for op in found.ops] == [1, UNKNOWN, UNKNOWN, UNKNOWN]
    assert (found.status, found.begin, found.end) == ("maybe", 1, None)
    assert (found.times, found.commit) == (None, None)


def test_what_cannot_come_along_is_refused():
    """Sources by number belong to the other history; so do numbers that are not there."""
    history = History.from_transactions(
        [Transaction([("w", "x", 1)]), Transaction([("r", "x", 1, (0, 0))])]
    )
    to = _native.Columns()
    with pytest.raises(ValueError, match="names the operation"):
        append(to, history, [1])
    with pytest.raises(ValueError, match="out of range"):
        append(to, history, [2])
    with pytest.raises(ValueError, match="itself"):
        append(history.columns, history, [0])
    with pytest.raises(ValueError, match="each session"):
        to.append(history.columns, np.array([0], np.int32), np.array([0], np.int32))
    widened = History.from_transactions([Transaction([("w", "x", 1)], begin=1, end=2)]).columns
    widened = widened.widened([1], [1])
    with pytest.raises(ValueError, match="widened"):
        to.append(widened, np.array([0], np.int32), np.array([0], np.int32))
