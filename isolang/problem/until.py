"""The time that encodings and solvers have left before a deadline."""

from __future__ import annotations

import time


def remaining_seconds(until: float | None) -> float | None:
    """Return the number of seconds until a deadline, or ``None`` for no deadline.

    Raises:
        TimeoutError: if the deadline has passed.
    """
    if until is None:
        return None
    remaining = until - time.perf_counter()
    if remaining <= 0:
        raise TimeoutError
    return remaining
