"""Limits the time, work and memory of a check, and measures what each phase has spent."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from isolang.machine import memory

Phase: TypeAlias = Literal["read", "prepare", "solve", "certify"]


class Seconds(Struct, frozen=True, kw_only=True):
    """Wall-clock seconds by phase.

    Attributes:
        read: reading the history (0 for one that the caller has in memory).
        prepare: the pre-pass and the neutral problem.
        solve: running the engine, and explaining its answer.
        certify: the independent checker.
        total: all phases together.
    """

    read: float = 0.0
    prepare: float = 0.0
    solve: float = 0.0
    certify: float = 0.0
    total: float = 0.0


class Deadline:
    """Measures the time of each phase of a verdict, and limits the total."""

    def __init__(
        self, timeout: float | None = None, already: dict[str, float] | None = None
    ) -> None:
        """Start measuring time.

        Args:
            timeout: the seconds for all phases together; ``None`` for no limit.
            already: the seconds that each phase has already taken, for example to read the history.
                They count toward the timeout.
        """
        self._spent = dict(already or {})
        self._start = time.perf_counter() - sum(self._spent.values())
        self._timeout = timeout
        self.phase = ""

    @contextmanager
    def during(self, phase: Phase, *, to_the_end: bool = False) -> Iterator[None]:
        """Measure the time of the ``with`` block, and add it to a phase.

        Raises:
            TimeoutError: if the deadline has passed when the block begins or ends and
                ``to_the_end`` is not set.
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
        """Return the seconds until the deadline; ``None`` if there is no deadline.

        Raises:
            TimeoutError: if the deadline has passed.
        """
        if self._timeout is None:
            return None
        remaining = self._timeout - (time.perf_counter() - self._start)
        if remaining <= 0:
            raise TimeoutError
        return remaining

    def seconds(self) -> Seconds:
        """Return the seconds that each phase has spent so far, and the total."""
        return Seconds(**self._spent, total=time.perf_counter() - self._start)


class Work:
    """A budget of work in units that do not depend on the speed of the machine.

    Built-in limits use such budgets, because equal inputs must give equal results no matter how
    busy the machine is. One unit is one poll of the native engine, which polls a few million times
    per second. Other long computations spend an equivalent number of units.
    """

    def __init__(self, amount: int) -> None:
        """Create a budget of ``amount`` units."""
        self.left = amount

    def spend(self, amount: int) -> None:
        """Subtract work that has been done; the budget never becomes negative."""
        self.left = max(0, self.left - amount)

    def take(self) -> int:
        """Take all remaining units; the caller returns unused units with :meth:`give_back`.

        Raises:
            TimeoutError: if no units remain.
        """
        if not self.left:
            raise TimeoutError
        taken, self.left = self.left, 0
        return taken

    def give_back(self, amount: int) -> None:
        """Return unused units taken by :meth:`take` to the budget."""
        self.left = max(0, amount)

    @contextmanager
    def part(self, share: float) -> Iterator[Work]:
        """Yield a smaller budget with a share of the units, and subtract the units it spends."""
        own = Work(int(self.left * share))
        allowed = own.left
        try:
            yield own
        finally:
            self.spend(allowed - own.left)


#: The share of the available memory that checks use by default.
SHARE: Final = 0.75


def default_memory(parallel: int = 1) -> float | None:
    """Return the default memory limit of a check in megabytes."""
    found = memory()
    if "ISOLANG_SANITIZED" in os.environ:
        return None  # a sanitizer reserves more shadow memory than any machine has
    return None if found is None else round(SHARE * found[0] / parallel, 1)


def default_memory_remark(parallel: int = 1) -> str:
    """Return a remark on the default limit, for the reason of a verdict whose check exceeded it."""
    found, megabytes = memory(), default_memory(parallel)
    if found is None or megabytes is None:
        return ""
    shared = f", shared by {parallel} jobs" if parallel > 1 else ""
    return (
        f"; the limit was {megabytes:,.0f} MB, three quarters of this {found[1]}'s memory{shared}: "
        "--memory sets another"
    )


def out_of_memory(error: MemoryError, phase: str) -> str:
    """Return the text of a ``MemoryError``, or one that names the phase if that text is useless.

    If a search exceeded its own limit, the error has a useful text. If an allocation failed, it has
    no text, or only the text of the C++ exception.
    """
    text = str(error)
    return (
        f"the memory limit was reached in phase {phase}"
        if not text or "bad_alloc" in text
        else text
    )


class _Cap:
    """Sets the memory limit of the process while checks run, and then restores the old limit."""

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
    """Make allocations in the ``with`` block fail with ``MemoryError`` if they exceed a limit.

    The limit is on private writable memory (``RLIMIT_DATA``), because a limit on address space
    would also count thread stacks and mapped files. If the platform does not support such limits,
    the block runs without a limit. Blocks that run simultaneously share the sum of their limits.

    Args:
        of_process: whether the limit applies to the memory of the whole process. Otherwise it
            applies to the memory allocated by the block in addition to that already in use.
    """
    allocated = _allocated_bytes()
    if megabytes is None or allocated is None:
        yield
        return
    allowed = int(megabytes * 1e6)
    _cap.add(allowed, 0 if of_process else allocated)
    try:
        yield
    finally:
        _cap.remove(allowed)


@contextmanager
def interrupt_after(seconds: float | None) -> Iterator[None]:
    """Interrupt Python code in the ``with`` block with a ``TimeoutError`` after the given seconds.

    This function is for code that does not check a deadline itself. It works only in the main
    thread, and only if the platform has alarms. Otherwise the block runs without a limit. A module
    import is not interrupted: the error is raised after it.
    """
    usable = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if seconds is None or not usable:
        yield
        return

    outermost = sys._getframe(2)  # the frame of the ``with`` statement

    def ring(number: int, frame: FrameType | None) -> None:
        # While importing a module, Python takes an OSError, and therefore a TimeoutError, to mean
        # that a file is missing, and remembers that the module does not exist.
        while frame is not None and frame is not outermost:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                signal.setitimer(signal.ITIMER_REAL, 0.001)
                return
            frame = frame.f_back
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _allocated_bytes() -> int | None:
    """Return the private writable memory of this process in bytes; ``None`` if unknown."""
    try:
        import resource  # noqa: F401 - not there on every platform

        with open("/proc/self/status", "rb", buffering=0) as status:
            if found := re.search(rb"^VmData:\s*(\d+)", status.read(), re.MULTILINE):
                return int(found[1]) * 1024
    except (ImportError, OSError, ValueError):
        pass
    return None
