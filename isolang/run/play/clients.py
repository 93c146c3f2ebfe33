"""Runs the clients of a run in this process, each in its own thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from random import Random
from typing import Final

from msgspec import Struct

from isolang.errors import message_in_one_line
from isolang.run.operation import (
    Program,
    Read,
    Wait,
    as_read_only,
    with_available_features,
    with_paths,
    with_pauses,
    with_savepoints,
    without_savepoints,
)
from isolang.run.outcome import BadAnswer, Driver, Outcome, ProgramAborted
from isolang.run.play.blame import PROGRAMMING_ERRORS, hanging_calls
from isolang.run.play.level_mix import LevelMix, TransactionLevel
from isolang.run.play.phases import RunPlan, WorkloadTurns
from isolang.run.play.state import COPY_LABEL, RunState
from isolang.run.play.transaction import driver_for, note_copy, play
from isolang.run.record.recorder import Recorder
from isolang.run.settings import Settings
from isolang.run.sql import SqlTarget
from isolang.run.target import Client, SupportsBackups, SupportsStandby, Target, TargetError
from isolang.run.workloads import ProgramSource, Workload

ENDING_S: Final = 4.0  # seconds that the last transactions may take after the end of a run
_RECONNECTING: Final = 30.0  # seconds for which the final reader of all keys tries to connect
_KEYS_PER_READ: Final = 100  # the number of keys per transaction of the final read
# A transaction that represents a copy of the tables sends nothing, so it has nothing to commit. If
# the copy fails, the transaction is recorded as aborted, because it has read nothing.
_COPY_DRIVER: Final = Driver(
    commit=lambda raw: None,
    rollback=lambda raw: None,
    classify=lambda error, phase: "aborted",
)
_MAX_FAILURES: Final = 20  # the final read of all keys is abandoned after this many failures


class ClientShare(Struct, frozen=True):
    """The clients run by one process: of every ``of`` clients, the one at index ``number``."""

    number: int = 0
    of: int = 1


class Clients:
    """The clients of a run, which play the current workload until the run ends.

    Attributes:
        fatal: the error that ended the run; ``None`` if there was none.
        stopped: an event that is set when the run ends, or when a client cannot continue.
    """

    def __init__(
        self, settings: Settings, plan: RunPlan, target: Target, mix: LevelMix, recorder: Recorder
    ) -> None:
        """Prepare the clients without starting any threads."""
        self.state = RunState(level=mix.level.name, workload=plan.workload(0.0))
        self.stopped = threading.Event()
        self._settings, self._plan, self._target = settings, plan, target
        self._mix, self._recorder = mix, recorder
        self._driver = driver_for(target)
        self._lists = frozenset(plan.lists())
        self._lock = threading.Lock()
        self._share, self._values = ClientShare(), count(1)
        self._begun, self._copies = count(), count()
        # The number of clients that keep a transaction open until enough others have ended.
        self._waiting = 0
        self._threads: list[threading.Thread] = []
        self._turns: WorkloadTurns | None = None
        self.fatal: BaseException | None = None

    def start(self, share: ClientShare = ClientShare()) -> None:  # noqa: B008 - it cannot change
        """Start the clients in a share, each in its own thread."""
        if share.of > 1:
            self._share = share
            self._recorder.divide(share.number, share.of)
            self._values = count(1 + share.number, share.of)
        self.choose()
        everybody = range(self._settings.sessions + self._settings.standby)
        for number in everybody[share.number :: share.of]:
            thread = threading.Thread(target=self._client, args=(number,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def choose(self) -> None:
        """Choose the clients' next workload, and store its name in the state."""
        with self._lock:
            self._choose()

    def _choose(self, client: int = 0) -> str:
        """Return a client's next workload; store that of client 0 in the state."""
        now, until = time.monotonic(), self.state.began + self._settings.length
        self._turns = self._turns or WorkloadTurns(self._plan, began=now, until=until)
        self.state.workload = self._turns.choose(now, self.state.played)
        return self._turns.choose(now, self.state.played, client)

    def any_alive(self) -> bool:
        """Return whether any client is still running."""
        return any(thread.is_alive() for thread in self._threads)

    def end(self) -> None:
        """Let the clients finish their last transactions; note hanging calls in the state."""
        self.stopped.set()
        until = time.monotonic() + ENDING_S
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        self.state.hung += tuple(hanging_calls(one for one in self._threads if one.is_alive()))
        self._threads = []

    def count(self, outcome: Outcome, *, level: str, workload: str) -> None:
        """Count a transaction played by a thread that is not a client's."""
        with self._lock:
            self.state.count(outcome, level=level, workload=workload)
            self.state.answered = time.monotonic()

    def fail(self, error: BaseException) -> None:
        """Stop all clients because of an error; store the error if it is the first."""
        self.fatal = self.fatal or error
        self.stopped.set()

    def read_back(self, keys: Sequence[str]) -> None:
        """Read every key in new sessions, after the clients have ended, to reveal lost writes."""
        client, tries = None, 0
        for start in range(0, len(keys), _KEYS_PER_READ):
            program = tuple(Read(key) for key in keys[start : start + _KEYS_PER_READ])
            read = False
            while not read and tries < _MAX_FAILURES:
                client = client or self._connect(always=True)
                assert client is not None
                at = self._mix.draw(Random(tries))
                session = ("read back", tries)
                outcome, _ = self._transact(program, client, session, at, workload="read back")
                read = outcome == "committed"
                if not read:
                    tries += 1
                    _close(client)
                    client = None
        if client is not None:
            _close(client)

    def back_up(self, way: str) -> None:
        """Copy the tables while clients use them, and record the rows of the copy as reads.

        The reads belong to one transaction in its own session. SOUND BECAUSE: the copy begins after
        this transaction has begun, and is complete before the transaction ends. Therefore the copy
        must contain everything that such a transaction would read.

        Raises:
            Exception: the copy failed.
        """
        target, number = self._target, next(self._copies)
        assert isinstance(target, SupportsBackups)
        at, began = self._mix.draw(Random(number)), time.monotonic()
        t = self._recorder.transaction(
            ("backup", number), driver=_COPY_DRIVER, label=f"{COPY_LABEL}{way}", level=at.recorded
        )
        failed: Exception | None = None
        try:
            with t:
                t.sending()
                rows = target.back_up(way, at.level)
                workloads = [phase.workload for phase in self._plan.phases]
                note_copy(
                    t,
                    rows,
                    keys=[key for one in workloads for key in (*one.registers, *one.lists)],
                    predicates=any(one.rows for one in workloads),
                    nulls=any(one.nulls for one in workloads),
                    lists=self._lists,
                )
        except Exception as error:
            failed = error
            raise
        finally:
            with self._lock:
                took, outcome = time.monotonic() - began, t.outcome or "maybe"
                self.state.count(outcome, took, failed, level=at.level, workload="backup")

    def _client(self, number: int) -> None:
        try:
            self._play(number)
        except BaseException as error:
            self.fail(error)

    def _play(self, number: int) -> None:
        settings, source = self._settings, ProgramSource(self._settings.seed, number, self._values)
        workloads = {phase.workload.name: phase.workload for phase in self._plan.phases}
        standby = number >= settings.sessions
        client: Client | None = None
        connections = tries = 0
        drawn = source.random.getstate()
        while not self.stopped.is_set():
            if client is None:
                client = self._connect(standby=standby)
                connections += 1
                continue
            if not self._wait_until_due():
                continue
            with self._lock:
                workload = workloads[self._choose(number)]
            if settings.retries:
                if tries:  # draw the same random choices again, with new values
                    source.random.setstate(drawn)
                else:
                    drawn = source.random.getstate()
            program = workload.program(source)
            if standby:
                program = as_read_only(program)
            elif settings.savepoints:
                program = with_savepoints(program, source.random, settings.savepoints, self._values)
            if "savepoints" in self._target.lacks:
                program = without_savepoints(program)
            program = with_available_features(program, self._target.offers)
            reads, writes = settings.access == "any", settings.update == "any"
            if (reads or writes) and isinstance(self._target, SqlTarget):
                program = with_paths(program, source.random, reads=reads, writes=writes)
            if settings.pauses:
                program = with_pauses(program, source.random, settings.pauses)
            session, at = (number, connections), self._mix.draw(source.random)
            outcome, error = self._transact(
                program, client, session, at, of=workload, workload=workload.name
            )
            source.made += 1
            refused = outcome == "aborted" and not isinstance(error, ProgramAborted)
            tries = tries + 1 if refused and tries < settings.retries else 0
            if outcome == "maybe" or not client.usable():
                _close(client)
                client = None
        if client is not None:
            _close(client)

    def _wait_until_due(self) -> bool:
        """Wait until ``--rate`` allows the next transaction; return false if the run ends first."""
        rate = self._settings.rate
        if rate is None:
            return True
        at = self.state.began + next(self._begun) * self._share.of / rate
        return not self.stopped.wait(max(0.0, at - time.monotonic()))

    def _transact(
        self,
        program: Program,
        client: Client,
        session: tuple[object, int],
        at: TransactionLevel,
        *,
        of: Workload | None = None,
        workload: str = "",
    ) -> tuple[Outcome, Exception | None]:
        began = time.monotonic()
        outcome, error = play(
            program,
            recorder=self._recorder,
            session=session,
            client=client,
            driver=self._driver,
            level=at.level,
            recorded=at.recorded,
            rows=of is not None and of.rows,
            nulls=of is not None and of.nulls,
            lists=self._lists,
            wait=self._wait,
        )
        now = time.monotonic()
        with self._lock:
            self.state.count(outcome, now - began, error, level=at.level, workload=workload)
            if outcome == "committed" or client.usable():
                self.state.answered = now
        if isinstance(error, BadAnswer) and not self.state.committed:
            self.fail(TargetError(f"{self._target.name}: {error}"))
        return outcome, error

    def _connect(self, *, standby: bool = False, always: bool = False) -> Client | None:
        """Connect, and retry until the server responds; return ``None`` if the run ends first."""
        until = time.monotonic() + _RECONNECTING
        while True:
            try:
                if standby and isinstance(self._target, SupportsStandby):
                    made: Client = self._target.connect_standby()
                else:
                    made = self._target.connect()
            except PROGRAMMING_ERRORS:
                raise
            except Exception as error:
                self.state.refused, self.state.refusal = (
                    time.monotonic(),
                    message_in_one_line(error),
                )
                if always and time.monotonic() > until:
                    raise
                if self.stopped.is_set() and not always:
                    return None
                time.sleep(0.1)
            else:
                self.state.answered = time.monotonic()
                return made

    def _wait(self, operation: Wait) -> None:
        # Count aborted transactions, too, because this open transaction may be why they abort.
        enough = self.state.total() + operation.transactions // self._share.of
        until = time.monotonic() + self._settings.length / 4
        if self._turns is not None:
            until = min(until, self._turns.ends)
        with self._lock:
            self._waiting += 1
        while self.state.total() < enough and time.monotonic() < until:
            if self.stopped.wait(0.01) or self._all_wait():
                break
        with self._lock:
            self._waiting -= 1

    def _all_wait(self) -> bool:
        """Return whether all clients are waiting for other transactions, so none would ever end."""
        return self._waiting >= len(self._threads)


def _close(client: Client) -> None:
    with suppress(Exception):  # the connection has been lost
        client.close()
