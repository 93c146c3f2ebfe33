"""Converts times from the usual forms: integers, floats in seconds, and datetimes."""

from __future__ import annotations

import datetime as dt
import math

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.values import preview

_EPOCH = dt.datetime(1970, 1, 1)
_INTEGER = "an integer"


class Clock:
    """Converts the times in one history. All of them must be of the same kind.

    Integers are kept unchanged. They are assumed to be nanoseconds, but any other unit works as
    well, because only their order matters. Floats (in seconds) and datetimes are converted to
    nanoseconds.
    """

    def __init__(self) -> None:
        self._kind = ""

    def time(self, moment: object, unknown: int, where: str) -> int:
        """Return a time as an integer.

        Raises:
            HistoryError: the value is not a time, or its kind differs from that of earlier times.
        """
        if moment is None:
            return unknown
        kind, number = (_INTEGER, moment) if type(moment) is int else self._read(moment, where)
        self._kind = self._kind or kind
        if kind != self._kind:
            msg = (
                f"{where}: the history mixes two kinds of times (got {kind} after {self._kind}); "
                "use one clock"
            )
            raise HistoryError(msg)
        if not c.UNKNOWN_BEGIN < number < c.UNKNOWN_END:
            raise HistoryError(f"{where}: the time does not fit in 64 bits (got {preview(moment)})")
        return number

    def _read(self, moment: object, where: str) -> tuple[str, int]:
        if isinstance(moment, dt.datetime):
            aware = moment.tzinfo is not None
            plain = moment.astimezone(dt.UTC).replace(tzinfo=None) if aware else moment
            since = (plain - _EPOCH) // dt.timedelta(microseconds=1)
            return f"a datetime {'with' if aware else 'without'} time zone", 1000 * since
        if isinstance(moment, float) and math.isfinite(moment):
            return "a float", round(moment * 1e9)
        if isinstance(moment, int) and not isinstance(moment, bool):
            return _INTEGER, moment
        # For example, the moment may be a NumPy integer.
        if hasattr(moment, "__index__") and not isinstance(moment, bool):
            return _INTEGER, int(moment.__index__())
        msg = (
            f"{where}: not a time (got {preview(moment)}, expected an integer of nanoseconds, a "
            "float of seconds or a datetime)"
        )
        raise HistoryError(msg)
