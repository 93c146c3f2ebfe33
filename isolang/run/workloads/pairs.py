"""Defines a workload on pairs of keys: read one, write the other, some of them slowly."""

from __future__ import annotations

from typing import ClassVar

from isolang.run.operation import Program, Read, Wait, Write
from isolang.run.settings import Shape
from isolang.run.workloads.workload import ProgramSource, Workload, numbered


class Pairs(Workload):
    """Write skew in its smallest form.

    A transaction reads one key of a pair and writes the other key; half of the transactions read
    both. A long transaction keeps its snapshot while thousands of other transactions commit; by
    then databases begin to forget the reads of committed transactions. Nine of ten short
    transactions write the second key, and nine of ten long transactions write the first key. So the
    key that a long transaction writes is seldom written meanwhile.
    """

    name: ClassVar = "pairs"
    default: ClassVar = Shape(keys=3000, long=0.4, span=3000)

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self._a, self._b = numbered("a", self.keys), numbered("b", self.keys)
        self.registers = (*self._a, *self._b)

    def program(self, source: ProgramSource) -> Program:
        pair = self.key(source)
        one, other = self._a[pair], self._b[pair]
        # With ten clients and a share of 0.4, these are the third, fifth, eighth and tenth client.
        long = int((source.client + 1) * self.long) > int(source.client * self.long)
        if long != (source.random.random() < 0.1):
            one, other = other, one
        wait = (Wait(source.random.randint(self.span, self.span * 8 // 5)),) if long else ()
        both = (Read(other),) if source.random.random() < 0.5 else ()
        return (Read(one), *both, *wait, Write(other, source.value()))
