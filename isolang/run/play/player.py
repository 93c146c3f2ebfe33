"""Plays a run in a separate process that can be killed if it hangs.

A driver may hang in a call, perhaps while holding the interpreter's lock. A server may stop
responding, and a client program may never print a response. Therefore the target, its clients and
their processes live in a child process that leads a process group (:mod:`isolang.run.play.child`).
The parent keeps the time: it tells the child to end, kills the group if the child does not end, and
continues with the recorded history.
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

from isolang.errors import IsolangError, message_in_one_line
from isolang.run.address import Address
from isolang.run.marks.ownership import SILENCE_S, new_owner
from isolang.run.play.blame import blame_error, hanging_calls_in_dump
from isolang.run.play.child import Child
from isolang.run.play.clients import ENDING_S
from isolang.run.play.runner import Runner
from isolang.run.play.selftest import LISTS, SECONDS, AdapterCheck, selftest_levels
from isolang.run.play.state import Run, RunState
from isolang.run.record.recorder import cut_torn_line
from isolang.run.settings import Settings
from isolang.run.target import MarksTables, StartsServer, Target, TargetError
from isolang.run.targets import target_named

MAX_OVERRUN_S: Final = ENDING_S + 2.5  # by how many seconds a run may exceed its requested length
_START_TIMEOUT_S: Final = 20.0  # the time limit for starting an interpreter on a busy machine
_CONNECT_TIMEOUT_S: Final = 8.0  # the time limit for reaching a server and creating tables
_SERVER_START_TIMEOUT_S: Final = 90.0  # the time limit for starting a server
_KEYS_LOADED_PER_S: Final = 50  # the number of keys per second that any database can load
_CLEAN_TIMEOUT_S: Final = 5.0  # the time limit for another process that removes tables
_STOP_TIMEOUT_S: Final = 12.0  # the time limit for stopping a started server
PLAY_STEP: Final = "play"
JUDGE_STEP: Final = "judge the transactions that the watch has not reached"
VERSIONS_STEP: Final = "report the versions"
_VERSIONS_PER_S: Final = 2_000  # transactions per second for which any target reports versions
_WATCHED_PER_S: Final = 5_000  # transactions per second that any watch can judge
_TICK: Final = 0.1


class RunStep(Struct, frozen=True, kw_only=True):
    """The next step of the child, and how long it may take.

    Attributes:
        doing: the step, as a verb that fits after "no answer in 8 s to".
        version: the name and version of the database; empty until the database has reported them.
        notes: the doubts raised by the adapter's self-test.
    """

    doing: str
    seconds: float
    version: str = ""
    notes: tuple[str, ...] = ()


class FailedMessage(Struct, frozen=True, kw_only=True):
    """The child's message that it cannot play a run."""

    why: str
    internal: bool = False


class ReadyMessage(Struct, frozen=True, kw_only=True):
    """The child's message that it can play another run; ``leftover`` says why tables may remain."""

    leftover: str = ""


class _InterruptHandler:
    """Handles Ctrl-C and similar signals during a run.

    The first signal only stops the clients, so that the recorded history can still be judged. A
    second signal raises an error. Only the main thread receives signals, so in other threads this
    class does nothing.
    """

    def __init__(self) -> None:
        self.noted = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _InterruptHandler:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if callable(signal.getsignal(number)):  # the program handles the signal in Python
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
    """Plays one run after another on the same target, and kills the child process if it hangs."""

    def __init__(self, target: str, prefix: str) -> None:
        """Prepare the player without starting a process."""
        self._named, self._prefix = target, prefix
        self._child: Child | None = None
        self._dump = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the player
        self._scratch = ""
        self._cleaning = self._made = self._lost = False
        self._owner = new_owner()  # the name in the marks of the child's tables
        self.leftover = ""

    def play(self, settings: Settings, show: Callable[[RunState], None]) -> Run:
        """Play a run; return at most ``MAX_OVERRUN_S`` seconds after its requested end.

        Args:
            show: a function called with the state several times a second.

        Raises:
            IsolangError: the run cannot be played; the message says what to do.
            RuntimeError: the run failed because of a bug in isolang.
        """
        self._await_clean()
        child = self._child or self._start()
        runner = Runner(settings, target_named(self._named, prefix=self._prefix))
        self._made = False
        try:
            with _InterruptHandler() as interrupts:
                with contextlib.suppress(OSError):  # the child has ended; _listen notices that
                    child.pipe.send(settings)
                run = self._listen(child, runner, show, interrupts)
            return replace(run, interrupted=True) if interrupts.noted else run
        except BaseException:
            if not self._cleaning:  # the child has not sent a ``ReadyMessage``
                self._kill()
            raise

    def _listen(
        self,
        child: Child,
        runner: Runner,
        show: Callable[[RunState], None],
        interrupts: _InterruptHandler,
    ) -> Run:
        step, until = (
            RunStep(doing="begin", seconds=_START_TIMEOUT_S),
            time.monotonic() + _START_TIMEOUT_S,
        )
        state: RunState | None = None
        path: Path | None = None
        stopped = ended = False
        while True:
            try:
                what: Any = child.pipe.recv() if child.pipe.poll(_TICK) else None
            except (EOFError, OSError):  # the child has ended
                what, ended = None, True
            now = time.monotonic()
            if interrupts.noted and not stopped:
                stopped = True
                until = min(until, now + (MAX_OVERRUN_S if state else 0.0))
                with contextlib.suppress(OSError):
                    child.pipe.send("stop")
            if isinstance(what, RunStep):
                ends = stopped and what.doing not in {VERSIONS_STEP, JUDGE_STEP}
                step, until = what, min(until, now) if ends else now + what.seconds
                # Tables with these names belong to this run only once it has successfully created
                # them.
                self._made = self._made or what.doing == PLAY_STEP
            elif isinstance(what, Path):
                path = what
            elif isinstance(what, RunState):
                state = what
            elif isinstance(what, Run):
                self._cleaning = True
                return what if not what.state.hung else self._kill_and_return(what)
            elif isinstance(what, FailedMessage):
                self._cleaning = True
                raise RuntimeError(what.why) if what.internal else TargetError(what.why)
            if state is not None:
                state.note_silence(now)
                show(state)
            if now > until or ended:
                hung = (
                    ("a client process that ended unexpectedly",)
                    if ended
                    else self._hanging_calls(child)
                )
                if path is None or state is None:
                    if stopped:
                        raise KeyboardInterrupt
                    where = f"; it hangs in {hung[0]}" if hung else ""
                    msg = (
                        f"{runner.target.address}: no answer within {step.seconds:g} s "
                        f"to {step.doing}"
                    )
                    raise TargetError(msg + where)
                state.hung += hung or ("the process of the clients",)
                counted = _count(path, state)
                return self._kill_and_return(_run(runner, step, path, counted, stopped=stopped))

    def _kill_and_return(self, run: Run) -> Run:
        """Kill the child, let another process remove its tables, and return the run."""
        self._kill()
        cut_torn_line(run.path)
        if self._lost:
            raise TargetError(
                f"{Address.parse(run.settings.target)}: another process took over the tables "
                f"before the run was killed, so its history in {run.path} cannot be judged"
            )
        return replace(run, leftover=self.leftover)

    def _hanging_calls(self, child: Child) -> tuple[str, ...]:
        """Return the calls in which the clients hang, from a dump written by the child."""
        self._dump.seek(0)
        self._dump.truncate()
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGUSR1)
        time.sleep(2 * _TICK)
        self._dump.seek(0)
        return hanging_calls_in_dump(self._dump.read().decode(errors="replace"))

    def _start(self) -> Child:
        self._scratch = tempfile.mkdtemp(prefix="isocheck-")
        os.chmod(self._scratch, 0o711)  # servers run by other users must reach the folder
        self.leftover = ""
        dump = self._dump.fileno()
        self._child = Child(
            _serve_player,
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
        """Wait until the child has removed the last run's tables; kill it if it does not."""
        if not self._cleaning:
            return
        self._cleaning = False
        until = time.monotonic() + _CLEAN_TIMEOUT_S
        with contextlib.suppress(EOFError, OSError):
            while self._child and self._child.pipe.poll(max(0.0, until - time.monotonic())):
                message = self._child.pipe.recv()
                if isinstance(message, ReadyMessage):
                    self.leftover = message.leftover
                    return
        self._kill()

    def _kill(self) -> None:
        """Kill the child and all processes started by it, and remove its tables."""
        if self._child is None:
            return
        child, self._child = self._child, None
        child.kill()
        self._cleaning = False
        if self._made:
            removed, self.leftover = clean(self._named, self._prefix, self._owner)
            named = target_named(self._named, prefix=self._prefix)
            self._lost = (
                not (removed or self.leftover) and isinstance(named, MarksTables) and named.shared
            )
        self._remove_folder()

    def _remove_folder(self) -> None:
        """Remove the child's temporary folder once the servers that use it have ended."""
        until = time.monotonic() + _STOP_TIMEOUT_S
        folder, self._scratch = self._scratch, ""
        while folder and os.listdir(folder) and time.monotonic() < until:
            if not any(name for name in os.listdir(folder) if Path(folder, name, "data").exists()):
                break
            time.sleep(_TICK)
        shutil.rmtree(folder, ignore_errors=True)

    def finish(self) -> None:
        """Tell the child to end, without waiting until it has done so."""
        if self._child:
            with contextlib.suppress(OSError):
                self._child.pipe.send(None)

    def close(self) -> None:
        """End the child and all processes started by it."""
        self.finish()
        until = time.monotonic() + _STOP_TIMEOUT_S
        while self._child and time.monotonic() < until:
            if self._child.ended():
                with contextlib.suppress(EOFError, OSError):
                    while self._child.pipe.poll():
                        message = self._child.pipe.recv()
                        self.leftover = (
                            message.leftover if isinstance(message, ReadyMessage) else self.leftover
                        )
                self._child.kill()  # also kill the programs started by the child
                self._child = None
                shutil.rmtree(self._scratch, ignore_errors=True)
            else:
                time.sleep(0.01)
        self._kill()


def play(settings: Settings, show: Callable[[RunState], None] = lambda state: None) -> Run:
    """Play one run in its own child process, and return the run."""
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
    """Return the state with the file's counts, because the child's last report may be old."""
    data = path.read_bytes()
    kinds = {"committed": rb"ok", "aborted": rb"fail", "maybe": rb"info"}
    for name, kind in kinds.items():
        found = len(
            re.findall(rb"^\{:index \d+, :type :%s, :process \d" % kind, data, re.MULTILINE)
        )
        setattr(state, name, max(found, getattr(state, name)))
    return state


def clean(target: str, prefix: str, owner: str = "") -> tuple[tuple[str, ...], str]:
    """Remove the tables left by killed runs, in a child process."""
    named = target_named(target, prefix=prefix)
    if not named.address.host and (isinstance(named, StartsServer) or not named.address.database):
        return (), ""  # in this case no table has outlived the server or the file
    seconds = _START_TIMEOUT_S + _CLEAN_TIMEOUT_S + (0.0 if owner else SILENCE_S)
    return _run_in_child(_clean_tables, target, prefix, owner, seconds=seconds)


def test_adapter(settings: Settings) -> tuple[AdapterCheck, ...]:
    """Test the adapter for a target in a child process, and return the results of its checks.

    Raises:
        TargetError: the adapter cannot be tested; the message says why.
    """
    Runner(settings)  # raise an error here if the run is impossible
    found, why = _run_in_child(
        _test_adapter, settings, seconds=_START_TIMEOUT_S + _SERVER_START_TIMEOUT_S + SECONDS
    )
    if why:
        raise TargetError(why)
    return found


def _run_in_child(
    work: Callable[..., Sequence[Any]], *arguments: object, seconds: float
) -> tuple[tuple[Any, ...], str]:
    """Run a function in a child process that is killed when the time limit is reached."""
    child = Child(_send_result, work=work, arguments=arguments)
    found: tuple[tuple[Any, ...], str] = (), f"no answer within {seconds:g} s"
    try:
        with contextlib.suppress(EOFError, OSError):
            if child.pipe.poll(seconds):
                found = child.pipe.recv()
    finally:
        child.kill()
    return found


# --- in the child process ---


def _serve_player(
    pipe: Connection, *, named: str, prefix: str, owner: str, scratch: str, parent: int, dump: int
) -> None:
    """Play the runs requested by a player; this is the main function of its child process."""
    faulthandler.register(signal.SIGUSR1, file=dump, all_threads=True)
    tempfile.tempdir = scratch
    threading.Thread(target=_end_with_player, args=(parent, scratch), daemon=True).start()
    try:
        _play_all(pipe, _with_owner(target_named(named, prefix=prefix), owner), parent)
    finally:
        if os.getppid() != parent:  # the player was killed, so this process removes the folder
            shutil.rmtree(scratch, ignore_errors=True)


def _seconds_to_connect(target: Target) -> float:
    """Return the time limit for connecting, which includes what the target starts first.

    A database in this process may start a Java machine, which takes long on a busy machine.
    """
    starts_server = isinstance(target, StartsServer) and not target.address.host
    in_this_process = getattr(target, "alone", False)
    slow = starts_server or in_this_process
    return _SERVER_START_TIMEOUT_S if slow else _CONNECT_TIMEOUT_S


def _play_all(pipe: Connection, target: Target, parent: int) -> None:
    """Play the runs requested by the player, report their progress, and close the target."""
    started = False
    try:
        while (settings := _next_settings(pipe)) is not None:
            runner = None
            try:
                runner = Runner(settings, target)
                if not started:
                    pipe.send(RunStep(doing="connect", seconds=_seconds_to_connect(target)))
                    target.start()
                    started = True
                if runner.tests_adapter:
                    pipe.send(RunStep(doing="test the adapter", seconds=SECONDS))
                    runner.test_adapter()
                keys = len(runner.plan.registers()) + len(runner.plan.lists())
                most = _CONNECT_TIMEOUT_S + SILENCE_S + keys / _KEYS_LOADED_PER_S
                pipe.send(RunStep(doing="create the tables", seconds=most))
                runner.start()
                pipe.send(
                    RunStep(
                        doing=PLAY_STEP,
                        seconds=settings.length + MAX_OVERRUN_S,
                        version=runner.version,
                        notes=runner.notes,
                    )
                )
                run = runner.run(_ProgressReporter(pipe, parent), began=pipe.send)
                behind = _CONNECT_TIMEOUT_S + settings.timeout + run.state.total() / _WATCHED_PER_S
                pipe.send(RunStep(doing=JUDGE_STEP, seconds=behind, version=runner.version))
                run = runner.with_watch_verdict(run)
                if settings.versions:
                    most = _CONNECT_TIMEOUT_S + run.state.total() / _VERSIONS_PER_S
                    pipe.send(RunStep(doing=VERSIONS_STEP, seconds=most, version=runner.version))
                    run = runner.account(run)
                pipe.send(run)
            except IsolangError as error:
                pipe.send(FailedMessage(why=str(error)))
            except Exception as error:
                if os.environ.get("ISOLANG_TRACEBACK"):
                    traceback.print_exc()
                known = blame_error(error, target)
                pipe.send(
                    FailedMessage(
                        why=str(known or f"{type(error).__name__}: {error}"), internal=not known
                    )
                )
            pipe.send(ReadyMessage(leftover=_remove_tables(runner)))
    finally:
        if started:
            target.close()


def _send_result(
    pipe: Connection, work: Callable[..., Sequence[Any]], arguments: tuple[Any, ...]
) -> None:
    """Send a function's result, or the reason why it could not be computed."""
    try:
        message: tuple[tuple[Any, ...], str] = (tuple(work(*arguments)), "")
    except BaseException as error:
        message = (), message_in_one_line(error)
    pipe.send(message)


def _clean_tables(target: str, prefix: str, owner: str) -> Sequence[str]:
    return _with_owner(target_named(target, prefix=prefix), owner).clean()


def _with_owner(target: Target, owner: str) -> Target:
    """Return the target, with its owner set if it marks its tables."""
    if isinstance(target, MarksTables):
        target.owner = owner
    return target


def _test_adapter(settings: Settings) -> tuple[AdapterCheck, ...]:
    runner = Runner(settings)
    target = runner.target
    target.lists = frozenset(LISTS)
    try:
        target.start()
        return selftest_levels(runner.mix, target, settings.claims)
    finally:
        target.close()


def _next_settings(pipe: Connection) -> Settings | None:
    try:
        while True:
            message = pipe.recv()
            if message != "stop":  # ignore a "stop" that arrives after the end of a run
                return message if isinstance(message, Settings) else None
    except EOFError:
        return None


def _remove_tables(runner: Runner | None) -> str:
    """Remove the tables of a run; return the reason if that fails, else an empty string."""
    try:
        if runner is not None:
            runner.close()
    except Exception as error:
        return message_in_one_line(error)
    return ""


class _ProgressReporter:
    """Sends the progress to the player; ends the run if the player requests it or has died."""

    def __init__(self, pipe: Connection, parent: int) -> None:
        self._pipe, self._parent = pipe, parent

    def __call__(self, state: RunState) -> None:
        if os.getppid() != self._parent:
            raise KeyboardInterrupt
        self._pipe.send(state)
        if self._pipe.poll():
            self._pipe.recv()
            raise KeyboardInterrupt


def _end_with_player(parent: int, scratch: str) -> None:
    """Wait until the player has died; then kill this process and all its children."""
    while os.getppid() == parent:
        time.sleep(0.5)
    time.sleep(2 * MAX_OVERRUN_S)
    shutil.rmtree(scratch, ignore_errors=True)  # the keepers stop the servers in this folder
    os.killpg(0, signal.SIGKILL)
