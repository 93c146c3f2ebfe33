"""The clauses of a formula with a selector per read, for solvers that give cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from isolang.encodings.formula import Formula, Ints


def with_selectors(formula: Formula) -> tuple[Ints, list[int]]:
    """Add a new variable to the clause of each read, which the clause needs as an assumption.

    Returns:
        The clauses, with a 0 after each one, and the selector of each row of ``Formula.reads``.
    """
    (ends,) = np.nonzero(formula.clauses == 0)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1])[: len(ends)]
    first = formula.variables + 1
    selectors = np.arange(first, first + len(formula.reads), dtype=np.int32)
    guarded = np.insert(formula.clauses, starts[formula.reads[:, 1]], -selectors)
    return guarded, selectors.tolist()
