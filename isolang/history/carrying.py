"""The reads that a history carries from one transaction of a request to a later one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from isolang.history.history import History

Kind: TypeAlias = Literal["checked", "computed", "session", "other"]
"""Why a read is carried.

``checked``: the transaction writes the row, or changes the predicate. ``computed``: it does so only
by UPDATEs that compute from the row itself. ``session``: the row is of a table of sessions.
``other``: the transaction writes other rows only.
"""


class CarriedRead(Struct, frozen=True, kw_only=True):
    """A read that a later transaction of the same request has as well.

    Attributes:
        reader: the number of the transaction that it is carried to.
        source: the number of the transaction that read.
        op: the number of the read in the history without carried reads; -1 for a predicate read.
        scan: the number of the predicate read there; -1 for another read.
        without: of a predicate read, the numbers of the keys that it is not carried for.
    """

    reader: int
    source: int
    op: int = -1
    scan: int = -1
    without: tuple[int, ...] = ()
    kind: Kind = "checked"

    def plain(self) -> list[Any]:
        """Return the read as written in a certificate."""
        return [self.reader, self.source, self.op, self.scan, list(self.without)]


class Carrying(Struct, frozen=True, kw_only=True):
    """The carried reads of a history, with the history as it was recorded.

    Attributes:
        reads: the carried reads, in the order of their readers.
        noted: reads that are carried only to find out what they would change.
        plain: the history without carried reads.
        units: the number of units.
        without_unit: the number of committed transactions that belong to no unit.
        unclear: the names of units whose transactions overlap, or whose order is not known.
        names: the name of the transaction that a read was carried from, and whether its reader
            writes only other rows; by the positions of the reader and of the read.
    """

    reads: tuple[CarriedRead, ...]
    noted: tuple[CarriedRead, ...]
    plain: History
    units: int
    without_unit: int
    unclear: tuple[str, ...]
    names: Mapping[tuple[int, int], tuple[str, bool]]
