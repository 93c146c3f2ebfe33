"""Finds a small part of an invalid history that still violates the level."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from isolang.certify.proofs import Exhaustion
from isolang.errors import IsolangError
from isolang.explain.part import HistoryPart, Sources, operations_of, part_of, whole_part
from isolang.explain.shrink import shrink
from isolang.limits import Deadline, Work
from isolang.options import Options
from isolang.pipeline.decision import decide
from isolang.problem import build_problem
from isolang.verdict import Invalid

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.classify.route import Route

# How many parts are judged at most, and how many operations these parts may have together. Judging
# that many takes some seconds.
_PARTS, _OPERATIONS = 2_000, 2_000_000
# The limit of work for judging or explaining one part.
_WORK = 10_000_000


def minimise(
    verdict: Invalid, route: Route, *, seconds: float | None = None, seed: int = 0
) -> History:
    """Find a small part of a history that violates the level.

    The part may show a simpler violation than the violation that the verdict reports.

    Args:
        verdict: the verdict on the whole history.
        route: the route of the specification that the history violates.
        seconds: the time limit for the search; ``None`` for no limit. The number of attempts is
            always limited. Without a time limit, equal histories give equal parts.
        seed: the number that breaks ties in searches, as in ``check``.

    Returns:
        A part from which no transaction and no operation can be removed without losing the
        violation or a possible source of a read. If the search reached a limit, the part may be
        larger. Names and places of transactions are those of the whole history.
    """
    return _Minimiser(verdict, route, seconds, seed).found()


def anomaly_of(part: History, route: Route, *, seed: int = 0) -> str:
    """Return the name of the anomaly in a part, which may differ from that of the whole history.

    If the part cannot be shown to be invalid within a limit of work, return an empty text.

    Args:
        part: a result of ``minimise``.
        route: the route of the specification that the part violates.
        seed: the number that breaks ties in searches, as in ``check``.
    """
    options = Options(certify=False, seed=seed, threads=1)
    found = decide(part, route, Deadline(), options, work=Work(_WORK))
    return found.violation.anomaly if isinstance(found, Invalid) else ""


class _Minimiser:
    def __init__(self, verdict: Invalid, route: Route, seconds: float | None, seed: int) -> None:
        self._verdict = verdict
        self._route = route
        self._end = None if seconds is None else time.perf_counter() + seconds
        self._options = Options(certify=False, seed=seed, threads=1)
        problem = build_problem(verdict.history)
        self._sources = Sources(problem)
        self._wrong = {(one.kind, one.op) for one in problem.anomalies()}
        self._parts, self._operations = _PARTS, _OPERATIONS

    def found(self) -> History:
        beginnings = (part for part in self._beginnings() if self._violates(part))
        part = next(beginnings, None) or whole_part(self._verdict.history)
        part = shrink(part, self._violates, by_transaction=True, enough=self._enough)
        return shrink(part, self._violates, by_transaction=False, enough=self._enough).history

    def _beginnings(self) -> Iterator[HistoryPart]:
        """Yield the parts with which the search may begin, the smallest part first.

        The parts consist of the transactions that the proof mentions, and of possible sources.
        """
        history, proof = self._verdict.history, self._verdict.refutation
        if isinstance(proof, Exhaustion):
            txns = set(proof.transactions)
        else:
            yield self._sources.relevant_part(proof.steps)
            txns = self._sources.closed(proof.steps)
        yield part_of(history, operations_of(history, txns), txns)
        txns = self._with_writers(txns)
        yield part_of(history, operations_of(history, txns), txns)

    def _with_writers(self, txns: set[int]) -> set[int]:
        """Return the transactions together with, transitively, all possible sources of reads."""
        t0 = self._verdict.history.t0
        found, new = set(txns), set(txns)
        while new:
            ops = operations_of(self._verdict.history, new)
            new = {txn for op in ops for txn in self._sources.candidates(op) if txn < t0} - found
            found |= new
        return found

    def _enough(self) -> bool:
        late = self._end is not None and time.perf_counter() > self._end
        return late or self._parts <= 0 or self._operations <= 0

    def _violates(self, part: HistoryPart) -> bool:
        self._parts -= 1
        self._operations -= len(part.ops)
        if not self._sources.keeps_candidates(part) or self._makes_wrong(part):
            return False
        remaining = None if self._end is None else max(0.1, self._end - time.perf_counter())
        deadline, work = Deadline(remaining), Work(_WORK)
        try:
            found = decide(
                part.history, self._route, deadline, self._options, simplest=False, work=work
            )
        except IsolangError:
            return False  # the part cannot be judged, for example because it lacks times
        return isinstance(found, Invalid)

    def _makes_wrong(self, part: HistoryPart) -> bool:
        """Return whether a part shows an intrinsic anomaly that the whole history does not show."""
        found = build_problem(part.history).anomalies()
        return any((one.kind, part.ops[one.op]) not in self._wrong for one in found)
