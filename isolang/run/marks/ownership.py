"""Whose tables these are: the mark that a run leaves beside them, and its sign of life.

Two runs on one database would write into each other's tables, and each would be convicted of what
the other one wrote. So a run leaves a *mark*, a row (or key) that holds the run's name and a
number. A thread of the run counts that number up, which tells others that the run is alive; and it
notices if the mark is gone or is another run's: the tables are then not the run's own any more, and
nothing that was recorded may be judged.

No clock is compared: who wants to know whether a run is alive watches the number for a while.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol
from uuid import uuid4

from isolang.errors import TargetError

BEAT: Final = 1.0
"""Seconds between two signs of life."""

SILENCE: Final = 5.0
"""Seconds without one, after which a run is taken for killed."""

ANSWER: Final = 1.5
"""Seconds that a check of the mark may take; nobody knows what a server says that hangs."""

_POLL: Final = 0.2


class Marks(Protocol):
    """A connection to the place of the mark; ``get`` and ``swap`` raise where nobody knows."""

    def get(self) -> str:
        """Return the mark; empty if there is none."""
        ...

    def swap(self, old: str, new: str) -> bool:
        """Replace the mark if it is the old one; false if it is not."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


def new_owner() -> str:
    """Return a name that no other run has."""
    return uuid4().hex[:12]


def first_mark(owner: str) -> str:
    """Return the mark of a run that has just begun."""
    return f"{owner} 0"


def owner_of(mark: str) -> str:
    """Return the run that a mark names; empty if there is no mark."""
    return mark.partition(" ")[0]


def is_alive(marks: Marks) -> bool:
    """Watch the mark of another run for :data:`SILENCE`; whether the run gives a sign of life."""
    first, until = marks.get(), time.monotonic() + SILENCE
    while time.monotonic() < until:
        time.sleep(_POLL)
        now = marks.get()
        if now and now != first:
            return True
    return False


class Ownership:
    """The mark of a run of ours, and the thread that keeps its sign of life.

    Attributes:
        owner: the run's name in the mark.
        lost: whether the mark is gone, or another run's.
    """

    def __init__(self, owner: str, connect: Callable[[], Marks]) -> None:
        """Begin the thread.

        Args:
            owner: of the mark, which is :func:`first_mark`.
            connect: opens a connection that nobody else uses.
        """
        self.owner, self.lost = owner, False
        self._connect, self._mark = connect, first_mark(owner)
        self._turn = threading.Condition()
        self._begun = self._done = self._wanted = 0  # checks
        self._ended = False
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def check(self) -> bool:
        """Look at the mark now.

        Returns:
            Whether that was possible; ``lost`` says what was found.
        """
        until = time.monotonic() + ANSWER
        with self._turn:
            self._wanted = number = self._begun + 1
            self._turn.notify_all()
            while self._done < number and not self.lost:
                left = until - time.monotonic()
                if left <= 0 or not self._thread.is_alive():
                    return False
                self._turn.wait(min(left, _POLL))
        return True

    def end(self) -> None:
        """End the thread; a check that hangs is left alone."""
        with self._turn:
            self._ended = True
            self._turn.notify_all()
        self._thread.join(ANSWER)

    def end_with_a_look(self) -> bool:
        """End the thread, and look at the mark without it.

        Returns:
            Whether it is the run's own.
        """
        self.end()
        if self.lost:
            return False
        marks = self._connect()
        try:
            return owner_of(marks.get()) == self.owner
        finally:
            _close(marks)

    def _live(self) -> None:
        marks: Marks | None = None
        while self._next():
            known = False
            try:
                marks = marks or self._connect()
                self._beat(marks)
                known = True
            except Exception:  # the server is down, or busy: nobody knows
                _close(marks)
                marks = None
            with self._turn:
                if known:
                    self._done = self._begun
                self._turn.notify_all()
            if self.lost:
                break
        _close(marks)

    def _next(self) -> bool:
        """Wait until the next sign of life is due, or asked for; false if the thread is to end."""
        with self._turn:
            self._turn.wait_for(lambda: self._ended or self._wanted > self._begun, BEAT)
            self._begun += 1
            return not self._ended

    def _beat(self, marks: Marks) -> None:
        number = int(self._mark.partition(" ")[2]) + 1
        new = f"{self.owner} {number}"
        if marks.swap(self._mark, new):
            self._mark = new
            return
        found = marks.get()
        if owner_of(found) == self.owner:  # the answer to an earlier one was lost
            self._mark = found
        else:
            self.lost = True


def _close(marks: Marks | None) -> None:
    if marks is not None:
        with suppress(Exception):  # the connection is lost
            marks.close()


def not_removed(owner: str, address: object) -> TargetError:
    """Return the refusal to remove the tables of a run that is alive."""
    return TargetError(f"{address}: nothing is removed, as the run {owner} is alive; end it first")


def why_not_made(owner: str, address: object, *, alive: bool) -> str:
    """Return whose the tables are that keep a run from making its own, and what to do."""
    if alive:
        whose = f"the run {owner} has made it and is alive"
        return f"{whose}; wait for its end, or --table-prefix NAME gives other names"
    return f"a run that was killed has left it: isocheck run {address} --clean"
