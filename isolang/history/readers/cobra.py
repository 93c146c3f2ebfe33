"""Reads the logs of Cobra's clients; each file contains the transactions of one session."""

from __future__ import annotations

from isolang.history.readers.reading import (
    Files,
    Reading,
    call_native,
    count_remarks,
    sessions_named_by_files,
)


def read(files: Files, *, timeout: float, timestamps: bool = False) -> Reading:
    """Read the logs of one history.

    Args:
        timeout: the time limit in seconds; 0 for no limit.

    Raises:
        HistoryError: the input is malformed; the message names the file and byte.
        UnsupportedError: the logs contain a read of a deleted key; the message names the file and
            byte.
    """
    from isolang import _native

    columns, report = call_native(_native.read_cobra, list(files), timestamps, timeout=timeout)
    ignored = count_remarks(report, ("empty_files", "log", "without transactions"))
    contradicting = "of a write that the logs record with a different transaction, key or value"
    notes = [
        "every write id is 0xabddefee, so key and value identify a write"
        if report["duplicate_values"]
        else "each read names its source by the id of the write",
        *count_remarks(
            report,
            ("missing_sources", "read", "of a write that no log contains"),
            ("contradicting_sources", "read", contradicting),
            ("unfinished", "log", "cut off inside a transaction, which is indeterminate"),
        ),
    ]
    real_time = "none, because the logs were read without timestamps"
    if columns.has_time:
        real_time = "the timestamps of start and commit"
    return Reading(
        columns=columns,
        position_unit="byte",
        initial="a read from the reserved ids 0xbebeebee (loaded before) or 0xdeadbeef (absent)",
        session="one log file",
        real_time=real_time,
        ignored=tuple(ignored),
        notes=tuple(notes),
        session_names=sessions_named_by_files(columns, files),
    )
