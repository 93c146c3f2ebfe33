"""Defines a workload of orders: a queue with workers, upserts, rows with child rows, and locks.

A row is an order, the group of its value is the order's state, and its child rows are the order's
items. Families and styles are as in :mod:`isolang.run.workloads.queries`. Between queries,
transactions send the statements of such an application: a worker takes the first unlocked order;
one INSERT places several orders, and one DELETE purges several; MERGE inserts or updates an order;
and when an order is deleted, a foreign key deletes its items.
"""

from __future__ import annotations

from random import Random
from typing import ClassVar, Final

from isolang.run.operation import (
    DELETED,
    Delete,
    DeleteRange,
    Insert,
    InsertRows,
    Pause,
    Read,
    Scan,
    SelectRange,
    TakeRow,
    UndoneWrite,
    Upsert,
    Write,
    child_key,
)
from isolang.run.settings import Shape
from isolang.run.workloads.queries import FamilyStyle, Queries, Steps
from isolang.run.workloads.workload import ProgramSource

_ITEMS: Final = ("a", "b")  # the names of a row's possible child rows


class Orders(Queries):
    """Queue workers, merges, purges and cascading deletes, between queries of every form."""

    name: ClassVar = "orders"
    cascades: ClassVar = True

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self._steps |= {
            "take": self._take, "place": self._place, "merge": self._merge, "purge": self._purge,
            "lock": self._lock, "narrow": self._narrow, "item": self._item, "items": self._items,
            "drop": self._drop, "undo merge": self._undo_merge,
        }  # fmt: skip

    def draw_steps(self, random: Random) -> tuple[str, ...]:
        """Return the steps of a family; every third family has child rows."""
        reads = random.sample(("select", "scan", "get", "narrow"), random.randint(1, 2))
        if random.random() < 1 / 3:
            # Leave out statements that delete rows whose child rows the program has not read.
            others = random.sample(("take", "merge", "lock", "change", "undo"), 1)
            return (*reads, *others, "put", "item", "item", "items", "drop")
        main = random.sample(("take", "place", "merge", "purge", "lock"), random.randint(1, 3))
        others = random.sample(("put", "delete", "change", "undo merge"), random.randint(1, 2))
        return (*reads, *main, *others)

    # --- steps ---

    def _take(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        """Take an order that no other worker has locked, and change its state or delete it."""
        jobs = self._range(source, style)
        found = yield TakeRow(jobs.low, jobs.high)
        for key in sorted(found)[:1]:
            if source.random.random() < style.pauses:
                yield Pause(style.pause * source.random.random())
            if "item" not in style.steps and source.random.random() < 0.3:
                yield Delete(key)
            else:
                yield Write(key, self._value(source, style))

    def _place(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        found = yield Scan(style.rows)
        free = [row for row in style.rows if row not in found]
        placed = source.random.sample(free, min(len(free), source.random.randint(2, 4)))
        if placed:
            yield InsertRows(tuple((row, self._value(source, style)) for row in placed))

    def _upsert(self, source: ProgramSource, style: FamilyStyle) -> Upsert:
        merge = source.random.random() < 0.5
        return Upsert(self._row(source, style), self._value(source, style), merge)

    def _merge(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        yield self._upsert(source, style)

    def _undo_merge(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        yield UndoneWrite(self._upsert(source, style))

    def _purge(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        old = self._range(source, style)
        yield DeleteRange(old.low, old.high)

    def _lock(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        """Lock an order, and change it or another one."""
        row = self._row(source, style)
        there = yield Read(row, lock=source.random.choice(("share", "update")))
        if _is_there(there):
            other = source.random.random() < 0.3
            yield Write(self._row(source, style) if other else row, self._value(source, style))

    def _narrow(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        found = self._range(source, style)
        ends = sorted(source.random.choices(range(len(style.rows)), k=2))
        yield SelectRange(found.low, found.high, keys=style.rows[ends[0] : ends[1] + 1])

    # --- steps on child rows ---

    def _item(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        """Add an item to an order, or change or remove it."""
        row = self._row(source, style)
        item = child_key(row, source.random.choice(_ITEMS))
        there = yield Read(row, lock=source.random.choice(("", "share")))
        if not _is_there(there):
            return
        has = yield Read(item)
        if not _is_there(has):
            yield Insert(item, source.value())  # a value outside all groups that queries select
        elif source.random.random() < 0.5:
            yield Write(item, source.value())
        else:
            yield Delete(item)

    def _items(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        row = self._row(source, style)
        for key in (row, *(child_key(row, item) for item in _ITEMS)):
            yield Read(key)

    def _drop(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        """Delete an order together with its items, and then read the items."""
        row = self._row(source, style)
        there = yield Read(row, lock="update")
        if not _is_there(there):
            return
        items = []
        for name in _ITEMS:
            item = child_key(row, name)
            has = yield Read(item, lock="update")
            if _is_there(has):
                items.append(item)
        yield Delete(row, tuple(items))
        for item in items:
            yield Read(item)


def _is_there(value: object) -> bool:
    return value is not None and value != DELETED
