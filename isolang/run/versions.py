"""A small database in memory, whose levels are known.

It keeps versions. A transaction reads, by its level: ``serializable`` and ``snapshot`` the versions
of the moment of its BEGIN, ``read committed`` the newest committed ones, ``read uncommitted`` the
newest of all. COMMIT refuses what would break the level: at ``snapshot`` a key that another
transaction wrote since BEGIN, at ``serializable`` also one that was only read; lists that another
transaction has appended to at every level. So ``serializable`` is so in the order of COMMIT, which
is real time.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from isolang.run.operation import DELETED
from isolang.run.outcome import RolledBack


class Versions:
    """The database: of each key the versions with the time of their COMMIT; one thread at a time.

    Attributes:
        dirty: of each key what transactions at ``read uncommitted`` have written and not committed.
    """

    def __init__(self) -> None:
        self.now = 0
        self.of: defaultdict[str, list[tuple[int, Any]]] = defaultdict(lambda: [(0, DELETED)])
        self.dirty: dict[str, list[tuple[Changes, Any]]] = {}


class Changes:
    """One transaction: what it has read and written."""

    def __init__(self, versions: Versions, level: str) -> None:
        self._versions, self._level, self._began = versions, level, versions.now
        self._seen: set[str] = set()
        self._written: dict[str, Any] = {}

    def read(self, key: str) -> Any:
        """Give the version that the level shows."""
        if key in self._written:
            return self._written[key]
        self._seen.add(key)
        if self._level == "read uncommitted" and (dirty := self._versions.dirty.get(key)):
            return dirty[-1][1]
        versions = self._versions.of[key]
        if self._level in ("serializable", "snapshot"):
            return next(value for at, value in reversed(versions) if at <= self._began)
        return versions[-1][1]

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
        if any(self._versions.of[key][-1][0] > self._began for key in checked):
            raise RolledBack("another transaction has changed what this one used")
        self._versions.now += 1
        for key, value in self._written.items():
            self._versions.of[key].append((self._versions.now, value))

    def roll_back(self) -> None:
        """Have nobody see what was written."""
        if self._level == "read uncommitted":
            for key in self._written:
                kept = [one for one in self._versions.dirty.get(key, ()) if one[0] is not self]
                self._versions.dirty[key] = kept
