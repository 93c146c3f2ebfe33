"""Decides what a stranger may read if versions are ordered differently from the recorded run.

Two versions of a key may have another order if a transaction wrote one of them without having read
the key. Such a write is called blind.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal, TypeAlias

from isolang.foresee.run import INITIAL, Arrangement, bits

OverlookRule: TypeAlias = Literal["rc", "ra", "cc", "si", "snapshots", "statements"]
"""A level's rule that determines which transactions a stranger overlooks."""


class BlindWrites:
    """Finds the keys whose versions a level may order differently because of blind writes."""

    def __init__(self, order: Arrangement, level: OverlookRule) -> None:
        """Find the keys whose versions may be ordered differently from the run."""
        self._order, self._level = order, level
        self._reading: dict[int, dict[int, int]] = {}
        self._open = {
            key: order.writers[key] for key in order.blind if not self._has_fixed_order(key)
        }

    def _has_fixed_order(self, key: int) -> bool:
        """Return whether each writer of a key depends on the key's previous writer."""
        last = -1
        for i in bits(self._order.writers[key]):
            if last >= 0 and not self._order.ancestors[i] >> last & 1:
                return False
            last = i
        return True

    def allows_other_orders(self, stranger: int, members: int) -> bool:
        """Return whether the level allows other version orders for K and the stranger.

        A key's version order is fixed if each writer depends on the previous writer. T's position
        in the version order matters only at si, because no transaction reads from T. At si, T is
        the last writer if every other writer has read the key before: a transaction that overwrites
        T's version without having read it would lose an update.
        """
        order = self._order
        if self._level == "si":
            for key in order.programs[stranger].writes:
                if order.blind.get(key, 0) & members & ~(1 << stranger):
                    return True
        for writers in self._open.values():
            last = -1
            for i in bits(writers & members):
                if last >= 0 and not self._order.ancestors[i] >> last & 1:
                    return True
                last = i
        return False

    def may_allow_other_orders(self, stranger: int) -> bool:
        """Return whether :meth:`allows_other_orders` can hold for a stranger and any set K."""
        if self._open:
            return True
        blind = self._order.blind
        writes = self._order.programs[stranger].writes if self._level == "si" else ()
        return any(blind.get(key, 0) & ~(1 << stranger) for key in writes)

    def may_close_cycle(self, stranger: int, members: int, sources: tuple[int, ...]) -> bool:
        """Return whether T may read from these sources and close a cycle.

        This checks only necessary conditions, which is fast. A history that violates ser also
        violates it with the version orders of the run. In addition, in every version order, the
        versions that T must have seen come before the versions that it read.
        """
        order, program = self._order, self._order.programs[stranger]
        before, closing, over = order.earlier[stranger], order.earlier[stranger], 0
        reads = [program.steps[where].key for where in program.reads]
        for key, source in zip(reads, sources, strict=True):
            until = (2 << source) - 1 if source >= 0 else 0
            writers = order.writers.get(key, 0) & members
            over |= writers & ~until
            closing |= writers & until
            if source >= 0:
                before |= 1 << source
        for key in program.writes:
            closing |= (order.writers[key] | order.readers.get(key, 0)) & members
        seen, todo = over, over
        while todo and not seen & closing:
            low = todo & -todo
            new = self._order.conflicts[low.bit_length() - 1] & members & ~seen
            seen |= new
            todo = (todo ^ low) | new
        if not seen & closing:
            return False
        if self._level in ("cc", "si"):
            for i in bits(before):
                before |= self._order.ancestors[i]
        if self._level == "rc":
            before = 0  # at rc, only the sources of T's earlier reads matter
        if self._level == "si" and self._is_forbidden_by_si(stranger, members, sources):
            return False
        for key, source in zip(reads, sources, strict=True):
            other = order.writers.get(key, 0) & before & ~(1 << source if source >= 0 else 0)
            if other and (source < 0 or other & self._order.descendants[source]):
                return False
            if self._level == "rc" and source >= 0:
                before |= 1 << source
        return True

    @cached_property
    def _certain_edges(self) -> tuple[list[int], list[int]]:
        """The edges common to all version orders, by ``so | wr | ww`` and by ``rw``."""
        order, follow, overwritten = self._order, list(self._order.depends), [0] * len(self._order)
        for i, program in enumerate(order.programs):
            for key in program.writes:
                follow[i] |= order.writers[key] & self._order.descendants[i] & ~(1 << i)
            for at in program.reads:
                step = program.steps[at]
                assert step.source is not None
                later = order.writers.get(step.key, 0)
                if step.source != INITIAL:
                    later &= self._order.descendants[step.source] & ~(1 << step.source)
                overwritten[i] |= later & ~(1 << i)
        return follow, overwritten

    def _is_forbidden_by_si(self, stranger: int, members: int, sources: tuple[int, ...]) -> bool:
        """Return whether si forbids the sources because a cycle has no two adjacent rw edges.

        T depends on the sources of its reads and on its session. The cycle begins with a version
        that certainly overwrites one that T read, and follows ``(so | wr | ww) ; rw?`` from there.
        """
        order, program = self._order, self._order.programs[stranger]
        follow, overwritten = self._certain_edges
        before, missed = order.earlier[stranger], 0
        for where, source in zip(program.reads, sources, strict=True):
            key = program.steps[where].key
            newer = order.writers.get(key, 0) & members
            if source != INITIAL:
                before |= 1 << source
                newer &= self._order.descendants[source] & ~(1 << source)
            missed |= newer
            if key in program.writes and newer & self._readers_of(key, source):
                return True  # either order of the two versions is a lost update
        todo = missed
        while todo and not missed & before:
            low = todo & -todo
            todo ^= low
            for i in bits(follow[low.bit_length() - 1] & members):
                new = (1 << i | overwritten[i]) & members & ~missed
                missed |= new
                todo |= new
        return bool(missed & before)

    def _readers_of(self, key: int, source: int) -> int:
        """Return the transactions that read the version of a key written by ``source``."""
        found = self._reading.get(key)
        if found is None:
            found = self._reading[key] = {}
            for i in bits(self._order.readers.get(key, 0)):
                program = self._order.programs[i]
                for at in program.reads:
                    step = program.steps[at]
                    if step.key == key and step.source is not None:
                        found[step.source] = found.get(step.source, 0) | 1 << i
        return found.get(source, 0)
