"""Reads versions and their writers from the watched database's log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from isolang.history.row_text import SeenRow, value_text, written_text
from isolang.observe.drivers import rows
from isolang.observe.drivers.writes import DELETED
from isolang.observe.sql.catalogue import Table, lookup_query
from isolang.observe.sql.lexer import catalogue_name
from isolang.run.drivers.postgres_log import LoggedChange, PostgresLog
from isolang.run.record.database_log import LoggedVersion, RewriteCounts, rewrite_history

if TYPE_CHECKING:
    from pathlib import Path


class VersionsLog:
    """The changes logged by the database while a watch runs."""

    def __init__(self, connect: Callable[[], Any], name: str, names: Mapping[str, str]) -> None:
        """Start reading the log.

        Args:
            connect: a function that opens a separate connection for the watch.
            name: the name of the watch, for messages.
            names: the names of tables in the history, where they differ from those in the database.

        Raises:
            IsolangError: the database does not log its versions.
        """
        self._connect, self._names = connect, names
        self._log = PostgresLog(connect, name)
        self._changes: list[LoggedChange] = []
        self._ended = False

    def end(self) -> None:
        """Read the remaining log, and stop."""
        self._changes += self._log.changes()
        self._log.close()
        self._ended = True

    def account(self, path: Path, into: Path) -> RewriteCounts:
        """Write a recorded history, with versions from the log."""
        if not self._ended:
            self._changes += self._log.changes()
        before = self._log.before % 2**32

        def is_initial(transaction: str) -> bool:
            return 0 < (before - int(transaction)) % 2**32 < 2**31

        return rewrite_history(
            path, self._installed(), is_initial=is_initial, into=into, values_are_writers=True
        )

    def _installed(self) -> Iterator[LoggedVersion]:
        tables: dict[str, Table | str] = {}
        with self._connect() as connection:
            for change in self._changes:
                if change.table not in tables:
                    found = connection.execute(lookup_query([change.table])).fetchall()
                    tables[change.table] = rows.table_of(found, self._names)
                table = tables[change.table]
                if not isinstance(table, str):
                    yield from _versions_of(change, table)


def _versions_of(change: LoggedChange, table: Table) -> Iterator[LoggedVersion]:
    """Yield the versions installed by a logged change, with their keys in the history."""
    number = change.transaction % 2**32

    def key(row: Mapping[str, str | None]) -> str | None:
        values = [row.get(one) for one in table.key]
        return None if None in values else rows.key_of(table.name, values)

    new, old = key(change.row), key(change.old)
    if old is not None and old != new and change.kind == "UPDATE":
        yield LoggedVersion(transaction=number, key=old, value=DELETED)
    if new is None:
        new = old if change.kind == "DELETE" else None
    if new is not None:
        gone = change.kind == "DELETE"
        others = {catalogue_name(one) for one in table.others}
        row = {one: value_text(value) for one, value in change.row.items() if one in others}
        yield LoggedVersion(
            transaction=number,
            key=new,
            value=DELETED if gone else number,
            row="" if gone else written_text(SeenRow(row=row)),
        )
