"""Derives the reads of a SELECT from the rows returned by the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isolang.observe.history.seen import RowVersion, WrittenRow
from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.covers import MOST_ROWS
from isolang.observe.sql.executed import (
    has_reached_limit,
    is_cut_off,
    is_joined_by_key,
    looked_up_key_count,
    predicate_of_block,
)
from isolang.observe.sql.joins import KeyJoin, RowChange, may_lack_parents
from isolang.observe.sql.plan import JOINS, name_parts
from isolang.observe.sql.predicates import CannotEvaluateError, Predicate
from isolang.observe.sql.rewriting import BlockCover, ReportedTable, limit_value
from isolang.observe.unseen import CONDITIONS, LIMITED, RECHECKED
from isolang.observe.versions.covers import JoinedRows, cover_facts
from isolang.observe.versions.facts import StatementFacts
from isolang.observe.versions.loose_blocks import note_loose_block


class SelectOperations:
    """Adds the reads of a SELECT, or of the query blocks of a statement, to its transaction."""

    def __init__(self, facts: StatementFacts) -> None:
        self._facts = facts

    def add(self) -> None:
        """Record the rows read by a SELECT from each of its tables."""
        statement = self._facts.statement
        if statement.plan.single and not self._facts.done.rows:
            return  # LIMIT 0 has cut off the row, so the answer shows nothing
        found: dict[int, list[RowVersion]] = {id(one): [] for one in statement.reported}
        for reported, text in self._facts.done.reported:
            if (versions := found.get(id(reported))) is not None:
                versions += self._facts.versions(reported, text)
        whole = len(statement.reported) == len(statement.plan.sources)
        first = statement.reported[0]
        table, rows = first.table, _distinct(found[id(first)])
        each = [found[id(reported)] for reported in statement.reported]
        subqueries = whole and statement.plan.partial == "subqueries"
        has_keys = len(found) == 1 and self._has_all_keys(table, rows)
        if subqueries and not has_keys and self._note_cover(each):
            return
        if whole and len(found) == 1:
            self._facts.add_condition(table, rows, statement.plan.partial)
            return
        # SOUND BECAUSE: if there are subqueries, functions, HAVING or DISTINCT ON, the joins are
        # not the only reason why rows are not returned.
        only = whole and statement.plan.partial == JOINS
        join = statement.join
        if (
            only
            and join is not None
            and self._has_parents(join, each)
            and self._keeps_rows(join, each[join.root])
        ):
            self._note_key_join(join, each)
            return
        joined = only and all(
            is_joined_by_key(statement.part, other.source, other.table)
            for other in statement.reported[1:]
        )
        outer = all(one.source.join == "left" for one in statement.reported[1:])
        has_all = joined and all(len(versions) == self._facts.done.rows for versions in each)
        if only and not (has_all and (outer or self._has_all_keys(table, rows))):
            if self._takes_any_rows(each):
                for reported, versions in zip(statement.reported, each, strict=True):
                    self._facts.add_reads(reported.table, _distinct(versions))
                return
            if self._note_cover(each):
                return
        for reported in statement.reported[joined:]:
            versions = found[id(reported)]
            if not self._facts.is_large(versions):
                self._facts.add_reads(reported.table, _distinct(versions))
        if not has_all:
            # If a LEFT JOIN finds no row, the statement has observed that a row is missing.
            self._facts.note_unseen(CONDITIONS)
        if joined:
            self._facts.add_condition(table, rows, "" if outer else JOINS)

    def _has_all_keys(self, table: Table, rows: Sequence[RowVersion]) -> bool:
        """Return whether a condition names whole keys of the first table, and has found each."""
        looked = looked_up_key_count(self._facts.statement.condition, table, self._facts.done)
        return looked is not None and len(rows) >= looked

    def _takes_any_rows(self, versions: Sequence[Sequence[RowVersion]]) -> bool:
        """Return whether a LIMIT was reached by rows that the server may choose.

        SOUND BECAUSE: each row in the answer is a row of the join wherever its tables' rows are
        visible. Behind a LEFT JOIN that found no row, the row also shows that there is none.
        """
        statement, done = self._facts.statement, self._facts.done
        made, most_rows = statement.plan, self._facts.observation.most_rows
        most = limit_value(statement.part, made.limit, done.parameters) if made.limit else None
        is_reached = done.cut or (most is not None and done.rows >= most)
        return (
            is_reached
            and not (made.order[1] or made.offset or made.locks)
            and all(len(rows) == done.rows <= most_rows for rows in versions)
            and all(reported.source.how == "row" for reported in statement.reported)
            and all(token.text != "over" for token in statement.part)
        )

    def _keeps_rows(self, join: KeyJoin, rows: Sequence[RowVersion]) -> bool:
        """Return whether a join left out no row of its root, of which it has found ``rows``.

        SOUND BECAUSE: a transaction whose writes are not all seen may have deleted parents. A
        snapshot from before a constraint was added may contain other rows. Of the root, only rows
        that the transaction has written may lack their parents.
        """
        database, one = self._facts.observation.database, self._facts.transaction
        if not database.keys_hold or database.key_changes != join.changes or one.unclear:
            return False
        if one.altered or one.begin < database.keys_changed:
            return False
        writes = (write for write in one.operations if isinstance(write, WrittenRow))
        changed = [
            write for write in writes if may_lack_parents(join, write.table, _change(write))
        ]  # fmt: skip
        return not changed or self._has_found(join, rows, changed)

    def _has_found(
        self, join: KeyJoin, rows: Sequence[RowVersion], changed: Sequence[WrittenRow]
    ) -> bool:
        """Return whether rows of a join's root were found, or do not satisfy its condition."""
        root, numbers = join.tables[join.root], {row.number for row in rows}
        done = self._facts.done
        if root.oid in {join.tables[edge.parent].oid for edge in join.edges}:
            return False  # other rows may have lost their parents
        try:
            predicate = join.condition.predicate(root.columns, done.statement.part, done.parameters)
        except CannotEvaluateError:
            return False
        current = {write.version and write.version.key: write for write in changed}
        return all(
            write.table.oid == root.oid
            and write.version is not None
            and (write.version.number in numbers or _differs(write.row, predicate))
            for write in current.values()
        )

    def _note_key_join(self, join: KeyJoin, versions: Sequence[Sequence[RowVersion]]) -> None:
        """Record the root's rows as those of its condition, and the parents of each."""
        statement = self._facts.statement
        locks = statement.plan.locks and self._facts.is_read_committed()
        root, rows = statement.reported[join.root].table, _distinct(versions[join.root])
        # Parents that are not locked have the versions of the snapshot, and others newer ones.
        later = set()
        for number, reported in enumerate(statement.reported):
            if locks and self._is_locked(reported):
                later.add(number)
            elif number != join.root and not self._facts.is_large(versions[number]):
                self._facts.add_reads(reported.table, _distinct(versions[number]))
        if not self._has_parents(join, versions):
            self._facts.note_unseen(CONDITIONS)
        unclear = RECHECKED if locks and not self._keeps_locked_rows(join, rows) else ""
        self._facts.add_condition(root, rows, "", join, unclear)
        for number in later - {join.root}:
            if not self._facts.is_large(versions[number]):
                self._facts.add_reads(statement.reported[number].table, _distinct(versions[number]))

    def _has_parents(self, join: KeyJoin, versions: Sequence[Sequence[RowVersion]]) -> bool:
        """Return whether each row in the answer has the rows that it was joined with.

        SOUND BECAUSE: a parent by a foreign key is missing only if the key is NULL, which the child
        says.
        """
        others = [edge.parent for edge in join.edges if edge.key is None]
        return all(len(versions[number]) == len(versions[join.root]) for number in others)

    def _note_cover(self, versions: Sequence[Sequence[RowVersion]]) -> bool:
        """Record the rows of a join, and what decided that it has no others.

        Return whether this is known; if not, nothing is recorded.
        """
        statement, done = self._facts.statement, self._facts.done
        cover = statement.cover
        if cover is None:
            return False
        tables = [reported.table for reported in statement.reported]
        answered = [_distinct(rows) for rows in versions]
        if any(len(rows) > self._facts.observation.most_rows for rows in answered):
            return False
        is_whole = statement.plan.partial == JOINS and not (
            has_reached_limit(done) or statement.plan.offset
        )
        if cover.tables:
            texts = {id(reported): text for reported, text in done.reported}
            found = [
                JoinedRows.of(
                    table,
                    reported.table.key,
                    self._facts.versions(reported, texts.get(id(reported), b"null")),
                )
                for table, reported in zip(tables, cover.tables, strict=True)
            ]
        elif is_whole:
            found = [
                JoinedRows.of(table, table.key, rows)
                for table, rows in zip(tables, answered, strict=True)
            ]
        else:
            return False
        facts = cover_facts(cover.cover, done, tables, found, answered, is_whole=is_whole)
        if facts is None:
            return False
        for table, rows in zip(tables, answered, strict=True):
            self._facts.add_reads(table, rows)
        for fact in facts:
            self._facts.add_predicate_read(
                fact.table, fact.rows, fact.predicate, perhaps=fact.perhaps, kept=fact.kept
            )
        return True

    def _note_block_cover(
        self, cover: BlockCover, versions: Sequence[Sequence[RowVersion]]
    ) -> None:
        """Record what may have decided the rows of a query block."""
        covered = [
            JoinedRows.of(table, (*table.key, *more), rows)
            for table, more, rows in zip(cover.tables, _more_columns(cover), versions, strict=True)
        ]
        none: list[list[RowVersion]] = [[] for _ in covered]
        done = self._facts.done
        facts = cover_facts(cover.cover, done, cover.tables, covered, none, is_whole=False)
        if facts is None:
            self._facts.note_unseen(CONDITIONS)
        for fact in facts or ():
            self._facts.add_predicate_read(fact.table, fact.rows, fact.predicate, perhaps=True)

    def _is_locked(self, reported: ReportedTable) -> bool:
        """Return whether a SELECT locks the rows of a table."""
        locked = self._facts.statement.plan.locked
        return locked is None or name_parts(reported.source.alias)[-1] in locked

    def _keeps_locked_rows(self, join: KeyJoin, rows: Sequence[RowVersion]) -> bool:
        """Return whether a locking join at READ COMMITTED returned all rows of its snapshot.

        SOUND BECAUSE: if a locked row was replaced after the statement's snapshot, the server joins
        its newest version with the rows that the old version was joined with. So it leaves out a
        row that moved to another parent, although the condition holds in both versions, and behind
        LEFT JOIN it leaves out the parent. It never adds a row. So if it returned as many rows as
        the snapshot has, each row that it did not return fails the condition in the version of the
        snapshot.
        """
        snapshot, reported = self._facts.statement.snapshot, self._facts.statement.reported
        texts = [text for column, text in self._facts.done.reported if column is snapshot]
        if snapshot is None or not texts:
            return False
        before = self._facts.versions(snapshot, texts[0])
        is_same = {row.number for row in before} == {row.number for row in rows}
        return len(before) == len(rows) and all(
            (edge.child == join.root and is_same) or not self._is_locked(reported[edge.child])
            for edge in join.edges
            if reported[edge.parent].source.join == "left"
        )

    def add_blocks(self) -> None:
        """Note the rows found by the query blocks of a SELECT, and that no other rows matched.

        SOUND BECAUSE: a statement that has reached its LIMIT may have read fewer rows. But where
        its blocks find exactly these rows, its answer is right.
        """
        self.add_rows_of_blocks(in_part=has_reached_limit(self._facts.done))

    def add_rows_of_blocks(self, *, in_part: bool = False) -> None:
        """Note the rows found by query blocks.

        Args:
            in_part: whether the statement may not have read all of them.
        """
        done = self._facts.done
        by_block = {id(reported): found for reported, found in done.reported}
        covered: list[list[RowVersion]] = []  # of the tables of one block, in the order of FROM
        for block in self._facts.statement.blocks:
            if block.query:
                continue
            reported = block.reported
            rows = self._facts.versions(reported, by_block.get(id(reported), b"null"))
            if block.cover is not None:
                covered.append(rows)
                if len(covered) == len(block.cover.tables):
                    self._note_block_cover(block.cover, covered)
                    covered = []
                continue
            if block.loose is not None:
                may_lack = in_part or bool(reported.source.cut)
                note_loose_block(self._facts, block, block.loose, rows, perhaps=may_lack)
                continue
            if self._facts.is_large(rows):
                continue
            if reported.source.cut and len(rows) > MOST_ROWS:
                self._facts.note_unseen(LIMITED)
                continue
            perhaps = in_part or is_cut_off(done, block, len(rows))
            if block.join is not None:
                rows = _distinct(rows)
                if block.is_parent:
                    self._facts.add_reads(reported.table, rows, perhaps=perhaps)
                    continue
                if not self._keeps_rows(block.join, rows):
                    self._facts.add_reads(reported.table, rows, perhaps=perhaps)
                    self._facts.note_unseen(CONDITIONS)
                    continue
            kind, predicate = predicate_of_block(done, block, len(rows))
            added = predicate and self._facts.add_predicate_read(
                reported.table, rows, predicate, perhaps=perhaps
            )
            if kind or (predicate and not added):
                self._facts.note_unseen(kind or (LIMITED if perhaps else CONDITIONS))
            if not added:
                self._facts.add_reads(reported.table, rows, perhaps=perhaps)


def _change(write: WrittenRow) -> RowChange:
    """Return how a write changed a row."""
    if write.version is None:
        return "deleted"
    if write.inserts:
        return "added"
    keeps_key = write.same_key or (write.old is not None and write.old.key == write.version.key)
    return "kept its key" if keeps_key else "changed"


def _differs(row: Mapping[str, Any] | None, predicate: Predicate) -> bool:
    """Return whether a row lacks a value that a predicate requires."""
    parts = predicate[1:] if predicate[0] == "and" else (predicate,)
    return row is not None and any(
        part[0] == "=" and part[1] in row and row[part[1]] != part[2] for part in parts
    )


def _more_columns(cover: BlockCover) -> list[tuple[str, ...]]:
    """Return the columns that are reported of each table besides its key."""
    return [
        tuple(name for name in columns if name not in table.key)
        for table, columns in zip(cover.tables, cover.cover.columns, strict=True)
    ]


def _distinct(versions: Sequence[RowVersion]) -> list[RowVersion]:
    """Return the versions without duplicates, because a join may return a row several times."""
    return list({version.number: version for version in versions}.values())
