"""Defines workloads that insert and delete rows."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

from isolang.run.operation import DELETED, Delete, Insert, Operation, Program, Read, Write
from isolang.run.settings import Shape
from isolang.run.workloads.workload import ProgramSource, Workload, numbered_keys


class InsertDelete(Workload):
    """Read a row, and then update or delete it; if it does not exist, insert it.

    Initially, all rows exist. A delete is recorded as a write of the value ``deleted``, and a read
    of a missing row as a read of this value.
    """

    name: ClassVar = "insert-delete"
    needs: ClassVar = frozenset({"rows", "conversations"})
    default: ClassVar = Shape(keys=20, operations=2)

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.registers = self._rows = numbered_keys("row", self.keys)

    def program(self, source: ProgramSource) -> Program:
        keys = [self._rows[key] for key in self.keys_of(source, self.operations)]
        return self._touch(source, keys[: source.random.randint(1, len(keys))])

    def _touch(self, source: ProgramSource, keys: list[str]) -> Generator[Operation, Any, None]:
        for key in keys:
            found = yield Read(key)
            if found == DELETED:
                yield Insert(key, source.value())
            elif source.random.random() < 0.4:
                yield Delete(key)
            else:
                yield Write(key, source.value())
