"""Reads dbcop's three formats: JSON, ``.hist`` text, and the older bincode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from isolang.caveat import Caveat
from isolang.history.readers.reading import (
    Files,
    Reading,
    call_native,
    count_remarks,
    quantity,
    unknown_fields,
)

if TYPE_CHECKING:
    from isolang._native import Columns

_SESSION = "the order of transactions in a session of the file"
_REAL_TIME = "none, because the format has no times"


def read_bincode(files: Files, *, timeout: float) -> Reading:
    """Read a file in dbcop's bincode format.

    Raises:
        HistoryError: the input is malformed; the message names the file and byte.
    """
    from isolang import _native

    ((name, data),) = files
    columns, report = call_native(_native.read_bincode, data, name, timeout=timeout)
    ignored, notes = [], []
    if report["failed_events"]:
        ignored.append(quantity(report["failed_events"], "failed operation"))
    if report["info"]:
        notes.append(f"recorded from {report['info']}")
    if report["plan"]:
        notes.append(
            Caveat("no transaction succeeded, so this is probably a plan that was never executed")
        )
    return Reading(
        columns=columns,
        position_unit="byte",
        initial="a read of 0",
        session=_SESSION,
        real_time=_REAL_TIME,
        ignored=(*ignored, *_empty_sessions(report)),
        notes=tuple(notes),
    )


def read_json(files: Files, *, timeout: float) -> Reading:
    """Read a file in dbcop's JSON format.

    Raises:
        HistoryError: the input is malformed; the message names the file, line, session, transaction
            and event.
    """
    from isolang import _native

    ((name, data),) = files
    columns, report = call_native(_native.read_dbcop_json, data, name, timeout=timeout)
    return _versions(columns, report, "record", (*unknown_fields(report), *_empty_sessions(report)))


def read_hist(files: Files, *, timeout: float) -> Reading:
    """Read a file in dbcop's ``.hist`` text format.

    Raises:
        HistoryError: the input is malformed; the message names the file and line.
    """
    from isolang import _native

    ((name, data),) = files
    columns, report = call_native(_native.read_hist, data, name, timeout=timeout)
    return _versions(columns, report, "line", _empty_sessions(report))


def _versions(
    columns: Columns,
    report: Mapping[str, Any],
    unit: Literal["line", "record"],
    ignored: tuple[str, ...],
) -> Reading:
    zero = (
        "zero_reads",
        "read",
        "of version 0, which no transaction wrote and which is the initial state",
    )
    return Reading(
        columns=columns,
        position_unit=unit,
        initial="a read of null, or of version 0 where no transaction wrote 0 to the key",
        session=_SESSION,
        real_time=_REAL_TIME,
        ignored=ignored,
        notes=tuple(count_remarks(report, zero)),
        session_names=tuple(str(s) for s in report["sessions"]),
    )


def _empty_sessions(report: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(count_remarks(report, ("empty_sessions", "session", "without transactions")))
