"""Provides the proxy that connects applications to their server and finally audits the database.

An observation begins with the rows already in the database. A listener then forwards messages, and
all connections record their transactions in one history.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import closing, suppress
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolang.errors import IsolangError
from isolang.observe.database import ChangeLog, InitialSnapshot, ObservedDatabase, Wire
from isolang.observe.history.completed import with_evaluated_conditions
from isolang.observe.history.history import ObservedHistory
from isolang.observe.history.lines import without_predicate_reads
from isolang.observe.history.seen import RowVersion
from isolang.observe.observation import Observation
from isolang.observe.postgres import POSTGRES
from isolang.observe.sql.catalogue import Table, Tables
from isolang.observe.sql.notes import CallNotes
from isolang.observe.unseen import CONDITIONS, CONDITIONS_ON_UNSEEN_WRITES, ERRORS, Unseen
from isolang.observe.versions.audit import Audit
from isolang.observe.versions.foreign import KnownPlaces, add_foreign
from isolang.observe.wire.address import ServerAddress
from isolang.observe.wire.listener import Listener, Send

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
        names: Mapping[str, str] | None = None,
        notes: CallNotes | None = None,
        database: ObservedDatabase = POSTGRES,
    ) -> None:
        """Store the settings; :meth:`start` opens connections and the file.

        Args:
            versions: whether the history states the versions of rows. If so, versions are read from
                the server's log at the end, together with the writes of unobserved sessions.
            names: the names of tables in the history, where they differ from those in the database.
            notes: what callers in this process note about their statements.
        """
        self._names, self._notes = names or {}, notes
        self._changes: list[LoggedChange] = []
        self._server, self._path, self._listen = server, path, listen
        self._most, self._states_versions = most_rows, versions
        self._observations: dict[str, Observation] = {}
        self._database, self._main = database, ""
        self._snapshot: InitialSnapshot
        self._log: ChangeLog | None = None
        self._listener = Listener(server, self._wire, self._run_regular_tasks)

    @property
    def port(self) -> int:
        """Return the port that the proxy listens on."""
        return self._listener.port

    def start(self) -> None:
        """Read the rows in the database, and start listening.

        Raises:
            IsolangError: the database cannot be reached, or the port or file cannot be used.
        """
        self.history = ObservedHistory(self._path, versions=self._states_versions)
        self.history.oldest_event = self._oldest
        self._audit = Audit(self.history, self._database.versions, self._server.connect, self._most)
        if self._states_versions:
            self._log = self._database.log(self._server.connect, "observe: --versions")
        with closing(self._server.connect()) as connection:
            self._main = connection.info.dbname
            made = self._new_observation(connection, self._main, prefix="")
            self._initial_rows(connection, made)
        self._listener.start(*self._listen)

    def stop(self) -> Unseen:
        """End all connections, audit the database, and complete the history."""
        self._listener.stop()
        self._read_log()
        self.close_log()
        tables = self._observations[self._main].tables
        return self._complete(self.history, tables, self._audit, self._path)

    def complete(self, into: Path) -> tuple[Unseen, dict[int, int]]:
        """Write the history recorded so far to a new file, as if the observation ended now.

        The observation goes on. Transactions that are open are recorded as unknown.

        Returns:
            What was not seen; and for each line of a transaction of a call of the application, the
            number of the call.
        """
        self._read_log()
        history, tables = self._listener.call(partial(self._copied, into))
        audit = Audit(history, self._database.versions, self._server.connect, self._most)
        return self._complete(history, tables, audit, into), history.clients

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
        self, history: ObservedHistory, tables: Tables, audit: Audit, path: Path
    ) -> Unseen:
        """Audit the database, and complete a history."""
        if self._states_versions:
            self._add_foreign(history, tables)
        history.close()
        audit.audit_at_end()
        self._write_evaluated(history, path)
        if history.doubtful:
            other = path.with_name(f"{path.name}.part")
            for shown, caller in without_predicate_reads(path, history.doubtful, other):
                history.unseen.note(CONDITIONS_ON_UNSEEN_WRITES, shown, caller)
            shutil.move(other, path)
        return history.unseen.settled()

    def _write_evaluated(self, history: ObservedHistory, path: Path) -> None:
        """Write the conditions that the server has evaluated, and count those that it has not."""
        reads = []
        for read in history.evaluated_reads:
            condition = read.condition
            selected = condition.matches | condition.ties
            if not condition.reason and not selected.issuperset(read.rows):
                condition.why, condition.is_wrong = "a returned row does not satisfy it", True
        for read in history.evaluated_reads:
            condition = read.condition
            if not condition.reason:
                reads.append(read)
                continue
            wrong = condition.is_wrong or (condition.plain is not None and condition.plain.is_wrong)
            history.unseen.note(ERRORS if wrong else CONDITIONS, read.shown, read.caller)
        if reads:
            other = path.with_name(f"{path.name}.part")
            with_evaluated_conditions(path, reads, other)
            shutil.move(other, path)

    def _read_log(self) -> None:
        if self._log is not None:
            self._changes += self._log.changes()

    def _add_foreign(self, history: ObservedHistory, known: Tables) -> None:
        """Add the unobserved transactions in the server's log."""
        places = KnownPlaces(self._database.versions, {})
        tables = [one for one in known.current() if not (one.why or one.partitioned)]
        for one in history.recorded():
            for table, version in one.versions():
                places.note(table, version)
        with closing(self._server.connect()) as connection:
            for table in tables:
                rows = self._database.versions.rows(connection, table, self._most, whole=False)
                for version, *_ in rows or ():
                    places.note(table, version)
        names = {one.where.replace('"', ""): one for one in tables}
        add_foreign(history, self._changes, names, places, self._snapshot)

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
