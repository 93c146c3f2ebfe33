"""The edges that a history shows by itself, and the short cycles among them.

A read with one candidate reads from it; a transaction that reads a version and writes the key comes
right after it; list reads show orders. Elle infers the same, and the engine knows more; but a cycle
of such edges is a few lines to read, while the engine's first refutation may go around half of the
history. The cycles only suggest where to look: the engine and the checker decide.
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
        edges: in order; the first one closes the cycle.
        shown: reads of transactions that overwrote the version they had read, which show the orders
            of the ``ww`` and ``rw`` edges.
        component: the number of its strongly connected component.
    """

    edges: tuple[Edge, ...]
    shown: tuple[int, ...]
    component: int


class KnownGraph:
    """Known edges between the included transactions; those of ``so`` lead to the next one."""

    def __init__(
        self, problem: Problem, *, effort: int, among: tuple[int, int] | None = None
    ) -> None:
        """Collect the known edges of a history.

        Args:
            problem: of the history; reads with intrinsic anomalies give no edge.
            effort: the most reads to visit; the rest give no edge.
            among: the range of transactions to consider, as its first one and its end; all by
                default.
        """
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
        """Return cycles of known edges, shorter ones first.

        Cycles of two edges come with the simpler ones first. Of the longer ones, each closing edge
        has a shortest cycle.

        Args:
            relations: the relations that edges may have.
            closing: the relations that the closing edge may have; by default ``relations``.
            longest: the most edges of a cycle.
            most: the most cycles.
            effort: the most edges to visit for the longer ones.

        Returns:
            The cycles, and whether the search was complete.
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
