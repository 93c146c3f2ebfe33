"""The answers of solvers, to formulas and to the histories that were encoded as formulas."""

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
    """The answer of a solver to a formula; at the deadline it raises ``TimeoutError`` instead.

    Attributes:
        satisfiable: whether there is an assignment.
        values: int8[variables + 1]; the value of each variable, 0 or 1 (entry 0 is unused), if the
            formula is satisfiable.
        core: the rows of ``Formula.reads`` that contradict the rest of an unsatisfiable formula;
            ``None`` if the solver gives no core.
        statistics: the solver's counts by name, with ``conflicts`` if it counts them.
    """

    satisfiable: bool
    values: NDArray[np.int8] | None = None
    core: tuple[int, ...] | None = None
    statistics: Mapping[str, float] = field(default_factory=dict)


class Unproved(Struct, frozen=True, kw_only=True):
    """The claim, without a proof, that a history has no model.

    Attributes:
        core: the read operations that contradict the writes; ``None`` if they are not known.
    """

    core: tuple[int, ...] | None = None


class Undecided(Struct, frozen=True, kw_only=True):
    """The outcome of a solver that did not decide whether a history has a model.

    Attributes:
        cause: the kind of reason.
        reason: the reason as a sentence.
    """

    cause: Cause
    reason: str


class Answer(Struct, frozen=True, kw_only=True):
    """The answer of an encoding with a solver to a history.

    Attributes:
        result: a model (a witness, or the relations that the specification quantifies over), a
            refutation, an unproved claim that no model exists, or why nothing was decided.
        statistics: the solver's counts by name.
        formula: the formula that was solved, if the history was encoded as one.
        work: how many times the native engine polled its budget.
    """

    result: Proof | Unproved | Undecided
    statistics: Mapping[str, float] = field(default_factory=dict)
    formula: Formula | None = None
    work: int = 0

    @property
    def outcome(self) -> Literal["valid", "invalid", "unknown"]:
        """The verdict, if the checker accepts the proof."""
        if isinstance(self.result, Undecided):
            return "unknown"
        return "valid" if isinstance(self.result, Witness | Relations) else "invalid"


# The work of a conflict in an empty formula, and how many clauses and edges add 1 to that work.
_CONFLICT, _SIZE = 300, 20


def conflicts_for(work: int, formula: Formula) -> int:
    """Return the number of conflicts that correspond to an amount of work; 0 for no limit."""
    return max(1, work // _of_conflict(formula)) if work else 0


def work_of(solution: Solution, formula: Formula) -> int:
    """Return the work that a solution took."""
    return int(solution.statistics.get("conflicts", 0)) * _of_conflict(formula)


def _of_conflict(formula: Formula) -> int:
    return _CONFLICT + (formula.clause_count + len(formula.edges)) // _SIZE
