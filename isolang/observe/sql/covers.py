"""Finds reads of single tables that together decide the rows of a join.

The tables of a join are put in an order. Of the first table, a *cover* reads the rows that satisfy
its part of the condition; of each other table, those that satisfy its part and whose column has one
of the values that the rows read of an earlier table have.

SOUND BECAUSE: in a state in which each of these reads finds the same versions, the join contains
the same rows: table by table, each row of a joined row is among those that the cover reads. So the
answer is the same, whatever else the statement requires, sorts, groups or cuts off. A cover may
read more rows than the join depends on. So it acquits, but convicts only if

* all tables but the first are LEFT JOINed, and nothing else is required. The answer then contains
  each row that the cover reads (:attr:`Cover.exact`);
* or the table is compared with one other table alone (:attr:`Cover.leaves`). A row of the other
  table that is in the answer was visible with all that it is joined with, so the answer contains
  each row of the table with the same value;
* or all that a row of the table would be joined with are rows that nobody ever changed
  (:attr:`Cover.steady`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.joins import (
    ColumnNames,
    JoinColumn,
    have_same_type,
    split_condition,
)
from isolang.observe.sql.lexer import Token
from isolang.observe.sql.plan import StatementTable
from isolang.observe.sql.predicates import Node, ParsedCondition, parse_known_parts
from isolang.observe.sql.values import INTEGERS, TEXT, UUID_OID, VARCHAR, RecordedColumn

MOST_ROWS: Final = 1000
"""The largest number of rows of one table that a cover reads."""
_MOST_TABLES: Final = 8
_EXACT_TYPES: Final = frozenset({*INTEGERS, TEXT, VARCHAR, UUID_OID})
"""The types whose values are equal if and only if they are in a history."""


class CoveredTable(Struct, frozen=True):
    """A read of one table.

    Attributes:
        number: the number of the table in FROM.
        condition: the part of the condition on this table alone.
        parts: the token ranges of this part.
        column: the column that is compared with another table; empty if none is.
        other: the number of the other table; -1 if there is none.
        of: the column of the other table.
    """

    number: int
    condition: ParsedCondition
    parts: tuple[tuple[int, int], ...] = ()
    column: str = ""
    other: int = -1
    of: str = ""


class Cover(Struct, frozen=True):
    """Reads of single tables that together decide the rows of a join.

    Attributes:
        reads: the reads, each after the one of the table that it is compared with.
        leaves: for tables that are compared with one table alone, what certainly was read of them:
            the values are those of the other table's rows in the answer.
        steady: the reads of leaves whose values come, directly or through others, from all other
            tables that may drop rows.
        exact: whether the answer contains each row of the reads.
        columns: for each table in FROM, the columns that are compared.
    """

    reads: tuple[CoveredTable, ...]
    leaves: tuple[CoveredTable, ...]
    steady: tuple[CoveredTable, ...]
    exact: bool
    columns: tuple[tuple[str, ...], ...]

    def is_in_keys(self, tables: Sequence[Table]) -> bool:
        """Return whether all values that are compared are those of primary keys."""
        return all(read.other < 0 or read.of in tables[read.other].key for read in self.reads)


def cover_of(
    part: Sequence[Token], sources: Sequence[StatementTable], tables: Sequence[Table]
) -> Cover | None:
    """Return reads that decide the rows of a join; ``None`` for joins of other forms."""
    joins = {source.join for source in sources}
    if not joins <= {"", "left", "inner", "comma"} or not 0 < len(sources) <= _MOST_TABLES:
        return None
    if any(table.partitioned or not table.rows_known for table in tables):
        return None
    return _CoverReader(part, sources, tables).read()


class CoveredStatement(Struct, frozen=True):
    """A statement with a cover, and the text from which the cover's reads are taken."""

    cover: Cover
    text: str
    part: Sequence[Token]
    sources: Sequence[StatementTable]
    tables: Sequence[Table]

    def query(self, number: int, columns: str) -> str:
        """Return the query for columns of the rows that the cover reads of a table in FROM.

        SOUND BECAUSE: at most one row too many is read of each table; then no read counts.
        """
        read = next(read for read in self.cover.reads if read.number == number)
        source, text, part = self.sources[number], self.text, self.part
        name = source.name if source.alias == source.name else f"{source.name} AS {source.alias}"
        conditions = [f"({text[part[a].start : part[b - 1].end]})" for a, b in read.parts]
        if read.other >= 0:
            of = self.tables[read.other].quoted[read.of]
            values = self.query(read.other, f"{self.sources[read.other].alias}.{of}")
            own = f"{source.alias}.{self.tables[number].quoted[read.column]}"
            conditions.append(f"{own} IN ({values})")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {columns} FROM {name}{where} LIMIT {MOST_ROWS + 1}"


class _CoverReader:
    """Reads the cover of one SELECT."""

    def __init__(
        self, part: Sequence[Token], sources: Sequence[StatementTable], tables: Sequence[Table]
    ) -> None:
        self._part, self._sources, self._tables = part, sources, tables
        self._names = ColumnNames(part, sources, tables)
        self._parts: dict[int, list[tuple[int, int]]] = {n: [] for n in range(len(sources))}
        # For each table, the equations that may decide which of its rows are joined.
        self._equations: dict[int, list[tuple[JoinColumn, JoinColumn]]] = {
            n: [] for n in range(len(sources))
        }
        self._requires_more = False  # whether the statement has a part of another form

    def read(self) -> Cover | None:
        """Return the cover."""
        for begin, end, left in self._conditions():
            for first, last in split_condition(self._part, begin, end):
                self._read_part(first, last, left)
        reads = tuple(self._ordered())
        only = not self._requires_more
        leaves = tuple(self._leaves()) if only else ()
        columns: list[list[str]] = [[] for _ in self._sources]
        for read in (*reads, *leaves):
            if read.other >= 0:
                columns[read.other].append(read.of)
                columns[read.number].append(read.column)
        return Cover(
            reads=reads,
            leaves=leaves,
            steady=tuple(self._steady(reads, {read.number for read in leaves})),
            exact=only and self._keeps_all_rows(),
            columns=tuple(tuple(dict.fromkeys(names)) for names in columns),
        )

    def _conditions(self) -> Iterator[tuple[int, int, int]]:
        """Yield the token ranges of ON and WHERE, with the table that a LEFT JOIN adds, or -1."""
        for number, source in enumerate(self._sources):
            if source.join in ("left", "inner"):
                yield *source.on, number if source.join == "left" else -1
        yield *self._sources[0].where, -1

    def _read_part(self, begin: int, end: int, left: int) -> None:
        """Note one part of a condition. A part of the ON of a LEFT JOIN is of the table it adds.

        SOUND BECAUSE: other conditions on that table also hold without a row of it, or are parts of
        another form. So they restrict the joined rows, but not the rows that may be joined.
        """
        equation = self._names.equation(begin, end)
        if equation is not None and self._is_comparable(equation):
            numbers = [number for number, _ in equation]
            targets = [n for n in numbers if n == left or (left < 0 and not self._is_outer(n))]
            for number in targets:
                self._equations[number].append(equation)
            self._requires_more |= len(targets) < (1 if left >= 0 else 2)
            return
        numbers = [n for n in range(len(self._sources)) if left < 0 and not self._is_outer(n)]
        for number in numbers if left < 0 else [left]:
            if not self._condition(number, begin, end).why:
                self._parts[number].append((begin, end))
                return
        self._requires_more = True

    def _condition(self, number: int, begin: int, end: int) -> ParsedCondition:
        """Return a condition on a table, whose ``why`` says so if it names another table."""

        def column(names: Sequence[str]) -> str | None:
            named = self._names.column(names)
            if named is None or named[0] != number:
                return None
            known = columns.get(named[1])
            return named[1] if known is not None and known.comparable else None

        columns = self._tables[number].columns
        condition = parse_known_parts(self._part, begin, end, column)
        if _orders_texts(condition.node, columns):
            return ParsedCondition(why="the order of texts")
        return condition

    def _whole_condition(self, number: int) -> ParsedCondition:
        """Return all that a statement requires of a table alone."""
        parsed = [self._condition(number, *two) for two in self._parts[number]]
        return ParsedCondition(
            node=("and", *(requirement.node for requirement in parsed)) if parsed else ("true",),
            columns=frozenset().union(*(requirement.columns for requirement in parsed)),
            equal={
                name: value for requirement in parsed for name, value in requirement.equal.items()
            },
            among={
                name: value for requirement in parsed for name, value in requirement.among.items()
            },
        )

    def _is_comparable(self, equation: tuple[JoinColumn, JoinColumn]) -> bool:
        """Return whether the history shows which rows an equation joins."""
        (left, first), (right, second) = equation
        tables = self._tables[left], self._tables[right]
        columns = tables[0].columns.get(first), tables[1].columns.get(second)
        return have_same_type(tables[0], first, tables[1], second) and all(
            column is not None and column.comparable and column.oid in _EXACT_TYPES
            for column in columns
        )

    def _is_outer(self, number: int) -> bool:
        return self._sources[number].join == "left"

    def _ordered(self) -> Iterator[CoveredTable]:
        """Yield the reads, beginning with the table whose part seems to select the fewest rows."""
        waiting = sorted(range(len(self._sources)), key=self._weight)
        done: set[int] = set()
        while waiting:
            linked = (
                read for number in waiting for read in self._linked(number) if read.other in done
            )
            read = next(linked, None)
            if read is None:
                number = next((n for n in waiting if not self._is_outer(n)), waiting[0])
                read = CoveredTable(
                    number, self._whole_condition(number), tuple(self._parts[number])
                )
            done.add(read.number)
            waiting.remove(read.number)
            yield read

    def _linked(self, number: int) -> Iterator[CoveredTable]:
        """Yield the reads of a table by each of its equations."""
        condition = self._whole_condition(number)
        for equation in self._equations[number]:
            own, other = sorted(equation, key=lambda column: column[0] != number)
            yield CoveredTable(
                number, condition, tuple(self._parts[number]), own[1], other[0], other[1]
            )

    def _weight(self, number: int) -> tuple[bool, int, bool, int]:
        """Return how many rows a table's part of the condition may select, as a rank.

        Parents come before their children, which change more often: what is read of the second
        table is only what the rows of the first one are joined with.
        """
        condition, table = self._whole_condition(number), self._tables[number]
        equal = condition.equal.keys()
        if any(key <= equal for key in table.unique):
            rank = 0
        elif any(key <= equal | condition.among.keys() for key in table.unique):
            rank = 1
        else:
            rank = 2 if equal else 3 if condition.among else 4 if condition.columns else 5
        is_parent = any(frozenset({read.column}) in table.unique for read in self._linked(number))
        return self._is_outer(number), rank, not is_parent, number

    def _leaves(self) -> Iterator[CoveredTable]:
        """Yield the reads of the tables that are compared with one other table, in one column."""
        for number in range(len(self._sources)):
            linked = [*self._linked(number)]
            if len(linked) == 1:
                yield linked[0]

    def _steady(
        self, reads: Sequence[CoveredTable], leaves: Collection[int]
    ) -> Iterator[CoveredTable]:
        """Yield the reads of leaves whose values come from all other tables that may drop rows."""
        by_number = {read.number: read for read in reads}
        required = {n for n in by_number if not self._is_outer(n)}
        for read in reads:
            above, at = {read.number}, read
            while at.other >= 0:
                at = by_number[at.other]
                above.add(at.number)
            if read.number in leaves and read.other >= 0 and required <= above:
                yield read

    def _keeps_all_rows(self) -> bool:
        """Return whether each row that the cover reads is in a joined row."""
        first, *others = range(len(self._sources))
        return not self._equations[first] and all(
            self._is_outer(number) and len(self._equations[number]) == 1 for number in others
        )


def _orders_texts(node: Node, columns: Mapping[str, RecordedColumn]) -> bool:
    """Return whether a condition depends on an order that a history does not show."""
    if node[0] in ("<", "<=", ">", ">="):
        return not columns[node[1]].ordered
    return any(_orders_texts(inner, columns) for inner in node[1:] if isinstance(inner, tuple))
