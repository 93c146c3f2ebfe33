"""Times as people give them: integers, seconds as floats, datetimes."""

from __future__ import annotations

import datetime as dt
import math

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.values import shown

_EPOCH = dt.datetime(1970, 1, 1)
_INTEGER = "an integer"


class Clock:
    """Reads the times of one history, which are all of one kind.

    Integers are nanoseconds (any unit will do, as only their order counts), floats seconds,
    datetimes what they say; the last two become nanoseconds.
    """

    def __init__(self) -> None:
        self._kind = ""

    def time(self, given: object, unknown: int, where: str) -> int:
        """Give a time as an integer.

        Args:
            given: the time; ``None`` if it is not known.
            unknown: what to give then.
            where: the place to name in an error.

        Raises:
            HistoryError: if it is no time, or of another kind than an earlier one.
        """
        if given is None:
            return unknown
        kind, number = (_INTEGER, given) if type(given) is int else self._read(given, where)
        self._kind = self._kind or kind
        if kind != self._kind:
            msg = f"{where}: times of two kinds (got {kind}, before {self._kind}); use one clock"
            raise HistoryError(msg)
        if not c.UNKNOWN_BEGIN < number < c.UNKNOWN_END:
            raise HistoryError(f"{where}: a time outside 64 bits (got {shown(given)})")
        return number

    def _read(self, given: object, where: str) -> tuple[str, int]:
        if isinstance(given, dt.datetime):
            aware = given.tzinfo is not None
            plain = given.astimezone(dt.UTC).replace(tzinfo=None) if aware else given
            since = (plain - _EPOCH) // dt.timedelta(microseconds=1)
            return f"a datetime {'with' if aware else 'without'} time zone", 1000 * since
        if isinstance(given, float) and math.isfinite(given):
            return "a float", round(given * 1e9)
        if isinstance(given, int) and not isinstance(given, bool):
            return _INTEGER, given
        if hasattr(given, "__index__") and not isinstance(given, bool):  # numpy's
            return _INTEGER, int(given.__index__())
        msg = (
            f"{where}: not a time (got {shown(given)}, expected an integer of nanoseconds, a float "
            "of seconds or a datetime)"
        )
        raise HistoryError(msg)
