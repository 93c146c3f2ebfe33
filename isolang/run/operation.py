"""What a transaction of a workload asks a database to do, one step at a time.

A *program* is one transaction: a tuple of operations where they are known before, or a generator
that is sent the result of each operation before it gives the next one (what an operation wrote may
then depend on what an earlier one read). Programs know nothing of databases.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from random import Random
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from isolang.history.values import Keyword

DELETED: Final = Keyword("deleted")
"""What a read of an absent row returns, and what a delete writes."""


class Read(Struct, frozen=True):
    """Read a row; the result is its value, ``None`` (as loaded), a list, or ``DELETED``."""

    key: str


class Write(Struct, frozen=True):
    """Update a row; the result is whether it was there."""

    key: str
    value: int


class Append(Struct, frozen=True):
    """Append to the list of a row."""

    key: str
    value: int


class Insert(Struct, frozen=True):
    """Insert a row; one that is there already makes the transaction fail."""

    key: str
    value: int


class Swap(Struct, frozen=True):
    """Write if the value is the expected one, by one statement where the database has one.

    The result is whether it was. It stands alone in its transaction: what it writes is there at
    once.
    """

    key: str
    expected: int | None
    value: int


class Delete(Struct, frozen=True):
    """Delete a row; the result is whether it was there."""

    key: str


class Scan(Struct, frozen=True):
    """Read neighbouring rows by one statement; the result maps keys to values."""

    keys: tuple[str, ...]


class Wait(Struct, frozen=True):
    """Keep the transaction open until this many other transactions have ended."""

    transactions: int


class Abort(Struct, frozen=True):
    """Roll the transaction back."""


class Undone(Struct, frozen=True):
    """Write, and undo it by rolling back to a savepoint: nobody may ever see it."""

    operation: Write | Append | Insert | Delete


Operation: TypeAlias = Abort | Undone | Read | Write | Swap | Append | Insert | Delete | Scan | Wait
Program: TypeAlias = tuple[Operation, ...] | Generator[Operation, Any, None]

_WRITES: Final = (Write, Append, Insert, Delete)


def with_savepoints(
    program: Program, random: Random, share: float, value: Iterator[int]
) -> Program:
    """Before a share of the updates and appends of a program, put one that is undone.

    Args:
        program: any.
        random: chooses them.
        share: how many.
        value: what the undone ones write.
    """

    def undone(operation: Operation) -> tuple[Undone, ...]:
        if isinstance(operation, Write | Append) and random.random() < share:
            return (Undone(replace(operation, value=next(value))),)
        return ()

    if isinstance(program, tuple):
        return tuple(one for operation in program for one in (*undone(operation), operation))
    return _converse_undoing(program, undone)


def _converse_undoing(
    program: Generator[Operation, Any, None], undone: Callable[[Operation], tuple[Undone, ...]]
) -> Generator[Operation, Any, None]:
    result: Any = None
    while True:
        try:
            operation = program.send(result)
        except StopIteration:
            return
        yield from undone(operation)
        result = yield operation


def only_reads(program: Program) -> Program:
    """The program of a client that may not write: it reads where another one would write."""
    if isinstance(program, tuple):
        return tuple(_reading(one) for one in program if not isinstance(one, Abort))
    return _converse_reading(program)


def _converse_reading(
    program: Generator[Operation, Any, None],
) -> Generator[Operation, Any, None]:
    result: Any = None
    while True:
        try:
            operation = program.send(result)
        except StopIteration:
            return
        if isinstance(operation, Abort):
            return
        result = yield _reading(operation)


def _reading(operation: Operation) -> Operation:
    return Read(operation.key) if isinstance(operation, (*_WRITES, Swap)) else operation
