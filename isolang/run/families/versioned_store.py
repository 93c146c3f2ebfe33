"""Implements a small multi-version database in memory, with exact isolation levels.

At ``serializable`` and ``snapshot``, a transaction reads the versions that were current at its
BEGIN. At ``read committed`` it reads the newest committed versions, and at ``read uncommitted`` the
newest versions, whether committed or not. COMMIT fails if it would violate the level. At
``snapshot``, it fails if another transaction has, since BEGIN, written a key that this transaction
writes. At ``serializable``, it also fails if another transaction has written a key that this
transaction read, or a new key in a range that this transaction scanned. At every level, it fails if
another transaction has appended to the same list. Therefore the order of COMMITs at
``serializable`` is the serial order, and it agrees with real time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import KeysView, Mapping
from typing import Any, Final

from isolang.run.operation import DELETED, SelectWhere
from isolang.run.outcome import RolledBack

_NONE: Final = (0, DELETED)
_UNWRITTEN: Final = [_NONE]
_LAST: Final = "\U0010ffff"  # a string greater than all keys
_OF_BEGIN: Final = ("serializable", "snapshot")  # the levels with snapshots


class VersionedStore:
    """The versions of all keys, with the times of their COMMITs; the class is not thread-safe.

    Attributes:
        now: the time of the last COMMIT. COMMITs are numbered from 1, and these numbers are the
            times.
        of: for each key that has ever been written, its versions in order, each with its time.
        dirty: for each key, the uncommitted writes by transactions at ``read uncommitted``.
        taken: for the key of each locked row, the open transaction that has locked it.
    """

    def __init__(self, first: Mapping[str, Any] | None = None) -> None:
        """Create a store that contains the first version of each key."""
        self.now = 0
        self.of: dict[str, list[tuple[int, Any]]] = {}
        self.dirty: dict[str, list[tuple[StoreTransaction, Any]]] = {}
        self.taken: dict[str, StoreTransaction] = {}
        self._replaced: list[tuple[str, Any]] = []  # each replaced version with its key
        self._behind: list[int] = [0]  # the length of `_replaced` at each time
        self._numbers: list[tuple[int, str]] = []  # the newest versions that are numbers, sorted
        self._keys = sorted(first or ())  # all keys that have ever been written, sorted
        for key, value in (first or {}).items():
            self.of[key] = [(0, value)]
            if isinstance(value, int):
                insort(self._numbers, (value, key))

    def commit(self, written: Mapping[str, Any]) -> None:
        """Add a new version of each given key, all in one COMMIT."""
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
        """Return the newest versions that are numbers in a range, with their keys, sorted."""
        numbers = self._numbers
        return numbers[bisect_left(numbers, (low, "")) : bisect_right(numbers, (high, _LAST))]

    def keys(self, low: str, high: str) -> list[str]:
        """Return the keys from ``low`` to ``high`` that have ever been written, sorted."""
        return self._keys[bisect_left(self._keys, low) : bisect_right(self._keys, high)]

    def replaced_since(self, time: int) -> dict[str, Any]:
        """Return the keys written after a time, with their versions at that time."""
        # The first change to a key after that time replaced the version current at that time.
        return dict(self._replaced[: self._behind[time] - len(self._replaced) - 1 : -1])


class StoreTransaction:
    """An open transaction, with its reads and writes so far."""

    def __init__(self, versions: VersionedStore, level: str) -> None:
        self._versions, self._level, self._began = versions, level, versions.now
        self._of_begin = level in _OF_BEGIN
        self._looked, self._old = self._began, dict[str, Any]()  # used only by `_replaced`
        self._seen: set[str] = set()
        self._ranges: list[tuple[str, str]] = []  # the key ranges scanned so far
        self._written: dict[str, Any] = {}

    def read(self, key: str) -> Any:
        """Return the value that the transaction reads for a key at its level."""
        if key in self._written:
            return self._written[key]
        self._seen.add(key)
        return self._shown(key)

    def _shown(self, key: str) -> Any:
        """Return the value that the transaction reads if it has not written the key itself."""
        if self._level == "read uncommitted" and (dirty := self._versions.dirty.get(key)):
            return dirty[-1][1]
        versions = self._versions.of.get(key, _UNWRITTEN)
        last = -1
        if self._of_begin:
            while versions[last][0] > self._began:
                last -= 1
        return versions[last][1]

    def _replaced(self) -> dict[str, Any]:
        """Return the keys that others have written since BEGIN, with their versions at BEGIN."""
        if self._looked < self._versions.now:
            self._old = self._versions.replaced_since(self._looked) | self._old
            self._looked = self._versions.now
        return self._old

    def scan(self, low: str, high: str) -> dict[str, Any]:
        """Return the values that the transaction reads for all keys from ``low`` to ``high``."""
        self._ranges.append((low, high))
        keys = self._versions.keys(low, high)
        own = {*self._written, *self._versions.dirty}
        keys += sorted(key for key in own.difference(keys) if low <= key <= high)
        return {key: value for key in keys if (value := self.read(key)) != DELETED}

    def select(self, low: int, high: int) -> dict[str, int]:
        """Return the keys whose values, as the transaction reads them, are numbers in a range."""
        self._ranges.append(("", _LAST))
        others: dict[str, Any] = {}  # keys whose older versions the transaction reads
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

    def where(self, where: SelectWhere) -> dict[str, Any]:
        """Return the keys in a range whose values satisfy a condition, with these values."""
        found = self.scan(where.keys[0], where.keys[-1])
        return {key: value for key, value in found.items() if _satisfies(value, where)}

    def change(self, low: int, high: int, value: int) -> list[str]:
        """Write a new value to all keys returned by ``select``, and return these keys."""
        keys = list(self.select(low, high))
        for key in keys:
            self.write(key, value)
        return keys

    def remove(self, low: int, high: int) -> list[str]:
        """Delete all keys returned by ``select``, and return these keys."""
        keys = list(self.select(low, high))
        for key in keys:
            self.write(key, DELETED)
        return keys

    def take(self, low: int, high: int) -> dict[str, int]:
        """Lock and return the first row from ``select`` that no other transaction has locked.

        Only this row counts as read by the transaction, not the whole range.
        """
        found = self.select(low, high)
        self._ranges.pop()
        for key, value in found.items():
            if self._versions.taken.setdefault(key, self) is self:
                if key not in self._written:
                    self._seen.add(key)
                return {key: value}
        return {}

    def write(self, key: str, value: Any) -> None:
        """Write a value, hidden from others until COMMIT, except at ``read uncommitted``.

        Raises:
            RolledBack: another open transaction has appended to the same list.
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
            RolledBack: the commit would violate the level.
        """
        self.roll_back()
        if self._is_lost(self._replaced().keys()):
            raise RolledBack("another transaction has changed data that this one used")
        self._versions.commit(self._written)

    def _is_lost(self, changed: KeysView[str]) -> bool:
        """Return whether COMMIT would violate the level because others have changed these keys."""
        if not self._of_begin:
            return any(isinstance(self._written.get(key), list) for key in changed)
        if not changed.isdisjoint(self._written):
            return True
        return self._level == "serializable" and (
            not changed.isdisjoint(self._seen)
            or any(low <= key <= high for low, high in self._ranges for key in changed)
        )

    def roll_back(self) -> None:
        """Discard the uncommitted writes and release the locks."""
        taken = self._versions.taken
        for key in [key for key, owner in taken.items() if owner is self]:
            del taken[key]
        if self._level == "read uncommitted":
            for key in self._written:
                kept = [one for one in self._versions.dirty.get(key, ()) if one[0] is not self]
                self._versions.dirty[key] = kept


def _satisfies(value: Any, where: SelectWhere) -> bool:
    """Return whether a value satisfies a condition, as in SQL: NULL satisfies only ``null``."""
    if value is None or where.condition == "null":
        return value is None and where.condition == "null"
    return where.condition == "not null" or not where.low <= value <= where.high
