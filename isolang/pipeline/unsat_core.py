"""Unsat cores: transactions and checks for which there is no model, and of which all are needed."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import Struct

from isolang.certify.proofs import Exhaustion
from isolang.encodings.relational.encoding import RelationalEncoding
from isolang.encodings.relational.formula import formula_of
from isolang.language.classify.relational import Relational
from isolang.language.meaning.core import Check
from isolang.problem import Inclusion, Problem
from isolang.solvers.answer import seconds_left
from isolang.solvers.registry import NATIVE, SOLVERS


class UnsatCore(Struct, frozen=True, kw_only=True):
    """A part of a history, and of a specification, without a model.

    Attributes:
        transactions: no choice for these meets ``checks``.
        checks: the names of the checks.
    """

    transactions: tuple[int, ...]
    checks: tuple[str, ...]

    @property
    def proof(self) -> Exhaustion:
        """The claim that the checker verifies by trying every choice."""
        return Exhaustion(self.transactions)


def unsat_core(problem: Problem, route: Relational, *, seed: int = 0, seconds: float) -> UnsatCore:
    """Leave out transactions, and then checks, as long as the rest has no model.

    Delta debugging (A. Zeller, R. Hildebrandt, TSE 2002). Unless the specification is closed under
    sub-histories, a part says nothing about the whole, and all transactions are needed.

    Args:
        problem: has no model.
        route: of the specification.
        seed: breaks ties.
        seconds: how long to look; the core is as small as they allow.
    """
    return _Search(problem, route, seed, time.perf_counter() + seconds).found()


class _Search:
    def __init__(self, problem: Problem, route: Relational, seed: int, until: float) -> None:
        self._problem = problem
        self._route = route
        self._seed = seed
        self._until = until
        self._checks: tuple[Check, ...] = tuple(c for c in route.spec.checks if not c.flag)

    def found(self) -> UnsatCore:
        inclusion = self._problem.native.inclusion[:-1].tolist()
        left = [t for t, i in enumerate(inclusion) if i != Inclusion.OUT]
        if not self._route.not_closed:
            left = self._fewer_transactions(left)
            self._fewer_checks(left)
        return UnsatCore(transactions=tuple(left), checks=tuple(c.name for c in self._checks))

    def _fewer_transactions(self, left: list[int]) -> list[int]:
        chunk = max(1, len(left) // 2)
        start, removed = 0, False
        while time.perf_counter() < self._until:
            if start >= len(left):
                if chunk == 1 and not removed:
                    break
                chunk, start, removed = max(1, chunk // 2), 0, False
                continue
            fewer = left[:start] + left[start + chunk :]
            if self._unsatisfiable(fewer, self._checks):
                left, removed = fewer, True
            else:
                start += chunk
        return left

    def _fewer_checks(self, left: list[int]) -> None:
        for check in self._checks:
            fewer = tuple(c for c in self._checks if c is not check)
            if self._unsatisfiable(left, fewer):
                self._checks = fewer

    def _unsatisfiable(self, transactions: Sequence[int], checks: tuple[Check, ...]) -> bool:
        """Whether there is no model; ``False`` also where the time ran out."""
        try:
            encoding = RelationalEncoding(
                self._problem,
                self._route.spec,
                checks=checks,
                only=transactions,
                tick=lambda: seconds_left(self._until),
            )
            # An encoding that was finished in time gets a short solve in any case.
            until = max(self._until, time.perf_counter() + 0.01)
            solver = SOLVERS[NATIVE]
            found = solver.solve(formula_of(encoding), until=until, seed=self._seed)
        except TimeoutError:
            return False
        return not found.satisfiable
