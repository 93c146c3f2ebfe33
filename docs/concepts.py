"""Draws the pictures of concepts.md: `python docs/concepts.py` writes docs/images/concept-*.svg."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from isolang.report.picture import (
    FAINT,
    INK,
    Box,
    FilledPolygon,
    Line,
    Picture,
    Point,
    TextLine,
    arrow_head,
    svg,
)
from isolang.report.relations import style_of

Shapes = list[Box | Line | FilledPolygon | TextLine]
WIDE, LETTER = 108.0, 7.4


def txn(
    x: float, y: float, name: str, *operations: str, dash: tuple[float, ...] = (), width: float = 0
) -> Shapes:
    """Return the box of a transaction with its operations; ``x`` and ``y`` are its corner."""
    high = 24 + 15 * len(operations)
    wide = width or max(WIDE, *(20 + LETTER * len(text) for text in (name, *operations)))
    box = Box(x=x, y=y, width=wide, height=high, line=INK, fill="#f6f8fa", dash=dash)
    lines = [
        TextLine(x=x + 9, y=y + 31 + 15 * i, text=text, size=12, mono=True)
        for i, text in enumerate(operations)
    ]
    return [box, TextLine(x=x + 9, y=y + 16, text=name, size=12.5, bold=True), *lines]


def edge(relation: str, key: str, *points: Point) -> Shapes:
    """Return an arrow with the name of its relation in the middle."""
    style = style_of(relation)
    x, y = (points[0][0] + points[-1][0]) / 2, (points[0][1] + points[-1][1]) / 2
    if len(points) == 3:
        x, y = (x + points[1][0]) / 2, (y + points[1][1]) / 2
    text = f"{relation} {key}".strip()
    half = LETTER * len(text) / 2 + 3
    back = Box(x=x - half, y=y - 9, width=2 * half, height=18, line="#ffffff", thick=0, round=0)
    return [
        Line(points=points, line=style.colour, dash=style.dash),
        arrow_head(points[-1], points[-2], style.colour),
        back,
        TextLine(
            x=x, y=y + 4.5, text=text, size=12.5, bold=True, colour=style.colour, anchor="middle"
        ),
    ]


def note(x: float, y: float, text: str, *, colour: str = FAINT, mono: bool = False) -> TextLine:
    """Return a remark beside what it is about."""
    return TextLine(x=x, y=y, text=text, size=12, colour=colour, mono=mono)


R, W = "r(x, {})".format, "w(x, {})".format
GREEN, RED = "#1a7f37", "#b42318"
THREE: Shapes = [
    *txn(20, 16, "T1", W(1)), *txn(220, 16, "T2", R(1)), *txn(420, 16, "T3", W(2)),
]  # fmt: skip
SKEW: Shapes = [
    *txn(20, 44, "T1", "r(x, 0)", "w(y, 1)"), *txn(220, 44, "T2", "r(y, 0)", "w(x, 1)"),
    *edge("rw", "x", (128, 56), (174, 20), (220, 56)),
    *edge("rw", "y", (220, 88), (174, 124), (128, 88)),
]  # fmt: skip
PICTURES: dict[str, tuple[str, float, Sequence[Box | Line | FilledPolygon | TextLine]]] = {
    "transaction": ("Three transactions: committed, aborted, indeterminate", 96, [
        *txn(20, 12, "T1", "r(x, 1)", "w(x, 2)"), *txn(220, 12, "T2", "w(x, 3)", "w(y, 3)"),
        Line(points=((220, 12), (328, 66)), line="#d0a09c", thick=1.2),
        *txn(420, 12, "T3 ?", "w(x, 4)", "w(y, 4)", dash=(4, 3)),
        note(20, 86, "committed"), note(220, 86, "aborted: no effect"),
        note(420, 86, "indeterminate: no answer"),
    ]),
    "session": ("Two sessions, each with its transactions in order", 132, [
        note(20, 38, "session A"), note(20, 102, "session B"),
        *txn(100, 12, "T1", "w(x, 1)"), *txn(330, 12, "T3", "r(y, 1)"),
        *txn(215, 76, "T2", "w(y, 1)"),
        *edge("so", "", (208, 32), (330, 32)), note(470, 38, "time →"),
    ]),
    "version": ("The versions of a key: the initial one, and one for each write", 76, [
        *txn(20, 16, "T0", "x = nil", dash=(1.5, 2.5)), *txn(220, 16, "T1", W(1)),
        *txn(420, 16, "T3", W(2)),
        *edge("ww", "x", (128, 36), (220, 36)), *edge("ww", "x", (328, 36), (420, 36)),
    ]),
    "read-from": ("T2 reads what T1 wrote", 76, [
        *txn(20, 16, "T1", W(1)), *txn(220, 16, "T2", R(1)),
        *edge("wr", "x", (128, 36), (220, 36)), note(350, 40, "T2 read x = 1 from T1"),
    ]),
    "overwrite": ("T3 overwrites what T2 read", 118, [
        *THREE, *edge("wr", "x", (128, 36), (220, 36)), *edge("rw", "x", (328, 36), (420, 36)),
        *edge("ww", "x", (74, 55), (274, 132), (474, 55)),
    ]),
    "level": ("A cycle of two anti-dependencies: serializability forbids it", 136, [
        *SKEW,
        note(360, 50, "ser", colour=INK), note(400, 50, "acyclic so | wr | ww | rw", mono=True),
        note(400, 68, "✗ the cycle is forbidden", colour=RED),
        note(360, 96, "si", colour=INK), note(400, 96, "two rw in a row may close it"),
        note(400, 114, "✓ the cycle is allowed", colour=GREEN),
    ]),
    "witness": ("An order in which each read returns what it returned", 118, [
        *txn(20, 16, "T1", W(1)), *txn(220, 16, "T3", R(1), W(2)), *txn(420, 16, "T2", R(2)),
        *edge("wr", "x", (128, 36), (220, 36)), *edge("wr", "x", (328, 36), (420, 36)),
        note(20, 106, "run one after the other in this order, each read returns what it returned"),
    ]),
    "unseen": ("A statement that is not part of the history", 112, [
        *txn(20, 12, "T1", "w(x, 1)"), *txn(160, 12, "T2", "r(x, 1)"),
        Box(x=8, y=4, width=272, height=66, line=FAINT, fill="none", dash=()),
        note(8, 90, "the history: the verdict is about this"),
        *txn(320, 12, "T3", "update t set x = f(x)", dash=(1.5, 2.5)),
        note(320, 90, "unseen: counted and named"),
    ]),
}  # fmt: skip


def main() -> None:
    """Write all pictures."""
    folder = Path(__file__).parent / "images"
    for name, (title, height, shapes) in PICTURES.items():
        picture = Picture(title=title, width=580, height=height, shapes=tuple(shapes))
        (folder / f"concept-{name}.svg").write_text(svg(picture), encoding="utf-8")


if __name__ == "__main__":
    main()
