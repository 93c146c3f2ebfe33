"""Running a pair: a problem through an encoding to a solver, and its model back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from isolang.encodings.decode import NoOrderError, decode
from isolang.encodings.formula import Formula, PolygraphFormula
from isolang.encodings.registry import ENCODINGS
from isolang.encodings.relational_formula import (
    Question,
    RelationalFormula,
    decode_relations,
    question_of,
)
from isolang.errors import SolverError
from isolang.language.classify.event_graph import Plan
from isolang.problem.polygraph import build_polygraph
from isolang.solvers.answer import ChosenRelations, NoModel, WrongModelError
from isolang.solvers.native import Model
from isolang.solvers.registry import Pair, solver_of, theory_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang.language.classify.route import Route
    from isolang.language.meaning.core import Spec
    from isolang.problem import Problem
    from isolang.problem.polygraph import Polygraph


def written_spec(route: Route) -> Spec:
    """The specification as the user wrote it, where a theorem replaced it by another."""
    theorem = route.theorem if isinstance(route, Plan) else None
    return route.spec if theorem is None else theorem.original


def solve_pair(
    problem: Problem,
    route: Route,
    pair: Pair,
    *,
    seconds: float | None = None,
    seed: int = 0,
    progress: Callable[[str], object] = lambda phase: None,
) -> Model | ChosenRelations | NoModel:
    """Decide a problem whose intrinsic anomalies the caller has dealt with.

    Args:
        problem: the neutral problem.
        route: of the specification; the encoding applies to it.
        pair: not the native engine's own.
        seconds: wall-clock limit; how closely it is kept to depends on the solver.
        seed: breaks ties.
        progress: called with ``prune``, ``encode`` and ``solve`` as they begin.

    Returns:
        A model, in terms of sources and version orders, or of the relations of the specification,
        as the encoding has it; or that there is none.

    Raises:
        TimeoutError: the limit was reached.
        SolverError: there is no such pair, or it is not installed.
        UnsupportedError: the encoding would be too large.
        WrongModelError: the solver gave an assignment that is no model.
    """
    solver, part = solver_of(pair.solver)
    theory = theory_of(pair.encoding, solver)
    if theory is None:
        raise SolverError(f"{pair}: the solver does not take this encoding")
    until = None if seconds is None else time.perf_counter() + seconds
    watch = _Stopwatch()
    row = ENCODINGS[pair.encoding]
    subject: Polygraph | Question
    if row.of == "specification":
        subject = question_of(problem, written_spec(route))
    else:
        assert isinstance(route, Plan)
        progress("prune")
        subject = build_polygraph(problem, route.automata, pair.prune, until=until)  # type: ignore[arg-type]
    watch.lap("seconds_prune")
    progress("encode")
    formula = row.encode(subject, theory, until=until)
    watch.lap("seconds_encode")
    progress("solve")
    answer = solver.solve(formula, until=until, seed=seed, part=part)
    watch.lap("seconds_solve")
    statistics = {
        **answer.statistics,
        "nodes": float(formula.nodes),
        "variables": float(formula.variables),
        "clauses": float(formula.clause_count),
        "edges": float(len(formula.edges)),
        **watch.laps,
    }
    if not answer.satisfiable:
        core = None
        if answer.core is not None and row.of == "polygraph":
            core = tuple(problem.native.read_op[formula.reads[list(answer.core), 0]].tolist())
        return NoModel(core=core, statistics=statistics)
    assert answer.values is not None
    try:
        return _model(problem, formula, answer.values, statistics)
    except NoOrderError as error:
        raise WrongModelError(str(error)) from None


def _model(
    problem: Problem, formula: Formula, values: NDArray[np.int8], statistics: dict[str, float]
) -> Model | ChosenRelations:
    from isolang import _native

    if isinstance(formula, RelationalFormula):
        return ChosenRelations(chosen=decode_relations(formula, values), statistics=statistics)
    assert isinstance(formula, PolygraphFormula)
    source, start, txn = decode(formula, values)
    return Model(
        source=_native.operation_sources(problem.history.columns, problem.native, source),
        order_start=start,
        order_txn=txn,
        statistics=statistics,
    )


class _Stopwatch:
    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now
