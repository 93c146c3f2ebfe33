"""Records the rows written by an application's statement, as returned by the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from isolang.history.values import Keyword
from isolang.observe.closed import KnownVersion, TracedWrite
from isolang.observe.drivers import rows
from isolang.observe.drivers.hooks import Steps
from isolang.observe.drivers.library import Sent
from isolang.observe.drivers.met import ConditionRecorder
from isolang.observe.drivers.observed import WrittenVersions
from isolang.observe.drivers.statements import Statement
from isolang.observe.drivers.transactions import OpenTransaction, Transactions
from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.lexer import catalogue_name
from isolang.observe.unseen import (
    NO_ROW,
    Unseen,
)

DELETED: Final = Keyword("deleted")


class WriteRecorder:
    """Records the writes of one watch."""

    def __init__(
        self,
        transactions: Transactions,
        versions: WrittenVersions,
        conditions: ConditionRecorder,
        unseen: Unseen,
    ) -> None:
        """Create a recorder for a watch.

        Args:
            transactions: the transactions of the watch.
            versions: the versions written by watched transactions.
            conditions: the recorder of conditions.
            unseen: the watch's counts of unseen activity.
        """
        self._transactions = transactions
        self._versions, self._conditions, self._unseen = versions, conditions, unseen

    def record(self, one: OpenTransaction, sent: Sent, statement: Statement, table: Table) -> Steps:
        """Send a write, and record the rows written."""
        if not statement.plan.silent:
            return (yield from self._send_returning(one, sent, statement, table))
        result, found = yield from sent.hidden(self.selected(statement, table))
        yield from self.hidden(one, sent, statement, table, found)
        return result

    def selected(self, statement: Statement, table: Table) -> str:
        """Return the RETURNING expressions that give the watch the rows of a write."""
        ((source,)) = statement.plan.sources
        return rows.selected([(source.alias, table)], row=True, old=self._returns_old(statement))

    def _returns_old(self, statement: Statement) -> bool:
        aliases = {catalogue_name(source.alias) for source in statement.plan.sources}
        return self._conditions.possible and not aliases & {"old", "new"}

    def hidden(
        self,
        one: OpenTransaction,
        sent: Sent,
        statement: Statement,
        table: Table,
        found: Sequence[Sequence[Any]],
    ) -> Steps:
        """Record a write from the returned :meth:`selected` columns."""
        one.number = rows.transaction_of(found) or one.number
        old = self._returns_old(statement)
        (versions,) = rows.versions(found, [table], old=old)
        yield from self._record_rows(one, sent, statement, table, versions, old=old)

    def _send_returning(
        self, one: OpenTransaction, sent: Sent, statement: Statement, table: Table
    ) -> Steps:
        """Send a write that returns rows to the application, and query their versions afterwards.

        In autocommit mode, both statements need a transaction. Otherwise another version could be
        written between them.
        """
        if one.alone:
            yield from sent.ask("BEGIN")
        try:
            result, found = yield from sent.returning()
            yield from self._record_returned(one, sent, statement, table, found)
        except Exception:
            state = self._transactions.library.state(sent.connection)
            if one.alone and state in ("open", "failed"):
                yield from sent.ask("ROLLBACK")
            raise
        if one.alone:
            yield from sent.ask("COMMIT")
        return result

    def _record_returned(
        self,
        one: OpenTransaction,
        sent: Sent,
        statement: Statement,
        table: Table,
        found: list[list[Any]] | None,
    ) -> Steps:
        query = None
        if found is not None and statement.plan.kind != "delete":
            if not found:
                yield from self._record_rows(one, sent, statement, table, {}, old=False)
                return
            query = rows.returned_rows_query(statement, table, found)
        if query is None:
            one.unclear = True
            self._unseen.note("returning", sent.text)
            return
        answer = yield from sent.ask(query)
        one.number = rows.transaction_of(answer) or one.number
        (versions,) = rows.versions(answer, [table])
        yield from self._record_rows(one, sent, statement, table, versions, old=False)

    def _record_rows(
        self,
        one: OpenTransaction,
        sent: Sent,
        statement: Statement,
        table: Table,
        versions: rows.Versions,
        *,
        old: bool,
    ) -> Steps:
        """Record the rows written by a statement.

        Args:
            one: the transaction.
            sent: the statement as it was sent.
            statement: the statement.
            table: the table of the statement.
            versions: the new version of each row; for a deleted row, its last version.
            old: whether each version names its replaced version.
        """
        kind, assigned = statement.plan.kind, statement.plan.assigned
        moved = bool(assigned & set(table.key))
        if kind != "insert":
            replaced: rows.Versions = {
                key: rows.Version(number=one.old, seen=one.seen, cells=one.old_cells)
                for key, one in versions.items()
                if one is not None and one.old is not None
            }
            known = (old or not versions) and len(replaced) == len(versions) and not moved
            yield from self._conditions.note(
                one, sent, statement, table, len(versions), replaced if known else None
            )
        for key, version in versions.items():
            step = _detailed_write(statement, table, key, version, old=old and not moved)
            if kind == "delete":
                one.write(key, DELETED, step=step)
            elif version is None:
                one.unclear = True
                self._unseen.note("deleted", key)
            else:
                self._versions.note_write(key, version.number)
                sets = [column for column in table.others if catalogue_name(column) in assigned]
                seen = replace(version.seen, named=sets)
                one.write(key, version.number, seen, step=step)
        proposed = statement.plan.proposed
        if proposed >= 0 and len(versions) != proposed:
            self._unseen.note(NO_ROW, sent.text)
        if versions and moved:
            self._unseen.note("keys", sent.text)


def _detailed_write(
    statement: Statement, table: Table, key: str, version: rows.Version | None, *, old: bool
) -> TracedWrite:
    """Return a detailed write of a row; ``old`` is true if it names the replaced version."""
    plain = statement.plan.kind == "insert" and not statement.plan.upserts
    replaced = None
    if version is not None and version.old is not None:
        replaced = KnownVersion(key, version.old, version.old_cells)
    gone = statement.plan.kind == "delete" or version is None
    return TracedWrite(
        table=table.name,
        key=key,
        number=None if gone or version is None else version.number,
        cells={} if gone or version is None else version.cells,
        old=replaced,
        old_known=version is not None and (old or plain),
    )
