"""The moment at which to give up, which encodings and solvers are given."""

from __future__ import annotations

import time


def seconds_left(until: float | None) -> float | None:
    """Seconds until a moment of ``time.perf_counter``; ``None`` if there is no limit.

    Raises:
        TimeoutError: it has passed.
    """
    if until is None:
        return None
    left = until - time.perf_counter()
    if left <= 0:
        raise TimeoutError
    return left
