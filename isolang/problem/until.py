"""The remaining time of encodings and solvers."""

from __future__ import annotations

import time


def remaining_seconds(until: float | None) -> float | None:
    """Return the seconds until a time of ``time.perf_counter``; ``None`` without a limit.

    Raises:
        TimeoutError: the time has passed.
    """
    if until is None:
        return None
    remaining = until - time.perf_counter()
    if remaining <= 0:
        raise TimeoutError
    return remaining
