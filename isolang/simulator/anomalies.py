"""Defines the bugs of the simulated database, each of which always plants one anomaly.

A fault that only sometimes does harm, such as an occasionally skipped check, yields histories that
may be valid or invalid. Therefore a bug is defined by transactions of its own. They are in sessions
with other transactions before and after them, they use two keys that no other transaction uses, and
they write values that no other transaction writes. The cycle among them involves no other
transaction. Therefore the levels in ``weakest`` are violated, whatever the other transactions do.

All other levels guaranteed by the rule are still satisfied, because at these instants the planted
transactions are those of a weaker database: the transactions of one anomaly all begin before one of
them takes effect (or, if *in sequence*, each begins after the previous one was answered), no other
transaction begins or ends in the meantime, replicas know all earlier transactions, and the
arguments of :mod:`isolang.simulator.rules` hold at these instants too.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

R, W = False, True
X, Y = 0, 1
NIL = 0  # the value of a read that finds the initial state

Operation = tuple[bool, int, int]


class Bug(Struct, frozen=True, kw_only=True):
    """A bug that plants one anomaly.

    Attributes:
        title: the operations of the transactions, in the notation of ``docs/anomalies.md``.
        strongest: the strongest levels that the transactions satisfy on their own.
        weakest: the weakest levels that the transactions violate; they also violate all stronger
            levels.
        transactions: for each transaction, its session (counted from 0), whether it aborts, and its
            operations. An operation consists of a flag for writes, a key and a value (0 for the
            initial state).
        concurrent: whether all transactions begin before one of them takes effect; otherwise they
            run in sequence.
        clock_ahead: whether the clock of the first session runs ahead, so that the recorded times
            of its transactions are too late.
    """

    name: str
    title: str
    strongest: tuple[str, ...]
    weakest: tuple[str, ...]
    transactions: tuple[tuple[int, bool, tuple[Operation, ...]], ...]
    concurrent: bool = True
    clock_ahead: bool = False

    @property
    def sessions(self) -> int:
        """Return the number of sessions in which the transactions run."""
        return 1 + max(session for session, _, _ in self.transactions)


BUGS: Final[dict[str, Bug]] = {
    bug.name: bug
    for bug in (
        Bug(
            name="lost update",
            title="r(x,nil) w(x,1) || r(x,nil) w(x,2)",
            strongest=("pc",),
            weakest=("psi",),
            transactions=(
                (0, False, ((R, X, NIL), (W, X, 1))),
                (1, False, ((R, X, NIL), (W, X, 2))),
            ),
        ),
        Bug(
            name="write skew",
            title="r(x,nil) r(y,nil) w(x,1) || r(x,nil) r(y,nil) w(y,1)",
            strongest=("strong-si",),
            weakest=("ser",),
            transactions=(
                (0, False, ((R, X, NIL), (R, Y, NIL), (W, X, 1))),
                (1, False, ((R, X, NIL), (R, Y, NIL), (W, Y, 1))),
            ),
        ),
        Bug(
            name="long fork",
            title="w(x,1) || w(y,1) || r(x,1) r(y,nil) || r(x,nil) r(y,1)",
            strongest=("psi",),
            weakest=("pc",),
            transactions=(
                (0, False, ((W, X, 1),)),
                (1, False, ((W, Y, 1),)),
                (2, False, ((R, X, 1), (R, Y, NIL))),
                (3, False, ((R, X, NIL), (R, Y, 1))),
            ),
        ),
        Bug(
            name="stale read",
            title="w(x,1) || r(x,nil), in sequence",
            strongest=("ser",),
            weakest=("strong-si",),
            transactions=((0, False, ((W, X, 1),)), (1, False, ((R, X, NIL),))),
            concurrent=False,
        ),
        Bug(
            name="aborted read",
            title="!w(x,1) || r(x,1)",
            strongest=("pl-1",),
            weakest=("pl-2",),
            transactions=((0, True, ((W, X, 1),)), (1, False, ((R, X, 1),))),
        ),
        Bug(
            name="fractured read",
            title="w(x,1) w(y,1) || r(x,nil) r(y,1)",
            strongest=("rc",),
            weakest=("ra",),
            transactions=(
                (0, False, ((W, X, 1), (W, Y, 1))),
                (1, False, ((R, X, NIL), (R, Y, 1))),
            ),
        ),
        Bug(
            name="lost session guarantee",
            title="w(x,1) -> r(x,nil)",
            strongest=("rc",),
            weakest=("ra",),
            transactions=((0, False, ((W, X, 1),)), (0, False, ((R, X, NIL),))),
            concurrent=False,
        ),
        Bug(
            name="clock skew",
            title="w(x,1) || r(x,1), in sequence, but recorded the other way round",
            strongest=("ser",),
            weakest=("strong-si",),
            transactions=((0, False, ((W, X, 1),)), (1, False, ((R, X, 1),))),
            concurrent=False,
            clock_ahead=True,
        ),
    )
}
