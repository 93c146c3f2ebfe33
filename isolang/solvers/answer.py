"""Solvers' answers to formulas, and to the histories encoded as formulas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, field

from isolang.arrays import np
from isolang.certify.proofs import Proof, Relations, Witness

if TYPE_CHECKING:
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
    "superseded reads",
    "units",
    "possible facts",
]


class Solution(Struct, frozen=True, kw_only=True):
    """A solver's answer to a formula. A solver without an answer raises ``TimeoutError`` instead.

    Attributes:
        satisfiable: whether some assignment satisfies the formula.
        values: int8[variables + 1]; if the formula is satisfiable, the value of each variable, 0 or
            1. Entry 0 is unused.
        core: if the formula is unsatisfiable, the rows of ``Formula.reads`` that contradict the
            rest of the formula; ``None`` if the solver returns no core.
        statistics: the solver's counters, by name; they include ``conflicts`` if the solver counts
            conflicts.
    """

    satisfiable: bool
    values: NDArray[np.int8] | None = None
    core: tuple[int, ...] | None = None
    statistics: Mapping[str, float] = field(default_factory=dict)


class Unproved(Struct, frozen=True, kw_only=True):
    """A solver's claim that a history has no model, without a proof.

    Attributes:
        core: the read operations that contradict the writes; ``None`` if the solver does not
            identify them.
    """

    core: tuple[int, ...] | None = None


class Undecided(Struct, frozen=True, kw_only=True):
    """The outcome when a solver did not decide whether a history has a model."""

    cause: Cause
    reason: str


class Answer(Struct, frozen=True, kw_only=True):
    """A solver's result for an encoded history.

    Attributes:
        result: a model (a witness, or the relations that the specification quantifies over), a
            refutation, an unproved claim that no model exists, or the reason why nothing was
            decided.
        formula: the formula passed to the solver; ``None`` if the history was not encoded as a
            formula.
        work: the number of times the native engine polled its budget.
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


# A conflict in an empty formula takes `_CONFLICT` units of work. Every `_SIZE` clauses and edges of
# the formula add one unit.
_CONFLICT, _SIZE = 300, 20


def conflicts_for(work: int, formula: Formula) -> int:
    """Return the number of conflicts equivalent to a work limit; for both, 0 means no limit."""
    return max(1, work // _work_per_conflict(formula)) if work else 0


def work_of(solution: Solution, formula: Formula) -> int:
    """Return the work a solution took, estimated from its number of conflicts."""
    return int(solution.statistics.get("conflicts", 0)) * _work_per_conflict(formula)


def _work_per_conflict(formula: Formula) -> int:
    return _CONFLICT + (formula.clause_count + len(formula.edges)) // _SIZE
