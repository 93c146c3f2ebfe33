"""Set operations on integer arrays, implemented by sorting.

Since numpy 2.3, ``unique`` and ``isin`` hash integers, which is a hundred times slower if many of
them are close to each other, as are the numbers that encode pairs.
"""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias, TypeVar

from numpy.typing import NDArray

from isolang.arrays import np

_Numbers: TypeAlias = NDArray[np.integer[Any]]
_N = TypeVar("_N", bound=np.integer[Any])


def distinct(numbers: NDArray[_N]) -> NDArray[_N]:
    """Return the numbers in ascending order, without duplicates."""
    found = np.sort(numbers)
    first = np.ones(len(found), bool)
    first[1:] = found[1:] != found[:-1]
    return found[first]


def is_among(numbers: _Numbers, some: _Numbers) -> NDArray[np.bool_]:
    """Return, for each element of ``numbers``, whether it is in ``some``."""
    ascending = np.sort(some)
    if not len(ascending):
        return np.zeros(numbers.shape, bool)
    place = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    same: NDArray[np.bool_] = ascending[place] == numbers
    return same


def distinct_rows(rows: NDArray[_N]) -> NDArray[_N]:
    """Return the rows in lexicographic order, without duplicates."""
    if not rows.size:
        return rows
    least = rows.min(axis=0)
    sizes = [int(most) - int(few) + 1 for most, few in zip(rows.max(axis=0), least, strict=True)]
    if prod(sizes) < 2**63:
        code = np.zeros(len(rows), np.int64)
        for column, few, size in zip(rows.T, least, sizes, strict=True):
            code = code * size + (column.astype(np.int64) - few)
        found = np.unravel_index(distinct(code), sizes)
        each: NDArray[_N] = (np.stack(found, axis=1) + least).astype(rows.dtype)
        return each
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    first = np.ones(len(ordered), bool)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return ordered[first]
