"""Describes how long a transaction was open, and how many others committed in that time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from isolang.history import columns as c

if TYPE_CHECKING:
    from isolang.history.history import History


_MANY: Final = 10  # without a clock, at least this many others must have committed meanwhile


def duration(seconds: float) -> str:
    """Return a duration in a suitable unit.

    >>> [duration(s) for s in (0.000696, 0.0000071, 0.0123, 0.35, 1.07, 75)]
    ['0.7 ms', '7 µs', '12 ms', '350 ms', '1.07 s', '75 s']
    """
    if seconds >= 1:
        return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
    milliseconds = seconds * 1e3
    if milliseconds >= 10:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds:.1f} ms" if milliseconds >= 0.1 else f"{seconds * 1e6:.0f} µs"


def age_of(history: History, txn: int) -> str:
    """Return how long a transaction was open, and how many others committed meanwhile.

    Returns:
        The end of a sentence, such as ``open for 1.07 s while 2,340 others committed``. The
        duration is omitted if the times do not come from a clock. The text is empty if few others
        committed meanwhile, or if the history has no times.
    """
    columns = history.columns
    if not columns.has_time or not 0 <= txn < columns.transactions():
        return ""
    begin, end = int(columns.txn_begin[txn]), int(columns.txn_end[txn])
    if begin == c.UNKNOWN_BEGIN or end == c.UNKNOWN_END:
        return ""
    ends = columns.txn_end
    others = int(((ends > begin) & (ends < end) & (columns.txn_status == c.COMMITTED)).sum())
    clock = history.real_time.startswith(":time")
    if others < (1 if clock else _MANY):
        return ""
    seconds = (end - begin) * 1e-9
    how_long = f" for {duration(seconds)}" if clock else ""
    return f"open{how_long} while {others:,} other{'' if others == 1 else 's'} committed"
