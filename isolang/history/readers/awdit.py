"""Reads AWDIT's text format, in which each line is an operation such as ``r key value``."""

from __future__ import annotations

from isolang.history.readers.reading import Files, Reading, call_native


def read(files: Files, *, timeout: float) -> Reading:
    """Read the history in one file.

    Raises:
        HistoryError: the input is malformed; the message names the file and line.
    """
    from isolang import _native

    ((name, data),) = files
    columns, _ = call_native(_native.read_awdit, data, name, timeout=timeout)
    return Reading(
        columns=columns,
        position_unit="line",
        initial="none, so a read of a number that no transaction wrote is a violation",
        session="the transactions between two lines of =",
        real_time="none, because the format has no times",
    )
