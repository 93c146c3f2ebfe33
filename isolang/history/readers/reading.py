"""What a reader gives back: columns, and how it understood the input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from isolang.errors import HistoryError

if TYPE_CHECKING:
    from isolang._native import Columns

U64 = 2**64


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


def text_of(name: str, data: bytes) -> str:
    """Decode a text file.

    Raises:
        HistoryError: if it is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        msg = f"{name}: line {line}: not UTF-8 (byte {e.start}: {data[e.start : e.start + 1]!r})"
        raise HistoryError(msg) from None


def show_json(value: Any) -> str:
    """Show a piece of JSON in a message: short, on one line."""
    import json

    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:60] + "…"


def counted(count: int, one: str, many: str | None = None) -> str:
    """Count in words: ``1 read``, ``2 reads``."""
    return f"{count} {one if count == 1 else many or one + 's'}"
