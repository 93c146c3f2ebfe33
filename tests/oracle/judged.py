"""Random histories with the verdict of the semantics, for specifications nobody wrote."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from . import semantics
from .expressions import Checks
from .generate import any_history
from .history import History, timed

_LARGEST = 3_000  # assignments


def judged(
    rng: random.Random, checks: Checks, count: int, left_out: Counter[str] | None = None
) -> Iterator[tuple[History, str]]:
    """``valid`` or ``invalid`` for up to ``count`` histories.

    Left out are those without times where the checks use them, and those with too many assignments,
    which ``left_out`` counts.
    """
    for _ in range(count):
        history = any_history(rng)
        if semantics.needs_time(checks) and not timed(history):
            continue
        try:
            (valid,) = semantics.satisfied(history, [checks], limit=_LARGEST)
        except semantics.TooLargeError:
            if left_out is not None:
                left_out["too large for the oracle"] += 1
            continue
        yield history, "valid" if valid else "invalid"
