"""Binary labels: each node has a number of k bits, and each present edge leads to a larger number.

With n nodes, k = ⌈log₂ n⌉ bits are enough for a topological order. Janota, Grigore and Manquinho,
"On the quest for an acyclic graph" (2017), compare this encoding of acyclicity with others; over
bit-vectors it is the Z3 baseline of Cobra.

In plain CNF a comparison ``a < b`` is a chain from the lowest bit up: ``less(i) → (¬aᵢ ∧ bᵢ) ∨
((aᵢ ≡ bᵢ) ∧ less(i-1))``, in one direction only, since nothing needs the comparison to be false.
Size: k variables for each node, k variables and about 3k clauses for each possible edge.
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
    """Encode a polygraph in plain CNF."""
    return _labelled(polygraph, "none", until)


def encode_bitvector(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Encode a polygraph over bit-vectors, for solvers that support them."""
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
    """Add a number of k bits for each node, and clauses by which present edges lead to larger ones.

    Raises:
        TimeoutError: the time is past ``until`` (of ``time.perf_counter``).
    """
    width = width_of(nodes)
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
            builder.clauses(-less, -a, below)  # a ∧ b: this bit is equal
            builder.clauses(-less, b, below)  # ¬a ∧ ¬b: this bit is equal
        below = less
    assert below is not None
    builder.clauses(-guard, below)


def width_of(nodes: int) -> int:
    """Return the number of bits that suffice to give each node a different number."""
    return max(1, (nodes - 1).bit_length())
