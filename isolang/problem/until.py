"""The time that encodings and solvers have before the deadline."""

from __future__ import annotations

import time


def remaining_seconds(until: float | None) -> float | None:
    """Return the number of seconds until a deadline, or ``None`` if ``until`` is ``None``.

    Args:
        until: the deadline as a time of ``time.perf_counter``; ``None`` if the time is unlimited.

    Raises:
        TimeoutError: if the deadline has passed.
    """
    if until is None:
        return None
    remaining = until - time.perf_counter()
    if remaining <= 0:
        raise TimeoutError
    return remaining
