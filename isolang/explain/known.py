"""Finds the edges that a history shows directly, and short cycles of such edges.

If a read has only one candidate, this candidate is its source. A transaction that reads a version
and writes the key comes directly after the writer of this version. List reads show version orders.
Elle infers the same edges, and the engine infers more. But a cycle of known edges can be read in a
few lines, while the first refutation of the engine may involve half of the history. These cycles
only suggest where to look; the engine and the checker decide.
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
        edges: the edges in order; the first edge closes the cycle.
        shown: the reads that show the orders of the ``ww`` and ``rw`` edges, because their
            transactions overwrote the versions that they read.
        component: the number of the strongly connected component that contains the cycle.
    """

    edges: tuple[Edge, ...]
    shown: tuple[int, ...]
    component: int


class KnownGraph:
    """The graph of known edges between included transactions; ``so`` edges join neighbours only."""

    def __init__(
        self, problem: Problem, *, effort: int, among: tuple[int, int] | None = None
    ) -> None:
        """Collect the known edges of a history.

        Args:
            problem: the problem of the history. Reads with intrinsic anomalies give no edges.
            effort: the largest number of reads to visit; all further reads give no edges.
            among: the range of transactions to consider, as its first transaction and its end;
                ``None`` for all transactions.
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
        """Return cycles of known edges, shorter cycles first.

        Among the cycles of two edges, simpler cycles come first. Of the longer cycles, the result
        contains one shortest cycle for each closing edge.

        Args:
            relations: the relations that edges may have.
            closing: the relations that the closing edge may have; by default ``relations``.
            longest: how many edges a cycle may have.
            most: the largest number of cycles to return.
            effort: the largest number of edges that the search for longer cycles visits.

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
