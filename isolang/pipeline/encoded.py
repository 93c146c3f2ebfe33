"""Decides a run's history with an encoding and a solver, instead of the native engine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from isolang.arrays import np
from isolang.certify.proofs import Proof, Relations, Witness
from isolang.language.classify.event_graph import Plan
from isolang.problem import Problem
from isolang.solvers.answer import Answer, Undecided, Unproved, work_of
from isolang.solvers.registry import solver_of, theory_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang.encodings.formula import Formula
    from isolang.encodings.relational.formula import RelationalInput
    from isolang.pipeline.pair_run import PairRun
    from isolang.problem.polygraph import Polygraph

# The work charged for encoding: per clause, and per step of a relational encoding.
_PER_CLAUSE, _PER_STEP = 5, 5


def solve_encoded(run: PairRun) -> Answer:
    """Encode a run's problem, solve the formula, and decode the model.

    Raises:
        TimeoutError: if the deadline has passed, or if the work limit is reached.
        MemoryError: if the process would need more memory than allowed.
        SolverError: if the solver does not support the encoding, or is not installed.
        UnsupportedError: if the encoding would be too large.
    """
    from isolang.encodings.decode import NoOrderError
    from isolang.encodings.registry import ENCODINGS

    pair, problem = run.pair, run.problem
    solver, part = solver_of(pair.solver)
    theory = theory_of(pair.encoding, solver)
    assert theory is not None, f"{pair}: the solver does not support this encoding"
    watch = _Stopwatch()
    remaining = run.deadline.remaining()
    until = None if remaining is None else time.perf_counter() + remaining
    more = {}
    subject: Polygraph | RelationalInput
    if pair.of_specification:
        subject = _relational_input(run, problem)
        assert subject.cost is not None
        more["open_pairs"] = float(subject.cost.pairs)
    else:
        from isolang.problem.polygraph import build_polygraph, count_writer_pairs, estimate_clauses

        assert isinstance(run.route, Plan)
        run.progress("prune")
        if pair.prune != "fixpoint":
            run.spend(count_writer_pairs(problem))
        subject = build_polygraph(problem, run.route.automata, pair.prune, until=until)  # type: ignore[arg-type]
        watch.lap("seconds_prune")
        run.spend(_PER_CLAUSE * estimate_clauses(subject))
    run.progress("encode")
    formula = ENCODINGS[pair.encoding].encode(subject, theory, until=until)
    watch.lap("seconds_encode")
    run.progress("solve")
    allowed = 0 if run.work is None else run.work.take()
    solution = solver.solve(
        formula,
        until=until,
        seed=run.options.seed,
        part=part,
        progress=run.progress,
        work=allowed,
    )
    if run.work is not None:
        run.work.give_back(allowed - work_of(solution, formula))
    watch.lap("seconds_solve")
    result: Proof | Unproved | Undecided
    if solution.values is not None:
        try:
            result = model_of(problem, formula, solution.values)
        except NoOrderError as error:
            result = Undecided(cause="certificate rejected", reason=f"{pair}: {error}")
    else:
        core = None
        if solution.core is not None and len(formula.reads):
            reads = formula.reads[list(solution.core), 0]
            core = tuple(problem.native.read_op[reads].tolist())
        result = Unproved(core=core)
    statistics = {
        **solution.statistics,
        **more,
        "nodes": float(formula.nodes),
        "variables": float(formula.variables),
        "clauses": float(formula.clause_count),
        "edges": float(len(formula.edges)),
        **watch.laps,
    }
    return Answer(result=result, statistics=statistics, formula=formula)


def _relational_input(run: PairRun, problem: Problem) -> RelationalInput:
    """Subtract the work for a relational encoding from the limit, and return its input."""
    from isolang.encodings.relational.cost import require_affordable
    from isolang.encodings.relational.formula import RelationalInput

    run.progress("estimate")
    spec = run.written_spec
    cost = require_affordable(problem, spec, run.deadline.remaining)
    run.notes.append(str(cost))
    run.progress(str(cost))
    run.spend(_PER_STEP * cost.steps)
    return RelationalInput(problem=problem, spec=spec, cost=cost)


def model_of(problem: Problem, formula: Formula, values: NDArray[np.int8]) -> Witness | Relations:
    """Return the model encoded by a satisfying assignment.

    Raises:
        NoOrderError: if the assignment does not encode a model because its edges form a cycle.
    """
    from isolang import _native
    from isolang.encodings.decode import decode
    from isolang.encodings.formula import PolygraphFormula
    from isolang.encodings.relational.formula import RelationalFormula, decode_relations

    if isinstance(formula, RelationalFormula):
        return decode_relations(formula, values)
    assert isinstance(formula, PolygraphFormula)
    source, start, txn = decode(formula, values)
    by_op = _native.operation_sources(problem.history.columns, problem.native, source)
    return Witness.of(by_op, start, txn)


class _Stopwatch:
    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now
