"""How relations are drawn, in every picture: by a colour, by dashes, and in words.

Which colour, and what the words are, is in the vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from isolang.language.vocabulary import VOCABULARY, Colour, relation_of


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


COLOURS: Final[Mapping[Colour, str]] = {
    "reads": "#0060a8",
    "versions": "#1a7f37",
    "overwrites": "#c2410c",
    "order": "#57606a",
    "time": "#8250df",
}
"""On a white ground; the page has others for a dark one (``page/style.css``)."""

RELATIONS: Final[Mapping[str, Style]] = {
    word.name: Style(COLOURS[word.colour], word.dash, word.between("the first", "the second"))
    for word in VOCABULARY
    if word.letter
}
"""How edges of each relation are drawn."""


class Drawing(Struct, frozen=True, kw_only=True):
    """The same for the page's scripts.

    Attributes:
        colour: its name, as classes and variables of ``page/style.css`` have it.
        dash: how long lines and gaps are, in turn.
        long: what the legend says.
        late: whether edges enter a transaction where it ends.
    """

    colour: Colour
    dash: tuple[float, ...]
    long: str
    late: bool


DRAWINGS: Final[dict[str, Drawing]] = {
    word.name: Drawing(
        colour=word.colour,
        dash=word.dash,
        long=f"{word.name}: {RELATIONS[word.name].says}",
        late=word.joins[1] == "end",
    )
    for word in VOCABULARY
    if word.letter
}


def style_of(relation: str) -> Style:
    """The style of a relation, or of a part of one, such as ``rt[W,R]``."""
    return RELATIONS.get(relation_of(relation), Style())
