"""Adds the writes of unobserved sessions from the server's log to a history.

The log contains the changes of each committed transaction, and orders each row's changes by its
versions, but does not contain the places of versions. Readers and the table itself also name a
version by its place. If a session has seen a version, the version in the log therefore gets the
name under which it was seen.

A run's recorder completes its histories differently (:mod:`isolang.run.record.database_log`): its
lines do not state which version each write replaced, so the log numbers all versions. An observer
knows the replaced versions from the statements, and lacks only the transactions of others.

SOUND BECAUSE: an added transaction has no reads, has a separate session, and claims nothing about
its time. It is not one of the recorded transactions, because those either state their numbers or
wrote nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from isolang.observe.database import InitialSnapshot, VersionNames
from isolang.observe.history.history import ObservedHistory
from isolang.observe.history.seen import RowVersion, WrittenRow
from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.values import BOOL
from isolang.observe.unseen import FOREIGN

if TYPE_CHECKING:
    from isolang.run.drivers.postgres_log import LoggedChange

_FOREIGN_CLIENT: Final = "a client that is not observed"


class KnownPlaces(Struct, frozen=True):
    """The names of versions, by table, key and writer's number."""

    versions: VersionNames
    names: dict[tuple[str, str, int], RowVersion]

    def note(self, table: Table, version: RowVersion) -> None:
        """Remember a version seen by a session."""
        self.names[table.name, version.key, self.versions.writer(version)] = version


def add_foreign(
    history: ObservedHistory,
    changes: Iterable[LoggedChange],
    tables: Mapping[str, Table],
    places: KnownPlaces,
    start: InitialSnapshot,
) -> int:
    """Add the log's transactions that are missing in a history; return the number of them."""
    recorded = {one.number for one in history.recorded() if one.number}
    unnamed = [one for one in history.recorded() if one.unclear and not one.number]
    if history.unclear or any(one.operations for one in unnamed):
        # The unseen writes of such a transaction would look like those of an unobserved session.
        return 0
    last = dict(history.initial)
    for name, version in _final_versions(history):
        places.names[name] = version
    added = 0
    for number, group in groupby(changes, key=lambda change: change.transaction):
        if start.contains(number):
            continue
        made = _LoggedTransaction(history, number, tables, places, last, number not in recorded)
        writes = list(made.writes(list(group)))
        if made.foreign and writes:
            history.add(writes)
            added += 1
    return added


def _final_versions(
    history: ObservedHistory,
) -> Iterator[tuple[tuple[str, str, int], RowVersion]]:
    """Yield the final versions written by recorded transactions, by table, key and transaction."""
    for one in history.recorded():
        for operation in one.operations:
            if isinstance(operation, WrittenRow) and operation.version is not None and one.number:
                version = operation.version
                yield (operation.table.name, version.key, one.number), version


class _LoggedTransaction(Struct, frozen=True):
    """A transaction from the log."""

    history: ObservedHistory
    number: int
    tables: Mapping[str, Table]
    places: KnownPlaces
    last: dict[tuple[str, str], RowVersion]
    foreign: bool

    def writes(self, changes: list[LoggedChange]) -> Iterator[WrittenRow]:
        """Yield the writes of the transaction, and track the last version of each row."""
        found = []
        for change in changes:
            table = self.tables.get(change.table)
            if change.kind == "TRUNCATE":
                for name in change.table.split(", "):
                    if name in self.tables:
                        self._note_incomplete_write(self.tables[name], "TRUNCATE")
            elif table is not None:
                found.append((change, table, *_keys(table, change)))
        finals = {(table.name, new or ""): n for n, (_, table, _, new) in enumerate(found)}
        for n, (change, table, old_key, new_key) in enumerate(found):
            old = None if old_key is None else self.last.pop((table.name, old_key), None)
            new = row = None
            if new_key is not None:
                row_of = table.name, new_key
                new = self.places.names.get((*row_of, self.number))
                if new is None or finals[row_of] != n:
                    new = RowVersion(new_key, f"{self.number}(log {n})")
                self.last[row_of] = new
                row = _values(table, change)
            if (old is None and old_key is not None) or (new is not None and row is None):
                self._note_incomplete_write(table, old_key or new_key or "")
            else:
                yield WrittenRow(table, new, row, old, _FOREIGN_CLIENT, inserts=old is None)

    def _note_incomplete_write(self, table: Table, key: str) -> None:
        """Remember that the log describes a write of a row incompletely."""
        if self.foreign:
            self.history.unseen.note(
                FOREIGN,
                f"{table.name}/{key}, in the log",
                form=f"rows of {table.name}, in the log",
                tables=(table.name,),
            )
            self.history.doubtful.setdefault(table.name, f"{table.name}/{key}")


def _keys(table: Table, change: LoggedChange) -> tuple[str | None, str | None]:
    """Return the row's keys before and after a change; ``None`` for a missing row."""

    def key(row: Mapping[str, str | None]) -> str:
        return table.key_text([_json_value(table, one, row.get(one)) for one in table.key])

    if change.kind == "INSERT":
        return None, key(change.row)
    if change.kind == "DELETE":
        return key(change.old or change.row), None
    return key(change.old or change.row), key(change.row)


def _json_value(table: Table, name: str, value: str | None) -> Any:
    """Return a value from the log in its JSON form."""
    column = table.columns.get(name)
    if value is None or column is None or column.oid != BOOL:
        return value
    return value in ("t", "true")


def _values(table: Table, change: LoggedChange) -> dict[str, Any] | None:
    """Return the row to record in a history; ``None`` if the log lacks a column."""
    try:
        return {
            name: column.recorded(_json_value(table, name, change.row[name]))
            for name, column in table.columns.items()
        }
    except KeyError:  # the column is stored out of line, and did not change
        return None
