"""The effort that a comparison may spend, which is counted so equal questions get equal answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from isolang._native import AcyclicSolver

# The effort of one question in conflicts of the solver, if the user gives no seconds. The lattice
# asks thousands of questions and may give less effort to each.
CONFLICTS: Final = 200_000
OF_MANY: Final = 20_000
# Building this many literals counts as one conflict, and each call of the solver counts as some
# conflicts.
_LITERALS, _CALL = 200, 5


class Effort:
    """The effort that one question may still spend.

    If the user gives seconds, only the seconds are limited, and conflicts do not count.
    """

    def __init__(self, conflicts: int = CONFLICTS, *, seconds: float | None = None) -> None:
        """Allow a number of conflicts, or some seconds from now on."""
        self._all = self._remaining = conflicts
        self._until = None if seconds is None else time.perf_counter() + seconds

    def for_next(self) -> Effort:
        """Return the effort for the next question: as many conflicts, or the remaining seconds."""
        other = Effort(self._all)
        other._until = self._until
        return other

    def for_first_of_two(self) -> Effort:
        """Return the effort for the first of two questions, which share the seconds."""
        other = self.for_next()
        if self._until is not None:
            other._until = (time.perf_counter() + self._until) / 2
        return other

    def solve(self, solver: AcyclicSolver, assumptions: Sequence[int], *, built: int) -> bool:
        """Return whether the solver finds a model within the effort.

        Args:
            solver: the solver, with all clauses.
            assumptions: literals that must be true.
            built: the number of literals added since the last call.

        Raises:
            TimeoutError: if the effort was too small to decide this.
        """
        if self._until is not None:
            seconds = self._until - time.perf_counter()
            if seconds <= 0:
                raise TimeoutError
            return bool(solver.solve(seconds=seconds, assumptions=assumptions))
        self._remaining -= _CALL + built // _LITERALS
        if self._remaining <= 0:
            raise TimeoutError
        before = solver.statistics()["conflicts"]
        found = solver.solve(max_conflicts=self._remaining, assumptions=assumptions)
        self._remaining -= solver.statistics()["conflicts"] - before
        if found is None:
            raise TimeoutError
        return found
