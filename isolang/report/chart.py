"""Draws charts with curves and two logarithmic axes, such as time against size."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

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
_SMALL: Final = (210.0, 150.0)
_BETWEEN: Final = 44.0
_PANELS_ACROSS: Final = 3

Shape: TypeAlias = Box | Line | FilledPolygon | TextLine


def chart(curves: Mapping[str, Sequence[Point]], *, title: str, across: str, up: str) -> Picture:
    """Draw curves, each with its own colour and marker."""
    panel = _Panel(curves, (_LEFT, _TOP), (_WIDTH, _HEIGHT))
    shapes = [*panel.axes(across, up, labels=1)]
    for number, curve in enumerate(curves.values()):
        shapes += panel.curve(curve, number)
    right = _LEFT + _WIDTH + 18
    shapes += _legend(curves, (right, _TOP + 8))
    widest = max((width_of(name, 10) for name in curves), default=0)
    return Picture(
        title=title,
        width=math.ceil(right + 40 + widest),
        height=math.ceil(max(_TOP + _HEIGHT + _BELOW, _TOP + 17 * len(curves) + 10)),
        shapes=tuple(shapes),
    )


def small_multiples(
    panels: Mapping[str, Mapping[str, Sequence[Point]]], *, title: str, across: str, up: str
) -> Picture:
    """Draw a small chart for each group of curves, with the curves of the others in grey.

    All charts have the same axes. A curve has the same colour in each of them.
    """
    every = {(name, of): curve for name, curves in panels.items() for of, curve in curves.items()}
    numbers = {of: number for number, of in enumerate(dict.fromkeys(of for _, of in every))}
    shapes: list[Shape] = []
    wide, high = _SMALL
    for place, (name, curves) in enumerate(panels.items()):
        column, line = place % _PANELS_ACROSS, place // _PANELS_ACROSS
        corner = (_LEFT + column * (wide + _BETWEEN), _TOP + 18 + line * (high + _BETWEEN + 14))
        panel = _Panel(every, corner, _SMALL)
        shapes.append(TextLine(x=corner[0], y=corner[1] - 6, text=name, size=11, bold=True))
        shapes += panel.axes(across if place + _PANELS_ACROSS >= len(panels) else "", "", labels=2)
        for (other, _), curve in every.items():
            if other != name:
                shapes += panel.context(curve)
        for of, curve in curves.items():
            shapes += panel.curve(curve, numbers[of])
    lines = -(-len(panels) // _PANELS_ACROSS)
    right = _LEFT + min(len(panels), _PANELS_ACROSS) * (wide + _BETWEEN)
    shapes.append(TextLine(x=right, y=_TOP + 12, text=f"↑ {up}", size=10, colour=FAINT))
    shapes += _legend(numbers, (right, _TOP + 32))
    widest = max(width_of(name, 10) for name in (*numbers, f"↑ {up}"))
    below = _TOP + 18 + lines * (high + _BETWEEN + 14) + 16
    return Picture(
        title=title,
        width=math.ceil(right + 40 + widest),
        height=math.ceil(max(below, _TOP + 32 + 17 * len(numbers))),
        shapes=tuple(shapes),
    )


class _Panel:
    """A place for curves, with two logarithmic axes."""

    def __init__(self, curves: Mapping[Any, Sequence[Point]], corner: Point, size: Point) -> None:
        """Choose the axes for all points of some curves."""
        points = [point for curve in curves.values() for point in curve] or [(1.0, 1.0)]
        self._x, self._y = (_powers([point[axis] for point in points]) for axis in (0, 1))
        self._corner, self._size = corner, size

    def _at(self, point: Point) -> Point:
        x, y = (math.log10(max(1e-9, value)) for value in point)
        (low_x, high_x), (low_y, high_y) = self._x, self._y
        return (
            self._corner[0] + (x - low_x) / (high_x - low_x) * self._size[0],
            self._corner[1] + (high_y - y) / (high_y - low_y) * self._size[1],
        )

    def axes(self, across: str, up: str, *, labels: int) -> Iterator[Shape]:
        """Yield the lines of the axes, with a number at each line, or at each second one."""
        (start, top), (width, height) = self._corner, self._size
        bottom, size = top + height, 10 if labels == 1 else 8.5
        for power in range(self._x[0], self._x[1] + 1):
            x, _ = self._at((10.0**power, 1.0))
            yield Line(points=((x, top), (x, bottom)), line="#d0d7de", thick=0.8)
            if (power - self._x[0]) % labels == 0 or self._x[1] - self._x[0] <= 3:
                text = f"{10.0**power:,g}"
                yield TextLine(x=x, y=bottom + 1.6 * size, text=text, size=size, anchor="middle")
        for power in range(self._y[0], self._y[1] + 1):
            _, y = self._at((1.0, 10.0**power))
            ends = (start, y), (start + width, y)
            yield Line(points=ends, line="#d0d7de", thick=0.8)
            if (power - self._y[0]) % labels == 0:
                text = f"{10.0**power:,g}"
                yield TextLine(x=start - 7, y=y + 3.5, text=text, size=size, anchor="end")
        middle = start + width / 2
        if across:
            below = bottom + (36 if labels == 1 else 30)
            yield TextLine(x=middle, y=below, text=across, size=12 / labels + 5, anchor="middle")
        if up:
            yield TextLine(x=start + 6, y=top + 13, text=f"↑ {up}", colour=FAINT)

    def curve(self, curve: Sequence[Point], number: int) -> Iterator[Shape]:
        """Yield a curve with the colour and the marker of its number."""
        colour, dash = _style(number)
        spots = [self._at(point) for point in sorted(curve)]
        for ends in itertools.pairwise(spots):
            yield Line(points=ends, line=colour, dash=dash)
        for spot in spots:
            yield _marker(spot, number, colour)

    def context(self, curve: Sequence[Point]) -> Iterator[Shape]:
        """Yield a thin grey curve, for comparison."""
        spots = [self._at(point) for point in sorted(curve)]
        for ends in itertools.pairwise(spots):
            yield Line(points=ends, line="#c8cdd3", thick=0.7)


def _legend(names: Iterable[str], corner: Point) -> Iterator[Shape]:
    for number, name in enumerate(names):
        colour, dash = _style(number)
        x, y = corner[0], corner[1] + 17 * number
        yield Line(points=((x, y), (x + 24, y)), line=colour, dash=dash)
        yield _marker((x + 12, y), number, colour)
        yield TextLine(x=x + 32, y=y + 4, text=name, size=10)


def _style(number: int) -> tuple[str, tuple[float, ...]]:
    """Return the colour and the dashes of a curve."""
    dashes = ((), (6, 3), (2, 2), (8, 3, 2, 3))
    return _COLOURS[number % len(_COLOURS)], dashes[number // len(_COLOURS) % 4]


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
