"""A run in a process of its own, which can be ended from outside.

A driver may hang in a call, or hold the interpreter's lock in it; a server may stop; a program may
be silent. So the target, its clients and their processes live in a child that leads a process
group (:mod:`isolang.run.play.child`). This process keeps the time: it tells the child to end,
kills the group if it does not, and goes on with what was recorded.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import shutil
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from isolang.errors import IsolangError
from isolang.run.address import Address
from isolang.run.marks.ownership import SILENCE, new_owner
from isolang.run.play.blame import blamed, hung_process
from isolang.run.play.child import Child
from isolang.run.play.clients import ENDING
from isolang.run.play.runner import Runner
from isolang.run.play.selftest import LISTS, SECONDS, AdapterCheck, selftest_of
from isolang.run.play.state import Run, RunState
from isolang.run.record.recorder import cut_torn_line
from isolang.run.settings import Settings
from isolang.run.target import Owning, Serving, Target, TargetError
from isolang.run.targets import target_named

LATE: Final = ENDING + 2.5  # seconds that a run may take longer than it was to
_LOADING: Final = 20.0  # seconds for a new interpreter to begin, on a busy machine
_REACHING: Final = 8.0  # seconds to reach a server, or to make the tables
_STARTING: Final = 90.0  # seconds to start one
_KEYS: Final = 50  # keys that are put there in a second, at least
_CLEANING: Final = 5.0  # seconds to remove tables, in a process of its own
_STOPPING: Final = 12.0  # seconds for a server of ours to stop
PLAYING: Final = "play"
JUDGING: Final = "judge what the watch is behind"
ACCOUNTING: Final = "tell which versions there were"
_ACCOUNTED: Final = 2_000  # transactions whose versions are told in a second, at least
_WATCHED: Final = 5_000  # transactions that a watch judges in a second, at least
_TICK: Final = 0.1


class RunStep(Struct, frozen=True, kw_only=True):
    """What the child does next, and how long it may take.

    Attributes:
        doing: in words.
        seconds: at most.
        version: of the database, as soon as it is known.
        notes: what the self-test of the adapter found doubtful.
    """

    doing: str
    seconds: float
    version: str = ""
    notes: tuple[str, ...] = ()


class Failed(Struct, frozen=True, kw_only=True):
    """Why the child could not play.

    Attributes:
        why: a message.
        ours: whether nobody but us can have caused it.
    """

    why: str
    internal: bool = False


class Ready(Struct, frozen=True, kw_only=True):
    """The tables are removed; or why they are not."""

    left: str = ""


class _Interrupts:
    """Ctrl-C, and the signals that mean the same, while a run is played.

    The first is noted, wherever in our code it comes, so that what was recorded is judged; the
    second raises. In a thread that cannot have signals, none is noted.

    Attributes:
        noted: whether there was one.
    """

    def __init__(self) -> None:
        self.noted = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if callable(signal.getsignal(number)):  # not one that ends us, or is ignored
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.noted:
            self._before[number](number, frame)
        self.noted = True


class Player:
    """Plays runs on one target, one after the other; what hangs is killed and begun anew."""

    def __init__(self, target: str, prefix: str) -> None:
        """Prepare; nothing is started.

        Args:
            target: as the user named it.
            prefix: how the names of the tables begin.
        """
        self._named, self._prefix = target, prefix
        self._child: Child | None = None
        self._dump = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as we do
        self._scratch = ""
        self._cleaning = self._made = self._lost = False
        self._owner = new_owner()  # also of what is left when the child is killed
        self.left = ""

    def play(self, settings: Settings, show: Callable[[RunState], None]) -> Run:
        """Play a run; its end is at most ``LATE`` after its time.

        Args:
            settings: of this target.
            show: called a few times a second.

        Raises:
            IsolangError: it cannot be played; the message says what to do.
            RuntimeError: because of a bug of ours.
        """
        self._await_clean()
        child = self._child or self._start()
        runner = Runner(settings, target_named(self._named, prefix=self._prefix))
        self._made = False
        try:
            with _Interrupts() as interrupts:
                with contextlib.suppress(OSError):  # it has ended, as is heard then
                    child.pipe.send(settings)
                run = self._listen(child, runner, show, interrupts)
            return replace(run, interrupted=True) if interrupts.noted else run
        except BaseException:
            if not self._cleaning:  # the child has not said that it goes on
                self._kill()
            raise

    def _listen(
        self,
        child: Child,
        runner: Runner,
        show: Callable[[RunState], None],
        interrupts: _Interrupts,
    ) -> Run:
        step, until = RunStep(doing="to begin", seconds=_LOADING), time.monotonic() + _LOADING
        state: RunState | None = None
        path: Path | None = None
        stopped = ended = False
        while True:
            try:
                what: Any = child.pipe.recv() if child.pipe.poll(_TICK) else None
            except (EOFError, OSError):  # its process was ended
                what, ended = None, True
            now = time.monotonic()
            if interrupts.noted and not stopped:
                stopped = True
                until = min(until, now + (LATE if state else 0.0))
                with contextlib.suppress(OSError):
                    child.pipe.send("stop")
            if isinstance(what, RunStep):
                ends = stopped and what.doing not in {ACCOUNTING, JUDGING}
                step, until = what, min(until, now) if ends else now + what.seconds
                # Tables of that name are ours only once ours could be made.
                self._made = self._made or what.doing == PLAYING
            elif isinstance(what, Path):
                path = what
            elif isinstance(what, RunState):
                state = what
            elif isinstance(what, Run):
                self._cleaning = True
                return what if not what.state.hung else self._ended_by_force(what)
            elif isinstance(what, Failed):
                self._cleaning = True
                raise RuntimeError(what.why) if what.internal else TargetError(what.why)
            if state is not None:
                state.hear(now)
                show(state)
            if now > until or ended:
                hung = ("a process that has ended by itself",) if ended else self._hung(child)
                if path is None or state is None:
                    if stopped:
                        raise KeyboardInterrupt
                    where = f"; it is in {hung[0]}" if hung else ""
                    msg = (
                        f"{runner.target.address}: no answer in {step.seconds:g} s to {step.doing}"
                    )
                    raise TargetError(msg + where)
                state.hung += hung or ("the process of the clients",)
                counted = _count(path, state)
                return self._ended_by_force(_run(runner, step, path, counted, stopped=stopped))

    def _ended_by_force(self, run: Run) -> Run:
        """Kill what hangs, and remove what it has left, by another process."""
        self._kill()
        cut_torn_line(run.path)
        if self._lost:
            raise TargetError(
                f"{Address.parse(run.settings.target)}: the tables were not those of the run any "
                f"more when it was ended; what it recorded cannot be judged, and is in {run.path}"
            )
        return replace(run, left=self.left)

    def _hung(self, child: Child) -> tuple[str, ...]:
        """What the clients are in: said by the child's signal handler, which needs no lock."""
        self._dump.seek(0)
        self._dump.truncate()
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGUSR1)
        time.sleep(2 * _TICK)
        self._dump.seek(0)
        return hung_process(self._dump.read().decode(errors="replace"))

    def _start(self) -> Child:
        self._scratch = tempfile.mkdtemp(prefix="isocheck-")
        os.chmod(self._scratch, 0o711)  # a server in it may run as another user
        self.left = ""
        dump = self._dump.fileno()
        self._child = Child(
            _serve,
            named=self._named,
            prefix=self._prefix,
            owner=self._owner,
            scratch=self._scratch,
            parent=os.getpid(),
            dump=dump,
            files=(dump,),
        )
        return self._child

    def _await_clean(self) -> None:
        """Wait until the child has removed the tables of its last run."""
        if not self._cleaning:
            return
        self._cleaning = False
        until = time.monotonic() + _CLEANING
        with contextlib.suppress(EOFError, OSError):
            while self._child and self._child.pipe.poll(max(0.0, until - time.monotonic())):
                said = self._child.pipe.recv()
                if isinstance(said, Ready):
                    self.left = said.left
                    return
        self._kill()

    def _kill(self) -> None:
        """Kill the child with all its children, and remove the tables that it has left."""
        if self._child is None:
            return
        child, self._child = self._child, None
        child.kill()
        self._cleaning = False
        if self._made:
            removed, self.left = clean(self._named, self._prefix, self._owner)
            named = target_named(self._named, prefix=self._prefix)
            self._lost = not (removed or self.left) and isinstance(named, Owning) and named.shared
        self._sweep()

    def _sweep(self) -> None:
        """Remove the folders of the child, when its servers have ended."""
        until = time.monotonic() + _STOPPING
        folder, self._scratch = self._scratch, ""
        while folder and os.listdir(folder) and time.monotonic() < until:
            if not any(name for name in os.listdir(folder) if Path(folder, name, "data").exists()):
                break
            time.sleep(_TICK)
        shutil.rmtree(folder, ignore_errors=True)

    def finish(self) -> None:
        """Have the child end, without waiting for it."""
        if self._child:
            with contextlib.suppress(OSError):
                self._child.pipe.send(None)

    def close(self) -> None:
        """End the child, and what it has started."""
        self.finish()
        until = time.monotonic() + _STOPPING
        while self._child and time.monotonic() < until:
            if self._child.ended():
                with contextlib.suppress(EOFError, OSError):
                    while self._child.pipe.poll():
                        said = self._child.pipe.recv()
                        self.left = said.left if isinstance(said, Ready) else self.left
                self._child.kill()  # what programs have left behind
                self._child = None
                shutil.rmtree(self._scratch, ignore_errors=True)
            else:
                time.sleep(0.01)
        self._kill()


def play(settings: Settings, show: Callable[[RunState], None] = lambda state: None) -> Run:
    """Play one run in a process of its own; see :class:`Player`."""
    player = Player(settings.target, settings.prefix)
    try:
        return player.play(settings, show)
    finally:
        player.close()


def _run(runner: Runner, step: RunStep, path: Path, state: RunState, *, stopped: bool) -> Run:
    return Run(
        settings=runner.settings,
        version=step.version,
        mix=runner.mix,
        claims=runner.claims,
        path=path,
        state=state,
        seconds=time.monotonic() - state.began,
        interrupted=stopped,
        planned=tuple(phase.workload.name for phase in runner.plan.phases),
        notes=step.notes,
    )


def _count(path: Path, state: RunState) -> RunState:
    """Count what is in the file: the last that the child has said may be less."""
    data = path.read_bytes()
    kinds = {"committed": rb"ok", "aborted": rb"fail", "maybe": rb"info"}
    for name, kind in kinds.items():
        found = len(
            re.findall(rb"^\{:index \d+, :type :%s, :process \d" % kind, data, re.MULTILINE)
        )
        setattr(state, name, max(found, getattr(state, name)))
    return state


def clean(target: str, prefix: str, owner: str = "") -> tuple[tuple[str, ...], str]:
    """Remove the tables of runs that were killed, in a process of its own.

    Args:
        target: as the user named it.
        prefix: how the names of the tables begin.
        owner: the only run whose tables are removed; by default all that are not alive.

    Returns:
        What was removed, and why something may be left.
    """
    named = target_named(target, prefix=prefix)
    if not named.address.host and (isinstance(named, Serving) or not named.address.database):
        return (), ""  # it was a server of our own, or a file in a folder of ours
    seconds = _LOADING + _CLEANING + (0.0 if owner else SILENCE)
    return _in_a_process(_cleaned, target, prefix, owner, seconds=seconds)


def test_adapter(settings: Settings) -> tuple[AdapterCheck, ...]:
    """Test the adapter of a target, in a process of its own.

    Args:
        settings: of a run; target, level and claims are used.

    Raises:
        TargetError: it cannot be tested; the message says why.
    """
    Runner(settings)  # says what cannot be run
    found, why = _in_a_process(_tested, settings, seconds=_LOADING + _STARTING + SECONDS)
    if why:
        raise TargetError(why)
    return found


def _in_a_process(
    work: Callable[..., Sequence[Any]], *arguments: object, seconds: float
) -> tuple[tuple[Any, ...], str]:
    """Do something in a process of its own, which is killed if it does not end.

    Returns:
        What it gave, and why it gave nothing.
    """
    child = Child(_answer, work=work, arguments=arguments)
    found: tuple[tuple[Any, ...], str] = (), f"no answer in {seconds:g} s"
    try:
        with contextlib.suppress(EOFError, OSError):
            if child.pipe.poll(seconds):
                found = child.pipe.recv()
    finally:
        child.kill()
    return found


# --- the child's part ---


def _serve(
    pipe: Connection, *, named: str, prefix: str, owner: str, scratch: str, parent: int, dump: int
) -> None:
    """Be the child of a player.

    Args:
        pipe: to the player.
        named: the target, as the user named it.
        prefix: how the names of the tables begin.
        owner: the name of its runs in the marks of their tables.
        scratch: the folder for all that is temporary.
        parent: the player's process.
        dump: the file for what threads are in, at SIGUSR1.
    """
    faulthandler.register(signal.SIGUSR1, file=dump, all_threads=True)
    tempfile.tempdir = scratch
    threading.Thread(target=_outlive, args=(parent, scratch), daemon=True).start()
    try:
        _play_all(pipe, _owned(target_named(named, prefix=prefix), owner), parent)
    finally:
        if os.getppid() != parent:  # it was killed, and cannot remove the folder
            shutil.rmtree(scratch, ignore_errors=True)


def _play_all(pipe: Connection, target: Target, parent: int) -> None:
    """Play what comes, and say how it goes; the end of the input ends the target."""
    started = False
    try:
        while (settings := _next(pipe)) is not None:
            runner = None
            try:
                runner = Runner(settings, target)
                if not started:
                    own = isinstance(target, Serving) and not target.address.host
                    pipe.send(RunStep(doing="connect", seconds=_STARTING if own else _REACHING))
                    target.start()
                    started = True
                if runner.tests_adapter:
                    pipe.send(RunStep(doing="test the adapter", seconds=SECONDS))
                    runner.test_adapter()
                keys = len(runner.plan.registers()) + len(runner.plan.lists())
                most = _REACHING + SILENCE + keys / _KEYS
                pipe.send(RunStep(doing="make the tables", seconds=most))
                runner.start()
                pipe.send(
                    RunStep(
                        doing=PLAYING,
                        seconds=settings.length + LATE,
                        version=runner.version,
                        notes=runner.notes,
                    )
                )
                run = runner.run(_Showing(pipe, parent), began=pipe.send)
                behind = _REACHING + settings.timeout + run.state.total() / _WATCHED
                pipe.send(RunStep(doing=JUDGING, seconds=behind, version=runner.version))
                run = runner.watched(run)
                if settings.versions:
                    most = _REACHING + run.state.total() / _ACCOUNTED
                    pipe.send(RunStep(doing=ACCOUNTING, seconds=most, version=runner.version))
                    run = runner.account(run)
                pipe.send(run)
            except IsolangError as error:
                pipe.send(Failed(why=str(error)))
            except Exception as error:
                if os.environ.get("ISOLANG_TRACEBACK"):
                    traceback.print_exc()
                known = blamed(error, target)
                pipe.send(
                    Failed(why=str(known or f"{type(error).__name__}: {error}"), internal=not known)
                )
            pipe.send(Ready(left=_removed(runner)))
    finally:
        if started:
            target.close()


def _answer(
    pipe: Connection, work: Callable[..., Sequence[Any]], arguments: tuple[Any, ...]
) -> None:
    """Say what a work gave, and why it gave nothing."""
    try:
        said: tuple[tuple[Any, ...], str] = (tuple(work(*arguments)), "")
    except BaseException as error:
        said = (), " ".join(str(error).split()) or type(error).__name__
    pipe.send(said)


def _cleaned(target: str, prefix: str, owner: str) -> Sequence[str]:
    return _owned(target_named(target, prefix=prefix), owner).clean()


def _owned(target: Target, owner: str) -> Target:
    """The target, with a run's name in its marks; empty for none."""
    if isinstance(target, Owning):
        target.owner = owner
    return target


def _tested(settings: Settings) -> tuple[AdapterCheck, ...]:
    runner = Runner(settings)
    target = runner.target
    target.lists = frozenset(LISTS)
    try:
        target.start()
        return selftest_of(runner.mix, target, settings.claims)
    finally:
        target.close()


def _next(pipe: Connection) -> Settings | None:
    try:
        while True:
            said = pipe.recv()
            if said != "stop":  # what came after the end of a run
                return said if isinstance(said, Settings) else None
    except EOFError:
        return None


def _removed(runner: Runner | None) -> str:
    """Remove the tables of a run; gives why that was not possible."""
    try:
        if runner is not None:
            runner.close()
    except Exception as error:
        return " ".join(str(error).split()) or type(error).__name__
    return ""


class _Showing:
    """Says how the run goes, and ends it where that is asked for or nobody listens any more."""

    def __init__(self, pipe: Connection, parent: int) -> None:
        self._pipe, self._parent = pipe, parent

    def __call__(self, state: RunState) -> None:
        if os.getppid() != self._parent:
            raise KeyboardInterrupt
        self._pipe.send(state)
        if self._pipe.poll():
            self._pipe.recv()
            raise KeyboardInterrupt


def _outlive(parent: int, scratch: str) -> None:
    """End this process and its children a while after the parent was killed."""
    while os.getppid() == parent:
        time.sleep(0.5)
    time.sleep(2 * LATE)
    shutil.rmtree(scratch, ignore_errors=True)  # its servers have keepers of their own
    os.killpg(0, signal.SIGKILL)
