"""The python-sat solvers; CaDiCaL is the default.

These solvers do not support graphs. Therefore this module searches the edges of each model for
cycles, and adds a clause for each cycle, until a model has no cycle or there are no more models.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from isolang.arrays import np
from isolang.encodings.formula import split_clauses
from isolang.problem.until import remaining_seconds
from isolang.solvers.answer import Solution, conflicts_for
from isolang.solvers.clauses import with_selectors

if TYPE_CHECKING:
    from isolang.encodings.formula import Formula

DEFAULT = "cadical195"
# kissat aborts the process if clauses are added after a call of its `solve`.
UNUSABLE = ("kissat",)


def names() -> list[str]:
    """Return python-sat's names for the solvers that this module can use."""
    from pysat.solvers import SolverNames

    every = {n: aliases for n, aliases in vars(SolverNames).items() if not n.startswith("_")}
    if find_spec("pycryptosat") is None:
        every.pop("cryptosat", None)
    known = [n if n in aliases else max(aliases, key=len) for n, aliases in every.items()]
    return sorted(n for n in known if not n.startswith(UNUSABLE))


def solve(
    formula: Formula,
    *,
    until: float | None = None,
    seed: int = 0,
    name: str = DEFAULT,
    work: int = 0,
) -> Solution:
    """Solve a formula whose theory is ``acyclicity`` or ``none``.

    The function checks the deadline between two calls of the SAT solver. A timer also interrupts
    the solver if possible (CaDiCaL cannot be interrupted). Lingeling and CryptoMiniSat ignore
    ``work`` because their conflicts cannot be limited.

    Raises:
        TimeoutError: if ``time.perf_counter()`` has passed ``until``, or the work is used up.
    """
    from pysat.solvers import Solver

    clauses, selectors = with_selectors(formula)
    graph = _Graph(formula) if formula.theory == "acyclicity" else None
    rounds = cycles = 0
    counted: dict[str, float] = {}
    with Solver(name=name) as solver:
        top = formula.variables + len(selectors)
        if top:  # this tautology ensures that models have a value for every variable
            solver.append_formula([[top, -top]])
        solver.append_formula(split_clauses(clauses))
        while True:
            rounds += 1
            # Each round costs one unit per variable and edge. The rest is for conflicts.
            rest = work - rounds * (formula.variables + len(formula.edges))
            budget = conflicts_for(rest, formula) - int(counted.get("conflicts", 0))
            if work and (rest <= 0 or budget <= 0):
                raise TimeoutError
            satisfiable = _call(solver, selectors, until, budget if work else 0)
            counted = _counts(solver)
            statistics = {"rounds": rounds, "cycles": cycles, **counted}
            if not satisfiable:
                first = formula.variables + 1
                core = tuple(sorted(one - first for one in solver.get_core() or () if one >= first))
                return Solution(satisfiable=False, core=core, statistics=statistics)
            values = np.zeros(formula.variables + 1, np.int8)
            true = np.array(solver.get_model() or [0], np.int64)
            values[true[(true > 0) & (true <= formula.variables)]] = 1
            if graph is None:
                return Solution(satisfiable=True, values=values, statistics=statistics)
            found = list(graph.cycles(values))
            if not found:
                return Solution(satisfiable=True, values=values, statistics=statistics)
            remaining_seconds(until)
            cycles += len(found)
            for clause in found:
                if not clause:  # the cycle consists of edges that are always present
                    return Solution(satisfiable=False, core=(), statistics=statistics)
                solver.add_clause(clause)


def _call(solver: Any, assumptions: list[int], until: float | None, conflicts: int) -> bool:
    remaining = remaining_seconds(until)
    if conflicts:
        try:
            solver.conf_budget(conflicts)
        except NotImplementedError:
            conflicts = 0
    if remaining is None or not _is_interruptible(solver):
        if not conflicts:
            return bool(solver.solve(assumptions=assumptions))
        found = solver.solve_limited(assumptions=assumptions)
        if found is None:
            raise TimeoutError
        return bool(found)
    from threading import Timer

    timer = Timer(remaining, solver.interrupt)
    timer.start()
    try:
        found = solver.solve_limited(assumptions=assumptions, expect_interrupt=True)
    finally:
        timer.cancel()
    if found is None:
        raise TimeoutError
    return bool(found)


def _is_interruptible(solver: Any) -> bool:
    kind = type(solver.solver).__name__.lower()
    return any(part in kind for part in ("glucose", "minisat", "maplechrono", "minicard"))


def _counts(solver: Any) -> dict[str, float]:
    try:
        counted = solver.accum_stats() or {}
    except NotImplementedError:
        return {}
    return {name: float(counted[name]) for name in ("conflicts", "decisions") if name in counted}


class _Graph:
    """A formula's edges, prepared for finding cycles under several assignments."""

    def __init__(self, formula: Formula) -> None:
        self._nodes = formula.nodes
        self._formula = formula

    def cycles(self, values: Any) -> Iterator[list[int]]:
        """Yield clauses that each forbid a cycle; no two of these cycles share a node."""
        edges = self._formula.edges[self._formula.present(values)]
        edges = edges[np.argsort(edges[:, 0], kind="stable")]
        start = np.searchsorted(edges[:, 0], np.arange(self._nodes + 1)).tolist()
        heads, literals = edges[:, 1].tolist(), edges[:, 2].tolist()
        state = bytearray(self._nodes)  # for each node: 0 if new, 1 if on the path, 2 if finished
        place = [0] * self._nodes
        for root in range(self._nodes):
            if state[root]:
                continue
            path, via = [root], [0]
            state[root] = 1
            place[root] = start[root]
            while path:
                node = path[-1]
                at = place[node]
                if at == start[node + 1]:
                    state[node] = 2
                    path.pop()
                    via.pop()
                    continue
                place[node] = at + 1
                head = heads[at]
                if state[head] == 0:
                    state[head] = 1
                    place[head] = start[head]
                    path.append(head)
                    via.append(literals[at])
                elif state[head] == 1:
                    first = path.index(head)
                    on = [literals[at], *via[first + 1 :]]
                    yield [-literal for literal in dict.fromkeys(on) if literal]
                    for node in path[first:]:
                        state[node] = 2
                    del path[first:], via[first:]
