"""Arranges the nodes of an acyclic graph in rows so that all edges lead downwards."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

Node: TypeAlias = tuple[str, str, int]
"""A node (its name, an empty string, its row), or a point where an edge crosses a row (the names of
both ends, the row)."""


def layers(
    names: Sequence[str], edges: Sequence[tuple[str, str]]
) -> tuple[list[list[Node]], dict[tuple[str, str], list[Node]]]:
    """Arrange nodes in rows so that each node is below its predecessors.

    An edge that crosses a row gets a position in it, so that it does not run through another node.
    Nodes joined by an edge are moved near each other (K. Sugiyama and others, 1981).
    """
    depth: dict[str, int] = {}

    def deep(name: str) -> int:
        if name not in depth:
            depth[name] = 1 + max((deep(a) for a, b in edges if b == name), default=-1)
        return depth[name]

    rows: list[list[Node]] = [[] for _ in range(1 + max(map(deep, names)))]
    for name in names:
        rows[depth[name]].append((name, "", depth[name]))
    ways: dict[tuple[str, str], list[Node]] = {}
    near: dict[Node, list[Node]] = {}
    for a, b in edges:
        between = [(a, b, row) for row in range(depth[a] + 1, depth[b])]
        for node in between:
            rows[node[2]].append(node)
        ways[a, b] = [(a, "", depth[a]), *between, (b, "", depth[b])]
        for one, other in pairwise(ways[a, b]):
            near.setdefault(one, []).append(other)
            near.setdefault(other, []).append(one)

    def sort(row: list[Node], side: int) -> None:
        at = {node: i - len(other) / 2 for other in rows for i, node in enumerate(other)}

        def mean(node: Node) -> tuple[float, Node]:
            found = [at[other] for other in near.get(node, ()) if other[2] == node[2] + side]
            return (sum(found) / len(found) if found else at[node]), node

        row.sort(key=mean)

    for _ in range(6):
        for row in rows[1:]:
            sort(row, -1)
        for row in reversed(rows[:-1]):
            sort(row, 1)
    return rows, ways
