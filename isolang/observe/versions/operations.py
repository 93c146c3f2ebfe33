"""Derives a statement's reads and writes from the rows returned by the server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

from msgspec.structs import replace

from isolang.observe.database import StoredVersion
from isolang.observe.history.edn import predicate_edn
from isolang.observe.history.seen import (
    FoundKey,
    LoggedWrites,
    RowVersion,
    ScannedRows,
    SeenTransaction,
    UnseenRead,
    WrittenRow,
)
from isolang.observe.observation import Observation
from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.evaluated import ServerCondition
from isolang.observe.sql.executed import (
    ExecutedStatement,
    finds_chosen,
    has_reached_limit,
    is_joined_by_key,
    looked_up_key_count,
    predicate_of,
    predicate_of_block,
)
from isolang.observe.sql.joins import KeyJoin, RowChange, may_lack_parents
from isolang.observe.sql.plan import JOINS, name_parts
from isolang.observe.sql.predicates import FoundBy
from isolang.observe.sql.proposed import skipped_keys
from isolang.observe.sql.rewriting import (
    BlockCover,
    PreparedStatement,
    ReportedTable,
    keeps_key,
    limit_value,
)
from isolang.observe.unseen import (
    ALTERED,
    CALLED,
    CASCADES,
    CATALOGUE,
    CONDITIONS,
    COPIED,
    COPY,
    KEY_TYPE,
    KINDS,
    LARGE,
    LIMITED,
    NO_KEY,
    NO_ROW,
    OLD_SERVER,
    OTHER_TABLE,
    PARTITIONED,
    PRIVILEGE,
    PROCEDURES,
    RECHECKED,
    RULES,
    SHAPES,
    TEMPORARY,
    TRIGGERS,
    form_of,
    table_added_to,
)
from isolang.observe.versions.covers import JoinedRows, cover_facts

# The kinds of unseen reads whose tables may be known.
_READS: Final = frozenset({
    CONDITIONS, RECHECKED, LIMITED, LARGE, NO_ROW, SHAPES, *KINDS[SHAPES].details,
}) - {COPIED}  # fmt: skip
_WRITES: Final = frozenset({"insert", "update", "delete", "merge"})
_READ_ANYTHING: Final = frozenset({CALLED, PROCEDURES, TRIGGERS})
# The kinds of unseen writes that depend on the target table of an INSERT.
_KINDS_OF_TABLES: Final = frozenset({NO_KEY, KEY_TYPE, PRIVILEGE, PARTITIONED})


def record_statement(
    observation: Observation,
    one: SeenTransaction,
    done: ExecutedStatement,
    *,
    only_rows: bool = False,
    skips: bool = False,
) -> None:
    """Record the operations of a statement, where they belong in its transaction.

    SOUND BECAUSE: a SELECT reads the snapshot of the time when it was bound, which lacks the
    transaction's later writes, even if the application requests its rows after them. A SELECT that
    locks rows may read newer versions, and leaves out rows that the transaction has written since;
    so the rows that it returned do not show which rows satisfied its condition.

    Args:
        only_rows: whether more rows may follow.
        skips: whether rows before the last one may be missing, because a cursor was moved.
    """
    position, plan, named = done.position, done.statement.plan, one.statement
    operations = StatementOperations(observation, one, done)
    if position is None:
        operations.record()
        return
    is_last = position.at >= len(one.operations)
    # A lock of rows is taken when they are requested.
    now = plan.locks and (not is_last or done.statement.declares is not None)
    one.statement = one.statement_now(plan.lock) if now else position.statement
    record = operations.record_rows if only_rows else operations.record
    if skips:
        record = operations.record_some_rows
    operations.all_matched = is_last or not plan.locks
    # The operations precede a savepoint that was set since, so its rollback keeps them.
    is_before = plan.kind == "select" and position.savepoints < len(one.savepoints)
    if (is_last and not is_before) or plan.locks or plan.kind != "select":
        record()
        if is_last:
            position.at = len(one.operations)
    else:
        every, one.operations = one.operations, []
        record()
        added, one.operations = one.operations, every
        one.insert(position, added)
    one.statement = named


class StatementOperations:
    """Adds the operations of an executed statement to its transaction.

    Attributes:
        all_matched: whether the rows that the statement found are all that satisfied its condition.
    """

    def __init__(
        self, observation: Observation, transaction: SeenTransaction, done: ExecutedStatement
    ) -> None:
        self._observation, self._transaction, self._done = observation, transaction, done
        self._statement, self._shown = done.statement, done.statement.shown
        self.all_matched = True

    def record_rows(self) -> None:
        """Record the rows received by the application so far."""
        cover, blocks = self._statement.cover, self._statement.blocks
        added = {id(reported) for reported in cover.tables} if cover is not None else set()
        added |= {id(block.reported) for block in blocks if block.cover is not None}
        for reported, text in self._done.reported:
            if id(reported) not in added:
                self._note_read_rows(reported.table, self._versions(reported, text))

    def record_some_rows(self) -> None:
        """Record the rows that a cursor fetched, and count its condition as unseen."""
        self._count_hidden()
        if self._statement.plan.kind == "select":
            self.record_rows()
            self._note(CONDITIONS)

    def record(self) -> None:
        """Record the statement's reads and writes, and count those that cannot be seen."""
        statement = self._statement
        self._count_hidden()
        if any(one is not None and one.table.altered for one in statement.columns):
            self._note(ALTERED)
        elif self._observation.database.roles_change and any(
            one is not None and one.table.secured for one in statement.columns
        ):
            self._transaction.unclear = True
            self._note(RULES)
        elif statement.plan.kind == "compound":
            self._note_queries()
        elif statement.plan.kind == "select":
            if statement.reported:
                self._note_select()
            if statement.blocks:
                self._note_blocks()
        elif statement.reported:
            self._note_writes()

    # --- all kinds of statements ---

    def _note(self, kind: str, table: str = "") -> None:
        """Count a read or write of the statement as unseen."""
        history = self._observation.history
        history.unseen.note(kind, self._statement.text, table=table)
        if kind in _READS and not (kind == LIMITED and self._statement.plan.kind != "select"):
            self._note_unseen_read(kind)

    def _note_unseen_read(self, kind: str, number: int = 0) -> bool:
        """Note when an unseen read happened; return whether it may be harmless.

        Args:
            number: the number of a read that may turn out to be seen; 0 for others.
        """
        history, tables = self._observation.history, self._tables()
        if tables is None:
            return False
        one = self._transaction
        answered = self._done.answered if self._done.answered >= 0 else history.ticket()[0]
        keeps = one.keeps_snapshot
        one.unseen_reads.append(
            UnseenRead(
                what=kind, text=form_of(self._statement.text), caller=history.caller,
                tables=tuple(table.name for table in tables),
                sent=one.begin if keeps else self._done.ticket[0],
                answered=one.snapshot if keeps and one.snapshot >= 0 else answered, number=number,
            )
        )  # fmt: skip
        one.unseen_tables += tables
        return True

    def _tables(self) -> list[Table] | None:
        """Return the tables that the statement may have read; ``None`` if it may matter anyway.

        SOUND BECAUSE: all writers of these tables are in the history, or are found by the audit. A
        partition may be written under its own name.
        """
        statement = self._statement
        writes = bool(statement.part) and statement.part[0].text in _WRITES
        if statement.names is None or (writes and not statement.reported):
            return None
        found: list[Table] = []
        for table in statement.tables:
            if table is None or (table.why and table.why not in (CATALOGUE, TEMPORARY)):
                return None
            if table.partitioned or table.altered or not table.rows_known:
                return None
            if table.secured and self._observation.database.roles_change:
                return None
            if not table.why:
                found.append(table)
        return found

    def _count_hidden(self) -> None:
        """Count the reads and writes hidden by the statement's form."""
        made, unseen = self._statement.plan, self._observation.history.unseen
        if made.kind != "insert":
            unseen.read.update([name_parts(one)[-1] for one in made.tables])
        in_log = [what for what in self._statement.unseen if self._log_shows(what)]
        hidden = {*self._statement.unseen}.difference(in_log)
        # SOUND BECAUSE: an INSERT with a subquery counts that, too.
        only_adds = made.kind == "insert" and not (made.upserts or made.may_skip)
        only_adds = only_adds and hidden <= _KINDS_OF_TABLES
        if hidden and not only_adds and not table_added_to(self._statement.text):
            unseen.note_read(None if hidden & _READ_ANYTHING else self._statement.names)
        if any(table.readers for table in self._statement.triggered):
            unseen.note_read(None)
        for what in self._statement.unseen:
            adds = made.kind == "insert" and what in _KINDS_OF_TABLES
            if what == CALLED:
                self._note_functions(self._statement.functions)
            elif what not in in_log:
                self._note(what, table=name_parts(made.tables[0])[-1] if adds else "")
            elif what == PARTITIONED and made.kind != "insert":
                self._note(CONDITIONS)
        for table in self._statement.triggered:
            self._note_functions(table.readers)
        if self._done.mark:
            one = self._transaction
            one.awaits_log = True
            one.operations.append(
                LoggedWrites(
                    self._done.mark, self._shown, self._statement.text, tuple(in_log),
                    one.statement, one.caller,
                )
            )  # fmt: skip

    def _log_shows(self, what: str) -> bool:
        """Return whether the server's log shows all that is unseen of a kind."""
        made = self._statement.plan
        if not self._done.mark:
            return False
        if what == PARTITIONED:
            return not (made.upserts or made.may_skip)
        return what in (TRIGGERS, CASCADES, COPY)

    def _note_functions(self, functions: Iterable[str]) -> None:
        """Count functions that may read rows, each with its schema and language."""
        for function in functions:
            text = f"{function}, in {self._statement.text}"
            self._observation.history.unseen.note(CALLED, text)

    def _note_read_rows(
        self, table: Table, rows: Sequence[RowVersion], columns: Sequence[str] = ()
    ) -> None:
        """Add reads of rows, or of some of their columns alone, to the transaction."""
        for version in rows:
            self._transaction.read(table, version, self._shown, tuple(columns))

    def _is_large(self, rows: Sequence[RowVersion]) -> bool:
        """Return whether there are too many rows for a predicate read; if so, count that."""
        if len(rows) <= self._observation.most_rows:
            return False
        self._note(LARGE)
        return True

    def _is_read_committed(self) -> bool:
        """Return whether each statement of the transaction has a separate snapshot."""
        return self._transaction.level in ("read committed", "read uncommitted")

    # --- SELECT ---

    def _note_select(self) -> None:
        """Record the rows read by a SELECT from each of its tables."""
        statement = self._statement
        found: dict[int, list[RowVersion]] = {id(one): [] for one in statement.reported}
        for reported, text in self._done.reported:
            if (versions := found.get(id(reported))) is not None:
                versions += self._versions(reported, text)
        whole = len(statement.reported) == len(statement.plan.sources)
        first = statement.reported[0]
        table, rows = first.table, _distinct(found[id(first)])
        each = [found[id(reported)] for reported in statement.reported]
        subqueries = whole and statement.plan.partial == "subqueries"
        if subqueries and not self._has_all_keys(table, rows) and self._note_cover(each):
            return
        if whole and len(found) == 1:
            self._note_condition(table, rows, statement.plan.partial)
            return
        # SOUND BECAUSE: if there are subqueries, functions, HAVING or DISTINCT ON, the joins are
        # not the only reason why rows are not returned.
        only = whole and statement.plan.partial == JOINS
        join = statement.join
        if only and join is not None and self._keeps_rows(join) and self._has_parents(join, each):
            self._note_key_join(join, each)
            return
        joined = only and all(
            is_joined_by_key(statement.part, other.source, other.table)
            for other in statement.reported[1:]
        )
        outer = all(one.source.join == "left" for one in statement.reported[1:])
        has_all = joined and all(len(versions) == self._done.rows for versions in each)
        if only and not (has_all and (outer or self._has_all_keys(table, rows))):
            if self._takes_any_rows(each):
                for reported, versions in zip(statement.reported, each, strict=True):
                    self._note_read_rows(reported.table, _distinct(versions))
                return
            if self._note_cover(each):
                return
        for reported in statement.reported[joined:]:
            versions = found[id(reported)]
            if not self._is_large(versions):
                self._note_read_rows(reported.table, _distinct(versions))
        if not has_all:
            # If a LEFT JOIN finds no row, the statement has observed that a row is missing.
            self._note(CONDITIONS)
        if joined:
            self._note_condition(table, rows, "" if outer else JOINS)

    def _has_all_keys(self, table: Table, rows: Sequence[RowVersion]) -> bool:
        """Return whether a condition names whole keys of the first table, and has found each."""
        looked = looked_up_key_count(self._statement.condition, table, self._done)
        return looked is not None and len(rows) >= looked

    def _takes_any_rows(self, versions: Sequence[Sequence[RowVersion]]) -> bool:
        """Return whether a LIMIT was reached by rows that the server may choose.

        SOUND BECAUSE: each row in the answer is a row of the join wherever its tables' rows are
        visible. Behind a LEFT JOIN that found no row, the row also shows that there is none.
        """
        statement, done = self._statement, self._done
        made = statement.plan
        most = limit_value(statement.part, made.limit, done.parameters) if made.limit else None
        is_reached = done.cut or (most is not None and done.rows >= most)
        return (
            is_reached
            and not (made.order[1] or made.offset or made.locks)
            and all(len(rows) == done.rows <= self._observation.most_rows for rows in versions)
            and all(reported.source.how == "row" for reported in statement.reported)
            and all(token.text != "over" for token in statement.part)
        )

    def _keeps_rows(self, join: KeyJoin) -> bool:
        """Return whether a join left out no row of its root.

        SOUND BECAUSE: a transaction whose writes are not all seen may have deleted parents. A
        snapshot from before a constraint was added may contain other rows.
        """
        database, one = self._observation.database, self._transaction
        if not database.keys_hold or database.key_changes != join.changes or one.unclear:
            return False
        if one.altered or one.begin < database.keys_changed:
            return False
        writes = (write for write in one.operations if isinstance(write, WrittenRow))
        return not any(may_lack_parents(join, write.table, _change(write)) for write in writes)

    def _note_key_join(self, join: KeyJoin, versions: Sequence[Sequence[RowVersion]]) -> None:
        """Record the root's rows as those of its condition, and the parents of each."""
        statement = self._statement
        locks = statement.plan.locks and self._is_read_committed()
        root, rows = statement.reported[join.root].table, _distinct(versions[join.root])
        # Parents that are not locked have the versions of the snapshot, and others newer ones.
        later = set()
        for number, reported in enumerate(statement.reported):
            if locks and self._is_locked(reported):
                later.add(number)
            elif number != join.root and not self._is_large(versions[number]):
                self._note_read_rows(reported.table, _distinct(versions[number]))
        if not self._has_parents(join, versions):
            self._note(CONDITIONS)
        unclear = RECHECKED if locks and not self._keeps_locked_rows(join, rows) else ""
        self._note_condition(root, rows, "", join, unclear)
        for number in later - {join.root}:
            if not self._is_large(versions[number]):
                self._note_read_rows(statement.reported[number].table, _distinct(versions[number]))

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
        statement, done, cover = self._statement, self._done, self._statement.cover
        if cover is None:
            return False
        tables = [reported.table for reported in statement.reported]
        answered = [_distinct(rows) for rows in versions]
        if any(len(rows) > self._observation.most_rows for rows in answered):
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
                    self._versions(reported, texts.get(id(reported), b"null")),
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
            self._note_read_rows(table, rows)
        for fact in facts:
            self._note_predicate_read(
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
        facts = cover_facts(cover.cover, self._done, cover.tables, covered, none, is_whole=False)
        if facts is None:
            self._note(CONDITIONS)
        for fact in facts or ():
            self._note_predicate_read(fact.table, fact.rows, fact.predicate, perhaps=True)

    def _is_locked(self, reported: ReportedTable) -> bool:
        """Return whether a SELECT locks the rows of a table."""
        locked = self._statement.plan.locked
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
        snapshot, reported = self._statement.snapshot, self._statement.reported
        texts = [text for column, text in self._done.reported if column is snapshot]
        if snapshot is None or not texts:
            return False
        before = self._versions(snapshot, texts[0])
        is_same = {row.number for row in before} == {row.number for row in rows}
        return len(before) == len(rows) and all(
            (edge.child == join.root and is_same) or not self._is_locked(reported[edge.child])
            for edge in join.edges
            if reported[edge.parent].source.join == "left"
        )

    def _note_blocks(self) -> None:
        """Note the rows found by the query blocks of a SELECT, and that no other rows matched."""
        done = self._done
        if has_reached_limit(done):  # the statement itself may have read fewer rows
            self._note(LIMITED)
            return
        self._note_rows_of_blocks()

    def _note_rows_of_blocks(self) -> None:
        """Note the rows found by query blocks."""
        done = self._done
        by_block = {id(reported): found for reported, found in done.reported}
        covered: list[list[RowVersion]] = []  # of the tables of one block, in the order of FROM
        for block in self._statement.blocks:
            reported = block.reported
            rows = self._versions(reported, by_block.get(id(reported), b"null"))
            if block.cover is not None:
                covered.append(rows)
                if len(covered) == len(block.cover.tables):
                    self._note_block_cover(block.cover, covered)
                    covered = []
                continue
            if self._is_large(rows):
                continue
            if block.join is not None:
                rows = _distinct(rows)
                keeps_rows = self._keeps_rows(block.join)
                if block.is_parent or not keeps_rows:
                    self._note_read_rows(reported.table, rows)
                    if not (block.is_parent or keeps_rows):
                        self._note(CONDITIONS)
                    continue
            kind, predicate = predicate_of_block(done, block, len(rows))
            if kind:
                self._note(kind)
            if predicate and self._note_predicate_read(reported.table, rows, predicate):
                continue
            if predicate:
                self._note(CONDITIONS)
            self._note_read_rows(reported.table, rows)

    # --- statements with several queries ---

    def _note_queries(self) -> None:
        """Note the rows read and written by the queries of a statement.

        SOUND BECAUSE: all its queries read the snapshot of the statement, without its own writes.
        """
        one, before = self._transaction, self._transaction.operations
        one.operations = []
        if self._statement.blocks:
            self._note_rows_of_blocks()
        rows: dict[str, int] = {}
        for query in self._statement.members:
            assert query.member is not None
            done = self._executed(query, rows)
            rows[query.member.name] = done.rows
            operations = StatementOperations(self._observation, one, done)
            if query.plan.kind == "select":
                operations._note_select()
            else:
                operations._note_writes()
        added, one.operations = one.operations, before
        one.operations += sorted(added, key=lambda operation: isinstance(operation, WrittenRow))

    def _executed(self, query: PreparedStatement, rows: Mapping[str, int]) -> ExecutedStatement:
        """Return the execution of one query of a statement.

        Args:
            rows: the number of rows of each query before it.
        """
        done, member = self._done, query.member
        assert member is not None
        reported: list[tuple[ReportedTable, bytes]] = []
        for column in query.reported:
            texts = [text for other, text in done.reported if other is column]
            if member.name:
                texts = [row.encode() for text in texts for row in json.loads(text)]
            reported += [(column, text) for text in texts]
        chosen = rows.get(member.chooser, -1) if member.chooser else query.plan.proposed or -1
        number = len(reported) // max(len(query.reported), 1)
        return ExecutedStatement(
            statement=query, ticket=done.ticket, parameters=done.parameters, rows=number,
            reported=reported, cut=done.cut and not member.name, chosen=chosen,
        )  # fmt: skip

    # --- INSERT, UPDATE and DELETE ---

    def _note_writes(self) -> None:
        """Note the rows written by a statement, and the rows found by its condition."""
        one = self._transaction
        (reported,) = self._statement.reported
        table, named = reported.table, one.statement
        if named and shows_contents(self._statement, table):
            one.statement = f"{named} shown"
        self._note_writes_of(table)
        one.statement = named

    def _note_writes_of(self, table: Table) -> None:
        """Note the rows of one table that a statement wrote, and those that it found."""
        one, made = self._transaction, self._statement.plan
        modern, lost, unnamed = self._observation.database.returns_old_rows, False, False
        writes: list[WrittenRow] = []
        olds: list[RowVersion] = []
        for _, text in self._done.reported:
            written = self._observation.versions.of_write(table, text)
            one.number = written.transaction
            if written.by_number and one.savepoints:
                unnamed = True
                continue
            old = self._version_in(table, written.old)
            new = self._version_in(table, written.new)
            if old is None and new is None:
                continue
            if old is not None:
                olds.append(old)
            row = None if written.row is None or new is None else table.row(written.row)
            unknown = old is None and not modern and (made.kind == "update" or made.upserts)
            lost = lost or unknown
            writes.append(
                WrittenRow(
                    table, new, row, old, self._shown, inserts=old is None and not unknown,
                    statement=one.statement, same_key=unknown and keeps_key(made, table),
                    caller=one.caller, image=written.image,
                )
            )  # fmt: skip
        if unnamed and not self._done.mark:
            self._note(PARTITIONED)
            one.unclear = True
        if lost:
            self._note_unknown_order(table, writes)
        if self._done.cut and not is_whole(self._done, table, len(writes)):
            self._note(LIMITED)
            one.unclear = True
        elif made.may_skip and len(writes) not in (made.proposed or -1, self._done.chosen):
            self._note_skipped_keys(table, writes)
        if made.kind == "merge" and not finds_chosen(self._done, table, len(writes)):
            self._note(CONDITIONS)
        if made.kind in ("insert", "merge"):
            self._note_read_rows(table, olds)  # ON CONFLICT DO UPDATE
        elif not lost:
            self._note_condition(table, olds, made.partial)
        for write in writes:
            one.write(write)

    def _note_skipped_keys(self, table: Table, writes: Sequence[WrittenRow]) -> None:
        """Note that the keys of the rows that an INSERT left out existed."""
        one, done = self._transaction, self._done
        written = {write.version.values for write in writes if write.version is not None}
        keys = skipped_keys(self._statement.part, table, done.parameters, written)
        if keys is None:
            self._note(NO_ROW)
            return
        for key in keys:
            text = table.key_text(key)
            one.operations.append(FoundKey(table, text, self._shown, one.statement, one.caller))

    def _note_unknown_order(self, table: Table, writes: Sequence[WrittenRow]) -> None:
        """Note a write of rows for which an old server does not return the replaced versions."""
        history, made = self._observation.history, self._statement.plan
        history.doubtful.setdefault(table.name, table.name)
        history.unordered.add(table.name)
        kind = ""
        predicate: FoundBy = ""
        if made.kind == "update":
            kind, predicate, _ = predicate_of(
                self._done,
                table,
                len(writes),
                made.partial,
                read_committed=self._is_read_committed(),
            )
        if kind:
            self._note(kind)
        moves = any(not write.same_key for write in writes)
        if predicate or made.upserts or moves or self._depends_on_rows(table):
            self._note(OLD_SERVER)

    # --- conditions ---

    def _note_condition(
        self,
        table: Table,
        rows: Sequence[RowVersion],
        partial: str,
        join: KeyJoin | None = None,
        unclear: str = "",
    ) -> None:
        """Note the rows that a statement found in a table, and that no others match.

        With ``unclear``, it is not known that no others match, which counts as that kind.
        """
        if self._is_large(rows):
            return
        kind, predicate, order = predicate_of(
            self._done,
            table,
            len(rows),
            partial,
            read_committed=self._is_read_committed(),
            join=join,
        )
        columns: tuple[str, ...] | None = None
        if self._statement.plan.kind != "select":
            used = used_columns(self._statement, table)
            columns = None if "*" in used else tuple(sorted(used))
        certain = predicate and self.all_matched and not unclear
        if certain and self._note_predicate_read(table, rows, predicate, order, columns=columns):
            return
        if kind or predicate:
            self._note(kind or unclear or CONDITIONS)
        # SOUND BECAUSE: the old version of a row counts as read only if the statement's effect
        # depends on more than the key of that version. Otherwise, a lost update would be reported
        # as a fractured read.
        if columns != ():
            self._note_read_rows(table, rows, columns or ())

    def _depends_on_rows(self, table: Table) -> bool:
        """Return whether the effect of a write depends on more than the keys of its rows."""
        return bool(used_columns(self._statement, table))

    def _note_predicate_read(
        self,
        table: Table,
        rows: Sequence[RowVersion],
        predicate: FoundBy,
        order: tuple[str, bool] | None = None,
        *,
        columns: tuple[str, ...] | None = None,
        perhaps: bool = False,
        kept: tuple[tuple[str, str], ...] = (),
    ) -> bool:
        """Note a predicate read: the rows found, and that no other rows matched.

        Return whether this is possible.

        Args:
            columns: the columns that count as read if the server cannot evaluate the condition;
                ``None`` for all.
        """
        one = self._transaction
        condition, where, number = None, "", 0
        if isinstance(predicate, ServerCondition):
            last = rows[-1].number if predicate.order and rows else ""
            # The names of a definition that is not committed mean nothing to other sessions.
            evaluated = self._observation.history.evaluated
            if not one.altered:
                condition = evaluated.add(table, replace(predicate, last=last))
            if condition is None:
                return False
            evaluated.reads += 1
            if self._note_unseen_read(CONDITIONS, evaluated.reads):
                number = evaluated.reads
        else:
            where = predicate_edn(predicate)
        one.operations.append(
            ScannedRows(
                table, where, tuple(rows), self._shown, order, one.statement, one.caller,
                perhaps, condition, columns, number, kept,
            )
        )  # fmt: skip
        for version in rows if not perhaps else ():
            one.seen.add((table.name, version.number))
        return True

    # --- versions of rows ---

    def _versions(self, reported: ReportedTable, text: bytes) -> list[RowVersion]:
        """Return the row versions in a column reported by a SELECT."""
        stored = self._observation.versions.of_read(
            reported.table, text, all_rows=reported.source.how == "all"
        )
        versions = [self._version_in(reported.table, one) for one in stored]
        return [version for version in versions if version is not None]

    def _version_in(self, table: Table, stored: StoredVersion | None) -> RowVersion | None:
        """Return a row's version; ``None`` if it belongs to another table with the same name."""
        if stored is None:
            return None
        if not table.partitioned and stored.table != table.oid:
            self._observation.history.unseen.note(OTHER_TABLE, table.name)
            self._observation.epoch += 1
            return None
        return stored.version


def _change(write: WrittenRow) -> RowChange:
    """Return how a write changed a row."""
    if write.version is None:
        return "deleted"
    if write.inserts:
        return "added"
    keeps_key = write.same_key or (write.old is not None and write.old.key == write.version.key)
    return "kept its key" if keeps_key else "changed"


def _more_columns(cover: BlockCover) -> list[tuple[str, ...]]:
    """Return the columns that are reported of each table besides its key."""
    return [
        tuple(name for name in columns if name not in table.key)
        for table, columns in zip(cover.tables, cover.cover.columns, strict=True)
    ]


def _distinct(versions: Sequence[RowVersion]) -> list[RowVersion]:
    """Return the versions without duplicates, because a join may return a row several times."""
    return list({version.number: version for version in versions}.values())


def is_whole(done: ExecutedStatement, table: Table, number: int) -> bool:
    """Return whether a write has no more rows than those that the application requested."""
    if done.statement.plan.kind == "insert":
        return done.statement.plan.proposed == number
    return looked_up_key_count(done.statement.condition, table, done) == number


def shows_contents(statement: PreparedStatement, table: Table) -> bool:
    """Return whether an UPDATE or DELETE shows the program more of a row than its key.

    It returns the row, or has found it by a condition on its contents. A condition that cannot be
    evaluated is one on contents.
    """
    made, condition, key = statement.plan, statement.condition, set(table.key)
    if made.kind == "insert":
        return False
    returned = made.returned - key
    return bool(returned or condition.why or condition.columns - key)


def used_columns(statement: PreparedStatement, table: Table) -> Set[str]:
    """Return the columns that a write uses of the rows that it replaces.

    The result is empty if these are only columns of the key. It is ``*`` if what is written, or
    that a row is deleted, may follow from the old row, so that the write loses no update.
    """
    made, condition, key = statement.plan, statement.condition, set(table.key)
    returned = made.returned | (table.columns.keys() if "*" in made.returned else set())
    if made.kind == "delete":
        shows_old = not returned <= key
    else:
        shows_old, returned = "old." in returned, returned - made.assigned
    if made.computes or condition.why or shows_old:
        return {"*"}
    used = condition.columns | (returned - {"*"})
    # A table may have columns that are not recorded.
    return used if "*" in made.returned or not used <= key else set()
