"""Provides the base class for workloads, which make transactions from random choices."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Iterator
from itertools import accumulate
from random import Random
from typing import ClassVar, Final

from isolang.run.operation import Program
from isolang.run.settings import Distribution, Shape

CONVERSATIONS: Final = frozenset({"conversations"})


class ProgramSource:
    """The random choices and the values for the transactions of one client.

    Attributes:
        random: the random number generator, seeded with the run's seed and the client's number.
        made: the number of the client's transactions that have ended.
    """

    def __init__(self, seed: int | str, client: int, values: Iterator[int]) -> None:
        """Seed the random number generator."""
        self.seed = seed
        self.random = Random(f"{seed}/{client}")
        self.client = client
        self.made = 0
        self._values = values

    def value(self) -> int:
        """Return a value that no other transaction writes."""
        return next(self._values)


class Workload:
    """The base class for all workloads.

    Attributes:
        name: the name of the workload on the command line.
        registers: the keys that hold numbers.
        lists: the keys that hold lists.
        needs: the features that a target must have to run the workload.
        rows: whether the workload has predicates, so that a missing row must be recorded as
            missing. Such a workload begins without rows, or with rows whose value is NULL.
        nulls: whether transactions write NULL; if so, all rows are inserted by transactions.
        cascades: whether rows have child rows, which a foreign key deletes with them.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    rows: ClassVar[bool] = False
    nulls: ClassVar[bool] = False
    cascades: ClassVar[bool] = False
    default: ClassVar[Shape] = Shape()
    min_keys: ClassVar[int] = 1  # the minimum number of keys

    def __init__(self, shape: Shape) -> None:
        """Store the shape's sizes, or the workload's defaults where the shape has ``None``."""
        own = self.default
        self.keys = max(self.min_keys, shape.keys or own.keys or 100)
        self.operations = shape.operations or own.operations or 8
        self.reads = next((x for x in (shape.reads, own.reads) if x is not None), 0.5)
        self.long = next((x for x in (shape.long, own.long) if x is not None), 0.0)
        self.span = shape.span or own.span or 3000
        self.rotate = shape.rotate
        chosen: Distribution = shape.distribution or own.distribution or "uniform"
        self._choose = index_chooser(chosen, self.keys, shape.theta)
        self.registers: tuple[str, ...] = ()
        self.lists: tuple[str, ...] = ()

    def program(self, source: ProgramSource) -> Program:
        """Return the next transaction for a client."""
        raise NotImplementedError

    def key(self, source: ProgramSource) -> int:
        """Return the number of a randomly chosen key."""
        chosen = self._choose(source.random)
        if self.rotate:
            chosen += source.made // self.rotate * 7919
        return chosen % self.keys

    def keys_of(self, source: ProgramSource, count: int) -> list[int]:
        """Return ``count`` different randomly chosen keys, or all keys if there are fewer."""
        found: dict[int, None] = {}
        count = min(count, self.keys)
        for _ in range(20 * count):
            if len(found) == count:
                return list(found)
            found[self.key(source)] = None
        # Take the keys with the next numbers, because random draws would rarely hit the remaining
        # keys.
        last = next(reversed(found), 0)
        found |= dict.fromkeys((last + i) % self.keys for i in range(1, self.keys))
        return list(found)[:count]


def index_chooser(name: Distribution, size: int, theta: float = 0.99) -> Callable[[Random], int]:
    """Return a function that draws a number from 0 to ``size - 1`` with this distribution."""
    if name == "zipfian":
        sums = list(accumulate(1 / (i + 1) ** theta for i in range(size)))
        return lambda random: min(bisect(sums, random.random() * sums[-1]), size - 1)
    if name == "hotspot":
        hot = max(1, size // 5)
        return lambda random: random.randrange(hot if random.random() < 0.8 else size)
    if name == "exponential":
        rate = -math.log(0.05) / max(1.0, size * 6 / 7)
        return lambda random: int(random.expovariate(rate)) % size
    return lambda random: random.randrange(size)


def numbered_keys(prefix: str, size: int) -> tuple[str, ...]:
    """Return numbered keys, padded with zeros so that they sort alphabetically by number."""
    digits = len(str(size - 1))
    return tuple(f"{prefix}{i:0{digits}}" for i in range(size))
