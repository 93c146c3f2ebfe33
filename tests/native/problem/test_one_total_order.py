"""Whether all that is known without version orders fits in one line: all lines are tried."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from isolang.history import History, Transaction
from isolang.problem import InclusionStatus, build_problem


@st.composite
def histories(draw) -> History:
    """Few transactions over two keys and two values, so that reads have several candidates."""
    count = draw(st.integers(0, 6))
    operation = st.tuples(st.sampled_from("rrw"), st.sampled_from("xy"), st.sampled_from([0, 1, 2]))
    given = []
    for _ in range(count):
        begin = draw(st.integers(0, 6))
        given.append(
            Transaction(
                ops=[op for op in draw(st.lists(operation, max_size=3)) if op[::2] != ("w", 0)],
                session=draw(st.integers(0, 2)),
                status=draw(st.sampled_from(["committed", "committed", "maybe"])),
                begin=begin,
                end=begin + draw(st.integers(0, 2)),
            )
        )
    return History.from_transactions(given, initial=0)


def some_line_fits(history: History, sessions: bool, real_time: bool) -> bool:
    """By trying each order of each set of transactions that may be included."""
    problem = build_problem(history).native
    columns = history.columns

    def candidates(read: int) -> set[int]:
        start, end = problem.candidate_start[read : read + 2]
        return set(problem.writer_txn[problem.candidate[start:end]].tolist())

    reads: dict[int, list[set[int]]] = {}
    for i, t in enumerate(problem.read_txn.tolist()):
        reads.setdefault(t, []).append(candidates(i))

    def follows(t: int, s: int) -> bool:
        """Whether ``t`` must come after ``s``."""
        if problem.unfinished[s]:
            return False
        in_session = sessions and s < t and columns.txn_session[s] == columns.txn_session[t]
        return in_session or (real_time and columns.txn_end[s] < columns.txn_begin[t])

    def fits(line: tuple[int, ...]) -> bool:
        ran = {history.t0}
        for t in line:
            if any(not ran & sources for sources in reads.get(t, ())):
                return False
            if any(follows(t, s) for s in line if s not in ran):
                return False
            ran.add(t)
        return True

    inclusion = problem.inclusion.tolist()[: history.t0]
    must = [t for t, i in enumerate(inclusion) if i == InclusionStatus.IN]
    contradictory = set(problem.impossible.tolist())
    may = [
        t
        for t, i in enumerate(inclusion)
        if i == InclusionStatus.OPTIONAL and t not in contradictory
    ]
    return any(
        fits(line)
        for size in range(len(may) + 1)
        for some in combinations(may, size)
        for line in permutations([*must, *some])
    )


@pytest.mark.slow
@given(histories(), st.booleans(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_every_line_is_found(history: History, sessions: bool, real_time: bool) -> None:
    fits = build_problem(history).fits_one_total_order(sessions=sessions, real_time=real_time)
    event(f"fits: {fits}")
    assert fits == some_line_fits(history, sessions, real_time)


@pytest.mark.parametrize("sessions", [False, True])
@pytest.mark.parametrize("real_time", [False, True])
def test_what_was_read_before_it_was_written(sessions: bool, real_time: bool) -> None:
    """Only sessions and time say that the reader came first."""
    reader = Transaction([("r", "x", 1)], session=0, begin=0, end=1)
    writer = Transaction([("w", "x", 1)], session=0, begin=2, end=3)
    problem = build_problem(History.from_transactions([reader, writer]))
    fits = problem.fits_one_total_order(sessions=sessions, real_time=real_time)
    assert fits == (not sessions and not real_time)


def test_a_circle_of_reads_does_not_fit() -> None:
    """Each of two transactions reads what the other one wrote."""
    history = History.from_transactions(
        [
            Transaction([("r", "x", 1), ("w", "y", 1)], session=0),
            Transaction([("r", "y", 1), ("w", "x", 1)], session=1),
        ]
    )
    assert not build_problem(history).fits_one_total_order(sessions=False, real_time=False)
