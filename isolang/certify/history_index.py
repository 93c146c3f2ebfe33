"""Indexes a history by transaction, operation, key and value, for the checker by definition."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.language.meaning.core import Named
from isolang.language.syntax.ast import KeyClass

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from isolang.history.history import History

COMMITTED, ABORTED, INDETERMINATE, INITIAL = range(4)
READ, WRITE, APPEND, READ_LIST, READ_ONE_OF, READ_NONE_OF = range(6)
SET_READS = (READ_ONE_OF, READ_NONE_OF)
NIL = 0
UNKNOWN_VALUE = -1
NO_SOURCE = -1
"""The source of an operation that reads no version."""
BY_VALUE, FROM_INITIAL, FROM_MISSING = -1, -2, -3


class HistoryIndex:
    """The transactions and operations of a history, by transaction, key and value.

    Attributes:
        n: the number of transactions, which is also T0's number.
        txn_of: the transaction of each operation. Operations of declared initial transactions
            belong to T0.
        last: for each transaction, its last successful write of each key. The last entry is T0's,
            with the writes of declared initial transactions.
    """

    def __init__(self, history: History) -> None:
        columns = history.columns
        self.n = n = columns.transactions()
        self.operations = columns.operations()
        self.keys = columns.n_keys()
        self.sessions = columns.sessions
        self.has_time = columns.has_time
        self.group = columns.txn_group.tolist()
        self._history = history
        self.status: list[int] = columns.txn_status.tolist()
        self.session: list[int] = columns.txn_session.tolist()
        self.begin: list[int] = columns.txn_begin.tolist()
        self.end: list[int] = columns.txn_end.tolist()
        self.op_start: list[int] = columns.op_start.tolist()
        # The times of operations and of COMMIT; all of these lists are empty if no times are known.
        self._op_begin: list[int] = columns.op_begin.tolist()
        self._op_end: list[int] = columns.op_end.tolist()
        self._commit_begin: list[int] = columns.commit_begin.tolist()
        self._commit_end: list[int] = columns.commit_end.tolist()
        # The slack of each session: the amount by which its times were widened for its clock error.
        self._slack: list[int] = columns.slack.tolist() or [0] * columns.sessions
        self.kind: list[int] = columns.op_kind.tolist()
        self.ok: list[int] = columns.op_ok.tolist()
        self.key: list[int] = columns.op_key.tolist()
        self.value: list[int] = columns.op_value.tolist()
        self.source: list[int] = columns.op_source.tolist()
        # The version stated by each operation, or -1; empty if no operation states a version.
        self.version: list[int] = columns.op_version.tolist()
        self.has_versions = columns.has_versions
        self.versions_ordered = columns.versions_ordered and columns.has_versions
        self._version_of = columns.version
        self._list_start: list[int] = columns.list_start.tolist()
        self._list_values: list[int] = columns.list_values.tolist()
        self.deleted: int = columns.deleted
        starts, ends = columns.statement_start.tolist(), columns.statement_end.tolist()
        self._statement_start: list[int] = starts
        self._statement = {
            op: s
            for s, (start, end) in enumerate(zip(starts, ends, strict=True))
            for op in range(start, end)
        }
        self._statements: defaultdict[int, list[int]] = defaultdict(list)  # of each transaction
        for s, t in enumerate(columns.statement_txn.tolist()):
            self._statements[t].append(s)
        self._statement_sent: list[int] = columns.statement_sent.tolist()
        self._statement_answered: list[int] = columns.statement_answered.tolist()
        self._one_clock = not columns.two_clocks
        self.initial_value: list[int] = columns.initial_value.tolist()
        self._initial_alone: set[int] = {
            key for key, alone in enumerate(columns.initial_alone.tolist()) if alone
        }
        self.txn_of: list[int] = []
        self.last: list[dict[int, int]] = [{} for _ in range(n + 1)]
        # All writes of each key and value, in order, including failed and aborted writes.
        self.writes: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self._writes_of_key: list[list[int]] = [[] for _ in range(self.keys)]
        self._sets: dict[int, Container[int]] = {}
        self._implicit: defaultdict[int, list[int]] = defaultdict(list)  # of each transaction
        # for each key, the writers that may be included, without T0
        self.writers: list[list[int]] = [[] for _ in range(self.keys)]
        self._list_reads: list[list[int]] = [[] for _ in range(self.keys)]
        # The successful writes and appends of each transaction to each key, in order.
        self._own: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self._written: set[int] = set()
        self._appended: set[int] = set()
        for t in range(n):
            self._index_writes(t)
        for t in range(n):
            if self.live(t):
                for op in range(self.op_start[t], self.op_start[t + 1]):
                    if self.ok[op] and self.is_list(op):
                        self._list_reads[self.key[op]].append(op)

    def add_set_read(self, s: int, txn: int, key: int, of: Container[int]) -> int:
        """Add an implicit set-read as an operation.

        The set-read states that predicate read ``s`` saw none of the values ``of`` in a key.
        """
        op = self.operations
        self.operations += 1
        self.kind.append(READ_NONE_OF)
        self.ok.append(1)
        self.key.append(key)
        self.value.append(len(self._list_start) + op)
        self._sets[self.value[op]] = of
        self.source.append(BY_VALUE)
        self.txn_of.append(txn)
        self._statement[op] = s
        self._implicit[txn].append(op)
        return op

    def bears(self, t: int, of: Named) -> bool:
        """Return whether a transaction has the label, or requested the level, named by ``of``."""
        if t == self.n or self.status[t] == INITIAL:
            return False
        history = self._history
        # mutant: definition-label-as-level
        names = history.labels_of(t) if of.word == "label" else (history.level_of(t) or None,)
        return any(name is not None and _is_called(name, of.name) for name in names)

    def share_label(self, a: int, b: int) -> bool:
        """Return whether two transactions have a label in common."""
        history = self._history
        return any(name in history.labels_of(b) for name in history.labels_of(a))

    def key_in(self, key: int, within: KeyClass) -> bool:
        """Return whether a key belongs to a class of keys defined by patterns."""
        name = self._history.key_name(key)
        listed = any(_is_called(name, pattern) for pattern in within.patterns)
        return not listed if within.negated else listed

    def _index_writes(self, t: int) -> None:
        owner = self.n if self.status[t] == INITIAL else t
        live = self.status[t] != ABORTED
        for op in range(self.op_start[t], self.op_start[t + 1]):
            self.txn_of.append(owner)
            kind, key = self.kind[op], self.key[op]
            if kind not in (WRITE, APPEND):
                continue
            self.writes[key, self.as_read(self.value[op])].append(op)
            self._writes_of_key[key].append(op)
            if not self.ok[op]:
                continue
            if live and owner != self.n and key not in self.last[t]:
                self.writers[key].append(t)
            self.last[owner][key] = op
            self._own[owner, key].append(op)
            if live:
                (self._written if kind == WRITE else self._appended).add(key)

    def version_number(self, op: int) -> int:
        """Return the version stated by an operation, in a history with ordered versions."""
        kind, number = self._version_of(self.version[op])
        assert isinstance(number, int), kind
        return number

    def live(self, t: int) -> bool:
        """Return whether ``t`` may be included, because it is T0, committed or indeterminate."""
        return t == self.n or (0 <= t < self.n and self.status[t] in (COMMITTED, INDETERMINATE))

    def certain(self, t: int) -> bool:
        """Return whether ``t`` is included in every choice, because it is T0 or committed."""
        return t == self.n or (0 <= t < self.n and self.status[t] == COMMITTED)

    @cached_property
    def could_be_included(self) -> frozenset[int]:
        """The transactions that may be included, without T0."""
        return frozenset(t for t in range(self.n) if self.status[t] in (COMMITTED, INDETERMINATE))

    def writes_any(self, t: int) -> bool:
        """Return whether ``t`` may be included and writes at least one key."""
        return t == self.n or (self.live(t) and bool(self.last[t]))

    def writes_key(self, t: int, key: int) -> bool:
        """Return whether ``t`` may be included and writes ``key``."""
        return t == self.n or (self.live(t) and key in self.last[t])

    def writes_by(self, t: int, key: int) -> list[int]:
        """Return the successful writes of ``key`` (or appends to it) by ``t``, in program order."""
        return self._own.get((t, key), [])

    def is_list(self, op: int) -> bool:
        """Return whether ``op`` reads a known list; for keys with lists, nil is the empty list."""
        if self.kind[op] == READ_LIST:
            return self.value[op] != UNKNOWN_VALUE
        return self.kind[op] == READ and self.value[op] == NIL and self.key[op] in self._appended

    def is_read(self, op: int) -> bool:
        """Return whether ``op`` is a read with a known result whose transaction may be included.

        Raises:
            NotCertifiedError: if the key is used both as a register and as a list.
        """
        if (
            not 0 <= op < self.operations
            or self.kind[op] in (WRITE, APPEND)
            or not self.ok[op]
            or self.value[op] == UNKNOWN_VALUE
            or self.txn_of[op] == self.n
            or not self.live(self.txn_of[op])
        ):
            return False
        key = self.key[op]
        if (
            (key in self._written and key in self._appended)
            or (key in self._written and self.kind[op] == READ_LIST)
            or (key in self._appended and self.kind[op] == READ and self.value[op] != NIL)
            or (key in self._appended and self.kind[op] in SET_READS)
        ):
            raise NotCertifiedError(f"not certified: key {key} is both a register and a list")
        return True

    def own_before(self, op: int) -> list[int]:
        """Return the reader's own successful writes of the key that precede the read ``op``."""
        own = self._own.get((self.txn_of[op], self.key[op]))
        return own[: bisect_left(own, self.place(op)[0])] if own else []

    def own_after(self, op: int) -> list[int]:
        """Return the reader's own successful writes of the key that follow the read ``op``."""
        own = self._own.get((self.txn_of[op], self.key[op]))
        return own[bisect_left(own, self.place(op)[0]) :] if own else []

    def operations_of(self, t: int) -> Sequence[int]:
        """Return the operations and added set-reads of ``t`` in ascending order; none for T0."""
        if not 0 <= t < self.n:
            return ()
        recorded = range(self.op_start[t], self.op_start[t + 1])
        return [*recorded, *self._implicit[t]] if t in self._implicit else recorded

    def is_external(self, op: int) -> bool:
        """Return whether ``op`` is a read of a key that its transaction has not written before."""
        return self.is_read(op) and not self.own_before(op)

    def as_read(self, value: int) -> int:
        """Return the value that a read sees for a written value: nil for a deleted row."""
        return NIL if value == self.deleted else value

    def in_statement(self, op: int) -> bool:
        """Return whether an operation is part of a predicate read."""
        return op in self._statement

    def statement_of(self, op: int) -> int:
        """Return the number of the predicate read that contains an operation; -1 if none does."""
        return self._statement.get(op, -1)

    def place(self, op: int) -> tuple[int, int]:
        """Return an operation's position in its transaction, as a sort key.

        All operations of a predicate read have the same position.
        """
        s = self._statement.get(op)
        return (op, len(self._statement_start)) if s is None else (self._statement_start[s], s)

    def reads_first(self, op: int, later: int) -> bool:
        """Return whether ``op`` precedes ``later``; false within one predicate read."""
        # mutant: python-ordered-statements
        return self.place(op) < self.place(later)

    def set_of(self, op: int) -> Container[int]:
        """Return the set of values, as atoms, stated by a set-read."""
        number = self.value[op]
        if number not in self._sets:
            first, end = self._list_start[number : number + 2]
            self._sets[number] = frozenset(self._list_values[first:end])
        return self._sets[number]

    def list_of(self, op: int) -> list[int]:
        """Return the elements, as atoms, returned by a list read, in order."""
        if self.kind[op] == READ:
            return []
        number = self.value[op]
        return self._list_values[self._list_start[number] : self._list_start[number + 1]]

    def require_writer(self, key: int, t: int) -> None:
        """Require that ``t`` may be included and writes ``key``.

        Raises:
            CertificateRejected: if ``t`` may not be included or does not write ``key``.
        """
        if not 0 <= key < self.keys:
            raise CertificateRejected(f"there is no key {key}")
        if t != self.n and not (0 <= t < self.n and self.live(t) and key in self.last[t]):
            raise CertificateRejected(f"transaction {t} does not write key {key}")


def _is_called(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern, where ``*`` stands for any text."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == first
    *middle, last = rest
    if not name.startswith(first) or not name[len(first) :].endswith(last):
        return False
    inside = name[len(first) : len(name) - len(last)]
    at = 0
    for part in middle:
        found = inside.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True
