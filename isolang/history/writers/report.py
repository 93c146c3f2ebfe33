"""The result of an encoder: the contents to write, and a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

Sink: TypeAlias = Callable[[bytes], object]
"""Takes the bytes of a file, in pieces."""

Contents: TypeAlias = bytes | dict[str, bytes] | Callable[[Sink], None]
"""The bytes of a file, or of each file of a folder; or a function that writes them."""


class WriteReport(Struct, frozen=True, kw_only=True):
    """A report on what was written, and what changed.

    Attributes:
        format: the format.
        transactions: how many transactions were written.
        operations: how many operations were written.
        notes: what was translated, renamed or left out, one phrase each, with counts.
        key_numbers: the old name and the number of each renumbered key.
    """

    format: str
    transactions: int
    operations: int
    notes: tuple[str, ...] = ()
    key_numbers: tuple[tuple[str, int], ...] = ()
