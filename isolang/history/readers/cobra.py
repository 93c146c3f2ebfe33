"""Reads the logs of Cobra's clients; each file has the transactions of one session."""

from __future__ import annotations

from isolang.history.readers.reading import Files, Reading, call_native, file_sessions, remarks


def read(files: Files, *, timeout: float, timestamps: bool = False) -> Reading:
    """Read the logs of one history.

    Args:
        files: the name and the contents of each log.
        timeout: the limit in seconds; 0 for no limit.
        timestamps: whether a time follows each start and each commit.

    Raises:
        HistoryError: the input is malformed; the message names file and byte.
        UnsupportedError: the logs contain a read of a deleted key; the message names file and byte.
    """
    from isolang import _native

    columns, report = call_native(_native.read_cobra, list(files), timestamps, timeout=timeout)
    ignored = remarks(report, ("empty_files", "log", "without transactions"))
    contradicting = "of a write with another transaction, key or value"
    notes = [
        "every write id is 0xabddefee: a write is identified by key and value"
        if report["duplicate_values"]
        else "a read names its write by id: that is its source",
        *remarks(
            report,
            ("missing_sources", "read", "of a write that is in no log"),
            ("contradicting_sources", "read", contradicting),
            ("unfinished", "log", "cut inside a transaction: indeterminate"),
        ),
    ]
    real_time = "none: the logs are read without timestamps"
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
        session_names=file_sessions(columns, files),
    )
