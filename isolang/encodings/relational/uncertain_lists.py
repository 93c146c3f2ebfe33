"""The version orders shown by list reads of indeterminate transactions, if these are included.

The problem has the order shown by the longest certain list of a key, which contains the orders from
all prefixes of that list. This module evaluates the lists read by transactions that may be
excluded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

from isolang.encodings.relational.circuit import TRUE
from isolang.history.columns import APPEND, READ_LIST, UNKNOWN_VALUE

if TYPE_CHECKING:
    from isolang.history.history import History


class UncertainLists:
    """The list reads by transactions that may be excluded; transactions are given as elements."""

    def __init__(
        self, history: History, operations: Sequence[Sequence[int]], included: Sequence[int]
    ) -> None:
        """Collect the list reads by transactions that may be excluded."""
        self._columns = columns = history.columns
        self._operations = operations
        self._kind = columns.op_kind.tolist()
        self._key = columns.op_key.tolist()
        self._value = columns.op_value.tolist()
        self._reads = [
            (element, key, values)
            for element, literal in enumerate(included)
            if literal != TRUE
            for key, values in self._lists_in(operations[element - 1])
        ]

    def shown(self) -> list[tuple[int, int]]:
        """Return the pairs (reader, writer) in which a list read by the reader shows the writer."""
        return [
            (reader, writer)
            for reader, key, values in self._reads
            for value in values
            if (writer := self._appender.get((key, value), reader)) != reader
        ]

    def orders(self) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
        """Yield the reader, the key, and the ordered pairs of writers of each list read."""
        for reader, key, values in self._reads:
            yield reader, key, self._order_of(key, values)

    def shown_in(
        self, transactions: Iterable[Sequence[int]]
    ) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """Yield the key and the ordered pairs of each list read among transactions' operations."""
        for operations in transactions:
            for key, values in self._lists_in(operations):
                yield key, self._order_of(key, values)

    def _order_of(self, key: int, values: Sequence[int]) -> list[tuple[int, int]]:
        """Return the ordered pairs of writers that a list shows.

        A list orders the writers of its elements, and puts the writers of missing elements after
        them.
        """
        inside = [self._appender.get((key, value)) for value in values]
        rest = [t for (k, v), t in self._appender.items() if k == key and v not in values]
        pairs = {
            (a, b)
            for place, a in enumerate(inside)
            for b in (*inside[place + 1 :], *rest)
            if a is not None and b is not None and a != b
        }
        return sorted(pairs)

    def clashing(self) -> list[tuple[int, int]]:
        """Return the pairs of readers with contradicting lists, neither a prefix of the other.

        A reader whose list contradicts one read by a certainly included transaction is not
        returned, because the problem already rules out including that reader.
        """
        return [
            (one, other)
            for (one, key, a), (other, k, b) in combinations(self._reads, 2)
            if key == k and a[: len(b)] != b[: len(a)]
        ]

    @cached_property
    def _appender(self) -> dict[tuple[int, int], int]:
        """The transaction that appended each value, by key and value."""
        return {
            (self._key[op], self._value[op]): element
            for element, ops in enumerate(self._operations, 1)
            for op in ops
            if self._kind[op] == APPEND
        }

    def _lists_in(self, operations: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        """Yield the key and the elements of each list read among some operations."""
        for op in operations:
            value = self._value[op]
            if self._kind[op] == READ_LIST and value != UNKNOWN_VALUE:
                first, end = self._columns.list_start[value : value + 2].tolist()
                yield self._key[op], self._columns.list_values[first:end].tolist()
