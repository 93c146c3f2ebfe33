"""What a transaction of a workload asks a database to do, one step at a time.

A *program* is one transaction: a tuple of operations where they are known before, or a generator
that is sent the result of each operation before it gives the next one (what an operation wrote may
then depend on what an earlier one read). Programs know nothing of databases.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, TypeAlias

from msgspec import Struct

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


class Delete(Struct, frozen=True):
    """Delete a row; the result is whether it was there."""

    key: str


class Scan(Struct, frozen=True):
    """Read neighbouring rows by one statement; the result maps keys to values."""

    keys: tuple[str, ...]


class Wait(Struct, frozen=True):
    """Keep the transaction open until so many other transactions have ended."""

    transactions: int


class Abort(Struct, frozen=True):
    """Roll the transaction back."""


Operation: TypeAlias = Abort | Read | Write | Append | Insert | Delete | Scan | Wait
Program: TypeAlias = tuple[Operation, ...] | Generator[Operation, Any, None]
