"""A topological order under edge additions and removals (Pearce and Kelly, 2006), in Python."""

from __future__ import annotations


class AcyclicOrder:
    """An acyclic graph whose edges have literals; the last edges can be removed again."""

    def __init__(self, nodes: int) -> None:
        """Make a graph without edges."""
        self._place = list(range(nodes))
        self._out: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
        self._into: list[list[int]] = [[] for _ in range(nodes)]
        self._added: list[tuple[int, int]] = []

    def edges(self) -> int:
        """Return the number of edges."""
        return len(self._added)

    def add(self, u: int, v: int, literal: int) -> list[int] | None:
        """Add an edge unless it would close a cycle.

        Returns:
            ``None`` if the edge was added; otherwise the literals of the cycle, without 0.
        """
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
        """Remove the last edges until ``edges`` of them are left. The order stays valid."""
        while len(self._added) > edges:
            u, v = self._added.pop()
            self._out[u].pop()
            self._into[v].pop()

    def _ahead(self, start: int, target: int) -> tuple[list[int], list[int] | None]:
        """Return the nodes that are reached before the target's place, and ``None``.

        If there is a path to the target, return no nodes, and the literals of the path.
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
