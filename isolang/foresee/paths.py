"""Finds paths that may close a cycle through a stranger, from the versions that it may overlook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice
from typing import Final

from msgspec import Struct

from isolang.foresee.blind_writes import BlindWrites, OverlookRule
from isolang.foresee.run import Access, Arrangement, bits
from isolang.limits import Work

WHOLE_SNAPSHOT: Final = ("si", "snapshots")
"""The rules under which a transaction reads one snapshot."""


class PathBounds(Struct, frozen=True, kw_only=True):
    """The bounds of a search for paths; 0 means no bound.

    Attributes:
        near: the number of versions to try as X's version on each side of the recorded version.
        window: the largest difference between the numbers of X and T, and between the larger of the
            two and the numbers of later transactions on the path.
        ordered: whether the version orders must be those of the run.
    """

    near: int = 0
    most: int = 0
    nodes: int = 0
    window: int = 0
    ordered: bool = True


class OverlookedPaths:
    """Finds the versions that a stranger may overlook, and the paths from their writers."""

    def __init__(self, order: Arrangement, level: OverlookRule) -> None:
        """Prepare to search an arrangement at one level."""
        self.order, self.level = order, level

    @cached_property
    def blind(self) -> BlindWrites:
        """The blind writes, which allow versions to be ordered differently."""
        return BlindWrites(self.order, self.level)

    def search(
        self,
        stranger: int,
        work: Work,
        take: Callable[[int, tuple[int, ...]], bool],
        look: PathBounds,
    ) -> bool:
        """Pass to a function the paths that may close a cycle through a stranger.

        For each X, shorter paths come first.

        Args:
            take: the function. Its arguments are the index of T's read that overlooks X, and the
                path from X to Y. If it returns true, no further paths from this X are passed.
        """
        order = self.order
        program = order.programs[stranger]
        allowed = ~self.order.descendants[stranger]
        ends, writers = order.earlier[stranger] | order.overlooking(stranger), 0
        for key in program.writes:
            writers |= order.writers[key]
            ends |= order.writers[key]
        for where in program.reads:
            ends |= order.writers.get(program.steps[where].key, 0)
        ends &= allowed
        complete = True
        for at, where in enumerate(program.reads):
            step = program.steps[where]
            assert step.source is not None
            if step.possible:
                continue
            versions = self._answer_changes(step) & allowed
            if self.level in WHOLE_SNAPSHOT and look.ordered:
                versions &= ~writers  # SOUND BECAUSE T may not overlook an X that writes a key of T
            nearest = list(_nearest_writers(versions, step.source, look.near))
            complete &= not look.near or len(nearest) == versions.bit_count()
            for x in nearest:
                if not ends >> x:  # no transaction from X on can close a cycle
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
        """Yield a shortest path from X to each other possible Y, shorter paths first."""
        allowed &= (1 << ends.bit_length()) - 1
        parent: dict[int, int] = {}
        seen, todo = 1 << x, [x]
        for done, node in enumerate(todo):
            if not work.left or (nodes and done >= nodes):
                return
            work.spend(1)
            new = self.order.conflicts[node] & allowed & ~seen
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

    def _answer_changes(self, step: Access) -> int:
        """Return the writers of a key's versions whose absence a read may notice."""
        order = self.order
        versions = order.writers.get(step.key, 0)
        if step.test is None or step.key in order.blind:
            return versions
        shown, before = order.shown(step)
        noticed = shown
        for i in bits(versions):
            if before:
                noticed |= 1 << i
            before = bool(shown >> i & 1)
        return noticed


def _nearest_writers(versions: int, source: int, near: int) -> Iterator[int]:
    """Yield the writers of a key alternately from both sides of a version, nearest first."""
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
