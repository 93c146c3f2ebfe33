"""Relations and sets as plain rows of bits.

A relation is a dictionary from elements to the set of elements they are related to, a set of
elements being the bits of an integer; a set is the relation's single row, number 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress, count

Rows = dict[int, int]


def bits(row: int) -> Iterator[int]:
    """The elements of a set, ascending."""
    if row.bit_count() * _SPARSE > row.bit_length():
        digits = format(row, "b").encode().translate(_FLAGS)
        return compress(count(), reversed(digits))
    return _few_bits(row)


_SPARSE = 16
"""In a set with fewer members than one number in 16, the next one is looked for."""
_FLAGS = bytes.maketrans(b"01", b"\0\1")


def _few_bits(row: int) -> Iterator[int]:
    while row:
        low = row & -row
        yield low.bit_length() - 1
        row ^= low


def members_of(s: Rows) -> int:
    """The elements of a set as bits."""
    return s.get(0, 0)


def transposed(rows: Rows) -> Rows:
    """``a^-1``."""
    found: Rows = {}
    for i, row in rows.items():
        bit = 1 << i
        for j in bits(row):
            found[j] = found.get(j, 0) | bit
    return found


def bits_of(elements: Iterable[int]) -> int:
    """A set, of its elements."""
    found = 0
    for i in elements:
        found |= 1 << i
    return found


def union(parts: Iterable[Rows]) -> Rows:
    """``a | b | …``."""
    found: Rows = {}
    for part in parts:
        for i, row in part.items():
            found[i] = found.get(i, 0) | row
    return found


def closed(rows: Rows) -> Rows:
    """The transitive closure (S. Warshall, JACM 1962)."""
    reach = dict(rows)
    for k in rows:
        through, bit = reach[k], 1 << k
        for i, row in reach.items():
            if row & bit:
                reach[i] = row | through
    return reach
