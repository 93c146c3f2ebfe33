"""Histories of which some operations have times and others have none: docs/times.md."""

from __future__ import annotations

import random
from io import BytesIO
from typing import Any

import numpy as np
import pytest

from isolang._native import build_problem
from isolang.api import check, load_history, load_spec
from isolang.certify.facts import Facts
from isolang.encodings.relational.moments import RecordedTimes
from isolang.errors import HistoryError
from isolang.history import History, Transaction, write_history
from isolang.history.columns import ABORTED
from isolang.history.values import UNKNOWN

#: Another wrote x and ended; then nil is read of it.
STALE = """
{:type :invoke, :process 0, :time 0, :f :txn, :value [[:w "x" 1]]}
{:type :ok, :process 0, :time 16, :f :txn, :value [[:w "x" 1]]WRITER}
{:type :invoke, :process 1, :time 28, :f :txn, :value [[:r "x" nil]]}
{:type :ok, :process 1, :time 32, :f :txn, :value [[:r "x" nil]]READER}
"""
#: Times that some, all, or none of its operations have.
SOME = {
    "none": ("", ""),
    "the write": (", :times [[0 9]]", ""),
    "the read": ("", ", :times [[28 32]]"),
    "all": (", :times [[0 9]]", ", :times [[28 32]]"),
    "half of the write": (", :times [[nil 9]]", ""),
    "half of the read": ("", ", :times [[28 nil]]"),
    "one COMMIT": (", :commit [nil 15]", ""),
    "COMMIT of the read": ("", ", :commit [30 nil]"),
    "nil": (", :times [nil], :commit [14 15]", ", :times nil"),
}
BY_STATEMENT = (
    "postgresql-read-committed",
    "oracle-read-committed",
    "innodb-read-committed",
    "consistent-read-by-statement",
    "postgresql-repeatable-read",
    "consistent-read",
)
#: The reader had ended before the writer sent COMMIT: `late`, too.
LATE = """
{:type :invoke, :process 0, :time 4, :f :txn, :value [[:w :b 4]]}
{:type :invoke, :process 1, :time 8, :f :txn, :value [[:r :b nil]]}
{:type :ok, :process 1, :time 12, :f :txn, :value [[:r :b 4]], :commit [11 12]}
{:type :ok, :process 0, :time 28, :f :txn, :value [[:w :b 4]], :times [[4 20]], :commit [28 28]}
"""


def of(text: str) -> History:
    return load_history(BytesIO(text.encode()), format="edn")


def stale(some: str) -> History:
    writer, reader = SOME[some]
    return of(STALE.replace("WRITER", writer).replace("READER", reader))


@pytest.mark.parametrize("level", BY_STATEMENT)
@pytest.mark.parametrize("some", SOME)
def test_a_stale_read_is_one_whichever_operations_have_times(some: str, level: str) -> None:
    """Who has no time of its own did everything between its begin and its end."""
    verdict = check(stale(some), level)
    assert (verdict.outcome, verdict.certified) == ("invalid", True)


@pytest.mark.parametrize("relation", ["late", "done", "late | done", "late[R,W]"])
@pytest.mark.parametrize(
    "left_out", ["", ", :times [[4 20]]", ", :commit [28 28]", ", :commit [11 12]"]
)
def test_who_had_ended_is_late_too(relation: str, left_out: str) -> None:
    """Without times of its own, a first statement was answered when COMMIT was, or the end was."""
    relation = relation.replace("late[R,W]", "(for x: [R[x]] ; late ; [W[x]])")
    spec = load_spec(f'include "adya.iso"\nacyclic {relation} | wr as c')
    verdict = check(of(LATE.replace(left_out, "") if left_out else LATE), spec)
    # Without COMMIT's sending, the last statement's counts: 4, before the reader was answered.
    expected = "valid" if left_out == ", :commit [28 28]" else "invalid"
    assert (verdict.outcome, verdict.certified) == (expected, True)


def test_locks_of_writers_without_times() -> None:
    """Two blind writes, one after the other, whose version order a read shows turned round."""
    rows = (
        Transaction([("w", "x", 1)], session=0, begin=0, end=9),
        Transaction([("w", "x", 2)], session=1, begin=20, end=29, times=[(21, 22)], commit=23),
        Transaction([("r", "x", 1)], session=2, begin=30, end=39, times=[(31, None)]),
    )
    history = History.from_transactions(rows)
    spec = load_spec('include "adya.iso"\nacyclic locked | ww | rw | wr | done as c')
    assert check(history, spec).outcome == "invalid"
    assert [t.times for t in history.transactions()] == [None, [(21, 22)], [(31, None)]]


def test_without_real_time_the_times_of_operations_are_kept() -> None:
    """Not every transaction has begin and end: no level of times, but the times are written."""
    rows = (
        Transaction([("w", "x", 1)], session=0, end=9),
        Transaction([("w", "y", 1)], session=1, times=[(3, None)]),
        Transaction([("r", "x", None)], session=2, begin=20),
    )
    history = History.from_transactions(rows)
    for one in (history, again(history, "edn"), again(history, "jepsen-json")):
        with pytest.raises(HistoryError, match="uses real time, but the history has none"):
            check(one, "consistent-read-by-statement")
        assert one.columns.op_begin[1] == 3
    with pytest.raises(HistoryError, match="real time cannot be expressed in"):
        write_history(history, BytesIO(), format="dbcop")


def again(history: History, form: str) -> History:
    text = BytesIO()
    write_history(history, text, format=form)
    return load_history(BytesIO(text.getvalue()), format=form)


@pytest.mark.parametrize("form", ["edn", "jepsen-json"])
@pytest.mark.parametrize("some", SOME)
def test_a_history_that_is_written_says_the_same(some: str, form: str) -> None:
    history = stale(some)
    back = again(history, form)
    assert back.columns.two_clocks == history.columns.two_clocks
    for column in ("txn_begin", "txn_end", "op_begin", "op_end", "commit_begin", "commit_end"):
        if history.columns.has_operation_times:
            assert (
                getattr(back.columns, column).tolist() == getattr(history.columns, column).tolist()
            )
    assert check(back, "postgresql-read-committed").outcome == "invalid"


@pytest.mark.parametrize("form", ["edn", "jepsen-json"])
def test_written_with_aborted_and_open_transactions_it_keeps_its_clock(form: str) -> None:
    """Lines that nobody knows the time of have one all the same, so that :time stays real time."""
    rows = (
        Transaction([("w", "x", 7)], session=2, status="aborted"),
        Transaction([("w", "x", 1)], session=0, begin=1, end=9, times=[(2, 3)]),
        Transaction([("w", "x", 8)], session=3, status="maybe", begin=10),
        Transaction([("r", "x", None)], session=1, begin=20, end=29),
    )
    history = History.from_transactions(rows)
    back = again(history, form)
    assert back.real_time.startswith(":time")
    for one in (history, back):
        assert check(one, "postgresql-read-committed").outcome == "invalid"


PAIR = """
{:type :invoke, :process 0, :time 28, :f :txn, :value [[:w :x 1] [:w :y 1]]}
{:type :ok, :process 0, :time 33, :f :txn, :value [[:w :x 1] [:w :y 1]], TIMES}
"""
TWO_CLOCKS = """
{:type :invoke, :process 0, :f :txn, :value [[:w :x 1]]}
{:type :ok, :process 0, :f :txn, :value [[:w :x 1]], :times [[90 95]], :commit [96 97]}
{:type :invoke, :process 1, :f :txn, :value [[:r :x nil]]}
{:type :ok, :process 1, :f :txn, :value [[:r :x nil]], :times [READ]}
"""


@pytest.mark.parametrize(("read", "outcome"), [("nil", "valid"), ("[98 99]", "invalid")])
def test_lines_bound_no_operation_of_another_clock(read: str, outcome: str) -> None:
    """The order of lines is real time, and says nothing of a clock that operations have."""
    history = of(TWO_CLOCKS.replace("READ", read))
    assert history.columns.two_clocks
    back = again(history, "edn")
    assert back.columns.two_clocks
    for one in (history, back):
        verdict = check(one, "postgresql-read-committed")
        assert (verdict.outcome, verdict.certified) == (outcome, True)
        # The verdict says what the history does not.
        said = [note for note in map(str, verdict.notes) if "have no times of their own" in note]
        assert [("1 of 2" in note, "`:time` in every map" in note) for note in said] == [
            (True, True)
        ] * (read == "nil")
        assert check(one, "sser").outcome == "invalid"


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (
            ":times [[29 32] [5 6]]",
            "operation 2 was answered at 6, before operation 1 was sent at 29",
        ),
        (":times [[30 31]]", "of 1 operations"),
        (":times [[1 2] nil]", "operation 1 was answered at 2, before the transaction began at 28"),
        (":times [nil [34 35]]", "COMMIT was answered at 33, before operation 2 was sent at 34"),
        (
            ":times [nil [34 35]], :commit [nil 36]",
            "transaction ended at 33, before operation 2 was",
        ),
        (":commit [34 nil]", "COMMIT was answered at 33, before COMMIT was sent at 34"),
    ],
)
def test_times_that_contradict_the_order_of_operations_are_refused(
    times: str, message: str
) -> None:
    """Two clocks, or operations that are not listed as they were done: no moment is known then."""
    with pytest.raises(HistoryError, match=f"line 3: times that .*{message}|{message}"):
        of(PAIR.replace("TIMES", times))


def test_an_answer_may_come_after_that_to_commit() -> None:
    """A client that pipelines may note it so; the operation was done before COMMIT all the same."""
    columns = of(PAIR.replace("TIMES", ":times [nil [30 32]], :commit [30 31]")).columns
    problem = build_problem(columns)
    assert (problem.first_answer[0], problem.commit_end[0]) == (31, 31)


def test_python_refuses_them_too() -> None:
    rows = [Transaction([("w", "x", 1), ("w", "y", 1)], begin=0, end=9, times=[(5, 6), (2, 3)])]
    with pytest.raises(HistoryError, match=r"transaction 1: .* operation 2 was answered at 3"):
        History.from_transactions(rows)


def some_times(rng: random.Random, *, one_clock: bool) -> History:
    """Transactions at work side by side, most of whose times are forgotten."""
    rows: list[Transaction] = []
    for session in range(rng.randint(2, 4)):
        now = rng.randint(0, 8)
        for _ in range(rng.randint(1, 2)):
            begin, pairs, ops = now, [], []
            for _ in range(rng.randint(0, 3)):
                sent = now + rng.randint(0, 2)
                now = sent + rng.randint(0, 3)
                pairs.append((sent, now))
                ops.append(operation(rng, len(rows) * 10 + len(ops)))
            commit, end = now + rng.randint(0, 2), now + 2 + rng.randint(0, 3)
            now = end + 1
            keep = rng.choice((0.2, 0.5, 0.8))

            def known(at: int, keep: float = keep) -> int | None:
                return at if rng.random() < keep else None

            times = [(known(a), known(b)) if rng.random() < 0.8 else None for a, b in pairs]
            status = rng.choice(("committed", "committed", "committed", "maybe", "aborted"))
            rows.append(
                Transaction(
                    ops,
                    session=session,
                    status=status,
                    begin=begin if one_clock else known(begin),
                    end=end if one_clock else known(end),
                    times=times if rng.random() < 0.6 else None,
                    commit=known(commit),
                    failed=(0,) if ops and ops[0][0] != "scan" and rng.random() < 0.1 else (),
                )
            )
    return History.from_transactions(rows)


def operation(rng: random.Random, value: int) -> tuple[Any, ...]:
    if rng.random() < 0.25:
        return ("scan", (">", "v", 900), {})
    key = rng.choice("xy")
    return ("r", key, UNKNOWN) if rng.random() < 0.4 else ("w", key, {"v": value})


@pytest.mark.parametrize("one_clock", [True, False])
def test_all_take_the_same_for_the_moments_of_a_transaction(one_clock: bool) -> None:
    """The pre-pass, the checker by definition and the interpretation, each by itself."""
    silent = 0
    for seed in range(150):
        rng = random.Random(f"partly {one_clock} {seed}")
        history = some_times(rng, one_clock=one_clock)
        columns = history.columns
        problem, facts, recorded = build_problem(columns), Facts(history), RecordedTimes(columns)
        if not (columns.has_time or columns.has_operation_times):
            continue
        silent += int((columns.statement_start == columns.statement_end).sum())
        for t in range(columns.transactions()):
            if columns.txn_status[t] == ABORTED:
                continue
            theirs = recorded.of(t)
            transaction = (theirs.first_answered, theirs.commit_sent, theirs.commit_answered)
            assert transaction == (
                problem.first_answer[t],
                problem.commit_begin[t],
                problem.commit_end[t],
            )
            assert transaction == (
                facts.first_answered(t),
                facts.commit_sent(t),
                facts.commit_answered(t),
            )
            for op in range(columns.op_start[t], columns.op_start[t + 1]):
                assert (theirs.sent[op], theirs.answered[op]) == facts.statement_times(op)
        for w, t in enumerate(problem.writer_txn.tolist()):
            if t == columns.transactions():
                continue
            key = int(np.searchsorted(problem.key_start, w, side="right")) - 1
            assert problem.write_answer[w] == facts.write_answered(t, key)
    assert silent > 50
