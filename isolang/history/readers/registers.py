"""Reads logs of single operations on registers, locks and stores of strings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isolang.caveat import Caveat
from isolang.history.readers.jepsen import session_names
from isolang.history.readers.reading import (
    Files,
    Reading,
    call_native,
    count_remarks,
    describe_event_times,
)


def read(files: Files, *, failed_cas: str = "auto", timeout: float) -> Reading:
    """Read the history in one file.

    Args:
        failed_cas: how to interpret a failed compare-and-set: ``compared`` means that it saw a
            different value, ``nothing`` that the value it saw is unknown. ``auto`` means
            ``compared`` for log lines and for maps whose ``:error`` names the comparison, and
            ``nothing`` for all other maps.
        timeout: the time limit in seconds; 0 for no limit.

    Raises:
        HistoryError: the input is malformed; the message names the file and line.
        UnsupportedError: the file has operations on other kinds of objects, or a string whose
            writer would be ambiguous.
    """
    from isolang import _native

    ((name, data),) = files
    columns, report = call_native(_native.read_registers, data, name, failed_cas, timeout=timeout)
    return Reading(
        columns=columns,
        position_unit="line",
        initial="a read of nil, of an empty string, or of a free lock",
        session="one :process",
        real_time=describe_event_times(timed=columns.has_time, by_index=report["order"] == "index"),
        ignored=_ignored(report),
        notes=_notes(report),
        session_names=session_names(report["session_labels"]),
    )


def _ignored(report: Mapping[str, Any]) -> tuple[str, ...]:
    unknown = "that did not succeed, and whose effect is unknown"
    refused = "that failed, and may not have run (--failed-cas compared)"
    strays = ("stray_completions", "completion", "without an invocation or a value")
    return (
        *count_remarks(
            report,
            ("nonclient", "operation", "that no client sent"),
            ("other_lines", "line", "that other loggers wrote"),
        ),
        *map(Caveat, count_remarks(report, strays)),
        *count_remarks(
            report,
            ("unknown_operations", "operation", unknown),
            ("unknown_reads", "read", "without an answer, whose results are unknown"),
            ("refused", "comparison", refused),
        ),
    )


def _notes(report: Mapping[str, Any]) -> tuple[str, ...]:
    failed = "that failed, which count as reads of a value other than the expected one"
    found = count_remarks(report, ("saw_another", "comparison", failed))
    if report["appends"]:
        found.append(
            "the last element of a value stands for the whole value; each append reads the "
            "element before it"
        )
    return tuple(found)
