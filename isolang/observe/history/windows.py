"""Decides which unseen reads cannot matter, from the times of other transactions' commits.

An unseen read is *decided* if each other transaction that wrote its tables was acknowledged before
the read was sent, or sent COMMIT after the read was answered. At REPEATABLE READ and above, the
time of the read is that of the transaction's first statement, which took the snapshot. The history
then gets these orders as possible facts (:mod:`isolang.history.possible`), each as a separate key:
a writer from before writes the key and the reader reads it, or the reader finds nothing and a
writer from after writes it.

SOUND BECAUSE: the server shows a commit no earlier than COMMIT is sent, and no later than it is
acknowledged, so a decided read saw exactly the writers from before. In an order of the transactions
that has these before the reader and all others after it, and that has the versions of each row in
their true order, the read returns the same rows.

Each reader is ordered with each other writer of its tables directly, since not every level carries
an order through a third transaction. Where this takes too many orders, the reads of a table are not
decided.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import IO, Any, Final

from msgspec import Struct, json
from msgspec.structs import replace

from isolang.observe.history.seen import Outcome, SeenTransaction, UnseenRead, WrittenRow
from isolang.observe.unseen import kind_of

_NEVER: Final = 1 << 62
_MOST_PAIRS: Final = 200_000  # the largest number of pairs of a reader and a writer to order


class EndedTransaction(Struct, array_like=True, frozen=True):
    """The times, writes and unseen reads of a transaction that has ended.

    Attributes:
        lines: the numbers of its two lines in the file; 0 if it has none.
        begin: the position of its first event.
        sent: the earliest position at which it may have sent COMMIT.
        end: the position of its end.
        writes: the versions written, each with its table, its number, and that of the version that
            it replaced; ``None`` for none.
        reads: its unseen reads.
        defines: whether it changed definitions.
    """

    lines: tuple[int, int]
    begin: int
    sent: int
    end: int
    outcome: Outcome
    writes: tuple[tuple[str, str | None, str | None], ...]
    reads: tuple[UnseenRead, ...]
    defines: bool


class KnownOrder(Struct, frozen=True):
    """Two transactions in a known order: the second saw the first, or the first missed the second.

    Attributes:
        first: the first line of a transaction in the file.
        second: the same of the other one.
        why: what shows the order, for people.
    """

    first: int
    second: int
    missed: bool
    why: str


class Decided(Struct, frozen=True):
    """The unseen reads that cannot matter in a history with some orders.

    Attributes:
        lines: for the first line of each ordered transaction, both lines.
        uncertain: the first lines of the transactions that may not have committed.
    """

    reads: tuple[UnseenRead, ...] = ()
    orders: tuple[KnownOrder, ...] = ()
    lines: Mapping[int, tuple[int, int]] = {}
    uncertain: frozenset[int] = frozenset()


class CommitWindows:
    """Remembers, on disk, when transactions began, read something unseen, wrote and committed."""

    def __init__(self) -> None:
        """Create an empty collection, without a file."""
        self._file: IO[bytes] | None = None
        self._ends = self._any = False

    def note(self, one: SeenTransaction, lines: tuple[int, int]) -> None:
        """Remember a transaction whose lines have been written."""
        writes = tuple(
            (operation.table.name, _number(operation.version), _number(operation.old))
            for operation in one.operations
            if isinstance(operation, WrittenRow)
        )
        if self._ends or not (writes or one.unseen_reads or one.altered):
            return
        outcome = one.outcome or "info"
        reads = one.unseen_reads if not one.has_doubtful_times else []
        self._any = self._any or bool(reads)
        made = EndedTransaction(
            lines, one.begin, max(one.begin, one.commit_sent), one.end, outcome, writes,
            tuple(reads), one.altered,
        )  # fmt: skip
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - open until the end
        self._file.write(json.encode(made) + b"\n")

    def discard(self) -> None:
        """Remember nothing further."""
        self._ends, self._file = True, None

    def __deepcopy__(self, memo: object) -> CommitWindows:
        """Return a copy with a file of its own."""
        made = CommitWindows()
        made._any, made._ends = self._any, self._ends
        if self._file is not None:
            made._file = tempfile.TemporaryFile()  # noqa: SIM115 - open until the end
            made._file.writelines(self._lines())
        return made

    def _lines(self) -> Iterator[bytes]:
        if self._file is not None:
            self._file.seek(0)
            yield from self._file  # which leaves the position at the end

    def decide(
        self, doubtful: Collection[str], accepted: Collection[str], refused: Collection[int] = ()
    ) -> Decided:
        """Return the unseen reads that cannot matter, and the orders that they need.

        Args:
            doubtful: the tables with writes that were not seen, or with versions in no known order.
            accepted: the kinds of unseen activity that do not prevent a valid verdict.
            refused: the numbers of the reads whose conditions the server could not evaluate.
        """
        if not self._any:
            return Decided()
        every = [json.decode(line, type=EndedTransaction) for line in self._lines()]
        every = [replace(one, reads=_unseen(one.reads, refused)) for one in every]
        return _Orders(every, doubtful, accepted).decided()


def _unseen(reads: Iterable[UnseenRead], refused: Collection[int]) -> tuple[UnseenRead, ...]:
    return tuple(read for read in reads if not read.number or read.number in refused)


def _number(version: Any) -> str | None:
    return None if version is None else version.number


class _Writers:
    """The transactions that wrote one table and committed, or may have.

    Attributes:
        every: the transactions, by the position at which they may have sent COMMIT.
    """

    def __init__(self, writers: Sequence[EndedTransaction]) -> None:
        self.every = sorted(writers, key=lambda one: one.sent)
        self._sent = [one.sent for one in self.every]
        self._latest = [*accumulate(map(_shown_at, self.every), max)]

    def is_decided(self, reader: EndedTransaction, read: UnseenRead) -> bool:
        """Return whether each other writer certainly committed before a read, or after it."""
        at = bisect_left(self._sent, read.answered) - 1
        while at >= 0 and self._latest[at] >= read.sent:
            other = self.every[at]
            if other.begin != reader.begin and _shown_at(other) >= read.sent:
                return False
            at -= 1
        return True


def _shown_at(one: EndedTransaction) -> int:
    """Return the position by which a commit is certainly visible."""
    return one.end if one.outcome == "ok" else _NEVER


class _Orders:
    """Decides the reads of the transactions of one history, and collects the orders."""

    def __init__(
        self,
        every: Sequence[EndedTransaction],
        doubtful: Collection[str],
        accepted: Collection[str],
    ) -> None:
        self._every = every
        read = {
            table
            for one in every
            for read in one.reads
            if kind_of(read.what) not in accepted
            for table in read.tables
        }
        self._accepted = accepted
        self._tables = read - {*doubtful}
        self._defined = max((one.end for one in every if one.defines), default=-1)
        writers: defaultdict[str, dict[int, EndedTransaction]] = defaultdict(dict)
        for one in every:
            if one.outcome != "fail":
                for table, *_ in one.writes:
                    if table in self._tables:
                        writers[table][one.begin] = one
        self._writers = {table: _Writers([*writers[table].values()]) for table in self._tables}
        self._tables = self._without_the_largest()
        self._orders: dict[tuple[int, int, bool], KnownOrder] = {}

    def decided(self) -> Decided:
        """Return the decided reads with all orders."""
        decided: list[UnseenRead] = []
        for one in self._every:
            for read in one.reads:
                if kind_of(read.what) not in self._accepted and self._is_decided(one, read):
                    decided.append(read)
                    for table in read.tables if one.outcome != "fail" else ():
                        self._add_pairs(one, read, self._writers[table].every)
        for table in sorted({table for read in decided for table in read.tables}):
            self._add_version_order(table)
        named = {one.lines[0]: one.lines for one in self._every}
        uncertain = frozenset(one.lines[0] for one in self._every if one.outcome == "info")
        return Decided(tuple(decided), tuple(self._orders.values()), named, uncertain)

    def _without_the_largest(self) -> set[str]:
        """Return the tables whose pairs of readers and writers are few enough together."""
        readers: Counter[str] = Counter()
        for one in self._every:
            tables = {table for read in one.reads for table in read.tables}
            readers.update(tables if one.outcome != "fail" else ())
        pairs = {table: readers[table] * len(self._writers[table].every) for table in self._tables}
        ascending = sorted(self._tables, key=lambda table: (pairs[table], table))
        sums = accumulate(pairs[table] for table in ascending)
        return {name for name, number in zip(ascending, sums, strict=True) if number <= _MOST_PAIRS}

    def _is_decided(self, one: EndedTransaction, read: UnseenRead) -> bool:
        """Return whether a read cannot matter.

        SOUND BECAUSE: no level restricts the reads of a transaction that did not commit.
        """
        if not set(read.tables) <= self._tables or read.sent < self._defined:
            return False
        if one.outcome == "fail":
            return True
        return all(self._writers[table].is_decided(one, read) for table in read.tables)

    def _add_pairs(
        self, one: EndedTransaction, read: UnseenRead, writers: Sequence[EndedTransaction]
    ) -> None:
        """Order the reader of a table with each other writer."""
        for other in writers:
            if other is one:
                continue
            if other.outcome == "ok" and other.end < read.sent:
                self._add(other.lines[0], one.lines[0], read.why)
            else:
                self._add(one.lines[0], other.lines[0], read.why, missed=True)

    def _add_version_order(self, table: str) -> None:
        """Order the writers of the versions of each row, which a write alone does not state."""
        every = [one for one in self._every if one.outcome != "fail"]
        writer = {
            new: one
            for one in every
            for of, new, _ in one.writes
            if of == table and new is not None
        }
        for one in every:
            for of, _, old in one.writes:
                before = None if of != table or old is None else writer.get(old)
                if before is not None and before is not one:
                    self._add(before.lines[0], one.lines[0], f"the versions of {table}")

    def _add(self, first: int, second: int, why: str, *, missed: bool = False) -> None:
        if first and second and first != second:
            self._orders.setdefault((first, second, missed), KnownOrder(first, second, missed, why))
