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
from collections import defaultdict
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from isolang.run.operation import DELETED
from isolang.run.outcome import RolledBack

_LAST = "\U0010ffff"  # behind all keys


class Versions:
    """The database: of each key the versions with the time of their COMMIT; one thread at a time.

    Attributes:
        now: the time of the last COMMIT.
        of: of each key, in the order of time.
        changes: which key was written when, in the order of time.
        dirty: of each key what transactions at ``read uncommitted`` have written and not committed.
    """

    def __init__(self, first: Mapping[str, Any] | None = None) -> None:
        """Begin with a version of each of these keys."""
        self.now = 0
        self.of: defaultdict[str, list[tuple[int, Any]]] = defaultdict(lambda: [(0, DELETED)])
        self.changes: list[tuple[int, str]] = []
        self.dirty: dict[str, list[tuple[Changes, Any]]] = {}
        self._numbers: list[tuple[int, str]] = []  # the newest values that are some, ascending
        for key, value in (first or {}).items():
            self.of[key] = [(0, value)]
            if isinstance(value, int):
                insort(self._numbers, (value, key))

    def commit(self, written: Mapping[str, Any]) -> None:
        """Have these be the newest versions."""
        self.now += 1
        for key, value in written.items():
            old = self.of[key][-1][1]
            if isinstance(old, int):
                del self._numbers[bisect_left(self._numbers, (old, key))]
            if isinstance(value, int):
                insort(self._numbers, (value, key))
            self.of[key].append((self.now, value))
            self.changes.append((self.now, key))

    def newest(self, low: int, high: int) -> dict[str, int]:
        """The newest versions that are numbers from ``low`` to ``high``."""
        first = bisect_left(self._numbers, (low, ""))
        last = bisect_right(self._numbers, high, key=itemgetter(0))
        return {key: value for value, key in self._numbers[first:last]}

    def changed_since(self, time: int) -> set[str]:
        """The keys that were written after a time."""
        first = bisect_right(self.changes, time, key=itemgetter(0))
        return {key for _, key in self.changes[first:]}


class Changes:
    """One transaction: what it has read and written."""

    def __init__(self, versions: Versions, level: str) -> None:
        self._versions, self._level, self._began = versions, level, versions.now
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
        versions = self._versions.of[key]
        if self._level in ("serializable", "snapshot"):
            return next(value for at, value in reversed(versions) if at <= self._began)
        return versions[-1][1]

    def scan(self, low: str, high: str) -> dict[str, Any]:
        """Give the versions that the level shows of the keys from ``low`` to ``high``."""
        self._ranges.append((low, high))
        keys = [key for key in self._versions.of if low <= key <= high]
        return {key: value for key in keys if (value := self.read(key)) != DELETED}

    def select(self, low: int, high: int) -> dict[str, int]:
        """Give the versions that the level shows and that are numbers in a range, key by key."""
        self._ranges.append(("", _LAST))
        found = self._versions.newest(low, high)
        others: set[str] = set()  # that show another version than the newest
        if self._level in ("serializable", "snapshot"):
            others = self._versions.changed_since(self._began)
        elif self._level == "read uncommitted":
            others = set(self._versions.dirty)
        for key in others | self._written.keys():
            value = self._written[key] if key in self._written else self._shown(key)
            if isinstance(value, int) and low <= value <= high:
                found[key] = value
            else:
                found.pop(key, None)
        return dict(sorted(found.items()))

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
        lists = {key for key, value in self._written.items() if isinstance(value, list)}
        checked = {
            "serializable": self._seen | set(self._written), "snapshot": set(self._written),
        }.get(self._level, lists)  # fmt: skip
        self.roll_back()
        ranges = self._ranges if self._level == "serializable" else ()
        if any(
            key in checked or any(low <= key <= high for low, high in ranges)
            for key in self._versions.changed_since(self._began)
        ):
            raise RolledBack("another transaction has changed what this one used")
        self._versions.commit(self._written)

    def roll_back(self) -> None:
        """Have nobody see what was written."""
        if self._level == "read uncommitted":
            for key in self._written:
                kept = [one for one in self._versions.dirty.get(key, ()) if one[0] is not self]
                self._versions.dirty[key] = kept
