"""Provides the proxy that connects applications to their server and finally audits the database.

An observation begins with the rows already in the database. A listener then forwards messages, and
all connections record their transactions in one history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolang.errors import IsolangError
from isolang.observe.database import ChangeLog, InitialSnapshot, ObservedDatabase, Wire
from isolang.observe.history.completion import complete_file
from isolang.observe.history.history import ObservedHistory
from isolang.observe.history.seen import RowVersion
from isolang.observe.observation import Observation
from isolang.observe.postgres import POSTGRES
from isolang.observe.sql.catalogue import Table, Tables
from isolang.observe.sql.notes import CallNotes
from isolang.observe.unseen import Unseen
from isolang.observe.versions.audit import Audit
from isolang.observe.versions.logged import ReadLog, changed_rows
from isolang.observe.versions.sightings import Sightings
from isolang.observe.wire.address import ServerAddress
from isolang.observe.wire.listener import Listener, Send
from isolang.observe.wire.unobserved import UnobservedProxy

if TYPE_CHECKING:
    from isolang.run.drivers.postgres_log import LoggedChange


class Observer:
    """A proxy in front of a server that records the applications' transactions as a history."""

    def __init__(
        self,
        server: ServerAddress,
        path: Path,
        *,
        listen: tuple[str, int],
        most_rows: int,
        versions: bool = False,
        reads_log: bool = False,
        names: Mapping[str, str] | None = None,
        notes: CallNotes | None = None,
        server_on_trial: bool = False,
        application_is_unit: bool = False,
        call_names: Mapping[int, str] | None = None,
        database: ObservedDatabase = POSTGRES,
    ) -> None:
        """Store the settings; :meth:`start` opens connections and the file.

        Args:
            versions: whether the history states the versions of rows. If so, versions are read from
                the server's log at the end, together with the writes of unobserved sessions.
            reads_log: whether the server's log is read at the end for writes that statements do not
                return. With ``versions``, it always is.
            names: the names of tables in the history, where they differ from those in the database.
            notes: what callers in this process note about their statements.
            server_on_trial: whether the server may show a commit too early or too late. If so, no
                unseen read is harmless because of the times of commits.
            application_is_unit: whether ``application_name`` names the request of a transaction.
            call_names: the names of the application's calls, by number.
        """
        self._call_names = call_names or {}
        self._application_is_unit = application_is_unit
        self._trusts_server = not server_on_trial
        self._names, self._notes = names or {}, notes
        self._changes: list[LoggedChange] = []
        self._server, self._path, self._listen = server, path, listen
        self._most, self._states_versions = most_rows, versions
        self._reads_log = versions or reads_log
        self._last_mark = 0
        self._observations: dict[str, Observation] = {}
        self._database, self._main = database, ""
        self._snapshot: InitialSnapshot
        self._log: ChangeLog | None = None
        self._listener = Listener(server, self._wire, self._run_regular_tasks)

    @property
    def port(self) -> int:
        """Return the port that the proxy listens on."""
        return self._listener.port

    @property
    def listener(self) -> Listener:
        """The part that forwards messages, and may hold connections so that they overlap."""
        return self._listener

    def start(self) -> None:
        """Read the rows in the database, and start listening.

        Raises:
            IsolangError: the database cannot be reached, or the port or file cannot be used.
        """
        self.history = ObservedHistory(self._path, versions=self._states_versions)
        self.history.keeps_initial = self._reads_log
        self.history.oldest_event = self._oldest
        self._audit = Audit(self.history, self._database.versions, self._server.connect, self._most)
        if self._reads_log:
            self._log = self._database.log(self._server.connect, "observe: --versions")
        with closing(self._server.connect()) as connection:
            self._main = connection.info.dbname
            made = self._new_observation(connection, self._main, prefix="")
            if self._log is not None and self._log.is_writable():
                made.next_mark = self._next_mark
            self._initial_rows(connection, made)
        self._listener.start(*self._listen)

    def stop(self, accepted: Collection[str] = ()) -> Unseen:
        """End all connections, audit the database, and complete the history.

        Args:
            accepted: the kinds of unseen activity that do not prevent a valid verdict.
        """
        self._listener.stop()
        self._read_log()
        tables = self._observations[self._main].tables
        try:
            return self._complete(self.history, tables, self._audit, self._path, accepted)
        finally:
            self.close_log()

    def complete(self, into: Path, accepted: Collection[str] = ()) -> tuple[Unseen, dict[int, int]]:
        """Write the history recorded so far to a new file, as if the observation ended now.

        The observation goes on. Transactions that are open are recorded as unknown.

        Args:
            accepted: as for :meth:`stop`.

        Returns:
            What was not seen; and for each line of a transaction of a call of the application, the
            number of the call.
        """
        self._read_log()
        history, tables = self._listener.call(partial(self._copied, into))
        audit = Audit(history, self._database.versions, self._server.connect, self._most)
        return self._complete(history, tables, audit, into, accepted), history.clients

    def name_write(self, backend: int, table: str, key: Mapping[str, Any], where: str) -> None:
        """Name the ``file:line`` that caused the last write of a row by an open transaction.

        Args:
            backend: the number of the server's process for the transaction's connection.
            table: the name of the table, preceded by its schema unless that is ``public``.
            key: the values of the row's primary key in Python, by column.
        """
        schema, _, name = table.rpartition(".")
        of = f'"{schema or "public"}"."{name}"'

        def set_caller() -> None:
            for client in self._listener.clients:
                one = client.wire.transaction_of(backend)
                if one is not None:
                    one.set_write_caller(of, key, where)

        self._listener.call(set_caller)

    def leave(self) -> None:
        """Accept no further connections, and let those that are open go on unrecorded.

        An application may keep them in a pool, and its prepared statements return added columns; so
        the proxy serves them until they end, and its thread with them.
        """
        self._listener.call(self.history.discard)
        self._listener.leave()
        self.close_log()

    def close_log(self) -> None:
        """Stop reading the server's log."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _copied(self, into: Path) -> tuple[ObservedHistory, Tables]:
        """Return a copy of the history that writes to another file, and of the tables it names."""
        memo: dict[int, Any] = {id(self): self}
        history = self.history.copied(into, memo)
        return history, deepcopy(self._observations[self._main].tables, memo)

    def _complete(
        self,
        history: ObservedHistory,
        tables: Tables,
        audit: Audit,
        path: Path,
        accepted: Collection[str],
    ) -> Unseen:
        """Audit the database, and complete a history."""
        if self._reads_log and (self._states_versions or history.awaits_log()):
            self._add_logged(history, tables)
        history.close()
        audit.audit_at_end()
        return complete_file(path, history, accepted, trusts_server=self._trusts_server)

    def _next_mark(self) -> int:
        self._last_mark += 1
        return self._last_mark

    def _read_log(self) -> list[LoggedChange]:
        """Read the log; without versions, only if a mark was written."""
        if self._log is None or not (self._states_versions or self._last_mark):
            return []
        self._log.flush()
        changes = [*self._log.changes()]
        self._changes += changes
        return changes

    def _add_logged(self, history: ObservedHistory, known: Tables) -> None:
        """Add the writes that only the server's log shows, and unobserved transactions."""
        dialect, versions = self._database.dialect, self._database.versions
        changes = [*self._changes]
        with closing(self._server.connect()) as connection:
            for described in dialect.tables(connection):
                if not known.knows(described):
                    known.add(described)
            tables = {table.where.replace('"', ""): table for table in known.current()}
            sightings = Sightings(versions, self._snapshot)
            for table in tables.values():
                if not table.why:
                    with suppress(IsolangError):
                        rows = versions.rows(connection, table, self._most, whole=False)
                        sightings.note_present(table, [version for version, *_ in rows or ()])
            for part, whole in dialect.partitions(connection):
                if whole in tables:
                    tables[part] = tables[whole]
            altered = dialect.altered(connection, known.changed())
        for table, key in changed_rows(self._read_log(), tables):
            sightings.note_later_change(table, key)
        log = ReadLog(
            history, changes, tables=tables, sightings=sightings, start=self._snapshot,
            altered=altered, defers=self._observations[self._main].database.defers,
        )  # fmt: skip
        log.add(foreign=self._states_versions)

    # --- the observer's own connection ---

    def _new_observation(self, connection: Any, database: str, *, prefix: str) -> Observation:
        """Return a new observation of a database, to be shared by all sessions of that database."""
        dialect = self._database.dialect
        made = Observation(
            dialect=dialect,
            versions=self._database.versions,
            database=dialect.facts(connection),
            history=self.history,
            tables=Tables(database, prefix=prefix, names=self._names),
            most_rows=self._most,
            audit=self._audit.audit_before_changes,
            notes=self._notes,
            application_is_unit=self._application_is_unit,
            call_names=self._call_names,
        )
        self.history.versions.is_old |= not made.database.returns_old_rows
        self._observations[database] = made
        return made

    def observe(self, database: str) -> Observation | None:
        """Return the observation of a database; ``None`` if the database cannot be read."""
        if database in self._observations:
            return self._observations[database]
        try:
            with closing(self._server.connect(database)) as connection:
                made = self._new_observation(connection, database, prefix=f"{database}:")
                for table in self._database.dialect.tables(connection):
                    if not table.why:
                        empty = self._database.dialect.is_empty(connection, table)
                        made.tables.add(table, rows_known=empty)
        except Exception:  # the session is counted as unseen, and passed through unchanged
            return None
        return made

    def _refresh(self, connection: Any, observation: Observation) -> None:
        self._database.dialect.refresh(connection, observation.database)
        observation.refreshed = observation.epoch

    def _initial_rows(self, connection: Any, observation: Observation) -> None:
        """Read the rows of all tables that are not too large, in one snapshot."""
        versions = self._database.versions
        rows: list[tuple[Table, RowVersion, dict[str, Any], bytes | None]] = []
        with versions.snapshot(connection) as self._snapshot:
            self.history.versions.is_initial = self._snapshot.is_older
            for described_table in self._database.dialect.tables(connection):
                table = observation.tables.add(described_table)
                if table.why:
                    continue
                try:
                    reported = versions.rows(connection, table, self._most, whole=True)
                except IsolangError:
                    reported = None
                table.rows_known = reported is not None
                rows += [
                    (table, version, table.row(row or ()), image)
                    for version, row, image in reported or ()
                ]
            readable = [table for table in observation.tables.current() if not table.why]
            # Rows may be older than their constraints' triggers, or loaded without these.
            observation.database.keys_hold &= not any(
                self._database.dialect.lacks_parents(connection, table, readable)
                for table in {one.oid: one for one, *_ in rows}.values()
            )
        self.history.write_initial_rows(rows)

    # --- while applications work ---

    def _wire(self, to_client: Send, to_server: Send) -> Wire:
        return self._database.wire(
            self.history, self.observe, to_client=to_client, to_server=to_server
        )

    def _oldest(self) -> int:
        wires = [client.wire for client in tuple(self._listener.clients)]
        found = [one for wire in wires if (one := wire.oldest_event()) is not None]
        return min(found, default=1 << 62)

    async def _run_regular_tasks(self) -> None:
        """Query the names of functions if a definition has changed, and write the history."""
        if any(one.refreshed != one.epoch for one in self._observations.values()):
            # If this fails, the known function names remain unchanged.
            with suppress(Exception):
                await asyncio.to_thread(self._refresh_all)
        self.history.flush()

    def _refresh_all(self) -> None:
        for database, one in list(self._observations.items()):
            if one.refreshed != one.epoch:
                one.refreshed = one.epoch  # even if the database no longer exists
                with closing(self._server.connect(database)) as connection:
                    self._refresh(connection, one)


def unobserved(server: ServerAddress) -> UnobservedProxy:
    """Return a proxy in front of a server that records nothing.

    Raises:
        IsolangError: no port can be used.
    """
    return UnobservedProxy(server, POSTGRES)
