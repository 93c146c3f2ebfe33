"""Encodes acyclicity with integers: each edge leads to a node with a larger integer.

The formula is in difference logic. Besides the variables and clauses for the choices, it has an
integer for each node and an implication for each possible edge. Known edges are unconditional
constraints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.encodings.dependencies import build_formula
from isolang.encodings.edge_variables import edge_variables
from isolang.encodings.formula import Builder, Formula

if TYPE_CHECKING:
    from isolang.problem.polygraph import Polygraph


def encode(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Encode a polygraph in difference logic."""
    builder = Builder()
    choices = edge_variables(builder, polygraph, combined=False)
    return build_formula(
        builder, polygraph, *choices, encoding="integer_order", theory="difference"
    )
