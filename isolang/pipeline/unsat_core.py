"""Finds unsat cores: small sets of transactions and checks that have no model."""

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
from isolang.problem import InclusionStatus, Problem
from isolang.problem.until import remaining_seconds
from isolang.solvers.answer import work_of
from isolang.solvers.registry import NATIVE, SOLVERS

# The work limit for the whole search, the share of the remaining work that one attempt may use, and
# the work that each attempt may use even if this share is smaller.
_WORK, _SHARE, _LEAST = 30_000_000, 1 / 8, 30_000
# The work charged for an attempt in addition to its search: once, and per clause.
_ATTEMPT, _PER_CLAUSE = 3_000, 5


class UnsatCore(Struct, frozen=True, kw_only=True):
    """A part of a history and a part of a specification that together have no model.

    Attributes:
        transactions: the numbers of transactions over which no choice of relations meets
            ``checks``.
    """

    transactions: tuple[int, ...]
    checks: tuple[str, ...]

    @property
    def proof(self) -> Exhaustion:
        """The proof for the core's transactions, checked by trying every choice."""
        return Exhaustion(self.transactions)


def unsat_core(
    problem: Problem,
    route: Relational,
    *,
    seed: int = 0,
    work: Work | None = None,
    until: float | None = None,
) -> UnsatCore:
    """Find an unsat core by delta debugging (A. Zeller, R. Hildebrandt, TSE 2002).

    First transactions and then checks are dropped, as long as the rest has no model. If the
    specification is not closed under sub-histories, a part proves nothing about the whole history,
    so all transactions and all checks are kept.

    Args:
        work: the work limit, by default about ten seconds' worth; more work gives a smaller core.
    """
    return _UnsatCoreSearch(problem, route, seed, work or Work(_WORK), until).found()


class _UnsatCoreSearch:
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
        members = [t for t, i in enumerate(inclusion) if i != InclusionStatus.OUT]
        if not self._route.not_closed:
            members = self._fewer_transactions(members)
            self._fewer_checks(members)
        return UnsatCore(transactions=tuple(members), checks=tuple(c.name for c in self._checks))

    def _fewer_transactions(self, members: list[int]) -> list[int]:
        chunk = max(1, len(members) // 2)
        start, removed = 0, False
        while self._work.left and not self._late():
            if start >= len(members):
                if chunk == 1 and not removed:
                    break
                chunk, start, removed = max(1, chunk // 2), 0, False
                continue
            fewer = members[:start] + members[start + chunk :]
            if self._unsatisfiable(fewer, self._checks):
                members, removed = fewer, True
            else:
                start += chunk
        return members

    def _fewer_checks(self, members: list[int]) -> None:
        for check in self._checks:
            fewer = tuple(c for c in self._checks if c is not check)
            if self._unsatisfiable(members, fewer):
                self._checks = fewer

    def _late(self) -> bool:
        return self._until is not None and time.perf_counter() > self._until

    def _unsatisfiable(self, transactions: Sequence[int], checks: tuple[Check, ...]) -> bool:
        """Return whether a solver shows that no model exists; false if time or work runs out."""
        self._work.spend(_ATTEMPT)
        try:
            encoding = RelationalEncoding(
                self._problem,
                self._route.spec,
                checks=checks,
                only=transactions,
                tick=lambda: remaining_seconds(self._until),
            )
            formula = formula_of(encoding)
            self._work.spend(_PER_CLAUSE * formula.clause_count)
            # If the encoding finished in time, the solver always gets at least a short time.
            until = self._until and max(self._until, time.perf_counter() + 0.01)
            with self._work.part(_SHARE) as part:
                allowed = max(_LEAST, part.left)
                part.left = 0
                found = SOLVERS[NATIVE].solve(formula, until=until, seed=self._seed, work=allowed)
                part.give_back(allowed - work_of(found, formula))
        except TimeoutError:
            return False
        return not found.satisfiable
