"""Creates a variable for each possible edge, implied by the choices that add the edge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.arrays import np
from isolang.encodings.dependencies import choose_sources, list_dependencies, names_of
from isolang.encodings.formula import Builder, Ints

if TYPE_CHECKING:
    from isolang.problem.event_graph import Edges
    from isolang.problem.polygraph import Polygraph


def edge_variables(builder: Builder, polygraph: Polygraph, *, combined: bool) -> tuple[Ints, Ints]:
    """Create a variable for each source choice, each open pair of chains and each possible edge.

    Returns:
        The literal of each source choice, and the array ``Formula.reads``.
    """
    graph, names = polygraph.graph, names_of(polygraph)
    choice, reads = choose_sources(builder, polygraph)
    every = list_dependencies(polygraph, combined=combined)
    builder.edges(every.known[:, 0], every.known[:, 1], 0)
    pairs = every.chains.open
    order = builder.new(len(pairs), lambda i: names.order(int(pairs[i, 0]), int(pairs[i, 1])))
    rows = EdgeRows(graph.nodes)
    rows.sources(polygraph, choice)
    rows.add(graph.ww(every.ww_first, every.ww_second), 0, signed_literals(order, every.ww_order))
    rows.add(
        graph.rw(every.rw_read, every.rw_writer),
        signed_literals(choice, every.rw_choice),
        signed_literals(order, every.rw_order),
    )
    rows.finish(builder)
    return choice, reads


def bipath_constraints(builder: Builder, polygraph: Polygraph) -> tuple[Ints, Ints]:
    """Create the constraints of Papadimitriou's polygraph, and constraints for all other pairs.

    There is one constraint for each possible source of a read and each other writer not yet ordered
    relative to that source. There is also one constraint for each pair of writers that is not
    constrained by a read with a settled source. In Papadimitriou's polygraph, if S reads from T,
    then another writer U comes before T or after S. In this encoding, each constraint also contains
    the order of T and U, because most automata have ``ww`` steps. Two constraints on the same pair
    cannot contradict each other, because that would create a cycle of ``ww`` edges.

    Returns:
        The literal of each source choice, and the array ``Formula.reads``.
    """
    graph, names, native = polygraph.graph, names_of(polygraph), polygraph.problem.native
    choice, reads = choose_sources(builder, polygraph)
    every = list_dependencies(polygraph)
    builder.edges(every.known[:, 0], every.known[:, 1], 0)
    rows = EdgeRows(graph.nodes)
    rows.sources(polygraph, choice)
    pairs = every.chains.open

    (certain,) = np.nonzero(every.rw_order == 0)  # anti-dependencies that require only a source
    rows.add(
        graph.rw(every.rw_read[certain], every.rw_writer[certain]),
        signed_literals(choice, every.rw_choice[certain]),
        0,
    )
    (path,) = np.nonzero(every.rw_order)
    side, pair = every.rw_order[path], pairs[np.abs(every.rw_order[path]) - 1]
    source = np.where(side > 0, pair[:, 0], pair[:, 1])
    other = np.where(side > 0, pair[:, 1], pair[:, 0])
    reader = native.read_txn[every.rw_read[path]]
    after = builder.new(
        len(path),
        lambda i: (
            f"{names.writer(int(other[i]))} after {names.txn(int(reader[i]))}'s read of "
            f"{names.writer(int(source[i]))}"
        ),
    )
    guard = signed_literals(choice, every.rw_choice[path])
    rows.add(graph.rw(every.rw_read[path], other), guard, after)
    rows.add(graph.ww(source, other), guard, after)
    rows.add(graph.ww(other, source), guard, -after)

    # the pairs already constrained by a read with a settled source
    ordered = np.zeros(len(pairs), bool)
    ordered[np.abs(side[every.rw_choice[path] == 0]) - 1] = True
    a, b = pairs[~ordered].T
    order = builder.new(len(a), lambda i: names.order(int(a[i]), int(b[i])))
    rows.add(graph.ww(a, b), 0, order)
    rows.add(graph.ww(b, a), 0, -order)
    rows.finish(builder)
    return choice, reads


def signed_literals(literals: Ints, numbers: Ints) -> Ints:
    """Translate each number ±(1 + i) to the literal ±``literals[i]``; 0 stays 0."""
    padded = np.concatenate([np.zeros(1, np.int32), literals])
    found: Ints = (np.sign(numbers) * padded[np.abs(numbers)]).astype(np.int32)
    return found


class EdgeRows:
    """Collects possible edges. An edge is present if its one or two literals are true."""

    def __init__(self, nodes: int) -> None:
        self._nodes = max(nodes, 1)
        self._columns: list[tuple[Ints, Ints, Ints, Ints]] = []

    def add(self, edges: Edges, first: Ints | int, second: Ints | int) -> None:
        """Add an edge for each pair.

        Args:
            second: a second literal of each pair, or one literal for all pairs; 0 for none.
        """
        u, v, origin = edges
        size = int(origin.max()) + 1 if len(origin) else 0
        one, two = (
            np.broadcast_to(np.asarray(x, np.int32), max(size, np.size(x))) for x in (first, second)
        )
        self._columns.append((u, v, one[origin], two[origin]))

    def sources(self, polygraph: Polygraph, choice: Ints) -> None:
        """Add the ``wr`` edges of the source choices, with the literals ``choice``."""
        self.add(polygraph.graph.wr(polygraph.choice_writer, polygraph.choice_read), choice, 0)

    def finish(self, builder: Builder) -> None:
        """Create one variable for each distinct edge, implied by the literals of each copy."""
        u, v, one, two = (np.concatenate([c[i] for c in self._columns]) for i in range(4))
        ends, which = np.unique(u.astype(np.int64) * self._nodes + v, return_inverse=True)
        tails, heads = np.divmod(ends, self._nodes)
        edge = builder.new(len(ends), lambda i: f"edge {tails[i]} -> {heads[i]}")
        builder.clauses(-one, -two, edge[which])
        builder.edges(tails.astype(np.int32), heads.astype(np.int32), edge)
