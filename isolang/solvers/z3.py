"""The solver Z3, for bit-vectors and integers, and for acyclicity through a user propagator."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from isolang.arrays import np
from isolang.problem.until import remaining_seconds
from isolang.solvers.answer import Solution

if TYPE_CHECKING:
    from isolang.encodings.formula import Formula


# The number of work units per unit of Z3's resource count. Unlike the number of conflicts, the
# resource count includes propagation.
_WORK_PER_RESOURCE = 6


def solve(
    formula: Formula, *, until: float | None = None, seed: int = 0, work: int = 0
) -> Solution:
    """Solve a formula in any theory.

    Raises:
        TimeoutError: if ``time.perf_counter()`` has passed ``until``, or the work is used up.
    """
    import z3

    context = new_context()
    # Z3's general solver would preprocess the formula, but that does not make these formulas
    # easier.
    solver = z3.SimpleSolver(ctx=context)
    solver.set("random_seed", seed % (1 << 31))
    if formula.theory == "difference":
        solver.set("arith.solver", 1)  # much faster for difference logic than the default
    # The formula is passed as text, because building terms one by one from Python is much slower.
    solver.from_string(_text(formula))
    selectors = {f"read{row}": row for row in range(len(formula.reads))}
    true = [z3.BoolVal(True, context)]
    true += z3.Bools([f"v{i}" for i in range(1, formula.variables + 1)], context)
    propagator = _propagator()(solver, formula, true) if formula.theory == "acyclicity" else None
    try:
        if propagator is not None and propagator.contradiction:
            return Solution(satisfiable=False, core=())
        remaining = remaining_seconds(until)
        if remaining is not None:
            solver.set("timeout", max(1, int(remaining * 1000)))
        solver.set("rlimit", resource_limit(work))
        found = solver.check(*z3.Bools(list(selectors), context))
    finally:
        if propagator is not None:
            propagator.release()
    statistics = solver_statistics(solver)
    if found == z3.unsat:
        core = sorted(selectors[str(selector)] for selector in solver.unsat_core())
        return Solution(satisfiable=False, core=tuple(core), statistics=statistics)
    if found != z3.sat:
        raise TimeoutError
    model = solver.model()
    values = np.zeros(formula.variables + 1, np.int8)
    for variable in range(1, formula.variables + 1):
        values[variable] = z3.is_true(model.eval(true[variable]))
    return Solution(satisfiable=True, values=values, statistics=statistics)


def new_context() -> Any:
    """Return a new Z3 context.

    Each formula needs its own context, because earlier formulas in the same context could affect
    Z3's search.
    """
    import z3

    return z3.Context()


def resource_limit(work: int) -> int:
    """Return the limit on Z3's resource count for a work limit; both are 0 for no limit."""
    return min(-(-work // _WORK_PER_RESOURCE), (1 << 32) - 1)


def _text(formula: Formula) -> str:
    """Return the formula in SMT-LIB 2, where a selector ``read…`` implies each read's clause."""

    def term(literal: int) -> str:
        return f"v{literal}" if literal > 0 else f"(not v{-literal})"

    lines = [f"(declare-const v{i} Bool)" for i in range(1, formula.variables + 1)]
    lines += [f"(declare-const read{row} Bool)" for row in range(len(formula.reads))]
    rows = {int(clause): row for row, clause in enumerate(formula.reads[:, 1])}
    for number, clause in enumerate(formula.clause_list()):
        terms = [term(literal) for literal in clause]
        if number in rows:
            terms.append(f"(not read{rows[number]})")
        lines.append(f"(assert (or false {' '.join(terms)}))")
    if formula.theory in ("difference", "bitvector"):
        bits = formula.theory == "bitvector"
        sort, less = (f"(_ BitVec {formula.width})", "bvult") if bits else ("Int", "<")
        lines += [f"(declare-const n{i} {sort})" for i in range(formula.nodes)]
        for u, v, literal in formula.edges.tolist():
            up = f"({less} n{u} n{v})"
            lines.append(f"(assert (or {term(-literal)} {up}))" if literal else f"(assert {up})")
    return "\n".join(lines)


def solver_statistics(solver: Any) -> dict[str, float]:
    """Return the number of conflicts and of decisions reported by a Z3 solver, by name."""
    statistics = solver.statistics()
    names = {"conflicts", "decisions", "sat conflicts", "sat decisions"}
    return {
        key.removeprefix("sat "): float(statistics.get_key_value(key))
        for key in statistics.keys()  # noqa: SIM118 - not a mapping
        if key in names
    }


@cache
def _propagator() -> Any:
    """Create the propagator class, whose base class exists only once Z3 has been imported."""
    import z3

    from isolang.solvers.acyclic_order import AcyclicOrder

    class Acyclicity(z3.UserPropagateBase):  # type: ignore[misc]
        """Adds an edge when its literal becomes true, and reports the literals of a cycle."""

        def __init__(self, solver: Any, formula: Formula, true: list[Any]) -> None:
            super().__init__(solver)
            self._true = true
            self._order: AcyclicOrder | None = AcyclicOrder(formula.nodes)
            self._edges: dict[int, list[tuple[int, int]]] = {}
            self._levels: list[int] = []
            self.contradiction = False
            for u, v, literal in formula.edges.tolist():
                if literal == 0:
                    self.contradiction |= self._order.add(u, v, 0) is not None
                else:
                    self._edges.setdefault(literal, []).append((u, v))
            self._variable: dict[int, int] = {}
            self.add_fixed(self._fixed)
            for variable in sorted({abs(literal) for literal in self._edges}):
                self._variable[true[variable].get_id()] = variable
                self.add(true[variable])

        def release(self) -> None:
            """Drop all references to the solver, because Z3 keeps propagators until the end."""
            self.solver = self.fixed = self._order = None
            self._true, self._edges, self._variable = [], {}, {}

        def push(self) -> None:
            if self._order is not None:
                self._levels.append(self._order.edges())

        def pop(self, num_scopes: int) -> None:
            if self._order is None:
                return
            self._order.shrink(self._levels[-num_scopes])
            del self._levels[-num_scopes:]

        def fresh(self, new_ctx: Any) -> Any:
            raise NotImplementedError("cannot copy the solver")

        def _fixed(self, term: Any, value: Any) -> None:
            if self._order is None:
                return
            variable = self._variable[term.get_id()]
            literal = variable if z3.is_true(value) else -variable
            for u, v in self._edges.get(literal, ()):
                cycle = self._order.add(u, v, literal)
                if cycle is not None:
                    self.conflict([self._true[abs(x)] for x in dict.fromkeys(cycle)])
                    return

    return Acyclicity
