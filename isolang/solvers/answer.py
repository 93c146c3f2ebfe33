"""What a solver says: about a formula, and about the history that the formula was made of."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, field

from isolang.certify.proofs import Proof, Relations, Witness

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang.encodings.formula import Formula

Cause: TypeAlias = Literal[
    "timeout", "memory", "unsupported", "crash", "certificate rejected", "disagreement"
]


class Solution(Struct, frozen=True, kw_only=True):
    """What a back end says about a formula; that the time ran out is a ``TimeoutError`` instead.

    Attributes:
        satisfiable: whether there is an assignment.
        values: int8[variables + 1]; 0 or 1 by variable, entry 0 unused; if satisfiable.
        core: if unsatisfiable and the solver gives cores: the rows of ``Formula.reads`` that clash
            with all the rest; ``None`` if it gives none.
        statistics: what the solver did, by name; ``conflicts`` where it counts them.
    """

    satisfiable: bool
    values: NDArray[np.int8] | None = None
    core: tuple[int, ...] | None = None
    statistics: Mapping[str, float] = field(default_factory=dict)


class Unproved(Struct, frozen=True, kw_only=True):
    """That a history has no model; a claim without a proof.

    Attributes:
        core: operations: the reads that clash with all the writes, or ``None`` if not known.
    """

    core: tuple[int, ...] | None = None


class Undecided(Struct, frozen=True, kw_only=True):
    """That it was not found out whether a history has a model.

    Attributes:
        cause: the kind of reason.
        reason: why not, in words.
    """

    cause: Cause
    reason: str


class Answer(Struct, frozen=True, kw_only=True):
    """What an encoding and a solver together say about a history.

    Attributes:
        says: that there is a model, and which (a witness, or the relations that the specification
            asks for); that there is none, and why; that there is none, without a proof; or nothing.
        statistics: what the solver did, by name.
        formula: what was solved, if the history was encoded as a formula.
    """

    says: Proof | Unproved | Undecided
    statistics: Mapping[str, float] = field(default_factory=dict)
    formula: Formula | None = None

    @property
    def outcome(self) -> Literal["valid", "invalid", "unknown"]:
        """The verdict that this is, if the checker agrees."""
        if isinstance(self.says, Undecided):
            return "unknown"
        return "valid" if isinstance(self.says, Witness | Relations) else "invalid"


def seconds_left(until: float | None) -> float | None:
    """Seconds until a moment of ``time.perf_counter``; ``None`` if there is no limit.

    Raises:
        TimeoutError: it has passed.
    """
    if until is None:
        return None
    left = until - time.perf_counter()
    if left <= 0:
        raise TimeoutError
    return left
