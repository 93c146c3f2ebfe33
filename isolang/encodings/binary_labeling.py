"""Binary labels: each node has a number of k bits, and an edge that is there makes it go up.

With n nodes, k = ⌈log₂ n⌉ bits are enough for a topological order. Janota, Grigore and Manquinho,
"On the quest for an acyclic graph" (2017), compare this encoding of acyclicity with others; over
bit-vectors it is the Z3 baseline of Cobra.

In plain CNF a comparison ``a < b`` is a chain from the lowest bit up: ``less(i) → (¬aᵢ ∧ bᵢ) ∨
((aᵢ ≡ bᵢ) ∧ less(i-1))``, in one direction only, since nothing needs the comparison to be false.
Size: k variables per node, k per possible edge, about 3k clauses per possible edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from isolang.encodings.dependencies import finished
from isolang.encodings.edge_variables import edge_variables
from isolang.encodings.formula import Builder, Formula
from isolang.problem.until import remaining_seconds

if TYPE_CHECKING:
    from isolang.problem.polygraph import Polygraph


def encode(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Encode in plain CNF."""
    return _labelled(polygraph, "none", until)


def encode_bitvector(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Encode over bit-vectors, for solvers that have them."""
    return _labelled(polygraph, "bitvector", until)


def _labelled(
    polygraph: Polygraph, theory: Literal["none", "bitvector"], until: float | None
) -> Formula:
    builder, nodes = Builder(), polygraph.graph.nodes
    choices = edge_variables(builder, polygraph, combined=False)
    if theory == "none":
        label(builder, nodes, until=until)
    return finished(
        builder, polygraph, *choices, encoding="binary_labeling", theory=theory,
        width=width_of(nodes),
    )  # fmt: skip


def label(builder: Builder, nodes: int, *, until: float | None = None) -> None:
    """Give each node a number of k bits, and make the edges that are there go up, by clauses.

    Raises:
        TimeoutError: the moment ``until`` (of ``time.perf_counter``) came.
    """
    width = width_of(nodes)
    bits = builder.new(nodes * width, lambda i: f"bit {i % width} of node {i // width}").reshape(
        -1, width
    )
    u, v, guard = builder.all_edges().T
    # less[e] at bit i: the lowest i + 1 bits of u's label are less than those of v's.
    below = None
    for i in range(width):
        remaining_seconds(until)
        less = builder.new(len(u), lambda e, i=i: f"bits 0-{i} of {u[e]} < those of {v[e]}")  # type: ignore[misc]
        a, b = bits[u, i], bits[v, i]
        builder.clauses(-less, -a, b)
        if below is None:
            builder.clauses(-less, -a)
            builder.clauses(-less, b)
        else:
            builder.clauses(-less, -a, below)  # a ∧ b: equal here
            builder.clauses(-less, b, below)  # ¬a ∧ ¬b: equal here
        below = less
    assert below is not None
    builder.clauses(-guard, below)


def width_of(nodes: int) -> int:
    """The number of bits that give each node its own number."""
    return max(1, (nodes - 1).bit_length())
