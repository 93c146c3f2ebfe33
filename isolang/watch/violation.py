"""Saves a violation found by a watch, as a history of a few transactions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isolang.api import check, load_history
from isolang.history import save_history
from isolang.history.values import decode
from isolang.verdict import Invalid

if TYPE_CHECKING:
    from isolang.watch.report import WatchReport

#: The name of the history file of the violation in the folder of a watch.
NAME = "violation.edn"


def save_violation(report: WatchReport, folder: Path) -> tuple[Path, Path] | None:
    """Save the transactions that prove the violation, and a certificate for them.

    Returns:
        The paths of the history and the certificate; ``None`` if the report has no violation, or if
        checking the saved history does not find a certified violation.

    Raises:
        HistoryError: the transactions cannot be written as EDN.
        OSError: a file cannot be written.
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
    history = load_history(path, initial_value=began or None, superseded_reads="count")
    again = check(history, report.verdict.spec)
    if not isinstance(again, Invalid) or not again.certified:
        return None
    return path, again.certificate().save(folder)
