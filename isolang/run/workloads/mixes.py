"""Defines workloads that mix reads and writes at random."""

from __future__ import annotations

from typing import ClassVar

from isolang.run.operation import Append, Operation, Program, Read, Scan, Write
from isolang.run.settings import Shape
from isolang.run.workloads.workload import ProgramSource, Workload, index_chooser, numbered_keys


class ListAppend(Workload):
    """Elle's list-append: a read returns a list, which reveals the order of all its appends.

    After ``appends_per_list`` appends, a new list replaces the old one, because reads would
    otherwise become too long.
    """

    name: ClassVar = "append"
    default: ClassVar = Shape(keys=10, operations=4, distribution="exponential")
    lists_per_key: ClassVar = 200
    appends_per_list: ClassVar = 64

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.lists = self._lists = numbered_keys("list", self.keys * self.lists_per_key)
        self._appends = [0] * self.keys

    def program(self, source: ProgramSource) -> Program:
        random, found = source.random, list[Operation]()
        for _ in range(random.randint(1, self.operations)):
            key = self.key(source)
            life = min(self._appends[key] // self.appends_per_list, self.lists_per_key - 1)
            name = self._lists[key * self.lists_per_key + life]
            if random.random() < self.reads:
                found.append(Read(name))
            else:
                self._appends[key] += 1
                found.append(Append(name, source.value()))
        return tuple(found)


class Registers(Workload):
    """Elle's rw-register: reads, and writes that do not depend on reads."""

    name: ClassVar = "register"
    default: ClassVar = Shape(keys=50, operations=4, distribution="exponential")

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.registers = self._names = numbered_keys("x", self.keys)

    def program(self, source: ProgramSource) -> Program:
        return tuple(
            self._operation(source) for _ in range(source.random.randint(1, self.operations))
        )

    def _operation(self, source: ProgramSource) -> Operation:
        name = self._names[self.key(source)]
        return self.make_operation(source, name, reads=source.random.random() < self.reads)

    def make_operation(self, source: ProgramSource, name: str, *, reads: bool) -> Operation:
        """Return a read of a random key if ``reads`` is true, and otherwise a write."""
        return Read(name) if reads else Write(name, source.value())


class ReadModifyWrite(Registers):
    """A mix in which each write follows a read of the same key, which reveals version orders."""

    name: ClassVar = "rmw"
    default: ClassVar = Shape(keys=30, operations=4, distribution="zipfian")

    def program(self, source: ProgramSource) -> Program:
        found: list[Operation] = []
        for key in self.keys_of(source, source.random.randint(1, max(1, self.operations // 2))):
            found.append(Read(self._names[key]))
            if source.random.random() >= self.reads - 0.25:
                found.append(Write(self._names[key], source.value()))
        return tuple(found)


class Mini(Registers):
    """Mini-transactions: one or two reads, and at most two writes, only to keys that were read."""

    name: ClassVar = "mini"
    default: ClassVar = Shape(keys=100)

    def program(self, source: ProgramSource) -> Program:
        random = source.random
        names = [self._names[key] for key in self.keys_of(source, random.choice((1, 2, 2)))]
        reads: list[Operation] = [Read(name) for name in names]
        writes = [name for name in names if random.random() >= self.reads]
        return (*reads, *(Write(name, source.value()) for name in writes))


class General(Registers):
    """Cobra's and PolySI's mix: 20 % only read, 40 % only write, 40 % read, modify and write."""

    name: ClassVar = "general"
    default: ClassVar = Shape(keys=100, operations=20)

    def program(self, source: ProgramSource) -> Program:
        share = source.random.random()
        names = [self._names[self.key(source)] for _ in range(self.operations)]
        if share < 0.2:
            return tuple(Read(name) for name in names)
        if share < 0.6:
            return tuple(Write(name, source.value()) for name in names)
        half = names[: max(1, len(names) // 2)]
        return tuple(one for name in half for one in (Read(name), Write(name, source.value())))


class _Blind(Registers):
    """A mix of read-only transactions and write-only transactions, of eight operations each."""

    default: ClassVar = Shape(keys=2000, operations=8)
    readers: ClassVar = 0.5

    def program(self, source: ProgramSource) -> Program:
        reads = source.random.random() < self.readers
        keys = self.keys_of(source, self.operations)
        return tuple(self.make_operation(source, self._names[key], reads=reads) for key in keys)


class BlindRM(_Blind):
    """Cobra's BlindW-RM: 90 % of the transactions are read-only."""

    name: ClassVar = "blindw-rm"
    readers: ClassVar = 0.9


class BlindRW(_Blind):
    """Cobra's BlindW-RW: half of the transactions are read-only."""

    name: ClassVar = "blindw-rw"


class BlindRH(_Blind):
    """Vbox's BlindW-RH: 80 % of the transactions are read-only."""

    name: ClassVar = "blindw-rh"
    readers: ClassVar = 0.8


class BlindWR(_Blind):
    """Vbox's BlindW-WR: half of the transactions are read-only, on a larger number of keys."""

    name: ClassVar = "blindw-wr"
    default: ClassVar = Shape(keys=10_000, operations=8)


class BlindWH(_Blind):
    """Vbox's BlindW-WH: 20 % of the transactions are read-only."""

    name: ClassVar = "blindw-wh"
    readers: ClassVar = 0.2


class BlindW(_Blind):
    """Leopard's BlindW-W: all transactions only write."""

    name: ClassVar = "blindw-w"
    readers: ClassVar = 0.0


class BlindRanges(_Blind):
    """Leopard's BlindW-RW+: half of the reads are range reads of ten neighbouring keys."""

    name: ClassVar = "blindw-rw+"
    needs: ClassVar = frozenset({"range reads"})

    def make_operation(self, source: ProgramSource, name: str, *, reads: bool) -> Operation:
        if reads and source.random.random() < 0.5:
            start = source.random.randrange(max(1, self.keys - 9))
            return Scan(self._names[start : start + 10])
        return super().make_operation(source, name, reads=reads)


class Ycsb(Registers):
    """VeriStrong's generator: half of the keys take only 100 different values (Zipfian choice)."""

    name: ClassVar = "ycsb"
    default: ClassVar = Shape(keys=500, operations=20)
    repeated: ClassVar = 0.5

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self._value = index_chooser("zipfian", 100, 0.5)

    def make_operation(self, source: ProgramSource, name: str, *, reads: bool) -> Operation:
        number = int(name[1:])
        if not reads and number < self.repeated * self.keys:
            return Write(name, 1 + self._value(source.random))
        return super().make_operation(source, name, reads=reads)
