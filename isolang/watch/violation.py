"""The violation that a watch found, saved as a history of a few transactions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isolang.api import check, load_history
from isolang.history import save_history
from isolang.history.values import decode
from isolang.verdict import Invalid

if TYPE_CHECKING:
    from isolang.watch.watch import Report

#: Its file in the folder of the watch.
NAME = "violation.edn"


def save_violation(report: Report, folder: Path) -> tuple[Path, Path] | None:
    """Save the transactions that convict, and their certificate.

    Returns:
        The two files; ``None`` where nobody is convicted, or not again from the file.

    Raises:
        HistoryError: they cannot be written so.
        OSError: there is no room.
    """
    if not isinstance(report.verdict, Invalid) or report.outcome != "invalid":
        return None
    path = folder / NAME
    save_history(report.verdict.history, path, format="edn", drop=("unknown-reads",))
    columns = report.verdict.history.columns
    began = {
        decode(*columns.key(k)): decode(*columns.value(value))
        for k, value in enumerate(columns.initial_value.tolist())
        if value > 0
    }
    again = check(load_history(path, initial_value=began or None), report.verdict.spec)
    if not isinstance(again, Invalid) or not again.certified:
        return None
    return path, again.certificate().save(folder)
