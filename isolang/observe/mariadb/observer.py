"""Provides the proxy in front of a MariaDB server, and completes its history at the end.

While applications work, a regular task takes what the log has become, and writes the transactions
of which all is known. What the log contradicts at the end is left out of the file again.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import closing, suppress
from copy import copy
from pathlib import Path
from time import monotonic
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from isolang.errors import IsolangError
from isolang.observe.history.evaluated import EvaluatedConditions
from isolang.observe.log.mariadb import (
    LogReader,
    SnapshotPositions,
    check_access,
    check_settings,
    snapshot,
)
from isolang.observe.log.tables import Catalogue
from isolang.observe.mariadb.address import MariaDBAddress
from isolang.observe.mariadb.completed import ObservationStart
from isolang.observe.mariadb.connection import ProxiedConnection
from isolang.observe.mariadb.recording import Recording
from isolang.observe.mariadb.statements import Preparation, programs_of
from isolang.observe.mariadb.streams import PacketStream
from isolang.observe.mariadb.waiting import LogMark
from isolang.observe.sql.notes import CallNotes
from isolang.observe.unseen import Unseen

_T = TypeVar("_T")
_SECONDS_BETWEEN_TASKS: Final = 0.2
_MANY: Final = 100  # how many transactions of the log are followed without a pause
_LONGEST_STEP_S: Final = 0.005  # how long connections may wait for the merge


class ObservedRun(Struct):
    """The numbers of an observation.

    Attributes:
        written: the number of transactions that the file has.
        unseen: what was not seen so far; the log tells more at the end.
        refused: how many transactions the server rolled back because of another one.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    unseen: Unseen = field(default_factory=Unseen)
    refused: int = 0
    evaluated: EvaluatedConditions = field(default_factory=EvaluatedConditions)
    written: int = 0


class MariaDBObserver:
    """A proxy in front of a server that records the applications' transactions as a history."""

    def __init__(
        self,
        server: MariaDBAddress,
        path: Path,
        *,
        listen: tuple[str, int],
        most_rows: int,
        names: Mapping[str, str] | None = None,
        notes: CallNotes | None = None,
    ) -> None:
        """Store the settings; :meth:`start` opens connections.

        Args:
            names: the names of tables in the history, where they differ from those in the database.
            notes: what callers in this process note about their statements. With them, the history
                is written by :meth:`complete` alone.
        """
        self._names, self._notes = names or {}, notes
        self._server, self._path, self._listen = server, path, listen
        self._most_rows = most_rows
        self._clients: dict[asyncio.Task[None], ProxiedConnection] = {}
        self._log: LogReader | None = None
        self._is_leaving = False
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None
        self.history = ObservedRun()
        self.port = 0

    def start(self) -> None:
        """Read the rows in the database, and start listening.

        Raises:
            IsolangError: the database cannot be observed, or the port cannot be used.
        """
        with closing(self._server.connect()) as connection:
            self._check(connection)
            programs = programs_of(connection)
            level, timeouts, keeps = self._settings(connection)
            version = _version(connection)
        connect = self._server.connect
        catalogue = Catalogue(connect)
        position, rows = snapshot(connect, catalogue, most=self._most_rows)
        check_access(connect, position)
        self._recording = Recording(
            Preparation(catalogue, programs, version[0] * 10_000 + version[1] * 100 + version[2]),
            level,
            self._notes,
        )
        self._recording.rolls_back_on_timeout, self._recording.keeps_snapshots = timeouts, keeps
        self._start = ObservationStart(
            server=self._server, catalogue=copy(catalogue), position=position, rows=rows,
            most_rows=self._most_rows, names=self._names,
        )  # fmt: skip
        if self._notes is None:
            self._joined = self._start.history(self._recording, self._path)
            self._marks = SnapshotPositions(connect)
            self._log = self._start.reader()
        self._note_numbers()
        self._start_listening()

    def _check(self, connection: Any) -> None:
        """Refuse a server that cannot be observed."""
        shown = connection.get_server_info()
        if "MariaDB" not in shown:
            raise IsolangError(
                f"observe: the server is not MariaDB (got {shown}); hint: the log of MySQL is not "
                "understood"
            )
        if lines := check_settings(connection):
            raise IsolangError(
                f"observe: the server's log does not name all rows; hint: set {'; '.join(lines)} "
                "in [mysqld] of my.cnf, or in SET GLOBAL for all but log_bin"
            )

    @staticmethod
    def _settings(connection: Any) -> tuple[str, bool, bool]:
        with closing(connection.cursor()) as cursor:
            cursor.execute("SELECT @@global.tx_isolation, @@global.innodb_rollback_on_timeout")
            level, timeouts = cursor.fetchone()
            cursor.execute("SHOW GLOBAL VARIABLES LIKE 'innodb_snapshot_isolation'")
            row = cursor.fetchone()
        keeps = row is not None and row[1] == "ON"
        return level.lower().replace("-", " "), bool(timeouts), keeps

    # --- the proxy ---

    def _start_listening(self) -> None:
        ready: list[Exception] = []
        event = threading.Event()

        def run() -> None:
            try:
                asyncio.run(self._serve(event))
            except OSError as error:
                ready.append(error)
                event.set()

        self._thread = threading.Thread(target=run, daemon=True, name="isolang-observe")
        self._thread.start()
        event.wait()
        if ready:
            host, port = self._listen
            raise IsolangError(f"observe: cannot listen on {host}:{port} ({ready[0]})")

    async def _serve(self, ready: threading.Event) -> None:
        loop = asyncio.get_running_loop()
        self._ended, self._loop = asyncio.Event(), loop
        server = await loop.create_server(self._accept, *self._listen)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        while not self._ended.is_set():
            pause = 0.0 if await self._follow_safely() else _SECONDS_BETWEEN_TASKS
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), pause)
            if self._is_leaving:
                server.close()
                if not self._clients:
                    break
        server.close()
        for task in tuple(self._clients):
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    async def _follow_safely(self) -> bool:
        """Follow the log, until an internal error, which must not end the connections.

        Return whether there is more to follow already.
        """
        if self._failure is None:
            try:
                return await self._follow_log()
            except Exception as error:
                self._failure = error
        return False

    async def _follow_log(self) -> bool:
        """Write the transactions of which all is known now, without holding up the connections."""
        if self._log is None:
            return False
        joined = self._joined
        reached, groups = self._log.reached, self._log.take()
        joined.doubt(self._log)
        begun = monotonic()
        for _ in joined.waiting.advance(groups, reached):
            if monotonic() - begun > _LONGEST_STEP_S:
                await asyncio.sleep(0)
                begun = monotonic()
        self._note_numbers()
        if joined.waiting.needs_mark:
            before = self._recording.ticket()
            position = await asyncio.to_thread(self._marks.position)
            if position is not None:
                joined.waiting.add_mark(LogMark(before, self._recording.ticket(), position))
        return len(groups) >= _MANY

    def _note_numbers(self) -> None:
        recording = self._recording
        self.history.outcomes, self.history.unseen = recording.outcomes, recording.unseen
        self.history.refused = recording.refused
        if self._log is not None:
            self.history.written = self._joined.lines.written

    def _accept(self) -> PacketStream:
        stream = PacketStream()
        connection = ProxiedConnection(self._recording, stream, self._server, self._refresh)
        task = asyncio.get_running_loop().create_task(connection.run())
        self._clients[task] = connection
        task.add_done_callback(self._clients.pop)
        return stream

    async def _refresh(self) -> None:
        """Load the definitions of tables again."""
        preparation = self._recording.preparation
        preparation.catalogue, preparation.programs = await asyncio.to_thread(self._definitions)

    def _definitions(self) -> tuple[Catalogue, Any]:
        with closing(self._server.connect()) as connection:
            return Catalogue(self._server.connect), programs_of(connection)

    # --- in the process of the application ---

    def call(self, function: Callable[[], _T]) -> _T:
        """Return the result of a function that runs between two messages of any connection."""

        async def run() -> _T:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def name_write(self, backend: int, table: str, key: Mapping[str, Any], where: str) -> None:
        """Name the ``file:line`` that caused the write of a row by an open transaction.

        Args:
            backend: the server's number of the transaction's connection.
            key: the values of the row's primary key in Python, by column.
        """

        def set_caller() -> None:
            for connection in self._clients.values():
                if connection.forwarder.thread == backend:
                    connection.session.name_write(table.rpartition(".")[2], key, where)

        self.call(set_caller)

    def complete(self, into: Path, accepted: Collection[str] = ()) -> tuple[Unseen, dict[int, int]]:
        """Write the history recorded so far to a new file, as if the observation ended now.

        The observation goes on. The log is read again for it.

        Returns:
            What was not seen; and for each line of a transaction of a call of the application, the
            number of the call.
        """
        joined = self._start.history(self.call(self._copied), into)
        unseen = joined.finish(self._start.reader())
        return unseen, joined.lines.clients

    def _copied(self) -> Recording:
        self._note_numbers()
        return self._recording.copied()

    def leave(self) -> None:
        """Accept no further connections, and let those that are open go on."""

        def close() -> None:
            self._is_leaving = True

        self.call(close)

    # --- the end ---

    def stop(self, accepted: Collection[str] = ()) -> Unseen:
        """End all connections, compare the log with the database, and complete the history.

        Tables of which the log was wrong are left out of the whole file, so a violation that was
        announced before rests on nothing then.
        """
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join()
        self._marks.close()
        assert self._log is not None
        if self._failure is not None:
            self._log.close()
            raise self._failure
        unseen = self._joined.finish(self._log)
        self._note_numbers()
        self.history.evaluated = self._joined.merger.evaluated
        return unseen


def _version(connection: Any) -> tuple[int, int, int]:
    shown = connection.get_server_info().replace("5.5.5-", "").partition("-")[0]
    major, minor, patch = (*map(int, shown.split(".")[:3]), 0, 0)[:3]
    return major, minor, patch
