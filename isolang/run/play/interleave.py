"""Runs a few transactions on a database, one step at a time, in the order of a schedule.

Each transaction has its own connection and thread. The next step begins when the previous step has
ended or is blocked by another transaction. The database reports whether a step is blocked; if it
cannot report that, a step counts as blocked after a short timeout. A blocked transaction continues
as soon as it is released, and then does the steps of the schedule that it missed.
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

PATIENCE: Final = 0.1  # seconds until a step counts as blocked if the database cannot report waits
LONGEST: Final = 30.0  # seconds until a step counts as blocked on any database
_POLL: Final = 0.002


class Played(Struct, frozen=True, kw_only=True):
    """The outcome of one interleaved transaction.

    Attributes:
        outcome: the recorded outcome.
        error: the error that the client raised, on one line; empty if the transaction committed.
        blocked: whether one of its steps had to wait for another transaction.
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
) -> tuple[Played, ...]:
    """Run transactions step by step, each in its own session.

    Args:
        programs: the program of each transaction, whose first step begins it and whose last is
            COMMIT.
        schedule: the index of the transaction that does each step; remaining steps are done at the
            end.
        target: the target, which is started and has the keys.
        level: the level of all transactions, or a level for each transaction.
        recorder: the recorder of the transactions.
        session: the first part of the name of each transaction's session.

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
) -> tuple[tuple[Played, ...], ...]:
    """Run sessions of several transactions step by step, as :func:`interleave` does.

    Args:
        sessions: the programs of each session, in order.
        schedule: the index of the session that does each step.
        target: the target, which is started and has the keys.
        level: the level of all sessions, or a level for each session.
        recorder: the recorder of the transactions.
        session: the first part of the name of each session.
        settled: a function that is called with the index of each step of the schedule, when all
            sessions are blocked or wait for their next step.

    Raises:
        IsolangError: the target cannot run the transactions.
    """
    levels = [TransactionLevel(level)] * len(sessions) if isinstance(level, str) else level
    actors = [
        _Actor(programs, target=target, at=at, recorder=recorder, session=(session, i))
        for i, (programs, at) in enumerate(zip(sessions, levels, strict=True))
    ]
    try:
        for place, number in enumerate(schedule):
            actors[number].due += 1
            _settle(actors)
            settled(place)
        while any(actor.thread.is_alive() for actor in actors):
            for actor in actors:
                actor.due = max(actor.due, 1)
            _settle(actors)
    finally:
        for actor in actors:
            actor.end()
    for actor in actors:
        if isinstance(actor.error, IsolangError):
            raise actor.error
    return tuple(actor.played() for actor in actors)


def interleavings(steps: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all schedules of transactions with these numbers of steps, including COMMIT."""
    if not any(steps):
        yield ()
    for i, remaining in enumerate(steps):
        if remaining:
            rest = [*steps[:i], remaining - 1, *steps[i + 1 :]]
            yield from ((i, *more) for more in interleavings(rest))


def shuffled(steps: Sequence[int], random: Random) -> tuple[int, ...]:
    """Return a random schedule of transactions with these numbers of steps."""
    order = [i for i, count in enumerate(steps) for _ in range(count)]
    random.shuffle(order)
    return tuple(order)


def _settle(actors: Sequence[_Actor]) -> None:
    """Do all due steps, one session at a time, until all sessions are done or blocked."""
    moved = True
    while moved:
        moved = False
        for actor in actors:
            while actor.advance():
                moved = True


class _Actor:
    """A session whose thread does one step each time that :meth:`advance` releases it."""

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
        self._played: list[Played] = []
        self._blocked = False
        self._running = False  # whether a step has begun and may not have ended
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
            pace=self._pace,
        )
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            for program in self._programs:
                self._blocked = False
                outcome, error = self._play(program)
                self._ended_with(outcome, error)
                if outcome == "maybe":
                    break  # the connection may be lost
        except Exception as error:
            self.error = error
            self._ended_with("maybe", error)
        finally:
            self._done.set()

    def _ended_with(self, outcome: Outcome, error: Exception | None) -> None:
        message = "" if error is None else " ".join(str(error).split())
        self._played.append(Played(outcome=outcome, error=message, blocked=self._blocked))

    def _pace(self) -> None:
        self._done.set()
        self._let.get()

    def advance(self) -> bool:
        """Do a due step or continue a blocked one; return false if no step was completed."""
        if not self._running:
            if not self.due or not self.thread.is_alive():
                self.due = 0
                return False
            self._done.wait(LONGEST)  # wait until the thread has reached the step
            self.due -= 1
            self._running = True
            self._done.clear()
            self._let.put(True)
        if not self._ended():
            return False
        self._running = False
        return True

    def _ended(self) -> bool:
        """Wait until the step has ended; return false if another transaction blocks it."""
        began = time.monotonic()
        while not self._done.wait(_POLL):
            waits, passed = self._client.waits(), time.monotonic() - began
            if waits or (waits is None and passed > PATIENCE) or passed > LONGEST:
                self._blocked = True
                return False
        return True

    def end(self) -> None:
        """Let the session do its remaining steps, and close its connection."""
        for _ in range(1000):
            if not self.thread.is_alive():
                break
            self._let.put(True)
            self.thread.join(0.01)
        self.thread.join(LONGEST)
        self._client.close()

    def played(self) -> tuple[Played, ...]:
        """Return the outcomes of the session's transactions."""
        return tuple(self._played)
