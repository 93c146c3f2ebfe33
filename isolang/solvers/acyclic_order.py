"""A topological order kept up while edges come and go: Pearce and Kelly (2006), in plain Python."""

from __future__ import annotations


class AcyclicOrder:
    """An acyclic graph whose edges carry literals; the last ones can be taken away again."""

    def __init__(self, nodes: int) -> None:
        """Begin without edges."""
        self._place = list(range(nodes))
        self._out: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
        self._into: list[list[int]] = [[] for _ in range(nodes)]
        self._added: list[tuple[int, int]] = []

    def edges(self) -> int:
        """The number of edges."""
        return len(self._added)

    def add(self, u: int, v: int, literal: int) -> list[int] | None:
        """Add an edge.

        Returns:
            ``None``, or, if it would close a cycle, the literals of the cycle, 0 left out; then the
            edge is not added.
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
        """Remove the last edges until ``edges`` are left. The order stays valid."""
        while len(self._added) > edges:
            u, v = self._added.pop()
            self._out[u].pop()
            self._into[v].pop()

    def _ahead(self, start: int, target: int) -> tuple[list[int], list[int] | None]:
        """The nodes reached up to the target's place; or the literals on a path to the target."""
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
