"""Finds the edges shown directly by a history, and short cycles of such edges.

If a read has only one candidate, that candidate is its source. A transaction that reads a version
and writes the key comes directly after that version's writer. List reads show version orders. Elle
infers the same edges, and the engine infers more. But a cycle of known edges fits in a few lines,
while the engine's first refutation may involve half of the history. These cycles only suggest where
to look; the engine and the checker decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from isolang.certify.steps import Edge

if TYPE_CHECKING:
    from isolang.problem.problem import Problem

_LONGEST: Final = 8


class KnownCycle(Struct, frozen=True, kw_only=True):
    """A cycle of known edges.

    Attributes:
        shown: the reads that show the orders of the ``ww`` and ``rw`` edges, because their
            transactions overwrote the versions they read.
    """

    edges: tuple[Edge, ...]
    shown: tuple[int, ...]
    component: int


class KnownGraph:
    """The graph of known edges between included transactions; ``so`` connects only neighbours."""

    def __init__(
        self, problem: Problem, *, effort: int, among: tuple[int, int] | None = None
    ) -> None:
        """Collect the known edges of a history."""
        from isolang._native import KnownGraph as Native

        low, high = (0, problem.native.n) if among is None else among
        self._native = Native(problem.native, low, high, effort)

    def short_cycles(
        self,
        relations: frozenset[str],
        *,
        closing: frozenset[str] | None = None,
        longest: int = _LONGEST,
        most: int,
        effort: int,
    ) -> tuple[list[KnownCycle], bool]:
        """Return cycles of known edges, shorter cycles first.

        Among two-edge cycles, simpler ones come first. Of the longer cycles, the result contains
        one shortest cycle for each closing edge.
        """
        rows, complete = self._native.short_cycles(
            relations, relations if closing is None else closing, longest, most, effort
        )
        cycles = [
            KnownCycle(
                edges=tuple(Edge(*row[:6]) for row in edges),
                shown=tuple(dict.fromkeys(op for row in edges for op in row[6])),
                component=component,
            )
            for edges, component in rows
        ]
        return cycles, complete
