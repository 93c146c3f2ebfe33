"""Writes a history of the row versions read and written by sessions.

A session may see a version before the version's writer is known, because the response to the reader
may arrive before the response to the writer. An ended transaction therefore waits here until all
transactions that began before its end have ended as well. The lines of the transactions are then
written in the order of events.

SOUND BECAUSE: the writer of a version that a transaction read began before the reader ended, so all
operations of the writer are known when the reader's lines are written.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import count
from pathlib import Path
from time import monotonic_ns
from typing import Any, Final

from isolang.observe.history.evaluated import EvaluatedConditions
from isolang.observe.history.images import RowImages
from isolang.observe.history.lines import EvaluatedRead, HistoryLines
from isolang.observe.history.present import PresentRows
from isolang.observe.history.recorded import RecordedVersion, RecordedVersions
from isolang.observe.history.rolled_back import RolledBackRows
from isolang.observe.history.seen import (
    FoundKey,
    LoggedWrites,
    Observed,
    Outcome,
    RowVersion,
    ScannedRows,
    SeenTransaction,
    WrittenRow,
)
from isolang.observe.history.windows import CommitWindows
from isolang.observe.sql.catalogue import Table
from isolang.observe.unseen import CURSORS, Unseen

# The largest number of events that wait for a cursor whose transaction has ended.
_LONGEST_WAIT: Final = 20_000
_CONFLICTS: Final = ("40001", "40P01")  # serialization failures and deadlocks
_REFUSALS: Final = ("40", "55P03", "57014")  # also other rollbacks, lock timeouts, cancellations


class ObservedHistory:
    """A history, and the transactions that have not been written yet.

    Attributes:
        present: the versions that the database should have now.
        oldest: a function that returns the position of the first event that may still arrive.
        unaudited: the tables with predicate reads since their last audit, by name.
        keeps_initial: whether the initial rows are needed at the end, to read the log.
        initial: if ``keeps_initial``, the initial rows, by table and key.
        unclear: whether an unknown transaction may have written something unseen.
        unordered: the tables with writes whose old versions were not returned; the current versions
            of these tables are not tracked.
        doubtful: the tables with writes that were not seen, each with an example.
        caller: the ``file:line`` of the statement that is being recorded; empty if unknown.
        refused: how many transactions the server rolled back because of another transaction.
        refusals: for each call of the application, whether the server rolled its last transaction
            back because of another transaction.
        windows: when the transactions read something unseen, and when others committed.
        rolled_back: the reads of rolled-back transactions; ``None`` if nobody asks for them.
    """

    def __init__(self, path: Path, *, versions: bool = False) -> None:
        """Create the file."""
        self._states_versions = self.keeps_initial = versions
        self.caller = ""
        self.refused = 0
        self.refusals: dict[int, bool] = {}
        self.rolled_back: RolledBackRows | None = None
        self.unseen = Unseen(lambda: self.caller)
        self.outcomes: Counter[str] = Counter()
        self.unaudited: dict[str, Table] = {}
        self.doubtful: dict[str, str] = {}
        self.unordered: set[str] = set()
        self.initial: dict[tuple[str, str], RowVersion] = {}
        self.unclear = False
        self.present = PresentRows()
        self.images = RowImages()
        self.evaluated = EvaluatedConditions()
        self.versions = RecordedVersions(self.unseen, self.doubtful, self._write_loaded_row)
        self.windows = CommitWindows()
        self._lines = HistoryLines(path, self.versions, states_versions=versions)
        self.oldest_event: Callable[[], int] = lambda: 1 << 62
        self._indices = count()
        self._processes = count()
        self._began = monotonic_ns()
        self._events: list[tuple[int, int, SeenTransaction]] = []
        self._unfinished: set[int] = set()

    @property
    def clients(self) -> dict[int, int]:
        """The number of the application's call of each transaction, by the file's line (from 1)."""
        return self._lines.clients

    @property
    def evaluated_reads(self) -> list[EvaluatedRead]:
        """The predicate reads in the file whose conditions the server evaluates at the end."""
        return self._lines.evaluated

    @property
    def written(self) -> int:
        """Return the number of transactions in the file."""
        return self._lines.written

    # --- calls by sessions ---

    def process(self) -> int:
        """Return a number for a new session."""
        return next(self._processes)

    def ticket(self) -> tuple[int, int]:
        """Return the position and the time of an event that happens now."""
        return next(self._indices), monotonic_ns() - self._began

    def begin(
        self, process: int, ticket: tuple[int, int], *, implicit: bool = False
    ) -> SeenTransaction:
        """Return a new transaction that began at the position of an event."""
        made = SeenTransaction(process=process, begin=ticket[0], began=ticket[1], implicit=implicit)
        if not self._events or self._events[-1][0] < made.begin:
            self._events.append((made.begin, 0, made))
        else:
            insort(self._events, (made.begin, 0, made), key=lambda event: event[0])
        return made

    def end(self, one: SeenTransaction, outcome: Outcome, error: str = "") -> None:
        """Record how a transaction ended."""
        self.outcomes[outcome] += 1
        self._ended(one, outcome, error)
        self._events.append((one.end, 1, one))

    def recorded(self) -> Iterator[SeenTransaction]:
        """Yield the recorded transactions that have not been written yet."""
        for _, what, one in self._events:
            if not what:
                yield one

    def add(self, writes: Sequence[WrittenRow]) -> None:
        """Add an unobserved transaction that begins before and ends after all others."""
        begin = min(self._events[0][0], 0) - 1 if self._events else -1
        made = SeenTransaction(process=self.process(), begin=begin, began=0, operations=[*writes])
        self._ended(made, "ok", "")
        self._events.insert(0, (begin, 0, made))
        self._events.append((made.end, 1, made))

    def awaits_log(self) -> bool:
        """Return whether only the log shows some writes of a recorded transaction."""
        return any(one.awaits_log for one in self.recorded())

    def add_to(self, one: SeenTransaction, operations: Sequence[Observed]) -> None:
        """Replace the operations of an ended transaction by those completed from the log."""
        before = {id(operation) for operation in one.operations}
        one.operations, one.awaits_log = [*operations], False
        for operation in operations:
            if isinstance(operation, WrittenRow) and id(operation) not in before:
                self.versions.ended(one, operation)
                self.present.ended(one.outcome or "info", operation)
                self.images.add_written(operation)

    def _ended(self, one: SeenTransaction, outcome: Outcome, error: str) -> None:
        one.end, one.ended = self.ticket()
        if outcome == "fail":  # the log lacks its changes
            one.operations = [o for o in one.operations if not isinstance(o, LoggedWrites)]
        one.awaits_log = any(isinstance(o, LoggedWrites) for o in one.operations)
        one.outcome, one.error = outcome, error
        self.refused += outcome == "fail" and error.startswith(_CONFLICTS)
        if one.client:
            self.refusals[one.client] = outcome == "fail" and error.startswith(_REFUSALS)
        if self.rolled_back is not None:
            self.rolled_back.ended(one)
        for operation in one.operations:
            if isinstance(operation, WrittenRow):
                self.versions.ended(one, operation)
                self.present.ended(outcome, operation)
                if outcome != "fail":
                    self.images.add_written(operation)
        self.note_reads(one)

    def note_reads(self, one: SeenTransaction) -> None:
        """Note the tables of an ended transaction's predicate reads, for the next audit."""
        for operation in one.operations:
            if isinstance(operation, ScannedRows | FoundKey):
                self.unaudited[operation.table.name] = operation.table
        for table in one.unseen_tables:
            self.unaudited[table.name] = table

    def write_initial_rows(
        self, rows: Sequence[tuple[Table, RowVersion, Mapping[str, Any], bytes | None]]
    ) -> None:
        """Write the rows that existed before the first transaction."""
        reported = []
        for table, version, row, image in rows:
            self.images.add(table.name, version.number, image)
            self._lines.note_table(table)
            known = self.versions.register(table, version, row, rank=0)
            self.present.add_version(table.name, version)
            if self.keeps_initial:
                self.initial[table.name, version.key] = version
            reported.append(f"{known.key} {known.row}")
        if reported:
            self._write_both_lines("init", "{" + " ".join(reported) + "}")

    def _write_loaded_row(self, table: Table, version: RowVersion) -> RecordedVersion:
        """Write an initial row of a large table, as a separate transaction.

        SOUND BECAUSE: no other transaction has accessed the row before, and conditions use only the
        primary key of the row.
        """
        made = self.versions.register(table, version, table.key_row(version.values))
        self.present.add_version(table.name, version)
        self._write_both_lines("txn", f"[[:insert {made.key} {made.row}]]")
        return made

    def _write_both_lines(self, what: str, value: str) -> None:
        """Write both lines of a transaction at time 0, in a separate session."""
        process = self.process()
        for kind in ("invoke", "ok"):
            self._lines.write(process, kind, 0, what, value)

    # --- the file ---

    def flush(self, *, everything: bool = False) -> None:
        """Write all events that precede every event of the open transactions."""
        if everything:
            for _, _, one in list(self._events):
                if one.outcome is None:
                    self.end(one, "info", "the observation ended")
        elif self._states_versions:  # other writers become known only at the end
            self._lines.flush()
            return
        oldest = 1 << 62 if everything else self.oldest_event()
        done = 0
        for _, what, one in self._events:
            if one.outcome is None or one.end >= oldest or one.awaits_log:
                break
            if one.open_cursors > 0:
                if not everything and self._events[-1][0] - one.end < _LONGEST_WAIT:
                    break
                self.unseen.note(CURSORS)
                one.open_cursors = -1
            done += 1
            if what:
                self._unfinished.discard(one.begin)
                self.windows.note(one, self._lines.end(one) if one.has_lines else (0, 0))
            elif one.has_lines:
                self._unfinished.add(one.begin)
                self._lines.begin(one)
        del self._events[:done]
        oldest = self.oldest_event()
        first = self._events[0][0] if self._events else oldest
        self.versions.forget(min(first, min(self._unfinished, default=1 << 62), oldest))
        self._lines.flush()

    @property
    def rests_on_versions(self) -> bool:
        """Return whether possible facts become certain if nobody replaced some versions."""
        return self._lines.rests_on_versions

    def keeps_from_start(self, table: str, number: str) -> bool:
        """Return whether a version was there before the observation, and nobody replaced it."""
        is_kept = table not in self.doubtful and self.present.is_kept(table, number)
        return is_kept and self.versions.is_initial(number)

    def copied(self, into: Path, memo: dict[int, Any]) -> ObservedHistory:
        """Return a copy that continues the history in another file.

        Args:
            into: the file, which must not exist.
            memo: the objects that the copy shares with this history, by identity.
        """
        for shared in (self._indices, self._processes):
            memo[id(shared)] = shared
        memo[id(self._lines)] = self._lines.copied(into, memo)
        return deepcopy(self, memo)

    def discard(self) -> None:
        """Write all further events to no file."""
        self._states_versions = False
        self._lines.discard()
        self.windows.discard()

    def close(self) -> None:
        """Write the remaining events, and close the file."""
        self.flush(everything=True)
        self._lines.close()
