"""Finds chains of transactions that may run before a stranger in a different order.

A chain begins with X, whose version the stranger T overlooks. Each transaction is followed by one
that conflicts with it or comes later in its session. With the version orders of the chain, T is not
a stranger at the level if it overlooks a transaction that it must not overlook. If this holds for
the beginning of a chain, it also holds for the whole chain, so such a chain is not continued.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct

from isolang.foresee.blind_writes import OverlookRule
from isolang.foresee.run import Arrangement, bits
from isolang.limits import Work

MOST_IN_CHAIN: Final = 3
"""The largest number of transactions in a chain, excluding the stranger."""

# The units of work for one more transaction in a chain, plus one unit for each ``_RUN_PER_UNIT``.
_LINK_COST: Final = 4
_RUN_PER_UNIT: Final = 400  # transactions of the run, because longer runs have longer sets

# The rules under which T never reads from a transaction that it overlooks.
_NEVER_READ_OVERLOOKED: Final = ("ra", "cc", "si", "snapshots")

ChainAttempt: TypeAlias = Callable[[int, int, tuple[int, ...]], bool | None]
"""A function that tries a chain. Its arguments are T, the index of T's read that overlooks X, and
the chain. It returns whether the continuations were tried, or ``None`` if they must be tried."""


class _Chain(Struct, frozen=True):
    """A chain, and the transactions in it that T overlooks.

    Attributes:
        missed: the transactions that T overlooks, as bits.
        reached: those among ``missed`` that depend on a transaction that T overlooks, as bits.
        passed: the transactions that conflict with a member other than the last member, as bits.
    """

    members: tuple[int, ...]
    missed: int
    reached: int
    passed: int


class _Start(Struct, frozen=True):
    """The read that a set of chains begins with, and the function that tries them.

    Attributes:
        at: the index of the read, among the external reads of T.
        versions: the writers of the key that is read, as bits.
        kept: the transactions that T must not overlook, as bits.
        ordered: whether the version orders are those of the chain.
    """

    stranger: int
    at: int
    versions: int
    kept: int
    attempt: ChainAttempt
    work: Work
    ordered: bool


class Reorderings:
    """Finds the chains in a run at one level."""

    def __init__(self, order: Arrangement, level: OverlookRule) -> None:
        """Compute the relations that all chains depend on, regardless of their order."""
        self.order, self.level = order, level
        readers, writers = order.readers, order.writers
        # For each transaction: the readers of the keys it writes, the writers of the keys it reads,
        # and the writers of the keys it writes.
        self._reading = [0] * len(order)
        self._written = [0] * len(order)
        self._writing = [0] * len(order)
        # The same without reads that do not show every version, which may not notice a write.
        self._surely_reading = [0] * len(order)
        self._surely_written = [0] * len(order)
        sure_readers: dict[int, int] = {}
        for i, program in enumerate(order.programs):
            for at in program.reads:
                step = program.steps[at]
                self._written[i] |= writers.get(step.key, 0)
                if step.test is None:
                    self._surely_written[i] |= writers.get(step.key, 0)
                    sure_readers[step.key] = sure_readers.get(step.key, 0) | 1 << i
        for i, program in enumerate(order.programs):
            for key in program.writes:
                self._reading[i] |= readers.get(key, 0)
                self._surely_reading[i] |= sure_readers.get(key, 0)
                self._writing[i] |= writers[key]
        self._session = [order.earlier[i] | order.later[i] for i in range(len(order))]

    def search(self, attempt: ChainAttempt, work: Work, *, ordered: bool) -> bool:
        """Pass chains to a function, each chain before its continuations.

        Args:
            ordered: whether the version orders must be those of the chain. If so, useless chains
                are left out: those in which T would overlook a transaction that it must not
                overlook, and those for which a shorter chain has the same ends.
        """
        order = self.order
        complete = True
        for t, program in enumerate(order.programs):
            kept = self._must_see(t) if ordered else 0
            for at, where in enumerate(program.reads):
                if program.steps[where].possible:
                    continue
                versions = order.writers.get(program.steps[where].key, 0)
                start = _Start(t, at, versions, kept, attempt, work, ordered)
                for x in bits(versions & ~order.later[t] & ~(1 << t) & ~kept):
                    if not work.left:
                        return False
                    complete &= self._try_with_continuations(start, _Chain((x,), 1 << x, 0, 0))
        return complete

    def _must_see(self, stranger: int) -> int:
        """Return the transactions that T must not overlook, as bits.

        These are the earlier transactions of its session and, at some levels, the writers of the
        keys that T writes.
        """
        kept = self.order.earlier[stranger] if self.level != "rc" else 0
        if self.level in ("si", "snapshots"):
            kept |= self._writing[stranger]
        return kept

    def _try_with_continuations(self, start: _Start, chain: _Chain) -> bool:
        """Try a chain and its continuations. Return whether all of them were tried."""
        order, work, t = self.order, start.work, start.stranger
        if not work.left:
            return False
        work.spend(_LINK_COST + len(order) // _RUN_PER_UNIT)
        if self._may_close(start, chain):
            tried = start.attempt(t, start.at, chain.members)
            if tried is not None:
                return tried
        if len(chain.members) == MOST_IN_CHAIN:
            return True
        complete, last = True, chain.members[-1]
        follow = self._reading[last] | self._written[last] | self._writing[last] | order.later[last]
        follow &= ~order.later[t] & ~(1 << t)
        for member in chain.members:
            follow &= ~(1 << member)
        if start.ordered:
            # SOUND BECAUSE the chain without the transactions in between has the same ends, and T
            # overlooks no more of it. Writers of the same key that do not read it are an exception,
            # because their order is open.
            follow &= ~chain.passed
        passed = chain.passed | self._session[last]
        passed |= self._surely_reading[last] | self._surely_written[last]
        for i in bits(follow):
            missed, reached = self._overlooked(start, chain, i)
            if start.ordered and missed & start.kept:
                continue
            longer = _Chain((*chain.members, i), missed, reached, passed)
            complete &= self._try_with_continuations(start, longer)
        return complete

    def _overlooked(self, start: _Start, chain: _Chain, i: int) -> tuple[int, int]:
        """Return ``missed`` and ``reached`` for a chain extended by one transaction."""
        missed, reached, level = chain.missed, chain.reached, self.level
        depends = self._surely_written[i] | self._session[i]
        if level in ("si", "snapshots"):
            depends |= self._writing[i]
        if level in ("si", "cc", "snapshots") and depends & missed:
            return missed | 1 << i, reached | 1 << i
        overlooks = bool(start.versions >> i & 1) or level == "statements"
        if level == "snapshots":
            overlooks |= bool(self._surely_reading[i] & missed)
        if level == "si":
            overlooks |= bool(self._surely_reading[i] & reached)
        return (missed | 1 << i if overlooks else missed), reached

    def _may_close(self, start: _Start, chain: _Chain) -> bool:
        """Return whether T may depend on a chain's last transaction or follow it in a session."""
        t, last = start.stranger, 1 << chain.members[-1]
        closing = self._reading[t] | self._writing[t]
        overlooked = start.ordered and chain.missed & last and self.level in _NEVER_READ_OVERLOOKED
        if not overlooked or self.order.programs[t].tested:
            closing |= self._written[t] | self._session[t]
        return bool(closing & last)
