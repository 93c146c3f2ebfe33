"""How relations are drawn, in every picture: by a colour, by dashes, and in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct


class Style(Struct, frozen=True):
    """How the edges of a relation are drawn.

    Attributes:
        colour: on a white ground.
        dash: how long lines and gaps are, in turn; empty for a line without gaps.
        says: what an edge from one transaction to a second one means.
    """

    colour: str = "#1b1f24"
    dash: tuple[float, ...] = ()
    says: str = ""


_TIME: Final = "#8250df"

RELATIONS: Final[Mapping[str, Style]] = {
    "wr": Style("#0060a8", (), "the second read what the first wrote"),
    "ww": Style("#1a7f37", (9, 3), "the second wrote a later version"),
    "rw": Style("#c2410c", (4, 3), "the second overwrote what the first had read"),
    "iwr": Style("#0060a8", (14, 2), "the second read a row that the first wrote"),
    "pwr": Style("#0060a8", (2, 2), "the second's predicate passed over what the first wrote"),
    "irw": Style("#c2410c", (6, 2, 2, 2), "the second overwrote a row that the first had read"),
    "prw": Style("#c2410c", (2, 4), "the second wrote what the first's predicate had passed over"),
    "so": Style("#57606a", (1.5, 3), "the same session, one after the other"),
    "rt": Style(_TIME, (8, 3, 1.5, 3), "the first ended before the second began"),
    "group-rt": Style(_TIME, (8, 3, 3, 3), "in one group, the first ended before the second began"),
    "done": Style(_TIME, (8, 3, 1.5, 3, 1.5, 3), "the first had committed when the second did so"),
    "late": Style(_TIME, (3, 3, 8, 3, 3, 3), "the first began to read before the second's commit"),
    "locked": Style(_TIME, (12, 3, 3, 3), "the first had locked what the second wrote"),
    "committed-before": Style(_TIME, (10, 3, 2, 3), "the first had committed when the second read"),
    "answered-before": Style(_TIME, (2, 3, 6, 3), "the first read before the second did"),
    "committed-after": Style(_TIME, (6, 3, 10, 3), "the first read before the second's commit"),
    "po": Style("#57606a", (3, 3), "the second read is of a later statement"),
    "tx": Style("#57606a", (1.5, 2), "a read comes before the commit of its transaction"),
    "init": Style("#57606a", (1.5, 5), "the initial state is before everything"),
}  # fmt: skip
"""Per relation its style; the page's scripts have the same."""


def style_of(relation: str) -> Style:
    """The style of a relation, or of a part of one, such as ``rt[W,R]``."""
    return RELATIONS.get(relation.partition("[")[0], Style())
