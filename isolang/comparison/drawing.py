"""The lattice of levels as a page, as Graphviz, and drawn."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import pairwise
from typing import TypeAlias

from isolang.comparison.compare import Half
from isolang.comparison.lattice import Lattice, Order

Node: TypeAlias = tuple[str, str, int]
"""A level, its row last; or the place in a row of an edge that passes it, by both its levels."""

_ROW, _CHARACTER, _GAP, _BOX = 74, 8.2, 34, 30


def layers(order: Order) -> tuple[list[list[Node]], dict[tuple[str, str], list[Node]]]:
    """The levels in rows, each below all that imply it, and the way of each edge from row to row.

    Where an edge passes a row without a level of its own, it has a place there, so that it does not
    run through another one. Neighbours are moved near each other (K. Sugiyama and others, 1981).
    """
    depth: dict[str, int] = {}

    def deep(name: str) -> int:
        if name not in depth:
            depth[name] = 1 + max((deep(a) for a, b in order.edges if b == name), default=-1)
        return depth[name]

    rows: list[list[Node]] = [[] for _ in range(1 + max(deep(s[0]) for s in order.classes))]
    for same in order.classes:
        rows[depth[same[0]]].append((same[0], "", depth[same[0]]))
    ways: dict[tuple[str, str], list[Node]] = {}
    near: dict[Node, list[Node]] = {}
    for a, b in order.edges:
        between = [(a, b, row) for row in range(depth[a] + 1, depth[b])]
        for node in between:
            rows[node[2]].append(node)
        ways[a, b] = [(a, "", depth[a]), *between, (b, "", depth[b])]
        for one, other in pairwise(ways[a, b]):
            near.setdefault(one, []).append(other)
            near.setdefault(other, []).append(one)

    def sort(row: list[Node], beside: int) -> None:
        at = {node: i - len(other) / 2 for other in rows for i, node in enumerate(other)}

        def mean(node: Node) -> tuple[float, Node]:
            found = [at[other] for other in near.get(node, ()) if other[2] == node[2] + beside]
            return (sum(found) / len(found) if found else at[node]), node

        row.sort(key=mean)

    for _ in range(6):
        for row in rows[1:]:
            sort(row, -1)
        for row in reversed(rows[:-1]):
            sort(row, 1)
    return rows, ways


def svg(found: Lattice) -> str:
    """The lattice, the strongest levels at the top; pointing at an edge shows its history."""
    rows, ways = layers(found.order)

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
    for (a, b), half in found.told.items():
        title = escape(f"{a} implies {b}; not the other way round: {_example(half)}")
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
    """The lattice for Graphviz."""
    lines = ["digraph levels {", "  node [shape=box, style=rounded];"]
    lines += [f'  "{same[0]}" [tooltip="{" = ".join(same)}"];' for same in found.order.classes]
    lines += [
        f'  "{a}" -> "{b}" [tooltip="{_example(half)}"];' for (a, b), half in found.told.items()
    ]
    return "\n".join([*lines, "}", ""])


def _example(half: Half) -> str:
    return "no history found" if half.witness is None else str(half.witness.small)


def markdown(found: Lattice) -> str:
    """The page of the lattice."""
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
    yield ""
    yield from (
        f"* {' = '.join(f'`{name}`' for name in same)}" for same in order.classes if len(same) > 1
    )
    yield ""
    yield "## Each level, and the next weaker ones"
    yield ""
    yield "The history is allowed by the weaker level and forbidden by the stronger one, and none"
    yield "with fewer transactions, then operations, then keys is. `->` is within a session, `||`"
    yield "between sessions, `@` the time from and to."
    yield ""
    yield "| stronger | weaker | history | anomaly |"
    yield "|---|---|---|---|"
    for (a, b), half in found.told.items():
        told = half.witness
        anomaly = "" if told is None else told.violation.violation.anomaly
        shown = _example(half).replace("|", "\\|")
        yield f"| `{a}` | `{b}` | `{shown}` | {anomaly} |"
    yield ""
    yield "## Why each level implies the next"
    for a, b in found.told:
        yield ""
        yield f"### {a} implies {b}"
        yield ""
        yield from (f"* {sentence}" for sentence in order.proofs[a, b].argument())
    if order.searched:
        yield ""
        yield "## Not found out"
        yield ""
        yield from (f"* whether `{a}` implies `{b}`" for a, b in order.searched)
