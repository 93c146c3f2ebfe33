"""Finds the client logs in a folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from isolang.errors import HistoryError
from isolang.history.sources import natural_sort_key, plain_name
from isolang.watch.stream.segments import log_of

_SIDE_FILES = (".debug", ".error", ".wlog", ".tmp", ".part")
_RUN_HISTORIES = ("history.edn", "history.jsonl", "history.json")


def logs_in(folder: Path) -> list[Path]:
    """Return the logs in a folder, without their rotated files, in natural order of their names.

    If the folder contains the history of a Jepsen run, only that file is returned.

    Raises:
        HistoryError: the folder cannot be read.
    """
    logs = _logs(folder)
    run = _history_of_run(logs)
    return logs if run is None else [run]


def run_and_other_logs(folder: Path) -> tuple[Path, list[Path]] | None:
    """Return the history of the Jepsen run in a folder, and other files that look like logs.

    Return ``None`` if the folder has no such history, or no such file next to it.

    Raises:
        HistoryError: the folder cannot be read.
    """
    logs = _logs(folder)
    run = _history_of_run(logs)
    others = [path for path in logs if path != run]
    return (run, others) if run is not None and others else None


def _logs(folder: Path) -> list[Path]:
    try:
        files = [path for path in folder.iterdir() if path.is_file()]
    except OSError as e:
        raise HistoryError(f"{folder}: cannot read the folder: {e.strerror or e}") from None
    names = {path.name for path in files}
    logs = [
        path
        for path in files
        if not path.name.startswith(".")
        and not plain_name(path.name).endswith(_SIDE_FILES)
        and log_of(path, names) is None
    ]
    return sorted(logs, key=lambda path: natural_sort_key(path.name))


def _history_of_run(logs: Iterable[Path]) -> Path | None:
    by_name = {path.name: path for path in logs}
    return next((by_name[name] for name in _RUN_HISTORIES if name in by_name), None)
