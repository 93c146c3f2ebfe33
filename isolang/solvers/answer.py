"""What a back end says about a formula, and a pair about a problem."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang.encodings.relational import Chosen


class Answer(Struct, frozen=True, kw_only=True):
    """A solver's answer; that it found none in time is a ``TimeoutError`` instead.

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


class NoModel(Struct, frozen=True, kw_only=True):
    """That a pair found no model; a claim, not yet a proof.

    Attributes:
        core: operations: the reads that clash with all the writes, or ``None`` if not known.
        statistics: as in :class:`~isolang.solvers.native.Model`.
    """

    core: tuple[int, ...] | None
    statistics: dict[str, float] = field(default_factory=dict)


class ChosenRelations(Struct, frozen=True, kw_only=True):
    """A model of a specification as it is written: the relations that it asks for.

    Attributes:
        chosen: what is chosen.
        statistics: as in :class:`~isolang.solvers.native.Model`.
    """

    chosen: Chosen
    statistics: dict[str, float] = field(default_factory=dict)


class WrongModelError(Exception):
    """A solver's assignment is no model."""


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
