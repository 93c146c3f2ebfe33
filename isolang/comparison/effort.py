"""Limits the work of a comparison by counting it, because equal comparisons need equal answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from isolang._native import AcyclicSolver

# The number of solver conflicts allowed for one implication if the user sets no time limit. A
# lattice has thousands of implications and allows the smaller number for each.
CONFLICTS: Final = 200_000
OF_MANY: Final = 20_000
# `_LITERALS` new literals count as one conflict, and a solver call as `_CALL` conflicts.
_LITERALS, _CALL = 200, 5


class Effort:
    """The work that is still allowed for one implication.

    If the user sets a time limit, only the time is limited, and conflicts are not counted.
    """

    def __init__(self, conflicts: int = CONFLICTS, *, seconds: float | None = None) -> None:
        """Allow a number of conflicts; if ``seconds`` is given, limit the time from now instead."""
        self._all = self._remaining = conflicts
        self._until = None if seconds is None else time.perf_counter() + seconds

    def for_next(self) -> Effort:
        """Return the effort for the next implication: as many conflicts, or the remaining time."""
        other = Effort(self._all)
        other._until = self._until
        return other

    def for_first_of_two(self) -> Effort:
        """Return the effort for the first of two implications: half of the remaining time.

        Without a time limit, it is the number of conflicts for one implication.
        """
        other = self.for_next()
        if self._until is not None:
            other._until = (time.perf_counter() + self._until) / 2
        return other

    def solve(self, solver: AcyclicSolver, assumptions: Sequence[int], *, built: int) -> bool:
        """Return whether a solver's clauses have a model, and subtract the work from the effort.

        Raises:
            TimeoutError: if the remaining effort is not enough to decide whether a model exists.
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
