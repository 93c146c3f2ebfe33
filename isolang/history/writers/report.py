"""Defines what an encoder of histories returns: the contents to write, and a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

Sink: TypeAlias = Callable[[bytes], object]
"""A function that takes the bytes of a file, one piece after the other."""

Contents: TypeAlias = bytes | dict[str, bytes] | Callable[[Sink], None]
"""The bytes of a file, the bytes of each file in a folder by name, or a function that writes bytes.
"""


class WriteReport(Struct, frozen=True, kw_only=True):
    """A report on a written history and on how it differs from the original history.

    Attributes:
        format: the name of the format.
        transactions: how many transactions were written.
        operations: how many operations were written.
        notes: for each kind of translation, renaming or omission, a phrase with a count.
        key_numbers: for each key that got a new number, its name and this number.
    """

    format: str
    transactions: int
    operations: int
    notes: tuple[str, ...] = ()
    key_numbers: tuple[tuple[str, int], ...] = ()
