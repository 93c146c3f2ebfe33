"""A small database in memory, whose levels are known.

It keeps versions. A transaction reads, by its level: ``serializable`` and ``snapshot`` the versions
of the moment of its BEGIN, ``read committed`` the newest committed ones, ``read uncommitted`` the
newest of all. COMMIT refuses what would break the level: at ``snapshot`` a key that another
transaction wrote since BEGIN, at ``serializable`` also one that was only read, or that is new in
what was scanned; lists that another transaction has appended to at every level. So ``serializable``
is so in the order of COMMIT, which is real time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import KeysView, Mapping
from typing import Any, Final

from isolang.run.operation import DELETED
from isolang.run.outcome import RolledBack

_NONE: Final = (0, DELETED)
_UNWRITTEN: Final = [_NONE]
_LAST: Final = "\U0010ffff"  # behind all keys
_OF_BEGIN: Final = ("serializable", "snapshot")  # levels that read the versions of that moment


class VersionedStore:
    """The database: of each key the versions with the time of their COMMIT; one thread at a time.

    Attributes:
        now: the time of the last COMMIT; COMMITs are numbered from 1.
        of: of each key that was written, in the order of time.
        dirty: of each key what transactions at ``read uncommitted`` have written and not committed.
    """

    def __init__(self, first: Mapping[str, Any] | None = None) -> None:
        """Begin with a version of each of these keys."""
        self.now = 0
        self.of: dict[str, list[tuple[int, Any]]] = {}
        self.dirty: dict[str, list[tuple[Changes, Any]]] = {}
        self._replaced: list[tuple[str, Any]] = []  # by COMMITs: keys and their older versions
        self._behind: list[int] = [0]  # of each time, how many of these there were
        self._numbers: list[tuple[int, str]] = []  # the newest values that are some, ascending
        self._keys = sorted(first or ())  # that were written
        for key, value in (first or {}).items():
            self.of[key] = [(0, value)]
            if isinstance(value, int):
                insort(self._numbers, (value, key))

    def commit(self, written: Mapping[str, Any]) -> None:
        """Have these be the newest versions."""
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
        """The newest versions that are numbers from ``low`` to ``high``, with their keys."""
        numbers = self._numbers
        return numbers[bisect_left(numbers, (low, "")) : bisect_right(numbers, (high, _LAST))]

    def keys(self, low: str, high: str) -> list[str]:
        """The keys from ``low`` to ``high`` that were written, ascending."""
        return self._keys[bisect_left(self._keys, low) : bisect_right(self._keys, high)]

    def replaced_since(self, time: int) -> dict[str, Any]:
        """The keys that were written after a time, with what they held then."""
        # The first change of a key says what it held.
        return dict(self._replaced[: self._behind[time] - len(self._replaced) - 1 : -1])


class Changes:
    """One transaction: what it has read and written."""

    def __init__(self, versions: VersionedStore, level: str) -> None:
        self._versions, self._level, self._began = versions, level, versions.now
        self._of_begin = level in _OF_BEGIN
        self._looked, self._old = self._began, dict[str, Any]()  # see `_replaced`
        self._seen: set[str] = set()
        self._ranges: list[tuple[str, str]] = []  # of keys, whose rows were all read
        self._written: dict[str, Any] = {}

    def read(self, key: str) -> Any:
        """Give the version that the level shows."""
        if key in self._written:
            return self._written[key]
        self._seen.add(key)
        return self._shown(key)

    def _shown(self, key: str) -> Any:
        """The version of others that the level shows."""
        if self._level == "read uncommitted" and (dirty := self._versions.dirty.get(key)):
            return dirty[-1][1]
        versions = self._versions.of.get(key, _UNWRITTEN)
        last = -1
        if self._of_begin:
            while versions[last][0] > self._began:
                last -= 1
        return versions[last][1]

    def _replaced(self) -> dict[str, Any]:
        """The keys that others have written since BEGIN, with what they held then."""
        if self._looked < self._versions.now:
            self._old = self._versions.replaced_since(self._looked) | self._old
            self._looked = self._versions.now
        return self._old

    def scan(self, low: str, high: str) -> dict[str, Any]:
        """Give the versions that the level shows of the keys from ``low`` to ``high``."""
        self._ranges.append((low, high))
        keys = self._versions.keys(low, high)
        own = {*self._written, *self._versions.dirty}
        keys += sorted(key for key in own.difference(keys) if low <= key <= high)
        return {key: value for key in keys if (value := self.read(key)) != DELETED}

    def select(self, low: int, high: int) -> dict[str, int]:
        """Give the versions that the level shows and that are numbers in a range, key by key."""
        self._ranges.append(("", _LAST))
        others: dict[str, Any] = {}  # that show another version than the newest
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
        """Write a value where the level shows numbers in a range; gives the keys, ascending."""
        keys = list(self.select(low, high))
        for key in keys:
            self.write(key, value)
        return keys

    def write(self, key: str, value: Any) -> None:
        """Write a version, which COMMIT makes others see.

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
        """Commit.

        Raises:
            RolledBack: the level would not be kept.
        """
        self.roll_back()
        if self._is_lost(self._replaced().keys()):
            raise RolledBack("another transaction has changed what this one used")
        self._versions.commit(self._written)

    def _is_lost(self, changed: KeysView[str]) -> bool:
        """Whether the level does not let others have changed these keys."""
        if not self._of_begin:
            return any(isinstance(self._written.get(key), list) for key in changed)
        if not changed.isdisjoint(self._written):
            return True
        return self._level == "serializable" and (
            not changed.isdisjoint(self._seen)
            or any(low <= key <= high for low, high in self._ranges for key in changed)
        )

    def roll_back(self) -> None:
        """Have nobody see what was written."""
        if self._level == "read uncommitted":
            for key in self._written:
                kept = [one for one in self._versions.dirty.get(key, ()) if one[0] is not self]
                self._versions.dirty[key] = kept
