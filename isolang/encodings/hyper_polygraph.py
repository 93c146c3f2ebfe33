"""The hyper-polygraph encoding (VeriStrong), with a variable for each dependency.

There is one variable for each possible WW, WR and RW edge. Clauses derive the RW edges: ``wr(T, S)
∧ ww(T, U) → rw(S, U)``. Each pair of writers has exactly one direction, and each read has a source.
The edges whose variables are true must not form a cycle.

Size: if a key has W writers and R reads, and each read has C candidates, there are W² + R·C +
(distinct RW) variables and W² + R·C·W clauses.

With ``+2width``, the formula also has a clause for each edge, and for each pair of edges, that
closes a cycle together with known edges. This is a heuristic of the published solver.
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
from isolang.encodings.formula import Builder, Formula, Ints
from isolang.problem.until import remaining_seconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang.problem.polygraph import Polygraph


def encode(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Encode a polygraph without the clauses for two-edge cycles."""
    builder = Builder()
    choices = _dependencies(builder, polygraph)
    return build_formula(
        builder, polygraph, *choices, encoding="hyper_polygraph", theory="acyclicity"
    )


def encode_with_2width(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Encode a polygraph with clauses for cycles of known edges and one or two other edges."""
    builder = Builder()
    choices = _dependencies(builder, polygraph)
    _forbid_short_cycles(builder, polygraph.graph.nodes, until)
    return build_formula(
        builder, polygraph, *choices, encoding="hyper_polygraph+2width", theory="acyclicity"
    )


def _dependencies(builder: Builder, polygraph: Polygraph) -> tuple[Ints, Ints]:
    graph, native, names = polygraph.graph, polygraph.problem.native, names_of(polygraph)
    choice, reads = choose_sources(builder, polygraph)
    every = list_dependencies(polygraph)
    builder.edges(every.known[:, 0], every.known[:, 1], 0)
    u, v, origin = graph.wr(polygraph.choice_writer, polygraph.choice_read)
    builder.edges(u, v, choice[origin])

    # Each direction of an open pair of writers has its own variable.
    first, second = every.ww_first, every.ww_second
    ww = builder.new(len(first), lambda i: names.order(int(first[i]), int(second[i])))
    of_order = np.zeros(2 * len(every.chains.open) + 1, np.int32)
    of_order[every.ww_order] = ww  # ±(1 + i); negative numbers index from the end
    forward, backward = (
        of_order[1 : len(every.chains.open) + 1],
        of_order[: -len(every.chains.open) - 1 : -1],
    )
    builder.clauses(forward, backward)
    builder.clauses(-forward, -backward)
    u, v, origin = graph.ww(first, second)
    builder.edges(u, v, ww[origin])

    # All anti-dependencies between the same two transactions share a variable, whatever their key.
    # Anti-dependencies of predicate reads have a separate variable.
    kind = native.read_predicate[every.rw_read] if len(native.read_predicate) else 0
    code = (kind * np.int64(native.n + 1) + native.read_txn[every.rw_read]) * (native.n + 1)
    code += native.writer_txn[every.rw_writer]
    _, sample, which = np.unique(code, return_index=True, return_inverse=True)
    read, writer = every.rw_read[sample], every.rw_writer[sample]
    reader = native.read_txn[read]
    rw = builder.new(
        len(sample), lambda i: f"{names.txn(int(reader[i]))} -rw-> {names.writer(int(writer[i]))}"
    )
    guard = np.concatenate([np.zeros(1, np.int32), choice])[every.rw_choice]
    builder.clauses(-guard, -of_order[every.rw_order], rw[which])
    u, v, origin = graph.rw(read, writer)
    builder.edges(u, v, rw[origin])
    return choice, reads


def _forbid_short_cycles(builder: Builder, nodes: int, until: float | None) -> None:
    edges = builder.all_edges()
    known, open_ = edges[edges[:, 2] == 0], edges[edges[:, 2] != 0]
    reach = reachability(nodes, known[:, :2], until)
    if reach is None:
        return  # the known edges already form a cycle, which any solver finds
    u, v, literal = open_.T
    alone = reach[v, u]
    builder.clauses(-literal[alone])
    u, v, literal = open_[~alone].T
    for i in range(len(u)):
        if i % 256 == 0:
            remaining_seconds(until)
        # Edge i and a later edge close a cycle if the head of each reaches the tail of the other.
        closes = reach[v[i], u[i + 1 :]] & reach[v[i + 1 :], u[i]]
        if closes.any():
            others = np.unique(literal[i + 1 :][closes])
            builder.clauses(-literal[i], -others[others != literal[i]])


def reachability(nodes: int, edges: Ints, until: float | None = None) -> NDArray[np.bool_] | None:
    """Return a matrix bool[nodes, nodes] that says whether the row's node reaches the column's.

    Each node reaches itself. If the edges form a cycle, return ``None``.
    """
    from isolang.encodings.decode import topological_order

    order = topological_order(nodes, edges[:, 0], edges[:, 1])
    if order is None:
        return None
    reach = np.eye(nodes, dtype=bool)
    by_tail = edges[np.argsort(edges[:, 0], kind="stable")]
    start = np.searchsorted(by_tail[:, 0], np.arange(nodes + 1))
    for number, node in enumerate(order[::-1].tolist()):
        if number % 1024 == 0:
            remaining_seconds(until)
        heads = by_tail[start[node] : start[node + 1], 1]
        if len(heads):
            reach[node] |= reach[heads].any(axis=0)
    return reach
