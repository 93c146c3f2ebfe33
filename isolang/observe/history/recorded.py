"""Stores the versions named in a history's lines until no transaction can read them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from isolang.observe.history.edn import edn
from isolang.observe.history.seen import RowVersion, SeenTransaction, WrittenRow
from isolang.observe.sql.catalogue import Table
from isolang.observe.unseen import FOREIGN, OLD_SERVER, Unseen


class RecordedVersion(Struct, gc=False):
    """A version whose writer is known.

    Attributes:
        rank: the number of earlier versions of the row; ``None`` if unknown.
    """

    key: str
    row: str
    columns: Mapping[str, Any]
    rank: int | None = 0

    def next_rank(self) -> int | None:
        """Return the rank of the version that replaces this one."""
        return None if self.rank is None else self.rank + 1


class RecordedVersions:
    """The versions whose writers are known, by table and number.

    Attributes:
        is_initial: a function that returns whether a version is older than the observation.
        is_old: whether the server is too old to return the versions replaced by writes.
    """

    def __init__(
        self,
        unseen: Unseen,
        doubtful: dict[str, str],
        load: Callable[[Table, RowVersion], RecordedVersion],
    ) -> None:
        """Create an empty collection."""
        self.unseen, self._doubtful, self._load = unseen, doubtful, load
        self.is_initial: Callable[[str], bool] = lambda number: False
        self.is_old = False
        self._known: dict[tuple[str, str], RecordedVersion] = {}
        self._pending: dict[tuple[str, str], WrittenRow] = {}
        self._deleted: set[tuple[str, str]] = set()
        self._incarnations: Counter[tuple[str, str]] = Counter()
        self._obsolete: deque[tuple[int, tuple[str, str]]] = deque()

    def ended(self, one: SeenTransaction, write: WrittenRow) -> None:
        """Register a write of an ended transaction."""
        table, new, old = write.table.name, write.version, write.old
        if new is not None:
            self._pending[table, new.number] = write
            if one.outcome == "fail":
                self._obsolete.append((one.end, (table, new.number)))
        if old is None or one.outcome == "fail":
            return
        is_other = one.outcome == "info" or new is None or new.key != old.key
        if self.is_old and is_other:
            self._deleted.add((table, old.key))
        if one.outcome == "ok":
            self._obsolete.append((one.end, (table, old.number)))

    def forget(self, horizon: int) -> None:
        """Forget versions that cannot be read by transactions ending after a position."""
        while self._obsolete and self._obsolete[0][0] < horizon:
            _, name = self._obsolete.popleft()
            self._known.pop(name, None)
            self._pending.pop(name, None)

    def version_of(self, write: WrittenRow) -> RecordedVersion | None:
        """Return the version created by a write; ``None`` for a deletion."""
        new = write.version
        if new is None:
            return None
        return self._known.get((write.table.name, new.number)) or self._remember_write(write)

    def _remember_write(self, write: WrittenRow) -> RecordedVersion:
        """Remember the version created by a write, and return its key and row."""
        table, new, old = write.table, write.version, write.old
        assert new is not None
        assert write.row is not None
        before = None
        if old is not None and old.key == new.key:
            before = self.find(table, old, write.shown, writes=True)
        elif write.same_key:
            before = self._placeholder_before(write, new.key)
        return self.register(table, new, write.row, before)

    def _placeholder_before(self, write: WrittenRow, key: str) -> RecordedVersion | None:
        """Return a placeholder for the version replaced by a write, if only one row had its key.

        Return ``None`` if several rows had this key, one after another.

        SOUND BECAUSE: the deletion of a row ended before another row with the same key was updated,
        so the deletion is known when the lines of that update are written.
        """
        name = write.table.name, key
        if name in self._deleted or self._incarnations[name] > 1:
            self.unseen.note(OLD_SERVER, write.shown)
            return None
        if not self._incarnations[name]:
            return None
        return RecordedVersion(f"[{edn(write.table.name)} {edn(key)}]", "", {}, None)

    def register(
        self,
        table: Table,
        version: RowVersion,
        row: Mapping[str, Any],
        before: RecordedVersion | None = None,
        *,
        rank: int = 1,
    ) -> RecordedVersion:
        """Remember a version under the key of the version it replaces, or under a new key."""
        shown = edn({**row, "xmin": version.number})
        made = (
            RecordedVersion(self.new_key(table, version.key), shown, row, rank)
            if before is None
            else RecordedVersion(before.key, shown, row, before.next_rank())
        )
        self._known[table.name, version.number] = made
        return made

    def new_key(self, table: Table, key: str) -> str:
        """Return a new key for a row that did not exist before.

        SOUND BECAUSE: at REPEATABLE READ, PostgreSQL lets an INSERT pass a concurrent DELETE of the
        same primary key, so a row that is inserted again is a different row: ``7#2``.
        """
        self._incarnations[table.name, key] += 1
        number = self._incarnations[table.name, key]
        return f"[{edn(table.name)} {edn(key if number == 1 else f'{key}#{number}')}]"

    def single_key(self, table: Table, key: str) -> str | None:
        """Return the key of the only row that had a primary key; ``None`` if it was not only one.

        SOUND BECAUSE: all rows that a transaction may have seen are known when its lines are
        written.
        """
        if self._incarnations[table.name, key] != 1:
            return None
        return f"[{edn(table.name)} {edn(key)}]"

    def find(
        self, table: Table, version: RowVersion, shown: str, *, writes: bool = False
    ) -> RecordedVersion | None:
        """Return the record of a version; ``None`` if its writer was not seen."""
        # The writer may have ended although its lines have not been written yet.
        chain: list[WrittenRow] = []
        name = table.name, version.number
        while name not in self._known and name in self._pending:
            chain.append(self._pending[name])
            if chain[-1].old is None:
                break
            name = table.name, chain[-1].old.number
        for write in reversed(chain):
            self._remember_write(write)
        found = self._known.get((table.name, version.number))
        if found is not None:
            return found
        if self.is_initial(version.number) and not table.rows_known:
            return self._load(table, version)
        what = "an UPDATE or DELETE of" if writes else "a read of"
        self.unseen.note(
            FOREIGN,
            f"{what} {table.name}/{version.key}: {shown}",
            form=f"{what} {table.name}: {shown}",
            tables=(table.name,),
        )
        self._doubtful.setdefault(table.name, f"{table.name}/{version.key}")
        return None
