"""Records which run owns the tables: the run keeps renewing a mark next to them.

Two runs on the same database would write into each other's tables, and the writes of one run would
convict the database in the other run. Therefore a run leaves a *mark*: a row (or key) that contains
the run's name and a number. A thread of the run increments the number, which shows other runs that
the run is alive. The thread also notices if the mark is missing or belongs to another run. In this
case the tables no longer belong to the run, and its history must not be judged.

No clocks are compared: to find out whether a run is alive, another run observes its number for a
while.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol
from uuid import uuid4

from isolang.errors import TargetError

BEAT_S: Final = 1.0
"""The number of seconds between two increments of the number in the mark."""

SILENCE_S: Final = 5.0
"""A run counts as killed after this many seconds without an increment."""

CHECK_TIMEOUT_S: Final = 1.5
"""The time limit in seconds for checking the mark, needed because the server may hang."""

_POLL_S: Final = 0.2


class Marks(Protocol):
    """A connection through which a run reads and writes a mark.

    ``get`` and ``swap`` raise an error if the mark cannot be accessed.
    """

    def get(self) -> str:
        """Return the mark; if it does not exist, return an empty string."""
        ...

    def swap(self, old: str, new: str) -> bool:
        """If the mark is ``old``, replace it with ``new`` and return true; else return false."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


def new_owner() -> str:
    """Return a name for this run that no other run has."""
    return uuid4().hex[:12]


def initial_mark(owner: str) -> str:
    """Return the first mark of a run, with the number 0."""
    return f"{owner} 0"


def owner_of(mark: str) -> str:
    """Return the name of the run that left a mark, or an empty string for an empty mark."""
    return mark.partition(" ")[0]


def is_alive(marks: Marks) -> bool:
    """Return whether the number in another run's mark changes within :data:`SILENCE_S`."""
    first, until = marks.get(), time.monotonic() + SILENCE_S
    while time.monotonic() < until:
        time.sleep(_POLL_S)
        now = marks.get()
        if now and now != first:
            return True
    return False


class Ownership:
    """Keeps renewing the mark of this run in a thread, and notices if the mark is lost.

    Attributes:
        lost: whether the thread has found the mark missing or owned by another run.
    """

    def __init__(self, owner: str, connect: Callable[[], Marks]) -> None:
        """Start the thread that renews the mark."""
        self.owner, self.lost = owner, False
        self._connect, self._mark = connect, initial_mark(owner)
        self._turn = threading.Condition()
        self._begun = self._done = self._requested = 0  # counts of checks
        self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def check(self) -> bool:
        """Make the thread read the mark now, and wait until it has done so.

        Returns:
            Whether the mark could be read; if so, ``lost`` is up to date.
        """
        until = time.monotonic() + CHECK_TIMEOUT_S
        with self._turn:
            self._requested = number = self._begun + 1
            self._turn.notify_all()
            while self._done < number and not self.lost:
                remaining = until - time.monotonic()
                if remaining <= 0 or not self._thread.is_alive():
                    return False
                self._turn.wait(min(remaining, _POLL_S))
        return True

    def end(self) -> None:
        """End the thread, without waiting for a check that hangs."""
        with self._turn:
            self._ended = True
            self._turn.notify_all()
        self._thread.join(CHECK_TIMEOUT_S)

    def end_with_check(self) -> bool:
        """End the thread, and read the mark one last time."""
        self.end()
        if self.lost:
            return False
        marks = self._connect()
        try:
            return owner_of(marks.get()) == self.owner
        finally:
            _close(marks)

    def _run(self) -> None:
        marks: Marks | None = None
        while self._wait_for_beat():
            known = False
            try:
                marks = marks or self._connect()
                self._renew(marks)
                known = True
            except Exception:  # the server is down or busy
                _close(marks)
                marks = None
            with self._turn:
                if known:
                    self._done = self._begun
                self._turn.notify_all()
            if self.lost:
                break
        _close(marks)

    def _wait_for_beat(self) -> bool:
        """Wait until the mark must be renewed or checked; return false if the thread must end."""
        with self._turn:
            self._turn.wait_for(lambda: self._ended or self._requested > self._begun, BEAT_S)
            self._begun += 1
            return not self._ended

    def _renew(self, marks: Marks) -> None:
        number = int(self._mark.partition(" ")[2]) + 1
        new = f"{self.owner} {number}"
        if marks.swap(self._mark, new):
            self._mark = new
            return
        found = marks.get()
        if owner_of(found) == self.owner:  # an earlier swap succeeded, but its response was lost
            self._mark = found
        else:
            self.lost = True


def _close(marks: Marks | None) -> None:
    if marks is not None:
        with suppress(Exception):  # the connection has been lost
            marks.close()


def not_removed_error(owner: str, address: object) -> TargetError:
    """Return the error for tables that were not removed because their run is still alive."""
    return TargetError(
        f"{address}: nothing was removed, because the run {owner} is still active; end it first"
    )


def why_tables_exist(owner: str, address: object, *, alive: bool) -> str:
    """Return why a new run's tables already exist, and what the user can do about it."""
    if alive:
        whose = f"the run {owner}, which is still active, created it"
        return f"{whose}; wait until it ends, or choose other names with --table-prefix NAME"
    return f"a killed run left it behind; remove it with isocheck run {address} --clean"
