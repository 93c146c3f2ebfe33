"""Provides the proxy that connects applications to their server and finally audits the database.

An observation begins with the rows already in the database. A listener then forwards messages, and
all connections record their transactions in one history.
"""

from __future__ import annotations

import asyncio
import shutil
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isolang.observe.history.history import ObservedHistory
from isolang.observe.history.lines import without_predicate_reads
from isolang.observe.history.seen import RowVersion
from isolang.observe.observation import Observation
from isolang.observe.sql.catalogue import ALL_TABLES, Table, Tables, exact_json, parse_description
from isolang.observe.sql.rewriting import DatabaseFacts
from isolang.observe.unseen import CONDITIONS_ON_UNSEEN_WRITES, Unseen
from isolang.observe.versions.audit import Audit, rows_of
from isolang.observe.wire.address import ServerAddress
from isolang.observe.wire.connection import Wire
from isolang.observe.wire.listener import Listener, Send

if TYPE_CHECKING:
    from isolang.run.drivers.postgres_log import PostgresLog

_SNAPSHOT_QUERY: Final = "SELECT pg_current_snapshot()::text"


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
    ) -> None:
        """Store the settings; :meth:`start` opens connections and the file.

        Args:
            versions: whether the history states the versions of rows. If so, versions are read from
                the server's log at the end, together with the writes of unobserved sessions.
        """
        self._server, self._path, self._listen = server, path, listen
        self._most, self._states_versions = most_rows, versions
        self._observations: dict[str, Observation] = {}
        self._main = self._snapshot = ""
        self._log: PostgresLog | None = None
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
        self._audit = Audit(self.history, self._server.connect, self._most)
        if self._states_versions:
            from isolang.run.drivers.postgres_log import PostgresLog

            self._log = PostgresLog(self._server.connect, "observe: --versions")
        with closing(self._server.connect()) as connection:
            self._main = connection.info.dbname
            made = self._new_observation(connection, self._main, prefix="")
            self._initial_rows(connection, made)
        self._listener.start(*self._listen)

    def stop(self) -> Unseen:
        """End all connections, audit the database, and complete the history."""
        self._listener.stop()
        history = self.history
        if self._log is not None:
            self._add_foreign(self._log)
        history.close()
        self._audit.audit_at_end()
        if history.doubtful:
            other = self._path.with_name(f"{self._path.name}.part")
            for shown in without_predicate_reads(self._path, history.doubtful, other):
                history.unseen.note(CONDITIONS_ON_UNSEEN_WRITES, shown)
            shutil.move(other, self._path)
        return history.unseen.settled()

    def _add_foreign(self, log: PostgresLog) -> None:
        """Add the unobserved transactions in the server's log."""
        from isolang.observe.versions.foreign import KnownPlaces, StartSnapshot, add_foreign

        history, places = self.history, KnownPlaces({})
        observation = self._observations[self._main]
        tables = [one for one in observation.tables.current() if not (one.why or one.partitioned)]
        for one in history.recorded():
            for table, version in one.versions():
                places.note(table, version)
        with closing(self._server.connect()) as connection:
            for table in tables:
                found = rows_of(connection, table, self._most, whole=False)
                for oid, xmin, ctid, key in found or ():
                    places.note(table, RowVersion.of(table, oid, xmin, ctid, exact_json(key)))
        try:
            names = {one.where.replace('"', ""): one for one in tables}
            start = StartSnapshot.parse(self._snapshot)
            add_foreign(history, list(log.changes()), names, places, start)
        finally:
            log.close()

    # --- the observer's own connection ---

    def _new_observation(self, connection: Any, database: str, *, prefix: str) -> Observation:
        """Return a new observation of a database, to be shared by all sessions of that database."""
        made = Observation(
            database=DatabaseFacts(version=connection.info.server_version),
            history=self.history,
            tables=Tables(database, prefix=prefix),
            most_rows=self._most,
            audit=self._audit.audit_before_changes,
        )
        self._refresh(connection, made)
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
                for (text,) in connection.execute(ALL_TABLES):
                    table = parse_description(text)[1]
                    if table is not None and not table.why:
                        sql = f"SELECT FROM {table.where} LIMIT 1"
                        made.tables.add(
                            table, rows_known=connection.execute(sql).fetchone() is None
                        )
        except Exception:  # the session is counted as unseen, and passed through unchanged
            return None
        return made

    def _refresh(self, connection: Any, observation: Observation) -> None:
        observation.database.ask(connection.execute)
        observation.refreshed = observation.epoch

    def _initial_rows(self, connection: Any, observation: Observation) -> None:
        """Read the rows of all tables that are not too large, in one snapshot."""
        import psycopg

        rows: list[tuple[Table, RowVersion, dict[str, Any]]] = []
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        (snapshot,) = connection.execute(_SNAPSHOT_QUERY).fetchone()
        self._snapshot = snapshot
        self.history.versions.before = int(snapshot.partition(":")[0]) % 2**32
        found = [parse_description(text)[1] for (text,) in connection.execute(ALL_TABLES)]
        for described_table in found:
            if described_table is None:
                continue
            table = observation.tables.add(described_table)
            if table.why:
                continue
            try:
                with connection.transaction():
                    reported = rows_of(connection, table, self._most, whole=True)
            except psycopg.Error:
                reported = None
            table.rows_known = reported is not None
            for oid, xmin, ctid, key, whole in reported or ():
                version = RowVersion.of(table, oid, xmin, ctid, exact_json(key))
                rows.append((table, version, table.row(exact_json(whole))))
        connection.execute("COMMIT")
        self.history.write_initial_rows(rows)

    # --- while applications work ---

    def _wire(self, to_client: Send, to_server: Send) -> Wire:
        return Wire(self.history, self.observe, to_client=to_client, to_server=to_server)

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
