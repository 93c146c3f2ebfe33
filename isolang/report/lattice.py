"""Writes the lattice of levels as a Markdown page, for Graphviz, and as a drawing."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import pairwise
from textwrap import TextWrapper, wrap
from typing import Final

from isolang.comparison.compare import Implication
from isolang.comparison.lattice import Lattice
from isolang.report.layers import Node, layers

_ITEMS: Final = TextWrapper(
    100,
    initial_indent="* ",
    subsequent_indent="  ",
    break_long_words=False,
    break_on_hyphens=False,
)
_HISTORIES = (
    "The weaker level allows the history and the stronger one forbids "
    "it; no such history has fewer transactions, then fewer "
    "operations, then fewer keys. `->` is within a session, `||` "
    "between sessions, `@` the time from and to, `%` the group, `^` "
    "the level that a transaction requested (`k` is one that no "
    "specification names); `rp(x,none)` is a predicate read of the "
    "rows of x, which found none."
)
_ONE_AT_A_TIME = (
    "All of this assumes that sessions [do one thing at a "
    "time](comparison.md#sessions-do-one-thing-at-a-time). A proof "
    "that needs this assumption says so; `--overlap` compares without "
    "it."
)
_ROW, _CHARACTER, _GAP, _BOX = 74, 8.2, 34, 30


def svg(found: Lattice) -> str:
    """Return the lattice as SVG, with the strongest levels at the top.

    Each edge's title is the history that separates its two levels, if one was found.
    """
    rows, ways = layers([same[0] for same in found.order.classes], found.order.edges)

    def wide(node: Node) -> float:
        return 0 if node[1] else _CHARACTER * len(node[0]) + 22

    total = max(sum(wide(node) + _GAP for node in row) for row in rows) + _GAP
    centre: dict[Node, tuple[float, float]] = {}
    for number, row in enumerate(rows):
        x = (total - sum(wide(node) + _GAP for node in row) + _GAP) / 2
        for node in row:
            centre[node] = (x + wide(node) / 2, 30 + number * _ROW)
            x += wide(node) + _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:.0f} '
        f'{len(rows) * _ROW:.0f}" font-family="system-ui, sans-serif" font-size="14">',
        "<style>.b{fill:#f4f6f8;stroke:#57606a}.e{stroke:#8c959f;fill:none}text{fill:#1f2328}"
        "@media (prefers-color-scheme:dark){.b{fill:#21262d;stroke:#8b949e}.e{stroke:#6e7681}"
        "text{fill:#e6edf3}}</style>",
    ]
    for (a, b), implication in found.converses.items():
        title = escape(f"{a} implies {b}; not the other way round: {_example(implication)}")
        path = ""
        for one, other in pairwise(ways[a, b]):
            (x1, y1), (x2, y2) = centre[one], centre[other]
            y1, y2 = y1 + (0 if one[1] else _BOX / 2), y2 - (0 if other[1] else _BOX / 2)
            middle = (y1 + y2) / 2
            path += (
                f"M{x1:.1f} {y1:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"
            )
        parts.append(f'<path class="e" d="{path}"><title>{title}</title></path>')
    for same in found.order.classes:
        node = next(node for row in rows for node in row if node[:2] == (same[0], ""))
        (x, y), across = centre[node], wide(node)
        parts.append(
            f'<g><title>{escape(" = ".join(same))}</title><rect class="b" rx="6" '
            f'x="{x - across / 2:.1f}" y="{y - _BOX / 2:.1f}" width="{across:.1f}" '
            f'height="{_BOX}"/><text x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle">'
            f"{escape(same[0])}</text></g>"
        )
    return "\n".join([*parts, "</svg>", ""])


def dot(found: Lattice) -> str:
    """Return the lattice in Graphviz's DOT language."""
    lines = ["digraph levels {", "  node [shape=box, style=rounded];"]
    lines += [f'  "{same[0]}" [tooltip="{" = ".join(same)}"];' for same in found.order.classes]
    lines += [
        f'  "{a}" -> "{b}" [tooltip="{_example(implication)}"];'
        for (a, b), implication in found.converses.items()
    ]
    return "\n".join([*lines, "}", ""])


def _example(implication: Implication) -> str:
    return "no history found" if implication.witness is None else str(implication.witness.small)


def markdown(found: Lattice) -> str:
    """Return the lattice as a Markdown page."""
    return "\n".join(_page(found)) + "\n"


def _page(found: Lattice) -> Iterator[str]:
    order = found.order
    yield "# The lattice of levels"
    yield ""
    yield "Made by `isocheck spec lattice --output markdown --svg FILE`; [how](comparison.md)."
    yield ""
    yield "![the levels of the library, the strongest at the top](images/lattice.svg)"
    yield ""
    yield "## Equal levels"
    yield ""
    yield "Each implies the others by proof."
    if not order.bounds.overlap:
        yield ""
        yield from wrap(_ONE_AT_A_TIME, 100)
    yield ""
    yield from (
        f"* {' = '.join(f'`{name}`' for name in same)}" for same in order.classes if len(same) > 1
    )
    yield ""
    yield "## Each level, and the next weaker ones"
    yield ""
    yield from wrap(_HISTORIES, 100)
    yield ""
    yield "| stronger | weaker | history | anomaly |"
    yield "|---|---|---|---|"
    for (a, b), implication in found.converses.items():
        witness = implication.witness
        anomaly = "" if witness is None else witness.violation.violation.anomaly
        shown = _example(implication).replace("|", "\\|")
        yield f"| `{a}` | `{b}` | `{shown}` | {anomaly} |"
    yield ""
    yield "## Why each level implies the next"
    for a, b in found.converses:
        yield ""
        yield f"### {a} implies {b}"
        yield ""
        for sentence in order.proofs[a, b].argument():
            yield from _ITEMS.wrap(sentence)
    first = {same[0] for same in order.classes}
    if unknown := [pair for pair in order.searched if first.issuperset(pair)]:
        yield ""
        yield "## Unknown"
        yield ""
        yield from (f"* whether `{a}` implies `{b}`" for a, b in unknown)
