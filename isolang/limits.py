"""Time, work and memory: what a check has spent, by phase, and what it may still spend."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from isolang.machine import memory

Phase: TypeAlias = Literal["read", "prepare", "solve", "certify"]


class Seconds(Struct, frozen=True, kw_only=True):
    """Wall-clock seconds by phase.

    Attributes:
        read: reading the history (0 for one that the caller has in memory).
        prepare: the pre-pass and the neutral problem.
        solve: the engine, and explaining its answer.
        certify: the independent checker.
        total: all of it.
    """

    read: float = 0.0
    prepare: float = 0.0
    solve: float = 0.0
    certify: float = 0.0
    total: float = 0.0


class Deadline:
    """The clock of one verdict; all phases share one deadline."""

    def __init__(
        self, timeout: float | None = None, already: dict[str, float] | None = None
    ) -> None:
        """Start the clock.

        Args:
            timeout: seconds for all phases together.
            already: what was spent before, by phase (reading the history); it counts.
        """
        self._spent = dict(already or {})
        self._start = time.perf_counter() - sum(self._spent.values())
        self._timeout = timeout
        self.phase = ""

    @contextmanager
    def during(self, phase: Phase, *, to_the_end: bool = False) -> Iterator[None]:
        """Count the time of the body.

        Args:
            phase: what it counts as.
            to_the_end: what the body gives counts also if the deadline has passed.

        Raises:
            TimeoutError: the deadline had passed before the body began or has when it ends.
        """
        self.phase = phase
        if not to_the_end:
            self.remaining()
        start = time.perf_counter()
        try:
            yield
        finally:
            self._spent[phase] = self._spent.get(phase, 0.0) + time.perf_counter() - start
        if not to_the_end:
            self.remaining()

    def remaining(self) -> float | None:
        """Seconds until the deadline; ``None`` if there is none.

        Raises:
            TimeoutError: it has passed.
        """
        if self._timeout is None:
            return None
        left = self._timeout - (time.perf_counter() - self._start)
        if left <= 0:
            raise TimeoutError
        return left

    def seconds(self) -> Seconds:
        """What was spent so far."""
        return Seconds(**self._spent, total=time.perf_counter() - self._start)


class Work:
    """What may still be done, counted and not timed: equal input ends after equal work.

    For limits that nobody asked for, which must not depend on how busy the machine is. The native
    engine counts how often it polls, some millions of times in a second; what else takes long is
    counted as that many.

    Attributes:
        left: of it.
    """

    def __init__(self, amount: int) -> None:
        """Allow an amount."""
        self.left = amount

    def spend(self, amount: int) -> None:
        """Count what was done."""
        self.left = max(0, self.left - amount)

    def take(self) -> int:
        """All of it, for something that gives back what it has not done, if it comes to an end.

        Raises:
            TimeoutError: there is nothing left.
        """
        if not self.left:
            raise TimeoutError
        taken, self.left = self.left, 0
        return taken

    def give_back(self, amount: int) -> None:
        """Count what was taken and not done."""
        self.left = max(0, amount)

    @contextmanager
    def part(self, share: float) -> Iterator[Work]:
        """Let the body do a share of it."""
        own = Work(int(self.left * share))
        given = own.left
        try:
            yield own
        finally:
            self.spend(given - own.left)


#: Of the memory that there is, this much may be used by default.
SHARE: Final = 0.75


def default_memory(parallel: int = 1) -> float | None:
    """Megabytes that a check may have if nobody said how many; ``None`` if there is no telling.

    Args:
        parallel: how many checks share the memory.
    """
    found = memory()
    if "ISOLANG_SANITIZED" in os.environ:
        return None  # the shadow of a sanitizer takes more memory than any machine has
    return None if found is None else round(SHARE * found[0] / parallel, 1)


def about_default_memory(parallel: int = 1) -> str:
    """What a verdict says of the default, where it ran out; empty without one."""
    found, megabytes = memory(), default_memory(parallel)
    if found is None or megabytes is None:
        return ""
    shared = f", shared by {parallel} jobs" if parallel > 1 else ""
    return (
        f"; the limit was {megabytes:,.0f} MB, three quarters of this {found[1]}'s memory{shared}: "
        "--memory sets another"
    )


def out_of_memory(error: MemoryError, phase: str) -> str:
    """What to say of a ``MemoryError``: what a search says of its own limit, or the phase.

    What the system refuses comes without words, or with those of C++.
    """
    said = str(error)
    return f"the memory ran out in phase {phase}" if not said or "bad_alloc" in said else said


class _Cap:
    """The limit that all checks of this process have together, and what there was before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active = 0
        self._allowed = 0
        self._before: tuple[int, int] = (0, 0)

    def add(self, more: int, base: int) -> None:
        import resource

        with self._lock:
            if not self._active:
                self._before = resource.getrlimit(resource.RLIMIT_DATA)
                self._allowed = base
            self._active += 1
            self._allowed += more
            self._set()

    def remove(self, more: int) -> None:
        import resource

        with self._lock:
            self._active -= 1
            self._allowed -= more
            if self._active:
                self._set()
            else:
                resource.setrlimit(resource.RLIMIT_DATA, self._before)

    def _set(self) -> None:
        import resource

        hard = self._before[1]
        limit = self._allowed if hard == resource.RLIM_INFINITY else min(self._allowed, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


_cap: Final = _Cap()


@contextmanager
def memory_cap(megabytes: float | None, *, of_process: bool = False) -> Iterator[None]:
    """Let allocations of the body fail with ``MemoryError`` beyond a limit.

    The limit is on private writable memory (``RLIMIT_DATA``), as address space says little: thread
    stacks and mapped files count there. Where the platform has no such limit, the body runs
    without. Bodies that run at the same time share the sum of their limits.

    Args:
        megabytes: the limit; ``None`` for none.
        of_process: the limit is on the whole process; else on what the body allocates more than
            there is now.
    """
    held = _held_bytes()
    if megabytes is None or held is None:
        yield
        return
    allowed = int(megabytes * 1e6)
    _cap.add(allowed, 0 if of_process else held)
    try:
        yield
    finally:
        _cap.remove(allowed)


@contextmanager
def interrupted_after(seconds: float | None) -> Iterator[None]:
    """Let Python code of the body fail with ``TimeoutError`` after a time.

    For what has no clock of its own. Only in the main thread, where the platform has alarms; else
    the body runs without.
    """
    usable = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if seconds is None or not usable:
        yield
        return

    def ring(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _held_bytes() -> int | None:
    """The private writable memory of this process; ``None`` where it cannot be known."""
    try:
        import resource  # noqa: F401 - not there on every platform

        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmData:"):
                    return int(line.split()[1]) * 1024
    except (ImportError, OSError, ValueError):
        pass
    return None
