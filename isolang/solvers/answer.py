"""The answers of solvers to formulas, and to the histories that were encoded as formulas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, field

from isolang.certify.proofs import Proof, Relations, Witness

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang.encodings.formula import Formula

Cause: TypeAlias = Literal[
    "timeout",
    "memory",
    "unsupported",
    "crash",
    "certificate rejected",
    "disagreement",
    "unseen",
]


class Solution(Struct, frozen=True, kw_only=True):
    """A solver's answer to a formula; a solver without an answer raises ``TimeoutError`` instead.

    Attributes:
        satisfiable: whether some assignment satisfies the formula.
        values: int8[variables + 1]; if the formula is satisfiable, the value of each variable,
            which is 0 or 1. Entry 0 is unused.
        core: if the formula is unsatisfiable, the rows of ``Formula.reads`` that contradict the
            rest of the formula; ``None`` if the solver gives no core.
        statistics: what the solver counted, by name; ``conflicts`` is one of the names if the
            solver counts conflicts.
    """

    satisfiable: bool
    values: NDArray[np.int8] | None = None
    core: tuple[int, ...] | None = None
    statistics: Mapping[str, float] = field(default_factory=dict)


class Unproved(Struct, frozen=True, kw_only=True):
    """A solver's claim that a history has no model, without a proof.

    Attributes:
        core: the read operations that contradict the writes; ``None`` if the solver does not say
            which reads contradict them.
    """

    core: tuple[int, ...] | None = None


class Undecided(Struct, frozen=True, kw_only=True):
    """The outcome of a solver that did not decide whether a history has a model.

    Attributes:
        cause: the kind of reason why nothing was decided, for programs.
        reason: the reason as a sentence, for users.
    """

    cause: Cause
    reason: str


class Answer(Struct, frozen=True, kw_only=True):
    """The result of a solver for a history that an encoding translated to its input.

    Attributes:
        result: a model (a witness, or the relations that the specification quantifies over), a
            refutation, an unproved claim that no model exists, or why nothing was decided.
        statistics: what the solver counted, by name.
        formula: the formula that the solver got; ``None`` if the history was not encoded as a
            formula.
        work: how many times the native engine polled its budget.
    """

    result: Proof | Unproved | Undecided
    statistics: Mapping[str, float] = field(default_factory=dict)
    formula: Formula | None = None
    work: int = 0

    @property
    def outcome(self) -> Literal["valid", "invalid", "unknown"]:
        """The verdict that follows if the checker accepts the proof."""
        if isinstance(self.result, Undecided):
            return "unknown"
        return "valid" if isinstance(self.result, Witness | Relations) else "invalid"


# A conflict in an empty formula takes the first number of units of work. Each further `_SIZE`
# clauses and edges of the formula add one unit.
_CONFLICT, _SIZE = 300, 20


def conflicts_for(work: int, formula: Formula) -> int:
    """Return how many conflicts correspond to a limit of work; for both, 0 means no limit."""
    return max(1, work // _work_per_conflict(formula)) if work else 0


def work_of(solution: Solution, formula: Formula) -> int:
    """Return how much work a solution took, which is estimated from its number of conflicts."""
    return int(solution.statistics.get("conflicts", 0)) * _work_per_conflict(formula)


def _work_per_conflict(formula: Formula) -> int:
    return _CONFLICT + (formula.clause_count + len(formula.edges)) // _SIZE
