"""Represents relations and sets as rows of bits.

A relation is a dictionary that maps each element to a row: the set of elements it is related to, as
an integer with one bit per element. A set that is not part of a relation is a dictionary with the
single row 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress, count

Rows = dict[int, int]


def bits(row: int) -> Iterator[int]:
    """Return the elements of a row, that is, the numbers of its set bits, in ascending order."""
    if row.bit_count() * _SPARSE > row.bit_length():
        digits = format(row, "b").encode().translate(_FLAGS)
        return compress(count(), reversed(digits))
    return _few_bits(row)


_SPARSE = 16
"""If fewer than one in this many bits are set, the set bits are found one by one."""
_FLAGS = bytes.maketrans(b"01", b"\0\1")


def _few_bits(row: int) -> Iterator[int]:
    while row:
        low = row & -row
        yield low.bit_length() - 1
        row ^= low


def set_members(s: Rows) -> int:
    """Return the elements of a set as a row."""
    return s.get(0, 0)


def inverse_of(rows: Rows) -> Rows:
    """Return the inverse of a relation, ``a^-1``."""
    found: Rows = {}
    for i, row in rows.items():
        bit = 1 << i
        for j in bits(row):
            found[j] = found.get(j, 0) | bit
    return found


def bits_of(elements: Iterable[int]) -> int:
    """Return the row with these elements."""
    found = 0
    for i in elements:
        found |= 1 << i
    return found


def union(parts: Iterable[Rows]) -> Rows:
    """Return the union of relations, ``a | b | …``."""
    found: Rows = {}
    for part in parts:
        for i, row in part.items():
            found[i] = found.get(i, 0) | row
    return found


def transitive_closure(rows: Rows) -> Rows:
    """Return the transitive closure of a relation.

    In an acyclic relation, an element reaches its successors and everything they reach; a successor
    reached by another successor is skipped. Relations with cycles use the algorithm of S. Warshall
    (JACM 1962).
    """
    reach: Rows = {}
    open_rows: dict[int, int] = {}  # for each element on the path, the successors to visit
    for start in rows:
        path = [start] if start not in reach else []
        while path:
            i = path[-1]
            if i not in open_rows:
                open_rows[i] = rows[i]
                reach[i] = 0
            rest, found = open_rows[i], reach[i]
            while rest:
                low = rest & -rest
                j = low.bit_length() - 1
                if j in open_rows:
                    return _warshall(rows)
                if j in rows and j not in reach:
                    path.append(j)
                    break
                found |= low | reach.get(j, 0)
                rest &= ~found
            open_rows[i], reach[i] = rest, found
            if not rest:
                del open_rows[i]
                path.pop()
    return reach


def _warshall(rows: Rows) -> Rows:
    reach = dict(rows)
    for k in rows:
        through, bit = reach[k], 1 << k
        for i, row in reach.items():
            if row & bit:
                reach[i] = row | through
    return reach
