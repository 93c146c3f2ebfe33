"""Predictions by brute force, written from the definitions of docs/foresee.md.

A history has one external read of each key at most, and every value is written once. Transactions
are numbered so that those of a session ascend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, permutations, product
from typing import Any, TypeAlias

from foresee.enumeration import strangers, subsets, with_beginnings

INITIAL = -1
Sources: TypeAlias = tuple[Mapping[str, int], ...]


class Tiny:
    """Transactions: their sessions, the keys that they write, and what they read in which order."""

    def __init__(
        self, sessions: Sequence[Any], writes: Sequence[frozenset[str]], reads: Sources
    ) -> None:
        self.sessions, self.writes, self.reads = tuple(sessions), tuple(writes), tuple(reads)
        self.n = len(self.sessions)

    def so(self, a: int, b: int) -> bool:
        return a < b and self.sessions[a] == self.sessions[b]

    def part(self, kept: Sequence[int], reads: Mapping[int, Mapping[str, int]]) -> Tiny:
        """The transactions that are kept, with these reads in place of the recorded ones."""
        new = {txn: at for at, txn in enumerate(kept)} | {INITIAL: INITIAL}
        return Tiny(
            [self.sessions[i] for i in kept],
            [self.writes[i] for i in kept],
            tuple(
                {key: new[source] for key, source in reads.get(i, self.reads[i]).items()}
                for i in kept
            ),
        )


# --- levels ---


def acyclic(n: int, edges: set[tuple[int, int]]) -> bool:
    left = set(range(n))
    while left:
        free = {x for x in left if not any((a, x) in edges for a in left)}
        if not free:
            return False
        left -= free
    return True


def so_wr(h: Tiny) -> set[tuple[int, int]]:
    found = {(a, b) for a in range(h.n) for b in range(h.n) if h.so(a, b)}
    return found | {
        (source, b) for b in range(h.n) for source in h.reads[b].values() if source != INITIAL
    }


def ser(h: Tiny) -> bool:
    """Some serial order has the sessions and explains every read."""
    for order in permutations(range(h.n)):
        if any(h.so(b, a) for a, b in combinations(order, 2)):
            continue
        last: dict[str, int] = {}
        for i in order:
            if any(last.get(key, INITIAL) != source for key, source in h.reads[i].items()):
                break
            last |= dict.fromkeys(h.writes[i], i)
        else:
            return True
    return False


def dependencies(h: Tiny) -> Iterator[tuple[set[tuple[int, int]], set[tuple[int, int]]]]:
    """For all version orders: so | wr | ww, and rw."""
    keys = sorted(frozenset().union(*h.writes)) if h.n else []
    writers = [[i for i in range(h.n) if key in h.writes[i]] for key in keys]
    for orders in product(*(list(permutations(some)) for some in writers)):
        versions = dict(zip(keys, orders, strict=True))
        depends = so_wr(h) | {pair for order in orders for pair in combinations(order, 2)}
        rw = set()
        for reader in range(h.n):
            for key, source in h.reads[reader].items():
                order = versions.get(key, ())
                later = order[order.index(source) + 1 :] if source != INITIAL else order
                rw |= {(reader, writer) for writer in later if writer != reader}
        yield depends, rw


def si(h: Tiny) -> bool:
    """Some version orders make (so | wr | ww) ; rw? acyclic."""
    return any(
        acyclic(h.n, depends | {(a, d) for a, b in depends for c, d in rw if b == c})
        for depends, rw in dependencies(h)
    )


def psi(h: Tiny) -> bool:
    """Some version orders make (so | wr | ww)^+ ; rw? irreflexive."""
    for depends, rw in dependencies(h):
        before = closure(h.n, depends)
        if not any(a == b for a, b in before) and not any((b, a) in rw for a, b in before):
            return True
    return False


def closure(n: int, pairs: set[tuple[int, int]]) -> set[tuple[int, int]]:
    found = set(pairs)
    for middle in range(n):
        found |= {(a, d) for a, b in list(found) for c, d in list(found) if b == c == middle}
    return found


def _co(h: Tiny, seen: Callable[[int, int, str], bool]) -> bool:
    """Some order contains so, wr and, of who was seen and overwritten, who came first."""
    edges = so_wr(h)
    for reader in range(h.n):
        for key, source in h.reads[reader].items():
            for other in range(h.n):
                if other in (source, reader) or key not in h.writes[other]:
                    continue
                if seen(other, reader, key):
                    if source == INITIAL:
                        return False
                    edges.add((other, source))
    return acyclic(h.n, edges)


def ra(h: Tiny) -> bool:
    direct = so_wr(h)
    return _co(h, lambda other, reader, key: (other, reader) in direct)


def cc(h: Tiny) -> bool:
    before = closure(h.n, so_wr(h))
    return _co(h, lambda other, reader, key: (other, reader) in before)


def rc(h: Tiny) -> bool:
    def seen(other: int, reader: int, key: str) -> bool:
        for earlier, source in h.reads[reader].items():  # in program order
            if earlier == key:
                return False
            if source == other:
                return True
        return False

    return _co(h, seen)


LEVELS: dict[str, Callable[[Tiny], bool]] = {
    "ser": ser, "si": si, "psi": psi, "ra": ra, "cc": cc, "rc": rc
}  # fmt: skip


# --- the two rules ---


def one_stranger(run: Tiny) -> Iterator[Tiny]:
    """B1: a subset K, closed under so and wr, that reads what was recorded, and one more."""
    for stranger, k in strangers(run, so_wr(run)):
        yield from _reading(run, k, {stranger})


def same_statements(run: Tiny) -> Iterator[Tiny]:
    """B2: any subset with its sessions' beginnings, in which everybody may read anything."""
    for kept in subsets(range(run.n)):
        if with_beginnings(run, kept):
            yield from _reading(run, (), set(kept))


def _reading(run: Tiny, k: tuple[int, ...], free: set[int]) -> Iterator[Tiny]:
    kept = sorted({*k, *free})
    reads = [(i, key) for i in sorted(free) for key in run.reads[i]]
    versions = [
        [INITIAL, *(w for w in kept if w != i and key in run.writes[w] and (w in k or not k))]
        for i, key in reads
    ]
    for sources in product(*versions):
        new: dict[int, dict[str, int]] = {i: {} for i in free}
        for (i, key), source in zip(reads, sources, strict=True):
            new[i][key] = source
        yield run.part(kept, new)


def exists(histories: Iterator[Tiny], at: str, against: str = "ser") -> bool:
    """Whether one of the histories is valid at one level and invalid at the other."""
    return any(LEVELS[at](h) and not LEVELS[against](h) for h in histories)
