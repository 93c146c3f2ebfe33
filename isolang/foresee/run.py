"""Represents a run: a history's committed transactions, with the version that each read saw.

Transactions are renumbered in an order in which each transaction reads from earlier transactions.
If the level has a serial order, that order is used. A set of transactions is an integer whose bits
are the numbers of its members, because operations on such sets are fast: in a run of ten thousand
transactions, they take only a few machine instructions for each transaction and step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from isolang.history import columns as c
from isolang.history.statements import ALONE, SHARED

if TYPE_CHECKING:
    from isolang.foresee.row_facts import RowFacts
    from isolang.history.history import History
    from isolang.history.statements import SentStatement

INITIAL: Final = -1
"""The source of a read that returned the initial version."""

READS: Final = (c.READ, c.READ_LIST)
"""The kinds of operations that read a key."""

UPDATES: Final = (c.WRITE, c.APPEND)
"""The kinds of operations that write a key."""

_CALL: Final = re.compile(r"^([\w.]+)\(.*\)$", re.DOTALL)
# A value in a predicate: anything after a blank but a keyword, a bracket or the name of the table.
_VALUE_IN_PREDICATE: Final = re.compile(r'(?<!:table) (?:"(?:[^"\\\\]|\\\\.)*"|[^\s:\[\]{}"]+)')
_NOTHING_CHANGED: Final[Mapping[int, bool]] = {}


class Access(Struct, frozen=True):
    """A transaction's operation in a run.

    Attributes:
        kind: the kind, as a code of the columns: a read, a write, an append or a read of a list.
        source: for an external read, the transaction that it reads from, or ``INITIAL``; ``None``
            for a write, an internal read, or a read with an unknown result. A read that does not
            show the row has the newest version that is not shown.
        sent: the statement that executed the operation; ``None`` if it was not recorded.
        test: the predicate that decides whether the read shows a version; ``None`` if it shows
            every version of the key.
        shown: whether the read shows its source.
        matched: whether the read showed its source in the run, if its statement then wrote the rows
            that it found; otherwise ``None``.
        scan: the number of the predicate read that the read is a part of; -1 if of none.
        value: for a write, the value as an atom.
        inserts: whether the write inserts a row, which fails if the row exists.
        possible: whether the read only may have decided an answer. Predictions do not contain it,
            but what it depends on belongs to K.
    """

    op: int
    kind: int
    key: int
    source: int | None = None
    sent: SentStatement | None = None
    test: int | None = None
    shown: bool = True
    matched: bool | None = None
    scan: int = -1
    value: int = c.NO_ATOM
    inserts: bool = False
    possible: bool = False


class ProgramScan(Struct, frozen=True):
    """A predicate read of a transaction.

    Attributes:
        number: the number of the predicate read in the history's columns.
        begin: the index of its first step. It has a step for each row that may change.
        end: the index after its last step.
        possible: whether it only may have decided an answer.
    """

    number: int
    begin: int
    end: int
    possible: bool = False


class ExecutedProgram(Struct, frozen=True):
    """The operations executed by a transaction in a run.

    Attributes:
        tested: whether a read does not show every version.
        scans: the predicate reads, in program order.
        values: the last value of each key that it writes, as an atom.
    """

    steps: tuple[Access, ...]
    reads: tuple[int, ...]
    writes: frozenset[int]
    tested: bool = False
    scans: tuple[ProgramScan, ...] = ()
    values: Mapping[int, int] = {}

    @classmethod
    def of(cls, steps: Sequence[Access], scans: Sequence[ProgramScan] = ()) -> ExecutedProgram:
        """Return a transaction's operations, together with its external reads and written keys."""
        return cls(
            tuple(steps),
            tuple(i for i, step in enumerate(steps) if step.source is not None),
            frozenset(step.key for step in steps if step.kind in UPDATES),
            any(step.test is not None for step in steps),
            tuple(scans),
            {step.key: step.value for step in steps if step.kind in UPDATES},
        )

    def end_of_statement(self, at: int) -> int:
        """Return the index after the last step of the statement that a step belongs to."""
        step, end = self.steps[at], at + 1
        while end < len(self.steps):
            other = self.steps[end]
            sent = step.sent is not None and other.sent is not None
            if not (
                (sent and step.sent.number == other.sent.number)  # type: ignore[union-attr]
                or (step.scan >= 0 and step.scan == other.scan)
            ):
                break
            end += 1
        return end

    def operations_before(self, end: int) -> int:
        """Return how many predicted operations the first steps are; a predicate read is one."""
        operations = sum(step.scan < 0 and not step.possible for step in self.steps[:end])
        return operations + sum(scan.end <= end and not scan.possible for scan in self.scans)

    def locked_keys(
        self, end: int | None = None, shown: Mapping[int, bool] = _NOTHING_CHANGED
    ) -> tuple[frozenset[int], frozenset[int]]:
        """Return the keys locked by the first steps: against all others, and against writers only.

        A step locks a key that it writes, or a row that it shows in a locking statement.

        Args:
            shown: whether a step shows the row, for the steps that differ from the run.
        """
        alone = {step.key for step in self.steps[:end] if step.kind in UPDATES}
        shared: set[int] = set()
        for at, step in enumerate(self.steps[:end]):
            if step.sent is not None and step.kind in READS and step.sent.guards:
                if not shown.get(at, step.shown):
                    continue
                (alone if step.sent.lock in ALONE else shared).add(step.key)
        for name in self._other_locks(end):
            key = -2 - crc32(name.removesuffix(SHARED).encode())  # no key of a row is negative
            (shared if name.endswith(SHARED) else alone).add(key)
        return frozenset(alone), frozenset(shared - alone)

    def _other_locks(self, end: int | None) -> Collection[str]:
        """Return the names of the other locks held after the first steps; of all, if no end."""
        by_step = [step.sent.holds for step in self.steps[:end] if step.sent is not None]
        return {name for names in (by_step if end is None else by_step[-1:]) for name in names}

    def writes_other_rows(self, shown: Mapping[int, bool] = _NOTHING_CHANGED) -> bool:
        """Return whether a statement that writes the rows that it finds would write other rows.

        Args:
            shown: whether a step shows the row, for the steps that differ.
        """
        return any(
            step.matched is not None and shown.get(at, step.shown) != step.matched
            for at, step in enumerate(self.steps)
        )

    def with_sources(self, source_of: Callable[[Access], int]) -> ExecutedProgram:
        """Return the program whose external reads have other sources."""
        steps = tuple(
            step if step.source is None else replace(step, source=source_of(step))
            for step in self.steps
        )
        return replace(self, steps=steps)

    def with_answers(self, shows: Callable[[Access, int], bool]) -> ExecutedProgram:
        """Return the program whose reads say whether they show their sources.

        Args:
            shows: whether a read shows a version.
        """
        if not self.tested:
            return self
        writing = {s.sent.number for s in self.steps if s.sent is not None and s.kind in UPDATES}

        def answered(step: Access) -> Access:
            if step.test is None or step.source is None:
                return step
            shown, matched = shows(step, step.source), step.matched
            if matched is None and step.sent is not None and step.sent.number in writing:
                matched = shown  # this is the run
            return replace(step, shown=shown, matched=matched)

        return replace(self, steps=tuple(answered(step) for step in self.steps))


def bits(numbers: int) -> Iterator[int]:
    """Yield the positions of the set bits in an integer, in ascending order."""
    while numbers:
        low = numbers & -numbers
        yield low.bit_length() - 1
        numbers ^= low


class Arrangement:
    """Transactions that read only from earlier ones, with their relations.

    A relation is a list that contains, for each transaction, the set of transactions that the
    relation leads to. The version order of each key is the order of the transactions.

    Attributes:
        readers: for each key, the transactions that read it from outside.
        seeing: for each key, the transactions that a version of it was shown to.
        blind: for each key with several writers, the writers that were not shown it, if any.
        locking: for each key, the transactions that lock it against all other transactions.
        sharing: for each key, the transactions that lock it against writers only.
        depends: the later transactions of the session, and the readers of the versions (so | wr).
        direct: the same, and the transactions that overwrite the versions (so | wr | ww).
        overwritten: the transactions that overwrite versions read by the transaction (rw).
    """

    def __init__(
        self,
        programs: Sequence[ExecutedProgram],
        sessions: Sequence[int],
        facts: RowFacts | None = None,
    ) -> None:
        """Compute the relations."""
        self.programs, self.sessions, self.facts = programs, sessions, facts
        n = len(programs)
        self.earlier = [0] * n
        self.writers: dict[int, int] = {}
        self.readers: dict[int, int] = {}
        self.locking: dict[int, int] = {}
        self.sharing: dict[int, int] = {}
        self.depends = [0] * n
        self._shown: dict[tuple[int, int], tuple[int, bool]] = {}
        members: dict[int, int] = {}
        for i, program in enumerate(programs):
            for key in program.writes:
                self.writers[key] = self.writers.get(key, 0) | 1 << i
        if facts is not None:
            self.programs = programs = [program.with_answers(self.shows) for program in programs]
        seen: dict[int, int] = {}  # for each key, the transactions that read a version of it
        # For each key, the reads that do not show every version of it.
        self._tested: dict[int, list[tuple[int, Access]]] = {}
        for i, program in enumerate(programs):
            self.earlier[i] = members.get(sessions[i], 0)
            members[sessions[i]] = self.earlier[i] | 1 << i
            every = program.locked_keys()
            for locks, keys in zip((self.locking, self.sharing), every, strict=True):
                for key in keys:
                    locks[key] = locks.get(key, 0) | 1 << i
            for at in program.reads:
                step = program.steps[at]
                self.readers[step.key] = self.readers.get(step.key, 0) | 1 << i
                if step.shown:
                    seen[step.key] = seen.get(step.key, 0) | 1 << i
                if step.test is not None:
                    self._tested.setdefault(step.key, []).append((i, step))
                for source in bits(self._seen(step, i)):
                    self.depends[source] |= 1 << i
        self.seeing = seen
        self.blind = {
            key: blind
            for key, writers in self.writers.items()
            if writers & (writers - 1) and (blind := writers & ~seen.get(key, 0))
        }
        self.later = [members[sessions[i]] & -(2 << i) for i in range(n)]
        for i in range(n):
            self.depends[i] |= self.later[i]
        self.direct = [
            self.depends[i] | self._later_writers(program.writes, i)
            for i, program in enumerate(programs)
        ]
        self.overwritten = [
            self._overwriting_writers(program) & ~(1 << i) for i, program in enumerate(programs)
        ]

    # --- what reads show ---

    def shown(self, step: Access) -> tuple[int, bool]:
        """Return the writers of a key whose versions a read shows, and whether the initial one."""
        if step.test is None:
            return self.writers.get(step.key, 0), True
        known = self._shown.get((step.test, step.key))
        if known is None:
            assert self.facts is not None
            matching = self.facts.shown.get((step.test, step.key), frozenset())
            writers = 0
            for i in bits(self.writers.get(step.key, 0)):
                if self.programs[i].values[step.key] in matching:
                    writers |= 1 << i
            initial = self.facts.initial.get(step.key, c.NO_ATOM) in matching
            known = self._shown[step.test, step.key] = writers, initial
        return known

    def shows(self, step: Access, source: int) -> bool:
        """Return whether a read shows a version."""
        writers, initial = self.shown(step)
        return initial if source == INITIAL else bool(writers >> source & 1)

    def answers(self, txn: int, sources: Sequence[int]) -> dict[int, bool]:
        """Return whether each external read of a transaction shows a version, by its step.

        Args:
            sources: the version that each read sees, in program order.
        """
        program = self.programs[txn]
        return {
            at: self.shows(program.steps[at], source)
            for at, source in zip(program.reads, sources, strict=True)
        }

    def dependency(self, step: Access, source: int, members: int = -1) -> int:
        """Return the version that a read depends on if it sees a version.

        If the read does not show the row, this is the version that took the row away, or
        ``INITIAL`` if the row was never shown before.
        """
        if self.shows(step, source):
            return source
        before = self.writers.get(step.key, 0) & members & (2 << source if source >= 0 else 1) - 1
        writers, initial = self.shown(step)
        shown = writers & before
        if not shown and not initial:
            return INITIAL
        gone = before & -(1 << shown.bit_length())
        return (gone & -gone).bit_length() - 1

    def contradicting(self, step: Access, source: int) -> int:
        """Return the writers of the versions that a read overlooks if it sees a version."""
        later = self.writers.get(step.key, 0) & -(2 << source if source >= 0 else 1)
        if step.test is None or self.shows(step, source):
            return later
        other = self.shown(step)[0] & later
        return later & -(other & -other) if other else 0

    def overlooking(self, txn: int) -> int:
        """Return the transactions whose answers the last writes of a transaction would change."""
        transactions = 0
        for key in self.programs[txn].writes:
            transactions |= self.seeing.get(key, 0)
            for i, step in self._tested.get(key, ()):
                if self.shows(step, txn):
                    transactions |= 1 << i
        return transactions

    def newest(self, key: int, members: int) -> int:
        """Return the value that some transactions leave of a key, as an atom."""
        writers = self.writers.get(key, 0) & members
        if writers:
            return self.programs[writers.bit_length() - 1].values[key]
        return self.facts.initial.get(key, c.NO_ATOM) if self.facts is not None else c.NO_ATOM

    # --- relations ---

    def _seen(self, step: Access, reader: int) -> int:
        """Return the transactions whose writes are visible in a read.

        For a list read, these are the writers of all elements. The reader itself is left out.
        """
        assert step.source is not None
        if step.source == INITIAL:
            return 0
        if step.kind == c.READ_LIST:
            return self.writers.get(step.key, 0) & (2 << step.source) - 1 & ~(1 << reader)
        source = step.source if step.shown else self.dependency(step, step.source, ~(1 << reader))
        return 0 if source == INITIAL else 1 << source & ~(1 << reader)

    def _later_writers(self, keys: frozenset[int], i: int) -> int:
        found = 0
        for key in keys:
            found |= self.writers[key]
        return found & -(2 << i)

    def _overwriting_writers(self, program: ExecutedProgram) -> int:
        found = 0
        for at in program.reads:
            step = program.steps[at]
            assert step.source is not None
            found |= self.contradicting(step, step.source)
        return found

    def __len__(self) -> int:
        return len(self.programs)

    @cached_property
    def has_scans(self) -> bool:
        """Return whether a transaction has a predicate read."""
        return any(program.scans for program in self.programs)

    @cached_property
    def conflicts(self) -> list[int]:
        """The conflicts of each transaction, and the later transactions of its session."""
        return [d | o for d, o in zip(self.direct, self.overwritten, strict=True)]

    @cached_property
    def descendants(self) -> list[int]:
        """Each transaction's descendants: itself and all that depend on it by ``so | wr``."""
        found = [1 << i for i in range(len(self))]
        for i in reversed(range(len(self))):
            rest = self.depends[i]
            while rest:
                # SOUND BECAUSE the first transaction in ``rest`` has a larger number, so the set
                # of its descendants is already known.
                low = rest & -rest
                found[i] |= found[low.bit_length() - 1]
                rest &= ~found[i]
        return found

    @cached_property
    def ancestors(self) -> list[int]:
        """Each transaction's ancestors: itself and all that it depends on by ``so | wr``."""
        n = len(self)
        found = [1 << i for i in range(n)]
        for i, program in enumerate(self.programs):
            before = self.earlier[i]
            for at in program.reads:
                before |= self._seen(program.steps[at], i)
            while before:
                last = before.bit_length() - 1
                found[i] |= found[last]
                before &= ~found[i]
        return found


class PassedRun(Struct, frozen=True, eq=False):
    """The committed transactions of a history, with the sources stated by a certified witness.

    Attributes:
        omitted: the number of transactions left out, by reason.
    """

    history: History
    order: Arrangement
    numbers: tuple[int, ...]
    omitted: Mapping[str, int]

    def has_one_session(self) -> bool:
        """Return whether one session ran all transactions, including those left out."""
        import numpy as np

        columns = self.history.columns
        counts = ~np.isin(columns.txn_status, (c.ABORTED, c.INITIAL))
        return len(np.unique(columns.txn_session[counts])) == 1

    def name(self, txn: int) -> str:
        """Return the name of a transaction in the history, for messages."""
        return self.history.name_of(self.numbers[txn])

    def program_name(self, txn: int) -> str:
        """Return a name for the program that a transaction is an instance of.

        The name consists of the transaction's labels, with a call such as ``pay(1, 30)`` replaced
        by its function's name. Without labels, it is the first recorded ``file:line``, or else the
        transaction's shape.
        """
        history, number = self.history, self.numbers[txn]
        if labels := history.labels_of(number):
            return program_of(labels)
        steps = self.order.programs[txn].steps
        callers = dict.fromkeys(x for s in steps if (x := history.remark(s.op).caller))
        return next(iter(callers), "") or self.shape(txn)

    def shape(self, txn: int) -> str:
        """Return a transaction's operations as text, with letters for rows: ``r account[a]``.

        Transactions of the same program usually have the same shape.
        """
        letters: dict[str, str] = {}
        program = self.order.programs[txn]
        scans = {scan.begin: scan for scan in reversed(program.scans)}
        parts = []
        for at in range(len(program.steps) + 1):
            if at in scans:
                predicate = int(self.history.columns.statement_predicate[scans[at].number])
                parts.append(f"rp {predicate_shape(self.history.columns.predicates[predicate])}")
            if at == len(program.steps) or program.steps[at].scan >= 0:
                continue
            step = program.steps[at]
            table, row = table_and_row(self.history.key(step.key))
            letter = letters.setdefault(row, chr(ord("a") + min(len(letters), 25)))
            parts.append(f"{c.KIND_NAMES[step.kind]} {table}[{letter}]" if table else
                         f"{c.KIND_NAMES[step.kind]} {letter}")  # fmt: skip
        return " ".join(parts)


def program_of(labels: Iterable[str]) -> str:
    """Return the program named by a transaction's labels.

    A label that is a call names its function.

    >>> program_of(["pay(1, 30)"])
    'pay'
    """
    return " ".join(dict.fromkeys(_CALL.sub(r"\1", label) for label in labels))


def predicate_shape(text: str) -> str:
    """Return a predicate's text without its values, so that the text is that of the program.

    >>> predicate_shape('{:table "t" :where [:and [:= :room 7] [:= :day "mon"]]}')
    '{:table "t" :where [:and [:= :room …] [:= :day …]]}'
    """
    return _VALUE_IN_PREDICATE.sub(" …", text)


def table_and_row(key: str) -> tuple[str, str]:
    """Split a key into its table and its row: ``account/7`` is row ``7`` of table ``account``.

    If the key also names a column, such as ``account/7/balance``, the column is appended to the
    table. If the key contains no slash, the table is empty.
    """
    table, _, row = key.partition("/")
    if not row:
        return "", table
    row, _, column = row.partition("/")
    return (f"{table}.{column}" if column else table), row
