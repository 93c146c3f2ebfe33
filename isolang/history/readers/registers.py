"""Logs of single operations: registers with compare-and-set, locks, stores of texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isolang.caveat import Caveat
from isolang.history.readers.jepsen import session_names
from isolang.history.readers.reading import Files, Reading, call_native, remarks


def read(files: Files, *, failed_cas: str = "auto", timeout: float) -> Reading:
    """Read one file.

    Args:
        files: the file.
        failed_cas: what a comparison that failed says: ``compared``, that it saw another value;
            ``nothing``; or ``auto``, the first of the lines of a log, and of maps where their
            ``:error`` names the comparison.
        timeout: in seconds, 0 for none.

    Raises:
        HistoryError: naming file and line.
        UnsupportedError: for operations of other objects, and texts of which it would not be clear
            who wrote them.
    """
    from isolang import _native

    ((name, data),) = files
    columns, say = call_native(_native.read_registers, data, name, failed_cas, timeout=timeout)
    real_time = "none: the file has completions only, no :invoke"
    if columns.has_time:
        by = ":index" if say["order"] == "index" else "lines"
        real_time = f"the order of {by}, from :invoke to :ok or :fail"
    return Reading(
        columns=columns,
        position_unit="line",
        initial="a read of nil, of the empty text, or of a free lock",
        session="one :process",
        real_time=real_time,
        ignored=_ignored(say),
        notes=_notes(say),
        session_names=session_names(say["session_labels"]),
    )


def _ignored(say: Mapping[str, Any]) -> tuple[str, ...]:
    unknown = "that did not succeed and of which nothing else is known"
    refused = "that failed, and may not have run (--failed-cas compared)"
    strays = ("stray_completions", "completion", "without invocation or value")
    return (
        *remarks(
            say,
            ("nonclient", "operation", "of no client"),
            ("other_lines", "line", "of other loggers"),
        ),
        *map(Caveat, remarks(say, strays)),
        *remarks(
            say,
            ("unknown_operations", "operation", unknown),
            ("unknown_reads", "read", "without an answer, whose results are not known"),
            ("refused", "comparison", refused),
        ),
    )


def _notes(say: Mapping[str, Any]) -> tuple[str, ...]:
    failed = "that failed: a read of something else than was expected"
    found = remarks(say, ("saw_another", "comparison", failed))
    if say["appends"]:
        found.append("a value stands for its last part; what each append followed is a read of it")
    return tuple(found)
