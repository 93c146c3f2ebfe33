"""Defines the results of a history encoder: the contents to write, and a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

Sink: TypeAlias = Callable[[bytes], object]
"""A function that receives a file's bytes piece by piece."""

Contents: TypeAlias = bytes | dict[str, bytes] | Callable[[Sink], None]
"""The bytes of a file, the bytes of each file in a folder (by name), or a function that writes
them.
"""


class WriteReport(Struct, frozen=True, kw_only=True):
    """A report on a written history and its differences from the original.

    Attributes:
        notes: a phrase with a count for each kind of translation, renaming or omission.
    """

    format: str
    transactions: int
    operations: int
    notes: tuple[str, ...] = ()
    key_numbers: tuple[tuple[str, int], ...] = ()
