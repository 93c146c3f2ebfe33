"""What a transaction of a workload asks a database to do, one step at a time.

A *program* is one transaction: a tuple of operations where they are known before, or a generator
that is sent the result of each operation before it gives the next one (what an operation wrote may
then depend on what an earlier one read). Programs know nothing of databases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from random import Random
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from isolang.history.values import Keyword, Literal

DELETED: Final = Keyword("deleted")
"""What a read of an absent row returns, and what a delete writes."""


class Read(Struct, frozen=True):
    """Read a row; the result is its value, ``None`` (as loaded), a list, or ``DELETED``."""

    key: str


class Several(Struct, frozen=True):
    """What a read of a key returns that has several rows: a read of each, one after the other."""

    values: tuple[Any, ...]


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


class Select(Struct, frozen=True):
    """Read the rows whose value lies in a range, by one statement; the result maps keys to values.

    Workloads with it have no rows as loaded, and record that there is none as that.
    """

    low: int
    high: int


class Change(Struct, frozen=True):
    """Update the rows whose value lies in a range, by one statement; the result is their keys.

    What is written is not known before, so it stands in conversations only. What the predicate of
    the update did not match is not recorded.
    """

    low: int
    high: int
    value: int


class Wait(Struct, frozen=True):
    """Keep the transaction open until this many other transactions have ended."""

    transactions: int


class Abort(Struct, frozen=True):
    """Roll the transaction back."""


class Undone(Struct, frozen=True):
    """Write, and undo it by rolling back to a savepoint: nobody may ever see it."""

    operation: Write | Append | Insert | Delete


Operation: TypeAlias = (
    Abort | Append | Change | Delete | Insert | Read | Scan | Select | Swap | Undone | Wait | Write
)
Program: TypeAlias = tuple[Operation, ...] | Generator[Operation, Any, None]

Recorded: TypeAlias = tuple[str, Any, Any]
"""``("r", key, value)``, ``("w", key, value)``, ``("append", key, value)``, ``("delete", key,
None)``; or ``("rp", predicate, rows)``: a literal, and a dictionary."""

_BOUND: Final = re.compile(r"[<>]= :value (-?\d+)")


def between(low: int, high: int) -> Literal:
    """The predicate that a row's value lies in a range, in the place of a key."""
    return Literal(f"[:between :value {low} {high}]")


def bounds_of(predicate: str) -> tuple[int, int]:
    """The range that a recorded predicate of ``between`` is about."""
    low, high = _BOUND.findall(predicate)
    return int(low), int(high)


def conversation(
    program: Generator[Operation, Any, None],
    change: Callable[[Operation], tuple[Operation, ...]],
) -> Generator[Operation, Any, None]:
    """A conversation with other operations in place of its own.

    Args:
        program: is told the result of the last one in place of its operation.
        change: gives them; none ends the conversation.
    """
    result: Any = None
    while True:
        try:
            operation = program.send(result)
        except StopIteration:
            return
        changed = change(operation)
        if not changed:
            return
        for one in changed:
            result = yield one


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

    def undone(operation: Operation) -> tuple[Operation, ...]:
        if isinstance(operation, Write | Append) and random.random() < share:
            return (Undone(replace(operation, value=next(value))), operation)
        return (operation,)

    return _changed(program, undone)


def only_reads(program: Program) -> Program:
    """The program of a client that may not write: it reads where another one would write."""

    def reading(operation: Operation) -> tuple[Operation, ...]:
        match operation:
            case Abort():
                return ()
            case Change(low, high):
                return (Select(low, high),)
            case Append() | Delete() | Insert() | Swap() | Write():
                return (Read(operation.key),)
        return (operation,)

    return _changed(program, reading)


def _changed(program: Program, change: Callable[[Operation], tuple[Operation, ...]]) -> Program:
    if isinstance(program, tuple):
        return tuple(one for operation in program for one in change(operation))
    return conversation(program, change)
