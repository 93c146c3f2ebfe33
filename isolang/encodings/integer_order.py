"""Integer labels: each node has an integer, and each present edge leads to a larger one.

The formula is in difference logic. Besides the variables and clauses of the choices, it has an
integer for each node and an implication for each possible edge; known edges are plain constraints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.encodings.dependencies import finished
from isolang.encodings.edge_variables import edge_variables
from isolang.encodings.formula import Builder, Formula

if TYPE_CHECKING:
    from isolang.problem.polygraph import Polygraph


def encode(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Encode a polygraph in difference logic."""
    builder = Builder()
    choices = edge_variables(builder, polygraph, combined=False)
    return finished(builder, polygraph, *choices, encoding="integer_order", theory="difference")
