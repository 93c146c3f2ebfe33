"""Defines workloads that find rows by a predicate: their value is in a range.

Rows belong to groups: the values in group 3 are 3,000,000,000 to 3,999,999,999. Each write uses a
new value of a group, so a write can move a row to another group.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar, Final

from isolang.run.operation import (
    Delete,
    Insert,
    Operation,
    Program,
    Read,
    SelectRange,
    UpdateRange,
    Write,
)
from isolang.run.settings import Shape
from isolang.run.workloads.workload import ProgramSource, Workload, numbered_keys

_WIDTH: Final = 1_000_000_000  # the number of values in a group
_ROWS: Final = 10  # the number of rows for a pair of groups
_NEEDS: Final = frozenset({"range reads", "rows", "conversations"})


class _Groups(Workload):
    """Workloads on pairs of groups; each row is in one group of its pair, or initially in none."""

    needs: ClassVar = _NEEDS
    rows: ClassVar = True
    default: ClassVar = Shape(keys=200, operations=4)

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.pairs = max(1, self.keys // _ROWS)
        self.registers = names = numbered_keys("row", self.keys)
        self._rows = [names[pair :: self.pairs] for pair in range(self.pairs)]
        self._selects = [
            SelectRange(group * _WIDTH, (group + 1) * _WIDTH - 1) for group in range(2 * self.pairs)
        ]

    def groups(self, source: ProgramSource) -> tuple[int, int]:
        """Return the two groups of a randomly chosen pair, in random order."""
        first = 2 * (self.key(source) % self.pairs)
        return (first, first + 1) if source.random.random() < 0.5 else (first + 1, first)

    def row(self, source: ProgramSource, group: int) -> str:
        """Return a randomly chosen row of a group's pair."""
        rows = self._rows[group // 2]
        return rows[int(source.random.random() * len(rows))]

    def value(self, source: ProgramSource, group: int) -> int:
        """Return a value of this group that no other transaction writes."""
        return group * _WIDTH + source.value()

    def select(self, group: int) -> SelectRange:
        """Return the query for all rows whose value is in a group."""
        return self._selects[group]


class PairsPred(_Groups):
    """Write skew with predicates: read a group, and move a row to the other group of the pair."""

    name: ClassVar = "pairs-pred"

    def program(self, source: ProgramSource) -> Program:
        one, other = self.groups(source)
        return (self.select(one), Write(self.row(source, one), self.value(source, other)))


class BlindPred(_Groups):
    """Vbox's BlindW-Pred: transactions read by predicate, or write by key or by predicate."""

    name: ClassVar = "blindw-pred"

    def program(self, source: ProgramSource) -> Program:
        count = source.random.randint(1, self.operations)
        if source.random.random() < self.reads:
            return tuple(self.select(self.groups(source)[0]) for _ in range(count))
        return self._write(source, count)

    def _write(self, source: ProgramSource, count: int) -> Generator[Operation, Any, None]:
        for _ in range(count):
            one, other = self.groups(source)
            if source.random.random() < 0.5:
                yield Write(self.row(source, one), self.value(source, other))
            else:
                rows = self.select(one)
                yield UpdateRange(rows.low, rows.high, self.value(source, other))


class InsertDeletePred(_Groups):
    """Read a group, and then insert or delete one of its rows; initially all rows are missing."""

    name: ClassVar = "insert-delete-pred"

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.registers = ()

    def program(self, source: ProgramSource) -> Program:
        return self._touch(source)

    def _touch(self, source: ProgramSource) -> Generator[Operation, Any, None]:
        group, other = self.groups(source)
        found = yield self.select(group)
        if found and source.random.random() < 0.5:
            yield Delete(source.random.choice(sorted(found)))
            return
        row = self.row(source, group)
        there = yield Read(row)
        if isinstance(there, int):
            yield Write(row, self.value(source, other))
        else:
            yield Insert(row, self.value(source, other))
