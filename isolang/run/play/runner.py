"""Plays a run in this process: starts the target, lets the clients play, and removes the tables."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from isolang.declared import command_line
from isolang.errors import IsolangError
from isolang.language.load import load_spec
from isolang.run.play.blame import blame_error
from isolang.run.play.clients import Clients
from isolang.run.play.faults import check_faults
from isolang.run.play.level_mix import level_mix_of
from isolang.run.play.live import Watcher
from isolang.run.play.loop import RunLoop
from isolang.run.play.phases import RunPlan, run_plan_of
from isolang.run.play.scripts import ScriptPlayer
from isolang.run.play.selftest import LISTS, require_passed, selftest_levels
from isolang.run.play.state import Run, RunState
from isolang.run.record.recorder import Recorder
from isolang.run.settings import Settings
from isolang.run.sql import SqlTarget, plans_of
from isolang.run.target import MarksTables, ReportsVersions, SupportsStandby, Target, TargetError
from isolang.run.targets import is_foreign, target_named


class Runner:
    """Plays one run on a target in this process, step by step.

    Attributes:
        level: the level of the run; for a mix, an artificial level whose name combines all names.
        notes: the doubts raised by the self-test.
    """

    def __init__(self, settings: Settings, target: Target | None = None) -> None:
        """Resolve the names of the target, level and workloads, without starting anything.

        Args:
            target: a started target without tables, which keeps running after the run. If it is
                ``None``, the runner starts and stops the target named in the settings.

        Raises:
            TargetError: the target, the level or a workload does not exist.
        """
        self.settings = settings
        self._own = target is None
        self.target = target or target_named(settings.target, prefix=settings.prefix)
        self._watcher: Watcher | None = None
        self.mix = level_mix_of(settings, self.target)
        self.level = self.mix.level
        self.claims = settings.claims or self.level.claims
        load_spec(self.claims)  # raise an error for an unknown specification before anything starts
        self.plan = run_plan_of(settings, self.target)
        self.tests_adapter = is_foreign(self.target) and not settings.trusted
        self.notes: tuple[str, ...] = ()
        self.target.lists = frozenset(self.plan.lists())
        if self.tests_adapter:
            self.target.lists |= frozenset(LISTS)
        _check_options(settings, self.target)
        if isinstance(self.target, SqlTarget):
            _choose_statements(self.target, settings, self.plan, level=self.mix.parts[0].name)

    def start(self) -> None:
        """Start the server or connect to it, and create the tables.

        Raises:
            TargetError: the server cannot be reached or the tables cannot be created; the message
                says what to do.
        """
        if self._own:
            self.target.start()
            self.test_adapter()
        self.version = self.target.version()
        self.target.setup(self.plan.registers(), self.plan.lists())

    def test_adapter(self) -> None:
        """Test the adapter on the started target, unless it is part of isolang or trusted.

        Raises:
            TargetError: the test failed; the message says which check failed.
        """
        if self.tests_adapter:
            found = selftest_levels(self.mix, self.target, self.settings.claims)
            self.notes = require_passed(found, self.target)

    def close(self) -> None:
        """Remove the tables, and stop the server if this run started it."""
        self._end_watch()
        if self._own:
            self.target.close()
        else:
            self.target.remove()

    def run(
        self,
        show: Callable[[RunState], None] = lambda state: None,
        *,
        began: Callable[[Path], None] = lambda path: None,
    ) -> Run:
        """Play until the time is up, the user presses Ctrl-C, or a prefix is found to be invalid.

        Args:
            show: a function called with the progress a few times a second.

        Raises:
            IsolangError: the run cannot continue, and no transaction has committed.
        """
        path = self._history_path()
        accounts = self.settings.versions and isinstance(self.target, ReportsVersions)
        ordered: Literal["ordered"] | None = (
            "ordered" if accounts and self.target.ordered else None  # type: ignore[attr-defined]
        )
        with Recorder(path, about=self._header(), versions=ordered) as recorder:
            clients = Clients(self.settings, self.plan, self.target, self.mix, recorder)
            watcher = Watcher(path, self.claims, seconds=self.settings.timeout)
            self._watcher = watcher
            loop = RunLoop(
                self.settings, self.plan, self.target, clients=clients, recorder=recorder,
                watcher=watcher, show=show,
            )  # fmt: skip
            state = clients.state
            state.began = state.answered = time.monotonic()
            interrupted = False
            began(path)
            show(state)
            self._note_plans(recorder)
            try:
                scripts = ScriptPlayer(self.settings, self.plan, self.target, self.mix, recorder)
                loop.play(scripts)
            except KeyboardInterrupt:
                interrupted = True
                clients.end()
            finally:
                watcher.rest()
            if clients.fatal is None and not state.hung:
                self._note_plans(recorder)
            state.look = watcher.last
        self._require_ownership(path)
        self._note_end(clients)
        return Run(
            settings=self.settings,
            version=self.version,
            mix=self.mix,
            claims=self.claims,
            path=path,
            state=state,
            seconds=(state.ended or time.monotonic()) - state.began,
            interrupted=interrupted,
            planned=tuple(phase.workload.name for phase in self.plan.phases),
            notes=self.notes,
        )

    def _note_plans(self, recorder: Recorder) -> None:
        """Note each access path's plan in the history, if reads use several access paths."""
        if isinstance(self.target, SqlTarget) and self.settings.access == "any":
            for plan in plans_of(self.target):
                recorder.note("plan", plan)

    def with_watch_verdict(self, run: Run) -> Run:
        """Return the run, with the watch's final verdict if the history is long enough for one."""
        if self._watcher is None:
            return run
        # Only a check of the whole file can use stated versions or detect commits lost by a killed
        # server.
        kept = not run.settings.versions and not run.state.hung and not run.may_lose_commits
        try:
            return replace(run, watched=self._watcher.finish() if kept else None)
        finally:
            self._end_watch()

    def _end_watch(self) -> None:
        if self._watcher is not None:
            self._watcher.end()
            self._watcher = None

    def account(self, run: Run) -> Run:
        """Add the versions from the database's log to the history, if the settings request them.

        Raises:
            TargetError: the database no longer has its log.
        """
        if not (self.settings.versions and isinstance(self.target, ReportsVersions)):
            return run
        return replace(run, notes=(*run.notes, *self.target.account(run.path)))

    def _require_ownership(self, path: Path) -> None:
        """Check that the tables still belong to the run; otherwise no verdict is possible."""
        target = self.target
        owned = target.ownership(now=True) if isinstance(target, MarksTables) else "ours"
        if owned == "lost":
            raise TargetError(
                f"{target.address}: another process removed or replaced the tables during the "
                f"run, so its history in {path} cannot be judged; hint: do not start two runs "
                "with the same --table-prefix at the same time, nor --clean during a run"
            )
        if owned == "unknown":
            self.notes = (
                *self.notes,
                "isocheck could not verify after the run that the tables still belonged to it",
            )

    def _note_end(self, clients: Clients) -> None:
        """Store the error that ended the run early; raise it if there is nothing to judge."""
        error, state = clients.fatal, clients.state
        if error is None:
            return
        if not isinstance(error, IsolangError):
            error = blame_error(error, self.target) or error
        if not state.committed or not isinstance(error, IsolangError):
            raise error
        state.problem = str(error)

    # --- the file ---

    def _history_path(self) -> Path:
        folder = Path(self.settings.folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TargetError(
                f"{folder}: cannot create the folder ({error.strerror}); choose another with "
                "--save DIR"
            ) from None
        parts = (self.target.name, self.level.name, self.settings.workload)
        name = "-".join(re.sub(r"[^a-z0-9+]+", "-", part) for part in parts)
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        stem = f"{name}-seed{self.settings.seed}-{stamp}"
        path, again = folder / f"{stem}.edn", 1
        while path.exists():
            path, again = folder / f"{stem}-{again}.edn", again + 1
        return path

    def _header(self) -> str:
        s, when = self.settings, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        # An address as text does not contain the password.
        typed = ["isocheck", "run", *command_line(replace(s, target=str(self.target.address)))]
        return (
            f"{self.version}; level {self.level.name} ({self.level.says}); "
            f"workload {s.workload}; {s.sessions} sessions; seed {s.seed}; {when}"
            + "".join(f"; fault {fault}" for fault in s.faults)
            + (f"; {s.standby} sessions on a standby" if s.standby else "")
            + f"\n{shlex.join(typed)}"
        )


def run(settings: Settings, show: Callable[[RunState], None] = lambda state: None) -> Run:
    """Run a workload on a database in this process, and return the run.

    Args:
        show: a function called with the progress a few times a second.

    Raises:
        IsolangError: the run is impossible; the message says what to do.
    """
    runner = Runner(settings)
    try:
        runner.start()
        return runner.account(runner.with_watch_verdict(runner.run(show)))
    finally:
        runner.close()


def _choose_statements(target: SqlTarget, settings: Settings, plan: RunPlan, *, level: str) -> None:
    """Choose a target's level, access paths and write forms, and whether rows have children."""
    target.options(
        level=level,
        access=settings.access,
        update=settings.update,
        cascading=any(phase.workload.cascades for phase in plan.phases),
    )


def _check_options(settings: Settings, target: Target) -> None:
    """Check that a target supports the chosen options, and prepare the target for them."""
    own = not target.address.host  # isocheck starts the server
    if settings.faults:
        check_faults(settings.faults, target)
    if settings.versions:
        if not isinstance(target, ReportsVersions):
            raise TargetError(
                f"{target.name}: the target reports no versions; only postgres and etcd support "
                "--versions"
            )
        if settings.faults:
            raise TargetError(
                "--versions: cannot be combined with --fault, because the versions that a server "
                "reports do not survive a fault"
            )
        target.reports_versions = True
    if settings.savepoints and "savepoints" in target.lacks:
        raise TargetError(f"{target.name}: the target has no savepoints")
    if settings.processes > 1:
        if "processes" in target.lacks:
            raise TargetError(
                f"{target.name}: the database lives in one process; leave out --processes"
            )
        if settings.faults:
            raise TargetError(
                "--processes: cannot be combined with --fault, because faults cannot reach "
                "clients in other processes"
            )
    if settings.standby:
        if not isinstance(target, SupportsStandby) or not own:
            hint = "isocheck run postgres --standby 2 and isocheck run redis --standby 2 start them"
            raise TargetError(
                f"{target.name}: isocheck cannot start a standby for this target; {hint}"
            )
        target.standby = True
