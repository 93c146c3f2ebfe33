"""All small histories, up to the names of transactions and keys.

Every value is written once, so a read says where it comes from; a transaction reads each key at
most once, before it writes it, and writes it at most once. The operations of a transaction are in
any such order, or reads come before writes where the order is not asked for. Keys are registers, or
lists whose reads show the order of what was appended before. Anomalies that show without any choice
are left out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import chain, combinations, pairwise, permutations, product
from typing import Any, TypeAlias

from msgspec import Struct

NO_READ = -1
"""In place of a source: the transaction does not read the key. Source 0 is T0."""

Shape: TypeAlias = tuple[int, ...]
"""The lengths of the sessions, longest first."""

Order: TypeAlias = tuple[tuple[int, bool], ...]
"""The operations of a transaction in their order: the key of each, and whether it is a write."""


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
        orders: of the operations of each transaction; empty if all read first, key after key.
        groups: per transaction, the number of its group; empty if there are none.
    """

    shape: Shape
    keys: tuple[Key, ...]
    before: tuple[tuple[int, int], ...] = ()
    orders: tuple[Order, ...] = ()
    groups: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The number of transactions."""
        return sum(self.shape)

    def operations(self, t: int) -> Order:
        """The operations of a transaction, in their order."""
        return self.orders[t - 1] if self.orders else _reads_first(self.keys, t)

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
        for k, writes in self.operations(t):
            name, key = "xyz"[k], self.keys[k]
            if writes:
                parts.append(f"{'append' if key.shown else 'w'}({name},{t})")
            elif key.shown:
                source = key.sources[t - 1]
                upto = key.shown.index(source) + 1 if source else 0
                parts.append(f"r({name},[{' '.join(map(str, key.shown[:upto]))}])")
            else:
                parts.append(f"r({name},{key.sources[t - 1] or 'nil'})")
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
    numbers = tuple(range(len(history.keys)))
    own = form(history, tuple(range(history.size + 1)), numbers)
    return bool(history.groups) or not any(
        form(history, new, places) < own for new in same for places in permutations(numbers)
    )


def form(history: SmallHistory, new: tuple[int, ...], places: tuple[int, ...]) -> tuple[Any, ...]:
    """The operations and times of a history, renamed.

    Args:
        history: any.
        new: the new number of each transaction, by the old one.
        places: the new number of each key, by the old one.
    """
    keys = sorted(
        (place, _renamed(key, new)) for place, key in zip(places, history.keys, strict=True)
    )
    before = sorted((new[a], new[b]) for a, b in history.before)
    orders = sorted(
        (new[t], [(places[k], writes) for k, writes in history.orders[t - 1]])
        for t in range(1, history.size + 1 if history.orders else 1)
    )
    return keys, before, orders


def _reads_first(keys: tuple[Key, ...], t: int) -> Order:
    """The operations of a transaction that reads before it writes."""
    reads = ((k, False) for k, key in enumerate(keys) if key.sources[t - 1] != NO_READ)
    writes = ((k, True) for k, key in enumerate(keys) if key.writers >> (t - 1) & 1)
    return (*reads, *writes)


@cache
def _orders(operations: Order) -> tuple[Order, ...]:
    """All orders of some operations in which each key is read before it is written."""
    return tuple(
        order
        for order in permutations(operations)
        if all((k, False) not in order[i:] for i, (k, writes) in enumerate(order) if writes)
    )


def _busy(keys: tuple[Key, ...], size: int) -> bool:
    """Whether every transaction does something, and every key is written or read."""
    return all(
        any(key.writers >> t & 1 or key.sources[t] != NO_READ for key in keys) for t in range(size)
    ) and all(key.writers or max(key.sources) > NO_READ for key in keys)


def all_histories(
    size: int, keys: int, *, lists: bool, real_time: bool, orders: bool, groups: bool = False
) -> Iterator[SmallHistory]:
    """Every history of exactly this many transactions and keys, each kind once.

    Args:
        size: of transactions, 1 to 3.
        keys: of keys, 1 or 2.
        lists: whether the keys are lists, not registers.
        real_time: with all real-time orders, else without times.
        orders: with the operations of each transaction in all orders.
        groups: with all groups of sessions.
    """
    one = _lists(size) if lists else _registers(size)
    times = _real_times(size) if real_time else ((),)
    for shape in _shapes(size):
        same = _same(shape)
        for chosen in product(one, repeat=keys):
            if _busy(chosen, size):
                of_sessions = _groups(shape) if groups else ((),)
                own = [_orders(_reads_first(chosen, t)) for t in range(1, size + 1)]
                ways = product(*own) if orders else ((),)
                for way, before, group in product(ways, times, of_sessions):
                    history = SmallHistory(shape, chosen, before, way, group)
                    if _first_of_its_kind(history, same):
                        yield history


def random_histories(
    rng: random.Random,
    size: int,
    keys: int,
    *,
    real_time: bool,
    orders: bool,
    groups: bool = False,
) -> Iterator[SmallHistory]:
    """Histories of this many transactions and keys, without end."""
    shapes = list(_shapes(size))
    times = _real_times(size) if real_time else ((),)
    while True:
        one = _lists(size) if rng.random() < 0.3 else _registers(size)
        chosen = tuple(rng.choice(one) for _ in range(keys))
        if _busy(chosen, size):
            own = (_orders(_reads_first(chosen, t)) for t in range(1, size + 1))
            way = tuple(map(rng.choice, own)) if orders else ()
            shape = rng.choice(shapes)
            group = rng.choice(_groups(shape)) if groups else ()
            yield SmallHistory(shape, chosen, rng.choice(times), way, group)


def subsets(items: list[int]) -> Iterator[tuple[int, ...]]:
    """All of them, small ones first."""
    return chain.from_iterable(combinations(items, n) for n in range(len(items) + 1))
