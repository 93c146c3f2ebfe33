"""The native solver for clauses and acyclic graphs, without the rest of the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from isolang.arrays import np
from isolang.problem.until import remaining_seconds
from isolang.solvers.answer import Solution, conflicts_for
from isolang.solvers.clauses import with_selectors

if TYPE_CHECKING:
    from isolang.encodings.formula import Formula

_NO_LIMIT = 1 << 62


def solve(
    formula: Formula,
    *,
    until: float | None = None,
    seed: int = 0,
    progress: Callable[[str], object] | None = None,
    work: int = 0,
) -> Solution:
    """Solve a formula whose theory is ``acyclicity`` or ``none``.

    Raises:
        TimeoutError: if ``time.perf_counter()`` has passed ``until``, or the work is used up.
    """
    from isolang import _native

    graph = formula.theory == "acyclicity"
    clauses, selectors = with_selectors(formula)
    solver = _native.AcyclicSolver(formula.nodes if graph else 0, seed)
    solver.new_variables(formula.variables + len(selectors))
    solver.add_clauses(np.ascontiguousarray(clauses, np.int32))
    if graph:
        solver.add_edges(np.ascontiguousarray(formula.edges, np.int32))
    found = solver.solve(
        seconds=remaining_seconds(until) or 0.0,
        max_conflicts=conflicts_for(work, formula) or _NO_LIMIT,
        assumptions=selectors,
        progress=progress,
    )
    if found is None:
        raise TimeoutError
    statistics = {name: float(value) for name, value in solver.statistics().items()}
    if found:
        values = solver.model()[: formula.variables + 1]
        return Solution(satisfiable=True, values=values, statistics=statistics)
    first = formula.variables + 1
    core = tuple(sorted(literal - first for literal in solver.core()))
    return Solution(satisfiable=False, core=core, statistics=statistics)
