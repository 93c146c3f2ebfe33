"""Draws figures for papers: the cycle or the tree of cases of a violation, and the lattice.

Relations differ not only in colour, but also in their dashes and labels, so figures can be printed
in black and white.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from isolang.errors import OptionError
from isolang.explain.violation import (
    ArgumentView,
    CycleView,
    EdgeView,
    LemmaView,
    PlainReason,
    SplitView,
    TransactionView,
    Violation,
)
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
    escape_invisible,
    on_curve,
    width_of,
)
from isolang.report.relations import RELATIONS, style_of

if TYPE_CHECKING:
    from isolang.pipeline.levels import Levels
    from isolang.verdict import Verdict

_MARGIN, _GAP, _STEP = 16.0, 14.0, 22.0
_LINE = 14.0  # the distance between lines of text
_NARROWEST = 380.0
_OPERATIONS = 6  # the maximum number of operations in a transaction's box
_LONGEST = 34  # the maximum number of characters of an operation or a key


class DrawnPart(NamedTuple):
    """A part of a picture, with its top left corner at (0, 0)."""

    width: float
    height: float
    shapes: list[Box | Line | FilledPolygon | TextLine]


def figure(verdict: Verdict) -> Picture:
    """Draw the cycle or the tree of cases that shows why a history violates a level.

    Raises:
        OptionError: if the verdict is not invalid, because there is nothing to draw.
    """
    from isolang.verdict import Invalid

    if not isinstance(verdict, Invalid):
        raise OptionError(f"there is no cycle to draw: the verdict is {verdict.outcome}")
    return figure_of(verdict.violation, verdict.spec.name)


def figure_of(violation: Violation, level: str, *, key: bool = True) -> Picture:
    """Draw a violation."""
    views = {view.number: view for view in violation.transactions}
    parts = [_argument(violation.argument, views)]
    if key:
        parts.append(_key(violation))
    body = _stack(parts, gap=_GAP)
    return _framed(body, f"{violation.anomaly}: why {level} does not hold")


def _framed(body: DrawnPart, title: str) -> Picture:
    return Picture(
        title=escape_invisible(title),
        width=math.ceil(body.width + 2 * _MARGIN),
        height=math.ceil(body.height + 2 * _MARGIN),
        shapes=tuple(_move(body.shapes, _MARGIN, _MARGIN)),
    )


def fitted_picture(shapes: Sequence[Box | Line | FilledPolygon | TextLine], title: str) -> Picture:
    """Return a picture of all shapes that is just large enough for them."""
    return _framed(_fitted(shapes), title)


# --- the argument ---


def _argument(argument: ArgumentView, views: dict[int, TransactionView]) -> DrawnPart:
    """Return the drawing of an argument, with its conclusion and its lemmas."""
    match argument.conclusion:
        case CycleView() as cycle:
            drawn = _cycle(cycle, views)
        case SplitView() as split:
            drawn = _split(split, views)
        case PlainReason() as reason:
            boxes = _row([_node(view.number, view.name, views) for view in views.values()])
            said = _text(_sentence(reason.text, reason.because), max(boxes.width, _NARROWEST))
            drawn = _stack([boxes, said], gap=_GAP)
    if not argument.lemmas:
        return drawn
    width = max(drawn.width, _NARROWEST)
    lemmas = [_text(_lemma(lemma), width) for lemma in argument.lemmas]
    below = _stack(lemmas, gap=4)
    # Lemmas are drawn above the conclusion if its cases use them, otherwise below it.
    if isinstance(argument.conclusion, SplitView):
        return _stack([below, drawn], gap=_GAP)
    return _stack([drawn, below], gap=_GAP)


def _split(split: SplitView, views: dict[int, TransactionView]) -> DrawnPart:
    """Return the drawing of the cases as branches of a tree that grows downwards."""
    if len(split.cases) == 1:  # the assumption of a single case is not drawn
        inner = _argument(split.cases[0].argument, views)
        head = _text(f"{split.cases[0].assumption}:", max(inner.width, _NARROWEST))
        return _stack([head, inner], gap=_GAP)
    parts = [_text(f"{split.text}:", _NARROWEST + 60)]
    for number, case in enumerate(split.cases, 1):
        inner = _argument(case.argument, views)
        head = _text(f"Case {number}: {case.assumption}", max(inner.width, _NARROWEST), bold=True)
        parts.append(_stack([head, inner], gap=8))
    shapes: list[Box | Line | FilledPolygon | TextLine] = list(parts[0].shapes)
    y, width, last = parts[0].height + _GAP, parts[0].width, 0.0
    for part in parts[1:]:
        last = y + 7
        shapes.append(Line(points=((4, last), (_STEP - 6, last)), thick=1))
        shapes += _move(part.shapes, _STEP, y)
        y += part.height + _GAP
        width = max(width, _STEP + part.width)
    shapes.insert(0, Line(points=((4, parts[0].height), (4, last)), thick=1))
    return DrawnPart(width, y - _GAP, shapes)


def _lemma(lemma: LemmaView) -> str:
    """Return a lemma as a sentence, with the cycle that would otherwise exist."""
    start = f"({lemma.number}) {lemma.text}"
    match lemma.reason:
        case PlainReason() as reason:
            return f"{start}: {_sentence(reason.text, reason.because)}"
        case CycleView() as cycle:
            return f"{start}; otherwise {_cycle_text(cycle)}."
    cases = _cycles_of(lemma.reason)
    return f"{start}; otherwise, in every case, a cycle: {'; or '.join(map(_cycle_text, cases))}."


def _cycles_of(argument: ArgumentView) -> Iterator[CycleView]:
    match argument.conclusion:
        case CycleView() as cycle:
            yield cycle
        case SplitView() as split:
            for case in split.cases:
                yield from _cycles_of(case.argument)


def _cycle_text(cycle: CycleView) -> str:
    parts = [_short(cycle.edges[0].source)] if cycle.edges else []
    for edge in cycle.edges:
        parts.append(f"—{_named(edge)}→ {_short(edge.target)}")
    return " ".join(parts)


def _sentence(text: str, because: Sequence[int]) -> str:
    by = f" (by {', '.join(f'({n})' for n in because)})" if because else ""
    return text.rstrip(".") + by + "."


# --- a cycle ---


class _Node(NamedTuple):
    """The box of a transaction; ``x`` and ``y`` are its centre."""

    x: float
    y: float
    width: float
    height: float
    name: str
    lines: tuple[str, ...]
    status: str


def _node(number: int, name: str, views: dict[int, TransactionView]) -> _Node:
    view = views.get(number)
    shown = view.operations if view is not None else ()
    lines = [_clip(op.text) for op in shown[:_OPERATIONS]]
    omitted = len(shown) - len(lines) + (view.omitted if view is not None else 0)
    if omitted:
        lines.append(f"+{omitted} more")
    status = view.status if view is not None else "initial"
    mark = {"maybe": " ?", "aborted": " (aborted)"}.get(status, "")
    name = _clip(_short(name)) + mark
    widest = max([width_of(name, bold=True), *(width_of(x, 10, mono=True) for x in lines)])
    return _Node(0, 0, widest + 18, 22 + 13 * len(lines), name, tuple(lines), status)


def _cycle(cycle: CycleView, views: dict[int, TransactionView]) -> DrawnPart:
    """Return the drawing of a cycle, with its transactions in order."""
    return _graph({edge.ends[0]: edge.source for edge in cycle.edges}, cycle.edges, views)


def drawn_graph(
    names: Mapping[int, str],
    edges: Sequence[EdgeView],
    views: Sequence[TransactionView],
    title: str,
) -> Picture:
    """Draw transactions around an ellipse, and the edges between them."""
    return _framed(
        _graph(names, edges, {view.number: view for view in views}), escape_invisible(title)
    )


def _graph(
    names: Mapping[int, str], edges: Sequence[EdgeView], views: dict[int, TransactionView]
) -> DrawnPart:
    """Return the drawing of transactions around an ellipse, and the edges between them."""
    nodes = _place_boxes(
        {number: _node(number, name, views) for number, name in names.items()}, edges
    )
    shapes: list[Box | Line | FilledPolygon | TextLine] = []
    labels: list[Box | TextLine] = []
    taken: list[Point] = []
    for edge, points in zip(edges, _edge_paths(nodes, edges), strict=True):
        style = style_of(edge.relation)
        shapes.append(Line(points=points, line=style.colour, dash=style.dash))
        shapes.append(arrow_head(points[-1], on_curve(points, 0.9), style.colour))
        x, y = _label_place(points, taken)
        taken.append((x, y))
        text = _label(edge)
        half = width_of(text, 11, bold=True) / 2 + 3
        labels.append(
            Box(x=x - half, y=y - 8, width=2 * half, height=16, line="#ffffff", thick=0, round=0)
        )
        labels.append(
            TextLine(x=x, y=y + 4, text=text, colour=style.colour, bold=True, anchor="middle")
        )
    for node in nodes.values():
        shapes += _box(node)
    return _fitted([*shapes, *labels])


def _label_place(points: Sequence[Point], taken: Sequence[Point]) -> Point:
    """Return the position of an edge's label: mid-edge, unless another label is nearby."""
    spots = [on_curve(points, t) for t in (0.5, 0.36, 0.64, 0.22, 0.78)]
    free = ((x, y) for x, y in spots if all(abs(x - a) > 34 or abs(y - b) > 16 for a, b in taken))
    return next(free, spots[0])


def _label(edge: EdgeView) -> str:
    by = f" ({', '.join(map(str, edge.because))})" if edge.because else ""
    return _named(edge) + (" (assumed)" if edge.assumed else by)


def _named(edge: EdgeView) -> str:
    return _clip(f"{edge.relation} {edge.key}".strip())


def _box(node: _Node) -> Iterator[Box | Line | TextLine]:
    """Yield the shapes of a transaction's box; its outline shows the transaction's status."""
    x, y = node.x - node.width / 2, node.y - node.height / 2
    yield Box(
        x=x,
        y=y,
        width=node.width,
        height=node.height,
        line=INK,
        fill="#f6f8fa",
        dash=(4, 3) if node.status == "maybe" else (1.5, 2.5) if node.status == "initial" else (),
    )
    if node.status == "aborted":
        corner = (x + node.width, y + node.height)
        yield Line(points=((x, y), corner), line="#d0a09c", thick=1)
    yield TextLine(x=x + 9, y=y + 15, text=node.name, bold=True)
    for i, line in enumerate(node.lines):
        yield TextLine(x=x + 9, y=y + 29 + 13 * i, text=line, size=10, mono=True)


def _place_boxes(nodes: dict[int, _Node], edges: Sequence[EdgeView]) -> dict[int, _Node]:
    """Place boxes around an ellipse just large enough for the boxes and the labels."""
    count = len(nodes)
    first = -math.pi / 2 - math.pi / max(count, 1)
    angles = [first + 2 * math.pi * i / max(count, 1) for i in range(count)]
    radius, flat = 40.0, 0.62 if count > 2 else 0.0
    while True:
        put = {
            number: node._replace(x=radius * math.cos(angle), y=radius * flat * math.sin(angle))
            for (number, node), angle in zip(nodes.items(), angles, strict=True)
        }
        if count < 2 or _has_enough_room(put, edges):
            return put
        radius *= 1.06


def _has_enough_room(nodes: dict[int, _Node], edges: Sequence[EdgeView]) -> bool:
    """Return whether all boxes are far enough apart, and each label fits between its boxes."""
    for a, b in combinations(nodes.values(), 2):
        across = abs(a.x - b.x) - (a.width + b.width) / 2
        down = abs(a.y - b.y) - (a.height + b.height) / 2
        if across < 20 and down < 24:
            return False
    for edge in edges:
        a, b = (nodes[n] for n in edge.ends)
        if a is b:
            continue
        start, end = _border(a, (b.x, b.y)), _border(b, (a.x, a.y))
        across, down = abs(start[0] - end[0]), abs(start[1] - end[1])
        if across < width_of(_label(edge), 11, bold=True) + 40 and down < 52:
            return False
    return True


def _edge_paths(nodes: dict[int, _Node], edges: Sequence[EdgeView]) -> Iterator[tuple[Point, ...]]:
    """Yield the path of each edge; edges between the same two boxes get different bends."""
    together: dict[frozenset[int], int] = {}
    for edge in edges:
        together[frozenset(edge.ends)] = together.get(frozenset(edge.ends), 0) + 1
    seen: dict[frozenset[int], int] = {}
    for edge in edges:
        pair = frozenset(edge.ends)
        a, b = (nodes[n] for n in edge.ends)
        place = seen[pair] = seen.get(pair, -1) + 1
        if a is b:  # an edge from a box to itself is drawn above the box
            top = a.y - a.height / 2
            yield (a.x - 12, top), (a.x - 44, top - 48), (a.x + 44, top - 48), (a.x + 12, top)
            continue
        if together[pair] == 1:
            yield _border(a, (b.x, b.y)), _border(b, (a.x, a.y))
            continue
        low, high = (nodes[n] for n in (min(pair), max(pair)))
        dx, dy = high.x - low.x, high.y - low.y
        out = (
            (34 + 30 * (place // 2)) * (2 if place % 2 == 0 else -2) / max(1e-9, math.hypot(dx, dy))
        )
        middle = ((a.x + b.x) / 2 + out * dy, (a.y + b.y) / 2 - out * dx)
        yield _border(a, middle), middle, _border(b, middle)


def _border(node: _Node, towards: Point) -> Point:
    """Return where a line from a box's centre towards a point leaves the box."""
    dx, dy = towards[0] - node.x, towards[1] - node.y
    scale = min(
        (node.width / 2 + 1.5) / max(1e-9, abs(dx)), (node.height / 2 + 1.5) / max(1e-9, abs(dy))
    )
    return node.x + dx * scale, node.y + dy * scale


# --- the lattice ---

_STANDING: Final = {
    "satisfied": ("✓", "#1a7f37", ()),
    "violated": ("✗", "#b42318", (5, 3)),
    "unknown": ("?", "#8a6100", (2, 2)),
    "no times": ("–", FAINT, (1.5, 3)),
}
_MEANS: Final = {
    "satisfied": "the history satisfies it",
    "violated": "the history violates it",
    "unknown": "unknown",
    "no times": "needs real time, which the history lacks",
}


_HIGH: Final = 24.0  # the height of a level's box


def place_levels(
    names: Collection[str],
) -> tuple[float, float, dict[str, tuple[float, float, float]], tuple[tuple[Point, ...], ...]]:
    """Place the boxes of levels in a drawing, strongest level at the top.

    Returns:
        The width and the height of the drawing; for each level, the centre and the width of its
        box; and the curves between the boxes.
    """
    from isolang.language.hierarchy import implications_among
    from isolang.report.layers import Node, layers

    implies = implications_among(names)
    rows, ways = layers(list(implies), [(a, b) for a, weaker in implies.items() for b in weaker])
    gap, step = 22.0, 54.0

    def wide(node: Node) -> float:
        return 0 if node[1] else width_of(f"✓ {node[0]}", 11) + 18

    total = max(sum(wide(node) + gap for node in row) for row in rows)
    at: dict[Node, Point] = {}
    for number, row in enumerate(rows):
        x = (total - sum(wide(node) + gap for node in row) + gap) / 2
        for node in row:
            at[node] = (round(x + wide(node) / 2, 1), _HIGH / 2 + number * step)
            x += wide(node) + gap
    lines = []
    for way in ways.values():
        for one, other in pairwise(way):
            (x1, y1), (x2, y2) = at[one], at[other]
            y1, y2 = y1 + (0 if one[1] else _HIGH / 2), y2 - (0 if other[1] else _HIGH / 2)
            middle = (y1 + y2) / 2
            lines.append(((x1, y1), (x1, middle), (x2, middle), (x2, y2)))
    places = {node[0]: (*at[node], wide(node)) for row in rows for node in row if not node[1]}
    return total, _HIGH + step * (len(rows) - 1), places, tuple(lines)


_LEGEND: Final = 240.0  # the width at which legend lines are broken


def lattice(levels: Levels) -> Picture:
    """Draw the library levels with their verdicts, strongest level at the top."""
    total, _, at, lines = place_levels(levels.worth_listing())
    shapes: list[Box | Line | FilledPolygon | TextLine] = [
        Line(points=points, line="#a5acb5", thick=1) for points in lines
    ]
    for level in (levels.levels[name] for name in levels.worth_listing()):
        mark, colour, dash = _STANDING[level.standing]
        x, y, wide = at[level.name]
        shapes.append(
            Box(
                x=x - wide / 2,
                y=y - _HIGH / 2,
                width=wide,
                height=_HIGH,
                line=colour,
                dash=dash,
                thick=1.5,
                round=6,
            )
        )
        shapes.append(
            TextLine(x=x, y=y + 4, text=f"{mark} {level.name}", colour=colour, anchor="middle")
        )
    found = {level.standing for level in levels.levels.values()}
    key = [f"{_STANDING[one][0]} {_MEANS[one]}" for one in _STANDING if one in found]
    legend = [_text(one, max(total, _LEGEND), colour=FAINT) for one in key]
    body = _stack([_fitted(shapes), _stack(legend, gap=2)], gap=_GAP)
    return _framed(body, f"where {levels.history.name} stands among the levels")


# --- parts of pictures ---


def _key(violation: Violation) -> DrawnPart:
    """Return the legend for the lines and boxes that occur in the drawing."""
    edges = [edge for _, cycle in violation.cycles() for edge in cycle.edges]
    used = {edge.relation.partition("[")[0] for edge in edges}
    shapes: list[Box | Line | FilledPolygon | TextLine] = []
    y = 0.0
    for name, style in RELATIONS.items():
        if name not in used:
            continue
        line = Line(points=((0, y + 6), (38, y + 6)), line=style.colour, dash=style.dash)
        shapes += [line, arrow_head((40, y + 6), (0, y + 6), style.colour)]
        shapes.append(TextLine(x=48, y=y + 10, text=name, size=10, bold=True, colour=style.colour))
        left = 54 + max(width_of(one, 10, bold=True) for one in used)
        shapes.append(TextLine(x=left, y=y + 10, text=style.meaning, size=10, colour=FAINT))
        y += _LINE
    return _fitted(shapes) if shapes else DrawnPart(0, 0, [])


def _text(
    text: str, width: float, *, size: float = 10.5, bold: bool = False, colour: str = INK
) -> DrawnPart:
    """Return the drawing of a text broken into lines of about this width."""
    text = " ".join(
        word if len(word) <= 60 else f"{word[:40]}…" for word in escape_invisible(text).split(" ")
    )
    each = max(20, int(width / (size * (0.58 if bold else 0.54))))
    lines = textwrap.wrap(text, each, break_on_hyphens=False) or [""]
    shapes: list[Box | Line | FilledPolygon | TextLine] = [
        TextLine(x=0, y=size + _LINE * i, text=line, size=size, bold=bold, colour=colour)
        for i, line in enumerate(lines)
    ]
    widest = max(width_of(line, size, bold=bold) for line in lines)
    return DrawnPart(widest, _LINE * len(lines) + 2, shapes)


def _stack(parts: Sequence[DrawnPart], *, gap: float) -> DrawnPart:
    """Return the drawing of parts stacked vertically and left-aligned."""
    parts = [part for part in parts if part.shapes]
    shapes: list[Box | Line | FilledPolygon | TextLine] = []
    y = 0.0
    for part in parts:
        shapes += _move(part.shapes, 0, y)
        y += part.height + gap
    return DrawnPart(max((part.width for part in parts), default=0), max(0, y - gap), shapes)


def _row(nodes: Sequence[_Node]) -> DrawnPart:
    """Return the drawing of boxes laid out in rows of limited width."""
    shapes: list[Box | Line | FilledPolygon | TextLine] = []
    x = y = tallest = 0.0
    for node in nodes:
        if x and x + node.width > 640:
            x, y, tallest = 0.0, y + tallest + 16, 0.0
        shapes += _box(node._replace(x=x + node.width / 2, y=y + node.height / 2))
        x += node.width + 20
        tallest = max(tallest, node.height)
    return _fitted(shapes) if shapes else DrawnPart(0, 0, [])


def _fitted(shapes: Sequence[Box | Line | FilledPolygon | TextLine]) -> DrawnPart:
    """Return the drawing of shapes, moved so that their top left corner is at (0, 0)."""
    points: list[Point] = []
    for shape in shapes:
        match shape:
            case Box():
                points += [(shape.x, shape.y), (shape.x + shape.width, shape.y + shape.height)]
            case Line() | FilledPolygon():
                points += [on_curve(shape.points, t / 10) for t in range(11)]
            case TextLine():
                wide = width_of(shape.text, shape.size, bold=shape.bold, mono=shape.mono)
                left = shape.x - {"start": 0, "middle": wide / 2, "end": wide}[shape.anchor]
                points += [(left, shape.y - shape.size), (left + wide, shape.y + 3)]
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    moved = list(_move(shapes, -min(xs), -min(ys)))
    return DrawnPart(max(xs) - min(xs), max(ys) - min(ys), moved)


def _move(
    shapes: Sequence[Box | Line | FilledPolygon | TextLine], dx: float, dy: float
) -> Iterator[Box | Line | FilledPolygon | TextLine]:
    for shape in shapes:
        if isinstance(shape, Line | FilledPolygon):
            yield replace(shape, points=tuple((x + dx, y + dy) for x, y in shape.points))
        else:
            yield replace(shape, x=shape.x + dx, y=shape.y + dy)


def _short(name: str) -> str:
    return "T0" if name == "the initial state" else name


def _clip(text: str) -> str:
    text = escape_invisible(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
