"""The solver clingo, with clauses as integrity constraints and its built-in acyclicity check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolang.arrays import np
from isolang.problem.until import remaining_seconds
from isolang.solvers.answer import Solution, conflicts_for

if TYPE_CHECKING:
    from isolang.encodings.formula import Formula


def solve(
    formula: Formula, *, until: float | None = None, seed: int = 0, work: int = 0
) -> Solution:
    """Solve a formula whose theory is ``acyclicity`` or ``none``.

    Raises:
        TimeoutError: if ``time.perf_counter()`` has passed ``until``, or the work is used up.
    """
    import clingo

    control = clingo.Control([f"--seed={seed % (1 << 31)}", "--warn=none"], logger=lambda *_: None)
    with control.backend() as backend:
        atoms: list[int] = [0, *(backend.add_atom() for _ in range(formula.variables))]
        if len(atoms) > 1:
            backend.add_rule(atoms[1:], choice=True)

        def atom(literal: int) -> int:
            return atoms[literal] if literal > 0 else -atoms[-literal]

        for clause in formula.clause_list():
            backend.add_rule([], [-atom(literal) for literal in clause])
        if formula.theory == "acyclicity":
            for u, v, literal in formula.edges.tolist():
                backend.add_acyc_edge(u, v, [atom(literal)] if literal else [])
    if conflicts := conflicts_for(work, formula):
        limits: Any = control.configuration.solve
        limits.solve_limit = str(conflicts)
    found: list[Any] = []
    with control.solve(
        on_model=lambda m: found.append(_true(m, formula, atoms)), async_=True
    ) as run:
        remaining = remaining_seconds(until)
        if remaining is None:
            run.wait()
        elif not run.wait(remaining):
            run.cancel()
            raise TimeoutError
        satisfiable = run.get().satisfiable
        if satisfiable is None:
            raise TimeoutError
    solvers = control.statistics["solving"]["solvers"]
    statistics = {"conflicts": float(solvers["conflicts"]), "decisions": float(solvers["choices"])}
    if not satisfiable:
        return Solution(satisfiable=False, statistics=statistics)
    return Solution(satisfiable=True, values=found[-1], statistics=statistics)


def _true(model: Any, formula: Formula, atoms: list[int]) -> Any:
    values = np.zeros(formula.variables + 1, np.int8)
    for variable in range(1, formula.variables + 1):
        values[variable] = model.is_true(atoms[variable])
    return values
