"""A row as people see it: the columns that a transaction read, or what it changed in them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct, field

LONGEST: Final = 40  # characters of a value; more are never fetched for it
_MOST: Final = 8  # columns of a row
_PLAIN: Final = re.compile(r"[\w.:+/@ -]+")

Row: TypeAlias = Mapping[str, str]
"""Values as text by column, without those of the key."""


class SeenRow(Struct, frozen=True, kw_only=True):
    """The row of an operation, as far as it is known.

    Attributes:
        row: what was read, or what there is after a write.
        before: of a write, what the transaction had seen of the row before.
        named: of a write, the columns that are set; empty if these are not known.
    """

    row: Row
    before: Row = field(default_factory=dict)
    named: Collection[str] = ()

    def changed(self) -> list[str]:
        """The columns that a write changed, so far as that is known."""
        return [name for name, value in self.row.items() if self.before.get(name, value) != value]


def read_text(seen: SeenRow, first: Collection[str] = ()) -> str:
    """Show what was read.

    >>> read_text(SeenRow(row={"name": "a", "balance": "100"}), ["balance"])
    '{balance: 100, name: a}'

    Args:
        seen: by the read.
        first: columns that come before others, as they matter more.
    """
    names = sorted(seen.row, key=lambda name: name not in first)
    return _shown([f"{name}: {seen.row[name]}" for name in names])


def written_text(seen: SeenRow) -> str:
    """Show what was changed: the columns that differ from what the transaction had seen.

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
    """Show the value of a column; no value of an application can make it fail.

    >>> value_text("a, b"), value_text(None), value_text(2.5)
    ('"a, b"', 'null', '2.5')
    """
    if value is None:
        return "null"
    try:
        text = str(value)
    except Exception:  # an application's own class
        text = f"a {type(value).__name__}"
    # What no file can hold must not keep the outcome out of it.
    text = text[:LONGEST].encode(errors="backslashreplace").decode()
    text = text if len(text) < LONGEST else text[: LONGEST - 1] + "…"
    if _PLAIN.fullmatch(text.removesuffix("…")) and text == text.strip():
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _shown(columns: Sequence[str]) -> str:
    more = ["…"] * (len(columns) > _MOST)
    return "{" + ", ".join([*columns[:_MOST], *more]) + "}"
