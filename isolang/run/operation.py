"""Defines the operations that make up a workload's transactions, for any database.

A *program* is one transaction. It is a tuple if all its operations are known in advance. Otherwise
it is a *conversation*: a generator that receives the result of each operation before it yields the
next operation. Its writes can therefore depend on earlier reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Generator, Iterator, Sequence
from random import Random
from typing import Any, Final, TypeAlias
from typing import Literal as OneOf

from msgspec import Struct
from msgspec.structs import replace

from isolang.history.statements import Lock
from isolang.history.values import Keyword, Literal, atom_text, encode

DELETED: Final = Keyword("deleted")
"""The value written by a delete, and returned by a read of a missing row."""


NULL: Final = Literal("{:value nil}")
"""A row with NULL in the form used by histories: its column ``value`` is nil."""

Condition: TypeAlias = OneOf["null", "not null", "outside"]
"""A condition on a row's value: it is NULL, it is not NULL, or it is outside a range.

The last condition is ``NOT (v BETWEEN low AND high)``, which is never true for NULL.
"""


class Read(Struct, frozen=True):
    """Read a row. The result is a number, a list, ``None`` (initial) or ``DELETED`` (no row).

    ``path`` is the number of the access path to the row; 0 is the usual access path. ``lock`` locks
    the row until the transaction ends, as FOR UPDATE and FOR SHARE do.
    """

    key: str
    path: int = 0
    lock: Lock = ""


class SeveralRows(Struct, frozen=True):
    """The result of a read that found several rows for one key; each row is recorded as a read."""

    values: tuple[Any, ...]


class Write(Struct, frozen=True):
    """Update a row. The result is true if the row exists.

    ``path`` is the number of the statement's form; 0 is the usual form.
    """

    key: str
    value: int
    path: int = 0


class SetNull(Struct, frozen=True):
    """Set the value of a row to NULL. The result is true if the row exists."""

    key: str


class Append(Struct, frozen=True):
    """Append an element to the list of a row."""

    key: str
    value: int


class Insert(Struct, frozen=True):
    """Insert a row. The transaction fails if the row already exists."""

    key: str
    value: int


class InsertRows(Struct, frozen=True):
    """Insert several rows in one statement. The transaction fails if any of them already exists."""

    rows: tuple[tuple[str, int], ...]


class Upsert(Struct, frozen=True):
    """Update a row, or insert it if it does not exist, in one statement.

    If ``merge`` is true, the statement is MERGE, otherwise an INSERT that updates existing rows.
    """

    key: str
    value: int
    merge: bool = False


class Swap(Struct, frozen=True):
    """Compare and set: write a key if it has the expected value.

    A client sends a single statement for it if the database has one. The result is true if the key
    was written. A transaction with a swap has no other operation, because the write takes effect
    immediately, before COMMIT.
    """

    key: str
    expected: int | None
    value: int


class Delete(Struct, frozen=True):
    """Delete a row. The result is true if the row existed.

    ``cascades`` are the keys of the child rows that a foreign key deletes with the row. The program
    has locked the row and then read its child rows, so no other transaction can add or remove a
    child row. ``path`` is the number of the access path to the row; 0 is the usual access path.
    """

    key: str
    cascades: tuple[str, ...] = ()
    path: int = 0


class Scan(Struct, frozen=True):
    """Read the rows of neighbouring keys in one statement. The result maps keys to values."""

    keys: tuple[str, ...]
    path: int = 0


class SelectRange(Struct, frozen=True):
    """Read the rows whose values are in a range, in one statement. The result maps keys to values.

    With ``keys``, which are neighbours, the statement also restricts the keys to the range from the
    first to the last of them. Workloads with this operation begin without rows, or with rows whose
    value is NULL. They record a missing row as missing rather than as the value ``DELETED``.
    """

    low: int
    high: int
    path: int = 0
    keys: tuple[str, ...] = ()


class SelectWhere(Struct, frozen=True):
    """Read the rows of neighbouring keys whose values satisfy a condition, in one statement.

    The result maps keys to values. Only the condition ``outside`` uses ``low`` and ``high``.
    """

    condition: Condition
    keys: tuple[str, ...]
    low: int = 0
    high: int = 0
    path: int = 0


class TakeRow(Struct, frozen=True):
    """Lock and read one row whose value is in a range, skipping rows locked by others.

    The statement is SELECT … LIMIT 1 FOR UPDATE SKIP LOCKED, as sent by queue workers. The result
    maps the row's key to its value, or is empty. The history records a read of this row only: any
    other row may have been skipped, so its absence from the result says nothing about the database.
    """

    low: int
    high: int


class UpdateRange(Struct, frozen=True):
    """Update the rows whose values are in a range, in one statement. The result is their keys.

    The writes are not known in advance, so only conversations can contain this operation. The
    history does not record which rows the predicate failed to match.
    """

    low: int
    high: int
    value: int


class DeleteRange(Struct, frozen=True):
    """Delete the rows whose values are in a range, in one statement. The result is their keys.

    As with :class:`UpdateRange`, only conversations can contain this operation, and the history
    does not record which rows the predicate failed to match.
    """

    low: int
    high: int


class Wait(Struct, frozen=True):
    """Keep the transaction open until ``transactions`` other transactions have ended."""

    transactions: int


class Pause(Struct, frozen=True):
    """Keep the transaction open for a few milliseconds, like a client busy with a computation."""

    milliseconds: float


class Abort(Struct, frozen=True):
    """Roll back the transaction on purpose."""


class UndoneWrite(Struct, frozen=True):
    """Write a row, and roll back to a savepoint before the write, so nobody may ever read it."""

    operation: Write | Append | Insert | Upsert | Delete


Operation: TypeAlias = (
    Abort
    | Append
    | UpdateRange
    | SetNull
    | Delete
    | Insert
    | InsertRows
    | Pause
    | Upsert
    | Read
    | DeleteRange
    | Scan
    | SelectRange
    | Swap
    | TakeRow
    | UndoneWrite
    | Wait
    | SelectWhere
    | Write
)
Program: TypeAlias = tuple[Operation, ...] | Generator[Operation, Any, None]

RecordedOperation: TypeAlias = tuple[str, Any, Any]
"""An operation as a recorder writes it: ``("r", key, value)``, ``("w", key, value)``,
``("append", key, value)``, ``("insert", key, row)``, ``("delete", key, None)``, or ``("rp",
predicate, rows)`` with a literal and a dictionary."""

_MAX_PATHS: Final = 1 << 16  # an upper bound on the number of access paths of any target
_BOUND: Final = re.compile(r"[<>]= :value (-?\d+)")
_KEY: Final = re.compile(r'= :key "([^"]*)"')


def range_predicate(low: int, high: int, keys: Sequence[str] = ()) -> Literal:
    """Return the predicate "the value is from ``low`` to ``high``" as recorded in histories.

    If ``keys`` are given, a matching row must also have one of these keys.
    """
    value = f"[:between :value {low} {high}]"
    if not keys:
        return Literal(value)
    named = " ".join(atom_text(*encode(key, "a key")) for key in keys)
    return Literal(f"[:and [:in :key [{named}]] {value}]")


def predicate_of(where: SelectWhere) -> Literal:
    """Return the predicate of a :class:`SelectWhere` query as recorded in histories."""
    conditions = {
        "null": "[:null :value]",
        "not null": "[:not [:null :value]]",
        "outside": f"[:not [:between :value {where.low} {where.high}]]",
    }
    named = " ".join(atom_text(*encode(key, "a key")) for key in where.keys)
    return Literal(f"[:and [:in :key [{named}]] {conditions[where.condition]}]")


def condition_in(predicate: str) -> Condition | None:
    """Return the condition in a recorded predicate; ``None`` if the predicate is a range."""
    if ":null" in predicate:
        return "not null" if "[:not [:null" in predicate else "null"
    return "outside" if "[:not " in predicate else None


_CHILD: Final = ">"


def child_key(parent: str, name: str) -> str:
    """Return the key of a child row, whose foreign key refers to its parent's row."""
    return f"{parent}{_CHILD}{name}"


def parent_key(key: str) -> str:
    """Return the key of a child row's parent; for any other row, return an empty string."""
    return key.partition(_CHILD)[0] if _CHILD in key else ""


def bounds_in(predicate: str) -> tuple[int, int]:
    """Return the bounds of the range in a predicate from :func:`range_predicate`."""
    low, high = _BOUND.findall(predicate)
    return int(low), int(high)


def keys_in(predicate: str) -> tuple[str, ...]:
    """Return the keys of the second range in a predicate from :func:`range_predicate`."""
    return tuple(_KEY.findall(predicate))


def map_operations(
    program: Generator[Operation, Any, None],
    change: Callable[[Operation], tuple[Operation, ...]],
) -> Generator[Operation, Any, None]:
    """Replace each operation of a conversation with other operations.

    Args:
        program: the conversation to change. For each of its operations, it receives the result of
            that operation's last replacement.
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
    """Return a program in which an undone write precedes some of the updates and appends.

    Args:
        share: the share of the updates and appends preceded by an undone write, from 0 to 1.
    """

    def undone(operation: Operation) -> tuple[Operation, ...]:
        if isinstance(operation, Write | Append) and random.random() < share:
            return (UndoneWrite(replace(operation, value=next(value))), operation)
        return (operation,)

    return _map_program(program, undone)


def without_savepoints(program: Program) -> Program:
    """Return the program for a database without savepoints: each undone write becomes a read."""

    def reading(operation: Operation) -> tuple[Operation, ...]:
        return (
            (Read(operation.operation.key),) if isinstance(operation, UndoneWrite) else (operation,)
        )

    return _map_program(program, reading)


def with_available_features(program: Program, offers: Container[str]) -> Program:
    """Return the program with substitutes for the statements that a database lacks.

    Args:
        offers: the features of the database, as listed in ``offers`` of its target. Each statement
            that needs another feature is replaced by a similar statement: a SELECT replaces a
            statement that skips locked rows or deletes a range, an UPDATE replaces an upsert, and
            several INSERTs replace an INSERT of several rows. A read of the parent replaces an
            operation on a child row.
    """

    def fitting(operation: Operation) -> tuple[Operation, ...]:
        match operation:
            case UndoneWrite(undone):
                (fit,) = fitting(undone)
                if isinstance(fit, Append | Delete | Insert | Upsert | Write):
                    return (UndoneWrite(fit),)
                return (fit,)
            case Read() | Write() | Insert() | Delete() if "cascades" not in offers and (
                parent := parent_key(operation.key)
            ):
                return (Read(parent),)
            case Delete(key, cascades) if cascades and "cascades" not in offers:
                return (Delete(key),)
            case Read(key, path, lock) if lock and "row locks" not in offers:
                return (Read(key, path),)
            case SelectRange(low, high, path, keys) if keys and "two ranges" not in offers:
                return (SelectRange(low, high, path),)
            case SelectWhere(_, keys) if "nulls" not in offers:
                return (Scan(keys),)
            case SetNull(key) if "nulls" not in offers:
                return (Read(key),)
            case TakeRow(low, high) if "skip locked" not in offers:
                return (SelectRange(low, high),)
            case Upsert(key, value, merge) if ("merge" if merge else "upsert") not in offers:
                return (Upsert(key, value) if merge and "upsert" in offers else Write(key, value),)
            case InsertRows(rows) if "rows at once" not in offers:
                return tuple(Insert(key, value) for key, value in rows)
            case DeleteRange(low, high) if "rows at once" not in offers:
                return (SelectRange(low, high),)
        return (operation,)

    return _map_program(program, fitting)


def with_pauses(program: Program, random: Random, share: float) -> Program:
    """Return a program that pauses for up to four milliseconds before some of its operations.

    Args:
        share: the share of operations that follow a pause, from 0 to 1.
    """

    def pausing(operation: Operation) -> tuple[Operation, ...]:
        if random.random() < share:
            return (Pause(4 * random.random()), operation)
        return (operation,)

    return _map_program(program, pausing)


def with_paths(
    program: Program, random: Random, *, reads: bool = True, writes: bool = False
) -> Program:
    """Return the program with a random access path for reads, or a random form for writes."""

    def on_path(operation: Operation) -> tuple[Operation, ...]:
        finds = reads and isinstance(operation, Read | Delete | Scan | SelectRange | SelectWhere)
        if finds or (writes and isinstance(operation, Write)):
            return (replace(operation, path=random.randrange(1, _MAX_PATHS)),)
        return (operation,)

    return _map_program(program, on_path)


def as_read_only(program: Program) -> Program:
    """Return a program for a read-only client: each write becomes a read of its key."""

    def reading(operation: Operation) -> tuple[Operation, ...]:
        match operation:
            case Abort():
                return ()
            case UpdateRange(low, high) | DeleteRange(low, high) | TakeRow(low, high):
                return (SelectRange(low, high),)
            case InsertRows(rows):
                return tuple(Read(key) for key, _ in rows)
            case Read(key, path):
                return (Read(key, path),)
            case Append() | SetNull() | Delete() | Insert() | Upsert() | Swap() | Write():
                return (Read(operation.key),)
            case UndoneWrite(undone):
                return (Read(undone.key),)
        return (operation,)

    return _map_program(program, reading)


def _map_program(program: Program, change: Callable[[Operation], tuple[Operation, ...]]) -> Program:
    if isinstance(program, tuple):
        return tuple(one for operation in program for one in change(operation))
    return map_operations(program, change)
