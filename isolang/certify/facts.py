"""Derives what a history determines by itself: candidates, so, rt, version order.

This is the checkers' own reading of the language reference; the engine's problem builder is
another program. The two agree or a certificate is refused.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.language.meaning.core import Named
from isolang.language.syntax.ast import KeyClass
from isolang.language.vocabulary import COMPARING_GROUPS, MOMENTS, OF_BEGIN_AND_END, OF_STATEMENTS

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Sequence

    from isolang.history.history import History

COMMITTED, ABORTED, INDETERMINATE, INITIAL = range(4)
READ, WRITE, APPEND, READ_LIST, READ_ONE_OF, READ_NONE_OF = range(6)
SET_READS = (READ_ONE_OF, READ_NONE_OF)
NIL = 0
UNKNOWN_VALUE = -1
NO_SOURCE = -1
"""Of an operation that no version was read by."""
BY_VALUE, FROM_INITIAL, FROM_MISSING = -1, -2, -3
_UNKNOWN_BEGIN = -(2**63)
_UNKNOWN_END = 2**63 - 1


class _Moments(NamedTuple):
    """The known moments of a transaction: docs/times.md.

    Attributes:
        of: per place of an operation, since when it was sent, and until when it was answered.
        commit_sent: since when COMMIT was sent.
        first_answered: until when the first operation was answered.
    """

    of: dict[tuple[int, int], tuple[int, int]]
    commit_sent: int
    first_answered: int


class Facts:
    """A history, indexed for checking.

    Attributes:
        n: the number of transactions of the history, which is also T0's number.
        keys: the number of keys.
        status: per transaction.
        txn_of: per operation, its transaction; T0 for the operations of a declared initial
            transaction.
        last: per transaction, key to its last successful write operation. T0's entry holds what
            declared initial transactions wrote.
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
        # Of operations and of COMMIT; all empty if none is known.
        self._op_begin: list[int] = columns.op_begin.tolist()
        self._op_end: list[int] = columns.op_end.tolist()
        self._commit_begin: list[int] = columns.commit_begin.tolist()
        self._commit_end: list[int] = columns.commit_end.tolist()
        # By how much the moments of each session were widened, where its clock may be wrong.
        self._slack: list[int] = columns.slack.tolist() or [0] * columns.sessions
        self.kind: list[int] = columns.op_kind.tolist()
        self.ok: list[int] = columns.op_ok.tolist()
        self.key: list[int] = columns.op_key.tolist()
        self.value: list[int] = columns.op_value.tolist()
        self.source: list[int] = columns.op_source.tolist()
        # Of each operation the version that it states, or -1; empty if none states one.
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
        self._statements: defaultdict[int, list[int]] = defaultdict(list)  # per transaction
        for s, t in enumerate(columns.statement_txn.tolist()):
            self._statements[t].append(s)
        self._statement_sent: list[int] = columns.statement_sent.tolist()
        self._statement_answered: list[int] = columns.statement_answered.tolist()
        self._one_clock = not columns.two_clocks
        self._moments: dict[int, _Moments] = {}
        self.initial_value: list[int] = columns.initial_value.tolist()
        self._initial_alone: set[int] = set(columns.initial_alone.nonzero()[0].tolist())
        self.txn_of: list[int] = []
        self.last: list[dict[int, int]] = [{} for _ in range(n + 1)]
        # Every write of a (key, value), failed and aborted ones too, in order.
        self.writes: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self._writes_of_key: list[list[int]] = [[] for _ in range(self.keys)]
        self._sets: dict[int, Container[int]] = {}
        self._implicit: defaultdict[int, list[int]] = defaultdict(list)  # per transaction
        self.writers: list[list[int]] = [[] for _ in range(self.keys)]  # live, T0 left out
        self._list_reads: list[list[int]] = [[] for _ in range(self.keys)]
        # (txn, key) -> its successful writes or appends, in order
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
        """Add an implicit set-read: the predicate read ``s`` saw none of these rows of a key.

        Returns:
            The number of the operation, behind all others.
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
        """Return whether a transaction bears a label or a level that a name selects."""
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
        """Return whether the name of a key is of a class."""
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
        """The version that an operation states, where versions are ordered."""
        kind, number = self._version_of(self.version[op])
        assert isinstance(number, int), kind
        return number

    # --- transactions ---

    def live(self, t: int) -> bool:
        """Return whether ``t`` may be included: T0, committed or indeterminate."""
        return t == self.n or (0 <= t < self.n and self.status[t] in (COMMITTED, INDETERMINATE))

    def certain(self, t: int) -> bool:
        """Return whether ``t`` is included whatever is chosen: T0 or committed."""
        return t == self.n or (0 <= t < self.n and self.status[t] == COMMITTED)

    @cached_property
    def could_be_included(self) -> frozenset[int]:
        """All that may be included, T0 left out."""
        return frozenset(t for t in range(self.n) if self.status[t] in (COMMITTED, INDETERMINATE))

    def writes_any(self, t: int) -> bool:
        """Return whether ``t`` writes some key, and may be included."""
        return t == self.n or (self.live(t) and bool(self.last[t]))

    def reads_any(self, t: int) -> bool:
        """Return whether ``t`` reads from another transaction, and may be included."""
        if t == self.n or not self.live(t):
            return False
        ops = range(self.op_start[t], self.op_start[t + 1])
        return any(self.is_external(op) and self.has_candidate(op) for op in ops)

    def writes_key(self, t: int, key: int) -> bool:
        """Return whether ``t`` writes ``key``, and may be included."""
        return t == self.n or (self.live(t) and key in self.last[t])

    def reads_key(self, t: int, key: int) -> bool:
        """Return whether ``t`` reads ``key`` from another transaction, and may be included."""
        if t == self.n or not self.live(t):
            return False
        ops = range(self.op_start[t], self.op_start[t + 1])
        return any(
            self.key[op] == key and self.is_external(op) and self.has_candidate(op) for op in ops
        )

    def relates(self, relation: str, a: int, b: int) -> bool:
        """Return whether a relation of transactions, or ``rt[W,R]``, relates ``a`` to ``b``."""
        name, _, ends = relation.partition("[")
        pair = bool(getattr(self, name.replace("-", "_"))(a, b))
        # mutant: python-accesses
        return pair and (not ends or bool(self.shared_keys(relation, a, b)))

    def shared_keys(self, relation: str, a: int, b: int) -> set[int]:
        """The keys x by which ``a`` and ``b`` are a pair of ``rt[W,R]``, say."""
        first, last = relation.rstrip("]").partition("[")[2].split(",")
        return self._accessed(a, first) & self._accessed(b, last)

    def _accessed(self, t: int, test: str) -> set[int]:
        if t == self.n:
            return set(range(self.keys)) if test == "W" else set()
        if test == "W":
            return set(self.last[t])
        ops = range(self.op_start[t], self.op_start[t + 1])
        # mutant: python-own-reads
        return {self.key[op] for op in ops if self.is_external(op) and self.has_candidate(op)}

    def so(self, a: int, b: int) -> bool:
        """Session order; an indeterminate transaction precedes nothing."""
        if self.n in (a, b):
            return self.init(a, b)
        return a < b and self.session[a] == self.session[b] and self._ordered(a, b)

    def rt(self, a: int, b: int) -> bool:
        """Real-time order: ``a`` ended strictly before ``b`` began."""
        if self.n in (a, b):
            return self.init(a, b)
        return (
            self.has_time
            and a != b
            and self._ordered(a, b)
            and self.before(self.end[a], a, self.begin[b], b)
        )

    def group_rt(self, a: int, b: int) -> bool:
        """Real-time order inside a group."""
        if not self.group or self.n in (a, b):
            return False
        return self.group[a] == self.group[b] != NIL and self.rt(a, b)

    @property
    def has_own_clocks(self) -> bool:
        """Return whether the clocks of sessions may be wrong, each of them by another time."""
        return any(self._slack)

    def by_own_clock(self, answered: int, t: int) -> int:
        """Return an answer to ``t`` by its session's clock, to compare with its sendings."""
        return answered if answered == _UNKNOWN_END else answered - self._slack[self.session[t]]

    def before(self, answered: int, a: int, sent: int, b: int) -> bool:
        """Return whether an answer to ``a`` precedes a sending of ``b``, by their clocks."""
        if answered == _UNKNOWN_END or sent == _UNKNOWN_BEGIN:
            return False
        one = self.session[a] == self.session[b]
        # mutant: python-commit-at-once
        return answered < sent or (one and self.by_own_clock(answered, a) < sent)

    @property
    def has_moments(self) -> bool:
        """Return whether anything is known of when transactions did something."""
        return self.has_time or bool(self._commit_begin)

    def commit_sent(self, t: int) -> int:
        """COMMIT was sent at that time or later: not before anything else of ``t`` was sent."""
        return self._moments_of(t).commit_sent

    def commit_answered(self, t: int) -> int:
        """``t`` had committed by then."""
        # mutant: python-indeterminate-commit
        if self.status[t] != COMMITTED:
            return _UNKNOWN_END
        # mutant: python-end-says-nothing
        end = self.end[t] if self._one_clock else _UNKNOWN_END
        return min(end, self._commit_end[t]) if self._commit_end else end

    def first_answered(self, t: int) -> int:
        """The first operation of ``t`` was answered by then: before any other was, and COMMIT."""
        return self._moments_of(t).first_answered

    def write_answered(self, t: int, key: int) -> int:
        """The first write of ``key`` by ``t`` was answered by then."""
        own = self.writes_by(t, key)
        return self._statement_answered_at(own[0]) if own else _UNKNOWN_END

    def _moments_of(self, t: int) -> _Moments:
        if t not in self._moments:
            self._moments[t] = self._bounded(t)
        return self._moments[t]

    def _bounded(self, t: int) -> _Moments:
        """All was sent after all sendings before it, and answered before all answers behind it."""
        known = self._known(t)
        # mutant: python-begin-says-nothing
        sent = self.begin[t] if self._one_clock else _UNKNOWN_BEGIN
        since: dict[tuple[int, int], int] = {}
        for place, (own, _) in known:
            # mutant: python-operation-sent
            sent = since[place] = max(sent, own)
        commit_sent = max(sent, self._commit_begin[t]) if self._commit_begin else sent
        answered = self.commit_answered(t)
        until: dict[tuple[int, int], int] = {}
        for place, (_, own) in reversed(known):
            # mutant: python-indeterminate-answers
            if self.status[t] == COMMITTED:
                # mutant: python-operation-answered
                answered = min(answered, own)
            until[place] = answered
        return _Moments({at: (since[at], until[at]) for at in since}, commit_sent, answered)

    def _known(self, t: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """The times of the operations of ``t``, a predicate read being one, in their order."""
        known = {self.place(op): op for op in range(self.op_start[t], self.op_start[t + 1])}
        nothing = (_UNKNOWN_BEGIN, _UNKNOWN_END)
        timed = bool(self._commit_begin)
        found = {
            at: (self._op_begin[op], self._op_end[op]) if timed else nothing
            for at, op in known.items()
        }
        # mutant: python-silent-statements
        for s in self._statements[t]:
            times = (self._statement_sent[s], self._statement_answered[s]) if timed else nothing
            found[self._statement_start[s], s] = times
        return sorted(found.items())

    def _before_commit(self, answered: int, a: int, b: int) -> bool:
        return a != b and self.before(answered, a, self.commit_sent(b), b)

    def _timed(self, a: int, b: int) -> bool:
        return self.has_moments and self.n not in (a, b) and self.live(a) and self.live(b)

    def done(self, a: int, b: int) -> bool:
        """``a`` had committed before ``b`` sent its COMMIT."""
        return self._timed(a, b) and self._before_commit(self.commit_answered(a), a, b)

    def late(self, a: int, b: int) -> bool:
        """The first operation of ``a`` was answered before ``b`` sent its COMMIT."""
        return self._timed(a, b) and self._before_commit(self.first_answered(a), a, b)

    def locked(self, a: int, b: int) -> bool:
        """A write by ``a`` was answered before ``b``, a writer of its key, sent its COMMIT."""
        return self._timed(a, b) and any(
            self._before_commit(self.write_answered(a, key), a, b)
            for key in self.last[a].keys() & self.last[b].keys()
        )

    def _statement_sent_at(self, op: int) -> int:
        """The statement of ``op`` was sent at that time or later."""
        return self._moments_of(self.txn_of[op]).of[self.place(op)][0]

    def _statement_answered_at(self, op: int) -> int:
        """It was answered by then."""
        return self._moments_of(self.txn_of[op]).of[self.place(op)][1]

    def committed_before(self, t: int, op: int) -> bool:
        """``t`` had committed before the statement of the external read ``op`` was sent."""
        owner = self.txn_of[op]
        if not (self._timed(t, owner) and owner != t):
            return False
        return self.before(self.commit_answered(t), t, self._statement_sent_at(op), owner)

    def answered_before(self, op: int, later: int) -> bool:
        """The statement of ``op`` was answered before that of ``later`` was sent."""
        first, second = self.txn_of[op], self.txn_of[later]
        return (
            self.has_moments
            and self.n not in (first, second)
            and self.before(
                self._statement_answered_at(op), first, self._statement_sent_at(later), second
            )
        )

    def program_order(self, op: int, later: int) -> bool:
        """Both are of one transaction, the first by an earlier statement."""
        return self.txn_of[op] == self.txn_of[later] and self.reads_first(op, later)

    def committed_after(self, op: int, t: int) -> bool:
        """The statement of the external read ``op`` was answered before ``t`` sent its COMMIT."""
        owner = self.txn_of[op]
        return self._timed(owner, t) and self._before_commit(
            self._statement_answered_at(op), owner, t
        )

    def statement_times(self, op: int) -> tuple[int, int]:
        """When the statement of ``op`` was sent, at the earliest, and answered, at the latest."""
        return self._statement_sent_at(op), self._statement_answered_at(op)

    def one_statement(self, op: int, other: int) -> bool:
        """Return whether two operations are of one statement."""
        # mutant: python-one-statement
        return self.place(op) == self.place(other)

    def begins(self, t: int) -> bool:
        """Return whether it is known when a transaction began."""
        return self.has_time and self.begin[t] != _UNKNOWN_BEGIN

    def ends(self, t: int) -> bool:
        """Return whether it is known when a transaction ended."""
        return self.has_time and self.end[t] != _UNKNOWN_END

    def init(self, a: int, b: int) -> bool:
        """T0 before every other transaction."""
        return a == self.n and b != self.n and self.live(b)

    def _ordered(self, a: int, b: int) -> bool:
        return self.status[a] == COMMITTED and self.live(b)

    def require(self, relations: Collection[str]) -> None:
        """Require that the history has what these relations compare.

        Raises:
            NotCertifiedError: otherwise.
        """
        relations = {relation.partition("[")[0] for relation in relations}
        moments = not {*MOMENTS, *OF_STATEMENTS}.isdisjoint(relations)
        if moments and not self.has_moments:
            raise NotCertifiedError(
                "not certified: the spec speaks of times, but the history has none"
            )
        if not relations.isdisjoint(COMPARING_GROUPS) and not self.group:
            raise NotCertifiedError(
                "not certified: the spec uses group-rt, but the history has no groups"
            )
        if not relations.isdisjoint(OF_BEGIN_AND_END) or (moments and not self._commit_begin):
            self.require_times()

    def require_times(self) -> None:
        """Real time must be known, and no transaction may end before it begins.

        Raises:
            NotCertifiedError: otherwise.
        """
        if not self.has_time:
            raise NotCertifiedError("not certified: the spec uses rt, but the history has no times")
        for t in range(self.n):
            if self.status[t] == COMMITTED and self.end[t] < self.begin[t]:
                raise NotCertifiedError(f"not certified: transaction {t} ends before it begins")

    def writes_by(self, t: int, key: int) -> list[int]:
        """The successful writes or appends of ``key`` by ``t``, in order."""
        return self._own.get((t, key), [])

    # --- reads ---

    def is_list(self, op: int) -> bool:
        """Return whether ``op`` reads a known list; nil of a list key is the empty list."""
        if self.kind[op] == READ_LIST:
            return self.value[op] != UNKNOWN_VALUE
        return self.kind[op] == READ and self.value[op] == NIL and self.key[op] in self._appended

    def is_read(self, op: int) -> bool:
        """Return whether ``op`` is a read with a known result that may be included.

        Raises:
            NotCertifiedError: the key is used both as a register and as a list.
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
        """The transaction's own successful writes of the key before its read ``op``."""
        own = self._own.get((self.txn_of[op], self.key[op]))
        return own[: bisect_left(own, self.place(op)[0])] if own else []

    def own_after(self, op: int) -> list[int]:
        """The transaction's own successful writes of the key after its read ``op``."""
        own = self._own.get((self.txn_of[op], self.key[op]))
        return own[bisect_left(own, self.place(op)[0]) :] if own else []

    def operations_of(self, t: int) -> Sequence[int]:
        """The operations of a transaction of the history, ascending."""
        if not 0 <= t < self.n:
            return ()
        recorded = range(self.op_start[t], self.op_start[t + 1])
        return [*recorded, *self._implicit[t]] if t in self._implicit else recorded

    def is_external(self, op: int) -> bool:
        """Return whether ``op`` is a read that no own write of the key precedes."""
        return self.is_read(op) and not self.own_before(op)

    def candidates(self, op: int) -> list[int]:
        """The transactions that the external read ``op`` may read from, ascending.

        Raises:
            NotCertifiedError: a list element that several transactions appended.
        """
        reader, key = self.txn_of[op], self.key[op]
        if self.is_list(op):
            values = self.list_of(op)
            if self.source[op] == FROM_MISSING:
                return []
            if not values:
                return [self.n]
            writer = self.element_writer(key, values[-1])
            if writer is None or writer == reader:
                return []
            return [writer] if self.value[self.last[writer][key]] == values[-1] else []
        source = self.source[op]
        if self.kind[op] in SET_READS and source == BY_VALUE:
            return [u for u in (*self.writers[key], self.n) if self.may_read(op, u)]
        if source == FROM_INITIAL:
            return [self.n]
        if source >= 0:
            writer = self.txn_of[source]
            legal = self._explains(source, key) and writer != reader
            return [writer] if legal else []
        if source != BY_VALUE:
            return []
        found = {
            self.txn_of[w]
            for w in self.writes_seen(op)
            if self._explains(w, key) and self.txn_of[w] != reader
        }
        if self._may_be_initial(op):
            found.add(self.n)
        return sorted(found)

    def may_read(self, op: int, u: int) -> bool:
        """Return whether ``u`` is a candidate of an external read."""
        if self.kind[op] not in SET_READS or self.source[op] != BY_VALUE:
            return u in self.candidates(op)
        if u == self.txn_of[op] or not self.live(u):
            return False
        write = self.last[u].get(self.key[op])
        allowed = write is not None and self.set_allows(op, self.value[write])
        return allowed or (u == self.n and self._may_be_initial(op))

    def has_candidate(self, op: int) -> bool:
        """Return whether an external read has one."""
        if self.kind[op] not in SET_READS:
            return bool(self.candidates(op))
        return any(self.may_read(op, u) for u in (self.n, *self.writers[self.key[op]]))

    def as_read(self, value: int) -> int:
        """Return the value as reads state it: a deleted row is nil."""
        return NIL if value == self.deleted else value

    def nil_is_initial(self, key: int) -> bool:
        """Return whether nil names the initial version, whatever value that holds."""
        # mutant: python-replaced-nil
        return self.initial_value[key] == NIL or key not in self._initial_alone

    def _vanishes(self, key: int) -> bool:
        """If a row was there at first, and some transaction deleted it: it is nil only then."""
        return self.initial_value[key] != NIL and any(
            self.value[self.last[t][key]] == self.deleted for t in self.writers[key]
        )

    def writes_seen(self, op: int) -> list[int]:
        """The writes of what a read saw, or may have seen; failed and aborted ones too."""
        key = self.key[op]
        if self.kind[op] in SET_READS:
            return [w for w in self._writes_of_key[key] if self.set_allows(op, self.value[w])]
        return self.writes.get((key, self.value[op]), [])

    def _may_be_initial(self, op: int) -> bool:
        """Return whether a read may have seen T0's version: nil, or what the history declares."""
        initial = self.initial_value[self.key[op]]
        of_rows = self.kind[op] in SET_READS and self.in_statement(op)
        if of_rows and (self.kind[op] == READ_ONE_OF or initial == NIL):
            return self.kind[op] != READ_ONE_OF  # no predicate matches a row that was never there
        if self.kind[op] == READ_NONE_OF:  # what is declared is known, so nil was not seen
            return self.set_allows(op, initial)
        nil = self.nil_is_initial(self.key[op])
        if self.kind[op] == READ_ONE_OF:
            return (nil and self.set_allows(op, NIL)) or self.set_allows(op, initial)
        if self.value[op] == NIL and self._vanishes(self.key[op]):
            return False
        return self.value[op] == initial or (nil and self.value[op] == NIL)

    def set_allows(self, op: int, value: int) -> bool:
        """Return whether the version that a set-read saw may hold a value."""
        one_of = self.kind[op] == READ_ONE_OF
        # mutant: python-returned-row
        if self.in_statement(op) and (one_of or value == self.deleted):
            return not one_of  # a returned row that does not match; a deleted one never does
        # mutant: python-set-read
        return (self.as_read(value) in self.set_of(op)) == one_of

    def in_statement(self, op: int) -> bool:
        """Return whether an operation is part of a predicate read."""
        return op in self._statement

    def statement_of(self, op: int) -> int:
        """The predicate read that an operation is part of, or -1."""
        return self._statement.get(op, -1)

    def of_predicate(self, op: int) -> bool:
        """Return whether an operation states that a predicate read found no matching row."""
        return self.kind[op] in SET_READS and self.in_statement(op)

    def place(self, op: int) -> tuple[int, int]:
        """Return the place of an operation in its transaction; a predicate read has one place."""
        s = self._statement.get(op)
        return (op, len(self._statement_start)) if s is None else (self._statement_start[s], s)

    def reads_first(self, op: int, later: int) -> bool:
        """Program order of two operations; there is none inside a predicate read."""
        # mutant: python-ordered-statements
        return self.place(op) < self.place(later)

    def set_of(self, op: int) -> Container[int]:
        """The atoms of a set-read."""
        number = self.value[op]
        if number not in self._sets:
            first, end = self._list_start[number : number + 2]
            self._sets[number] = frozenset(self._list_values[first:end])
        return self._sets[number]

    def _explains(self, write: int, key: int) -> bool:
        """Return whether ``write`` is its transaction's last of ``key``, and may be included."""
        t = self.txn_of[write]
        if self.kind[write] not in (WRITE, APPEND) or self.key[write] != key or not self.ok[write]:
            return False
        return self.live(t) and self.last[t].get(key) == write

    # --- lists ---

    def list_of(self, op: int) -> list[int]:
        """The atoms of a list read."""
        if self.kind[op] == READ:
            return []
        number = self.value[op]
        return self._list_values[self._list_start[number] : self._list_start[number + 1]]

    def element_writer(self, key: int, value: int) -> int | None:
        """The one transaction that may be included and appended ``value`` to ``key``.

        Raises:
            NotCertifiedError: there are several.
        """
        writers = {
            self.txn_of[w]
            for w in self.writes.get((key, value), ())
            if self.ok[w] and self.kind[w] == APPEND and self.live(self.txn_of[w])
        }
        if len(writers) > 1:
            raise NotCertifiedError(
                f"not certified: several transactions appended the same element to key {key}"
            )
        return next(iter(writers), None)

    def shown(self, op: int) -> list[int]:
        """The writers of a list read's elements, in order; elements without one are left out."""
        key = self.key[op]
        writers = (self.element_writer(key, value) for value in self.list_of(op))
        return [w for w in writers if w is not None]

    def list_reads(self, key: int) -> list[int]:
        """The list reads of ``key`` by transactions that may be included."""
        return [op for op in self._list_reads[key] if self.is_read(op)]

    def most_telling_list(self, key: int) -> int:
        """The committed list read of ``key`` that shows most transactions, or -1.

        Its order begins with that of every other one, unless two of them contradict each other.
        """
        reads = [op for op in self.list_reads(key) if self.certain(self.txn_of[op])]
        if not reads:
            return -1
        longest = max(reads, key=lambda op: len(self.list_of(op)))
        elements = self.list_of(longest)
        others = [op for op in reads if self.list_of(op) != elements[: len(self.list_of(op))]]
        return max([longest, *others], key=lambda op: len(set(self.shown(op))))

    def shows(self, op: int, a: int, b: int) -> bool:
        """Return whether list read ``op`` shows ``a`` before ``b``, which it may lack."""
        if op not in self._first_shown:
            first: dict[int, int] = {}
            for i, w in enumerate(self.shown(op)):
                first.setdefault(w, i)
            self._first_shown[op] = first
        first = self._first_shown[op]
        return a != b and a in first and (b not in first or first[a] < first[b])

    @cached_property
    def _first_shown(self) -> dict[int, dict[int, int]]:
        return {}

    def shown_order(self, op: int) -> list[int]:
        """The writers that a list read shows, neighbours merged and a leading T0 left out.

        One with an append that the list lacks comes again at the end, unless it is the last: the
        missing elements were appended after all that the list shows.
        """
        merged: list[int] = []
        for w in self.shown(op):
            if not merged or merged[-1] != w:
                merged.append(w)
        if merged[:1] == [self.n]:
            del merged[0]
        elements = set(self.list_of(op))  # one may be there twice, which makes up for no other
        for w in merged[:-1]:
            if any(self.value[a] not in elements for a in self.writes_by(w, self.key[op])):
                merged.append(w)
                break
        return merged

    # --- inclusion ---

    @cached_property
    def forced(self) -> frozenset[int]:
        """The indeterminate transactions that are included whatever is chosen.

        Some included transaction reads from them and has no other candidate, or shows an element
        of theirs.
        """
        forced: set[int] = set()
        if INDETERMINATE not in self.status:
            return frozenset()
        work = [t for t in range(self.n) if self.status[t] == COMMITTED]
        while work:
            for u in self._read_from(work.pop()):
                if u != self.n and self.status[u] == INDETERMINATE and u not in forced:
                    forced.add(u)
                    work.append(u)
        return frozenset(forced)

    def _read_from(self, t: int) -> set[int]:
        found: set[int] = set()
        for op in range(self.op_start[t], self.op_start[t + 1]):
            if not self.is_read(op):
                continue
            if self.is_list(op):
                found.update(self.shown(op))
            elif not self.own_before(op):
                candidates = self.candidates(op)
                found.update(candidates if len(candidates) == 1 else ())
        found.discard(t)
        return found

    def require_writer(self, key: int, t: int) -> None:
        """``t`` must be a transaction that may be included and writes ``key``.

        Raises:
            CertificateRejected: otherwise.
        """
        if not 0 <= key < self.keys:
            raise CertificateRejected(f"there is no key {key}")
        if t != self.n and not (0 <= t < self.n and self.live(t) and key in self.last[t]):
            raise CertificateRejected(f"transaction {t} is no writer of key {key}")


def _is_called(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern: it has the parts between ``*`` in their order."""
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
