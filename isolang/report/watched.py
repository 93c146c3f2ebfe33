"""Writes the page about a watch, with its counts and times as curves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from isolang.report.picture import FAINT, Box, FilledPolygon, Line, Picture, Point, TextLine
from isolang.report.plain import figure, plain_page, text

_WIDTH, _HEIGHT, _LEFT, _TOP = 420.0, 120.0, 64.0, 26.0
_MOST: Final = 300  # the maximum number of points in a curve
_ANCHORS: Final[tuple[tuple[float, Literal["start", "middle", "end"]], ...]] = (
    (0.0, "start"),
    (0.5, "middle"),
    (1.0, "end"),
)
_CLASSES: Final = {"valid": "valid", "invalid": "invalid"}


class Curve(Struct, frozen=True, kw_only=True):
    """A curve of one number over time."""

    name: str
    values: Sequence[float]


def watched_page(
    title: str,
    *,
    outcome: str,
    rows: Sequence[tuple[str, str]],
    seconds: Sequence[float],
    curves: Sequence[Curve],
    refresh: int = 0,
) -> str:
    """Return the page about a watch.

    Args:
        seconds: the times of the points, in seconds since the start of the watch.
        refresh: the seconds after which the page reloads itself; 0 for never.
    """
    list_ = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in rows)
    when = "now" if refresh else "in the end"
    colour = _CLASSES.get(outcome, "unknown")
    pictures = "".join(
        f"<div>{figure(_picture(curve, *_thin_out(seconds, curve.values), when=when))}</div>"
        for curve in curves
    )
    body = (
        f'<h1><span class="{colour}">{text(outcome.upper())}</span> {text(title)}</h1>'
        f'<dl>{list_}</dl><div class="beside">{pictures}</div>'
    )
    return plain_page(f"{outcome.upper()} {title}", body, refresh=refresh)


def _thin_out(seconds: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Reduce a curve to at most ``_MOST`` points, each the maximum of a group of points."""
    step = max(1, math.ceil(len(seconds) / _MOST))
    starts = range(0, len(seconds), step)
    return (
        [seconds[min(i + step, len(seconds)) - 1] for i in starts],
        [max(values[i : i + step]) for i in starts],
    )


def _picture(curve: Curve, seconds: list[float], values: list[float], *, when: str) -> Picture:
    last = max(seconds, default=0.0) or 1.0
    top = _round(max(values, default=0.0))

    def at(second: float, value: float) -> Point:
        return _LEFT + second / last * _WIDTH, _TOP + (1 - value / top) * _HEIGHT

    shapes: list[Box | Line | FilledPolygon | TextLine] = [
        TextLine(x=8, y=16, text=curve.name, bold=True),
        TextLine(x=_LEFT + _WIDTH, y=16, text=f"{when} {_short(values[-1])}", anchor="end")
        if values
        else TextLine(x=_LEFT, y=16, text=""),
    ]
    for value in (0.0, top / 2, top):
        x, y = at(0, value)
        shapes += [
            Line(points=((x, y), (x + _WIDTH, y)), line="#d0d7de", thick=0.8),
            TextLine(x=x - 6, y=y + 3.5, text=_short(value), size=10, anchor="end", colour=FAINT),
        ]
    for part, anchor in _ANCHORS:
        x, y = at(part * last, 0)
        clock = _clock(part * last)
        shapes.append(TextLine(x=x, y=y + 15, text=clock, size=10, anchor=anchor, colour=FAINT))
    spots = [at(*point) for point in zip(seconds, values, strict=True)]
    shapes += [Line(points=(a, b), line="#0072b2") for a, b in itertools.pairwise(spots)]
    return Picture(
        title=curve.name,
        width=math.ceil(_LEFT + _WIDTH + 16),
        height=math.ceil(_TOP + _HEIGHT + 24),
        shapes=tuple(shapes),
    )


def _round(value: float) -> float:
    """Return the smallest round number no less than a value."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def _short(value: float) -> str:
    """Return a number as short text.

    >>> _short(1500), _short(2_000_000), _short(0.5), _short(7)
    ('1.5 k', '2 M', '0.5', '7')
    """
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _clock(seconds: float) -> str:
    """Return a duration in seconds as text, such as ``1:15``.

    >>> _clock(75), _clock(7322), _clock(2)
    ('1:15', '2:02:02', '2 s')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
