"""Joins what the proxy saw with what the server's log says.

The log names all writes, in the order of each row's versions; the proxy saw reads, the order of
statements, and how transactions ended. A transaction of the log belongs to the one that the proxy
saw if the comment in front of a statement says so, or else its name, which the server gave with the
answer to COMMIT. All others are those of sessions that nobody observed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from isolang.observe.log.mariadb import Group, LoggedStatement
from isolang.observe.log.replay import ReplayedChange, Rows
from isolang.observe.log.tables import LoggedTable, Name
from isolang.observe.mariadb.contents import NamedTables
from isolang.observe.mariadb.reads import SeenOperation, StatementReads, statement_name
from isolang.observe.mariadb.recording import FollowedTransaction, RecordedStatement, Recording
from isolang.observe.unseen import CALLED, CONTRADICTED, IN_NO_LOG, NO_END, TABLES, UNPLACED

_MARK: Final = re.compile(r"i(\d+)\.(p?)(\d+)")


class MergedTransaction(Struct):
    """A transaction of the history.

    Attributes:
        seen: what the proxy saw of it; ``None`` if nobody observed it.
    """

    operations: list[SeenOperation]
    seen: FollowedTransaction | None = None


class Merger:
    """Joins transactions of the log with those that the proxy saw.

    Attributes:
        tables: the tables by name and definition, with the contents of their rows.
        doubtful: the labels of tables whose contents the log does not explain.
    """

    def __init__(self, recording: Recording, most_rows: int) -> None:
        """Begin without rows."""
        self._recording, self._unseen = recording, recording.unseen
        self.tables = NamedTables()
        self._reads = StatementReads(self.tables, recording.unseen, most_rows)
        self.doubtful, self.is_kept = self._reads.doubtful, self._reads.blocks.is_kept
        self.initial: list[tuple[str, str]] = []

    def add_initial(self, tables: Mapping[Name, LoggedTable], rows: Rows) -> None:
        """Add the rows from before the observation."""
        for name, table in tables.items():
            if table.why:
                continue
            named = self.tables.of(table)
            for key, row in rows.get(name, {}).items():
                text = named.add(key, row)
                named.initial[named.key(key)] = text
                self.initial.append((named.label, f"{named.key_edn(key)} {text}"))

    def transactions(self, groups: Sequence[Group]) -> Iterator[MergedTransaction]:
        """Yield all transactions: those that were seen in the order of their ends, then others."""
        written: dict[int, Group] = {}
        writers: dict[int, FollowedTransaction] = {}
        others = []
        find = _Finder(self._recording.transactions)
        for group in groups:
            transaction_seen = find.transaction_of(group) if _has_known_changes(group) else None
            if transaction_seen is None:
                others.append(group)
                continue
            is_another = id(transaction_seen) in written
            if is_another or transaction_seen.outcome == "fail":
                self._note_unclear(transaction_seen)
            if is_another:
                others.append(group)
                continue
            written[id(transaction_seen)], writers[id(group)] = group, transaction_seen
            self._count_outcome(transaction_seen)
        for group in groups:
            if group.ddl:
                self.tables.define(group.defined, self._recording.definitions.get(group.gtid))
        # All contents must be known before the first read is looked up.
        contents = {
            id(group): [self._writes(each, writers.get(id(group))) for each in group.statements]
            for group in groups
        }
        for transaction in self._recording.transactions:
            is_seen = transaction.outcome == "ok"
            operations = (
                self._operations(transaction, written.get(id(transaction)), contents)
                if is_seen
                else []
            )
            # SOUND BECAUSE: one that is not clear may have committed later, as after XA PREPARE.
            yield MergedTransaction(operations, None if transaction.is_unclear else transaction)
        for group in others:
            yield MergedTransaction([op for ops in contents[id(group)] for op in ops])

    def _note_unclear(self, transaction: FollowedTransaction) -> None:
        """Note that the log does not say which statements of a transaction committed together."""
        if not transaction.is_unclear:
            transaction.is_unclear = True
            self._unseen.note(NO_END, transaction.first_text)

    def _count_outcome(self, transaction: FollowedTransaction) -> None:
        """Note that a transaction committed."""
        outcomes = self._recording.outcomes
        outcomes[transaction.outcome] -= 1
        transaction.outcome = "ok"
        outcomes[transaction.outcome] += 1

    def _writes(
        self, statement: LoggedStatement, writer: FollowedTransaction | None
    ) -> list[SeenOperation]:
        """Return the writes of a logged statement, and remember their contents."""
        operations = []
        for change in statement.changes:
            if change.kind == "unknown":
                name = f"{change.table.schema}.{change.table.name}"
                self._unseen.note(TABLES, f"{name}: {change.table.why}", table=change.table.name)
                continue
            table = self.tables.of(change.table)
            key = table.key_edn(change.key)
            row = None if change.after is None else table.add(change.key, change.after)
            if not table.write(change.key, row, writer, change.number):
                self._unseen.note(CONTRADICTED, f"{table.label}/{table.key(change.key)}")
                self.doubtful.add(table.label)
            word = "delete" if row is None else "insert" if change.kind == "insert" else "w"
            text = f"[:{word} {key}]" if row is None else f"[:{word} {key} {row}]"
            operations.append(SeenOperation(text, table.label, change.number, statement.comment))
        return operations

    def _operations(
        self,
        transaction: FollowedTransaction,
        group: Group | None,
        contents: Mapping[int, Sequence[Sequence[SeenOperation]]],
    ) -> list[SeenOperation]:
        """Return the operations of a transaction that was seen."""
        logged: Sequence[LoggedStatement] = () if group is None else group.statements
        writes = () if group is None else contents[id(group)]
        if transaction.is_unclear or not transaction.events:
            return [operation for each in writes for operation in each]
        placed, unsure = _placed(transaction.events, logged)
        if unsure is not None:
            self._unseen.note(UNPLACED, unsure.statement.text)
        operations: list[SeenOperation] = []
        lost = [
            event
            for event in transaction.events
            if _must_be_logged(event) and not placed[id(event)]
        ]
        if lost and group is None:
            # The server has rolled the statements back, or the session does not log them.
            self._unseen.note(IN_NO_LOG, lost[0].statement.text)
            for table in (table for event in lost for table in event.statement.tables):
                self.doubtful |= self.tables.labels_of(table.name)
            return []
        for event in transaction.events:
            numbers = placed[id(event)]
            changes = [change for number in numbers for change in logged[number].changes]
            is_certain = unsure is None or event.number <= unsure.number
            reads = self._event_reads(event, transaction, changes)
            operations += reads if is_certain else []
            name = statement_name(event, transaction)
            operations += [
                SeenOperation(write.text, write.table, write.version, event.statement.text, name)
                for number in numbers for write in writes[number]
            ]  # fmt: skip
        return operations

    def _event_reads(
        self,
        event: RecordedStatement,
        transaction: FollowedTransaction,
        changes: Sequence[ReplayedChange],
    ) -> list[SeenOperation]:
        if event.statement.plan.kind == "select":
            return self._reads.of_select(event, transaction)
        return self._reads.of_write(event, transaction, changes)


def _has_known_changes(group: Group) -> bool:
    """Return whether a transaction of the log changed rows of tables that are observed.

    Tables without transactions, such as those of MyISAM, are in groups of their own.
    """
    changes = [change for statement in group.statements for change in statement.changes]
    return not group.ddl and any(change.kind != "unknown" for change in changes)


def _must_be_logged(event: RecordedStatement) -> bool:
    """Return whether the log must name a write of a statement."""
    tables, plan = event.statement.tables, event.statement.plan
    # REPLACE counts a row that it left as it was; so may INSERT … ON DUPLICATE KEY UPDATE.
    is_write = plan.kind in ("update", "delete") or (plan.kind == "insert" and not plan.name)
    return is_write and event.changed > 0 and bool(tables) and not any(t.why for t in tables)


class _Finder:
    """Finds the transaction that a group of the log belongs to."""

    def __init__(self, transactions: Iterable[FollowedTransaction]) -> None:
        self._by_number: dict[tuple[int, int], FollowedTransaction] = {}
        self._by_gtid: dict[str, FollowedTransaction] = {}
        self._lost: dict[
            int, FollowedTransaction
        ] = {}  # the last one of a connection that was lost
        for transaction in transactions:
            for number in transaction.numbers:
                self._by_number[transaction.connection, number] = transaction
            if transaction.gtid:
                self._by_gtid[transaction.gtid] = transaction
            if transaction.outcome == "info":
                self._lost[transaction.connection] = transaction

    def transaction_of(self, group: Group) -> FollowedTransaction | None:
        """Return the transaction that was seen, if it is known."""
        connection = 0
        for statement in group.statements:
            if (match := _MARK.fullmatch(statement.mark)) is None:
                continue
            connection = int(match[1])
            if not match[2]:
                return self._by_number.get((connection, int(match[3])))
        if group.gtid in self._by_gtid:
            return self._by_gtid[group.gtid]
        return self._lost.get(connection)


def _placed(
    events: Sequence[RecordedStatement], logged: Sequence[LoggedStatement]
) -> tuple[dict[int, list[int]], RecordedStatement | None]:
    """Return the logged statements of each event, by the event's identity.

    What procedures and triggers wrote may have no comment. It belongs to the only statement that
    may have written it; if there are several, the second result is the first event after which it
    is not certain what was already written.
    """
    placed: dict[int, list[int]] = defaultdict(list)
    matched: list[tuple[int, int]] = []
    at = 0
    for place, event in enumerate(events):
        statement = event.statement
        if not statement.mark or (statement.is_binary and not event.changed):
            continue
        number = next((k for k in range(at, len(logged)) if logged[k].mark == statement.mark), None)
        if number is not None:
            matched.append((place, number))
            at = number + 1
    unsure: int | None = None
    edges = [(-1, -1), *matched, (len(events), len(logged))]
    for (place, number), (next_place, next_number) in pairwise(edges):
        between = range(number + 1, next_number)
        if between:
            able = [
                k for k in range(max(place, 0), min(next_place, len(events)))
                if _may_write_more(events[k], is_matched=k == place)
            ]  # fmt: skip
            # A procedure writes any number of statements, or none if it is undone: as many of them
            # as there are calls does not say that each call wrote one.
            last = able[-1] if able else max(place, 0)
            placed[id(events[last])] += between
            if len(able) != 1:
                first = able[0] if able else max(place, 0)
                unsure = first if unsure is None else min(unsure, first)
        if next_number < len(logged):
            placed[id(events[next_place])].append(next_number)
    return placed, None if unsure is None else events[unsure]


def _may_write_more(event: RecordedStatement, *, is_matched: bool) -> bool:
    """Return whether a statement may have written what has no comment."""
    statement = event.statement
    if statement.plan.kind in ("call", "other") or statement.unseen == CALLED:
        return True
    if is_matched or statement.plan.kind not in ("insert", "update", "delete"):
        return False
    # A trigger that writes before the statement's first row takes the comment from all rows.
    has_triggers = any(table.triggers for table in statement.tables)
    return (event.changed > 0 or has_triggers) and event.matched != 0
