"""Implements the fixture ``isolation``, which records transactions and asserts their level."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from isolang.errors import IsolangError
from isolang.testing.foreseen import AppCall
from isolang.testing.watching import Watches

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.testing.foreseen import Foreseen
    from isolang.verdict import Valid, Verdict

_T = TypeVar("_T")


class Isolation(Watches):
    """The value of the fixture ``isolation``: records the transactions of one test.

    Attributes:
        seed: the seed of all random choices in the test.
        level: the level that the mark of the test asserts; empty if the test has no mark.
        judged: the verdicts on the recorded histories so far.
    """

    def setup(self, function: Callable[[], object]) -> None:
        """Call a function that prepares the database, now and before each prediction is played.

        A test must call ``setup`` before it watches anything.
        """
        self._setup = function
        function()

    def call(self, function: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:
        """Call a function of the application, and remember the call for :meth:`foresee`.

        The label of the call's transactions is the text of the call, such as ``pay(1, 30)``. If the
        function is a coroutine function, its result is awaited in a new event loop; in a test that
        runs in an event loop, the result must be awaited.
        """
        if inspect.iscoroutinefunction(function) and _has_loop():
            return self._call_later(function, args, kwargs)  # type: ignore[return-value]
        with self._remember_call(function, args, kwargs) as call:
            return call.again()  # type: ignore[return-value]

    async def _call_later(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        with self._remember_call(function, args, kwargs) as call, call.labelling():
            return await function(*args, **kwargs)

    @contextmanager
    def _remember_call(
        self, function: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[AppCall]:
        """Remember which transactions a call runs."""
        call = AppCall(function, args, kwargs, self._transactions)
        try:
            yield call
        finally:
            self._calls.append(replace(call, end=self._transactions))

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
                ("isolation.watch_psycopg(conninfo) or another watch", self._watched),
                ("isolation.call(function, …)", self._calls),
            )
            if not there
        ]
        if missing or self._setup is None:
            raise IsolangError(
                f"foresee: nothing to play (got no {', no '.join(missing)}); hint: with foresee, "
                "a test needs isolation.setup, a watched driver and isolation.call"
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
        from isolang.observe.unseen import accepted_kinds, unknown_if_unseen
        from isolang.testing.assertion import require_valid
        from isolang.verdict import NOTHING_OBSERVED, Valid

        level = level or self.level
        if not level:
            raise IsolangError(
                'no level is named; pass one, or mark the test with isolation(level="si")'
            )
        if not self._paths:
            raise IsolangError(
                "nothing was recorded; record with isolation.transaction or isolation.run"
            )
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
                verdict = unknown_if_unseen(verdict, self.unseen(), kinds)
            self._waiting.discard(recorded)
            self.judged.append(verdict)
            if self.keep is not None:
                save_evidence(verdict, path, self.keep)
            try:
                accepted.append(require_valid(verdict))
            except AssertionError as error:
                refused.append(error)
        if refused:
            raise worst_error(refused)
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
        """Check that a history contains an operation, because otherwise no level can be violated.

        Raises:
            IsolangError: no transaction with a recorded operation has committed or may have
                committed.
        """
        if any(has_operations(history) for history in histories):
            return
        counts = [history.counts() for history in histories]
        transactions, aborted = (sum(c[k] for c in counts) for k in ("transactions", "aborted"))
        got = [f"{transactions} transactions, {aborted} of them aborted"]
        got += [f"unseen: {kind} ({detail})" for kind, detail in self.unseen().lines()]
        self._waiting.clear()
        raise IsolangError(
            "nothing was observed, so no level could have been violated (got "
            f"{'; '.join(got)}; expected a committed transaction with a read or a write); "
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


def has_operations(history: History) -> bool:
    """Return whether any transaction that committed, or may have committed, has an operation."""
    from isolang.history.columns import ABORTED

    columns = history.columns
    operations = columns.op_start[1:] > columns.op_start[:-1]
    return bool((operations & (columns.txn_status != ABORTED)).any())


def worst_error(errors: Sequence[AssertionError]) -> AssertionError:
    """Return the first error about an invalid verdict; if all are unknown, the first error."""
    from isolang.testing.assertion import UndecidedError

    return next((one for one in errors if not isinstance(one, UndecidedError)), errors[0])


def save_evidence(verdict: Verdict, path: Path, folder: Path) -> None:
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
