"""One stranger: a correct run, and one transaction that sees other versions of it.

A candidate has a set K of transactions, closed under sessions and reads, in which everybody reads
what was recorded, and a stranger T. T overlooks a version, that of X, and a path of dependencies
and anti-dependencies leads from X to Y in K, which T depends on or follows: a cycle. Nobody depends
on T, so T is last in the order of versions, and its only way into the cycle is what it overlooks.

What else T overlooks follows from the level, and T reads the newest version of the rest. Each rule
is the least set that lets the level's own order exist, with the versions in the order of the run:

* rc: the versions from X's on, and only up to that read; later reads see everything.
* ra: the versions from X's on. Who wrote them is not before T in its session.
* cc: these and what depends on them by so and wr, so that no cause of T is among them.
* si: these and what follows them by ``(so | wr | ww) ; rw?``, so that no cycle has fewer than two
  adjacent anti-dependencies, and none of them writes a key of T.
* snapshots: everything that a conflict leads to from X, so that it can run after the snapshot of T,
  and none of it writes a key that T writes or locks.
* statements: everything from X on, which runs right after T's statement that reads X's key; later
  statements of T see it, and none of it waits for what T has locked.

The last two are schedules of databases with snapshots of transactions, or of statements. There, T
has locked what its statements so far wrote, or read by ``SELECT … FOR UPDATE`` or ``FOR SHARE``,
where the recording says so: nobody who runs before T ends writes or locks that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from isolang.foresee.run import INITIAL, Arrangement, Executed, bits
from isolang.limits import Work

Direct: TypeAlias = Literal["rc", "ra", "cc", "si", "snapshots", "statements"]
"""The rules for what a stranger overlooks."""

DIRECT: Final[Mapping[str, Direct]] = {
    "si": "si",
    "cc": "cc",
    "ra": "ra",
    "rc": "rc",
    "postgresql-repeatable-read": "snapshots",
    "postgresql-read-committed": "statements",
}
"""The rule of each level that has one."""

SCHEDULED: Final[frozenset[Direct]] = frozenset(("snapshots", "statements"))
"""The rules whose candidates are schedules, with a time for each operation."""

_WHOLE_SNAPSHOT: Final = ("si", "snapshots")
_BY_STATEMENT: Final = ("rc", "statements")


class Candidate(Struct, frozen=True, eq=False):
    """A run with one stranger.

    Attributes:
        order: the transactions that the others are numbers of.
        stranger: T.
        sources: what each external read of T reads, in program order.
        overlooked: X, whose version T overlooks.
        path: the transactions from X to Y.
        members: K.
        missed: all transactions of K that T overlooks.
        at: the index, among the external reads of T, of the read that overlooks X.
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
        """Return the indices of the steps of T that read another version than was recorded."""
        program = self.order.programs[self.stranger]
        return tuple(
            at
            for at, source in zip(program.reads, self.sources, strict=True)
            if program.steps[at].source != source
        )


def first_part(program: Executed, at: int, level: Direct) -> int:
    """Return how many steps a stranger executes before those run whom it overlooks.

    These are whole statements: the first one, which takes the snapshot, or all up to the one that
    overlooks X.

    Args:
        program: what the stranger executed.
        at: the index of the read that overlooks X, among its external reads.
        level: the rule; one of ``SCHEDULED``.
    """
    return program.end_of_statement(0 if level == "snapshots" else program.reads[at])


class Look(Struct, frozen=True, kw_only=True):
    """The bounds of a search for paths.

    Attributes:
        near: how many versions to try as X on each side of the recorded one; 0 for all.
        most: how many paths to try from each X; 0 for all.
        nodes: from how many transactions to continue paths from each X; 0 for all.
        window: how far X may be from T, and a path may lead after both; 0 for no bound.
        ordered: whether the versions come in the order of the run.
    """

    near: int = 0
    most: int = 0
    nodes: int = 0
    window: int = 0
    ordered: bool = True


class Strangers:
    """The candidates of an order of transactions at one level."""

    def __init__(self, order: Arrangement, level: Direct) -> None:
        """Compute what depends on what."""
        self.order, self.level = order, level
        self.descendants = order.descendants()
        self.ancestors = order.ancestors()
        # Every later transaction that a conflict leads to.
        self.after = [d | o for d, o in zip(order.direct, order.overwritten, strict=True)]

    def offer(
        self, stranger: int, work: Work, take: Callable[[int, tuple[int, ...]], bool], look: Look
    ) -> bool:
        """Offer the paths that may close a cycle through a stranger, the shortest from X first.

        Args:
            stranger: T.
            work: the budget, of which a step to a transaction costs one unit.
            take: a function of the index of a read of T and a path from X to Y, which returns
                whether this X has been dealt with.
            look: where to search.

        Returns:
            Whether all paths were offered.
        """
        order = self.order
        program = order.programs[stranger]
        allowed = ~self.descendants[stranger]
        ends, own = order.earlier[stranger], 0
        for key in program.writes:
            own |= order.writers[key]
            ends |= order.writers[key] | order.readers.get(key, 0)
        for where in program.reads:
            ends |= order.writers.get(program.steps[where].key, 0)
        ends &= allowed
        complete = True
        for at, where in enumerate(program.reads):
            step = program.steps[where]
            assert step.source is not None
            versions = order.writers.get(step.key, 0) & allowed
            if self.level in _WHOLE_SNAPSHOT and look.ordered:
                versions &= ~own  # SOUND BECAUSE T would overlook X, which writes a key of T
            nearest = list(_around(versions, step.source, look.near))
            complete &= not look.near or len(nearest) == versions.bit_count()
            for x in nearest:
                if not ends >> x:  # nobody from X on closes a cycle
                    continue
                if look.window and abs(x - stranger) > look.window:
                    complete = False
                    continue
                if ends >> x & 1 and take(at, (x,)):
                    continue
                reach = ends
                if look.window:
                    reach &= (1 << max(x, stranger) + look.window) - 1
                paths = self._paths(x, reach, allowed, work, look.nodes)
                if not any(take(at, path) for path in islice(paths, look.most or None)):
                    complete &= bool(work.left) and not look.most
            if not work.left:
                return False
        return complete

    def _paths(
        self, x: int, ends: int, allowed: int, work: Work, nodes: int
    ) -> Iterator[tuple[int, ...]]:
        """Yield a shortest path from X to each other end, in the order of their lengths."""
        allowed &= (1 << ends.bit_length()) - 1
        parent: dict[int, int] = {}
        seen, todo = 1 << x, [x]
        for done, node in enumerate(todo):
            if not work.left or (nodes and done >= nodes):
                return
            work.spend(1)
            new = self.after[node] & allowed & ~seen
            seen |= new
            for y in bits(new & ends):
                path, step = [y], node
                while step != x:
                    path.append(step)
                    step = parent[step]
                yield (x, *reversed(path))
            for y in bits(new):
                parent[y] = node
                todo.append(y)

    def candidate(self, stranger: int, at: int, path: tuple[int, ...]) -> Candidate | None:
        """Return the candidate in which T overlooks X, or ``None`` if the level forbids it.

        K has what T had read if the level allows this, so that as little as possible changes.

        Args:
            stranger: T.
            at: the index of the read, among T's external reads.
            path: the transactions from X to Y.
        """
        least = self.closed(stranger, path)
        read = [
            self.ancestors[source]
            for where in self.order.programs[stranger].reads
            if (source := self.order.programs[stranger].steps[where].source) not in (
                None, INITIAL, stranger
            )
        ]  # fmt: skip
        every = least
        for sources in read:
            every |= sources
        found = self.within(stranger, at, path, every)
        if found is not None or every == least:
            return found
        found = self.within(stranger, at, path, least)
        if found is not None:
            for sources in read:
                found = self.within(stranger, at, path, found.members | sources) or found
        return found

    def within(
        self, stranger: int, at: int, path: tuple[int, ...], members: int
    ) -> Candidate | None:
        """Return the candidate with a given K, or ``None`` if the level forbids it."""
        order, program = self.order, self.order.programs[stranger]
        x, y = path[0], path[-1]
        key = program.steps[program.reads[at]].key
        kept = order.earlier[stranger] if self.level != "rc" else 0  # T cannot overlook these
        locked: Collection[int] = ()
        if self.level in _WHOLE_SNAPSHOT:
            locked = program.writes
        for written in locked:
            kept |= order.writers[written]
        first = 0
        if self.level in SCHEDULED:
            first = first_part(program, at, self.level)
            kept |= self._waiting(program, first)
        missed = self._missed(x, order.writers[key] & members & -(1 << x), members, kept)
        if missed & kept:
            return None
        sources = []
        closed = bool(order.earlier[stranger] >> y & 1)
        closed |= any((order.writers[k] | order.readers.get(k, 0)) >> y & 1 for k in program.writes)
        for n, where in enumerate(program.reads):
            step = program.steps[where]
            later = where >= first if self.level == "statements" else n > at
            visible = members if self.level in _BY_STATEMENT and later else members & ~missed
            visible &= ~(1 << stranger)
            versions = order.writers.get(step.key, 0) & visible
            sources.append(versions.bit_length() - 1 if versions else INITIAL)
            closed |= bool(versions >> y & 1)
        if not closed:
            return None
        return Candidate(order, stranger, tuple(sources), x, path, members, missed, at)

    def _waiting(self, program: Executed, first: int) -> int:
        """Return who would wait for T, or fail T, if it ran after the first steps of T."""
        order, found = self.order, 0
        alone, shared = program.locked_keys(first)
        for key in alone:
            found |= order.locking.get(key, 0) | order.sharing.get(key, 0)
        for key in shared:
            found |= order.locking.get(key, 0)
        if self.level == "snapshots":
            # SOUND BECAUSE a statement fails that locks a row with a version after its snapshot.
            for keys in program.locked_keys():
                for key in keys:
                    found |= order.writers.get(key, 0)
        return found

    def closed(self, stranger: int, path: tuple[int, ...]) -> int:
        """Return the least K with a path: what the path and T's session depend on."""
        earlier = self.order.earlier[stranger]
        # SOUND BECAUSE the last one depends on all others of its session.
        found = self.ancestors[earlier.bit_length() - 1] if earlier else 0
        for i in path:
            found |= self.ancestors[i]
        return found

    def has_blind_writes(self, stranger: int, members: int) -> bool:
        """Return whether a level may order versions of K and the stranger otherwise.

        Versions are in a fixed order if each was read, or followed in its session, by the next
        writer. Where T writes matters only at si, because nobody reads it, and T is last if the
        others read before they write: who overwrites T there without having read it, would lose it.
        """
        order = self.order
        if self.level == "si":
            for key in order.programs[stranger].writes:
                if order.writers[key] & members & ~order.readers.get(key, 0):
                    return True
        for writers in order.writers.values():
            last = -1
            for i in bits(writers & members):
                if last >= 0 and not self.ancestors[i] >> last & 1:
                    return True
                last = i
        return False

    def possible(self, stranger: int, members: int, sources: tuple[int, ...]) -> bool:
        """Return whether T may read these sources, and close a cycle; a fast necessary condition.

        A history that violates ser does so with the versions in the order of the run, too. And what
        T saw must come before what it read, whatever the order of the versions.
        """
        order, program = self.order, self.order.programs[stranger]
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
            new = self.after[low.bit_length() - 1] & members & ~seen
            seen |= new
            todo = (todo ^ low) | new
        if not seen & closing:
            return False
        if self.level in ("cc", "si"):
            for i in bits(before):
                before |= self.ancestors[i]
        if self.level == "rc":
            before = 0  # what earlier reads saw
        for key, source in zip(reads, sources, strict=True):
            other = order.writers.get(key, 0) & before & ~(1 << source if source >= 0 else 0)
            if other and (source < 0 or other & self.descendants[source]):
                return False
            if self.level == "rc" and source >= 0:
                before |= 1 << source
        return True

    def _missed(self, x: int, late: int, members: int, kept: int) -> int:
        """Return what T overlooks if it overlooks the versions of a key from X's on.

        The set is not complete if it has one of ``kept``, which the level then forbids.
        """
        if self.level in ("rc", "ra"):
            return late
        if self.level == "statements":
            return members & -(1 << x)
        if self.level == "snapshots":
            found, rest = late, late
            while rest and not found & kept:
                low = rest & -rest
                new = self.after[low.bit_length() - 1] & members & ~found
                found |= new
                rest = (rest ^ low) | new
            return found
        if self.level == "cc":
            found = late
            for i in bits(late):
                found |= self.descendants[i]
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


def _around(versions: int, source: int, near: int) -> Iterator[int]:
    """Yield writers of a key, those next to a version first, alternately on both sides."""
    before = versions & (2 << source) - 1 if source >= 0 else 0
    after = versions & ~before
    count = 0
    while (before or after) and not (near and count >= near):
        if before:
            last = before.bit_length() - 1
            yield last
            before ^= 1 << last
        if after:
            low = after & -after
            yield low.bit_length() - 1
            after ^= low
        count += 1
