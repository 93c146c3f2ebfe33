"""Joins what the proxy saw with what the server's log says.

The log names all writes, in the order of each row's versions; the proxy saw reads, the order of
statements, and how transactions ended. A transaction of the log belongs to the one that the proxy
saw if the comment in front of a statement says so, or else its name, which the server gave with the
answer to COMMIT. All others are those of sessions that nobody observed. ``waiting`` says when both
sides are known.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from isolang.observe.history.images import RowImages
from isolang.observe.log.mariadb import Group, LoggedStatement
from isolang.observe.log.replay import Key, ReplayedChange, Rows
from isolang.observe.log.tables import LoggedTable, Name
from isolang.observe.mariadb.contents import NamedTable, NamedTables
from isolang.observe.mariadb.evaluation import keep_image
from isolang.observe.mariadb.reads import SeenOperation, StatementReads, statement_name
from isolang.observe.mariadb.recording import FollowedTransaction, RecordedStatement, Recording
from isolang.observe.unseen import (
    CALLED,
    CONDITIONS,
    CONTRADICTED,
    IN_NO_LOG,
    NO_END,
    TABLES,
    UNPLACED,
)


class MergedTransaction(Struct):
    """A transaction of the history.

    Attributes:
        seen: what the proxy saw of it; ``None`` if nobody observed it.
    """

    operations: list[SeenOperation]
    seen: FollowedTransaction | None = None


class AppliedGroup(Struct, eq=False):
    """A transaction of the log whose contents are known.

    Attributes:
        writes: the operations of each of its statements.
    """

    group: Group
    writes: list[list[SeenOperation]]

    def operations(self) -> list[SeenOperation]:
        """Return the writes of all statements."""
        return [operation for each in self.writes for operation in each]


class Merger:
    """Joins transactions of the log with those that the proxy saw.

    Attributes:
        tables: the tables by name and definition, with the contents of their rows.
        doubtful: the labels of tables whose contents the log does not explain.
        changed: the versions that were written, until somebody takes them.
    """

    def __init__(
        self, recording: Recording, most_rows: int, names: Mapping[str, str] | None = None
    ) -> None:
        """Begin without rows.

        Args:
            names: the names of tables in the history, where they differ from those in the database.
        """
        self._recording, self._unseen = recording, recording.unseen
        self.tables = NamedTables(names)
        self._reads = StatementReads(self.tables, recording.unseen, most_rows)
        self.doubtful, self.is_kept = self._reads.doubtful, self._reads.blocks.is_kept
        self.changed: list[tuple[NamedTable, Key, int]] = []
        self.images, self.evaluated = RowImages(), self._reads.evaluated

    def add_initial(self, tables: Mapping[Name, LoggedTable], rows: Rows) -> list[tuple[str, str]]:
        """Add the rows from before the observation, and return them with their tables' labels."""
        initial = []
        for name, table in tables.items():
            if table.why:
                continue
            named = self.tables.of(table)
            for key, row in rows.get(name, {}).items():
                text = named.start(key, row)
                number = f"{named.key_edn(key)} {text}"
                initial.append((named.label, number))
                keep_image(self.images, named, number, row)
        return initial

    def applied(self, group: Group, writer: FollowedTransaction | None) -> AppliedGroup:
        """Return the writes of the log's next transaction, and remember their contents."""
        if group.ddl:
            when = self._recording.definitions.get(group.gtid)
            self.tables.define(group.defined, when)
        return AppliedGroup(group, [self._writes(each, writer) for each in group.statements])

    def merged(
        self, transaction: FollowedTransaction, groups: Sequence[AppliedGroup]
    ) -> Iterator[MergedTransaction]:
        """Yield what a transaction did that was seen.

        Args:
            groups: what the log says that it wrote; all that it may have read was applied before.
        """
        if len(groups) > 1 or (groups and transaction.outcome == "fail"):
            self._note_unclear(transaction)
        if groups:
            self._count_outcome(transaction)
        if transaction.outcome == "ok":
            operations = self._operations(transaction, groups[0] if groups else None)
            # SOUND BECAUSE: one that is not clear may have committed later, as after XA PREPARE.
            yield MergedTransaction(operations, None if transaction.is_unclear else transaction)
        for group in groups[1:]:
            yield MergedTransaction(group.operations())

    def note_odd_columns(self) -> None:
        """Count the conditions on columns that later had values which nobody can compare."""
        for table in self.tables.all():
            for column in table.compared.values():
                if column.is_odd and column.was_compared:
                    shown = f"{table.label}.{column.name}"
                    self._unseen.note(CONDITIONS, shown, tables=(table.label,))

    def note_late(self, text: str) -> None:
        """Note that a transaction committed after it had seemed to have failed."""
        self._unseen.note(NO_END, text)

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
            row, is_next = table.write(change.key, change.after, writer, change.number)
            self.changed.append((table, change.key, change.number))
            if not is_next:
                self._unseen.note(CONTRADICTED, f"{table.label}/{table.key(change.key)}")
                self.doubtful.add(table.label)
            if change.after is not None:
                keep_image(self.images, table, f"{key} {row}", change.after)
            word = "delete" if row is None else "insert" if change.kind == "insert" else "w"
            text = f"[:{word} {key}]" if row is None else f"[:{word} {key} {row}]"
            caller = _caller_of(change, writer)
            operations.append(
                SeenOperation(text, table.label, change.number, statement.comment, caller=caller)
            )
        return operations

    def _operations(
        self, transaction: FollowedTransaction, group: AppliedGroup | None
    ) -> list[SeenOperation]:
        """Return the operations of a transaction that was seen."""
        logged: Sequence[LoggedStatement] = () if group is None else group.group.statements
        writes = () if group is None else group.writes
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
                replace(write, shown=write.caller or event.shown, statement=name)
                for number in numbers for write in writes[number]
            ]  # fmt: skip
        return operations

    def _event_reads(
        self,
        event: RecordedStatement,
        transaction: FollowedTransaction,
        changes: Sequence[ReplayedChange],
    ) -> list[SeenOperation]:
        self._recording.caller = event.caller
        if event.statement.plan.kind == "select":
            return self._reads.of_select(event, transaction)
        return self._reads.of_write(event, transaction, changes)


def _caller_of(change: ReplayedChange, writer: FollowedTransaction | None) -> str:
    """Return the line that caused a write, if a flush sent it later; empty if it is not known."""
    if writer is None or not writer.callers:
        return ""
    key = frozenset(zip(change.table.key, map(str, change.key), strict=True))
    return writer.callers.get((change.table.name, key), "")


def _must_be_logged(event: RecordedStatement) -> bool:
    """Return whether the log must name a write of a statement."""
    tables, plan = event.statement.tables, event.statement.plan
    # REPLACE counts a row that it left as it was; so may INSERT … ON DUPLICATE KEY UPDATE.
    is_write = plan.kind in ("update", "delete") or (plan.kind == "insert" and not plan.name)
    return is_write and event.changed > 0 and bool(tables) and not any(t.why for t in tables)


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
    repeated = _executions_in_log(events, logged)
    at = 0
    for place, event in enumerate(events):
        statement = event.statement
        if not statement.mark or (statement.is_binary and id(event) not in repeated):
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


def _executions_in_log(
    events: Sequence[RecordedStatement], logged: Sequence[LoggedStatement]
) -> set[int]:
    """Return the identities of the executions of prepared statements that the log has.

    All executions of a statement have the same comment. REPLACE, and INSERT … ON DUPLICATE KEY
    UPDATE, may count a row that they left as it was, so not each of them must be in the log.
    """
    counts = Counter(statement.mark for statement in logged)
    executions: dict[str, list[RecordedStatement]] = defaultdict(list)
    for event in events:
        if event.statement.is_binary and event.changed:
            executions[event.statement.mark].append(event)
    made: set[int] = set()
    for mark, able in executions.items():
        certain = [
            event for event in able
            if event.statement.plan.name not in ("update", "replace")
            or event.changed > event.listed
        ]  # fmt: skip
        for those in (able, certain):
            if len(those) == counts[mark]:
                made.update(map(id, those))
                break
    return made


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
