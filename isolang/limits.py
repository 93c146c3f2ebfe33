"""Time and memory: what a check has spent, by phase, and what it may still spend."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from isolang.verdict import Seconds

Phase: TypeAlias = Literal["read", "prepare", "solve", "certify"]


class Spending:
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


@contextmanager
def memory_cap(megabytes: float | None, *, of_process: bool = False) -> Iterator[None]:
    """Let allocations of the body fail with ``MemoryError`` beyond a limit.

    The limit is on private writable memory (``RLIMIT_DATA``), as address space says little: thread
    stacks and mapped files count there. Where the platform has no such limit, the body runs
    without.

    Args:
        megabytes: the limit; ``None`` for none.
        of_process: the limit is on the whole process; else on what the body allocates more than
            there is now.
    """
    held = _held_bytes()
    if megabytes is None or held is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = int(megabytes * 1e6) + (0 if of_process else held)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


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
