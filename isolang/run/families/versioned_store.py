"""Implements a small multi-version database in memory, which provides its levels exactly.

At ``serializable`` and ``snapshot`` a transaction reads the versions at its BEGIN, at ``read
committed`` the newest committed versions, and at ``read uncommitted`` the newest versions of all.
COMMIT fails if it would break the level. At ``snapshot`` it fails if another transaction has, since
BEGIN, written a key that this transaction writes. At ``serializable`` it also fails if another
transaction has written a key that this transaction read, or a new key in a range that it scanned.
At every level it fails if another transaction has appended to the same list. So at ``serializable``
the order of COMMITs is the serial order, and agrees with real time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import KeysView, Mapping
from typing import Any, Final

from isolang.run.operation import DELETED
from isolang.run.outcome import RolledBack

_NONE: Final = (0, DELETED)
_UNWRITTEN: Final = [_NONE]
_LAST: Final = "\U0010ffff"  # greater than all keys
_OF_BEGIN: Final = ("serializable", "snapshot")  # the levels that read the versions at BEGIN


class VersionedStore:
    """The versions of each key, with the time of their COMMIT; only one thread at a time.

    Attributes:
        now: the time of the last COMMIT; COMMITs are numbered from 1.
        of: the versions of each written key, by time.
        dirty: the uncommitted writes of transactions at ``read uncommitted``, by key.
    """

    def __init__(self, first: Mapping[str, Any] | None = None) -> None:
        """Create a store with a first version of each key."""
        self.now = 0
        self.of: dict[str, list[tuple[int, Any]]] = {}
        self.dirty: dict[str, list[tuple[Changes, Any]]] = {}
        self._replaced: list[tuple[str, Any]] = []  # written keys with replaced versions
        self._behind: list[int] = [0]  # the length of `_replaced` at each time
        self._numbers: list[tuple[int, str]] = []  # the newest versions that are numbers, ascending
        self._keys = sorted(first or ())  # all written keys, ascending
        for key, value in (first or {}).items():
            self.of[key] = [(0, value)]
            if isinstance(value, int):
                insort(self._numbers, (value, key))

    def commit(self, written: Mapping[str, Any]) -> None:
        """Add newest versions of keys, by one COMMIT."""
        self.now += 1
        numbers = self._numbers
        for key, value in written.items():
            versions = self.of.get(key)
            if versions is None:
                versions = self.of[key] = [_NONE]
                insort(self._keys, key)
            old = versions[-1][1]
            if isinstance(old, int):
                del numbers[bisect_left(numbers, (old, key))]
            if isinstance(value, int):
                insort(numbers, (value, key))
            versions.append((self.now, value))
            self._replaced.append((key, old))
        self._behind.append(len(self._replaced))

    def newest(self, low: int, high: int) -> list[tuple[int, str]]:
        """Return the newest versions that are numbers in a range, with their keys, in order."""
        numbers = self._numbers
        return numbers[bisect_left(numbers, (low, "")) : bisect_right(numbers, (high, _LAST))]

    def keys(self, low: str, high: str) -> list[str]:
        """Return the written keys from ``low`` to ``high``, ascending."""
        return self._keys[bisect_left(self._keys, low) : bisect_right(self._keys, high)]

    def replaced_since(self, time: int) -> dict[str, Any]:
        """Return the keys that were written after a time, with their versions at that time."""
        # The first change of a key after that time has the key's version at that time.
        return dict(self._replaced[: self._behind[time] - len(self._replaced) - 1 : -1])


class Changes:
    """A transaction, with its reads and writes so far."""

    def __init__(self, versions: VersionedStore, level: str) -> None:
        self._versions, self._level, self._began = versions, level, versions.now
        self._of_begin = level in _OF_BEGIN
        self._looked, self._old = self._began, dict[str, Any]()  # `_replaced` uses these
        self._seen: set[str] = set()
        self._ranges: list[tuple[str, str]] = []  # the ranges of keys that were scanned
        self._written: dict[str, Any] = {}

    def read(self, key: str) -> Any:
        """Return the version that the transaction reads at its level."""
        if key in self._written:
            return self._written[key]
        self._seen.add(key)
        return self._shown(key)

    def _shown(self, key: str) -> Any:
        """Return the version of other transactions that this one reads at its level."""
        if self._level == "read uncommitted" and (dirty := self._versions.dirty.get(key)):
            return dirty[-1][1]
        versions = self._versions.of.get(key, _UNWRITTEN)
        last = -1
        if self._of_begin:
            while versions[last][0] > self._began:
                last -= 1
        return versions[last][1]

    def _replaced(self) -> dict[str, Any]:
        """Return the keys that others wrote since BEGIN, with their versions at BEGIN."""
        if self._looked < self._versions.now:
            self._old = self._versions.replaced_since(self._looked) | self._old
            self._looked = self._versions.now
        return self._old

    def scan(self, low: str, high: str) -> dict[str, Any]:
        """Return the versions that the transaction reads of the keys from ``low`` to ``high``."""
        self._ranges.append((low, high))
        keys = self._versions.keys(low, high)
        own = {*self._written, *self._versions.dirty}
        keys += sorted(key for key in own.difference(keys) if low <= key <= high)
        return {key: value for key in keys if (value := self.read(key)) != DELETED}

    def select(self, low: int, high: int) -> dict[str, int]:
        """Return the versions that the transaction reads and that are numbers in a range."""
        self._ranges.append(("", _LAST))
        others: dict[str, Any] = {}  # keys whose newest version it does not read
        if self._of_begin:
            others = self._replaced()
        elif self._level == "read uncommitted":
            others = {key: self._shown(key) for key in self._versions.dirty}
        if self._written:
            others = others | self._written
        newest = self._versions.newest(low, high)
        found = [(key, value) for value, key in newest if key not in others]
        found += [
            (key, value)
            for key, value in others.items()
            if isinstance(value, int) and low <= value <= high
        ]
        found.sort()
        return dict(found)

    def change(self, low: int, high: int, value: int) -> list[str]:
        """Overwrite the versions that ``select`` returns; return their keys."""
        keys = list(self.select(low, high))
        for key in keys:
            self.write(key, value)
        return keys

    def write(self, key: str, value: Any) -> None:
        """Write a version, which other transactions read after COMMIT.

        Raises:
            RolledBack: another transaction has appended to the list.
        """
        dirty = self._versions.dirty.get(key, ())
        if isinstance(value, list) and any(one is not self for one, _ in dirty):
            raise RolledBack("another transaction is appending")
        self._written[key] = value
        if self._level == "read uncommitted":
            self._versions.dirty.setdefault(key, []).append((self, value))

    def commit(self) -> None:
        """Commit the transaction.

        Raises:
            RolledBack: the commit would break the level.
        """
        self.roll_back()
        if self._is_lost(self._replaced().keys()):
            raise RolledBack("another transaction has changed what this one used")
        self._versions.commit(self._written)

    def _is_lost(self, changed: KeysView[str]) -> bool:
        """Return whether changes of these keys by other transactions break the level."""
        if not self._of_begin:
            return any(isinstance(self._written.get(key), list) for key in changed)
        if not changed.isdisjoint(self._written):
            return True
        return self._level == "serializable" and (
            not changed.isdisjoint(self._seen)
            or any(low <= key <= high for low, high in self._ranges for key in changed)
        )

    def roll_back(self) -> None:
        """Discard the uncommitted writes."""
        if self._level == "read uncommitted":
            for key in self._written:
                kept = [one for one in self._versions.dirty.get(key, ()) if one[0] is not self]
                self._versions.dirty[key] = kept
