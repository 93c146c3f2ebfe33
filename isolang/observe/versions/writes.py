"""Derives the reads and writes of an INSERT, UPDATE, DELETE or MERGE from the rows returned."""

from __future__ import annotations

from collections.abc import Sequence

from isolang.observe.history.seen import FoundKey, RowVersion, WrittenRow
from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.executed import (
    ExecutedStatement,
    finds_chosen,
    looked_up_key_count,
    predicate_of,
)
from isolang.observe.sql.predicates import FoundBy
from isolang.observe.sql.proposed import skipped_keys
from isolang.observe.sql.rewriting import PreparedStatement, keeps_key
from isolang.observe.unseen import CONDITIONS, LIMITED, NO_ROW, OLD_SERVER, PARTITIONED
from isolang.observe.versions.facts import StatementFacts


class WriteOperations:
    """Adds the reads and writes of a statement that writes one table to its transaction."""

    def __init__(self, facts: StatementFacts) -> None:
        self._facts = facts

    def add(self) -> None:
        """Note the rows written by a statement, and the rows found by its condition."""
        one = self._facts.transaction
        (reported,) = self._facts.statement.reported
        table, named = reported.table, one.statement
        if named and shows_contents(self._facts.statement, table):
            one.statement = f"{named} shown"
        self._add_writes(table)
        one.statement = named

    def _add_writes(self, table: Table) -> None:
        """Note the rows of one table that a statement wrote, and those that it found."""
        one, made = self._facts.transaction, self._facts.statement.plan
        modern, lost, unnamed = self._facts.observation.database.returns_old_rows, False, False
        writes: list[WrittenRow] = []
        olds: list[RowVersion] = []
        for _, text in self._facts.done.reported:
            written = self._facts.observation.versions.of_write(table, text)
            one.number = written.transaction
            if written.by_number and one.savepoints:
                unnamed = True
                continue
            old = self._facts.version_in(table, written.old)
            new = self._facts.version_in(table, written.new)
            if old is None and new is None:
                continue
            if old is not None:
                olds.append(old)
            row = None if written.row is None or new is None else table.row(written.row)
            unknown = old is None and not modern and (made.kind == "update" or made.upserts)
            lost = lost or unknown
            writes.append(
                WrittenRow(
                    table, new, row, old, self._facts.shown, inserts=old is None and not unknown,
                    statement=one.statement, same_key=unknown and keeps_key(made, table),
                    caller=one.caller, image=written.image,
                )
            )  # fmt: skip
        if unnamed and not self._facts.done.mark:
            self._facts.note_unseen(PARTITIONED)
            one.unclear = True
        if lost:
            self._note_unknown_order(table, writes)
        if self._facts.done.cut and not is_whole(self._facts.done, table, len(writes)):
            self._facts.note_unseen(LIMITED)
            one.unclear = True
        elif made.may_skip and len(writes) not in (made.proposed or -1, self._facts.done.chosen):
            self._note_skipped_keys(table, writes)
        if made.kind == "merge" and not finds_chosen(self._facts.done, table, len(writes)):
            self._facts.note_unseen(CONDITIONS)
        if made.kind in ("insert", "merge"):
            self._facts.add_reads(table, olds)  # ON CONFLICT DO UPDATE
        elif not lost:
            self._facts.add_condition(table, olds, made.partial)
        for write in writes:
            one.write(write)

    def _note_skipped_keys(self, table: Table, writes: Sequence[WrittenRow]) -> None:
        """Note that the keys of the rows that an INSERT left out existed."""
        one, done = self._facts.transaction, self._facts.done
        written = {write.version.values for write in writes if write.version is not None}
        keys = skipped_keys(self._facts.statement.part, table, done.parameters, written)
        if keys is None:
            rows = [self._facts.versions(*one) for one in done.conflicts]
            # Behind rows that were inserted, it is not certain which the others are.
            if writes or not rows or not all(rows):
                self._facts.note_unseen(NO_ROW)
                return
            for row, *_ in rows:
                self._facts.add_reads(table, [row], perhaps=True)
            return
        for key in keys:
            text = table.key_text(key)
            one.operations.append(
                FoundKey(table, text, self._facts.shown, one.statement, one.caller)
            )

    def _note_unknown_order(self, table: Table, writes: Sequence[WrittenRow]) -> None:
        """Note a write of rows for which an old server does not return the replaced versions."""
        history, made = self._facts.observation.history, self._facts.statement.plan
        history.doubtful.setdefault(table.name, table.name)
        history.unordered.add(table.name)
        kind = ""
        predicate: FoundBy = ""
        if made.kind == "update":
            kind, predicate, _ = predicate_of(
                self._facts.done,
                table,
                len(writes),
                made.partial,
                read_committed=self._facts.is_read_committed(),
            )
        if kind:
            self._facts.note_unseen(kind)
        moves = any(not write.same_key for write in writes)
        if predicate or made.upserts or moves or self._facts.depends_on_rows(table):
            self._facts.note_unseen(OLD_SERVER)


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
