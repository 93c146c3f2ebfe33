"""Reads the text format of Plume, PolySI and IsoVista: ``r(key,value,session,transaction)``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from isolang.history.readers.reading import (
    Files,
    Reading,
    call_native,
    count_remarks,
    quantity,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from isolang._native import Columns


def read(files: Files, *, timeout: float) -> Reading:
    """Read the history in one file.

    Raises:
        HistoryError: the input is malformed; the message names the file and line.
    """
    from isolang import _native

    ((name, data),) = files
    return _reading(*call_native(_native.read_plume, data, name, timeout=timeout))


def read_in_pieces(
    file: int, name: str, take: Callable[[memoryview], object], *, timeout: float
) -> Reading | None:
    """Read a history from an open file; see ``Format.read_in_pieces``."""
    from isolang import _native

    shown_name = name.encode("utf-8", "backslashreplace").decode()
    size = os.fstat(file).st_size
    found = _native.read_plume_in_pieces(file, size, shown_name, take, timeout=timeout)
    return None if found is None else _reading(*found)


def _reading(columns: Columns, report: Mapping[str, Any]) -> Reading:
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
