"""Defines the colours, dashes and words for relations in all pictures.

The colour and the words of a relation come from the vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from isolang.language.vocabulary import VOCABULARY, Colour, relation_of


class Style(Struct, frozen=True):
    """The style of a relation's edges.

    Attributes:
        dash: the alternating lengths of dashes and gaps; empty for a solid line.
        meaning: the meaning in words of an edge from one transaction to another.
    """

    colour: str = "#1b1f24"
    dash: tuple[float, ...] = ()
    meaning: str = ""


COLOURS: Final[Mapping[Colour, str]] = {
    "reads": "#0060a8",
    "versions": "#1a7f37",
    "overwrites": "#c2410c",
    "order": "#57606a",
    "time": "#8250df",
}
"""The colours on a white background; ``page/style.css`` has the colours on a dark background."""

RELATIONS: Final[Mapping[str, Style]] = {
    word.name: Style(COLOURS[word.colour], word.dash, word.between("the first", "the second"))
    for word in VOCABULARY
    if word.letter
}
"""The style of each relation's edges."""


class Drawing(Struct, frozen=True, kw_only=True):
    """The style of a relation's edges, in the form required by a page's scripts.

    Attributes:
        colour: the name of the colour in the classes and variables of ``page/style.css``.
        dash: the alternating lengths of dashes and gaps.
        late: whether edges enter a transaction at its end rather than its begin.
    """

    colour: Colour
    dash: tuple[float, ...]
    long: str
    late: bool


DRAWINGS: Final[dict[str, Drawing]] = {
    word.name: Drawing(
        colour=word.colour,
        dash=word.dash,
        long=f"{word.name}: {RELATIONS[word.name].meaning}",
        late=word.joins[1] == "end",
    )
    for word in VOCABULARY
    if word.letter
}


def style_of(relation: str) -> Style:
    """Return the style of a relation, or of a part of a relation such as ``rt[W,R]``."""
    return RELATIONS.get(relation_of(relation), Style())
