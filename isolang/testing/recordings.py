"""Records the transactions of a test, executed by the test itself or by a workload."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from isolang.errors import IsolangError
from isolang.foresee.calls import AppCall, current_client, current_label
from isolang.testing.refused import RolledBackReads
from isolang.testing.replays import Replays

if TYPE_CHECKING:
    from isolang.explain.harm import Harm
    from isolang.history.history import History
    from isolang.observe.ways.inside import InsideProxy
    from isolang.observe.ways.library import LibraryWatch
    from isolang.options import SupersededReads, Unit
    from isolang.run.operation import RecordedOperation
    from isolang.run.outcome import Connection, Driver, Outcome
    from isolang.run.record.recorder import RecordedTransaction, Recorder
    from isolang.verdict import Verdict


class Recordings:
    """The recordings of one test.

    Attributes:
        level: the level asserted by the test's mark; empty if the test has no mark.
        judged: the verdicts on the recorded histories so far.
        noted: the histories, by name, whose violations were only noted, with their harm.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        seed: int = 0,
        level: str = "",
        timeout: float = 60.0,
        keep: str | os.PathLike[str] | None = None,
        allow_unseen: bool | Collection[str] = False,
        superseded_reads: SupersededReads = "auto",
        harmless: str = "",
        unit: Unit = "transaction",
    ) -> None:
        """Store the settings. No file is created before something is recorded.

        Args:
            timeout: the default time limit for each verdict, in seconds.
            harmless: ``note`` if violations that are harmless with this data are only noted.
        """
        self.folder = Path(folder)
        self.seed = seed
        self.level = level
        self.timeout = timeout
        self.allow_unseen = allow_unseen
        self.superseded_reads = superseded_reads
        self.unit = unit
        self.keep = None if keep is None else Path(keep)
        self.harmless = harmless
        self.judged: list[Verdict] = []
        self.noted: list[tuple[str, Harm]] = []
        self._paths: list[Path] = []
        self._waiting: set[Path] = set()
        self._recorder: Recorder | None = None
        self._refused = RolledBackReads()
        self._sessions = count()
        self._here = threading.local()
        self._lock = threading.Lock()
        self._ending = ExitStack()
        self._servers = ExitStack()
        self._watches: list[LibraryWatch] = []
        self._proxies: list[InsideProxy] = []
        self._calls: list[AppCall] = []
        self._replays = Replays()
        self._setup: Callable[[], object] | None = None
        # The method that started each watch, with its arguments.
        self._watched: list[tuple[str, str, dict[str, Any]]] = []

    @property
    def recorder(self) -> Recorder:
        """The recorder of this test, created on first use."""
        from isolang.run.record.recorder import Recorder

        with self._lock:
            if self._recorder is None:
                names = ("history.edn", "recorded.edn")
                path = next(path for name in names if not (path := self.folder / name).exists())
                self._recorder = Recorder(path, about=f"seed {self.seed}")
                self._recorder.ended = self._end_of_transaction
                self._recorder.label, self._recorder.client = current_label, current_client
                self._add(path)
            return self._recorder

    def transaction(
        self,
        connection: Connection | None = None,
        *,
        session: Hashable = None,
        plan: Sequence[RecordedOperation] = (),
        driver: Driver | None = None,
    ) -> RecordedTransaction:
        """Record one transaction, like ``Recorder.transaction``."""
        from isolang.observe.ways.callers import caller
        from isolang.run.outcome import driver_of
        from isolang.run.record.recorder import RecordedTransaction

        class Paused(RecordedTransaction):
            """A transaction that pauses after each read to let other transactions run."""

            # `self` is the test's Isolation object.
            def read(paused, key: Any, value: Any, version: Any = None) -> None:  # noqa: N805
                super().read(key, value, version)
                time.sleep(self.random.random() * getattr(self._here, "pause", 0.0))

        recorder = self.recorder
        if session is None:
            session = self.session
        self._waiting.add(recorder.path)
        driver = driver or driver_of(connection)
        labels = tuple(filter(None, [current_label()]))
        transaction = Paused(recorder, session, connection, tuple(plan), driver, labels=labels)
        transaction.caller = caller
        return transaction

    @property
    def session(self) -> int:
        """The number of the session that this thread's transactions belong to."""
        if not hasattr(self._here, "session"):
            self._here.session = next(self._sessions)
        number: int = self._here.session
        return number

    @property
    def random(self) -> Random:
        """This thread's random number generator, determined by the seed."""
        if not hasattr(self._here, "random"):
            self._here.random = Random(f"{self.seed}/{self.session}")
        one: Random = self._here.random
        return one

    def concurrently(
        self,
        *functions: Callable[[], object],
        times: int = 10,
        clients: int = 1,
        pause: float = 0.005,
        ignoring: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> int:
        """Call functions concurrently, each in separate threads, round by round.

        Args:
            pause: the longest time, in seconds, that a recorded transaction waits after each read.
                The waits are random, and let other transactions interleave.

        Raises:
            Exception: a call raised another exception; the first such exception is re-raised.
        """
        callers = [function for function in functions for _ in range(clients)]
        together = threading.Barrier(len(callers))
        refused = count()
        raised: list[BaseException] = []
        # Sessions are numbered before the threads start, so random choices depend only on the seed.
        numbers = [next(self._sessions) for _ in callers]

        def call(function: Callable[[], object], number: int) -> None:
            self._here.session, self._here.pause = number, pause
            for _ in range(times):
                try:
                    together.wait()
                except threading.BrokenBarrierError:
                    return
                try:
                    function()
                except ignoring:
                    next(refused)
                except BaseException as error:
                    raised.append(error)
                    together.abort()
                    return

        threads = [
            threading.Thread(target=call, args=(function, number), daemon=True)
            for function, number in zip(callers, numbers, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if raised:
            raise raised[0]
        return next(refused)

    def run(
        self,
        target: str,
        *,
        level: str = "",
        workload: str = "auto",
        seconds: float = 5.0,
        transactions: int | None = None,
        clients: int = 10,
    ) -> History:
        """Run one of ``isocheck run``'s workloads on a database, and record its history.

        Args:
            seconds: the duration of the run, in seconds.

        Returns:
            The recorded history. It is checked by the next call to :meth:`assert_level`, or at the
            end of the test if the test is marked.

        Raises:
            IsolangError: the workload cannot be run; the message explains how to solve the problem.
        """
        from isolang.run.play.runner import run
        from isolang.run.settings import Settings

        recorded = run(
            Settings(
                target=target,
                level=level,
                claims=self.level,
                workload=workload,
                seconds=seconds,
                transactions=transactions,
                sessions=clients,
                seed=self.seed,
                folder=str(self.folder),
                timeout=self.timeout,
            )
        )
        self._add(recorded.path)
        from isolang.api import load_history

        return load_history(recorded.path)

    def server(self, target: str = "postgres") -> str:
        """Start a database server for this test; it is removed when the test ends.

        Returns:
            The URL of the server, whose database is empty; for SQLAlchemy, a driver is added to the
            scheme. ``postgres`` listens on a socket in a temporary folder, and ``mariadb`` on a
            port of this machine.

        Raises:
            IsolangError: another database system is requested, or its programs are not installed.
        """
        from isolang.run.targets import target_named

        if target == "mariadb":
            from isolang.observe.mariadb.server import server_named

            where = self._servers.enter_context(server_named(target))
            return f"mysql://{where.user}@{where.host}:{where.port}/{where.database}"
        if target != "postgres":
            raise IsolangError(
                f"isolation.server: unknown server (got {target!r}, expected postgres or mariadb)"
            )
        started: Any = target_named(target)
        self._servers.callback(started.close)
        started.start()
        return f"postgresql://postgres@/postgres?host={started.server.folder}"

    def _add(self, path: Path) -> None:
        self._paths.append(path)
        self._waiting.add(path)

    def _end_of_transaction(
        self, session: Hashable, outcome: Outcome, operations: Sequence[RecordedOperation]
    ) -> None:
        self._refused.ended(session, outcome, operations)
