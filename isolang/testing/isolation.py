"""Implements the fixture ``isolation``, which records transactions and asserts their level."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from isolang.errors import IsolangError
from isolang.testing.foreseen import AppCall, current_label
from isolang.testing.refused import Refused

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.orm import registry

    from isolang.history.history import History
    from isolang.observe.drivers.driver import DriverWatch
    from isolang.observe.drivers.library import Library
    from isolang.observe.drivers.mapped import SqlAlchemyWatch
    from isolang.observe.unseen import Unseen
    from isolang.run.operation import Recorded
    from isolang.run.outcome import Connection, Driver, Outcome
    from isolang.run.record.recorder import RecordedTransaction, Recorder
    from isolang.testing.foreseen import Foreseen
    from isolang.verdict import Valid, Verdict

_T = TypeVar("_T")
_W = TypeVar("_W", bound="DriverWatch")


class Isolation:
    """The value of the fixture ``isolation``: records the transactions of one test.

    Attributes:
        seed: the seed of all random choices in the test.
        level: the level that the mark of the test asserts; empty if the test has no mark.
        judged: the verdicts on the recorded histories so far.
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
    ) -> None:
        """Store the settings; no file is created before something is recorded.

        Args:
            folder: the folder for the recorded histories.
            seed: the seed of all random choices.
            level: the level that :meth:`assert_level` asserts by default.
            timeout: the default time limit for each verdict, in seconds.
            allow_unseen: the default of the argument ``allow_unseen`` of :meth:`assert_level`.
            keep: the folder in which each checked history is kept, with its certificate and its
                page; ``None`` to keep nothing.
        """
        self.folder = Path(folder)
        self.seed = seed
        self.level = level
        self.timeout = timeout
        self.allow_unseen = allow_unseen
        self.keep = None if keep is None else Path(keep)
        self.judged: list[Verdict] = []
        self._paths: list[Path] = []
        self._waiting: set[Path] = set()
        self._recorder: Recorder | None = None
        self._refused = Refused()
        self._sessions = count()
        self._here = threading.local()
        self._lock = threading.Lock()
        self._ending = ExitStack()
        self._servers = ExitStack()
        self._watches: list[DriverWatch] = []
        self._transactions = 0  # the number of transactions that have ended
        self._calls: list[AppCall] = []
        self._setup: Callable[[], object] | None = None
        # The method that began each watch of a driver, with its arguments.
        self._watched: list[tuple[str, str, dict[str, Any]]] = []
        self._log_watch: DriverWatch | None = None  # the watch that reads the database's log

    # --- recording ---

    @property
    def recorder(self) -> Recorder:
        """The recorder of this test, which is created when it is first used."""
        from isolang.run.record.recorder import Recorder

        with self._lock:
            if self._recorder is None:
                path = self.folder / "history.edn"
                self._recorder = Recorder(path, about=f"seed {self.seed}")
                self._recorder.ended = self._end_of_transaction
                self._recorder.label = current_label
                self._add(path)
            return self._recorder

    def transaction(
        self,
        connection: Connection | None = None,
        *,
        session: Hashable = None,
        plan: Sequence[Recorded] = (),
        driver: Driver | None = None,
    ) -> RecordedTransaction:
        """Record one transaction, like ``Recorder.transaction``.

        Args:
            connection: the connection to commit at the end of the block; ``None`` if the block
                commits the transaction itself.
            session: the session of the transaction; by default the session of this thread.
            plan: the operations of the transaction, if they are known in advance, as in
                ``Recorder.transaction``.
            driver: the driver for the connection, as in ``Recorder.transaction``.
        """
        from isolang.observe.drivers.callers import caller
        from isolang.run.outcome import driver_of
        from isolang.run.record.recorder import RecordedTransaction

        class Paused(RecordedTransaction):
            """A transaction that pauses after each read, which lets other transactions run."""

            # `self` is the Isolation of the test.
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
        """The number of the session that transactions of this thread belong to."""
        if not hasattr(self._here, "session"):
            self._here.session = next(self._sessions)
        number: int = self._here.session
        return number

    @property
    def random(self) -> Random:
        """The random number generator of this thread, which the seed determines."""
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
        """Call functions concurrently, each in its own threads, round by round.

        Args:
            functions: the functions to call, which record their transactions or use a watched
                database.
            times: the number of rounds; in each round, all calls begin together.
            clients: the number of threads for each function.
            pause: the longest time in seconds that a recorded transaction waits after each read.
                The waits are random and let other transactions interleave.
            ignoring: the exceptions that calls may raise because the database rolled back a
                transaction.

        Returns:
            The number of calls that raised an exception of ``ignoring``.

        Raises:
            Exception: a call raised another exception; the first such exception is raised again.
        """
        callers = [function for function in functions for _ in range(clients)]
        together = threading.Barrier(len(callers))
        refused = count()
        raised: list[BaseException] = []
        # Sessions are numbered before the threads start, so only the seed decides random choices.
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
        """Run a workload of ``isocheck run`` on a database, and record its history.

        Args:
            target: a name or a URL, as in docs/run.md. For a name, isocheck starts a server.
            level: the isolation level of the database; if empty, the first level of the target.
            workload: the name of the workload; ``auto`` runs several workloads in turn.
            seconds: the length of the run in seconds.
            transactions: the number of transactions after which the run ends early; ``None`` means
                no limit.
            clients: the number of concurrent clients.

        Returns:
            The recorded history. It is checked by the next call of :meth:`assert_level`, or at the
            end of the test if the test is marked.

        Raises:
            IsolangError: the workload cannot be run; the message says how to solve the problem.
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
        """Start a database server for this test, which is removed when the test ends.

        Args:
            target: the name of the database system, which must be ``postgres``.

        Returns:
            The URL of the server for ``psycopg.connect`` and ``asyncpg.connect``, and for
            SQLAlchemy if a driver is added to the scheme. The database is empty, and the server
            listens on a socket in a temporary folder.

        Raises:
            IsolangError: another database system is requested, or the programs of PostgreSQL are
                not installed.
        """
        from isolang.run.targets import target_named

        if target != "postgres":
            raise IsolangError(
                f"isolation.server: no such server (got {target!r}, expected postgres)"
            )
        started: Any = target_named(target)
        self._servers.callback(started.close)
        started.start()
        return f"postgresql://postgres@/postgres?host={started.server.folder}"

    def _add(self, path: Path) -> None:
        self._paths.append(path)
        self._waiting.add(path)

    def watch(self, engine: Engine, mapped: registry) -> SqlAlchemyWatch:
        """Record an application's transactions through SQLAlchemy, until the test ends.

        Args:
            engine: the engine of the application, for PostgreSQL with psycopg or asyncpg; of an
                asynchronous engine ``engine.sync_engine``.
            mapped: the registry of the application's classes, such as ``Base.registry``.

        Returns:
            The watch, whose ``unseen`` counts what it could not record.

        Raises:
            IsolangError: the engine uses another database or driver, or the database is watched
                already.
        """
        from isolang.observe.drivers.mapped import SqlAlchemyWatch

        return self._begin_watch(
            SqlAlchemyWatch(engine, mapped, self.recorder, others=self._watches)
        )

    def watch_psycopg(
        self,
        conninfo: str = "",
        *,
        names: Mapping[str, str] | None = None,
        versions: bool = False,
        **parameters: Any,
    ) -> DriverWatch:
        """Record an application's transactions through psycopg, until the test ends.

        The watch sees all statements that this process sends through psycopg 3, with synchronous
        and asynchronous connections. This includes the statements of Django and SQLAlchemy.

        Args:
            conninfo: the PostgreSQL database, as a connection string for ``psycopg.connect``.
            names: for each table that has another name in the history, that name by the name of the
                table in the database.
            versions: whether to read the log of the database. The log contains the order of
                versions and the writes of clients that are not watched. docs/versions.md states the
                privileges that this needs.
            parameters: further arguments for ``psycopg.connect``.

        Returns:
            The watch, whose ``unseen`` counts what it could not record.

        Raises:
            IsolangError: the database cannot be reached, or ``versions`` is true and the database
                does not keep a log with the needed contents.
        """
        from isolang.observe.drivers.through_psycopg import Psycopg

        self._watched.append(("watch_psycopg", conninfo, {"names": names, **parameters}))
        return self._watch_driver(Psycopg(), conninfo, names, versions, parameters)

    def watch_asyncpg(
        self,
        conninfo: str = "",
        *,
        names: Mapping[str, str] | None = None,
        versions: bool = False,
        **parameters: Any,
    ) -> DriverWatch:
        """Record an application's transactions through asyncpg, until the test ends.

        The arguments, the result and the exceptions are the same as for :meth:`watch_psycopg`,
        because the watch itself connects through psycopg.
        """
        from isolang.observe.drivers.through_asyncpg import Asyncpg

        self._watched.append(("watch_asyncpg", conninfo, {"names": names, **parameters}))
        return self._watch_driver(Asyncpg(), conninfo, names, versions, parameters)

    def _watch_driver(
        self,
        library: Library,
        conninfo: str,
        names: Mapping[str, str] | None,
        versions: bool,
        parameters: dict[str, Any],
    ) -> DriverWatch:
        from isolang.observe.drivers.driver import DriverWatch

        watch = self._begin_watch(
            DriverWatch(
                conninfo,
                self.recorder,
                library,
                names=names,
                versions=versions,
                others=self._watches,
                **parameters,
            )
        )
        if versions and self._log_watch is None:
            self._log_watch = watch
        return watch

    def _begin_watch(self, watch: _W) -> _W:
        self._ending.enter_context(watch)
        self._watches.append(watch)
        return watch

    def unseen(self) -> Unseen:
        """Return how many things of each kind the watches did not record, with examples."""
        from isolang.observe.unseen import Unseen

        every = Unseen()
        for watch in self._watches:
            every.add(watch.all_unseen)
        return every.settled()

    # --- foreseeing ---

    def setup(self, function: Callable[[], object]) -> None:
        """Call a function that prepares the database, now and before each prediction is played.

        A test must call ``setup`` before it watches anything.
        """
        self._setup = function
        function()

    def call(self, function: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:
        """Call a function of the application, and remember the call for :meth:`foresee`.

        The transactions of the call are labelled with it: ``pay(1, 30)``. If the function is a
        coroutine function, its result is awaited in a new event loop; in a test that runs in an
        event loop, the result must be awaited.
        """
        if inspect.iscoroutinefunction(function) and _has_loop():
            return self._call_later(function, args, kwargs)  # type: ignore[return-value]
        with self._remembered(function, args, kwargs) as call:
            return call.again()  # type: ignore[return-value]

    async def _call_later(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        with self._remembered(function, args, kwargs) as call, call.labelling():
            return await function(*args, **kwargs)

    @contextmanager
    def _remembered(
        self, function: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[AppCall]:
        """Remember which transactions a call runs."""
        call = AppCall(function, args, kwargs, self._transactions)
        try:
            yield call
        finally:
            self._calls.append(replace(call, end=self._transactions))

    def _end_of_transaction(
        self, session: Hashable, outcome: Outcome, operations: Sequence[Recorded]
    ) -> None:
        self._transactions += 1
        self._refused.ended(session, outcome, operations)

    def foresee(self, level: str, *, against: str = "", most: int = 10) -> Foreseen:
        """Predict violations that the calls of this test allow at a weaker level, and play them.

        This ends the watches of the test.

        Args:
            level: the weaker level of PostgreSQL, ``read committed`` or ``repeatable read``.
            against: the level that the test satisfies and that each prediction violates. If empty,
                it is the level of the mark, or ``ser`` if the test has no mark.
            most: the largest number of predictions to play.

        Raises:
            IsolangError: the test has not used :meth:`call`, :meth:`setup`, or a watch of a
                driver.
        """
        from isolang.testing.foreseen import foresee

        missing = [
            what
            for what, there in (
                ("isolation.setup(function)", self._setup),
                ("isolation.watch_psycopg(conninfo)", self._watched),
                ("isolation.call(function, …)", self._calls),
            )
            if not there
        ]
        if missing or self._setup is None:
            raise IsolangError(
                f"foresee: nothing can be played (got no {', no '.join(missing)}); "
                "hint: a test that foresees prepares the database, watches a driver, and calls"
            )
        self._ending.close()
        return foresee(
            self, self._calls, self._setup, level, against=against or self.level or "ser", most=most
        )

    @contextmanager
    def again(self, folder: Path) -> Iterator[Isolation]:
        """Watch the same drivers with the same arguments, and record another execution."""
        other = Isolation(folder, seed=self.seed, timeout=self.timeout)
        try:
            for method, conninfo, options in self._watched:
                getattr(other, method)(conninfo, **options)
            yield other
        finally:
            other.close()

    def server_name(self) -> str:
        """Return the name and version of the PostgreSQL server that is watched, for messages."""
        import psycopg

        _, conninfo, options = self._watched[0]
        with psycopg.connect(conninfo, **{k: v for k, v in options.items() if k != "names"}) as one:
            version = one.info.server_version
        return f"PostgreSQL {version // 10_000}.{version % 10_000}"

    # --- judging ---

    @property
    def waiting(self) -> bool:
        """Return whether a recorded history has not been judged yet."""
        return bool(self._waiting)

    def assert_level(
        self,
        level: str = "",
        *,
        timeout: float | None = None,
        allow_unseen: bool | Collection[str] | None = None,
    ) -> list[Valid]:
        """Check that all histories that this test has recorded satisfy a level.

        Args:
            level: the name of a level in the library, or the path of a specification; if empty, the
                level of the mark.
            timeout: the time limit for each history, in seconds; by default the timeout of the
                mark.
            allow_unseen: the kinds of unrecorded things that do not prevent a valid verdict, as
                names in ``isolang.observe.unseen.KINDS``. ``True`` allows all kinds, and also that
                no committed transaction has a recorded read or write. By default, the value in the
                mark.

        Raises:
            IsolationError: a history violates the level.
            UndecidedError: a verdict is unknown, for example because something was not recorded.
            IsolangError: nothing was recorded or observed, or no level is given.
        """
        __tracebackhide__ = True
        from isolang.api import check, load_history
        from isolang.observe.unseen import accepted_kinds, loud
        from isolang.testing.assertion import accept
        from isolang.verdict import NOTHING_OBSERVED, Valid

        level = level or self.level
        if not level:
            raise IsolangError(
                'no level to assert; name one, or mark the test isolation(level="si")'
            )
        if not self._paths:
            raise IsolangError("nothing was recorded; use isolation.transaction or isolation.run")
        allowed = self.allow_unseen if allow_unseen is None else allow_unseen
        kinds = accepted_kinds(allowed)
        accepted, refused = [], []
        judged = [self._with_versions(path) for path in self._paths]
        histories = [load_history(path) for path in judged]
        if allowed is not True:
            self._require_observations(histories)
        for recorded, path, history in zip(self._paths, judged, histories, strict=True):
            verdict = check(history, level, timeout=timeout or self.timeout)
            if verdict.nothing_observed and self._is_own(recorded) and self._refused.observed():
                verdict = replace(
                    verdict, notes=tuple(n for n in verdict.notes if n != NOTHING_OBSERVED)
                )
            if isinstance(verdict, Valid) and self._is_own(recorded):
                verdict = loud(verdict, self.unseen(), kinds)
            self._waiting.discard(recorded)
            self.judged.append(verdict)
            if self.keep is not None:
                keep(verdict, path, self.keep)
            try:
                accepted.append(accept(verdict))
            except AssertionError as error:
                refused.append(error)
        if refused:
            raise worst(refused)
        return accepted

    def _with_versions(self, path: Path) -> Path:
        """Return the file to check for a recorded history.

        For the test's own recording, this is a new file to which the watches have added predicate
        reads, or versions and writes from the database's log. Other histories are returned
        unchanged.

        Raises:
            IsolangError: the watch no longer reads the database's log.
        """
        if not self._is_own(path):
            return path
        if self._log_watch is None:
            into = path.with_name(f"{path.stem}.conditions{path.suffix}")
            alone = len(self._watches) == 1
            for watch in self._watches:
                path = watch.close(path, into if alone else None)
            return path
        into = path.with_name(f"{path.stem}.versions{path.suffix}")
        self._log_watch.account(path, into)
        return into

    def _is_own(self, path: Path) -> bool:
        """Return whether a file is the test's own recording; other files are from workloads."""
        return self._recorder is not None and path == self._recorder.path

    def _require_observations(self, histories: Sequence[History]) -> None:
        """Check that some history contains an operation, without which no level can be violated.

        Raises:
            IsolangError: no transaction with a recorded operation has committed or may have
                committed.
        """
        if any(observes(history) for history in histories):
            return
        counts = [history.counts() for history in histories]
        transactions, aborted = (sum(c[k] for c in counts) for k in ("transactions", "aborted"))
        got = [f"{transactions} transactions, {aborted} of them aborted"]
        got += [f"unseen: {kind} ({detail})" for kind, detail in self.unseen().lines()]
        self._waiting.clear()
        raise IsolangError(
            f"nothing was observed, so no level could have been broken (got {'; '.join(got)}; "
            "expected a committed transaction with a read or a write); "
            "hint: allow_unseen=True accepts it"
        )

    def close(self) -> None:
        """Stop all watches and servers, and close the recorder."""
        self._ending.close()
        self._servers.close()
        if self._recorder is not None:
            self._recorder.close()


def _has_loop() -> bool:
    """Return whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def observes(history: History) -> bool:
    """Return whether some transaction that committed or may have committed has an operation."""
    from isolang.history.columns import ABORTED

    columns = history.columns
    operations = columns.op_start[1:] > columns.op_start[:-1]
    return bool((operations & (columns.txn_status != ABORTED)).any())


def worst(errors: Sequence[AssertionError]) -> AssertionError:
    """Return the first error about an invalid verdict; if all are unknown, the first error."""
    from isolang.testing.assertion import UndecidedError

    return next((one for one in errors if not isinstance(one, UndecidedError)), errors[0])


def keep(verdict: Verdict, path: Path, folder: Path) -> None:
    """Save a history, the certificate of its verdict and a page about it in a folder.

    Files of an earlier run that have the same names are replaced. An unknown verdict has no
    certificate.
    """
    from shutil import copyfile
    from tempfile import TemporaryDirectory

    from isolang.report import page
    from isolang.verdict import Unknown

    folder.mkdir(parents=True, exist_ok=True)
    copyfile(path, folder / path.name)
    name = f"{path.stem}.{folder_of(verdict.spec.name)}.html"
    (folder / name).write_text(page(verdict, name=path.name), encoding="utf-8")
    if not isinstance(verdict, Unknown):
        with TemporaryDirectory(dir=folder) as alone:
            path = verdict.certificate().save(alone)
            path.replace(folder / path.name)


def folder_of(test: str) -> str:
    """Return a folder name for a test, made from the test's node id."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", test).strip("-.") or "test"
