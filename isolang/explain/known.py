"""The edges that a history shows by itself, and the short cycles among them.

A read with one candidate reads from it; what reads a version and writes the key comes right after
it; list reads show orders. That is what Elle infers, and less than the engine knows; but a cycle of
such edges is a few lines to read, where the engine's first refutation may go around half of the
history. The cycles are guesses about where to look: the engine, and the checker, have the word.
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
        edges: in order; the first one closes it.
        shown: the reads of those who overwrote what they had read, which show the orders of its
            ``ww`` and ``rw``.
        component: the number of the strongly connected component that it lies in.
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
            effort: how many reads are looked at; the rest is left out.
            among: only those of transactions from the first of these to before the second.
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
        """Give cycles of known edges, those of two edges first, and then longer and longer ones.

        Of those of two edges the simpler come first; of the longer ones there is a shortest one for
        each edge that closes some.

        Args:
            relations: those that may be used.
            closing: those of the edge that closes a cycle, if it is not one of these.
            longest: the most edges of a cycle.
            most: the most cycles.
            effort: how many edges may be looked at for the longer ones.

        Returns:
            The cycles, and whether these are all.
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
