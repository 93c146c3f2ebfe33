"""Sets of whole numbers in arrays, by sorting.

Since numpy 2.3 ``unique`` and ``isin`` of integers hash them, which takes a hundred times as long
where many numbers are close to each other, as those of pairs are.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

_Numbers: TypeAlias = NDArray[np.integer[Any]]
_N = TypeVar("_N", bound=np.integer[Any])


def distinct(numbers: NDArray[_N]) -> NDArray[_N]:
    """The numbers, each once, ascending."""
    found = np.sort(numbers)
    first = np.ones(len(found), bool)
    first[1:] = found[1:] != found[:-1]
    return found[first]


def among(numbers: _Numbers, some: _Numbers) -> NDArray[np.bool_]:
    """For each number whether it is one of some."""
    ascending = np.sort(some)
    if not len(ascending):
        return np.zeros(numbers.shape, bool)
    place = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    same: NDArray[np.bool_] = ascending[place] == numbers
    return same


def distinct_rows(rows: NDArray[_N]) -> NDArray[_N]:
    """The rows, each once, ascending by their first numbers, then the others."""
    order = np.lexsort(rows.T[::-1])
    found = rows[order]
    first = np.ones(len(found), bool)
    first[1:] = (found[1:] != found[:-1]).any(axis=1)
    return found[first]
