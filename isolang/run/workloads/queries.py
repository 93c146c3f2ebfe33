"""Defines a workload that mixes queries and writes, as applications do.

The rows belong to families of a few rows, and all clients work on one family at a time. Each family
has a style, drawn from the seed: the steps of its transactions, how often each step occurs, how
long transactions are, and where they pause. For example, one family tests predicates after own
writes, and another family tests ranges of keys next to inserts. Families differ because most
defects need only a few kinds of steps, which would be rare in a mix of all kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from random import Random
from typing import Any, ClassVar, Final, TypeAlias

from msgspec import Struct

from isolang.run.operation import (
    DELETED,
    Condition,
    Delete,
    Insert,
    Operation,
    Pause,
    Program,
    Read,
    Scan,
    SelectRange,
    SelectWhere,
    SetNull,
    UndoneWrite,
    UpdateRange,
    Wait,
    Write,
)
from isolang.run.settings import Shape
from isolang.run.workloads.workload import ProgramSource, Workload

Steps: TypeAlias = Generator[Operation, Any, None]

_CONDITIONS: Final[tuple[Condition, ...]] = ("null", "null", "not null", "outside")
_GROUPS: Final = 3  # the number of value groups in a family
_WIDTH: Final = 1_000_000_000  # the number of values in a group


class FamilyStyle(Struct, frozen=True, kw_only=True):
    """The style of the transactions on one family of rows.

    Attributes:
        steps: the names of the steps that occur; ``shares`` gives the relative frequency of each.
        pause: the longest pause in milliseconds.
        again: the share of transactions that end by repeating their first query.
        long: the share of transactions that stay open while many other transactions end.
    """

    family: int
    rows: tuple[str, ...]
    steps: tuple[str, ...]
    shares: tuple[float, ...]
    most: int
    pauses: float
    pause: float
    again: float
    long: float


class Queries(Workload):
    """A workload of queries by key, key range or value range, mixed with writes of every kind."""

    name: ClassVar = "queries"
    needs: ClassVar = frozenset({"range reads", "rows", "conversations"})
    rows: ClassVar = True
    nulls: ClassVar = True
    default: ClassVar = Shape(keys=12, operations=6)
    per_family: ClassVar = 150  # the number of transactions on each family in turn

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self._begun = 0
        self._style: FamilyStyle | None = None
        self._steps: dict[str, Callable[[ProgramSource, FamilyStyle], Steps]] = {
            "select": self._select, "scan": self._scan, "get": self._get, "put": self._put,
            "update": self._update, "delete": self._delete, "change": self._change,
            "undo": self._undo, "clear": self._clear, "where": self._where,
        }  # fmt: skip

    def program(self, source: ProgramSource) -> Program:
        family = self._begun // self.per_family
        self._begun += 1
        style = self._style
        if style is None or style.family != family:
            style = self._style = self._style_of(family, source.seed)
        return self._play(source, style)

    def _style_of(self, family: int, seed: int | str) -> FamilyStyle:
        """Return the style of a family, which depends only on the seed and the family's number."""
        random = Random(f"{seed}/family/{family}")
        steps = self.draw_steps(random)
        return FamilyStyle(
            family=family,
            rows=tuple(
                f"f{family:05}/{row:02}" for row in range(min(self.keys, random.choice((2, 4, 12))))
            ),
            steps=steps,
            shares=tuple(random.uniform(0.2, 1) for _ in steps),
            most=random.randint(2, self.operations),
            pauses=random.choice((0.1, 0.3, 0.6)),
            pause=random.choice((1.0, 4.0)),
            again=random.choice((0.0, 0.3)),
            long=random.choice((0.0, 0.0, 0.1)),
        )

    def draw_steps(self, random: Random) -> tuple[str, ...]:
        """Return the steps that occur in the transactions on a family."""
        reads = random.sample(("select", "scan", "get"), random.randint(1, 3))
        writes = random.sample(("update", "delete", "change", "undo"), random.randint(0, 3))
        nulls = ("where", "clear") if random.random() < 1 / 3 else ()
        return (*reads, *nulls, "put", *writes)

    def _play(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        random = source.random
        again: Operation | None = None
        if random.random() < style.again:
            again = random.choice((Read(self._row(source, style)), self._range(source, style)))
            yield again
        for _ in range(random.randint(1, style.most)):
            if random.random() < style.pauses:
                yield Pause(style.pause * random.random())
            (step,) = random.choices(style.steps, style.shares)
            yield from self._steps[step](source, style)
        if random.random() < style.long:
            yield Wait(random.randint(20, 100))
        if again is not None:
            yield again

    # --- what steps consist of ---

    def _row(self, source: ProgramSource, style: FamilyStyle) -> str:
        return source.random.choice(style.rows)

    def _value(self, source: ProgramSource, style: FamilyStyle) -> int:
        group = 1 + style.family * _GROUPS + source.random.randrange(_GROUPS)
        return group * _WIDTH + source.value()

    def _range(self, source: ProgramSource, style: FamilyStyle) -> SelectRange:
        """Return a query for one random group in the family, or for two adjacent groups."""
        first = source.random.randrange(_GROUPS)
        last = min(first + source.random.randrange(2), _GROUPS - 1)
        base = 1 + style.family * _GROUPS
        return SelectRange((base + first) * _WIDTH, (base + last + 1) * _WIDTH - 1)

    # --- steps ---

    def _select(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        yield self._range(source, style)

    def _scan(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        ends = sorted(source.random.choices(range(len(style.rows)), k=2))
        yield Scan(style.rows[ends[0] : ends[1] + 1])

    def _get(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        yield Read(self._row(source, style))

    def _put(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        row = self._row(source, style)
        there = yield Read(row)
        if there is None or there == DELETED:
            yield Insert(row, self._value(source, style))
        else:
            yield Write(row, self._value(source, style))

    def _update(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        yield Write(self._row(source, style), self._value(source, style))

    def _delete(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        yield Delete(self._row(source, style))

    def _change(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        found = self._range(source, style)
        yield UpdateRange(found.low, found.high, self._value(source, style))

    def _undo(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        row = self._row(source, style)
        undone = Write(row, self._value(source, style))
        yield UndoneWrite(Delete(row) if source.random.random() < 0.3 else undone)

    def _clear(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        yield SetNull(self._row(source, style))

    def _where(self, source: ProgramSource, style: FamilyStyle) -> Steps:
        """Query for the family's rows that are NULL, are not NULL, or are outside a group."""
        group = self._range(source, style)
        condition = source.random.choice(_CONDITIONS)
        yield SelectWhere(condition, style.rows, group.low, group.high)
