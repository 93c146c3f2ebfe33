"""The simulated database with one planted bug: ``planted_database.py:Planted://?bug=stale-index``.

Each bug is a class whose docstring says what goes wrong; ``report`` names the report of a real
engine that it follows. Without ``bug``, the database is right. The bugs are rare on purpose: a
defect that occurs in every second transaction needs no search.
"""

from __future__ import annotations

import random
import time
from collections.abc import KeysView, Mapping, Sequence
from typing import Any, ClassVar

from isolang.run.address import Address
from isolang.run.families.versioned_store import StoreTransaction, VersionedStore
from isolang.run.operation import DELETED, SelectWhere, SeveralRows, parent_key
from isolang.run.outcome import RolledBack
from isolang.run.targets.memory import Memory, MemoryClient

Rows = dict[str, Any]

LAST = "\U0010ffff"  # a string that is greater than all keys


class Right(StoreTransaction):
    """A transaction of the right database, with savepoints, and the points where bugs attach.

    Attributes:
        level: the level at which the bug breaks the database's promise.
        report: the report of a real engine; empty for a made-up bug.
    """

    level: ClassVar = "serializable"
    report: ClassVar = ""

    def __init__(self, database: Planted, level: str) -> None:
        super().__init__(database.versions, level)
        self.database, self.random = database, database.random
        self.inserted: set[str] = set()
        self.several: list[str] = []  # the keys that an INSERT of several rows has inserted
        self.upserted: set[str] = set()
        self.not_found: set[str] = set()  # the keys that a DELETE did not find
        self.left: Rows = {}  # the rows that stay visible for the next transaction of the session
        self._saved: Rows = {}

    def inherits(self, before: Right | None) -> None:
        """Start after another transaction of the same session; bugs may keep some of its state."""

    def rare(self, share: float) -> bool:
        """Return true with this probability."""
        return self.random.random() < share

    def savepoint(self) -> None:
        """Set a savepoint."""
        self._saved = dict(self._written)

    def rollback_to_savepoint(self) -> None:
        """Undo all changes since the savepoint."""
        self._written = self._saved

    def commit(self) -> None:
        """Commit, unless the level would be violated."""
        self.roll_back()
        changed = self._replaced().keys()
        if self._is_lost(changed) and not self.forgives(changed):
            self.refused()
            raise RolledBack("another transaction has changed what this one used")
        self._versions.commit(self.installed(dict(self._written)))

    def forgives(self, changed: KeysView[str]) -> bool:
        """Return whether the bug lets a transaction commit that must abort."""
        return False

    def refused(self) -> None:
        """Called when the transaction aborts at COMMIT; bugs do their damage here."""

    def installed(self, written: Rows) -> Rows:
        """Return what the bug installs instead of the transaction's writes."""
        return written

    def duplicate(self, key: str) -> Any:
        """Return the value of a second row with the same key; ``None`` if there is none."""
        return None

    def cascaded(self, children: list[str]) -> list[str]:
        """Return which of the existing child rows a cascade deletes."""
        return children

    def backed_up(self) -> Rows:
        """Return the rows that a backup in this transaction copies."""
        with self.database.lock:
            return self.scan("", LAST)

    def only_read(self, changed: KeysView[str]) -> bool:
        """Return whether others changed rows that the transaction read, but none that it wrote."""
        return changed.isdisjoint(self._written)


# --- made-up bugs ---


class StaleSnapshot(Right):
    """One of fifty transactions gets a snapshot that is up to fifty commits old."""

    level: ClassVar = "snapshot"

    def __init__(self, database: Planted, level: str) -> None:
        super().__init__(database, level)
        if self.rare(0.02):
            old = max(0, self._versions.now - self.random.randint(1, 50))
            self._began = self._looked = old


class LongTransaction(Right):
    """After 1,500 other commits, a transaction reads the newest version instead of its own."""

    level: ClassVar = "snapshot"

    def read(self, key: str) -> Any:
        """Return the newest version if the transaction has been open for long."""
        if self._versions.now - self._began > 1500 and key not in self._written:
            self._seen.add(key)
            return self._versions.of.get(key, [(0, DELETED)])[-1][1]
        return super().read(key)


class OwnWritesPredicate(Right):
    """A query by value does not see the transaction's own writes."""

    def select(self, low: int, high: int) -> dict[str, int]:
        """Return the rows as if the transaction had written nothing."""
        written, self._written = self._written, {}
        try:
            return super().select(low, high)
        finally:
            self._written = written


class PhantomPredicate(Right):
    """A query by value leaves no trace by which conflicts could be noticed."""

    def select(self, low: int, high: int) -> dict[str, int]:
        """Return the rows, but forget the range."""
        found = super().select(low, high)
        self._ranges.pop()
        return found


class StaleIndex(Right):
    """Three of a thousand writes do not reach the index on the values."""

    def select(self, low: int, high: int) -> dict[str, int]:
        """Return the rows that are in the index."""
        found = super().select(low, high)
        return {k: v for k, v in found.items() if k not in self.database.missing}

    def installed(self, written: Rows) -> Rows:
        """Forget to enter some rows into the index."""
        for key in written:
            self.database.missing.discard(key)
            if self.rare(0.003):
                self.database.missing.add(key)
        return written


class NullNotIndexed(Right):
    """One of twenty rows whose value becomes NULL is missing in queries for NULL."""

    def where(self, where: SelectWhere) -> Rows:
        """Return the rows that are in the index."""
        found = super().where(where)
        missing = self.database.missing if where.condition == "null" else set()
        return {k: v for k, v in found.items() if k not in missing}

    def installed(self, written: Rows) -> Rows:
        """Forget to enter some rows into the index."""
        self.database.missing.difference_update(written)
        self.database.missing.update(k for k, v in written.items() if v is None and self.rare(0.05))
        return written


class ScanNewest(Right):
    """A range scan by key reads the newest versions instead of the snapshot."""

    level: ClassVar = "snapshot"

    def scan(self, low: str, high: str) -> Rows:
        """Return the newest versions."""
        began, self._began = self._began, self._versions.now
        try:
            return super().scan(low, high)
        finally:
            self._began = began


class PhantomScan(Right):
    """A range scan by key protects the rows that it returned, but not the gaps between them."""

    def scan(self, low: str, high: str) -> Rows:
        """Return the rows, but forget the range and the keys without rows."""
        seen = set(self._seen)
        found = super().scan(low, high)
        self._ranges.pop()
        self._seen = seen | set(found)
        return found


class UpsertRace(Right):
    """Two transactions insert the same row, and both commit."""

    def forgives(self, changed: KeysView[str]) -> bool:
        """Forgive conflicts on rows that the transaction inserted."""
        conflicts = changed & set(self._written)
        return bool(conflicts) and conflicts <= self.inserted


class MissedReadWrite(Right):
    """One of a hundred conflicts between a read and a write is not noticed."""

    def forgives(self, changed: KeysView[str]) -> bool:
        """Forgive some conflicts of reads."""
        return self.only_read(changed) and self.rare(0.01)


class MissedWriteWrite(Right):
    """One of a hundred conflicts between two writes is not noticed."""

    def forgives(self, changed: KeysView[str]) -> bool:
        """Forgive some conflicts of writes."""
        return not self.only_read(changed) and self.rare(0.01)


class TornBackup(Right):
    """Every other row of a copy is from before a commit, and the others from after it."""

    def backed_up(self) -> Rows:
        """Return every other row, and the others a few milliseconds later."""
        first = super().backed_up()
        time.sleep(0.02)
        self._began = self._versions.now
        rest = super().backed_up()
        return {**rest, **{key: first[key] for key in sorted(first)[::2]}}


class ForgottenReader(Right):
    """After 2,500 other commits, the database has forgotten what a transaction has read."""

    def forgives(self, changed: KeysView[str]) -> bool:
        """Forgive the conflicts of reads of old transactions."""
        return self.only_read(changed) and self._versions.now - self._began > 2500


class AbortApplies(Right):
    """One of a hundred transactions that abort at COMMIT leaves its first write behind."""

    def refused(self) -> None:
        """Install the first write."""
        if self._written and self.rare(0.01):
            self._versions.commit(dict(list(self._written.items())[:1]))


class LostCommit(Right):
    """Two of a thousand commits are acknowledged, but not applied."""

    def installed(self, written: Rows) -> Rows:
        """Lose the writes of some transactions."""
        return {} if self.rare(0.002) else written


class PartialCommit(Right):
    """Five of a thousand commits with several writes lose the last one."""

    def installed(self, written: Rows) -> Rows:
        """Lose the last write of some transactions."""
        lost = len(written) > 1 and self.rare(0.005)
        return dict(list(written.items())[:-1]) if lost else written


class LostDelete(Right):
    """One of fifty commits loses its deletes."""

    def installed(self, written: Rows) -> Rows:
        """Lose the deletes of some transactions."""
        lost = self.rare(0.02)
        return {k: v for k, v in written.items() if not (lost and v == DELETED)}


class SavepointKept(Right):
    """One of twenty rollbacks to a savepoint does nothing."""

    def rollback_to_savepoint(self) -> None:
        """Undo the changes most of the time."""
        if not self.rare(0.05):
            super().rollback_to_savepoint()


# --- bugs that follow reports of real engines ---


class MergedIndexMissesUpdate(Right):
    """A query by value misses rows that the transaction itself moved into the range."""

    report: ClassVar = "pingcap/tidb#30685"

    def select(self, low: int, high: int) -> dict[str, int]:
        """Return the rows that were in the range before the transaction updated them."""
        own = {k for k in self._written if k not in self.inserted}
        outside = {
            k for k in own if not (isinstance(b := self._shown(k), int) and low <= b <= high)
        }
        return {k: v for k, v in super().select(low, high).items() if k not in outside}


class OldVersionBesideOwn(Right):
    """A query by value returns the old version of a row that the transaction has rewritten."""

    report: ClassVar = "pingcap/tidb#44188"

    def select(self, low: int, high: int) -> dict[str, int]:
        """Return the rows, and the versions that the transaction has replaced."""
        found = super().select(low, high)
        for key in self._written:
            before = self._shown(key)
            if isinstance(before, int) and low <= before <= high and self.rare(0.2):
                found[key] = before
        return found


class DeleteBesideUpdate(Right):
    """An update of a row that another transaction has deleted brings the row back."""

    level: ClassVar = "snapshot"
    report: ClassVar = "yugabyte/yugabyte-db#2848"

    def forgives(self, changed: KeysView[str]) -> bool:
        """Forgive conflicts with deletes."""
        conflicts = changed & set(self._written)
        return all(self._versions.of[key][-1][1] == DELETED for key in conflicts)


class SavepointOverReverts(Right):
    """A rollback to a savepoint also undoes earlier writes if nothing followed the savepoint."""

    report: ClassVar = "dolthub/doltlite#1340"

    def rollback_to_savepoint(self) -> None:
        """Undo also the first write of the transaction."""
        super().rollback_to_savepoint()
        if self._written and self.rare(0.1):
            self._written.pop(next(iter(self._written)))


class SavepointDropsKey(Right):
    """A rollback to a savepoint drops a key that was written both before it and after it."""

    report: ClassVar = "surrealdb/surrealkv#75"

    def rollback_to_savepoint(self) -> None:
        """Drop the keys that were written since the savepoint."""
        since = {k for k, v in self._written.items() if self._saved.get(k, self) != v}
        self._written = {k: v for k, v in self._saved.items() if k not in since}


class IndexReadsOlder(Right):
    """A query by value sometimes reads an older snapshot than a read by key."""

    report: ClassVar = "MaterializeInc/materialize#15694"

    def select(self, low: int, high: int) -> dict[str, int]:
        """Return the rows of a few commits ago."""
        if not self.rare(0.05):
            return super().select(low, high)
        older = StoreTransaction(self._versions, self._level)
        older._began = older._looked = max(0, self._began - self.random.randint(1, 5))
        older._written = self._written
        self._ranges.append(("", "\U0010ffff"))
        return older.select(low, high)


# The following bugs were added after the generator of transactions was finished.


class IndexMissesDuringBuild(Right):
    """Rows that are written while an index is built do not reach it."""

    report: ClassVar = "yugabyte/yugabyte-db#32429"

    def select(self, low: int, high: int) -> dict[str, int]:
        """Return the rows that are in the index."""
        found = super().select(low, high)
        return {k: v for k, v in found.items() if k not in self.database.missing}

    def installed(self, written: Rows) -> Rows:
        """Do not enter rows into the index during a build; later writes enter them."""
        if self._versions.now < self.database.built + 3:
            self.database.missing.update(written)
        else:
            self.database.missing.difference_update(written)
        return written


class IndexIgnoresSnapshot(Right):
    """A transaction that is older than an index reads the newest rows through it."""

    level: ClassVar = "snapshot"
    report: ClassVar = "orioledb/orioledb#724"

    def select(self, low: int, high: int) -> dict[str, int]:
        """Return the rows as of the build of the index, if that is later than the snapshot."""
        if self._began >= self.database.built:
            return super().select(low, high)
        later = StoreTransaction(self._versions, self._level)
        later._began = later._looked = self.database.built
        later._written = self._written
        return later.select(low, high)


class ScanMissesOwnUpdate(Right):
    """A range scan by key shows the row as it was before the transaction updated it."""

    report: ClassVar = "pingcap/tidb#21447"

    def scan(self, low: str, high: str) -> Rows:
        """Return the rows, and the old versions of some updated rows."""
        found = super().scan(low, high)
        for key in found.keys() & self._written.keys():
            before = self._shown(key)
            if before != DELETED and self.rare(0.1):
                found[key] = before
        return found


class DeletedAndInsertedAgain(Right):
    """A conflict on a row that was deleted and inserted again in between is not noticed."""

    report: ClassVar = "scalar-labs/scalardb#66"

    def forgives(self, changed: KeysView[str]) -> bool:
        """Forgive conflicts on rows that were deleted since the transaction began."""
        if not self.only_read(changed) and not self._ranges:
            used = changed & (self._seen | set(self._written))
            return all(
                any(at > self._began and value == DELETED for at, value in self._versions.of[key])
                and self._versions.of[key][-1][1] != DELETED
                for key in used
            )
        return False


class AbortedDeleteStays(Right):
    """One of twenty transactions that delete a row and then abort leaves the delete behind."""

    report: ClassVar = "tursodatabase/turso#5896"

    def refused(self) -> None:
        """Install the deletes of the aborted transaction."""
        deletes = {k: v for k, v in self._written.items() if v == DELETED}
        if deletes and self.rare(0.05):
            self._versions.commit(deletes)


class NeighbourWrittenBack(Right):
    """One of fifty commits also writes back a row that the transaction has only read."""

    level: ClassVar = "snapshot"
    report: ClassVar = "MonetDB/MonetDB#448"

    def installed(self, written: Rows) -> Rows:
        """Write back the version of the snapshot, which others may have replaced."""
        neighbours = sorted(self._seen - written.keys())
        if neighbours and written and self.rare(0.02):
            key = self.random.choice(neighbours)
            written[key] = self._shown(key)
        return written


class VacuumRemovesNeeded(Right):
    """A vacuum removes versions that older snapshots still need, so rows are missing in them."""

    level: ClassVar = "snapshot"
    report: ClassVar = "greenplum-db/gpdb#801"

    def _shown(self, key: str) -> Any:
        """Return ``DELETED`` for a row that was replaced between BEGIN and the last vacuum."""
        newest = self._versions.of.get(key, [(0, DELETED)])[-1][0]
        gone = self._began < newest <= self.database.vacuumed
        return DELETED if gone else super()._shown(key)


# The following bugs concern statements for queues, upserts and foreign keys.


class SkipLockedTwice(Right):
    """One of ten queries that skip locked rows returns a locked row, and both workers commit."""

    report: ClassVar = "orioledb/orioledb#159"

    def __init__(self, database: Planted, level: str) -> None:
        super().__init__(database, level)
        self._shared: set[str] = set()

    def take(self, low: int, high: int) -> dict[str, int]:
        """Return one of ten rows, whether it is locked or not."""
        if not self.rare(0.1):
            return super().take(low, high)
        locks, self._versions.taken = self._versions.taken, {}
        try:
            found = super().take(low, high)
        finally:
            self._versions.taken = locks
        self._shared.update(found)
        return found

    def forgives(self, changed: KeysView[str]) -> bool:
        """Forgive conflicts on rows that were returned without a lock."""
        used = changed & (self._seen | set(self._written))
        return not self._ranges and used <= self._shared


class CascadeLeavesChild(Right):
    """One of twenty cascades leaves the last child row."""

    report: ClassVar = "tursodatabase/turso#8713"

    def cascaded(self, children: list[str]) -> list[str]:
        """Return the child rows, sometimes without the last one."""
        return children[:-1] if self.rare(0.05) else children


class CascadeMissesInsert(Right):
    """A cascade takes no locks, so that a child row that is inserted meanwhile stays."""

    report: ClassVar = "cockroachdb/cockroach#150282"

    def forgives(self, changed: KeysView[str]) -> bool:
        """Forgive conflicts on child rows of deleted rows."""
        gone = {key for key, value in self._written.items() if value == DELETED}
        used = changed & (self._seen | set(self._written))
        return not self._ranges_besides(gone) and all(parent_key(key) in gone for key in used)

    def _ranges_besides(self, gone: set[str]) -> bool:
        """Return whether the transaction scanned more than child rows of deleted rows."""
        return any(parent_key(low) not in gone for low, _ in self._ranges)


class MultiInsertHalf(Right):
    """One of ten transactions that abort after an INSERT of several rows leaves the first row."""

    report: ClassVar = "tarantool/tarantool#2599"

    def refused(self) -> None:
        """Install the first row of the INSERT."""
        first = {k: self._written[k] for k in self.several[:1] if k in self._written}
        if first and self.rare(0.1):
            self._versions.commit(first)


class MergeInsertsDuplicate(Right):
    """Two upserts of the same new row insert it twice, and both commit."""

    report: ClassVar = "lance-format/lance#4585"

    def forgives(self, changed: KeysView[str]) -> bool:
        """Forgive conflicts on rows that were new for the upsert."""
        used = changed & (self._seen | set(self._written))
        new = {k for k in self.upserted if self._shown(k) == DELETED}
        return not self._ranges and used <= new

    def installed(self, written: Rows) -> Rows:
        """Remember the second row, which exists in addition to the new row."""
        for key in written:
            self.database.twice.pop(key, None)
        for key in self.upserted & written.keys():
            at, value = self._versions.of.get(key, [(0, DELETED)])[-1]
            if at > self._began and value != DELETED:
                self.database.twice[key] = (self._versions.now + 1, value)
        return written

    def duplicate(self, key: str) -> Any:
        """Return the value of the other row, in later transactions."""
        at, value = self.database.twice.get(key, (0, None))
        return value if at <= self._began and key not in self._written else None


class UpsertOverDelete(Right):
    """An upsert of a row that another transaction has deleted inserts it anew."""

    level: ClassVar = "snapshot"
    report: ClassVar = "docs/findings/postgresql-on-conflict.md"

    def forgives(self, changed: KeysView[str]) -> bool:
        """Forgive conflicts of upserts with deletes."""
        conflicts = changed & set(self._written)
        return all(
            key in self.upserted and self._versions.of[key][-1][1] == DELETED for key in conflicts
        )


class DeleteOfNothing(Right):
    """A DELETE that finds no row leaves no trace by which conflicts could be noticed."""

    report: ClassVar = "duckdb/ducklake#1394"

    def forgives(self, changed: KeysView[str]) -> bool:
        """Forgive conflicts on rows that were not found."""
        used = changed & (self._seen | set(self._written))
        return not self._ranges and used <= self.not_found


class AbortedDeleteInRange(Right):
    """A range scan by key misses a row after a DELETE of it has been rolled back."""

    report: ClassVar = "LineairDB/LineairDB#696"

    def refused(self) -> None:
        """Leave the deletes in the index of the keys."""
        self.database.missing.update(k for k, v in self._written.items() if v == DELETED)

    def installed(self, written: Rows) -> Rows:
        """Enter written rows into the index again."""
        self.database.missing.difference_update(written)
        return written

    def scan(self, low: str, high: str) -> Rows:
        """Return the rows that are in the index."""
        missing = self.database.missing.difference(self._written)
        return {k: v for k, v in super().scan(low, high).items() if k not in missing}


class FailedCommitReadAgain(Right):
    """One of ten sessions still reads its writes after their COMMIT has failed."""

    level: ClassVar = "snapshot"
    report: ClassVar = "tursodatabase/turso#8477"

    def refused(self) -> None:
        """Leave the writes for the next transaction of the session."""
        if self.rare(0.1):
            self.left = dict(self._written)

    def inherits(self, before: Right | None) -> None:
        """Read the rows that the failed transaction left behind."""
        self._old_writes = before.left if before is not None else {}

    def _shown(self, key: str) -> Any:
        """Return the value that the failed COMMIT left behind."""
        return self._old_writes.get(key, super()._shown(key))


BUGS: Mapping[str, type[Right]] = {
    "stale-snapshot": StaleSnapshot,
    "long-txn": LongTransaction,
    "own-writes-predicate": OwnWritesPredicate,
    "phantom-predicate": PhantomPredicate,
    "stale-index": StaleIndex,
    "null-not-indexed": NullNotIndexed,
    "scan-newest": ScanNewest,
    "phantom-scan": PhantomScan,
    "upsert-race": UpsertRace,
    "missed-rw": MissedReadWrite,
    "missed-ww": MissedWriteWrite,
    "torn-backup": TornBackup,
    "old-reader-forgotten": ForgottenReader,
    "abort-applies": AbortApplies,
    "lost-commit": LostCommit,
    "partial-commit": PartialCommit,
    "delete-lost": LostDelete,
    "savepoint-kept": SavepointKept,
    "merged-index-misses-update": MergedIndexMissesUpdate,
    "old-version-beside-own": OldVersionBesideOwn,
    "delete-beside-update": DeleteBesideUpdate,
    "savepoint-over-reverts": SavepointOverReverts,
    "savepoint-drops-key": SavepointDropsKey,
    "index-reads-older": IndexReadsOlder,
    "index-misses-during-build": IndexMissesDuringBuild,
    "index-ignores-snapshot": IndexIgnoresSnapshot,
    "scan-misses-own-update": ScanMissesOwnUpdate,
    "deleted-and-inserted-again": DeletedAndInsertedAgain,
    "aborted-delete-stays": AbortedDeleteStays,
    "neighbour-written-back": NeighbourWrittenBack,
    "vacuum-removes-needed": VacuumRemovesNeeded,
    "skip-locked-twice": SkipLockedTwice,
    "cascade-leaves-child": CascadeLeavesChild,
    "cascade-misses-insert": CascadeMissesInsert,
    "multi-insert-half": MultiInsertHalf,
    "merge-inserts-duplicate": MergeInsertsDuplicate,
    "upsert-over-delete": UpsertOverDelete,
    "delete-of-nothing": DeleteOfNothing,
    "aborted-delete-in-range": AbortedDeleteInRange,
    "failed-commit-read-again": FailedCommitReadAgain,
}
"""All planted bugs by their names."""


class PlantedClient(MemoryClient):
    """A session on the database with the planted bug."""

    target: Planted
    changes: Right
    _before: Right | None = None

    def begin(self, level: str) -> None:
        """Begin a transaction that has the bug."""
        with self.target.lock:
            self.changes = self.target.kind(self.target, level)
            self.changes.inherits(self._before)
            self._before = self.changes

    def read(self, key: str) -> Any:
        """Return the value of a row, or the values of all rows with this key."""
        found = super().read(key)
        other = self.changes.duplicate(key)
        return found if other is None else SeveralRows((other, found))

    def insert_rows(self, rows: Sequence[tuple[str, int]]) -> None:
        """Insert rows, and remember that they are new."""
        super().insert_rows(rows)
        keys = [key for key, _ in rows]
        self.changes.inserted.update(keys)
        if len(keys) > 1:
            self.changes.several = keys

    def insert_or_update(self, key: str, value: int, *, merge: bool = False) -> None:
        """Insert or update a row, and remember that it was an upsert."""
        super().insert_or_update(key, value, merge=merge)
        self.changes.upserted.add(key)

    def delete(self, key: str) -> bool:
        """Delete a row, and remember if there was none."""
        there = super().delete(key)
        if not there:
            self.changes.not_found.add(key)
        return there

    def cascaded(self, key: str) -> list[str]:
        """Return the child rows that are deleted with a row."""
        return self.changes.cascaded(super().cascaded(key))

    def savepoint(self) -> None:
        """Set a savepoint."""
        with self.target.lock:
            self.changes.savepoint()

    def rollback_to_savepoint(self) -> None:
        """Undo all changes since the savepoint."""
        with self.target.lock:
            self.changes.rollback_to_savepoint()


class Planted(Memory):
    """The simulated database with the bug that the address names.

    Attributes:
        missing: the keys whose newest versions are missing in the index on the values.
        twice: for each key that has two rows, the time of the second row and the value of the
            first.
        built: the time of the last build of the index; far in the past before the first build.
        vacuumed: the time of the last vacuum.
    """

    name = "planted"
    lacks = frozenset({"processes"})
    levels = Memory.levels[:2]
    chores: ClassVar[Mapping[str, str]] = {"CREATE INDEX": "anew", "VACUUM": "old versions"}
    backups: ClassVar[Mapping[str, str]] = {"BACKUP": "a copy in memory"}

    def __init__(self, address: Address, prefix: str) -> None:
        super().__init__(address, prefix)
        bug = address.options.get("bug", "")
        self.kind = BUGS[bug] if bug else Right
        self.random = random.Random(address.options.get("draw", "0"))
        self.versions = VersionedStore()
        self.missing: set[str] = set()
        self.twice: dict[str, tuple[int, Any]] = {}
        self.built = self.vacuumed = -1000

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        """Create the keys, and an index that contains all of them."""
        super().setup(registers, lists)
        self.missing, self.built, self.vacuumed = set(), -1000, -1000
        self.twice = {}

    def maintain(self, chore: str) -> None:
        """Build the index anew, or remove old versions."""
        with self.lock:
            if chore == "VACUUM":
                self.vacuumed = self.versions.now
            else:
                self.missing.clear()
                self.built = self.versions.now

    def back_up(self, way: str, level: str) -> list[tuple[str, Any]]:
        """Copy all rows that a transaction sees."""
        return list(self.kind(self, level).backed_up().items())

    def connect(self) -> PlantedClient:
        """Open a session."""
        return PlantedClient(self)
