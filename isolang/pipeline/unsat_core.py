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
from isolang.limits import Work
from isolang.problem import Inclusion, Problem
from isolang.problem.until import seconds_left
from isolang.solvers.answer import work_of
from isolang.solvers.registry import NATIVE, SOLVERS

# All of it together; of what is left, the share of one attempt, and what one may do in any case;
# and what an attempt, and each clause of it, costs beside its search.
_WORK, _SHARE, _LEAST = 30_000_000, 1 / 8, 30_000
_ATTEMPT, _PER_CLAUSE = 3_000, 5


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


def unsat_core(
    problem: Problem,
    route: Relational,
    *,
    seed: int = 0,
    work: Work | None = None,
    until: float | None = None,
) -> UnsatCore:
    """Leave out transactions, and then checks, as long as the rest has no model.

    Delta debugging (A. Zeller, R. Hildebrandt, TSE 2002). Unless the specification is closed under
    sub-histories, a part says nothing about the whole, and all transactions are needed.

    Args:
        problem: has no model.
        route: of the specification.
        seed: breaks ties.
        work: how much to do, by default for some ten seconds; the core is as small as it allows.
        until: a moment of ``time.perf_counter`` at which to stop, where the user set a limit.
    """
    return _Search(problem, route, seed, work or Work(_WORK), until).found()


class _Search:
    def __init__(
        self, problem: Problem, route: Relational, seed: int, work: Work, until: float | None
    ) -> None:
        self._problem = problem
        self._route = route
        self._seed = seed
        self._work = work
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
        while self._work.left and not self._late():
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

    def _late(self) -> bool:
        return self._until is not None and time.perf_counter() > self._until

    def _unsatisfiable(self, transactions: Sequence[int], checks: tuple[Check, ...]) -> bool:
        """Whether there is no model; ``False`` also where the time or the work ran out."""
        self._work.spend(_ATTEMPT)
        try:
            encoding = RelationalEncoding(
                self._problem,
                self._route.spec,
                checks=checks,
                only=transactions,
                tick=lambda: seconds_left(self._until),
            )
            formula = formula_of(encoding)
            self._work.spend(_PER_CLAUSE * formula.clause_count)
            # An encoding that was finished in time gets a short solve in any case.
            until = self._until and max(self._until, time.perf_counter() + 0.01)
            with self._work.part(_SHARE) as part:
                allowed = max(_LEAST, part.left)
                part.left = 0
                found = SOLVERS[NATIVE].solve(formula, until=until, seed=self._seed, work=allowed)
                part.give_back(allowed - work_of(found, formula))
        except TimeoutError:
            return False
        return not found.satisfiable
