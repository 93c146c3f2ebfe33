"""Finds the edges that a history itself shows, and the short cycles among them.

A read with a single candidate reads from this candidate. A transaction that reads a version and
writes the key comes directly after the writer of that version. List reads show orders. Elle infers
the same edges, and the engine knows more. But a cycle of such edges takes only a few lines to read,
while the first refutation of the engine may go around half of the history. The cycles only suggest
where to look, because the engine and the checker decide.
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
        edges: the edges in order, of which the first one closes the cycle.
        shown: reads of transactions that overwrote the version they had read, which show the orders
            of the ``ww`` and ``rw`` edges.
        component: the number of its strongly connected component.
    """

    edges: tuple[Edge, ...]
    shown: tuple[int, ...]
    component: int


class KnownGraph:
    """The known edges between included transactions, where ``so`` only leads to the next one."""

    def __init__(
        self, problem: Problem, *, effort: int, among: tuple[int, int] | None = None
    ) -> None:
        """Collect the known edges of a history.

        Args:
            problem: the problem of the history, in which reads with intrinsic anomalies give no
                edge.
            effort: the greatest number of reads to visit; all further reads give no edge.
            among: the range of transactions to consider, as its first transaction and its end. By
                default, all transactions are considered.
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
        """Return cycles of known edges, the shorter ones first.

        Among the cycles of two edges, the simpler ones come first. For longer cycles, the result
        has one shortest cycle for each closing edge.

        Args:
            relations: the relations that edges may have.
            closing: the relations that the closing edge may have; by default ``relations``.
            longest: the greatest number of edges of a cycle.
            most: the greatest number of cycles.
            effort: the greatest number of edges to visit in the search for longer cycles.

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
