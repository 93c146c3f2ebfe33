"""Runs a few transactions on a database, one step at a time, in the order of a schedule.

Each transaction has its own connection and thread. The next step begins when the previous step has
ended, or when another transaction blocks it. The database reports whether a step is blocked; if it
cannot do so, isocheck assumes after a short timeout that it is. As soon as a blocked step has
ended, its transaction catches up on the steps that came due in the meantime.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from queue import SimpleQueue
from random import Random
from typing import Final

from msgspec import Struct

from isolang.errors import IsolangError
from isolang.run.operation import Program
from isolang.run.outcome import Outcome
from isolang.run.play.level_mix import TransactionLevel
from isolang.run.play.transaction import driver_for, play
from isolang.run.record.recorder import Recorder
from isolang.run.target import Client, Target

BLOCKED_AFTER_S: Final = 0.1  # a step counts as blocked after this many seconds
REPORTED_BLOCK_LIMIT_S: Final = (
    30.0  # the limit in seconds for a step that the database does not report as blocked
)
_POLL: Final = 0.002


class InterleavedResult(Struct, frozen=True, kw_only=True):
    """The outcome of one transaction in an interleaving.

    Attributes:
        error: the client's error message on one line; empty if the client raised no error.
        blocked: whether one of its steps waited for another transaction.
    """

    outcome: Outcome
    error: str
    blocked: bool


def interleave(
    programs: Sequence[Program],
    schedule: Sequence[int],
    *,
    target: Target,
    level: str | Sequence[TransactionLevel],
    recorder: Recorder,
    session: Hashable = "interleaved",
) -> tuple[InterleavedResult, ...]:
    """Run transactions step by step, each in its own session.

    Args:
        programs: the programs of the transactions. A transaction has one step per operation and a
            last step for COMMIT; its first step also begins it.

    Raises:
        IsolangError: the target cannot run the transactions.
    """
    played = interleave_sessions(
        [(program,) for program in programs],
        schedule,
        target=target,
        level=level,
        recorder=recorder,
        session=session,
    )
    return tuple(one for (one,) in played)


def interleave_sessions(
    sessions: Sequence[Sequence[Program]],
    schedule: Sequence[int],
    *,
    target: Target,
    level: str | Sequence[TransactionLevel],
    recorder: Recorder,
    session: Hashable = "interleaved",
    settled: Callable[[int], None] = lambda place: None,
) -> tuple[tuple[InterleavedResult, ...], ...]:
    """Run sessions of several transactions step by step, as :func:`interleave` runs transactions.

    Raises:
        IsolangError: the target cannot run the transactions.
    """
    levels = [TransactionLevel(level)] * len(sessions) if isinstance(level, str) else level
    actors = [
        _SessionThread(programs, target=target, at=at, recorder=recorder, session=(session, i))
        for i, (programs, at) in enumerate(zip(sessions, levels, strict=True))
    ]
    try:
        for place, number in enumerate(schedule):
            actors[number].due += 1
            _run_due_steps(actors)
            settled(place)
        while any(actor.thread.is_alive() for actor in actors):
            for actor in actors:
                actor.due = max(actor.due, 1)
            _run_due_steps(actors)
    finally:
        for actor in actors:
            actor.end()
    for actor in actors:
        if isinstance(actor.error, IsolangError):
            raise actor.error
    return tuple(actor.results() for actor in actors)


def interleavings(steps: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield every schedule of transactions with these numbers of steps, COMMIT included."""
    if not any(steps):
        yield ()
    for i, remaining in enumerate(steps):
        if remaining:
            rest = [*steps[:i], remaining - 1, *steps[i + 1 :]]
            yield from ((i, *more) for more in interleavings(rest))


def random_schedule(steps: Sequence[int], random: Random) -> tuple[int, ...]:
    """Return a random schedule of transactions with these numbers of steps."""
    order = [i for i, count in enumerate(steps) for _ in range(count)]
    random.shuffle(order)
    return tuple(order)


def _run_due_steps(actors: Sequence[_SessionThread]) -> None:
    """Let sessions perform due steps, one at a time, until each has caught up or is blocked."""
    moved = True
    while moved:
        moved = False
        for actor in actors:
            while actor.advance():
                moved = True


class _SessionThread:
    """A session in its own thread; it performs one step each time :meth:`advance` releases it."""

    def __init__(
        self,
        programs: Sequence[Program],
        *,
        target: Target,
        at: TransactionLevel,
        recorder: Recorder,
        session: Hashable,
    ) -> None:
        self.due = 0
        self.error: Exception | None = None
        self._programs = programs
        self._played: list[InterleavedResult] = []
        self._blocked = False
        self._running = False  # true from the beginning of a step until its end is noticed
        self._let: SimpleQueue[bool] = SimpleQueue()
        self._done = threading.Event()
        self._client: Client = target.connect()
        self._play = partial(
            play,
            recorder=recorder,
            session=session,
            client=self._client,
            driver=driver_for(target),
            level=at.level,
            recorded=at.recorded,
            pace=self._wait_for_release,
        )
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            for program in self._programs:
                self._blocked = False
                outcome, error = self._play(program)
                self._add_result(outcome, error)
                if outcome == "maybe":
                    break  # the connection may be lost
        except Exception as error:
            self.error = error
            self._add_result("maybe", error)
        finally:
            self._done.set()

    def _add_result(self, outcome: Outcome, error: Exception | None) -> None:
        message = "" if error is None else " ".join(str(error).split())
        self._played.append(
            InterleavedResult(outcome=outcome, error=message, blocked=self._blocked)
        )

    def _wait_for_release(self) -> None:
        self._done.set()
        self._let.get()

    def advance(self) -> bool:
        """Begin a due step, or wait for a blocked step; return whether a step has ended."""
        if not self._running:
            if not self.due or not self.thread.is_alive():
                self.due = 0
                return False
            self._done.wait(REPORTED_BLOCK_LIMIT_S)  # until the thread is ready for its next step
            self.due -= 1
            self._running = True
            self._done.clear()
            self._let.put(True)
        if not self._wait_for_step():
            return False
        self._running = False
        return True

    def _wait_for_step(self) -> bool:
        """Wait until the step has ended, and return true; return false if the step is blocked."""
        began = time.monotonic()
        while not self._done.wait(_POLL):
            waits, passed = self._client.waits(), time.monotonic() - began
            if (
                waits
                or (waits is None and passed > BLOCKED_AFTER_S)
                or passed > REPORTED_BLOCK_LIMIT_S
            ):
                self._blocked = True
                return False
        return True

    def end(self) -> None:
        """Let the session perform all its remaining steps, and close its connection."""
        for _ in range(1000):
            if not self.thread.is_alive():
                break
            self._let.put(True)
            self.thread.join(0.01)
        self.thread.join(REPORTED_BLOCK_LIMIT_S)
        self._client.close()

    def results(self) -> tuple[InterleavedResult, ...]:
        """Return the result of each transaction in the session."""
        return tuple(self._played)
