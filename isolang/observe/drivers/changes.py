"""Formats the rows read or changed by a transaction, for explanations."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct, field

LONGEST: Final = 40  # the largest number of characters of a value to fetch and show
_MOST: Final = 8  # the largest number of columns of a row to show
_PLAIN: Final = re.compile(r"[\w.:+/@ -]+")

Row: TypeAlias = Mapping[str, str]
"""The values of a row as text, by column name, without the columns of the primary key."""


class SeenRow(Struct, frozen=True, kw_only=True):
    """The known columns of a row read or written by an operation.

    Attributes:
        row: the values read, or the values after the write.
        before: the values seen by the transaction before the write; empty for a read.
        named: the names of the columns set by the write; empty for a read, or if the names are
            unknown.
    """

    row: Row
    before: Row = field(default_factory=dict)
    named: Collection[str] = ()

    def changed(self) -> list[str]:
        """Return the names of the columns that the write is known to have changed."""
        return [name for name, value in self.row.items() if self.before.get(name, value) != value]


def read_text(seen: SeenRow, first: Collection[str] = ()) -> str:
    """Format the columns of a row that was read, for an explanation.

    >>> read_text(SeenRow(row={"name": "a", "balance": "100"}), ["balance"])
    '{balance: 100, name: a}'

    Args:
        seen: the row that was read.
        first: the names of the columns to show first.
    """
    names = sorted(seen.row, key=lambda name: name not in first)
    return _shown([f"{name}: {seen.row[name]}" for name in names])


def written_text(seen: SeenRow) -> str:
    """Format the columns changed by a write, for an explanation.

    If it is unknown which columns differ from the row seen before, show all written columns.

    >>> row, before = {"name": "a", "balance": "90"}, {"name": "a", "balance": "100"}
    >>> written_text(SeenRow(row=row, before=before))
    '{balance: 100 → 90}'
    >>> written_text(SeenRow(row=row, named=["balance"]))
    '{balance: 90}'
    """
    row, before, named = seen.row, seen.before, seen.named
    changed = seen.changed()
    texts = [
        f"{name}: {before[name]} → {value}" if name in changed else f"{name}: {value}"
        for name, value in row.items()
        if name in changed or (name not in before and (name in named or not named))
    ]
    return _shown(texts or [f"{n}: {v}" for n, v in row.items() if not named or n in named])


def value_text(value: object) -> str:
    """Return a column's value as short text. This never fails, whatever the value is.

    >>> value_text("a, b"), value_text(None), value_text(2.5)
    ('"a, b"', 'null', '2.5')
    """
    if value is None:
        return "null"
    try:
        text = str(value)
    except Exception:  # the ``__str__`` method of an application's class may raise any error
        text = f"a {type(value).__name__}"
    # Escape characters that cannot be encoded; otherwise the history could not be written.
    text = text[:LONGEST].encode(errors="backslashreplace").decode()
    text = text if len(text) < LONGEST else text[: LONGEST - 1] + "…"
    if _PLAIN.fullmatch(text.removesuffix("…")) and text == text.strip():
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _shown(columns: Sequence[str]) -> str:
    more = ["…"] * (len(columns) > _MOST)
    return "{" + ", ".join([*columns[:_MOST], *more]) + "}"
