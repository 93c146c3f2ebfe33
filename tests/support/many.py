"""Provides histories for tests of ``check_many``; worker processes import this module by name."""

import os
import signal

from isolang import History, Transaction


def history_that_reads(value, number=0):
    """Return a history that writes x = 1 and reads ``value``, which is valid if they are equal."""
    return History.from_transactions(
        [Transaction([("w", "x", 1)], session=1), Transaction([("r", "x", value)], session=2)],
        name=f"h{number}",
    )


class Killer(History, frozen=True, kw_only=True):
    """A history that kills the worker that receives it, as often as a counter in a file says."""

    file: str

    def __reduce__(self):
        return _end, (self.file,)


def _end(file):
    """Kill this process and decrement the counter in the file, unless the counter is 0."""
    with open(file, "r+", encoding="ascii") as left:
        times = int(left.read())
        left.seek(0)
        left.write(f"{max(0, times - 1):4}")
    if times > 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return history_that_reads(1)


def killer(tmp_path, times):
    file = tmp_path / f"left{times}"
    file.write_text(f"{times:4}", encoding="ascii")
    history = history_that_reads(1)
    return Killer(**{f: getattr(history, f) for f in History.__struct_fields__}, file=str(file))
