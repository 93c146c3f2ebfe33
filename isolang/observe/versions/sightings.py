"""Names the versions in the server's log as readers name them.

The log contains the number of the transaction that wrote a version, but neither the version's place
nor the number of the savepoint that it was written behind. A reader sees both. Other transactions
see only the last version that a transaction wrote of a row, so a version that they saw, and a
transaction that wrote the row, belong together if no other pair is possible.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Final

from msgspec import Struct

from isolang.observe.database import InitialSnapshot, VersionNames
from isolang.observe.history.history import ObservedHistory
from isolang.observe.history.seen import RowVersion, SeenTransaction, WrittenRow
from isolang.observe.sql.catalogue import Table
from isolang.run.drivers.postgres_log import is_older

# Stand for readers: for who found a version in the table at the end, and for all that failed.
_TABLE: Final = -1
_FAILED: Final = -2


class RowWrites(Struct):
    """The writes of a row by a transaction, according to the log.

    Attributes:
        leaves_version: whether the last write was no deletion.
    """

    number: int = 0
    leaves_version: bool = False


class Sightings:
    """The versions of each row that were seen, and the transactions that saw them."""

    def __init__(self, versions: VersionNames, start: InitialSnapshot) -> None:
        self._versions, self._start = versions, start
        # For each table and key: the versions by number, and the transactions that saw them.
        self._seen: defaultdict[tuple[str, str], dict[str, tuple[RowVersion, set[int]]]] = (
            defaultdict(dict)
        )
        self._written: dict[tuple[str, str, int], RowVersion] = {}
        # For each table, key and transaction: the version of others that it replaced.
        self._replaced: dict[tuple[str, str, int], RowVersion] = {}
        self._counts: Counter[tuple[str, str, int]] = Counter()  # of the recorded writes
        self._present: dict[tuple[str, str], RowVersion] = {}
        self._recorded: set[tuple[str, str]] = set()  # the versions whose writes are recorded
        self._awaiting: set[int] = set()  # the transactions that may have written other versions
        self._names: dict[tuple[str, str, int], RowVersion] = {}

    def note_present(self, table: Table, versions: Iterable[RowVersion]) -> None:
        """Note the versions that are in a table at the end."""
        for version in versions:
            self._note(table.name, version, _TABLE)
            self._present[table.name, version.key] = version

    def note_later_change(self, table: Table, key: str) -> None:
        """Note that a row may have changed between its last change in the log and the reading."""
        self._present.pop((table.name, key), None)

    def note_history(self, history: ObservedHistory) -> None:
        """Note the versions that recorded transactions saw or wrote."""
        for name, versions in history.present.live.items():
            for number, key in versions.items():
                self._note(name, RowVersion(key, number), _TABLE)
        for place, one in enumerate(history.recorded()):
            self._note_written(one)
            failed = one.outcome == "fail"
            if one.unclear and not one.number and not failed:
                continue  # it may have seen versions of its own that the log does not name
            if one.awaits_log and not failed:
                self._awaiting.add(one.number)
            for table, version in one.versions():
                seer = _FAILED if failed else one.number or -3 - place
                self._note(table.name, version, seer)

    def _note(self, table: str, version: RowVersion, seer: int) -> None:
        known = self._seen[table, version.key]
        known.setdefault(version.number, (version, set()))[1].add(seer)

    def _note_written(self, one: SeenTransaction) -> None:
        for operation in one.operations:
            if not isinstance(operation, WrittenRow):
                continue
            table, version, old = operation.table.name, operation.version, operation.old
            is_of_log = one.number and one.outcome != "fail"
            if version is not None:
                self._recorded.add((table, version.number))
            for key in {row.key for row in (version, old) if row is not None} if is_of_log else ():
                self._counts[table, key, one.number] += 1
            if version is not None and is_of_log:
                self._written[table, version.key, one.number] = version
            if old is not None and is_of_log:
                self._replaced.setdefault((table, old.key, one.number), old)

    def name_versions(self, writers: Mapping[tuple[str, str], Mapping[int, RowWrites]]) -> None:
        """Determine the names of the last versions that transactions wrote.

        Args:
            writers: for each table and key, the transactions in the log that wrote the row, in
                order.

        SOUND BECAUSE: a transaction gets its number before those of its savepoints. A version that
        somebody else saw was committed, so its writer is in the log, unless it is older. What only
        failed transactions saw may be their own, unless the log has the number of its writer.
        """
        for row, of_row in writers.items():
            numbers = [*of_row]
            unnamed = []
            used = set()
            returned = {n for n in numbers if self._counts[*row, n] == of_row[n].number}
            for number, following in zip_longest(numbers, numbers[1:]):
                if not of_row[number].leaves_version:
                    continue
                name = self._written.get((*row, number)) if number in returned else None
                name = name or self._seen_by_others(row, number)
                if name is None and following is None:
                    name = self._present.get(row)
                elif name is None and following in returned:
                    name = self._replaced.get((*row, following))
                if name is None:
                    unnamed.append(number)
                else:
                    used.add(name.number)
                    self._names[*row, number] = name
            numbered = set(numbers)
            unclaimed = [
                version
                for version, seers in self._seen.get(row, {}).values()
                if version.number not in used
                and (row[0], version.number) not in self._recorded
                and self._versions.writer(version) not in numbered
                and not self._start.is_older(version.number)
                and seers != {_FAILED}
                and (len(seers - {_FAILED}) > 1 or not seers & self._awaiting)
            ]
            for version in unclaimed:
                writer = self._versions.writer(version)
                possible = [number for number in unnamed if is_older(number, writer)]
                rivals = [
                    other for other in unclaimed
                    if possible and is_older(possible[0], self._versions.writer(other))
                ]  # fmt: skip
                if len(possible) == 1 and len(rivals) == 1:
                    self._names[*row, possible[0]] = version

    def _seen_by_others(self, row: tuple[str, str], number: int) -> RowVersion | None:
        seen = [
            version
            for version, seers in self._seen.get(row, {}).values()
            if self._versions.writer(version) == number and seers - {number}
        ]
        return seen[0] if len(seen) == 1 else None

    def name(self, table: str, key: str, number: int) -> RowVersion | None:
        """Return the last version that a transaction wrote of a row; ``None`` if nobody saw it."""
        return self._names.get((table, key, number))
