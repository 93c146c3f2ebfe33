"""Reads the text format of Plume, PolySI and IsoVista: ``r(key,value,session,transaction)``."""

from __future__ import annotations

from isolang.history.readers.reading import (
    Files,
    Reading,
    call_native,
    count_remarks,
    quantity,
)


def read(files: Files, *, timeout: float) -> Reading:
    """Read the history in one file.

    Raises:
        HistoryError: the input is malformed; the message names the file and line.
    """
    from isolang import _native

    ((name, data),) = files
    columns, report = call_native(_native.read_plume, data, name, timeout=timeout)
    notes = count_remarks(
        report, ("zero_writes", "write", "of 0: a read of 0 may come from there, too")
    )
    if report["aborted_transactions"]:
        notes.append(
            f"{quantity(report['aborted_lines'], 'line')} of aborted transactions without names: "
            f"{quantity(report['aborted_transactions'], 'run')} of lines"
        )
    notes += count_remarks(
        report, ("interleaved_lines", "line", "apart from the others of the transaction")
    )
    return Reading(
        columns=columns,
        position_unit="line",
        initial="a read of 0",
        session="the third number of a line",
        real_time="none, because the format has no times",
        notes=tuple(notes),
        session_names=tuple(str(s) for s in report["session_labels"]),
    )
