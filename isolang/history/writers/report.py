"""What an encoder gives back: what to write, and a report on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

Sink: TypeAlias = Callable[[bytes], object]
"""Takes the bytes of a file, in pieces."""

Contents: TypeAlias = bytes | dict[str, bytes] | Callable[[Sink], None]
"""The bytes of a file, or of each file of a folder; or what writes them."""


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
