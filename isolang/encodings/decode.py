"""Decodes assignments into the source of each read and the version order of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.arrays import np
from isolang.problem.problem import InclusionStatus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang.encodings.formula import Formula, PolygraphFormula
    from isolang.problem.polygraph import Polygraph

    Ints = NDArray[np.int32]


class NoOrderError(Exception):
    """Raised when the edges of an assignment form a cycle, which is a solver error."""


def decode(
    formula: PolygraphFormula, values: NDArray[np.int8]
) -> tuple[Ints, NDArray[np.int64], Ints]:
    """Return the sources and the version orders chosen by an assignment.

    Returns:
        Three arrays. The first has the source writer of each read, or -1. The others are ``start``
        and ``txn``: ``txn[start[k] : start[k + 1]]`` are the writers of key k in version order,
        without T0.

    Raises:
        NoOrderError: if the present edges form a cycle.
    """
    polygraph = formula.polygraph
    order = order_of(formula, values)
    rank = np.empty(formula.nodes, np.int64)
    rank[order] = np.arange(formula.nodes)
    native = polygraph.problem.native
    key = np.repeat(np.arange(native.keys), np.diff(native.key_start))
    by_key = np.lexsort((rank[polygraph.graph.order_node], key))
    txn = native.writer_txn[by_key]
    # the index of each key's first writer if T0 is left out
    start = native.key_start.astype(np.int64) - np.arange(native.keys + 1)
    return _sources(formula, values), start, txn[txn != native.n]


def order_of(formula: Formula, values: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return a topological order of the nodes under the edges made present by an assignment.

    Raises:
        NoOrderError: if these edges form a cycle.
    """
    there = formula.present(values)
    order = topological_order(formula.nodes, formula.edges[there, 0], formula.edges[there, 1])
    if order is None:
        raise NoOrderError(f"{formula.encoding}: the edges of the assignment form a cycle")
    return order


def _sources(formula: PolygraphFormula, values: NDArray[np.int8]) -> Ints:
    polygraph = formula.polygraph
    native = polygraph.problem.native
    source = polygraph.source.copy()
    if polygraph.graph.uses_reads:
        literal = formula.choice
        chosen = values[np.abs(literal)] == (literal > 0)
    else:  # no check depends on sources, so any candidate may be the source
        per_read = np.diff(native.candidate_start)
        source = np.full(len(per_read), -1, np.int32)
        source[per_read > 0] = native.candidate[native.candidate_start[:-1][per_read > 0]]
        chosen = np.zeros(0, bool)
    if len(chosen):
        # reversed, because the last assignment wins and the first true candidate must be the source
        reads = polygraph.choice_read[chosen][::-1]
        source[reads] = polygraph.choice_writer[chosen][::-1]
    return _sources_of_included(polygraph, source)


def _sources_of_included(polygraph: Polygraph, source: Ints) -> Ints:
    """Return the sources, with -1 for reads of transactions excluded by the model.

    An optional transaction is included if an included transaction reads from it.
    """
    native = polygraph.problem.native
    included = native.inclusion == int(InclusionStatus.IN)
    while True:
        reading = included[native.read_txn] & (source >= 0)
        written = native.writer_txn[source[reading]]
        if included[written].all():
            break
        included[written] = True
    return np.where(included[native.read_txn], source, -1).astype(np.int32)


def topological_order(nodes: int, u: Ints, v: Ints) -> NDArray[np.int64] | None:
    """Return a topological order of the nodes, or ``None`` if the edges form a cycle.

    Args:
        nodes: the number of nodes.
        u: the start node of each edge.
        v: the end node of each edge.
    """
    by_tail = np.argsort(u, kind="stable")
    heads = v[by_tail].tolist()
    start = np.searchsorted(u[by_tail], np.arange(nodes + 1)).tolist()
    waiting = np.bincount(v, minlength=nodes).tolist()
    ready = [node for node in range(nodes) if waiting[node] == 0]
    order: list[int] = []
    while ready:
        node = ready.pop()
        order.append(node)
        for head in heads[start[node] : start[node + 1]]:
            waiting[head] -= 1
            if waiting[head] == 0:
                ready.append(head)
    return np.array(order, np.int64) if len(order) == nodes else None
