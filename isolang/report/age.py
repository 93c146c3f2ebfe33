"""Describes how long a transaction was open, and how many others committed in this time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from isolang.history import columns as c

if TYPE_CHECKING:
    from isolang.history.history import History


_MANY: Final = 10  # without a clock, at least this many transactions must have committed meanwhile


def age_of(history: History, txn: int) -> str:
    """Return how long a transaction was open, and how many other transactions committed meanwhile.

    Args:
        history: the history that contains the transaction.
        txn: the number of the transaction.

    Returns:
        The end of a sentence, such as ``open for 1.07 s while 2,340 others committed``. The seconds
        are omitted if the times are not those of a clock. The text is empty if few transactions
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
    how_long = f" for {seconds:.3g} s" if clock else ""
    return f"open{how_long} while {others:,} other{'' if others == 1 else 's'} committed"
