"""Provides the proxy in front of a MariaDB server, and completes its history at the end.

While applications work, a regular task takes what the log has become, and writes the transactions
of which all is known. What the log contradicts at the end is left out of the file again.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import closing, suppress
from copy import copy
from pathlib import Path
from time import monotonic
from typing import Any, Final

from msgspec import Struct, field

from isolang.errors import IsolangError
from isolang.observe.history.classes import write_evaluated
from isolang.observe.history.evaluated import EvaluatedConditions
from isolang.observe.history.lines import EvaluatedRead
from isolang.observe.log.mariadb import (
    LogReader,
    SnapshotPositions,
    check_access,
    check_settings,
    snapshot,
)
from isolang.observe.log.tables import Catalogue
from isolang.observe.mariadb.address import MariaDBAddress
from isolang.observe.mariadb.connection import ProxiedConnection
from isolang.observe.mariadb.evaluation import evaluate
from isolang.observe.mariadb.lines import GrowingHistory, write_end
from isolang.observe.mariadb.merge import Merger
from isolang.observe.mariadb.recording import Recording
from isolang.observe.mariadb.statements import Preparation, programs_of
from isolang.observe.mariadb.streams import PacketStream
from isolang.observe.mariadb.waiting import LogMark, WaitingTransactions
from isolang.observe.unseen import CONTRADICTED, Unseen

_SECONDS_BETWEEN_TASKS: Final = 0.2
_MANY: Final = 100  # how many transactions of the log are followed without a pause
_LONGEST_STEP_S: Final = 0.005  # how long connections may wait for the merge


class ObservedRun(Struct):
    """The numbers of an observation.

    Attributes:
        written: the number of transactions that the file has.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    evaluated: EvaluatedConditions = field(default_factory=EvaluatedConditions)
    written: int = 0


class MariaDBObserver:
    """A proxy in front of a server that records the applications' transactions as a history."""

    def __init__(
        self, server: MariaDBAddress, path: Path, *, listen: tuple[str, int], most_rows: int
    ) -> None:
        """Store the settings; :meth:`start` opens connections."""
        self._server, self._path, self._listen = server, path, listen
        self._most_rows = most_rows
        self._clients: set[asyncio.Task[None]] = set()
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
        )
        self._recording.rolls_back_on_timeout, self._recording.keeps_snapshots = timeouts, keeps
        self._merger = Merger(self._recording, self._most_rows)
        self._lines = GrowingHistory(self._path, self._recording)
        self._lines.write_initial(self._merger.add_initial(catalogue.tables, rows))
        self._waiting = WaitingTransactions(self._recording, self._merger, self._lines)
        self._marks = SnapshotPositions(connect)
        # The reader of the log loads definitions in its own time.
        self._log = LogReader(connect, copy(catalogue), position, rows)
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
        server.close()
        for task in tuple(self._clients):
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    async def _follow_safely(self) -> bool:
        """Follow the log until an error of our own, which must not end the connections.

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
        reached, groups = self._log.reached, self._log.take()
        self._doubt()
        begun = monotonic()
        for _ in self._waiting.advance(groups, reached):
            if monotonic() - begun > _LONGEST_STEP_S:
                await asyncio.sleep(0)
                begun = monotonic()
        self._note_numbers()
        if self._waiting.needs_mark:
            before = self._recording.ticket()
            position = await asyncio.to_thread(self._marks.position)
            if position is not None:
                self._waiting.add_mark(LogMark(before, self._recording.ticket(), position))
        return len(groups) >= _MANY

    def _doubt(self) -> None:
        """Leave out the tables of which the log has been wrong so far."""
        for name in tuple(self._log.doubtful):
            self._merger.doubtful.update(self._merger.tables.labels_of(name))

    def _note_numbers(self) -> None:
        self.history.outcomes = self._recording.outcomes
        self.history.written = self._lines.written

    def _accept(self) -> PacketStream:
        stream = PacketStream()
        connection = ProxiedConnection(
            self._recording, stream, self._server.open_connection, self._refresh
        )
        task = asyncio.get_running_loop().create_task(connection.run())
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)
        return stream

    async def _refresh(self) -> None:
        """Load the definitions of tables again."""
        preparation = self._recording.preparation
        preparation.catalogue, preparation.programs = await asyncio.to_thread(self._definitions)

    def _evaluate(self, reads: Sequence[EvaluatedRead]) -> None:
        """Let the server evaluate conditions, and write the predicate reads with them."""
        merger, unseen = self._merger, self._recording.unseen
        tables = {table.label: table for table in merger.tables.all()}
        evaluate(merger.evaluated, merger.images, tables, self._server.connect)
        write_evaluated(merger.evaluated, reads, merger.images, unseen, self._path, number_of=str)
        self.history.evaluated = merger.evaluated

    def _definitions(self) -> tuple[Catalogue, Any]:
        with closing(self._server.connect()) as connection:
            return Catalogue(self._server.connect), programs_of(connection)

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
        recording = self._recording
        if self._failure is not None:
            self._log.close()
            raise self._failure
        try:
            groups = [*self._log.audited()]
            problems = self._log.problems
        finally:
            self._log.close()
        for problem in problems:
            recording.unseen.note(CONTRADICTED, f"{problem.kind}: {problem.text}")
        self._doubt()
        self._waiting.finish(groups)
        self._doubt()  # the last groups may have defined tables with the same names
        self._lines.close(
            self._merger.doubtful, self._merger.is_kept, self._evaluate, self._merger.tables.all()
        )
        self._note_numbers()
        self._merger.note_odd_columns()
        unseen = recording.unseen.settled()
        write_end(self._path, self._merger.tables.all(), unseen)
        return unseen


def _version(connection: Any) -> tuple[int, int, int]:
    shown = connection.get_server_info().replace("5.5.5-", "").partition("-")[0]
    major, minor, patch = (*map(int, shown.split(".")[:3]), 0, 0)[:3]
    return major, minor, patch
