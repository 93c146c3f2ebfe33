"""An encoding of one's own, for docs/adding-an-encoding.md: one Boolean per pair of nodes.

`before(u, v)` is a strict partial order, said by clauses: no node is before itself, and before is
transitive. That is n² variables and n³ clauses, so it is for small histories only.
"""

from itertools import product

import numpy as np

from isolang import check, load_history, load_spec
from isolang.encodings.dependencies import build_formula
from isolang.encodings.edge_variables import edge_variables
from isolang.encodings.formula import Builder, PolygraphFormula
from isolang.encodings.registry import ENCODINGS, Encoding
from isolang.problem.polygraph import Polygraph


def encode(polygraph: Polygraph, *, until: float | None = None) -> PolygraphFormula:
    """A variable per possible edge, and an order that those which are there must follow."""
    builder = Builder()
    choice, reads = edge_variables(builder, polygraph, combined=False)
    n = polygraph.graph.nodes
    before = builder.new(n * n, lambda i: f"node {i // n} before node {i % n}").reshape(n, n)
    builder.clauses(-before.diagonal())
    u, v, w = np.array(list(product(range(n), repeat=3))).T
    builder.clauses(-before[u, v], -before[v, w], before[u, w])
    tails, heads, guard = builder.all_edges().T
    builder.clauses(-guard, before[tails, heads])
    return build_formula(
        builder, polygraph, encoding="partial_order", theory="none", choice=choice, reads=reads
    )


ENCODINGS["partial_order"] = Encoding(
    name="partial_order", makers={"none": f"{__name__}:encode"}, source="this file"
)

if __name__ == "__main__":
    history = load_history("examples/on-call.edn")
    for level in ("si", "ser"):
        verdict = check(history, load_spec(level), encoding="partial_order", prune="none")
        print(f"{level}: {verdict.outcome} by {verdict.encoding} and {verdict.solver}")
