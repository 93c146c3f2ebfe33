"""Represents a run: a history's committed transactions, with the sources stated by a witness.

Transactions are renumbered in an order in which each transaction reads from earlier transactions.
If the level has a serial order, that order is used. A set of transactions is an integer whose bits
are the numbers of its members, because operations on such sets are fast: in a run of ten thousand
transactions, they take only a few machine instructions for each transaction and step.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from isolang.certify.proofs import Witness
from isolang.errors import HistoryError, UnsupportedError
from isolang.history import columns as c
from isolang.history.objects import operation_statements
from isolang.history.statements import ALONE, SHARED

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.history.statements import SentStatement
    from isolang.verdict import Valid

INITIAL: Final = -1
"""The source of a read that returned the initial version."""

_CALL: Final = re.compile(r"^([\w.]+)\(.*\)$", re.DOTALL)
_READS: Final = (c.READ, c.READ_LIST)
_UPDATES: Final = (c.WRITE, c.APPEND)


class Access(Struct, frozen=True):
    """A transaction's operation in a run.

    Attributes:
        kind: the kind, as a code of the columns: a read, a write, an append or a read of a list.
        source: for an external read, the transaction that it reads from, or ``INITIAL``; ``None``
            for a write, an internal read, or a read with an unknown result.
        sent: the statement that executed the operation; ``None`` if it was not recorded.
    """

    op: int
    kind: int
    key: int
    source: int | None = None
    sent: SentStatement | None = None


class ExecutedProgram(Struct, frozen=True):
    """The operations executed by a transaction in a run."""

    steps: tuple[Access, ...]
    reads: tuple[int, ...]
    writes: frozenset[int]

    @classmethod
    def of(cls, steps: Sequence[Access]) -> ExecutedProgram:
        """Return a transaction's operations, together with its external reads and written keys."""
        return cls(
            tuple(steps),
            tuple(i for i, step in enumerate(steps) if step.source is not None),
            frozenset(step.key for step in steps if step.kind in _UPDATES),
        )

    def end_of_statement(self, at: int) -> int:
        """Return the index after the last step of the statement that a step belongs to."""
        sent, end = self.steps[at].sent, at + 1
        while sent is not None and end < len(self.steps):
            other = self.steps[end].sent
            if other is None or other.number != sent.number:
                break
            end += 1
        return end

    def locked_keys(self, end: int | None = None) -> tuple[frozenset[int], frozenset[int]]:
        """Return the keys locked by the first steps: against all others, and against writers only.

        A step locks a key that it writes or that it reads in a locking statement.
        """
        alone = {step.key for step in self.steps[:end] if step.kind in _UPDATES}
        shared: set[int] = set()
        for step in self.steps[:end]:
            if step.sent is not None and step.kind in _READS and step.sent.guards:
                (alone if step.sent.lock in ALONE else shared).add(step.key)
        for name in self._held_locks(end):
            key = -2 - crc32(name.removesuffix(SHARED).encode())  # no key of a row is negative
            (shared if name.endswith(SHARED) else alone).add(key)
        return frozenset(alone), frozenset(shared - alone)

    def _held_locks(self, end: int | None) -> Collection[str]:
        """Return the names of the other locks held after the first steps; of all, if no end."""
        held = [step.sent.holds for step in self.steps[:end] if step.sent is not None]
        return {name for names in (held if end is None else held[-1:]) for name in names}


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
        blind: for each key with several writers, the writers that do not read it, if any.
        locking: for each key, the transactions that lock it against all other transactions.
        sharing: for each key, the transactions that lock it against writers only.
        depends: the later transactions of the session, and the readers of the versions (so | wr).
        direct: the same, and the transactions that overwrite the versions (so | wr | ww).
        overwritten: the transactions that overwrite versions read by the transaction (rw).
    """

    def __init__(self, programs: Sequence[ExecutedProgram], sessions: Sequence[int]) -> None:
        """Compute the relations."""
        self.programs, self.sessions = programs, sessions
        n = len(programs)
        self.earlier = [0] * n
        self.writers: dict[int, int] = {}
        self.readers: dict[int, int] = {}
        self.locking: dict[int, int] = {}
        self.sharing: dict[int, int] = {}
        self.depends = [0] * n
        members: dict[int, int] = {}
        for i, program in enumerate(programs):
            self.earlier[i] = members.get(sessions[i], 0)
            members[sessions[i]] = self.earlier[i] | 1 << i
            for key in program.writes:
                self.writers[key] = self.writers.get(key, 0) | 1 << i
            every = program.locked_keys()
            for locks, keys in zip((self.locking, self.sharing), every, strict=True):
                for key in keys:
                    locks[key] = locks.get(key, 0) | 1 << i
            for at in program.reads:
                step = program.steps[at]
                self.readers[step.key] = self.readers.get(step.key, 0) | 1 << i
                for source in bits(self._seen(step, i)):
                    self.depends[source] |= 1 << i
        self.blind = {
            key: blind
            for key, writers in self.writers.items()
            if writers & (writers - 1) and (blind := writers & ~self.readers.get(key, 0))
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

    def _seen(self, step: Access, reader: int) -> int:
        """Return the transactions whose writes are visible in a read.

        For a list read, these are the writers of all elements. The reader itself is left out.
        """
        assert step.source is not None
        if step.source == INITIAL:
            return 0
        if step.kind == c.READ_LIST:
            return self.writers.get(step.key, 0) & (2 << step.source) - 1 & ~(1 << reader)
        return 1 << step.source & ~(1 << reader)

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
            found |= self.writers.get(step.key, 0) & -(2 << step.source if step.source >= 0 else 1)
        return found

    def __len__(self) -> int:
        return len(self.programs)

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
        by_rows: the number of transactions whose predicate reads count as reads of the rows found.
    """

    history: History
    order: Arrangement
    numbers: tuple[int, ...]
    omitted: Mapping[str, int]
    by_rows: int = 0

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
        parts = []
        for step in self.order.programs[txn].steps:
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


def run_of(verdict: Valid, *, serial: bool, by_rows: bool = False) -> PassedRun:
    """Return the run with the sources and version orders stated by a witness.

    Args:
        serial: whether the level has a serial order. If so, the transactions are numbered in this
            order; otherwise, in an order that follows ``so``, ``wr`` and ``ww``.
        by_rows: whether a predicate read counts as reads of the rows that it found. If not, the
            run lacks all transactions with predicate reads, and those that depend on them.

    Raises:
        UnsupportedError: the witness does not consist of sources and version orders, or no order of
            the transactions follows ``so``, ``wr`` and ``ww``.
        HistoryError: the history has no committed transaction.
    """
    history, witness = verdict.history, verdict.witness
    where = history.name
    if not isinstance(witness, Witness):
        raise UnsupportedError(
            f"{where}: {verdict.spec.name} leaves more open than sources and "
            "version orders, so a witness does not determine the sources of "
            "reads; hint: predict against ser, si or another level over so, "
            "wr, ww and rw"
        )
    columns = history.columns
    included = _included(history, witness)
    if not included:
        raise HistoryError(f"{where}: no transaction committed (expected a run with transactions)")
    predicates = _with_predicates(history)
    sources: list[int] = witness.source.tolist()
    starts, ordered = witness.order_start.tolist(), witness.order_txn.tolist()
    kinds, keys = columns.op_kind.tolist(), columns.op_key.tolist()
    values, fine = columns.op_value.tolist(), columns.op_ok.tolist()
    begins = columns.op_start.tolist()
    sessions = columns.txn_session.tolist()

    def steps_of(txn: int) -> Iterator[Access]:
        written: set[int] = set()
        sent = operation_statements(history, txn)
        for op in range(begins[txn], begins[txn + 1]):
            kind, key = kinds[op], keys[op]
            if not fine[op] or kind not in (*_READS, *_UPDATES):
                continue
            external = kind == c.READ_LIST or (kind == c.READ and key not in written)
            known = external and values[op] != c.UNKNOWN_VALUE and sources[op] >= 0
            statement = sent[op - begins[txn]] if sent else None
            yield Access(op, kind, key, sources[op] if known else None, statement)
            if kind in _UPDATES:
                written.add(key)

    steps = {txn: tuple(steps_of(txn)) for txn in included}
    versions = {key: ordered[starts[key] : starts[key + 1]] for key in range(len(starts) - 1)}
    place = {(key, txn): at for key, txns in versions.items() for at, txn in enumerate(txns)}
    sorted_ = _dependency_order(history, included, steps, versions, place, serial=serial)
    new = {txn: number for number, txn in enumerate(sorted_)}
    t0 = history.t0

    def renumbered(step: Access) -> Access:
        if step.source is None:
            return step
        return replace(step, source=INITIAL if step.source == t0 else new[step.source])

    order = Arrangement(
        [ExecutedProgram.of([renumbered(s) for s in steps[txn]]) for txn in sorted_],
        [sessions[txn] for txn in sorted_],
    )
    numbers = tuple(sorted_)
    gone = 0
    if by_rows:
        return PassedRun(history, order, numbers, {}, len(predicates.intersection(numbers)))
    if any(txn in predicates for txn in numbers):
        descendants = order.descendants
        for i, txn in enumerate(numbers):
            if txn in predicates:
                gone |= descendants[i]
    if not gone:
        return PassedRun(history, order, numbers, {})
    return _without_transactions(PassedRun(history, order, numbers, {}), gone)


def _without_transactions(run: PassedRun, gone: int) -> PassedRun:
    """Return the run without the transactions in ``gone``; no others may depend on them."""
    kept = [i for i in range(len(run.order)) if not gone >> i & 1]
    new = {i: at for at, i in enumerate(kept)} | {INITIAL: INITIAL}

    def renumbered(step: Access) -> Access:
        if step.source is None:
            return step
        return replace(step, source=new[step.source])

    order = Arrangement(
        [ExecutedProgram.of([renumbered(s) for s in run.order.programs[i].steps]) for i in kept],
        [run.order.sessions[i] for i in kept],
    )
    why = {"read by a predicate, or depend on one that did": gone.bit_count()}
    return PassedRun(run.history, order, tuple(run.numbers[i] for i in kept), why)


def _included(history: History, witness: Witness) -> list[int]:
    """Return the committed transactions and the indeterminate transactions in the witness."""
    import numpy as np

    status = history.columns.txn_status
    needed = np.zeros(len(status) + 1, bool)
    needed[witness.order_txn] = True
    needed[witness.source[witness.source >= 0]] = True
    maybe = (status == c.INDETERMINATE) & needed[:-1]
    found: list[int] = np.flatnonzero((status == c.COMMITTED) | maybe).tolist()
    return found


def _with_predicates(history: History) -> frozenset[int]:
    """Return the transactions with predicate reads or set-reads, which are not allowed in runs."""
    import numpy as np

    columns = history.columns
    found: set[int] = set(columns.statement_txn.tolist()) if len(columns.statement_txn) else set()
    for op in np.flatnonzero(np.isin(columns.op_kind, c.SET_READS)).tolist():
        found.add(history.transaction_of(op))
    return frozenset(found)


def _dependency_order(
    history: History,
    included: Sequence[int],
    steps: Mapping[int, Sequence[Access]],
    versions: Mapping[int, Sequence[int]],
    place: Mapping[tuple[int, int], int],
    *,
    serial: bool,
) -> list[int]:
    """Sort transactions in an order that follows ``so``, ``wr`` and ``ww``.

    If ``serial`` is true, the order also follows ``rw``. Where the order leaves a choice,
    transactions that ended earlier come first.
    """
    columns, t0 = history.columns, history.t0
    follows: dict[int, set[int]] = {txn: set() for txn in included}
    last: dict[int, int] = {}
    for txn in included:
        session = int(columns.txn_session[txn])
        if session in last:
            follows[last[session]].add(txn)
        last[session] = txn
    for txns in versions.values():
        for a, b in pairwise(txns):
            follows[a].add(b)
    for txn in included:
        for step in steps[txn]:
            if step.source is None:
                continue
            if step.source not in (t0, txn):
                follows[step.source].add(txn)
            if serial:
                at = -1 if step.source == t0 else place[step.key, step.source]
                later = [x for x in versions[step.key][at + 1 : at + 3] if x != txn]
                if later:
                    follows[txn].add(later[0])
    degree = dict.fromkeys(included, 0)
    for txn in included:
        for other in follows[txn]:
            degree[other] += 1
    ends = columns.txn_end.tolist()
    todo = [(ends[txn], txn) for txn in included if not degree[txn]]
    heapq.heapify(todo)
    found = []
    while todo:
        _, txn = heapq.heappop(todo)
        found.append(txn)
        for other in follows[txn]:
            degree[other] -= 1
            if not degree[other]:
                heapq.heappush(todo, (ends[other], other))
    if len(found) < len(included):
        raise UnsupportedError(
            f"{history.name}: predictions need a witness that orders all "
            "transactions, but in this one so, wr and ww have a cycle; hint: "
            "predict against a level that forbids such cycles, such as ser"
        )
    return found
