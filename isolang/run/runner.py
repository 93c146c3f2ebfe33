"""Many clients play a workload on a database, until the time is up or a violation is found."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from isolang.run.faults import Nemesis, check_faults
from isolang.run.interleave import interleave
from isolang.run.operation import Read, Wait, only_reads, with_savepoints
from isolang.run.play import driver_for, play
from isolang.run.prefix import Look, Watcher
from isolang.run.processes import Children, Share
from isolang.run.recorder import Recorder
from isolang.run.sql import Access, SqlTarget, Update
from isolang.run.target import Client, Level, Replicated, Serving, Target, TargetError
from isolang.run.targets import level_named, target_named
from isolang.run.workloads import Shape, Source, Workload, workload_named
from isolang.run.workloads.scripted import SCRIPTS

AUTO: Final = (
    ("pairs", 0.5),
    ("insert-delete", 0.1),
    ("rmw", 0.1),
    ("append", 0.1),
    ("long-fork", 0.1),
    ("bank", 0.05),
    ("blindw-rw+", 0.05),
)
"""What ``auto`` plays, and for which shares of the time: what finds most comes first."""

_RECONNECTING: Final = 60.0  # seconds
_READ_BACK: Final = 100  # keys of a transaction
_TRIES: Final = 20  # to read them


class Settings(Struct, frozen=True, kw_only=True):
    """What to run.

    Attributes:
        target: a name or a URL.
        level: of the target; empty for its first one.
        claims: the specification to judge by; empty for what the level claims.
        workload: its name; ``auto`` for several.
        shape: the workload's sizes.
        seconds: how long.
        transactions: stop after this many, if that is earlier.
        sessions: clients at a time.
        processes: that the clients are shared out to.
        standby: this many more read from a standby.
        seed: of all random choices.
        faults: what goes wrong meanwhile, of ``FAULTS``.
        prefix: how the names of tables begin.
        access: how rows are found.
        update: how rows are written.
        savepoints: the share of writes before which another one is undone.
        folder: where to save histories.
        watched: judge growing prefixes while the clients run.
        to_the_end: go on after a violation.
        timeout: seconds for the verdict.
    """

    target: str
    level: str = ""
    claims: str = ""
    workload: str = "auto"
    shape: Shape = field(default_factory=Shape)
    seconds: float = 30.0
    transactions: int | None = None
    sessions: int = 10
    processes: int = 1
    standby: int = 0
    seed: int = 0
    faults: tuple[str, ...] = ()
    prefix: str = "isocheck_"
    access: Access = "index"
    update: Update = "update"
    savepoints: float = 0.0
    folder: str = "isocheck-runs"
    watched: bool = True
    to_the_end: bool = False
    timeout: float = 120.0


class State(Struct, kw_only=True):
    """How a run goes.

    Attributes:
        began: ``time.monotonic()`` at the first transaction.
        committed: this many transactions did.
        aborted: this many certainly did not.
        maybe: this many have an unknown outcome.
        latency: seconds of all committed ones together.
        level: of the database.
        workload: what is played now.
        errors: the kinds of errors, by their first words.
        faults: how often each was done.
        look: what the last check of a prefix found.
    """

    began: float = 0.0
    committed: int = 0
    aborted: int = 0
    maybe: int = 0
    latency: float = 0.0
    level: str = ""
    workload: str = ""
    errors: Counter[str] = field(default_factory=Counter)
    faults: dict[str, int] = field(default_factory=dict)
    look: Look | None = None

    def total(self) -> int:
        """All transactions that have ended."""
        return self.committed + self.aborted + self.maybe


class Recorded(Struct, frozen=True, kw_only=True):
    """A run that has ended, and its history.

    Attributes:
        settings: what was asked for.
        version: the database, as it says itself.
        level: that was tested.
        claims: the specification to judge by.
        path: of the history.
        state: how it went.
        seconds: from the first transaction to the last one.
        interrupted: whether Ctrl-C ended it.
    """

    settings: Settings
    version: str
    level: Level
    claims: str
    path: Path
    state: State
    seconds: float
    interrupted: bool = False

    @property
    def throughput(self) -> float:
        """Committed transactions a second."""
        return self.state.committed / self.seconds if self.seconds else 0.0


class Phase(Struct, frozen=True, kw_only=True):
    """A workload, and for which share of the time it is played."""

    workload: Workload
    share: float


def phases_of(settings: Settings, target: Target) -> tuple[Phase, ...]:
    """The workloads to play one after the other.

    Raises:
        TargetError: there is no such workload, or the target cannot do what it needs.
    """
    if settings.workload == "scripted":
        if target.lacks & {"rows", "conversations"}:
            raise TargetError(f"{target.name}: scripts need steps, which this target lacks")
        return ()
    if settings.workload != "auto":
        workload = workload_named(settings.workload, settings.shape)
        lacking = workload.needs & target.lacks
        if lacking:
            what = f"{workload.name} needs {' and '.join(sorted(lacking))}"
            raise TargetError(
                f"{target.name}: {what}, which this target lacks; try --workload mini"
            )
        return (Phase(workload=workload, share=1.0),)
    able = [(workload_named(name), share) for name, share in AUTO]
    chosen = [(one, share) for one, share in able if not one.needs & target.lacks]
    total = sum(share for _, share in chosen)
    return tuple(Phase(workload=one, share=share / total) for one, share in chosen)


class Runner:
    """One run.

    Attributes:
        target: the database.
        state: how it goes.
    """

    def __init__(self, settings: Settings, target: Target | None = None) -> None:
        """Find target, level and workloads; nothing is started.

        Args:
            settings: what to run.
            target: one that was started and has no tables; it stays so when the run is closed.

        Raises:
            TargetError: there is no such thing.
        """
        self.settings = settings
        self._own = target is None
        self.target = target or target_named(settings.target, prefix=settings.prefix)
        self.level = level_named(self.target, settings.level)
        self.claims = settings.claims or self.level.claims
        self.phases = phases_of(settings, self.target)
        self.scripts = SCRIPTS if settings.workload == "scripted" else ()
        if isinstance(self.target, SqlTarget):
            self.target.options(
                level=self.level.name, access=settings.access, update=settings.update
            )
        if settings.faults:
            self._prepare_faults()
        if settings.savepoints and "savepoints" in self.target.lacks:
            raise TargetError(f"{self.target.name}: it has no savepoints")
        if settings.processes > 1:
            self._prepare_processes()
        if settings.standby:
            self._prepare_standby()
        self.state = State(level=self.level.name)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._fatal: BaseException | None = None
        self._values = count(1)

    def _prepare_faults(self) -> None:
        check_faults(self.settings.faults)
        if not isinstance(self.target, Serving) or self.target.address.host:
            hint = "leave the address out: isocheck run postgres --fault kill"
            raise TargetError(f"{self.target.name}: faults need a server started here; {hint}")
        self.target.proxied = self.target.tokens = True

    def _prepare_processes(self) -> None:
        if "processes" in self.target.lacks:
            raise TargetError(f"{self.target.name}: it lives in one process; leave out --processes")
        if self.settings.faults:
            raise TargetError("--processes: its clients cannot be reached by faults (--fault)")

    def _prepare_standby(self) -> None:
        if not isinstance(self.target, Replicated) or self.target.address.host:
            hint = "isocheck run postgres --standby 2 has one"
            raise TargetError(f"{self.target.name}: no standby can be started; {hint}")
        self.target.standby = True

    def start(self) -> None:
        """Start or reach the server, and create the tables.

        Raises:
            TargetError: that is not possible; the message says what to do.
        """
        if self._own:
            self.target.start()
        self.version = self.target.version()
        registers = dict.fromkeys(key for p in self.phases for key in p.workload.registers)
        registers |= dict.fromkeys(key for script in self.scripts for key in script.names())
        lists = dict.fromkeys(key for p in self.phases for key in p.workload.lists)
        self._keys = (*registers, *lists)
        self.target.setup(tuple(registers), tuple(lists))

    def close(self) -> None:
        """Remove the tables, and stop a server that was started here."""
        if self._own:
            self.target.close()
        else:
            self.target.remove()

    def run(self, show: Callable[[State], None] = lambda state: None) -> Recorded:
        """Play until the time is up, Ctrl-C, or a prefix is refuted.

        Args:
            show: called a few times a second.

        Raises:
            IsolangError: the run cannot go on; what was recorded stays.
        """
        path = self._path()
        interrupted = False
        with Recorder(path, about=self._about()) as recorder:
            self.recorder = recorder
            self.state.began = time.monotonic()
            first = self.phases[0].workload.name if self.phases else self.settings.workload
            self.state.workload = first
            self._play_scripts()
            children = None
            if self.settings.processes > 1 and self.phases:
                children = Children(self, self.settings.processes)
            watcher = Watcher(
                path,
                self.claims,
                count=self.state.total if self.settings.watched else lambda: 0,
                seconds=self.settings.timeout,
            )
            threads = [] if children is not None else self.clients_of(Share())
            nemesis = self._nemesis()
            try:
                self._watch(watcher, show, children)
            except KeyboardInterrupt:
                interrupted = True
            seconds = time.monotonic() - self.state.began
            self._stop.set()
            watcher.end()
            if nemesis is not None:
                nemesis.end()
                self.state.faults = nemesis.done
            if children is not None:
                children.end()
                self._add_up(children)
            self.state.look = watcher.last
            self.join(threads)
        return Recorded(
            settings=self.settings,
            version=self.version,
            level=self.level,
            claims=self.claims,
            path=path,
            state=self.state,
            seconds=seconds,
            interrupted=interrupted,
        )

    # --- clients, here or in children ---

    def clients_of(self, share: Share) -> list[threading.Thread]:
        """Start a share of the clients, in this process."""
        self._share = share
        if share.of > 1:
            self.recorder.divide(share.number, share.of)
            self._values = count(1 + share.number, share.of)
        threads = [
            threading.Thread(target=self._client, args=(number,), daemon=True)
            for number in range(self._clients())[share.number :: share.of]
        ]
        for thread in threads:
            thread.start()
        return threads

    def go_on(self, *, ended: bool) -> None:
        """Let the clients play what it is time for, or end."""
        if ended:
            self._stop.set()
        else:
            self._choose_phase()

    def join(self, threads: list[threading.Thread]) -> None:
        """Wait for clients to end.

        Raises:
            IsolangError: one of them could not go on.
        """
        for thread in threads:
            thread.join()
        if self._fatal is not None:
            raise self._fatal

    def _add_up(self, children: Children) -> None:
        """How it goes is how it goes in all children together."""
        children.listen()
        states = children.states.values()
        self.state.committed = sum(one.committed for one in states)
        self.state.aborted = sum(one.aborted for one in states)
        self.state.maybe = sum(one.maybe for one in states)
        self.state.latency = sum(one.latency for one in states)
        self.state.errors = sum((one.errors for one in states), Counter())

    def _watch(
        self, watcher: Watcher, show: Callable[[State], None], children: Children | None
    ) -> None:
        settings, state = self.settings, self.state
        until = state.began + settings.seconds
        most = settings.transactions
        while self.phases and time.monotonic() < until and not self._stop.wait(0.1):
            state.look = watcher.last
            self._choose_phase()
            if children is not None:
                self._add_up(children)
            show(state)
            if most is not None and state.total() >= most:
                return
            if watcher.refuted.is_set() and not settings.to_the_end:
                return

    def _choose_phase(self) -> None:
        passed = (time.monotonic() - self.state.began) / self.settings.seconds
        for phase in self.phases:
            self.state.workload = phase.workload.name
            passed -= phase.share
            if passed < 0:
                return

    def _clients(self) -> int:
        return self.settings.sessions + self.settings.standby if self.phases else 0

    def _nemesis(self) -> Nemesis | None:
        if not self.settings.faults or not self.phases:
            return None
        assert isinstance(self.target, Serving)
        assert self.target.server is not None
        return Nemesis(
            self.settings.faults,
            server=self.target.server,
            recorder=self.recorder,
            seed=self.settings.seed,
            restarted=self._read_back,
            failed=self._fail,
        )

    def _read_back(self) -> None:
        """Read every key: what was acknowledged before a crash must be there."""
        driver, client = driver_for(self.target), None
        tries = 0
        for start in range(0, len(self._keys), _READ_BACK):
            keys = self._keys[start : start + _READ_BACK]
            read = False
            while not read and tries < _TRIES:
                client = client or self._connect(always=True)
                assert client is not None
                outcome, _ = play(
                    tuple(Read(key) for key in keys),
                    recorder=self.recorder,
                    session=("read back", tries),
                    client=client,
                    driver=driver,
                    level=self.level.name,
                )
                read = outcome == "committed"
                with self._lock:
                    setattr(self.state, outcome, getattr(self.state, outcome) + 1)
                if not read:
                    tries += 1
                    _close(client)
                    client = None
        if client is not None:
            _close(client)

    def _play_scripts(self) -> None:
        for script in self.scripts:
            played = interleave(
                script.on_its_keys(),
                script.schedule,
                target=self.target,
                level=self.level.name,
                recorder=self.recorder,
                session=script.name,
            )
            for one in played:
                setattr(self.state, one.outcome, getattr(self.state, one.outcome) + 1)

    # --- one client ---

    def _client(self, number: int) -> None:
        try:
            self._play(number)
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._fatal = self._fatal or error
        self._stop.set()

    def _play(self, number: int) -> None:
        source = Source(self.settings.seed, number, self._values)
        driver, state = driver_for(self.target), self.state
        workloads = {phase.workload.name: phase.workload for phase in self.phases}
        standby, savepoints = number >= self.settings.sessions, self.settings.savepoints
        client: Client | None = None
        connections = 0
        while not self._stop.is_set():
            if client is None:
                client = self._connect(standby=standby)
                connections += 1
                continue
            began = time.monotonic()
            program = workloads[state.workload].program(source)
            if standby:
                program = only_reads(program)
            elif savepoints:
                program = with_savepoints(program, source.random, savepoints, self._values)
            outcome, error = play(
                program,
                recorder=self.recorder,
                session=(number, connections),
                client=client,
                driver=driver,
                level=self.level.name,
                wait=self._wait,
            )
            source.made += 1
            with self._lock:
                setattr(state, outcome, getattr(state, outcome) + 1)
                if error is None:
                    state.latency += time.monotonic() - began
                else:
                    state.errors[_kind(error)] += 1
            if outcome == "maybe" or not client.usable():
                _close(client)
                client = None
        if client is not None:
            _close(client)

    def _connect(self, *, standby: bool = False, always: bool = False) -> Client | None:
        """Connect, as soon as the server can be reached; ``None`` if the run ends before."""
        until = time.monotonic() + _RECONNECTING
        while True:
            try:
                if standby and isinstance(self.target, Replicated):
                    return self.target.connect_standby()
                return self.target.connect()
            except Exception:
                if time.monotonic() > until:
                    raise
                if self._stop.is_set() and not always:
                    return None
                time.sleep(0.1)

    def _wait(self, operation: Wait) -> None:
        # Aborted ones count: what is held open here may be what makes the others abort.
        enough = self.state.total() + operation.transactions // self._share.of
        until = time.monotonic() + self.settings.seconds / 4
        while self.state.total() < enough and time.monotonic() < until:
            if self._stop.wait(0.01):
                return

    # --- the file ---

    def _path(self) -> Path:
        folder = Path(self.settings.folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TargetError(f"{folder}: cannot be made ({error.strerror}); --save DIR") from None
        parts = (self.target.name, self.level.name, self.settings.workload)
        name = "-".join(re.sub(r"[^a-z0-9+]+", "-", part) for part in parts)
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        stem = f"{name}-seed{self.settings.seed}-{stamp}"
        path, again = folder / f"{stem}.edn", 1
        while path.exists():
            path, again = folder / f"{stem}-{again}.edn", again + 1
        return path

    def _about(self) -> str:
        s, when = self.settings, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return (
            f"{self.version}; level {self.level.name} ({self.level.says}); "
            f"workload {s.workload}; {s.sessions} sessions; seed {s.seed}; {when}"
            + "".join(f"; fault {fault}" for fault in s.faults)
            + (f"; {s.standby} sessions on a standby" if s.standby else "")
        )


def _close(client: Client) -> None:
    with suppress(Exception):  # the connection is lost
        client.close()


def _kind(error: BaseException) -> str:
    """The class of an error and the beginning of what it says, without names of rows."""
    said = error.args[-1] if error.args else ""
    words = re.sub(r"[\"'][^\"']*[\"']|\d+", "…", str(said)).split()
    return f"{type(error).__name__}: {' '.join(words[:8])}"


def run(settings: Settings, show: Callable[[State], None] = lambda state: None) -> Recorded:
    """Run a workload on a database, and give what was recorded.

    Args:
        settings: what to run.
        show: called a few times a second.

    Raises:
        IsolangError: it cannot be run; the message says what to do.
    """
    runner = Runner(settings)
    try:
        runner.start()
        return runner.run(show)
    finally:
        runner.close()
