"""Derives facts determined by the history alone: candidates, ``so``, ``rt`` and version orders.

The checkers implement the language reference independently of the code that builds problems for the
engine. If the two disagree, certificates are rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from isolang.certify.errors import NotCertifiedError
from isolang.certify.history_index import COMMITTED, NIL
from isolang.certify.sources import SourceFacts
from isolang.language.vocabulary import COMPARING_GROUPS, MOMENTS, OF_BEGIN_AND_END, OF_STATEMENTS

if TYPE_CHECKING:
    from collections.abc import Collection

    from isolang.history.history import History

_UNKNOWN_BEGIN = -(2**63)
_UNKNOWN_END = 2**63 - 1


class _Moments(NamedTuple):
    """Bounds for the times at which a transaction sent requests and got answers (docs/times.md).

    Attributes:
        of: for each operation's position, the earliest time at which the operation can have been
            sent and the latest time at which it can have been answered.
        commit_sent: the earliest time at which COMMIT can have been sent.
        first_answered: the latest time at which the first operation can have been answered.
    """

    of: dict[tuple[int, int], tuple[int, int]]
    commit_sent: int
    first_answered: int


class Facts(SourceFacts):
    """A history with its sources, and with the relations determined by sessions and times."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._moments: dict[int, _Moments] = {}

    def relates(self, relation: str, a: int, b: int) -> bool:
        """Return whether ``(a, b)`` is a pair of a relation such as ``rt`` or ``rt[W,R]``."""
        name, _, ends = relation.partition("[")
        pair = bool(getattr(self, name.replace("-", "_"))(a, b))
        # mutant: python-accesses
        return pair and (not ends or bool(self.shared_keys(relation, a, b)))

    def shared_keys(self, relation: str, a: int, b: int) -> set[int]:
        """Return the keys that both transactions access in the way required by ``relation``.

        For ``rt[W,R]``, ``a`` writes such a key and ``b`` reads it.
        """
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
        """Return whether ``a`` precedes ``b`` in session order; false if ``a`` is indeterminate."""
        if self.n in (a, b):
            return self.init(a, b)
        return a < b and self.session[a] == self.session[b] and self._ordered(a, b)

    def rt(self, a: int, b: int) -> bool:
        """Return whether ``a`` ended before ``b`` began; false if ``a`` is indeterminate."""
        if self.n in (a, b):
            return self.init(a, b)
        return (
            self.has_time
            and a != b
            and self._ordered(a, b)
            and self.before(self.end[a], a, self.begin[b], b)
        )

    def group_rt(self, a: int, b: int) -> bool:
        """Return whether both are in the same group and ``a`` precedes ``b`` in real time."""
        if not self.group or self.n in (a, b):
            return False
        return self.group[a] == self.group[b] != NIL and self.rt(a, b)

    @property
    def has_own_clocks(self) -> bool:
        """Return whether the clocks of sessions may be wrong, each by a different amount."""
        return any(self._slack)

    def by_own_clock(self, answered: int, t: int) -> int:
        """Return the time at which ``t`` got an answer, according to the clock of its own session.

        The time is comparable with the request times of the same session.
        """
        return answered if answered == _UNKNOWN_END else answered - self._slack[self.session[t]]

    def before(self, answered: int, a: int, sent: int, b: int) -> bool:
        """Return whether ``a`` got its answer before ``b`` sent its request, given their times.

        If both are in the same session, the session's clock may show the order even if the widened
        bounds do not.
        """
        if answered == _UNKNOWN_END or sent == _UNKNOWN_BEGIN:
            return False
        one = self.session[a] == self.session[b]
        # mutant: python-commit-at-once
        return answered < sent or (one and self.by_own_clock(answered, a) < sent)

    @property
    def has_moments(self) -> bool:
        """Return whether the history has times for transactions or for COMMITs."""
        return self.has_time or bool(self._commit_begin)

    def commit_sent(self, t: int) -> int:
        """Return the earliest time at which ``t`` can have sent its COMMIT.

        The bound relies on COMMIT having been sent after all operations of ``t``.
        """
        return self._moments_of(t).commit_sent

    def commit_answered(self, t: int) -> int:
        """Return the latest time at which ``t`` can have committed."""
        # mutant: python-indeterminate-commit
        if self.status[t] != COMMITTED:
            return _UNKNOWN_END
        # mutant: python-end-says-nothing
        end = self.end[t] if self._one_clock else _UNKNOWN_END
        return min(end, self._commit_end[t]) if self._commit_end else end

    def first_answered(self, t: int) -> int:
        """Return the latest time at which the first operation of ``t`` can have been answered.

        The bound relies on the first operation having been answered before all others and before
        COMMIT.
        """
        return self._moments_of(t).first_answered

    def write_answered(self, t: int, key: int) -> int:
        """Return the latest time at which ``t``'s first write of ``key`` can have been answered."""
        own = self.writes_by(t, key)
        return self._statement_answered_at(own[0]) if own else _UNKNOWN_END

    def _moments_of(self, t: int) -> _Moments:
        if t not in self._moments:
            self._moments[t] = self._bounded(t)
        return self._moments[t]

    def _bounded(self, t: int) -> _Moments:
        """Return the time bounds for the operations and the COMMIT of ``t``.

        The bounds rely on operations being sent and answered in order.
        """
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
        """Return the position and the recorded times of each operation of ``t``, in program order.

        The operations of a predicate read share one entry.
        """
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
        """Return whether ``a`` had committed before ``b`` sent its COMMIT."""
        return self._timed(a, b) and self._before_commit(self.commit_answered(a), a, b)

    def late(self, a: int, b: int) -> bool:
        """Return whether the first operation of ``a`` was answered before ``b`` sent its COMMIT."""
        return self._timed(a, b) and self._before_commit(self.first_answered(a), a, b)

    def locked(self, a: int, b: int) -> bool:
        """Return whether, before ``b`` committed, ``a`` wrote a key that ``b`` writes too.

        More precisely, ``a``'s write of the key was answered before ``b`` sent its COMMIT.
        """
        return self._timed(a, b) and any(
            self._before_commit(self.write_answered(a, key), a, b)
            for key in self.last[a].keys() & self.last[b].keys()
        )

    def _statement_sent_at(self, op: int) -> int:
        """Return the earliest time at which the statement of ``op`` can have been sent."""
        return self._moments_of(self.txn_of[op]).of[self.place(op)][0]

    def _statement_answered_at(self, op: int) -> int:
        """Return the latest time at which the statement of ``op`` can have been answered."""
        return self._moments_of(self.txn_of[op]).of[self.place(op)][1]

    def committed_before(self, t: int, op: int) -> bool:
        """Return whether ``t`` had committed before the statement of the read ``op`` was sent."""
        owner = self.txn_of[op]
        if not (self._timed(t, owner) and owner != t):
            return False
        return self.before(self.commit_answered(t), t, self._statement_sent_at(op), owner)

    def answered_before(self, op: int, later: int) -> bool:
        """Return whether ``op``'s statement was answered before ``later``'s statement was sent."""
        first, second = self.txn_of[op], self.txn_of[later]
        return (
            self.has_moments
            and self.n not in (first, second)
            and self.before(
                self._statement_answered_at(op), first, self._statement_sent_at(later), second
            )
        )

    def program_order(self, op: int, later: int) -> bool:
        """Return whether ``op`` is in an earlier statement of the same transaction as ``later``."""
        return self.txn_of[op] == self.txn_of[later] and self.reads_first(op, later)

    def committed_after(self, op: int, t: int) -> bool:
        """Return whether the statement of the read ``op`` was answered before ``t`` sent COMMIT."""
        owner = self.txn_of[op]
        return self._timed(owner, t) and self._before_commit(
            self._statement_answered_at(op), owner, t
        )

    def statement_times(self, op: int) -> tuple[int, int]:
        """Return the time bounds for the statement of ``op``."""
        return self._statement_sent_at(op), self._statement_answered_at(op)

    def one_statement(self, op: int, other: int) -> bool:
        """Return whether two operations belong to the same statement."""
        # mutant: python-one-statement
        return self.place(op) == self.place(other)

    def begins(self, t: int) -> bool:
        """Return whether the history records when ``t`` began."""
        return self.has_time and self.begin[t] != _UNKNOWN_BEGIN

    def ends(self, t: int) -> bool:
        """Return whether the history records when ``t`` ended."""
        return self.has_time and self.end[t] != _UNKNOWN_END

    def init(self, a: int, b: int) -> bool:
        """Return whether ``a`` is T0 and ``b`` is another transaction that may be included."""
        return a == self.n and b != self.n and self.live(b)

    def _ordered(self, a: int, b: int) -> bool:
        return self.status[a] == COMMITTED and self.live(b)

    def require(self, relations: Collection[str]) -> None:
        """Require that the history has the times and groups compared by these relations.

        Raises:
            NotCertifiedError: if the history lacks these times or groups.
        """
        relations = {relation.partition("[")[0] for relation in relations}
        moments = not {*MOMENTS, *OF_STATEMENTS}.isdisjoint(relations)
        if moments and not self.has_moments:
            raise NotCertifiedError(
                "not certified: the level refers to times, but the history has none"
            )
        if not relations.isdisjoint(COMPARING_GROUPS) and not self.group:
            raise NotCertifiedError(
                "not certified: the level uses group-rt, but the history has no groups"
            )
        if not relations.isdisjoint(OF_BEGIN_AND_END) or (moments and not self._commit_begin):
            self.require_times()

    def require_times(self) -> None:
        """Require that the history has times and no committed transaction ends before it begins.

        Raises:
            NotCertifiedError: if the history has no times, or if a transaction ends before it
                begins.
        """
        if not self.has_time:
            raise NotCertifiedError(
                "not certified: the level uses rt, but the history has no times"
            )
        for t in range(self.n):
            if self.status[t] == COMMITTED and self.end[t] < self.begin[t]:
                raise NotCertifiedError(f"not certified: transaction {t} ends before it begins")
