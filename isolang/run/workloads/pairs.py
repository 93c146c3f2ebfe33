"""Defines a workload on pairs of keys: transactions read one key and write the other."""

from __future__ import annotations

from typing import ClassVar

from isolang.run.operation import Program, Read, Wait, Write
from isolang.run.settings import Shape
from isolang.run.workloads.workload import ProgramSource, Workload, numbered_keys


class Pairs(Workload):
    """Write skew in its smallest form, with short and long transactions.

    A transaction reads one key of a pair and writes the other key; half of the transactions read
    both keys. A long transaction keeps its snapshot while thousands of other transactions commit.
    After so many commits, databases begin to forget the reads of committed transactions. Nine out
    of ten short transactions write the second key, and nine out of ten long transactions write the
    first key. Therefore, other transactions rarely write the key that a long transaction writes.
    """

    name: ClassVar = "pairs"
    default: ClassVar = Shape(keys=3000, long=0.4, span=3000)

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self._a, self._b = numbered_keys("a", self.keys), numbered_keys("b", self.keys)
        self.registers = (*self._a, *self._b)

    def program(self, source: ProgramSource) -> Program:
        pair = self.key(source)
        one, other = self._a[pair], self._b[pair]
        # Of ten clients, with a share of 0.4, the third, fifth, eighth and tenth play long
        # transactions.
        long = int((source.client + 1) * self.long) > int(source.client * self.long)
        if long != (source.random.random() < 0.1):
            one, other = other, one
        wait = (Wait(source.random.randint(self.span, self.span * 8 // 5)),) if long else ()
        both = (Read(other),) if source.random.random() < 0.5 else ()
        again = (Read(one),) if long and source.random.random() < 0.5 else ()
        return (Read(one), *both, *wait, *again, Write(other, source.value()))
