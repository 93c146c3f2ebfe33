"""The moments of a problem's transactions, and the comparison of two moments."""

from __future__ import annotations

from functools import cached_property
from typing import TypeAlias

from isolang.encodings.relational.interpretation import Moment
from isolang.encodings.relational.moments import Moments, RecordedTimes
from isolang.history.columns import UNKNOWN_BEGIN, UNKNOWN_END
from isolang.problem import Problem

At: TypeAlias = tuple[int, int]
"""A moment: its time, and the session whose clock measured it."""


class ProblemTimes:
    """The moments of a problem's transactions."""

    def __init__(self, problem: Problem) -> None:
        """Prepare to compute the moments of a problem's transactions on demand."""
        self._native = native = problem.native
        self._columns = problem.history.columns
        self._unfinished: list[int] = native.unfinished.tolist()
        self._session: list[int] = native.session.tolist()
        self._slack: list[int] = native.slack.tolist()
        self._known: dict[int, Moments] = {}

    def moment(self, what: Moment, txn: int, op: int | None) -> At | None:
        """Return a moment of a transaction or of one of its operations.

        If the moment's time is unknown, return ``None``.
        """
        time = self._time(what, txn, op)
        return None if time in (UNKNOWN_BEGIN, UNKNOWN_END) else (time, self._session[txn])

    def precedes(self, a: At, b: At) -> bool:
        """Return whether moment a certainly precedes moment b.

        Two moments of one session are compared by that session's clock, with no allowance for clock
        error.
        """
        (answered, session), (sent, other) = a, b
        if answered < sent:
            return True
        return bool(self._slack and session == other and answered - self._slack[session] < sent)

    def _time(self, what: Moment, txn: int, op: int | None) -> int:
        match what, op:
            case Moment.BEGIN, _:
                return int(self._native.begin[txn])
            case Moment.END, _:
                return UNKNOWN_END if self._unfinished[txn] else int(self._native.end[txn])
            case Moment.FIRST_ANSWERED, _:
                return self._moments(txn).first_answered
            case Moment.COMMIT_SENT, _:
                return self._moments(txn).commit_sent
            case Moment.COMMITTED, _:
                return self._moments(txn).commit_answered
            case Moment.READ_SENT, int(op):
                return self._moments(txn).sent[op]
            case ((Moment.WRITE_ANSWERED | Moment.READ_ANSWERED), int(op)):
                return self._moments(txn).answered[op]
        raise AssertionError(what)

    def _moments(self, txn: int) -> Moments:
        if txn not in self._known:
            self._known[txn] = self._recorded.of(txn)
        return self._known[txn]

    @cached_property
    def _recorded(self) -> RecordedTimes:
        return RecordedTimes(self._columns)
