"""Defines the operations of a workload's transactions, independent of any database.

A *program* is one transaction. It is a tuple of operations if all are known in advance. Otherwise
it is a *conversation*: a generator that receives the result of each operation before it yields the
next one, so that writes can depend on earlier reads.
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
"""The value of a row that does not exist: a delete writes this value, and a read returns it."""


class Read(Struct, frozen=True):
    """Read a row. The result is its value, ``None`` (as loaded), a list, or ``DELETED``."""

    key: str


class Several(Struct, frozen=True):
    """The result of a read of a key that has several rows; each row is recorded as a read."""

    values: tuple[Any, ...]


class Write(Struct, frozen=True):
    """Update a row. The result is whether the row exists."""

    key: str
    value: int


class Append(Struct, frozen=True):
    """Append an element to the list of a row."""

    key: str
    value: int


class Insert(Struct, frozen=True):
    """Insert a row. The transaction fails if the row exists already."""

    key: str
    value: int


class Swap(Struct, frozen=True):
    """Write a key if its value is the expected one, by one statement if the database has one.

    The result is whether the key was written. A transaction with a swap has no other operation,
    because the write takes effect at once.
    """

    key: str
    expected: int | None
    value: int


class Delete(Struct, frozen=True):
    """Delete a row. The result is whether the row existed."""

    key: str


class Scan(Struct, frozen=True):
    """Read neighbouring rows by one statement. The result maps keys to values."""

    keys: tuple[str, ...]


class Select(Struct, frozen=True):
    """Read the rows whose values are in a range, by one statement. The result maps keys to values.

    Workloads with this operation load no rows, and record a missing row as such, not as a value.
    """

    low: int
    high: int


class Change(Struct, frozen=True):
    """Update the rows whose values are in a range, by one statement. The result is their keys.

    The writes are not known in advance, so only conversations have this operation. The history does
    not say which rows the predicate did not match.
    """

    low: int
    high: int
    value: int


class Wait(Struct, frozen=True):
    """Keep the transaction open until this many other transactions have ended."""

    transactions: int


class Abort(Struct, frozen=True):
    """Roll back the transaction."""


class Undone(Struct, frozen=True):
    """Write, and undo the write by a savepoint, so that no transaction may ever read it."""

    operation: Write | Append | Insert | Delete


Operation: TypeAlias = (
    Abort | Append | Change | Delete | Insert | Read | Scan | Select | Swap | Undone | Wait | Write
)
Program: TypeAlias = tuple[Operation, ...] | Generator[Operation, Any, None]

Recorded: TypeAlias = tuple[str, Any, Any]
"""A recorded operation: ``("r", key, value)``, ``("w", key, value)``, ``("append", key, value)``,
``("insert", key, row)``, ``("delete", key, None)``, or ``("rp", predicate, rows)`` with a literal
and a dictionary."""

_BOUND: Final = re.compile(r"[<>]= :value (-?\d+)")


def between(low: int, high: int) -> Literal:
    """Return the predicate that a row's value is in a range; it is recorded in place of a key."""
    return Literal(f"[:between :value {low} {high}]")


def bounds_of(predicate: str) -> tuple[int, int]:
    """Return the range of a predicate that :func:`between` made."""
    low, high = _BOUND.findall(predicate)
    return int(low), int(high)


def conversation(
    program: Generator[Operation, Any, None],
    change: Callable[[Operation], tuple[Operation, ...]],
) -> Generator[Operation, Any, None]:
    """Return a conversation that replaces each operation of another one.

    Args:
        program: the conversation, which receives the result of the last replacement of each
            operation.
        change: a function that returns the replacements of an operation; an empty tuple ends the
            conversation.
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
    """Return the program with an undone write before a share of its updates and appends.

    Args:
        program: the program to change.
        random: the source of the random choice of updates and appends.
        share: the share of the updates and appends, from 0 to 1.
        value: an iterator over the values of the undone writes.
    """

    def undone(operation: Operation) -> tuple[Operation, ...]:
        if isinstance(operation, Write | Append) and random.random() < share:
            return (Undone(replace(operation, value=next(value))), operation)
        return (operation,)

    return _changed(program, undone)


def only_reads(program: Program) -> Program:
    """Return the program for a client that may only read: each write becomes a read of its key."""

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
