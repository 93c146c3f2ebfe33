"""Integer labels: each node has an integer, and an edge that is there makes it go up.

Difference logic. Size: the variables and clauses of the choices, an integer per node, and an
implication per possible edge; known edges are plain constraints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.encodings.dependencies import finished
from isolang.encodings.edge_variables import edge_variables
from isolang.encodings.formula import Builder, Formula

if TYPE_CHECKING:
    from isolang.problem.polygraph import Polygraph


def encode(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Encode with integers."""
    builder = Builder()
    choices = edge_variables(builder, polygraph, combined=False)
    return finished(builder, polygraph, *choices, encoding="integer_order", theory="difference")
