"""Cobra's encoding for MonoSAT, in which each constraint chooses between two sets of edges.

There is a variable for each possible edge, and a variable for each open pair of chains of combined
writes. If a pair's variable is true, the edges lead from the tail of the first chain, and from the
readers of that tail, to the head of the second chain. If it is false, the edges in the other
direction are present (Tan et al., OSDI 2020: combining writes and coalescing constraints). If the
automata do not allow combining, each chain has only one writer.

Cobra also forbids the edges in the direction not chosen. That is sound for the checks in the paper,
but under other automata, another constraint may require such an edge. Therefore this encoding does
not forbid these edges; forbidding them would only speed up the search.

Size: if a key has K chains and R reads, there are K²/2 + (distinct edges) variables and K² + R·K
clauses.

``+raw`` is the polygraph as originally defined. It has one bipath for each reader and other writer,
and neither combines writes nor coalesces constraints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.encodings.dependencies import build_formula
from isolang.encodings.edge_variables import bipath_constraints, edge_variables
from isolang.encodings.formula import Builder, Formula
from isolang.problem.chains import chains_allowed

if TYPE_CHECKING:
    from isolang.problem.polygraph import Polygraph


def encode(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Encode a polygraph with combined writes and coalesced constraints."""
    builder = Builder()
    combined = chains_allowed(polygraph.graph.automata)
    choices = edge_variables(builder, polygraph, combined=combined)
    return build_formula(builder, polygraph, *choices, encoding="monosat", theory="acyclicity")


def encode_raw(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Encode a polygraph without combining writes or coalescing constraints."""
    builder = Builder()
    choices = bipath_constraints(builder, polygraph)
    return build_formula(builder, polygraph, *choices, encoding="monosat+raw", theory="acyclicity")
