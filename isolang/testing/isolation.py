"""Implements the ``isolation`` fixture, which records transactions and asserts their level."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from isolang.errors import IsolangError
from isolang.foresee.calls import AppCall
from isolang.testing.calls import Calls

if TYPE_CHECKING:
    from isolang.explain.harm import Harm
    from isolang.explain.violation import ViolationGroups
    from isolang.foresee.played import Foreseen
    from isolang.history.history import History
    from isolang.observe.ways.inside import InsideProxy
    from isolang.options import SupersededReads, Unit
    from isolang.verdict import Valid, Verdict

_T = TypeVar("_T")


class Isolation(Calls):
    """The value of the ``isolation`` fixture: records the transactions of one test.

    Attributes:
        seed: the seed for all random choices in the test.
        level: the level asserted by the test's mark; empty if the test has no mark.
        judged: the verdicts on the recorded histories so far.
    """

    def end_watches(self) -> None:
        """End the watches of this test. What they have recorded remains."""
        self._ending.close()

    def foresee(self, level: str, *, against: str = "", most: int = 10) -> Foreseen:
        """Predict violations that this test's calls allow at a weaker level, and play them.

        This ends the test's watches.

        Args:
            level: the weaker PostgreSQL level: ``read committed`` or ``repeatable read``.
            against: the level that the test satisfies and each prediction violates. If empty, it is
                the mark's level, or ``ser`` if the test has no mark.
            most: the largest number of predictions to play.

        Raises:
            IsolangError: the test has not used :meth:`call`, :meth:`setup`, or a driver watch.
        """
        from isolang.foresee.played import Stage, foresee
        from isolang.harm.state import PreparedState
        from isolang.observe.wire.address import ServerAddress

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
        proxy = self._proxies[0]
        if not isinstance(proxy.server, ServerAddress):
            raise IsolangError(
                "foresee: only levels of PostgreSQL are predicted (got a watch of MariaDB); hint: "
                "isolation.concurrently calls functions so that they overlap"
            )
        history = self._so_far(proxy)
        self._ending.close()
        stage = Stage(
            setup=self._setup,
            watching=self.again,
            server_name=self.server_name,
            level=level.lower(),
            prepared=lambda: PreparedState(proxy.server, ignored=self._replays.ignored),
            effects=self._replays.effects,
        )
        return foresee(
            history,
            self._calls_of(history, proxy),
            stage,
            self.folder,
            against=against or self.level or "ser",
            most=most,
        )

    def _calls_of(self, history: History, proxy: InsideProxy) -> dict[int, AppCall | str]:
        """Return the call that made each transaction of a proxy's history."""
        of_client = {client: call for call in self._calls for client in call.clients}
        lines = enumerate(history.columns.txn_position.tolist())
        clients = {txn: proxy.clients[line] for txn, line in lines if line in proxy.clients}
        numbers = Counter(clients.values())
        return {
            txn: replace(of_client[client], number=numbers[client])
            for txn, client in clients.items()
            if client in of_client
        }

    @contextmanager
    def again(self, folder: Path) -> Iterator[Isolation]:
        """Record another execution, watching the same drivers with the same arguments."""
        other = Isolation(folder, seed=self.seed, timeout=self.timeout)
        try:
            for method, conninfo, options in self._watched:
                getattr(other, method)(conninfo, **options)
            yield other
            for proxy in other._proxies:
                if not proxy.is_over:
                    proxy.complete()
        finally:
            other.close()

    def history(self) -> History:
        """Return the history recorded so far: that of the first watch, or else of the recorder."""
        if not self._proxies:
            return self.recorder.history()
        return self._so_far(self._proxies[0], superseded_reads=self.superseded_reads)

    def _so_far(self, proxy: InsideProxy, **options: Any) -> History:
        """Return the history that a proxy has recorded so far, read as the mark says."""
        from isolang.api import load_history
        from isolang.observe.unseen import accepted_kinds

        accepted = accepted_kinds(self.allow_unseen)
        allowed = sorted(accepted) if self.allow_unseen else ()
        return load_history(proxy.complete(accepted), allow_unseen=allowed, **options)

    @property
    def waiting(self) -> bool:
        """Return whether any recorded history has not been checked yet."""
        return bool(self._waiting)

    def assert_level(
        self,
        level: str = "",
        *,
        timeout: float | None = None,
        allow_unseen: bool | Collection[str] | None = None,
        superseded_reads: SupersededReads | None = None,
        unit: Unit | None = None,
    ) -> list[Valid]:
        """Check that all histories recorded by this test satisfy a level.

        Args:
            level: the name of a library level, or the path of a specification; if empty, the mark's
                level.
            timeout: the time limit for each history, in seconds; by default, the mark's timeout.
            allow_unseen: the kinds of unseen activity that do not prevent a valid verdict, by their
                names in ``isolang.observe.unseen.KINDS``. ``True`` allows all kinds, and also
                allows histories in which no committed transaction has a recorded read or write. By
                default, the mark's value.
            superseded_reads: what to do with a read whose transaction read the row again under a
                lock, with another result: ``ignore`` it, ``count`` it, or ``auto``, so that the
                verdict is unknown if it depends on this. By default, the mark's value.
            unit: ``request`` to judge the calls of ``isolation.call``, and other requests, besides
                the transactions: what they check in one transaction, and act on in another. By
                default, the mark's value.

        Raises:
            IsolationError: a history violates the level.
            UndecidedError: a verdict is unknown, for example because something was not recorded.
            IsolangError: nothing was recorded or observed, or no level is given.
        """
        __tracebackhide__ = True
        from isolang.api import check, load_history
        from isolang.harm.calls import are_all_harmless
        from isolang.observe.unseen import accepted_kinds, unknown_if_unseen
        from isolang.testing.assertion import require_valid, with_harmful_first
        from isolang.verdict import NOTHING_OBSERVED, Invalid, Valid

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
        judged = [self._with_versions(path, kinds) for path in self._paths]
        superseded = superseded_reads or self.superseded_reads
        histories = [load_history(path, superseded_reads=superseded) for path in judged]
        if allowed is not True:
            self._require_observations(histories)
        named = [*zip(self._paths, judged, histories, strict=True)]
        if (unit or self.unit) == "request":
            named += [
                (recorded, path, load_history(path, superseded_reads=superseded, unit="request"))
                for recorded, path, _ in named
            ]
        for recorded, path, history in named:
            proxy = self._proxy_of(recorded)
            # A proxy knows what was not seen, and is asked below.
            read = history if proxy is None else replace(history, unseen={})
            verdict, groups = with_harmful_first(
                check(read, level, timeout=timeout or self.timeout), timeout or self.timeout
            )
            harm = None
            if verdict.nothing_observed and self._was_refused(recorded):
                verdict = replace(
                    verdict, notes=tuple(n for n in verdict.notes if n != NOTHING_OBSERVED)
                )
            if isinstance(verdict, Valid) and proxy is not None:
                verdict = unknown_if_unseen(verdict, proxy.unseen(), kinds)
            self._waiting.discard(recorded)
            self.judged.append(verdict)
            if isinstance(verdict, Invalid) and proxy is not None:
                harm, groups = self._replays.harm_of(self, proxy, verdict, groups)
            if self.keep is not None:
                keep(verdict, path, self.keep, harm, groups)
            if harm is not None and self.harmless == "note" and are_all_harmless(harm, groups):
                self.noted.append((path.name, harm))
                continue
            try:
                accepted.append(require_valid(verdict, groups, harm))
            except AssertionError as error:
                refused.append(error)
        if refused:
            raise worst(refused)
        return accepted

    def _with_versions(self, path: Path, accepted: Collection[str]) -> Path:
        """Return the file to check in place of a recorded history.

        The history of a watch goes on, so this is a new file with what it has recorded so far. For
        other histories, it is the same file.
        """
        proxy = self._proxy_of(path)
        return path if proxy is None else proxy.complete(accepted)

    def _proxy_of(self, path: Path) -> InsideProxy | None:
        """Return the proxy that records into a file; ``None`` for other histories."""
        return next((proxy for proxy in self._proxies if proxy.path == path), None)

    def _was_refused(self, path: Path) -> bool:
        """Return whether a transaction of a recording was rolled back after it met another."""
        if (proxy := self._proxy_of(path)) is not None:
            return proxy.refused()
        is_own = self._recorder is not None and path == self._recorder.path
        return is_own and self._refused.observed()

    def _require_observations(self, histories: Sequence[History]) -> None:
        """Check that some history contains an operation; otherwise no level can be violated.

        Raises:
            IsolangError: no transaction with recorded operations has committed or may have
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
            "nothing was observed, so no level could have been violated (got "
            f"{'; '.join(got)}; expected a committed transaction with a read or a write); "
            "hint: allow_unseen=True accepts it"
        )

    def close(self) -> None:
        """Stop all watches and servers, and close the recorder."""
        self._ending.close()
        self._replays.close()
        self._servers.close()
        if self._recorder is not None:
            self._recorder.close()


def observes(history: History) -> bool:
    """Return whether any transaction that has committed, or may have, has an operation."""
    from isolang.history.columns import ABORTED

    columns = history.columns
    operations = columns.op_start[1:] > columns.op_start[:-1]
    return bool((operations & (columns.txn_status != ABORTED)).any())


def worst(errors: Sequence[AssertionError]) -> AssertionError:
    """Return the first error about an invalid verdict, or the first error if all are unknown."""
    from isolang.testing.assertion import UndecidedError

    return next((one for one in errors if not isinstance(one, UndecidedError)), errors[0])


def keep(
    verdict: Verdict,
    path: Path,
    folder: Path,
    harm: Harm | None = None,
    groups: ViolationGroups | None = None,
) -> None:
    """Save a history, its verdict's certificate and a page about it in a folder.

    Files with the same names from an earlier run are replaced. An unknown verdict has no
    certificate.
    """
    from shutil import copyfile
    from tempfile import TemporaryDirectory

    from isolang.report import page
    from isolang.verdict import Invalid, Unknown

    folder.mkdir(parents=True, exist_ok=True)
    copyfile(path, folder / path.name)
    name = f"{path.stem}.{folder_of(verdict.spec.name)}.html"
    shown = verdict
    if isinstance(verdict, Invalid) and harm is not None and groups is not None:
        shown = replace(verdict, violation=groups.groups[0].violation)
    text = page(shown, name=path.name, harm=harm, groups=groups)
    (folder / name).write_text(text, encoding="utf-8")
    if not isinstance(verdict, Unknown):
        with TemporaryDirectory(dir=folder) as alone:
            path = verdict.certificate().save(alone)
            path.replace(folder / path.name)


def folder_of(test: str) -> str:
    """Return a folder name for a test, based on its node id."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", test).strip("-.") or "test"
