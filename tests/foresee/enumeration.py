"""What predictions by brute force choose among: strangers, subsets of a run, and schedules.

Transactions are numbers, and those of a session ascend. What they do is up to the caller.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, permutations
from typing import NamedTuple, Protocol


class Run(Protocol):
    """Transactions in sessions."""

    n: int

    def so(self, a: int, b: int) -> bool: ...


class Schedule(NamedTuple):
    """Who runs first; the stranger, with its first statements; and who runs then."""

    before: Sequence[int]
    stranger: int
    first: int
    between: Sequence[int]

    def kept(self) -> list[int]:
        """All its transactions, ascending."""
        return sorted((*self.before, *self.between, self.stranger))


def subsets(some: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for size in range(len(some) + 1):
        yield from combinations(some, size)


def with_beginnings(run: Run, kept: Collection[int]) -> bool:
    """Whether a subset has, with each transaction, the earlier ones of its session."""
    return not any(run.so(a, b) and a not in kept for b in kept for a in range(run.n))


def strangers(run: Run, closed: set[tuple[int, int]]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """T, and K: closed under these pairs, with the earlier transactions of T's session."""
    for stranger in range(run.n):
        others = [i for i in range(run.n) if i != stranger]
        for k in subsets(others):
            if any(b in k and a not in k for a, b in closed):
                continue
            if any(run.so(a, stranger) and a not in k for a in others):
                continue
            yield stranger, k


def schedules_of_strangers(
    run: Run, closed: set[tuple[int, int]], statements: Sequence[int], *, whole_snapshot: bool
) -> Iterator[Schedule]:
    """The schedules of T and K: who runs first and who runs then, both in the order of the run.

    Args:
        closed: as of :func:`strangers`.
        statements: how many each transaction executes.
        whole_snapshot: whether a transaction keeps the snapshot of its first statement.
    """
    for stranger, k in strangers(run, closed):
        for between in subsets(k):
            before = [i for i in k if i not in between]
            if any(run.so(i, j) for i in between for j in (*before, stranger)):
                continue
            if not whole_snapshot and any(i < j for i in between for j in before):
                continue  # COMMITs come in the order of the run
            for first in _first_statements(statements[stranger], whole_snapshot=whole_snapshot):
                yield Schedule(before, stranger, first, between)


def all_schedules(
    run: Run, statements: Sequence[int], *, whole_snapshot: bool
) -> Iterator[Schedule]:
    """The schedules of any subset with its sessions' beginnings, in any order that keeps these."""
    for stranger in range(run.n):
        for k in subsets([i for i in range(run.n) if i != stranger]):
            if not with_beginnings(run, {*k, stranger}):
                continue
            for order in permutations(k):
                if any(run.so(b, a) for a, b in combinations(order, 2)):
                    continue
                if any(run.so(stranger, i) for i in order):
                    continue
                for cut in range(len(order) + 1):
                    before, between = order[:cut], order[cut:]
                    if any(run.so(i, stranger) for i in between):
                        continue
                    for first in _first_statements(
                        statements[stranger], whole_snapshot=whole_snapshot
                    ):
                        yield Schedule(before, stranger, first, between)


def _first_statements(statements: int, *, whole_snapshot: bool) -> range:
    """After how many statements of the stranger others may run."""
    return range(1, 2 if whole_snapshot else statements + 1)
