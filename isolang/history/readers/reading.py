"""Defines what readers return: the columns, and how the input was interpreted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

from isolang.arrays import np
from isolang.errors import HistoryError, UnsupportedError
from isolang.history.sources import plain_name

if TYPE_CHECKING:
    from isolang._native import Columns

Files: TypeAlias = tuple[tuple[str, bytes], ...]
"""The name and contents of each file in a history."""


class Reading(Struct, frozen=True, kw_only=True):
    """The columns of a history, and sentences about how the input was interpreted.

    ``isolang.history.History`` describes the attributes.
    """

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
    """Run a native reader and return its columns and its report.

    Raises:
        HistoryError: the input does not follow its format.
        UnsupportedError: the input is of a kind that cannot be judged.
        TimeoutError: reading took longer than ``timeout`` seconds; 0 means no limit.
    """
    from isolang import _native

    try:
        return read(*(_utf8(arg) for arg in args), timeout=timeout)
    except _native.UnsupportedInput as e:
        raise UnsupportedError(str(e)) from None
    except _native.ReadError as e:
        raise HistoryError(str(e)) from None


def _utf8(arg: Any) -> Any:
    """Return an argument with any non-UTF-8 bytes in file names escaped."""
    if isinstance(arg, str):
        return arg.encode("utf-8", "backslashreplace").decode()
    if isinstance(arg, list | tuple):
        return type(arg)(_utf8(part) for part in arg)
    return arg


def quantity(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun, such as ``1 read`` or ``2 reads``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def count_remarks(report: Mapping[str, Any], *forms: tuple[str, str, str]) -> list[str]:
    """Return a sentence for each nonzero count in a native reader's report."""
    return [f"{quantity(report[name], one)} {rest}" for name, one, rest in forms if report[name]]


def unknown_fields(report: Mapping[str, Any]) -> list[str]:
    """Return a list with a phrase about unknown fields, or an empty list if there are none."""
    fields = report["unknown_fields"]
    return [f"unknown fields: {', '.join(fields)}"] if fields else []


def sessions_named_by_files(columns: Columns, files: Files) -> tuple[str, ...]:
    """Return the session names, which are the file names without suffixes.

    This is for formats in which each session has its own file.
    """
    newest = np.maximum.accumulate(
        columns.txn_session
    )  # sessions are numbered in order of first appearance
    first = np.flatnonzero(np.diff(newest, prepend=-1))
    return tuple(Path(plain_name(files[int(f)][0])).stem for f in columns.txn_file[first])


def describe_event_times(*, timed: bool, by_index: bool) -> str:
    """Return a sentence saying how the real-time order of invocations and completions is known."""
    if not timed:
        return "none, because the file has only completions and no :invoke"
    return f"the order of {':index' if by_index else 'lines'}, from :invoke to :ok or :fail"
