"""Vbox's encoding: one variable per constraint, whose literal guards a whole set of edges.

Edges have no variables. The edges of a pair of chains carry the pair's literal in one direction and
its negation in the other, and the edges of a source carry the source's literal. An anti-dependency
that needs both a chosen source and an order has a variable for their conjunction.

Size: there is a variable for each pair of chains and each open source. There are clauses only for
the reads and for each open source with a later chain. Several edges share a literal, which the
solver's theory must support.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolang.encodings.dependencies import choose_sources, dependencies, finished, names_of
from isolang.encodings.edge_variables import signed
from isolang.encodings.formula import Builder, Formula
from isolang.problem.chains import chains_allowed

if TYPE_CHECKING:
    from isolang.problem.polygraph import Polygraph


def encode(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Encode a polygraph with one variable for each constraint."""
    graph, names = polygraph.graph, names_of(polygraph)
    builder = Builder()
    choice, reads = choose_sources(builder, polygraph)
    every = dependencies(polygraph, combined=chains_allowed(graph.automata))
    builder.edges(every.known[:, 0], every.known[:, 1], 0)
    u, v, origin = graph.wr(polygraph.choice_writer, polygraph.choice_read)
    builder.edges(u, v, choice[origin])
    pairs = every.chains.open
    order = builder.new(len(pairs), lambda i: names.order(int(pairs[i, 0]), int(pairs[i, 1])))
    u, v, origin = graph.ww(every.ww_first, every.ww_second)
    builder.edges(u, v, signed(order, every.ww_order)[origin])

    source, direction = signed(choice, every.rw_choice), signed(order, every.rw_order)
    literal = np.where(source == 0, direction, source)
    (both,) = np.nonzero((source != 0) & (direction != 0))
    couples = np.stack((source[both], direction[both]), axis=1)
    distinct, which = np.unique(couples, axis=0, return_inverse=True)
    together = builder.new(len(distinct), lambda i: f"{distinct[i, 0]} and {distinct[i, 1]}")
    builder.clauses(-distinct[:, 0], -distinct[:, 1], together)
    literal[both] = together[which.ravel()]
    u, v, origin = graph.rw(every.rw_read, every.rw_writer)
    builder.edges(u, v, literal[origin])
    return finished(builder, polygraph, choice, reads, encoding="one_variable", theory="acyclicity")
