"""Defines small well-known workloads, each with an invariant."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

from isolang.run.operation import DELETED, Abort, Operation, Program, Read, Swap, Write
from isolang.run.settings import Shape
from isolang.run.workloads.workload import CONVERSATIONS, ProgramSource, Workload, numbered_keys

OPENING = 100  # the initial balance of an account


class LongFork(Workload):
    """Transactions write one key or read a group; all reads must agree with one order of writes."""

    name: ClassVar = "long-fork"
    default: ClassVar = Shape(keys=20)

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.registers = self._names = numbered_keys("f", self.keys)

    def program(self, source: ProgramSource) -> Program:
        key = self.key(source)
        if source.random.random() < 0.5:
            return (Write(self._names[key], source.value()),)
        group = self._names[key // 2 * 2 : key // 2 * 2 + 2]
        return tuple(Read(name) for name in group)


class Bank(Workload):
    """Transactions transfer money or read all accounts, whose total balance never changes."""

    name: ClassVar = "bank"
    needs: ClassVar = CONVERSATIONS
    default: ClassVar = Shape(keys=8)
    min_keys: ClassVar = 2

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.registers = self._names = numbered_keys("account", self.keys)

    def program(self, source: ProgramSource) -> Program:
        if source.random.random() < 0.3:
            return tuple(Read(name) for name in self._names)
        one, other = (self._names[key] for key in self.keys_of(source, 2))
        return self._transfer(one, other, source.random.randint(1, 5))

    def _transfer(self, one: str, other: str, amount: int) -> Generator[Operation, Any, None]:
        has = yield Read(one)
        gets = yield Read(other)
        if DELETED in (has, gets):  # a dirty read may miss a row that is being updated
            yield Abort()
            return
        yield Write(one, (OPENING if has is None else has) - amount)
        yield Write(other, (OPENING if gets is None else gets) + amount)


class Counter(Workload):
    """Transactions increment a single key, or one of a few keys."""

    name: ClassVar = "counter"
    needs: ClassVar = CONVERSATIONS
    default: ClassVar = Shape(keys=1)

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.registers = self._names = numbered_keys("n", self.keys)

    def program(self, source: ProgramSource) -> Program:
        return self._increment(self._names[self.key(source)])

    def _increment(self, key: str) -> Generator[Operation, Any, None]:
        has = yield Read(key)
        if has == DELETED:
            yield Abort()
            return
        yield Write(key, (has or 0) + 1)


class CompareAndSet(Workload):
    """Each transaction reads, writes, or compares and sets a register with few values."""

    name: ClassVar = "cas"
    needs: ClassVar = CONVERSATIONS
    default: ClassVar = Shape(keys=5)

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.registers = self._names = numbered_keys("r", self.keys)

    def program(self, source: ProgramSource) -> Program:
        name, random = self._names[self.key(source)], source.random
        kind = random.random()
        if kind < 0.25:
            return (Read(name),)
        if kind < 0.4:
            return (Write(name, random.randint(1, 4)),)
        return (Swap(name, random.choice((None, 1, 2, 3, 4)), random.randint(1, 4)),)
