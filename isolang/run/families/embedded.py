"""Provides base classes for embedded engines that store a string per key in a temporary folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar

from isolang.run.adapter import BaseClient, BaseTarget
from isolang.run.operation import DELETED, bounds_in
from isolang.run.outcome import RolledBack
from isolang.run.target import Level, TargetError

if TYPE_CHECKING:
    from isolang.run.address import Address


class EmbeddedTarget(BaseTarget):
    """The base class for an in-process engine; each run gets a new database.

    Attributes:
        distribution: the name of the Python package that contains the engine.
        folder: the folder that contains the engine's files; each ``setup`` creates a new folder.
    """

    name: ClassVar[str]
    levels: ClassVar[tuple[Level, ...]]
    distribution: ClassVar[str]
    lacks: ClassVar = frozenset({"savepoints", "processes"})

    def __init__(self, address: Address, prefix: str) -> None:
        super().__init__(address, prefix)
        self.folder = ""

    def start(self) -> None:
        """Import the engine; raise an error if it is not installed."""
        if self.address.host or self.address.database:
            raise TargetError(
                f"{self.name}: takes no path, because it always uses a temporary folder (got "
                f"{self.address})"
            )
        self.import_engine()

    def import_engine(self) -> None:
        """Import the engine."""
        raise NotImplementedError

    def version(self) -> str:
        """Return the name and version of the Python package."""
        return f"{self.distribution} {version(self.distribution)}"

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        """Create a database that stores an empty string for each key."""
        self.lists = frozenset(lists)
        self.folder = tempfile.mkdtemp(prefix="isocheck-")
        self.create(os.path.join(self.folder, "data"), [*registers, *lists])

    def create(self, path: str, keys: Sequence[str]) -> None:
        """Create a database at this path that maps each key to an empty string."""
        raise NotImplementedError

    def remove(self) -> None:
        """Close the database, and remove the folder that contains it."""
        if self.folder:
            self.close_database()
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = ""

    def close_database(self) -> None:
        """Close the database."""

    def statement(self, operation: str, key: str, value: object) -> str:
        """Return the engine call that performed a recorded operation, for explanations."""
        if operation == "scan":
            low, high = bounds_in(key)
            return f"scan, value between {low} and {high}"
        if operation == "r":
            return f"get {key}"
        return f"delete {key}" if value == DELETED else f"{operation} {key} {value}"


class EmbeddedClient(BaseClient):
    """The base class for a session that reads and writes strings by calling the engine."""

    def __init__(self, target: EmbeddedTarget) -> None:
        self.target = target

    def waits(self) -> bool | None:
        """Return false, because engines detect conflicts at COMMIT and never wait for locks."""
        return False

    # --- methods that adapters define ---

    def get(self, key: str) -> str | None:
        """Return the text that the transaction sees for a key; ``None`` if the key is missing."""
        raise NotImplementedError

    def put(self, key: str, text: str | None) -> None:
        """Set the text of a key; if the text is ``None``, delete the key."""
        raise NotImplementedError

    def scan_texts(self, low: str, high: str) -> dict[str, str]:
        """Return the texts of all keys from ``low`` to ``high``, read by a single call."""
        raise NotImplementedError

    # --- operations ---

    def value(self, key: str, text: str | None) -> Any:
        """Parse the value of a key from its stored text."""
        if text is None:
            return DELETED
        numbers = [int(one) for one in text.split()]
        return numbers if key in self.target.lists else next(iter(numbers), None)

    def read(self, key: str) -> Any:
        """Return the value that the transaction sees for a key."""
        return self.value(key, self.get(key))

    def write(self, key: str, value: int) -> bool:
        """Set the value of a key, whether or not it exists, and return true."""
        self.put(key, str(value))
        return True

    def append(self, key: str, value: int) -> bool:
        """Append to a list by a read and a write; return false if the key does not exist."""
        found = self.get(key)
        if found is not None:
            self.put(key, f"{found} {value}")
        return found is not None

    def insert(self, key: str, value: int) -> None:
        """Set the value of a key; raise an error if the key already exists."""
        if self.get(key) is not None:
            raise RolledBack(f"{key} already exists")
        self.put(key, str(value))

    def delete(self, key: str) -> bool:
        """Delete a key, and return true; if the key does not exist, return false."""
        there = self.get(key) is not None
        if there:
            self.put(key, None)
        return there

    def scan(self, low: str, high: str) -> dict[str, Any]:
        """Return the values of all keys from ``low`` to ``high``."""
        return {key: self.value(key, text) for key, text in self.scan_texts(low, high).items()}

    def select(self, low: int, high: int) -> dict[str, Any]:
        """Return the keys whose values are in a range, with their values, by reading all keys."""
        rows = self.scan("", "\U0010ffff").items()
        return {key: one for key, one in rows if isinstance(one, int) and low <= one <= high}

    def change(self, low: int, high: int, value: int) -> list[str]:
        """Set all keys whose values are in a range to a new value, and return these keys."""
        return [key for key in self.select(low, high) if self.write(key, value)]
