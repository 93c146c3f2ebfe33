"""All small histories, up to the names of transactions and keys.

Every value is written once, so a read says where it comes from; a transaction reads each key at
most once, before it writes it, and writes it at most once. Keys are registers, or lists whose reads
show the order of what was appended before. Anomalies that show without any choice are left out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import chain, combinations, pairwise, permutations, product
from typing import TypeAlias

from msgspec import Struct

NO_READ = -1
"""In place of a source: the transaction does not read the key. Source 0 is T0."""

Shape: TypeAlias = tuple[int, ...]
"""The lengths of the sessions, longest first."""


class Key(Struct, frozen=True):
    """The operations on one key.

    Attributes:
        writers: bit i is set if transaction i + 1 writes it.
        sources: per transaction, whom it reads from; ``NO_READ`` if it does not.
        shown: the writers in the order that list reads show; empty for a register.
    """

    writers: int
    sources: tuple[int, ...]
    shown: tuple[int, ...] = ()

    def vo(self) -> Iterator[tuple[int, int]]:
        """Pairs of the version order that the reads show."""
        for source in self.sources:
            if source > 0 and self.shown:
                prefix = self.shown[: self.shown.index(source) + 1]
                for i, first in enumerate(prefix):
                    yield from ((first, second) for second in self.shown[i + 1 :])


class SmallHistory(Struct, frozen=True):
    """Transactions 1 … n, session after session, and T0, which is 0.

    Attributes:
        shape: the lengths of the sessions.
        keys: what happens to each.
        before: pairs of real time among transactions 1 … n.
        backwards: whether transactions read the last key first.
        groups: per transaction, the number of its group; empty if there are none.
    """

    shape: Shape
    keys: tuple[Key, ...]
    before: tuple[tuple[int, int], ...] = ()
    backwards: bool = False
    groups: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The number of transactions."""
        return sum(self.shape)

    def together(self, a: int, b: int) -> bool:
        """Whether two transactions are of one group."""
        return bool(self.groups) and self.groups[a - 1] == self.groups[b - 1]

    def sessions(self) -> list[range]:
        """The transactions of each session."""
        starts = [0]
        for length in self.shape:
            starts.append(starts[-1] + length)
        return [range(a + 1, b + 1) for a, b in pairwise(starts)]

    def __str__(self) -> str:
        return " || ".join(" -> ".join(map(self._shown, session)) for session in self.sessions())

    def _shown(self, t: int) -> str:
        parts: list[str] = []
        named = list(zip("xyz", self.keys, strict=False))
        for name, key in reversed(named) if self.backwards else named:
            if (source := key.sources[t - 1]) != NO_READ:
                if key.shown:
                    upto = key.shown.index(source) + 1 if source else 0
                    value = "[" + " ".join(map(str, key.shown[:upto])) + "]"
                else:
                    value = str(source) if source else "nil"
                parts.append(f"r({name},{value})")
        for name, key in named:
            if key.writers >> (t - 1) & 1:
                parts.append(f"{'append' if key.shown else 'w'}({name},{t})")
        return " ".join(parts)


@cache
def _registers(size: int) -> tuple[Key, ...]:
    """All operations on one register."""
    keys = []
    for writers in range(1 << size):
        options = []
        for t in range(1, size + 1):
            others = [w for w in range(1, size + 1) if writers >> (w - 1) & 1 and w != t]
            options.append((NO_READ, 0, *others))
        keys += [Key(writers, sources) for sources in product(*options)]
    return tuple(keys)


@cache
def _lists(size: int) -> tuple[Key, ...]:
    """All operations on one list; orders that the reads do not tell apart are one."""
    found: dict[object, Key] = {}
    for key in _registers(size):
        writers = [w for w in range(1, size + 1) if key.writers >> (w - 1) & 1]
        for shown in permutations(writers):
            if shown:
                one = Key(key.writers, key.sources, shown)
                found.setdefault((key, frozenset(one.vo())), one)
    return tuple(found.values())


def _shapes(size: int) -> Iterator[Shape]:
    """The ways to cut transactions into sessions."""

    def parts(left: int, most: int) -> Iterator[Shape]:
        if not left:
            yield ()
        for first in range(min(left, most), 0, -1):
            for rest in parts(left - first, first):
                yield (first, *rest)

    yield from parts(size, size)


@cache
def _real_times(size: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """The interval orders of 1 … size: who ended before whom began, in all ways."""
    found: set[tuple[tuple[int, int], ...]] = {()}
    for begins in product(range(size), repeat=size):
        for ends in product(range(size), repeat=size):
            if all(b <= e for b, e in zip(begins, ends, strict=True)):
                pairs = (
                    (i + 1, j + 1) for i in range(size) for j in range(size) if ends[i] < begins[j]
                )
                found.add(tuple(pairs))
    return tuple(sorted(found, key=lambda pairs: (len(pairs), pairs)))


@cache
def _groups(shape: Shape) -> tuple[tuple[int, ...], ...]:
    """The partitions of the sessions into groups, as the group of each transaction."""
    found: list[tuple[int, ...]] = [()]
    for length in shape:
        found = [(*g, *[n] * length) for g in found for n in range(max(g, default=-1) + 2)]
    return tuple(found)


def _same(shape: Shape) -> list[tuple[int, ...]]:
    """The renamings of the transactions that keep the sessions: new number by old."""
    starts = [sum(shape[:i]) for i in range(len(shape))]
    result = []
    for order in permutations(range(len(shape))):
        if all(shape[i] == shape[j] for i, j in enumerate(order)):
            renamed = [0] * (sum(shape) + 1)
            for i, j in enumerate(order):
                for k in range(shape[i]):
                    renamed[starts[i] + k + 1] = starts[j] + k + 1
            result.append(tuple(renamed))
    return result


@cache
def _renamed(
    key: Key, new: tuple[int, ...]
) -> tuple[int, tuple[int, ...], tuple[tuple[int, int], ...]]:
    """The operations on a key, transactions renamed; of a list's order only the shown part."""
    size = len(key.sources)
    writers = sum(1 << (new[t] - 1) for t in range(1, size + 1) if key.writers >> (t - 1) & 1)
    sources = [NO_READ] * size
    for t, source in enumerate(key.sources, 1):
        sources[new[t] - 1] = new[source] if source > 0 else source
    return writers, tuple(sources), tuple(sorted({(new[a], new[b]) for a, b in key.vo()}))


def _first_of_its_kind(history: SmallHistory, same: list[tuple[int, ...]]) -> bool:
    """Whether no renaming of transactions and keys comes before it."""
    own = [_renamed(key, tuple(range(history.size + 1))) for key in history.keys]
    times = history.before
    for new in same if not history.groups else ():
        keys = [_renamed(key, new) for key in history.keys]
        before = tuple(sorted((new[a], new[b]) for a, b in times))
        orders = [keys] if history.backwards else permutations(keys)
        if any((list(other), before) < (own, tuple(sorted(times))) for other in orders):
            return False
    return True


def _busy(keys: tuple[Key, ...], size: int) -> bool:
    """Whether every transaction does something, and every key is written or read."""
    return all(
        any(key.writers >> t & 1 or key.sources[t] != NO_READ for key in keys) for t in range(size)
    ) and all(key.writers or max(key.sources) > NO_READ for key in keys)


def all_histories(
    size: int, keys: int, *, lists: bool, real_time: bool, both_ways: bool, groups: bool = False
) -> Iterator[SmallHistory]:
    """Every history of exactly this many transactions and keys, each kind once.

    Args:
        size: of transactions, 1 to 3.
        keys: of keys, 1 or 2.
        lists: whether the keys are lists, not registers.
        real_time: with all real-time orders, else without times.
        both_ways: with the reads of a transaction in both orders of the keys.
        groups: with all groups of sessions.
    """
    one = _lists(size) if lists else _registers(size)
    times = _real_times(size) if real_time else ((),)
    ways = (False, True) if both_ways and keys > 1 else (False,)
    for shape in _shapes(size):
        same = _same(shape)
        for chosen in product(one, repeat=keys):
            if _busy(chosen, size):
                of_sessions = _groups(shape) if groups else ((),)
                for before, backwards, group in product(times, ways, of_sessions):
                    history = SmallHistory(shape, chosen, before, backwards, group)
                    if _first_of_its_kind(history, same):
                        yield history


def random_histories(
    rng: random.Random,
    size: int,
    keys: int,
    *,
    real_time: bool,
    both_ways: bool,
    groups: bool = False,
) -> Iterator[SmallHistory]:
    """Histories of this many transactions and keys, without end."""
    shapes = list(_shapes(size))
    times = _real_times(size) if real_time else ((),)
    while True:
        one = _lists(size) if rng.random() < 0.3 else _registers(size)
        chosen = tuple(rng.choice(one) for _ in range(keys))
        if _busy(chosen, size):
            backwards = both_ways and rng.random() < 0.5
            shape = rng.choice(shapes)
            group = rng.choice(_groups(shape)) if groups else ()
            yield SmallHistory(shape, chosen, rng.choice(times), backwards, group)


def subsets(items: list[int]) -> Iterator[tuple[int, ...]]:
    """All of them, small ones first."""
    return chain.from_iterable(combinations(items, n) for n in range(len(items) + 1))
