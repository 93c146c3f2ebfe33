"""Maintains a topological order while edges are added and removed (Pearce and Kelly, 2006)."""

from __future__ import annotations


class AcyclicOrder:
    """An acyclic graph whose edges have literals; the latest edges can be removed."""

    def __init__(self, nodes: int) -> None:
        """Create a graph with this number of nodes and no edges."""
        self._place = list(range(nodes))
        self._out: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
        self._into: list[list[int]] = [[] for _ in range(nodes)]
        self._added: list[tuple[int, int]] = []

    def edges(self) -> int:
        """Return the number of edges in the graph."""
        return len(self._added)

    def add(self, u: int, v: int, literal: int) -> list[int] | None:
        """Add the edge from u to v, unless it would close a cycle."""
        place = self._place
        if place[u] >= place[v]:
            ahead, cycle = self._ahead(v, u)
            if cycle is not None:
                return [x for x in (literal, *cycle) if x]
            behind = self._behind(u, place[v])
            nodes = sorted(behind, key=place.__getitem__) + sorted(ahead, key=place.__getitem__)
            for node, free in zip(nodes, sorted(place[n] for n in nodes), strict=True):
                place[node] = free
        self._out[u].append((v, literal))
        self._into[v].append(u)
        self._added.append((u, v))
        return None

    def shrink(self, edges: int) -> None:
        """Remove the latest edges until ``edges`` remain; the topological order does not change."""
        while len(self._added) > edges:
            u, v = self._added.pop()
            self._out[u].pop()
            self._into[v].pop()

    def _ahead(self, start: int, target: int) -> tuple[list[int], list[int] | None]:
        """Search for a path from ``start`` to ``target``.

        Returns:
            If no path exists, the nodes reached from ``start`` that come before the target, and
            ``None``. If a path exists, an empty list and the literals of the path's edges.
        """
        if start == target:
            return [], []
        came: dict[int, tuple[int, int]] = {start: (-1, 0)}
        todo, limit = [start], self._place[target]
        while todo:
            node = todo.pop()
            for head, literal in self._out[node]:
                if head == target:
                    path = [literal]
                    while node != start:
                        node, via = came[node]
                        path.append(via)
                    return [], path
                if head not in came and self._place[head] < limit:
                    came[head] = node, literal
                    todo.append(head)
        return list(came), None

    def _behind(self, start: int, limit: int) -> list[int]:
        found, todo = {start}, [start]
        while todo:
            for tail in self._into[todo.pop()]:
                if tail not in found and self._place[tail] > limit:
                    found.add(tail)
                    todo.append(tail)
        return list(found)
