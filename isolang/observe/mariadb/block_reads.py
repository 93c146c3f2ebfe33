"""Derives what a SELECT read in its query blocks, and what decided the rows of its join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Struct

from isolang.observe.history.edn import edn, predicate_edn
from isolang.observe.history.seen import RowVersion
from isolang.observe.log.tables import Row
from isolang.observe.mariadb.blocks import BlockPlan, QueryBlock, described_table
from isolang.observe.mariadb.compared import ComparedColumn, fixed_columns, with_truths
from isolang.observe.mariadb.contents import NamedTable
from isolang.observe.mariadb.limits import number_at
from isolang.observe.mariadb.recording import FollowedTransaction, RecordedStatement
from isolang.observe.mariadb.semijoins import SemiJoin, are_alike
from isolang.observe.mariadb.statements import Statement
from isolang.observe.sql.executed import ExecutedStatement
from isolang.observe.sql.predicates import CannotEvaluateError, Parameters, Predicate
from isolang.observe.unseen import ALTERED, CONDITIONS, LARGE, LIMITED, SUBQUERIES
from isolang.observe.versions.covers import CoverFact, JoinedRows, cover_facts

_MOST_KEPT: Final = 50  # the most rows each of which may make a read certain

if TYPE_CHECKING:
    from isolang.observe.mariadb.reads import SeenOperation, TableReads


class _Executed(Struct, frozen=True):
    """A statement with its parameters, as the readers of covers know it."""

    statement: Statement
    parameters: Parameters


class BlockReads:
    """Returns the reads of statements with query blocks, and of joins."""

    def __init__(self, reads: TableReads) -> None:
        """Use what the reads of single tables know."""
        self._reads = reads
        self._rests: dict[tuple[str, str], tuple[NamedTable, tuple[Any, ...]]] = {}

    def is_kept(self, label: str, number: str) -> bool:
        """Return whether a row is from before the observation, and still there."""
        table, key = self._rests[label, number]
        return label not in self._reads.doubtful and table.is_kept(key)

    def of_blocks(
        self, event: RecordedStatement, transaction: FollowedTransaction
    ) -> list[SeenOperation]:
        """Return what a SELECT read in its query blocks."""
        statement, plan = event.statement, event.statement.blocks
        assert plan is not None
        reader = _BlockReader(self._reads, event, transaction, plan)
        if not reader.read_lists():
            return []
        operations: list[SeenOperation] = []
        in_part = _is_reached(statement, plan.limit, event.count)
        inner = {joined.inner: joined for joined in plan.semi_joins}
        for number, (block, rows) in enumerate(zip(plan.blocks, reader.rows, strict=True)):
            narrowed = None
            if block.cover is not None and number in inner:
                narrowed = reader.of_inner(inner[number])
            operations += (
                reader.of_block(block, rows, in_part=in_part) if narrowed is None else narrowed
            )
        for joined in () if in_part else plan.semi_joins:
            operations += reader.of_semi_join(joined)
        self._remember(reader)
        return operations

    def of_join(
        self,
        event: RecordedStatement,
        transaction: FollowedTransaction,
        answered: Sequence[Sequence[Row]],
    ) -> list[SeenOperation] | None:
        """Return the rows of a join, and what decided that it has no others.

        Return ``None`` if this is not known.

        Args:
            answered: the rows of each table in the answer.
        """
        plan = event.statement.blocks
        if plan is None or event.is_open:
            return None
        reader = _BlockReader(self._reads, event, transaction, plan)
        if plan.has_lists and not reader.read_lists():
            return []
        joined = reader.of_join(answered)
        self._remember(reader)
        return joined

    def _remember(self, reader: _BlockReader) -> None:
        self._rests |= reader.rests


class _BlockReader:
    """Reads the lists of one statement.

    Attributes:
        rows: for each block, the rows of each of its tables.
        rests: the tables and keys of versions, by the label and the number of the version.
    """

    def __init__(
        self,
        reads: TableReads,
        event: RecordedStatement,
        transaction: FollowedTransaction,
        plan: BlockPlan,
    ) -> None:
        self._reads, self._event, self._transaction, self._plan = reads, event, transaction, plan
        self._statement = event.statement
        self.rows: list[list[list[Row]]] = []
        self.rests: dict[tuple[str, str], tuple[NamedTable, tuple[Any, ...]]] = {}
        self._keys: dict[str, tuple[Any, ...]] = {}  # of the rows, by their numbers
        named = [
            [reads.tables.read_from(each.table, event) for each in block.tables]
            for block in plan.blocks
        ]
        self._is_certain = all(table is not None for tables in named for table in tables)
        self._named = cast("list[list[NamedTable]]", named)

    def read_lists(self) -> bool:
        """Read the rows of all blocks; return whether they are known, and else count why not."""
        statement, event = self._statement, self._event
        if not self._is_certain:
            self._reads.note(ALTERED, statement)
            return False
        is_clear = statement.charset or all(token.text.isascii() for token in statement.part)
        if event.lists is None or event.is_open or not is_clear:
            self._reads.note(CONDITIONS if statement.plan.sources else SUBQUERIES, statement)
            return False
        lists = iter(event.lists.decode("ascii", "replace").split("|"))
        for block, tables in zip(self._plan.blocks, self._named, strict=True):
            self.rows.append([])
            for table in tables:
                count, _, listed = next(lists, "").partition(";")
                images = listed.split(";") if listed else []
                if count != str(len(images)):
                    self._reads.note(LARGE, statement)
                    return False
                rows = [table.table.row(image) for image in images]
                self.rows[-1].append([row for row in rows if row is not None])
            if any(len(rows) > self._plan.longest for rows in self.rows[-1]):
                is_cut = block.cover is not None or block.cut
                self._reads.note(LIMITED if is_cut else LARGE, statement)
                return False
        return True

    # --- query blocks ---

    def of_block(
        self, block: QueryBlock, rows: Sequence[Sequence[Row]], *, in_part: bool
    ) -> list[SeenOperation]:
        """Return what a query block read.

        Args:
            in_part: whether the statement may not have read all of it.
        """
        tables = self._named[self._plan.blocks.index(block)]
        if block.cover is not None:
            none: list[list[RowVersion]] = [[] for _ in rows]
            facts = self._cover_facts(block, tables, rows, none, is_whole=False)
            return [] if facts is None else facts
        assert block.condition is not None
        (table,), (of_table,) = tables, rows
        versions = self._versions(table, of_table)
        if versions is None:
            return []
        fixed = fixed_columns(
            block.condition, table.table.columns, self._statement.part, self._statement.parameters
        )
        fixes = any(key <= fixed for key in table.table.unique)
        perhaps = in_part or self._is_cut_off(block, len(of_table), fixes=fixes)
        predicate: Predicate = ""
        with suppress(CannotEvaluateError):
            predicate = block.condition.predicate(
                table.compared, self._statement.part, self._statement.parameters
            )
        if not predicate and not (fixes and of_table):
            self._reads.note(LIMITED if perhaps else CONDITIONS, self._statement)
        if not predicate or (fixes and of_table):
            return self._row_reads(table, versions, perhaps=perhaps)
        return [self._predicate_read(table, predicate, versions, perhaps=perhaps)]

    def _is_cut_off(self, block: QueryBlock, rows: int, *, fixes: bool) -> bool:
        """Return whether a LIMIT inside the statement may have left out rows of a block."""
        if not block.cut:
            return False
        return block.cut < 0 or (_is_reached(self._statement, block.cut, rows) and not fixes)

    def of_semi_join(self, joined: SemiJoin) -> list[SeenOperation]:
        """Return what is certain if rows from before the observation are still there."""
        (outer,), (inner,) = self._named[joined.outer], self._named[joined.inner]
        (outer_rows,), (inner_rows,) = self.rows[joined.outer], self.rows[joined.inner]
        own, other = outer.compared[joined.columns[0]], inner.compared[joined.columns[1]]
        predicates = self._predicates(joined)
        if predicates is None:
            return []
        of_outer, of_inner = predicates
        if joined.is_negated:
            return self._decided_by(
                (outer, own, outer_rows), (inner, other, inner_rows), of_inner, none=True
            )
        return self._decided_by((inner, other, inner_rows), (outer, own, outer_rows), of_outer)

    def of_inner(self, joined: SemiJoin) -> list[SeenOperation] | None:
        """Return what a subquery of EXISTS read for the rows that the outer condition selects.

        Return ``None`` if that is not known.
        """
        (outer,), (inner,) = self._named[joined.outer], self._named[joined.inner]
        (outer_rows,), (rows,) = self.rows[joined.outer], self.rows[joined.inner]
        predicates, versions = self._predicates(joined), self._versions(inner, rows)
        if predicates is None or versions is None:
            return None
        (own, other), names = joined.columns, [column.name for column in inner.table.logged]
        recorded = (outer.compared[own].recorded(row[own]) for row in outer_rows)
        values = dict.fromkeys(value for value in recorded if value is not None)
        if not values:
            return []
        place, column = names.index(other), inner.compared[other]
        chosen = [v for v in versions if column.recorded(v.values[place]) in values]
        where = ("and", predicates[1], ("in", other, tuple(values)))
        return [self._predicate_read(inner, where, chosen, perhaps=True)]

    def _predicates(self, joined: SemiJoin) -> tuple[Predicate, Predicate] | None:
        """Return the conditions on the outer and the inner table; ``None`` if they are unknown."""
        (outer,), (inner,) = self._named[joined.outer], self._named[joined.inner]
        own, other = outer.compared[joined.columns[0]], inner.compared[joined.columns[1]]
        part, parameters = self._statement.part, self._statement.parameters
        if not are_alike(own, other):
            return None
        try:
            predicates = (
                joined.outer_condition.predicate(outer.compared, part, parameters),
                joined.inner_condition.predicate(inner.compared, part, parameters),
            )
        except CannotEvaluateError:
            return None
        own.was_compared = other.was_compared = True
        return predicates

    def _decided_by(
        self,
        fixed: tuple[NamedTable, ComparedColumn, Sequence[Row]],
        read: tuple[NamedTable, ComparedColumn, Sequence[Row]],
        predicate: Predicate,
        *,
        none: bool = False,
    ) -> list[SeenOperation]:
        """Return the reads of a table that rows of another one make certain, if they are kept.

        Args:
            fixed: the other table, its compared column, and its rows.
            none: whether only those of its rows count that are compared with no row.
        """
        table, column, rows = read
        versions, others = self._versions(table, rows), self._versions(fixed[0], fixed[2])
        if versions is None or others is None or len(others) > _MOST_KEPT:
            return []
        names = [each.name for each in table.table.logged], [c.name for c in fixed[0].table.logged]
        place, place_of_other = names[0].index(column.name), names[1].index(fixed[1].name)
        operations = []
        for version in others:
            value = fixed[1].recorded(version.values[place_of_other])
            if value is None:
                continue
            equal = [v for v in versions if column.recorded(v.values[place]) == value]
            if none and equal:
                continue
            self.rests[fixed[0].label, version.number] = fixed[0], self._keys[version.number]
            where = ("and", predicate, ("in", column.name, (value,)))
            kept = ((fixed[0].label, version.number),)
            operations.append(self._predicate_read(table, where, equal, perhaps=True, kept=kept))
        return operations

    # --- joins ---

    def of_join(self, answered: Sequence[Sequence[Row]]) -> list[SeenOperation] | None:
        """Return the rows of a join, and what decided that it has no others."""
        statement, event = self._statement, self._event
        (block,), (tables,) = self._plan.blocks, self._named
        if not self._is_certain:
            return None
        versions = [
            self._versions(table, rows) for table, rows in zip(tables, answered, strict=True)
        ]
        if any(of_table is None for of_table in versions):
            return []
        known = cast("list[list[RowVersion]]", versions)
        operations = [
            operation
            for table, of_table in zip(tables, known, strict=True)
            for operation in self._row_reads(table, of_table)
        ]
        is_reached = _is_reached(statement, self._plan.limit, event.count)
        is_one = statement.plan.aggregates and not statement.plan.groups
        if is_reached and not (statement.plan.order[1] or is_one or statement.plan.aggregates):
            return operations  # the server was free to choose rows
        is_whole = not statement.plan.partial and (is_one or not is_reached)
        if not (self._plan.has_lists or is_whole):
            return None
        rows = self.rows[0] if self._plan.has_lists else answered
        facts = self._cover_facts(block, tables, rows, known, is_whole=is_whole)
        return None if facts is None else operations + facts

    def _cover_facts(
        self,
        block: QueryBlock,
        tables: Sequence[NamedTable],
        rows: Sequence[Sequence[Row]],
        answered: Sequence[Sequence[RowVersion]],
        *,
        is_whole: bool,
    ) -> list[SeenOperation] | None:
        """Return what the cover of a block says; ``None`` if a row of it is not known."""
        assert block.cover is not None
        covered = []
        for table, of_table in zip(tables, rows, strict=True):
            versions = self._versions(table, of_table)
            if versions is None:
                return None
            names = tuple(column.name for column in table.table.logged)
            values = {version.number: version.values for version in versions}
            covered.append(JoinedRows(names, tuple(versions), values))
        compared = [
            table.compared[name]
            for table, names in zip(tables, block.cover.columns, strict=True) for name in names
        ]  # fmt: skip
        described = [described_table(each.table, each.label, each.compared) for each in tables]
        done = cast(ExecutedStatement, _Executed(self._statement, self._statement.parameters))
        facts = None
        if all(column.comparable for column in compared):
            for column in compared:
                column.was_compared = True
            facts = cover_facts(block.cover, done, described, covered, answered, is_whole=is_whole)
        if facts is None:
            self._reads.note(CONDITIONS, self._statement)
            return []
        by_label = {table.label: table for table in tables}
        return [self._fact(by_label, fact) for fact in facts]

    def _fact(self, tables: Mapping[str, NamedTable], fact: CoverFact) -> SeenOperation:
        for label, number in fact.kept:
            self.rests[label, number] = tables[label], self._keys[number]
        return self._predicate_read(
            tables[fact.table.name], fact.predicate, fact.rows, perhaps=fact.perhaps, kept=fact.kept
        )

    # --- operations ---

    def _versions(self, table: NamedTable, rows: Sequence[Row]) -> list[RowVersion] | None:
        """Return rows as versions, whose numbers are their EDN; ``None`` if one is not known."""
        versions = {}
        known = self._reads.known_texts(table, rows, self._event, self._transaction)
        if known is None:
            return None
        by_key = {table.table.key_of(row): row for row in rows}
        for key, text in known.items():
            number = f"{table.key_edn(key)} {text}"
            versions[number] = RowVersion(table.key(key), number, tuple(by_key[key].values()))
            self._keys[number] = key
        return [*versions.values()]

    def _row_reads(
        self, table: NamedTable, versions: Sequence[RowVersion], *, perhaps: bool = False
    ) -> list[SeenOperation]:
        return [
            self._reads.operation(
                f"[:r {version.number}]", table, self._event, self._transaction, perhaps=perhaps
            )
            for version in versions
        ]

    def _predicate_read(
        self,
        table: NamedTable,
        predicate: Predicate,
        versions: Sequence[RowVersion],
        *,
        perhaps: bool,
        kept: tuple[tuple[str, str], ...] = (),
    ) -> SeenOperation:
        listed = " ".join(version.number for version in versions)
        where = predicate_edn(with_truths(predicate))
        return self._reads.operation(
            f"[:rp {{:table {edn(table.label)} :where {where}}} {{{listed}}}]",
            table, self._event, self._transaction, perhaps=perhaps, kept=kept,
        )  # fmt: skip


def _is_reached(statement: Statement, limit: int, rows: int) -> bool:
    """Return whether the LIMIT at a position may have left out rows; 0 stands for none."""
    if not limit:
        return False
    most = number_at(statement, limit + 1)
    others = statement.part[limit + 2 : limit + 3]
    return most is None or rows >= most or any(o.text in (",", "offset") for o in others)
