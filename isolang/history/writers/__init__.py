"""Writes histories in many formats without silently losing information.

If a format cannot express a history, the writer raises an error. Two options avoid the error, and
the writer's report lists the changes they make: ``renumber=True`` replaces keys and values by
numbers, which loses only their names, and ``drop`` leaves out parts of the history.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from isolang.errors import HistoryError
from isolang.files import open_replacement
from isolang.history.writers.report import Contents, WriteReport

if TYPE_CHECKING:
    from isolang.history.history import History

_ENCODERS: Final = {  # the encoders as module:function; modules are imported on demand
    "edn": "jepsen:edn",
    "jepsen-json": "jepsen:to_json",
    "dbcop": "dbcop:bincode",
    "dbcop-json": "dbcop:to_json",
    "hist": "dbcop:hist",
    "cobra": "logs:cobra",
    "viper": "logs:viper",
    "plume": "plume:encode",
    "awdit": "awdit:encode",
}
WRITABLE: Final = tuple(_ENCODERS)
FOLDERS: Final = ("cobra", "viper")
WITH_REAL_TIME: Final = ("edn", "jepsen-json")
DROPPABLE: Final = {
    "real-time": "the times of transactions",
    "groups": "groups of transactions",
    "versions": "the versions that operations state",
    "labels": "labels and levels of transactions",
    "failed-operations": "operations that failed",
    "unknown-reads": "reads with unknown results",
    "empty-transactions": "transactions without operations",
    "order-after-unknown": "session order after transactions whose outcome is unknown",
}


SUFFIXES: Final = {
    ".edn": "edn",
    ".json": "jepsen-json",
    ".bincode": "dbcop",
    ".hist": "hist",
    ".txt": "plume",
}


def save_history(
    history: History,
    path: str | Path,
    *,
    format: str = "auto",  # noqa: A002 — the name users know from the command line
    renumber: bool = False,
    drop: Collection[str] = (),
) -> WriteReport:
    """Save a history to a file that ``load_history`` can read.

    Args:
        history: the history to save.
        path: the file; for formats in :data:`FOLDERS`, a folder that must not exist yet.
        format: one of :data:`WRITABLE`, or ``auto`` to choose the format by the file's suffix
            (:data:`SUFFIXES`).
        renumber: as in :func:`write_history`.
        drop: as in :func:`write_history`.

    Raises:
        HistoryError: the format cannot express the history (in this case nothing is written), the
            suffix is unknown, or the file cannot be written.
    """
    if format == "auto":
        found = SUFFIXES.get(Path(path).suffix.lower())
        if found is None:
            msg = (
                f"{path}: the file name determines no format (got the suffix "
                f"{Path(path).suffix!r}, expected {', '.join(SUFFIXES)}); or pass format="
            )
            raise HistoryError(msg)
        format = found  # noqa: A001
    return write_history(history, path, format=format, renumber=renumber, drop=drop)


def write_history(
    history: History,
    target: str | Path | IO[bytes],
    *,
    format: str,  # noqa: A002 — the name users know from the command line
    renumber: bool = False,
    drop: Collection[str] = (),
) -> WriteReport:
    """Write a history to a file, a folder or a stream.

    Args:
        renumber: whether keys and values that the format cannot express are replaced by numbers.
            Each read still has exactly the same possible sources.

    Raises:
        HistoryError: the format cannot express the history (in this case nothing is written), or
            the target cannot be written.
    """
    from isolang.history.formats import ALIASES

    name = ALIASES.get(format, format)
    if name not in WRITABLE:
        msg = f"unknown format to write (got {format!r}, expected one of {', '.join(WRITABLE)})"
        raise HistoryError(msg)
    if unknown := sorted(set(drop) - set(DROPPABLE)):
        msg = f"unknown thing to drop (got {unknown[0]!r}, expected {', '.join(DROPPABLE)})"
        raise HistoryError(msg)
    if name in FOLDERS and not isinstance(target, str | Path):
        msg = f"{name}: a folder of logs cannot be written to a stream; name a path"
        raise HistoryError(msg)
    if history.levels:
        what = history.notes[0] if history.notes else "it"
        msg = f"{history.name}: {what}; no format can state that only some levels apply to it"
        raise HistoryError(msg)
    module, _, function = _ENCODERS[name].partition(":")
    encode = getattr(import_module(f"isolang.history.writers.{module}"), function)
    if "versions" in drop:
        history = history.without_versions()
    contents, report = encode(history, renumber=renumber, drop=frozenset(drop))
    if history.possible_facts or history.unseen:
        from isolang.history.writers.facts import with_what_it_lacks

        def encoded(history: History) -> Contents:
            written: Contents = encode(history, renumber=renumber, drop=frozenset(drop))[0]
            return written

        contents, report = with_what_it_lacks(history, contents, report, encoded)
    try:
        if isinstance(target, str | Path):
            _write_to(Path(target), contents)
        elif callable(contents):
            contents(target.write)
        elif isinstance(contents, bytes):
            target.write(contents)
    except OSError as e:
        name = (
            str(target) if isinstance(target, str | Path) else getattr(target, "name", "<stream>")
        )
        msg = f"{name}: cannot write the file: {e.strerror or e}"
        raise HistoryError(msg) from None
    done: WriteReport = report
    return done


def _write_to(path: Path, contents: Contents) -> None:
    if isinstance(contents, dict):
        path.mkdir()  # must be a new folder, so that two histories are never mixed
        for name, data in contents.items():
            (path / name).write_bytes(data)
    elif isinstance(contents, bytes):
        with open_replacement(path) as file:
            file.write(contents)
    else:
        with open_replacement(path) as file:
            contents(file.write)
