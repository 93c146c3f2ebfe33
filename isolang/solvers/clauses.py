"""Adds a selector to the clause of each read, for solvers that return cores of assumptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.arrays import np

if TYPE_CHECKING:
    from isolang.encodings.formula import Formula, Ints


def with_selectors(formula: Formula) -> tuple[Ints, list[int]]:
    """Add a new variable, the selector, to each read's clause.

    The clause applies only if the solver assumes the selector.

    Returns:
        The clauses in one array, with a 0 after each clause, and the selector for each row of
        ``Formula.reads``.
    """
    (ends,) = np.nonzero(formula.clauses == 0)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1])[: len(ends)]
    first = formula.variables + 1
    selectors = np.arange(first, first + len(formula.reads), dtype=np.int32)
    guarded = np.insert(formula.clauses, starts[formula.reads[:, 1]], -selectors)
    return guarded, selectors.tolist()
