"""The transactions and checks that are to blame: a part that nothing can be left out of."""

from __future__ import annotations

import time
from collections.abc import Iterable

from msgspec import Struct

from isolang.encodings.relational import Encoding
from isolang.language.classify.relational import Relational
from isolang.language.meaning.core import Check
from isolang.problem import Inclusion, Problem
from isolang.solvers import relational as back_end


class Blamed(Struct, frozen=True, kw_only=True):
    """What is to blame.

    Attributes:
        transactions: no choice for these meets ``checks``.
        checks: the names of the checks.
    """

    transactions: tuple[int, ...]
    checks: tuple[str, ...]


class CorePart:
    """Leaves out transactions, and then checks, as long as the rest has no solution.

    Delta debugging (A. Zeller, R. Hildebrandt, TSE 2002). Unless the specification is closed under
    sub-histories, a part says nothing about the whole, and all transactions are to blame.
    """

    def __init__(
        self, problem: Problem, route: Relational, *, seed: int = 0, seconds: float
    ) -> None:
        """Take what has no solution, and how long to look."""
        self._problem = problem
        self._route = route
        self._seed = seed
        self._end = time.perf_counter() + seconds
        self._checks: tuple[Check, ...] = tuple(c for c in route.spec.checks if not c.flag)

    def found(self) -> Blamed:
        """The part, as small as the time allowed."""
        inclusion = self._problem.native.inclusion[:-1].tolist()
        left = [t for t, i in enumerate(inclusion) if i != Inclusion.OUT]
        if not self._route.not_closed:
            left = self._shrunk(left)
            self._shrink_checks(left)
        return Blamed(transactions=tuple(left), checks=tuple(check.name for check in self._checks))

    def _shrunk(self, left: list[int]) -> list[int]:
        chunk = max(1, len(left) // 2)
        start, removed = 0, False
        while time.perf_counter() < self._end:
            if start >= len(left):
                if chunk == 1 and not removed:
                    break
                chunk, start, removed = max(1, chunk // 2), 0, False
                continue
            fewer = left[:start] + left[start + chunk :]
            if self._unsolvable(fewer, self._checks):
                left, removed = fewer, True
            else:
                start += chunk
        return left

    def _shrink_checks(self, left: list[int]) -> None:
        for check in self._checks:
            fewer = tuple(c for c in self._checks if c is not check)
            if self._unsolvable(left, fewer):
                self._checks = fewer

    def _unsolvable(self, transactions: Iterable[int], checks: tuple[Check, ...]) -> bool:
        """Whether there is surely no solution; running out of time is none."""
        try:
            encoding = Encoding(
                self._problem,
                self._route.spec,
                checks=checks,
                only=transactions,
                tick=self._tick,
            )
            solver = back_end.Solver(encoding, seed=self._seed)
            left = max(self._end - time.perf_counter(), 0.01)
            return not solver.satisfiable(seconds=left)
        except TimeoutError:
            return False

    def _tick(self) -> None:
        if time.perf_counter() > self._end:
            raise TimeoutError
