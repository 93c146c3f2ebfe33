"""Cobra's encoding for MonoSAT: either/or edge sets over edge variables, modulo acyclicity.

There is a variable for each possible edge, and one for each pair of chains of combined writes. If
the variable of a pair is true, the edges from the tail of the first chain, and from the readers of
that tail, to the head of the second chain are present; otherwise, the edges of the other direction
are (Tan et al., OSDI 2020: combining writes and coalescing constraints). If the automata do not
allow combining, each writer is a chain.

Cobra also forbids the edges of the direction that was not taken. That is sound where the paper
needs it. Under other automata, another constraint may need such an edge, so this encoding does not
forbid them; the solver then only has fewer edges to consider.

Size: if a key has K chains and R reads, there are K²/2 + (distinct edges) variables and K² + R·K
clauses.

``+raw`` is the polygraph as it was defined: it has one bipath for each reader and other writer, and
combines and coalesces nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.encodings.dependencies import finished
from isolang.encodings.edge_variables import bipaths, edge_variables
from isolang.encodings.formula import Builder, Formula
from isolang.problem.chains import chains_allowed

if TYPE_CHECKING:
    from isolang.problem.polygraph import Polygraph


def encode(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Encode a polygraph with combined writes and coalesced constraints."""
    builder = Builder()
    combined = chains_allowed(polygraph.graph.automata)
    choices = edge_variables(builder, polygraph, combined=combined)
    return finished(builder, polygraph, *choices, encoding="monosat", theory="acyclicity")


def encode_raw(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Encode a polygraph without combining or coalescing."""
    builder = Builder()
    choices = bipaths(builder, polygraph)
    return finished(builder, polygraph, *choices, encoding="monosat+raw", theory="acyclicity")
