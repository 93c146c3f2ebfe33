"""Draws charts with curves and two logarithmic axes, such as time against size."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Final

from isolang.report.picture import (
    FAINT,
    Box,
    FilledPolygon,
    Line,
    Picture,
    Point,
    TextLine,
    width_of,
)

# Colours that colour-blind people can tell apart (M. Okabe, K. Ito, 2002), dark enough for lines.
_COLOURS: Final = ("#0072b2", "#c04a00", "#00795a", "#8a5d00", "#a8437f", "#3a6ea5", "#1b1f24")
_CORNERS: Final = ((4, 45.0), (3, -90.0), (4, 0.0), (3, 90.0), (12, 0.0), (5, -90.0), (6, 0.0))
_WIDTH, _HEIGHT, _LEFT, _TOP, _BELOW = 430.0, 300.0, 62.0, 14.0, 44.0


def chart(curves: Mapping[str, Sequence[Point]], *, title: str, across: str, up: str) -> Picture:
    """Draw curves, each with its own colour and marker."""
    points = [point for curve in curves.values() for point in curve] or [(1.0, 1.0)]
    low_x, high_x = _powers([x for x, _ in points])
    low_y, high_y = _powers([y for _, y in points])

    def at(point: Point) -> Point:
        x, y = (math.log10(max(1e-9, value)) for value in point)
        return (
            _LEFT + (x - low_x) / (high_x - low_x) * _WIDTH,
            _TOP + (high_y - y) / (high_y - low_y) * _HEIGHT,
        )

    shapes: list[Box | Line | FilledPolygon | TextLine] = []
    for power in range(low_x, high_x + 1):
        x, bottom = at((10.0**power, 10.0**low_y))
        shapes.append(Line(points=((x, _TOP), (x, bottom)), line="#d0d7de", thick=0.8))
        shapes.append(TextLine(x=x, y=bottom + 16, text=f"{10**power:,}", size=10, anchor="middle"))
    for power in range(low_y, high_y + 1):
        x, y = at((10.0**low_x, 10.0**power))
        shapes.append(Line(points=((x, y), (x + _WIDTH, y)), line="#d0d7de", thick=0.8))
        shapes.append(TextLine(x=x - 7, y=y + 3.5, text=f"{10.0**power:,g}", size=10, anchor="end"))
    shapes.append(
        TextLine(x=_LEFT + _WIDTH / 2, y=_TOP + _HEIGHT + 36, text=across, anchor="middle")
    )
    shapes.append(TextLine(x=_LEFT + 6, y=_TOP + 13, text=f"↑ {up}", colour=FAINT))
    right = _LEFT + _WIDTH + 18
    for number, (name, curve) in enumerate(curves.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        dash = ((), (6, 3), (2, 2), (8, 3, 2, 3))[number // len(_COLOURS) % 4]
        spots = [at(point) for point in sorted(curve)]
        shapes += [
            Line(points=(a, b), line=colour, dash=dash) for a, b in itertools.pairwise(spots)
        ]
        shapes += [_marker(spot, number, colour) for spot in spots]
        y = _TOP + 8 + 17 * number
        shapes.append(Line(points=((right, y), (right + 24, y)), line=colour, dash=dash))
        shapes.append(_marker((right + 12, y), number, colour))
        shapes.append(TextLine(x=right + 32, y=y + 4, text=name, size=10))
    widest = max((width_of(name, 10) for name in curves), default=0)
    return Picture(
        title=title,
        width=math.ceil(right + 40 + widest),
        height=math.ceil(max(_TOP + _HEIGHT + _BELOW, _TOP + 17 * len(curves) + 10)),
        shapes=tuple(shapes),
    )


def _powers(values: Sequence[float]) -> tuple[int, int]:
    """Return the exponents of two powers of ten that enclose all values."""
    logs = [math.log10(max(1e-9, value)) for value in values]
    low, high = math.floor(min(logs)), math.ceil(max(logs))
    return (low, high) if high > low else (low, low + 1)


def _marker(spot: Point, number: int, colour: str) -> FilledPolygon:
    corners, turned = _CORNERS[number % len(_CORNERS)]
    angles = [math.radians(turned + 360 * i / corners) for i in range(corners)]
    x, y = spot
    return FilledPolygon(
        points=tuple((x + 4 * math.cos(a), y + 4 * math.sin(a)) for a in angles), fill=colour
    )
