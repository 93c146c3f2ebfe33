"""Finds histories in which one transaction, the stranger, reads versions other than in the run.

A candidate consists of a set K of transactions and a stranger T. K contains, with each transaction,
the earlier transactions of its session and those that it reads from, and all transactions in K read
what was recorded. T overlooks a version written by a transaction X: T reads an older version of the
key. A path of dependencies and anti-dependencies leads from X to a transaction Y in K, and T
depends on Y or follows Y in its session. Together, they form a cycle. No transaction depends on T,
so T is the last writer in every version order, and the cycle can leave T only through the
anti-dependency to X.

The level determines which other transactions T overlooks, and T reads the newest version that it
does not overlook. Under each rule, T overlooks the smallest set of transactions for which the order
required by the level exists, with the version orders of the run:

* rc: the versions from X's version on, and only up to that read; later reads see all versions.
* ra: the versions from X's version on. Their writers do not precede T in its session.
* cc: these writers, and everything that depends on them by so and wr. No cause of T is among them.
* si: these writers, and everything that follows them by ``(so | wr | ww) ; rw?``, so every cycle
  has two adjacent anti-dependencies. None of these transactions writes a key that T writes.
* snapshots: all transactions that conflicts lead to from X, so they can run after T's snapshot.
  None of them writes a key that T writes or locks.
* statements: all transactions from X on, which run directly after T's statement that reads X's key.
  Later statements of T see them, and none of them waits for a lock held by T.

The last two are schedules of databases with transaction snapshots or statement snapshots. There, T
has locked the rows that its statements so far have written, or have read with ``SELECT … FOR
UPDATE`` or ``FOR SHARE`` according to the recording. No transaction that runs before T ends writes
or locks these rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from isolang.foresee.blind_writes import OverlookRule
from isolang.foresee.paths import WHOLE_SNAPSHOT, OverlookedPaths
from isolang.foresee.run import INITIAL, Access, Arrangement, ExecutedProgram, bits
from isolang.foresee.unique import UniqueIndexes

RULE_OF_LEVEL: Final[Mapping[str, OverlookRule]] = {
    "si": "si",
    "cc": "cc",
    "ra": "ra",
    "rc": "rc",
    "postgresql-repeatable-read": "snapshots",
    "postgresql-read-committed": "statements",
}
"""The rule of each level that one of the rules applies to directly."""

SCHEDULED_RULES: Final[frozenset[OverlookRule]] = frozenset(("snapshots", "statements"))
"""The rules whose candidates are schedules, with a time for each operation."""

_Rows: TypeAlias = Literal["seen together"] | Mapping[int, int]
_BY_STATEMENT: Final = ("rc", "statements")


class Candidate(Struct, frozen=True, eq=False):
    """A part of a run with one stranger.

    Attributes:
        sources: for each external read of T, in program order, the transaction that T reads from.
        overlooked: the number of X, whose version T overlooks.
        members: the set K, as bits.
        missed: the set of all transactions in K that T overlooks, as bits.
        at: the index of the read that overlooks X, among the external reads of T.
    """

    order: Arrangement
    stranger: int
    sources: tuple[int, ...]
    overlooked: int
    path: tuple[int, ...]
    members: int
    missed: int
    at: int

    def changed(self) -> tuple[int, ...]:
        """Return the indices of T's steps that read a different version than in the run."""
        program = self.order.programs[self.stranger]
        return tuple(
            at
            for at, source in zip(program.reads, self.sources, strict=True)
            if program.steps[at].source != source
            and (program.steps[at].shown or self.order.shows(program.steps[at], source))
        )


def steps_before_overlooked(program: ExecutedProgram, at: int, level: OverlookRule) -> int:
    """Return the number of steps that a stranger executes before the overlooked transactions run.

    These steps are whole statements: the first statement, which takes the snapshot, or all
    statements up to the one that overlooks X.
    """
    return program.end_of_statement(0 if level == "snapshots" else program.reads[at])


class Strangers(OverlookedPaths):
    """Finds the candidates in an arrangement of transactions at one level."""

    @cached_property
    def unique(self) -> UniqueIndexes:
        """The unique indexes of the rows."""
        return UniqueIndexes(self.order)

    def candidates(self, stranger: int, at: int, path: tuple[int, ...]) -> Iterator[Candidate]:
        """Yield candidates in which T overlooks X.

        As far as the level allows, K also contains the transactions that T read from in the run,
        because fewer reads then change.
        """
        order, program = self.order, self.order.programs[stranger]
        least = self.smallest_part(stranger, path)
        read = [
            order.ancestors[source]
            for step in (program.steps[where] for where in program.reads)
            if step.source is not None
            and (source := order.dependency(step, step.source)) not in (INITIAL, stranger)
        ]
        every = least
        for sources in read:
            every |= sources
        if not program.tested:
            if (candidate := self._largest(stranger, at, path, (least, every, read))) is not None:
                yield candidate
            return
        tried = set[tuple[int, tuple[int, ...]]]()
        for proof, needed, answers in self._ways_to_prove(stranger, at, path[0], path[-1]):
            for parts in (
                (least | needed, every | needed, read),
                (least | needed, least | needed, []),
            ):
                candidate = self._largest(stranger, at, path, parts, proof=proof, answers=answers)
                if candidate is not None and (candidate.members, candidate.sources) not in tried:
                    tried.add((candidate.members, candidate.sources))
                    yield candidate

    def candidates_within(
        self, stranger: int, at: int, path: tuple[int, ...], members: int
    ) -> Iterator[Candidate]:
        """Yield candidates whose set K is ``members``, as :meth:`candidates` does."""
        tried = set[tuple[int, ...]]()
        for proof, _, answers in self._ways_to_prove(stranger, at, path[0], path[-1]):
            candidate = self.candidate_within(
                stranger, at, path, members, proof=proof, answers=answers
            )
            if candidate is not None and candidate.sources not in tried:
                tried.add(candidate.sources)
                yield candidate

    def _ways_to_prove(
        self, stranger: int, at: int, x: int, y: int
    ) -> Iterator[tuple[int, int, _Rows]]:
        for proof, needed in self._proofs(stranger, at, x, y):
            for answers in _row_by_row(self.order, self.level, stranger, at):
                yield proof, needed, answers

    def _largest(
        self,
        stranger: int,
        at: int,
        path: tuple[int, ...],
        parts: tuple[int, int, Sequence[int]],
        *,
        proof: int = 0,
        answers: _Rows = "seen together",
    ) -> Candidate | None:
        """Return the candidate with the largest K that is tried, from the least K to every."""
        least, every, read = parts
        largest = self.candidate_within(stranger, at, path, every, proof=proof, answers=answers)
        if largest is not None or every == least:
            return largest
        largest = self.candidate_within(stranger, at, path, least, proof=proof, answers=answers)
        if largest is not None:
            for sources in read:
                more = largest.members | sources
                larger = self.candidate_within(
                    stranger, at, path, more, proof=proof, answers=answers
                )
                largest = larger or largest
        return largest

    def _proofs(self, stranger: int, at: int, x: int, y: int) -> Iterator[tuple[int, int]]:
        """Yield versions that T also overlooks and members of K that make an answer prove more.

        A row that is not shown proves nothing if it may not have been there yet. So T overlooks
        what was written after a shown version. If a row that was there is not shown, this proves
        that T saw Y or a later version, so K also has later versions. In a schedule, T does
        not lock a row that it does not find, so K also has versions that are not shown. If X's
        version is not shown, T notices that it overlooks X only if it is shown an earlier version.
        """
        yield 0, 0
        order, yielded = self.order, set[int]()
        program, allowed = order.programs[stranger], ~order.descendants[stranger]
        for where in program.reads:
            step = program.steps[where]
            writers = order.writers.get(step.key, 0) & allowed
            if step.test is None or not writers >> y & 1:
                continue
            later = order.shown(step)[0] & allowed & -(1 << y)
            for shown in bits(later):
                after = writers & -(2 << shown)
                if after and after not in yielded:
                    yielded.add(after)
                    yield after, 0
            if self.level in ("ra", "cc", "rc"):
                for hidden in bits(writers & -(2 << y) & ~later):
                    yield 0, order.ancestors[hidden]
        if self.level in SCHEDULED_RULES:
            every = 0
            for where in program.reads:
                step = program.steps[where]
                if step.test is not None and step.sent is not None and step.sent.guards:
                    hidden = order.writers.get(step.key, 0) & allowed & ~order.shown(step)[0]
                    for version in bits(hidden & ~every):
                        yield 0, order.ancestors[version]
                    every |= hidden
            if every & (every - 1):
                needed = 0
                for version in bits(every):
                    needed |= order.ancestors[version]
                yield 0, needed
        step = program.steps[program.reads[at]]
        if step.test is not None and not order.shows(step, x):
            before = order.shown(step)[0] & allowed & (1 << x) - 1
            if before:
                yield 0, order.ancestors[before.bit_length() - 1]

    def candidate_within(
        self,
        stranger: int,
        at: int,
        path: tuple[int, ...],
        members: int,
        *,
        proof: int = 0,
        answers: _Rows = "seen together",
    ) -> Candidate | None:
        """Return the candidate whose set K is ``members``; ``None`` if the level forbids it.

        Args:
            proof: versions that T also overlooks.
            answers: which versions the other rows of the predicate read show; those that are not
                named show the newest.
        """
        order, program = self.order, self.order.programs[stranger]
        x, y = path[0], path[-1]
        step = program.steps[program.reads[at]]
        kept = order.earlier[stranger] if self.level != "rc" else 0  # T cannot overlook these
        if self.level in WHOLE_SNAPSHOT:
            for written in program.writes:
                kept |= order.writers[written]
        first = 0
        if self.level in SCHEDULED_RULES:
            first = steps_before_overlooked(program, at, self.level)
            if not program.tested:
                kept |= self._waiting_for_stranger(program, first, {})
        late = (order.writers[step.key] & -(1 << x) | proof) & members
        missed = self._overlooked_transactions(late, members, kept)
        if missed & kept:
            return None
        sources = []
        for n, where in enumerate(program.reads):
            other = program.steps[where]
            together = other.scan >= 0 and other.scan == step.scan
            later = where >= first if self.level == "statements" else n > at and not together
            if answers != "seen together" and together and n != at:
                later = True
            visible = members if self.level in _BY_STATEMENT and later else members & ~missed
            visible &= ~(1 << stranger)
            if answers != "seen together" and n in answers:
                if answers[n] != INITIAL and not visible >> answers[n] & 1:
                    return None
                visible &= (1 << answers[n] + 1) - 1
            versions = order.writers.get(other.key, 0) & visible
            sources.append(versions.bit_length() - 1 if versions else INITIAL)
        if not _notices(order, step, sources[at], members, x):
            return None
        if not self._closes(stranger, y, sources, members, missed):
            return None
        if self.meets_unique_index(stranger, members, first, missed):
            return None
        if program.tested:
            shown = order.answers(stranger, sources)
            if program.writes_other_rows(shown):
                return None
            waiting = self.level in SCHEDULED_RULES
            if waiting and missed & self._waiting_for_stranger(program, first, shown):
                return None
        return Candidate(order, stranger, tuple(sources), x, path, members, missed, at)

    def meets_unique_index(
        self, stranger: int, members: int, first: int = 0, missed: int = 0
    ) -> bool:
        """Return whether a write of T or of K meets a unique index that another row holds.

        T's first steps are executed before the transactions in ``missed``, the others after them.
        """
        steps, indexes = self.order.programs[stranger].steps, self.unique
        return (
            indexes.refuse(stranger, steps[:first], members & ~missed)
            or indexes.refuse(stranger, steps[first:], members)
            or bool(first and missed & indexes.make_wait(steps[:first]))
            or indexes.are_broken_by(members)
        )

    def _closes(
        self, stranger: int, y: int, sources: Sequence[int], members: int, missed: int
    ) -> bool:
        """Return whether T depends on Y, or may depend on it."""
        order, program = self.order, self.order.programs[stranger]
        if (order.earlier[stranger] | order.overlooking(stranger)) >> y & 1:
            return True
        if any(order.writers[key] >> y & 1 for key in program.writes):
            return True
        for where, source in zip(program.reads, sources, strict=True):
            step = program.steps[where]
            writers = order.writers.get(step.key, 0)
            if writers >> y & 1 and any(
                y <= order.dependency(step, source, some) for some in (members, members & ~missed)
            ):
                return True
        return False

    def _waiting_for_stranger(
        self, program: ExecutedProgram, first: int, shown: Mapping[int, bool]
    ) -> int:
        """Return the transactions that would wait for T or make T fail after T's first steps."""
        order, waiting = self.order, 0
        alone, shared = program.locked_keys(first, shown)
        for key in alone:
            waiting |= order.locking.get(key, 0) | order.sharing.get(key, 0)
        for key in shared:
            waiting |= order.locking.get(key, 0)
        if self.level == "snapshots":
            # SOUND BECAUSE a statement fails if it locks a row with a version after its snapshot.
            for keys in program.locked_keys(None, shown):
                for key in keys:
                    waiting |= order.writers.get(key, 0)
        return waiting

    def smallest_part(self, stranger: int, path: tuple[int, ...]) -> int:
        """Return the smallest set K for a path: all that the path and T's session depend on."""
        earlier = self.order.earlier[stranger]
        # SOUND BECAUSE the last transaction of a session depends on all earlier ones.
        found = self.order.ancestors[earlier.bit_length() - 1] if earlier else 0
        for i in path:
            found |= self.order.ancestors[i]
        return found | self.unique.deleting(found, ~self.order.descendants[stranger])

    def _overlooked_transactions(self, late: int, members: int, kept: int) -> int:
        """Return all transactions that T overlooks if it overlooks some versions.

        If the set contains a transaction in ``kept``, the level forbids the candidate, and the set
        may be incomplete.
        """
        if self.level in ("rc", "ra"):
            return late
        if self.level == "statements":
            return members & -(late & -late)
        if self.level == "snapshots":
            found, rest = late, late
            while rest and not found & kept:
                low = rest & -rest
                new = self.order.conflicts[low.bit_length() - 1] & members & ~found
                found |= new
                rest = (rest ^ low) | new
            return found
        if self.level == "cc":
            found = late
            for i in bits(late):
                found |= self.order.descendants[i]
            return found & members
        order, found, seen = self.order, late, 0
        todo = list(bits(late))
        while todo and not found & kept:
            i = todo.pop()
            new = order.direct[i] & members & ~seen
            seen |= new
            follow = new
            for j in bits(new):
                follow |= order.overwritten[j] & members
            follow &= ~found
            found |= follow
            todo.extend(bits(follow))
        return found


def _notices(order: Arrangement, step: Access, source: int, members: int, x: int) -> bool:
    """Return whether a read's answer shows that it overlooked X."""
    if step.test is None or order.shows(step, source):
        return True
    return bool(order.contradicting(step, source) & members & 1 << x)


def _row_by_row(order: Arrangement, level: OverlookRule, stranger: int, at: int) -> Iterator[_Rows]:
    """Yield the ways to see the other rows of the predicate read that overlooks X.

    Only at rc, a predicate read may see its rows in different states.
    """
    yield "seen together"
    program = order.programs[stranger]
    scan = program.steps[program.reads[at]].scan
    if level != "rc" or scan < 0:
        return
    yield {}
    for n, where in enumerate(program.reads):
        step = program.steps[where]
        if step.scan == scan and n != at:
            for version in (INITIAL, *bits(order.writers.get(step.key, 0))):
                yield {n: version}
