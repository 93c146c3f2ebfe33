"""Adds the facts of one statement to its transaction: reads, conditions, and what is unseen."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final

from msgspec.structs import replace

from isolang.observe.database import StoredVersion
from isolang.observe.history.edn import predicate_edn
from isolang.observe.history.seen import (
    RowVersion,
    ScannedRows,
    SeenTransaction,
    UnseenRead,
)
from isolang.observe.observation import Observation
from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.evaluated import ServerCondition
from isolang.observe.sql.executed import ExecutedStatement, predicate_of
from isolang.observe.sql.joins import KeyJoin
from isolang.observe.sql.predicates import FoundBy, Predicate
from isolang.observe.sql.rewriting import PreparedStatement, ReportedTable
from isolang.observe.unseen import (
    CATALOGUE,
    CONDITIONS,
    COPIED,
    KINDS,
    LARGE,
    LIMITED,
    NO_ROW,
    OTHER_TABLE,
    RECHECKED,
    SHAPES,
    TEMPORARY,
    form_of,
)

# The kinds of unseen reads whose tables may be known.
_READS: Final = frozenset({
    CONDITIONS, RECHECKED, LIMITED, LARGE, NO_ROW, SHAPES, *KINDS[SHAPES].details,
}) - {COPIED}  # fmt: skip
_WRITES: Final = frozenset({"insert", "update", "delete", "merge"})


class StatementFacts:
    """Adds the facts of an executed statement to its transaction.

    Attributes:
        all_matched: whether the rows that the statement found are all that satisfied its condition.
    """

    def __init__(
        self,
        observation: Observation,
        transaction: SeenTransaction,
        done: ExecutedStatement,
    ) -> None:
        self.observation, self.transaction, self.done = observation, transaction, done
        self.statement, self.shown = done.statement, done.statement.shown
        self.all_matched = True

    # --- what is unseen ---

    def note_unseen(self, kind: str, table: str = "") -> None:
        """Count a read or write of the statement as unseen."""
        history = self.observation.history
        history.unseen.note(kind, self.statement.text, table=table)
        if kind in _READS and not (kind == LIMITED and self.statement.plan.kind != "select"):
            self._note_unseen_read(kind)

    def _note_unseen_read(self, kind: str, number: int = 0) -> bool:
        """Note when an unseen read happened; return whether it may be harmless.

        Args:
            number: the number of a read that may turn out to be seen; 0 for others.
        """
        history, tables = self.observation.history, self._tables()
        if tables is None:
            return False
        one = self.transaction
        answered = self.done.answered if self.done.answered >= 0 else history.ticket()[0]
        keeps = one.keeps_snapshot
        one.unseen_reads.append(
            UnseenRead(
                what=kind, text=form_of(self.statement.text), caller=history.caller,
                tables=tuple(table.name for table in tables),
                sent=one.begin if keeps else self.done.ticket[0],
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
        statement = self.statement
        writes = bool(statement.part) and statement.part[0].text in _WRITES
        if statement.names is None or (writes and not statement.reported):
            return None
        found: list[Table] = []
        for table in statement.tables:
            if table is None or (table.why and table.why not in (CATALOGUE, TEMPORARY)):
                return None
            if table.partitioned or table.altered or not table.rows_known:
                return None
            if table.secured and self.observation.database.roles_change:
                return None
            if not table.why:
                found.append(table)
        return found

    # --- reads and conditions ---

    def add_reads(
        self,
        table: Table,
        rows: Sequence[RowVersion],
        columns: Sequence[str] = (),
        *,
        perhaps: bool = False,
    ) -> None:
        """Add reads of rows, or of some of their columns alone, to the transaction."""
        for version in rows:
            self.transaction.read(table, version, self.shown, tuple(columns), perhaps=perhaps)

    def is_large(self, rows: Sequence[RowVersion]) -> bool:
        """Return whether there are too many rows for a predicate read; if so, count that."""
        if len(rows) <= self.observation.most_rows:
            return False
        self.note_unseen(LARGE)
        return True

    def is_read_committed(self) -> bool:
        """Return whether each statement of the transaction has a separate snapshot."""
        return self.transaction.level in ("read committed", "read uncommitted")

    def add_condition(
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
        if self.is_large(rows):
            return
        kind, predicate, order = predicate_of(
            self.done,
            table,
            len(rows),
            partial,
            read_committed=self.is_read_committed(),
            join=join,
        )
        columns: tuple[str, ...] | None = None
        if self.statement.plan.kind != "select":
            used = used_columns(self.statement, table)
            columns = None if "*" in used else tuple(sorted(used))
        certain = predicate and self.all_matched and not unclear
        if certain and self.add_predicate_read(table, rows, predicate, order, columns=columns):
            return
        if kind or predicate:
            self.note_unseen(kind or unclear or CONDITIONS)
        # SOUND BECAUSE: the old version of a row counts as read only if the statement's effect
        # depends on more than the key of that version. Otherwise, a lost update would be reported
        # as a fractured read.
        if columns != ():
            self.add_reads(table, rows, columns or ())

    def depends_on_rows(self, table: Table) -> bool:
        """Return whether the effect of a write depends on more than the keys of its rows."""
        return bool(used_columns(self.statement, table))

    def add_predicate_read(
        self,
        table: Table,
        rows: Sequence[RowVersion],
        predicate: FoundBy,
        order: tuple[str, bool] | None = None,
        *,
        columns: tuple[str, ...] | None = None,
        perhaps: bool = False,
        kept: tuple[tuple[str, str], ...] = (),
        loose: Predicate | None = None,
    ) -> bool:
        """Note a predicate read: the rows found, and that no other rows matched.

        Return whether this is possible. A condition that the server evaluates must be certain.

        Args:
            columns: the columns that count as read if the server cannot evaluate the condition;
                ``None`` for all.
            loose: a predicate that all rows satisfy, of which only those were found that satisfy
                ``predicate``; empty if none is known.
        """
        one = self.transaction
        condition, where, number = None, "", 0
        if isinstance(predicate, ServerCondition):
            if perhaps:
                return False
            last = rows[-1].number if predicate.order and rows else ""
            # The names of a definition that is not committed mean nothing to other sessions.
            evaluated = self.observation.history.evaluated
            if not one.altered:
                condition = evaluated.add(table, replace(predicate, last=last))
            if condition is None:
                return False
            evaluated.reads += 1
            if self._note_unseen_read(CONDITIONS, evaluated.reads):
                number = evaluated.reads
            where = predicate_edn(loose) if loose else ""
        else:
            where = predicate_edn(predicate)
        one.operations.append(
            ScannedRows(
                table, where, tuple(rows), self.shown, order, one.statement, one.caller,
                perhaps, condition, columns, number, kept, loose is not None,
            )
        )  # fmt: skip
        for version in () if perhaps or loose is not None else rows:
            one.seen.add((table.name, version.number))
        return True

    # --- versions of rows ---

    def versions(self, reported: ReportedTable, text: bytes) -> list[RowVersion]:
        """Return the row versions in a column reported by a SELECT."""
        stored = self.observation.versions.of_read(
            reported.table, text, all_rows=reported.source.how == "all"
        )
        versions = [self.version_in(reported.table, one) for one in stored]
        return [version for version in versions if version is not None]

    def version_in(self, table: Table, stored: StoredVersion | None) -> RowVersion | None:
        """Return a row's version; ``None`` if it belongs to another table with the same name."""
        if stored is None:
            return None
        if not table.partitioned and stored.table != table.oid:
            self.observation.history.unseen.note(OTHER_TABLE, table.name)
            self.observation.epoch += 1
            return None
        return stored.version


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
