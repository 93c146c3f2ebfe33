"""The result of an encoder: the contents to write, and a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

Sink: TypeAlias = Callable[[bytes], object]
"""A function that receives the bytes of a file in pieces."""

Contents: TypeAlias = bytes | dict[str, bytes] | Callable[[Sink], None]
"""The bytes of a file, or of each file of a folder; or a function that writes them."""


class WriteReport(Struct, frozen=True, kw_only=True):
    """A report on a written history and its changes.

    Attributes:
        format: the name of the format.
        transactions: the number of transactions that were written.
        operations: the number of operations that were written.
        notes: a phrase, with a count, for each kind of translation, renaming or omission.
        key_numbers: the old name and the number of each renumbered key.
    """

    format: str
    transactions: int
    operations: int
    notes: tuple[str, ...] = ()
    key_numbers: tuple[tuple[str, int], ...] = ()
