"""Plays calls of an application in a schedule, by starting their commands through the proxy."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from isolang.court.case import CaseCall, CourtCase
from isolang.court.schedules import CallSchedule
from isolang.errors import IsolangError
from isolang.harm.calls import DEFAULT_IGNORED, writers_of
from isolang.harm.command import RequestCommand, StartedRequest
from isolang.harm.outcome import CallAnswer, Effects, Operation, RunOutcome, outcome_now
from isolang.harm.state import PreparedState
from isolang.observe.observer import Observer, unobserved
from isolang.observe.unseen import accepted_kinds
from isolang.observe.wire.holds import Holds, Turn, released_early
from isolang.observe.wire.unobserved import HERE

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.observe.wire.address import ServerAddress

_MOST_ROWS: Final = 10_000  # the most rows of a table to read at the start
_LONGEST_START: Final = 30.0  # the seconds that a command may take until its first statement
_LONGEST: Final = 60.0  # the seconds that a call may take
_WAITS: Final = (
    "SELECT FROM pg_catalog.pg_locks JOIN pg_catalog.pg_stat_activity USING (pid) "
    "WHERE NOT granted AND datname = pg_catalog.current_database() "
    "AND backend_type = 'client backend' LIMIT 1"
)


class PlayedCalls(Struct, frozen=True, kw_only=True, eq=False):
    """A played schedule, and its history.

    Attributes:
        path: the file of the recorded history.
        turns: what the calls sent, in order.
        outcome: the rows and answers afterwards; ``None`` if a call did not end.
        events: why the calls did not run as the schedule says; empty if they did.
        waited: the calls that waited for a lock of another call.
        calls: the call of each line of the history.
        complaints: for each call whose command failed, its exit code and last line of errors.
    """

    schedule: CallSchedule
    path: Path
    turns: tuple[Turn, ...]
    outcome: RunOutcome | None
    events: tuple[str, ...]
    waited: tuple[int, ...]
    calls: Mapping[int, int]
    complaints: Mapping[int, str]

    def of_call(self, call: int) -> list[Turn]:
        """Return the turns of a call."""
        return [turn for turn in self.turns if turn.call == call + 1]

    def call_of(self, history: History) -> dict[int, int]:
        """Return the call of each transaction of the history."""
        lines = enumerate(history.columns.txn_position.tolist())
        return {txn: self.calls[line] - 1 for txn, line in lines if line in self.calls}

    def writes(self, history: History) -> bool:
        """Return whether a call committed a write."""
        return bool(writers_of(history, self.call_of(history)))

    def transactions(self, history: History) -> dict[int, list[bool]]:
        """Return, for each transaction of each call, whether it committed.

        A committed one without operations does not count. The operations of others are not known.
        """
        from isolang.history.columns import COMMITTED

        status = history.columns.txn_status
        committed = defaultdict[int, list[bool]](list)
        for txn, call in self.call_of(history).items():
            has_committed = int(status[txn]) == COMMITTED
            if not has_committed or len(history.operations_of(txn)):
                committed[call].append(has_committed)
        return committed

    def is_judged_by(self, history: History) -> bool:
        """Return whether the history has all that answers and rows depend on.

        It lacks what was read and then rolled back, which the call may still use, unless it fails
        after its only transaction.
        """
        answers = self.outcome.answers if self.outcome is not None else {}
        return not released_early(self.turns) and all(
            len(committed) == 1 and (committed[0] or (call in answers and answers[call].error))
            for call, committed in self.transactions(history).items()
        )


class _RunningCall:
    """A call whose command runs, and a thread that waits for its end."""

    def __init__(self, started: StartedRequest, line: str) -> None:
        self.answer: CallAnswer | None = None
        self._started = started
        self._thread = threading.Thread(target=self._wait, args=(line,), daemon=True)
        self._thread.start()

    def _wait(self, line: str) -> None:
        with suppress(IsolangError):  # it did not end, and so has no answer
            self.answer = self._started.answer(line)

    def has_ended(self) -> bool:
        """Return whether the command has ended."""
        return not self._thread.is_alive()

    @property
    def complaint(self) -> str:
        """Return why the command failed; empty if it did not."""
        return self._started.complaint

    def stop(self) -> None:
        """End the command if it still runs."""
        with suppress(OSError):
            self._started.process.kill()
        self._thread.join()


class _Performance:
    """Makes calls through a proxy, and holds one of them.

    Attributes:
        holds: what stops the call.
        events: why the calls did not run as the schedule says.
        waited: the calls that waited for a lock.
    """

    def __init__(
        self, observer: Observer, case: CourtCase, waits_for_lock: Callable[[], bool]
    ) -> None:
        self._listener, self._waits_for_lock = observer.listener, waits_for_lock
        listener = observer.listener
        self.holds = listener.holds = Holds(listener.call)
        self._case, self._running = case, dict[int, _RunningCall]()
        self.events: list[str] = []
        self.waited: list[int] = []

    def run(self, schedule: CallSchedule, commands: Sequence[RequestCommand]) -> None:
        """Make the calls of a schedule."""
        numbers = (*schedule.before, schedule.stranger, *schedule.between)
        opened = self._listener.open_ports(HERE, [n + 1 for n in numbers], together=False)
        ports = dict(zip(numbers, opened, strict=True))

        def start(call: int) -> None:
            command = commands[call]
            started = command.start(command.environment(ports[call]))
            self._running[call] = _RunningCall(started, self._case.calls[call].line)

        for call in schedule.before:
            start(call)
            self._finish(call)
        stranger = schedule.stranger
        if schedule.stop is not None:
            self.holds.stop_before(stranger + 1, schedule.stop)
        start(stranger)
        if schedule.stop is None:
            self._finish(stranger)
            return
        if not self.holds.await_stop(stranger + 1, _LONGEST, self._running[stranger].has_ended):
            self.events.append(f"{self._name(stranger)} ended before it could be held")
        for call in schedule.between:
            start(call)
            if not self._ends(call) and not self._may_go_on(call, stranger):
                break
        self.holds.release(stranger + 1)
        for call in (stranger, *schedule.between):
            if call in self._running:
                self._finish(call)

    def _ends(self, call: int) -> bool:
        """Wait until a call has ended or waits, and return whether it has ended."""
        running = self._running[call]

        def stands() -> bool:
            return running.has_ended() or (
                self.holds.awaits_server(call + 1) and self._waits_for_lock()
            )

        self.holds.await_first(call + 1, _LONGEST_START, running.has_ended)
        self.holds.await_end(call + 1, self._case.hold, stands)
        return running.has_ended()

    def _may_go_on(self, call: int, stranger: int) -> bool:
        """Note why a call waits while another one is held; return whether it waits for a lock."""
        if self.holds.awaits_server(call + 1) and self._waits_for_lock():
            self.waited.append(call)
            return True
        self.events.append(
            f"{self._name(call)} sent nothing for {self._case.hold:g} s while "
            f"{self._name(stranger)} was held: "
            "a pool with too few connections, a lock outside the database, or slow work"
        )
        return False

    def _finish(self, call: int) -> None:
        self.holds.await_end(call + 1, _LONGEST, self._running[call].has_ended)
        if not self._running[call].has_ended():
            self.events.append(f"{self._name(call)} did not end")

    def _name(self, call: int) -> str:
        return self._case.calls[call].name

    def stop(self) -> None:
        """End the commands that still run."""
        for call in self._running.values():
            call.stop()

    def complaints(self) -> dict[int, str]:
        """Return why the commands of calls failed."""
        return {n: call.complaint for n, call in self._running.items() if call.complaint}

    def answers(self) -> dict[int, CallAnswer] | None:
        """Return the answers of the calls; ``None`` if one did not end."""
        answers = {n: call.answer for n, call in self._running.items()}
        complete = {n: answer for n, answer in answers.items() if answer is not None}
        return complete if len(complete) == len(answers) else None


class CourtStage:
    """The database and the commands of a case.

    Attributes:
        state: the prepared state.
        effects: the effects outside the database; commands report none.
    """

    def __init__(self, case: CourtCase, server: ServerAddress, folder: Path) -> None:
        """Read the prepared state of the database.

        Raises:
            IsolangError: the database cannot be read.
        """
        self._case, self._server, self._folder = case, server, folder
        self._proxy = unobserved(server)
        self._alone = self._proxy.environment(case.variable)
        self.effects, self._played = Effects(), 0
        self._watch: Any = None  # a connection that asks about locks
        self.state = PreparedState(server, ignored=(*DEFAULT_IGNORED, *case.ignored))

    def close(self) -> None:
        """Put the prepared state back, and end the connections to the database."""
        with suppress(IsolangError):  # the ruling counts more
            self.state.restore()
        self._proxy.stop()
        self.state.close()
        if self._watch is not None:
            self._watch.close()

    def _command(self, call: CaseCall) -> RequestCommand:
        return RequestCommand(
            words=call.words, server=self._server, variable=self._case.variable, alone=self._alone
        )

    def _waits_for_lock(self) -> bool:
        """Return whether some client of the database waits for a lock."""
        if self._watch is None:
            self._watch = self._server.connect()
        return self._watch.execute(_WAITS).fetchone() is not None

    def operations(self, numbers: Sequence[int]) -> dict[int, Operation]:
        """Return calls that can be made again, alone."""

        def operation(call: CaseCall) -> Operation:
            command = self._command(call)
            return Operation(
                name=call.name, call=lambda: command.start(self._alone).answer(call.line)
            )

        return {number: operation(self._case.calls[number]) for number in numbers}

    def play(self, schedule: CallSchedule) -> PlayedCalls:
        """Put the prepared state back, and make calls in a schedule.

        Raises:
            IsolangError: the database or a command cannot be used.
        """
        self._played += 1
        path = self._folder / f"played-{self._played}.edn"
        names = {number: call.name for number, call in enumerate(self._case.calls, 1)}
        self.state.restore()
        self.effects.clear()
        began = min(time.time(), self.state.now())
        observer = Observer(
            self._server, path, listen=(HERE, 0), most_rows=_MOST_ROWS, call_names=names
        )
        observer.start()
        performance = _Performance(observer, self._case, self._waits_for_lock)
        try:
            performance.run(schedule, [*map(self._command, self._case.calls)])
        finally:
            performance.stop()
            observer.stop(accepted_kinds(self._case.allow_unseen))
        answers, outcome = performance.answers(), None
        if answers is not None:
            for call, is_refused in observer.history.refusals.items():
                answers[call - 1].refused = is_refused and bool(answers[call - 1].error)
            outcome = outcome_now(self.state, answers, self.effects, began)
        return PlayedCalls(
            schedule=schedule, path=path, turns=tuple(performance.holds.turns), outcome=outcome,
            events=tuple(performance.events), waited=tuple(performance.waited),
            calls=observer.history.clients, complaints=performance.complaints(),
        )  # fmt: skip
