"""A solver of one's own, for docs/adding-an-encoding.md: plain backtracking over the clauses."""

import time

import numpy as np
from numpy.typing import NDArray

from isolang import check, load_history, load_spec
from isolang.encodings.decode import topological_order
from isolang.encodings.formula import Formula
from isolang.solvers.answer import Solution
from isolang.solvers.registry import SOLVERS, Solver


def solve(formula: Formula, *, until: float | None = None, seed: int = 0) -> Solution:
    """Solve a formula whose theory is acyclicity or none."""
    clauses = formula.clause_list()
    conflicts = 0

    def search(values: NDArray[np.int8], variable: int) -> NDArray[np.int8] | None:
        nonlocal conflicts
        if until is not None and time.perf_counter() > until:
            raise TimeoutError
        known = values[:variable]
        if any(all(abs(x) < variable and known[abs(x)] != (x > 0) for x in c) for c in clauses):
            conflicts += 1
            return None
        if variable == len(values):
            there = formula.edges[formula.present(values)]
            acyclic = formula.theory == "none"
            acyclic = (
                acyclic or topological_order(formula.nodes, there[:, 0], there[:, 1]) is not None
            )
            conflicts += not acyclic
            return values if acyclic else None
        for value in (0, 1):
            values[variable] = value
            if (found := search(values, variable + 1)) is not None:
                return found
        return None

    found = search(np.zeros(formula.variables + 1, np.int8), 1)
    return Solution(
        satisfiable=found is not None, values=found, statistics={"conflicts": float(conflicts)}
    )


SOLVERS["backtracking"] = Solver(
    name="backtracking", module=__name__, theories=("acyclicity", "none")
)

if __name__ == "__main__":
    history = load_history("examples/on-call.edn")
    for level in ("si", "ser"):
        verdict = check(history, load_spec(level), solver="backtracking", prune="none")
        print(f"{level}: {verdict.outcome} by {verdict.encoding} and {verdict.solver}")
