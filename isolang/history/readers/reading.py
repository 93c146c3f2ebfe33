"""What a reader gives back: columns, and how it understood the input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

from isolang.errors import HistoryError, UnsupportedError
from isolang.history.sources import plain_name

if TYPE_CHECKING:
    from isolang._native import Columns

Files: TypeAlias = tuple[tuple[str, bytes], ...]
"""The name and the contents of each file of a history."""


class Reading(Struct, frozen=True, kw_only=True):
    """Columns and the sentences that every verdict repeats; see ``isolang.history.History``."""

    columns: Columns
    position_unit: Literal["line", "byte", "record"]
    initial: str
    session: str
    real_time: str
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    session_names: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()


def call_native(
    read: Callable[..., tuple[Columns, Mapping[str, Any]]], *args: Any, timeout: float
) -> tuple[Columns, Mapping[str, Any]]:
    """Run a native reader: its columns, and its remarks.

    Raises:
        HistoryError: if the input is not what its format says.
        UnsupportedError: if it is, but of a kind that cannot be judged.
        TimeoutError: after ``timeout`` seconds; 0 is no limit.
    """
    from isolang import _native

    try:
        return read(*(_utf8(arg) for arg in args), timeout=timeout)
    except _native.UnsupportedInput as e:
        raise UnsupportedError(str(e)) from None
    except _native.ReadError as e:
        raise HistoryError(str(e)) from None


def _utf8(arg: Any) -> Any:
    """Give the native core only text that has an encoding: file names may hold half characters."""
    if isinstance(arg, str):
        return arg.encode("utf-8", "backslashreplace").decode()
    if isinstance(arg, list | tuple):
        return type(arg)(_utf8(part) for part in arg)
    return arg


def counted(count: int, one: str, many: str | None = None) -> str:
    """Count in words: ``1 read``, ``2 reads``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def remarks(say: Mapping[str, Any], *forms: tuple[str, str, str]) -> list[str]:
    """Sentences about what a native reader counted, one for each count that is not 0.

    Args:
        say: its remarks.
        forms: of each count its name, what was counted, and the rest of the sentence.
    """
    return [f"{counted(say[name], one)} {rest}" for name, one, rest in forms if say[name]]


def unknown_fields(say: Mapping[str, Any]) -> list[str]:
    """The phrase about fields that a reader does not know, if there were any."""
    fields = say["unknown_fields"]
    return [f"unknown fields: {', '.join(fields)}"] if fields else []


def file_sessions(columns: Columns, files: Files) -> tuple[str, ...]:
    """Names of sessions where each is a file: they are called like their files."""
    import numpy as np

    newest = np.maximum.accumulate(columns.txn_session)  # they are numbered as they appear
    first = np.flatnonzero(np.diff(newest, prepend=-1))
    return tuple(Path(plain_name(files[int(f)][0])).stem for f in columns.txn_file[first])
