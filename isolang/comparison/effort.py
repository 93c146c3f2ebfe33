"""How much a comparison may take: counted, so that equal questions have equal answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from isolang._native import AcyclicSolver

# What one question may take unless the user names seconds, in conflicts of the solver; a question
# of the lattice, of which there are thousands, takes less.
CONFLICTS: Final = 200_000
OF_MANY: Final = 20_000
# To build so many literals takes as long as one conflict, and no call of the solver is for nothing.
_LITERALS, _CALL = 200, 5


class Effort:
    """What one question may still take.

    Where the user names seconds, these are the limit, and conflicts do not count.
    """

    def __init__(self, conflicts: int = CONFLICTS, *, seconds: float | None = None) -> None:
        """Allow a number of conflicts, or some seconds from now on."""
        self._all = self._left = conflicts
        self._until = None if seconds is None else time.perf_counter() + seconds

    def another(self) -> Effort:
        """The effort for another question: as many conflicts, or the seconds that are left."""
        other = Effort(self._all)
        other._until = self._until
        return other

    def half(self) -> Effort:
        """The effort for the first of two questions, which share the seconds."""
        other = self.another()
        if self._until is not None:
            other._until = (time.perf_counter() + self._until) / 2
        return other

    def solve(self, solver: AcyclicSolver, assumptions: Sequence[int], *, built: int) -> bool:
        """Whether there is a model.

        Args:
            solver: with all clauses.
            assumptions: literals that must be true.
            built: how many literals were added since the last call.

        Raises:
            TimeoutError: it was not found out.
        """
        if self._until is not None:
            seconds = self._until - time.perf_counter()
            if seconds <= 0:
                raise TimeoutError
            return bool(solver.solve(seconds=seconds, assumptions=assumptions))
        self._left -= _CALL + built // _LITERALS
        if self._left <= 0:
            raise TimeoutError
        before = solver.statistics()["conflicts"]
        found = solver.solve(max_conflicts=self._left, assumptions=assumptions)
        self._left -= solver.statistics()["conflicts"] - before
        if found is None:
            raise TimeoutError
        return found
