"""Cobra's encoding for MonoSAT: either/or edge sets over edge variables, modulo acyclicity.

A variable per possible edge, and one per pair of chains of combined writes: if it is true, the
edges from the tail of the first one, and from its readers, to the head of the second one are there;
else those of the other direction (Tan et al., OSDI 2020: combining writes and coalescing
constraints). Where the automata do not permit combining, each writer is a chain.

Cobra also forbids the edges of the direction that was not taken. That is sound where the paper
needs it, but another constraint may want such an edge under other automata; without, the solver
only has fewer edges to reason about.

Size, with K chains and R reads of a key: K²/2 + (distinct edges) variables, K² + R·K clauses.

``+raw`` is the polygraph as it was defined: one bipath per reader and other writer, nothing
combined or coalesced.
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
    """Encode with combined writes and coalesced constraints."""
    builder = Builder()
    combined = chains_allowed(polygraph.graph.automata)
    choices = edge_variables(builder, polygraph, combined=combined)
    return finished(builder, polygraph, *choices, encoding="monosat", theory="acyclicity")


def encode_raw(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Encode the raw polygraph."""
    builder = Builder()
    choices = bipaths(builder, polygraph)
    return finished(builder, polygraph, *choices, encoding="monosat+raw", theory="acyclicity")
