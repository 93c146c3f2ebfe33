"""Vbox's encoding, with one variable per constraint, whose literal is shared by many edges.

Edges have no variables of their own. The edges of an open pair of chains have the pair's literal in
one direction, and its negation in the other. The edges of a source choice have that choice's
literal. An anti-dependency that requires both a source and an order has a variable for their
conjunction.

Size: there is a variable for each open pair of chains and each source choice. There are clauses
    only for reads, and for each combination of a source choice with a later chain. The solver's
    theory must allow several edges to share a literal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.arrays import np
from isolang.encodings.dependencies import (
    build_formula,
    choose_sources,
    list_dependencies,
    names_of,
)
from isolang.encodings.edge_variables import signed_literals
from isolang.encodings.formula import Builder, Formula
from isolang.problem.chains import chains_allowed

if TYPE_CHECKING:
    from isolang.problem.polygraph import Polygraph


def encode(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Encode a polygraph with one variable per constraint."""
    graph, names = polygraph.graph, names_of(polygraph)
    builder = Builder()
    choice, reads = choose_sources(builder, polygraph)
    every = list_dependencies(polygraph, combined=chains_allowed(graph.automata))
    builder.edges(every.known[:, 0], every.known[:, 1], 0)
    u, v, origin = graph.wr(polygraph.choice_writer, polygraph.choice_read)
    builder.edges(u, v, choice[origin])
    pairs = every.chains.open
    order = builder.new(len(pairs), lambda i: names.order(int(pairs[i, 0]), int(pairs[i, 1])))
    u, v, origin = graph.ww(every.ww_first, every.ww_second)
    builder.edges(u, v, signed_literals(order, every.ww_order)[origin])

    source, direction = (
        signed_literals(choice, every.rw_choice),
        signed_literals(order, every.rw_order),
    )
    literal = np.where(source == 0, direction, source)
    (both,) = np.nonzero((source != 0) & (direction != 0))
    couples = np.stack((source[both], direction[both]), axis=1)
    distinct, which = np.unique(couples, axis=0, return_inverse=True)
    together = builder.new(len(distinct), lambda i: f"{distinct[i, 0]} and {distinct[i, 1]}")
    builder.clauses(-distinct[:, 0], -distinct[:, 1], together)
    literal[both] = together[which.ravel()]
    u, v, origin = graph.rw(every.rw_read, every.rw_writer)
    builder.edges(u, v, literal[origin])
    return build_formula(
        builder, polygraph, choice, reads, encoding="one_variable", theory="acyclicity"
    )
