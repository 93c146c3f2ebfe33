"""Runs a few transactions on a database, one step at a time, in an order that is given.

Each transaction has a connection and a thread of its own. A step is sent, and the next one when it
was answered, or when the database says (or, where it cannot say, a moment shows) that it waits for
another transaction. What is blocked goes on as soon as it is released; the steps that the schedule
has for it meanwhile are done then, at once.
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

PATIENCE: Final = 0.1  # seconds after which a step is blocked, where the database cannot say
LONGEST: Final = 30.0  # seconds for a step that nothing blocks
_POLL: Final = 0.002


class Played(Struct, frozen=True, kw_only=True):
    """What became of one transaction.

    Attributes:
        outcome: as it was recorded.
        error: what the client raised, in a line; empty if it committed.
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
    """Run transactions step by step, each in a session of its own.

    Args:
        programs: of each transaction. COMMIT is its last step; its first one begins it.
        schedule: which transaction does its next step; what it leaves over is done at the end.
        target: that was started and has the keys.
        level: of the target; or that of each transaction.
        recorder: where to record.
        session: part of the name of each transaction's session.

    Raises:
        IsolangError: the target cannot do this at all.
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
    """Run sessions of several transactions step by step; see :func:`interleave`.

    Args:
        sessions: the programs of each, one after the other.
        schedule: which session does its next step.
        target: that was started and has the keys.
        level: of the target; or that of each session.
        recorder: where to record.
        session: part of the name of each session.
        settled: called after each step of the schedule with its place, when nothing more can be
            done before the next one.

    Raises:
        IsolangError: the target cannot do this at all.
    """
    levels = [TransactionLevel(level)] * len(sessions) if isinstance(level, str) else level
    actors = [
        _Actor(programs, target=target, at=at, recorder=recorder, session=(session, i))
        for i, (programs, at) in enumerate(zip(sessions, levels, strict=True))
    ]
    try:
        for place, number in enumerate(schedule):
            actors[number].owed += 1
            _settle(actors)
            settled(place)
        while any(actor.thread.is_alive() for actor in actors):
            for actor in actors:
                actor.owed = max(actor.owed, 1)
            _settle(actors)
    finally:
        for actor in actors:
            actor.end()
    for actor in actors:
        if isinstance(actor.error, IsolangError):
            raise actor.error
    return tuple(actor.played() for actor in actors)


def interleavings(steps: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All schedules of transactions with this many steps each, COMMIT counted."""
    if not any(steps):
        yield ()
    for i, left in enumerate(steps):
        if left:
            rest = [*steps[:i], left - 1, *steps[i + 1 :]]
            yield from ((i, *more) for more in interleavings(rest))


def shuffled(steps: Sequence[int], random: Random) -> tuple[int, ...]:
    """One schedule by chance."""
    order = [i for i, count in enumerate(steps) for _ in range(count)]
    random.shuffle(order)
    return tuple(order)


def _settle(actors: Sequence[_Actor]) -> None:
    """Let everybody do the steps owed, one actor at a time, until all are done or blocked."""
    moved = True
    while moved:
        moved = False
        for actor in actors:
            while actor.advance():
                moved = True


class _Actor:
    """One session: its thread does a step whenever it is let."""

    def __init__(
        self,
        programs: Sequence[Program],
        *,
        target: Target,
        at: TransactionLevel,
        recorder: Recorder,
        session: Hashable,
    ) -> None:
        self.owed = 0
        self.error: Exception | None = None
        self._programs = programs
        self._played: list[Played] = []
        self._blocked = False
        self._running = False  # a step was let go and has not been seen to end
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
                    break  # the connection may be gone
        except Exception as error:
            self.error = error
            self._ended_with("maybe", error)
        finally:
            self._done.set()

    def _ended_with(self, outcome: Outcome, error: Exception | None) -> None:
        said = "" if error is None else " ".join(str(error).split())
        self._played.append(Played(outcome=outcome, error=said, blocked=self._blocked))

    def _pace(self) -> None:
        self._done.set()
        self._let.get()

    def advance(self) -> bool:
        """Do a step that is owed, or see one end; false if there is none, or it is blocked."""
        if not self._running:
            if not self.owed or not self.thread.is_alive():
                self.owed = 0
                return False
            self._done.wait(LONGEST)  # its thread has come to the step
            self.owed -= 1
            self._running = True
            self._done.clear()
            self._let.put(True)
        if not self._ended():
            return False
        self._running = False
        return True

    def _ended(self) -> bool:
        """Wait until the step has ended; false if it waits for another transaction."""
        began = time.monotonic()
        while not self._done.wait(_POLL):
            waits, passed = self._client.waits(), time.monotonic() - began
            if waits or (waits is None and passed > PATIENCE) or passed > LONGEST:
                self._blocked = True
                return False
        return True

    def end(self) -> None:
        """Let the transaction do what is left, and close its connection."""
        for _ in range(1000):
            if not self.thread.is_alive():
                break
            self._let.put(True)
            self.thread.join(0.01)
        self.thread.join(LONGEST)
        self._client.close()

    def played(self) -> tuple[Played, ...]:
        """What became of its transactions."""
        return tuple(self._played)
