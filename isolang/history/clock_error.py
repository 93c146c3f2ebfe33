"""Allows for wrong clocks: real time orders only events further apart than the clock error.

Each session has one clock. ``2ms`` means that no two clocks differ by more than 2 ms.
``a=2ms,b=50us`` means that the clocks of sessions a and b may be off by up to these amounts, and
that all other clocks are right. Every end is moved later by the error. If each session has its own
error, every begin is also moved earlier. The ``slack`` column holds the sum of both shifts. When
two times from the same session are compared, the slack is subtracted again, because they come from
the same clock.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from isolang.errors import HistoryError
from isolang.history.history import History

_UNITS: Final = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s)?")
LARGEST_DURATION: Final = 1 << 61
"""The upper limit for clock errors, in nanoseconds; about 73 years."""


def nanoseconds(text: str) -> int:
    """Return a duration such as ``2ms`` in nanoseconds; a bare number is in nanoseconds too.

    Raises:
        HistoryError: the text is not a duration.

    >>> nanoseconds("2ms"), nanoseconds("1.5 us"), nanoseconds("7")
    (2000000, 1500, 7)
    """
    found = _DURATION.fullmatch(text.strip())
    amount = float(found[1]) * _UNITS[found[2] or "ns"] if found else LARGEST_DURATION
    if amount >= LARGEST_DURATION:
        raise HistoryError(
            f"clock error: not a duration (got {text!r:.40}, expected a duration such as 2ms, "
            "500us or 0.1s)"
        )
    return round(amount)


def format_duration(duration: int) -> str:
    """Return a duration as text, in the largest unit that does not exceed it.

    >>> format_duration(3_100_000), format_duration(7)
    ('3.1 ms', '7 ns')
    """
    for unit in ("s", "ms", "us"):
        if duration >= _UNITS[unit]:
            return f"{duration / _UNITS[unit]:.4g} {unit}"
    return f"{duration} ns"


def with_clock_error(history: History, error: str | int) -> History:
    """Return the history with its times adjusted for clock error.

    Args:
        history: a history with times in nanoseconds.
        error: the clock error in nanoseconds, or as text such as ``2ms`` or ``a=2ms,b=50us``.

    Raises:
        HistoryError: the clock error cannot be parsed or names an unknown session, or the history's
            times do not come from a clock.
    """
    columns = history.columns
    if not columns.has_time and not columns.has_operation_times:
        raise HistoryError(
            f"{history.name}: a clock error makes no sense here, because the history has no times"
        )
    if history.real_time.startswith("the order of"):
        raise HistoryError(
            f"{history.name}: a clock error makes no sense here, because real time is "
            f"{history.real_time}, which no clock measures; hint: files with :times of "
            "operations take real time from :time"
        )
    text = f"{error}ns" if isinstance(error, int) else error
    sessions = columns.sessions
    before, after = [0] * sessions, [0] * sessions
    if isinstance(error, int) or "=" not in error:
        wide = error if isinstance(error, int) else nanoseconds(error)
        after = [wide] * sessions
        sentence = f"clocks may differ by {format_duration(wide)}"
    else:
        names = {str(history.session_name(s)): s for s in range(sessions)}
        for part in error.split(","):
            name, _, own = part.rpartition("=")
            if name.strip() not in names:
                raise HistoryError(
                    f"{history.name}: no session has the name of this clock error (got "
                    f"{name.strip()!r:.40}, expected one of {', '.join(sorted(names)[:12])})"
                )
            before[names[name.strip()]] = after[names[name.strip()]] = nanoseconds(own)
        sentence = f"clocks may be off by {error}"
    return replace(
        history,
        columns=columns.widened(before, after),
        options={**history.options, "clock_error": text},
        real_time=f"{history.real_time}; {sentence}",
    )
