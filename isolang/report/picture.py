"""Defines pictures made of simple shapes, and writes them as SVG, or as PNG or PDF by matplotlib.

Lengths are in points, and the origin is at the top left. The background is white, as in papers.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, Literal, TypeAlias
from xml.sax.saxutils import escape, quoteattr

from msgspec import Struct

from isolang.errors import OptionError
from isolang.files import open_replacement, write_atomically

Point: TypeAlias = tuple[float, float]

INK: Final = "#1b1f24"
FAINT: Final = "#57606a"
KINDS: Final = (".svg", ".png", ".pdf")
"""The suffixes allowed for picture files."""

_SANS: Final = ("Helvetica", "Arial", "Liberation Sans", "DejaVu Sans", "sans-serif")
_MONO: Final = ("DejaVu Sans Mono", "Menlo", "Consolas", "monospace")
_DOTS: Final = 220  # the resolution of PNGs in dots per inch
# Narrow and wide characters in DejaVu Sans, the widest font used in pictures.
_NARROW, _WIDE = "iljtfrI.,:;'|!()[] ", "mwMW@%→—"


class Box(Struct, frozen=True, kw_only=True):
    """A rectangle with rounded corners; ``x`` and ``y`` are its top left corner."""

    x: float
    y: float
    width: float
    height: float
    line: str = FAINT
    fill: str = "#ffffff"
    thick: float = 1.2
    dash: tuple[float, ...] = ()
    round: float = 4


class Line(Struct, frozen=True, kw_only=True):
    """A line or a Bézier curve: two end points, and control points between them."""

    points: tuple[Point, ...]
    line: str = FAINT
    thick: float = 1.6
    dash: tuple[float, ...] = ()


class FilledPolygon(Struct, frozen=True, kw_only=True):
    """A polygon filled with one colour."""

    points: tuple[Point, ...]
    fill: str


class TextLine(Struct, frozen=True, kw_only=True):
    """A line of text; ``x`` and ``y`` are its anchor on the baseline."""

    x: float
    y: float
    text: str
    size: float = 11
    colour: str = INK
    bold: bool = False
    mono: bool = False
    anchor: Literal["start", "middle", "end"] = "start"


class Picture(Struct, frozen=True, kw_only=True):
    """A picture made of shapes.

    Attributes:
        title: a description of the picture, for people who cannot see it.
        shapes: the shapes in drawing order, background first.
    """

    title: str
    width: float
    height: float
    shapes: tuple[Box | Line | FilledPolygon | TextLine, ...]


def width_of(text: str, size: float = 11, *, bold: bool = False, mono: bool = False) -> float:
    """Return an estimate of a text's width that is never less than the real width."""

    def one(character: str) -> float:
        if unicodedata.east_asian_width(character) in "WF":
            return 1.2 if mono else 1.05
        if mono:
            return 0.61
        if character in _NARROW:
            return 0.38
        return 0.95 if character in _WIDE else 0.7 if character.isupper() else 0.63

    return sum(map(one, text)) * size * (1.08 if bold and not mono else 1.0)


_TIP: Final = 8.0


def arrow_head(end: Point, before: Point, colour: str) -> FilledPolygon:
    """Return the head of an arrow that ends at ``end`` and comes from ``before``."""
    dx, dy = end[0] - before[0], end[1] - before[1]
    length = max(1e-9, (dx * dx + dy * dy) ** 0.5)
    dx, dy = dx / length, dy / length
    base = (end[0] - _TIP * dx, end[1] - _TIP * dy)
    side = 0.42 * _TIP
    left, right = ((base[0] - s * dy, base[1] + s * dx) for s in (side, -side))
    return FilledPolygon(points=(end, left, right), fill=colour)


def on_curve(points: Sequence[Point], t: float) -> Point:
    """Return the point on a Bézier curve at parameter t, between 0 and 1 (P. de Casteljau)."""
    now = list(points)
    while len(now) > 1:
        now = [
            (a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t) for a, b in itertools.pairwise(now)
        ]
    return now[0]


def svg(picture: Picture) -> str:
    """Return the picture as the text of an SVG file; fonts are not embedded."""
    width, height = (f"{x:.0f}" for x in (picture.width, picture.height))
    sans, mono = (", ".join(f"'{f}'" if " " in f else f for f in names) for names in (_SANS, _MONO))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="{sans}">',
        f"<title>{escape(picture.title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for shape in picture.shapes:
        lines += _svg(shape, mono)
    return "\n".join([*lines, "</svg>", ""])


def _svg(shape: Box | Line | FilledPolygon | TextLine, mono: str) -> Iterator[str]:
    match shape:
        case Box():
            yield (
                f'<rect x="{shape.x:.1f}" y="{shape.y:.1f}" width="{shape.width:.1f}" '
                f'height="{shape.height:.1f}" rx="{shape.round:g}" fill="{shape.fill}" '
                f'stroke="{shape.line}" stroke-width="{shape.thick:g}"{_dashed(shape.dash)}/>'
            )
        case Line():
            letter = {2: "L", 3: "Q", 4: "C"}[len(shape.points)]
            first, *rest = (f"{x:.1f},{y:.1f}" for x, y in shape.points)
            yield (
                f'<path d="M{first}{letter}{" ".join(rest)}" fill="none" stroke="{shape.line}" '
                f'stroke-width="{shape.thick:g}"{_dashed(shape.dash)}/>'
            )
        case FilledPolygon():
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shape.points)
            yield f'<polygon points="{points}" fill="{shape.fill}"/>'
        case TextLine():
            style = f' font-family="{mono}"' if shape.mono else ""
            style += ' font-weight="bold"' if shape.bold else ""
            anchor = "" if shape.anchor == "start" else f' text-anchor="{shape.anchor}"'
            yield (
                f'<text x="{shape.x:.1f}" y="{shape.y:.1f}" font-size="{shape.size:g}" '
                f"fill={quoteattr(shape.colour)}{style}{anchor} "
                f'xml:space="preserve">{escape(shape.text)}</text>'
            )


def _dashed(dash: Sequence[float]) -> str:
    return f' stroke-dasharray="{" ".join(f"{x:g}" for x in dash)}"' if dash else ""


def save_picture(picture: Picture, path: str | Path) -> str:
    """Write a picture to a file, in the format selected by the suffix of its name (``KINDS``).

    Raises:
        OptionError: if the picture cannot be written, or needs matplotlib but it is not installed.
    """
    path = Path(path)
    require_kind(path)
    try:
        if path.suffix == ".svg":
            write_atomically(path, svg(picture))
        else:
            with open_replacement(path) as stream:
                _painted(picture, stream, path.suffix[1:])
    except OSError as error:
        reason = error.strerror or str(error)
        raise OptionError(f"{path}: cannot write the picture: {reason}") from None
    return str(path)


def require_kind(path: str | Path) -> None:
    """Check that a picture can be written to a file with this name.

    Raises:
        OptionError: if the suffix of the name is not in ``KINDS``, or needs matplotlib but it is
            not installed.
    """
    from importlib.util import find_spec

    path = Path(path)
    if path.suffix not in KINDS:
        raise OptionError(
            f"--plot: unknown kind of picture (got {path}, expected {', '.join(KINDS)})"
        )
    if not path.absolute().parent.is_dir():
        raise OptionError(f"--plot: the folder does not exist (got {path})")
    if path.suffix != ".svg" and find_spec("matplotlib") is None:
        raise OptionError(
            f"--plot {path} needs matplotlib; pip install 'isolang[plot]', or use .svg"
        )


def _painted(picture: Picture, stream: IO[bytes], kind: str) -> None:
    """Draw a picture with matplotlib, and write it to a stream."""
    import logging
    import warnings

    from matplotlib import font_manager
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    installed = {font.name for font in font_manager.fontManager.ttflist}
    fonts: list[list[str]] = [
        [name for name in names if name in installed] for names in (_SANS, _MONO)
    ]
    figure = Figure(figsize=(picture.width / 72, picture.height / 72), dpi=72)
    FigureCanvasAgg(figure)
    axes: Any = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, picture.width)
    axes.set_ylim(picture.height, 0)
    axes.axis("off")
    for order, shape in enumerate(picture.shapes):
        _paint(axes, shape, order + 2, fonts)
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about characters missing from all fonts
        figure.savefig(
            stream,
            format=kind,
            dpi=_DOTS,
            metadata={"Title": picture.title[:200]}
            | ({"CreationDate": None} if kind == "pdf" else {}),
        )


def _paint(
    axes: Any, shape: Box | Line | FilledPolygon | TextLine, order: int, fonts: Sequence[list[str]]
) -> None:
    from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon
    from matplotlib.path import Path as Way

    # In matplotlib, dash lengths are multiples of the line width.
    match shape:
        case Box():
            patch: Any = FancyBboxPatch(
                (shape.x, shape.y),
                shape.width,
                shape.height,
                boxstyle=f"round,pad=0,rounding_size={shape.round}",
                facecolor=shape.fill,
                edgecolor=shape.line,
                linewidth=shape.thick,
            )
        case Line():
            code = {2: Way.LINETO, 3: Way.CURVE3, 4: Way.CURVE4}[len(shape.points)]
            codes = [Way.MOVETO, *[code] * (len(shape.points) - 1)]
            patch = PathPatch(
                Way(shape.points, codes),
                facecolor="none",
                edgecolor=shape.line,
                linewidth=shape.thick,
                capstyle="butt",
            )
        case FilledPolygon():
            patch = Polygon(shape.points, closed=True, facecolor=shape.fill, linewidth=0)
        case TextLine():
            axes.text(
                shape.x,
                shape.y,
                shape.text,
                fontsize=shape.size,
                color=shape.colour,
                fontweight="bold" if shape.bold else "normal",
                fontfamily=fonts[shape.mono] or ["sans-serif"],
                ha={"start": "left", "middle": "center", "end": "right"}[shape.anchor],
                va="baseline",
                zorder=order,
                parse_math=False,
            )
            return
    if not isinstance(shape, FilledPolygon) and shape.dash:
        patch.set_linestyle((0, tuple(x / shape.thick for x in shape.dash)))
    patch.set_zorder(order)
    axes.add_patch(patch)


_HIDDEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def escape_invisible(text: str) -> str:
    """Return text with escapes for invisible characters and characters that reorder text."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
