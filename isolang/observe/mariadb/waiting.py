"""Holds what the proxy saw and what the log says until both sides are known.

What the proxy sees and the log arrive independently of each other. Four rules say when something is
certain. Each *mark* is a moment of the proxy, with the log's position of a snapshot that was taken
then.

* A transaction of the log belongs to the one that its comment names. If it names none, it waits for
  the answers to all statements that had been sent, one of which may name it.
* A transaction that ended before a mark read nothing, and wrote nothing, that is not in the log
  before the mark's position. So when the log was read up to there, its operations are known.
* An unobserved transaction became visible between the last mark that does not have it and the first
  one that has it. A transaction that read from it ended behind the first of these marks.
* When all transactions that began before a mark are known, no transaction can read a version any
  more that had been replaced in the log before the mark's position. It is forgotten.

So lines are written up to the last mark that the log has reached, and up to the first event of a
transaction whose operations are not known. Each writer begins in front of the ends of its readers.
"""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final

from msgspec import Struct

from isolang.observe.log.mariadb import Group
from isolang.observe.log.replay import Key
from isolang.observe.log.stream import LogPosition
from isolang.observe.mariadb.contents import NamedTable
from isolang.observe.mariadb.lines import GrowingHistory
from isolang.observe.mariadb.merge import AppliedGroup, MergedTransaction, Merger
from isolang.observe.mariadb.recording import FollowedTransaction, Recording

_COMMENT: Final = re.compile(r"i(\d+)\.(p?)(\d+)")
_LONGEST_WAIT: Final = 20_000  # the largest number of events that wait for an open cursor
_LOST_S: Final = 2.0  # how long a COMMIT without an answer may still take place


class LogMark(Struct, frozen=True):
    """A moment of the proxy, and a position of the log.

    Attributes:
        before: the position among the proxy's events, and the time, in front of the snapshot.
        after: those behind it.
        position: how far the log was at the snapshot.
    """

    before: tuple[int, int]
    after: tuple[int, int]
    position: LogPosition


class _Owners:
    """Finds the transaction of the proxy to which one of the log belongs."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._by_number: dict[tuple[int, int], FollowedTransaction] = {}
        self._by_gtid: dict[str, FollowedTransaction] = {}
        self._lost: dict[int, FollowedTransaction] = {}  # the last one of a lost connection

    def add(self, transaction: FollowedTransaction) -> None:
        """Add a transaction that has ended."""
        for number in transaction.numbers:
            self._by_number[transaction.connection, number] = transaction
        if transaction.gtid:
            self._by_gtid[transaction.gtid] = transaction
        if transaction.outcome == "info":
            self._lost[transaction.connection] = transaction

    def remove(self, transaction: FollowedTransaction) -> None:
        """Forget a transaction, all of whose writes are known."""
        for number in transaction.numbers:
            self._by_number.pop((transaction.connection, number), None)
        self._by_gtid.pop(transaction.gtid, None)
        if self._lost.get(transaction.connection) is transaction:
            del self._lost[transaction.connection]

    def owner_of(self, group: Group) -> FollowedTransaction | None:
        """Return the transaction that was seen, if it is known."""
        connection = 0
        for statement in group.statements:
            if (match := _COMMENT.fullmatch(statement.mark)) is None:
                continue
            connection = int(match[1])
            if not match[2]:
                return self._with_number(connection, int(match[3]))
        if group.gtid in self._by_gtid:
            return self._by_gtid[group.gtid]
        return self._lost.get(connection)

    def _with_number(self, connection: int, number: int) -> FollowedTransaction | None:
        open_transaction = self._recording.open.get(connection)
        if open_transaction is not None and number in open_transaction.numbers:
            return open_transaction
        return self._by_number.get((connection, number))

    def names_this_proxy(self, group: Group) -> bool:
        """Return whether a comment names a connection of this proxy."""
        matches = (_COMMENT.fullmatch(statement.mark) for statement in group.statements)
        return any(match and self._recording.is_own(int(match[1])) for match in matches)


class WaitingTransactions:
    """The transactions of both sides that are not in the history yet."""

    def __init__(self, recording: Recording, merger: Merger, history: GrowingHistory) -> None:
        """Begin without transactions."""
        self._recording, self._merger, self._history = recording, merger, history
        self._owners = _Owners(recording)
        self._groups: deque[tuple[int, Group]] = deque()
        self._ended: list[FollowedTransaction] = []
        self._written: dict[int, tuple[FollowedTransaction, list[AppliedGroup]]] = {}
        # In the order of the log.
        self._unobserved: list[tuple[LogPosition, MergedTransaction]] = []
        self._marks: deque[LogMark] = deque()
        self._passed: deque[LogMark] = deque()
        self._replaced: deque[tuple[LogPosition, NamedTable, Key, int]] = deque()
        # The last mark that the log has reached.
        self._mark = LogMark((-1, 0), (-1, 0), LogPosition(0, "", 0))
        self._is_over = False

    @property
    def needs_mark(self) -> bool:
        """Return whether something waits for a later mark."""
        waits = self._ended or self._groups or self._unobserved or self._replaced
        return not self._marks and bool(waits or self._recording.transactions)

    def add_mark(self, mark: LogMark) -> None:
        """Add a moment of which the log's position is known."""
        self._marks.append(mark)

    def finish(self, groups: Sequence[Group]) -> None:
        """Write all transactions, as all have ended, and the log was read to its end."""
        self._is_over = True
        for _ in self.advance(groups, None):
            pass

    def advance(self, groups: Sequence[Group], reached: LogPosition | None) -> Iterator[None]:
        """Write the transactions that are known, and yield after a few steps of the work.

        Args:
            groups: the log's next transactions.
            reached: a position up to which there is nothing else; ``None`` at the log's end.
        """
        taken, _ = self._recording.ticket()
        self._groups += ((taken, group) for group in groups)
        while self._groups and self._apply(*self._groups[0]):
            self._groups.popleft()
            yield
        self._take_ended()
        self._release_unrecorded()
        self._pass_marks(reached)
        waiting = []
        for transaction in self._ended:
            if not self._is_known(transaction):
                waiting.append(transaction)
                continue
            _, written = self._written.pop(id(transaction), (None, []))
            for merged in self._merger.merged(transaction, written):
                if merged.seen is None:
                    self._add_unobserved(merged, (transaction.begin, transaction.began))
                else:
                    self._history.add(merged, self._merger.doubtful)
            self._owners.remove(transaction)
            yield
        self._ended = waiting
        self._write()

    def _take_ended(self) -> None:
        ended, self._recording.transactions = self._recording.transactions, []
        if self._recording.kept is not None:
            self._recording.kept += ended
        for transaction in ended:
            self._owners.add(transaction)
        self._ended += ended

    def _release_unrecorded(self) -> None:
        """Treat what the log has of transactions that were not recorded as unobserved.

        Such a one consists of a statement whose answer was lost.
        """
        pending = {id(each) for each in (*self._recording.open.values(), *self._ended)}
        for identity in self._written.keys() - pending:
            for applied in self._written.pop(identity)[1]:
                merged = MergedTransaction(applied.operations())
                insort(self._unobserved, (applied.group.position, merged), key=itemgetter(0))

    def _apply(self, taken: int, group: Group) -> bool:
        """Apply the log's next transaction; return whether that was possible."""
        self._take_ended()
        owner = self._owners.owner_of(group) if _has_known_changes(group) else None
        if owner is None and not self._is_over:
            open_transactions = self._recording.open.values()
            if any(0 <= each.waits_since < taken for each in open_transactions):
                return False
        _, known = (None, []) if owner is None else self._written.setdefault(id(owner), (owner, []))
        applied = self._merger.applied(group, None if known else owner)
        changed, self._merger.changed = self._merger.changed, []
        self._replaced += ((group.position, *version) for version in changed)
        if owner is not None:
            known.append(applied)
            return True
        if _has_known_changes(group) and self._owners.names_this_proxy(group):
            self._merger.note_late(group.statements[0].comment)
        self._unobserved.append((group.position, MergedTransaction(applied.operations())))
        return True

    def _pass_marks(self, reached: LogPosition | None) -> None:
        """Note how far the log was read, and add the unobserved transactions up to there."""
        while self._marks and reached is not None:
            mark = self._marks[0]
            if mark.position > reached:
                break
            if self._groups and mark.position >= self._groups[0][1].position:
                break
            self._marks.popleft()
            number = bisect_right(self._unobserved, mark.position, key=itemgetter(0))
            for _, merged in self._unobserved[:number]:
                self._add_unobserved(merged, self._mark.before, mark.after)
            del self._unobserved[:number]
            self._passed.append(mark)
            self._mark = mark
        if self._is_over:
            for _, merged in self._unobserved:
                self._add_unobserved(merged, self._mark.before)
            self._unobserved.clear()

    def _add_unobserved(
        self,
        merged: MergedTransaction,
        since: tuple[int, int],
        until: tuple[int, int] | None = None,
    ) -> None:
        """Add a transaction that became visible between two positions, or until now."""
        until = until or self._recording.ticket()
        self._history.add_unobserved(merged, self._merger.doubtful, since, until)

    def _is_known(self, transaction: FollowedTransaction) -> bool:
        """Return whether the log that was read has all that a transaction read and wrote."""
        if self._is_over:
            return True
        if transaction.end >= self._mark.before[0]:
            return False
        written = self._written.get(id(transaction))
        if written is not None and written[1][-1].group.position > self._mark.position:
            return False
        now, time = self._recording.ticket()
        if any(event.is_open for event in transaction.events) and (
            now - transaction.end < _LONGEST_WAIT
        ):
            return False
        if transaction.outcome == "info":
            if written is None:
                return time - transaction.ended > _LOST_S * 1e9
            # It committed after the connection was lost, but before the last mark.
            transaction.end, transaction.ended = now, time
        return transaction.level != "read uncommitted" or self._have_ended_since(transaction.end)

    def _have_ended_since(self, position: int) -> bool:
        """Return whether all that was open at a position is in the log that was read."""
        return all(each.begin > position for each in self._recording.open.values()) and all(
            each.begin > position or each.end < self._mark.before[0] for each in self._ended
        )

    def _write(self) -> None:
        """Write all events before the first one that is not known, and forget old versions."""
        now, _ = self._recording.ticket()
        pending = (*self._recording.open.values(), *self._ended, *self._recording.transactions)
        first = min((transaction.begin for transaction in pending), default=now)
        self._history.write_until(now if self._is_over else min(first, self._mark.before[0]))
        latest: dict[tuple[int, Key], tuple[NamedTable, Key, int]] = {}
        while self._passed and self._passed[0].after[0] <= first:
            position = self._passed.popleft().position
            while self._replaced and self._replaced[0][0] <= position:
                _, table, key, number = self._replaced.popleft()
                latest[id(table), key] = table, key, number
        for table, key, number in latest.values():
            table.settle(key, number)


def _has_known_changes(group: Group) -> bool:
    """Return whether a transaction of the log changed rows of tables that are observed.

    Tables without transactions, such as those of MyISAM, are in groups of their own.
    """
    changes = [change for statement in group.statements for change in statement.changes]
    return not group.ddl and any(change.kind != "unknown" for change in changes)
