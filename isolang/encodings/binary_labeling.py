"""Encodes acyclicity with binary labels: each edge leads to a node with a larger k-bit number.

With n nodes, k = ⌈log₂ n⌉ bits are enough for a topological order. Janota, Grigore and Manquinho,
"On the quest for an acyclic graph" (2017), compare this acyclicity encoding with others. Over
bit-vectors, it is the Z3 baseline in the Cobra paper.

In CNF, a comparison ``a < b`` is a chain of implications, beginning at the lowest bit: ``less(i) →
(¬aᵢ ∧ bᵢ) ∨ ((aᵢ ≡ bᵢ) ∧ less(i-1))``. The reverse implications are not needed, because no clause
requires a comparison to be false.

Size: there are k variables for each node, and k variables and about 3k clauses for each possible
edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from isolang.encodings.dependencies import build_formula
from isolang.encodings.edge_variables import edge_variables
from isolang.encodings.formula import Builder, Formula
from isolang.problem.until import remaining_seconds

if TYPE_CHECKING:
    from isolang.problem.polygraph import Polygraph


def encode(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Encode a polygraph in CNF, for solvers that support only clauses."""
    return _encode_with_labels(polygraph, "none", until)


def encode_bitvector(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Encode a polygraph over bit-vectors, for solvers that support them."""
    return _encode_with_labels(polygraph, "bitvector", until)


def _encode_with_labels(
    polygraph: Polygraph, theory: Literal["none", "bitvector"], until: float | None
) -> Formula:
    builder, nodes = Builder(), polygraph.graph.nodes
    choices = edge_variables(builder, polygraph, combined=False)
    if theory == "none":
        add_labels(builder, nodes, until=until)
    return build_formula(
        builder, polygraph, *choices, encoding="binary_labeling", theory=theory,
        width=label_width(nodes),
    )  # fmt: skip


def add_labels(builder: Builder, nodes: int, *, until: float | None = None) -> None:
    """Give each node a k-bit number, and require that present edges lead to larger numbers.

    Raises:
        TimeoutError: if ``time.perf_counter()`` has passed ``until``.
    """
    width = label_width(nodes)
    bits = builder.new(nodes * width, lambda i: f"bit {i % width} of node {i // width}").reshape(
        -1, width
    )
    u, v, guard = builder.all_edges().T
    # At bit i, less[e] means that the lowest i + 1 bits of u's label are less than those of v's.
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
            builder.clauses(-less, -a, below)  # the bits are equal because both are 1
            builder.clauses(-less, b, below)  # the bits are equal because both are 0
        below = less
    assert below is not None
    builder.clauses(-guard, below)


def label_width(nodes: int) -> int:
    """Return the number of bits needed to give each node a different number."""
    return max(1, (nodes - 1).bit_length())
