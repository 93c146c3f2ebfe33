"""Writing a history in another format, without losing anything silently.

What a format cannot express is an error that says so. Two ways out, both reported:
``renumber=True`` gives keys and values numbers of their own (nothing is lost but the names), and
``drop`` leaves out what is named there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from isolang.errors import HistoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from isolang.history.history import History

WRITABLE: Final = (
    "edn",
    "jepsen-json",
    "dbcop",
    "dbcop-json",
    "hist",
    "cobra",
    "viper",
    "plume",
    "awdit",
)
FOLDERS: Final = ("cobra", "viper")
WITH_REAL_TIME: Final = ("edn", "jepsen-json")
DROPPABLE: Final = {
    "real-time": "the times of transactions",
    "failed-operations": "operations that failed themselves",
    "unknown-reads": "reads with unknown results",
    "empty-transactions": "transactions without operations",
}


class WriteReport(Struct, frozen=True, kw_only=True):
    """What was written, and what changed on the way.

    Attributes:
        format: the format.
        transactions: how many were written.
        operations: how many were written.
        notes: what was translated, renamed or left out, one phrase each, with counts.
        key_numbers: for renumbered keys, what each was called and its number now.
    """

    format: str
    transactions: int
    operations: int
    notes: tuple[str, ...] = ()
    key_numbers: tuple[tuple[str, int], ...] = ()


def write_history(
    history: History,
    target: str | Path | Any,
    *,
    format: str,  # noqa: A002 — the name users know from the command line
    renumber: bool = False,
    drop: Collection[str] = (),
) -> WriteReport:
    """Write a history.

    Args:
        history: what to write.
        target: a path, or a binary stream; a path of a folder that is not there yet for formats in
            :data:`FOLDERS`.
        format: one of :data:`WRITABLE`; ``dbcop`` is bincode.
        renumber: give numbers to keys and values that the format cannot express as they are, so
            that each read still has exactly the writes to come from that it had.
        drop: what may be left out: names from :data:`DROPPABLE`.

    Raises:
        HistoryError: if the format cannot express the history (nothing is written then), or the
            target cannot be written.
    """
    from isolang.history.formats import ALIASES
    from isolang.history.writers import (
        awdit,
        bincode,
        edn,
        jepsen_json,
        logs,
        plain,
        plume,
        versions,
    )

    name = ALIASES.get(format, format)
    if name not in WRITABLE:
        msg = f"unknown format to write (got {format!r}, expected one of {', '.join(WRITABLE)})"
        raise HistoryError(msg)
    if unknown := sorted(set(drop) - set(DROPPABLE)):
        msg = f"unknown thing to drop (got {unknown[0]!r}, expected {', '.join(DROPPABLE)})"
        raise HistoryError(msg)
    dropped = frozenset(drop)
    if name in FOLDERS and not isinstance(target, str | Path):
        msg = f"{name}: a folder of logs cannot be written to a stream; give a path"
        raise HistoryError(msg)
    try:
        if plain.applies(history, name, dropped):
            if not isinstance(target, str | Path):
                return plain.write(history, target.write, name=name, drop=dropped)
            with Path(target).open("wb") as file:
                return plain.write(history, file.write, name=name, drop=dropped)
        encode: dict[str, Callable[..., tuple[bytes | dict[str, bytes], WriteReport]]] = {
            "edn": edn.encode,
            "jepsen-json": jepsen_json.encode,
            "dbcop": bincode.encode,
            "dbcop-json": versions.encode_json,
            "hist": versions.encode_hist,
            "cobra": logs.encode_cobra,
            "viper": logs.encode_viper,
            "plume": plume.encode,
            "awdit": awdit.encode,
        }
        data, report = encode[name](history, renumber=renumber, drop=dropped)
        if isinstance(data, dict):
            Path(target).mkdir()  # files of another history must not mix with these
            for file_name, content in data.items():
                (Path(target) / file_name).write_bytes(content)
        elif isinstance(target, str | Path):
            Path(target).write_bytes(data)
        else:
            target.write(data)
    except OSError as e:
        name = (
            str(target) if isinstance(target, str | Path) else getattr(target, "name", "<stream>")
        )
        msg = f"{name}: cannot be written: {e.strerror or e}"
        raise HistoryError(msg) from None
    return report
