"""Running a pair: a problem through an encoding to a solver, and its model back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolang.encodings.decode import NoOrderError, decode
from isolang.encodings.registry import ENCODINGS
from isolang.errors import SolverError
from isolang.problem.polygraph import build_polygraph
from isolang.solvers.native import Model
from isolang.solvers.registry import Pair, solver_of, theory_of

if TYPE_CHECKING:
    from isolang.language.automaton import Automaton
    from isolang.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class NoModel:
    """That a pair found no model; a claim, not yet a proof.

    Attributes:
        core: operations: the reads that clash with all the writes, or ``None`` if not known.
        statistics: as in :class:`~isolang.solvers.native.Model`.
    """

    core: tuple[int, ...] | None
    statistics: dict[str, float] = field(default_factory=dict)


class WrongModelError(Exception):
    """A solver's assignment is no model."""


def solve_pair(
    problem: Problem,
    automata: Sequence[Automaton],
    pair: Pair,
    *,
    seconds: float | None = None,
    seed: int = 0,
    progress: Callable[[str], object] = lambda phase: None,
) -> Model | NoModel:
    """Decide a problem whose intrinsic anomalies the caller has dealt with.

    Args:
        problem: the neutral problem.
        automata: one per check.
        pair: not the native engine's own.
        seconds: wall-clock limit; how closely it is kept to depends on the solver.
        seed: breaks ties.
        progress: called with ``prune``, ``encode`` and ``solve`` as they begin.

    Raises:
        TimeoutError: the limit was reached.
        SolverError: there is no such pair, or it is not installed.
        WrongModelError: the solver gave an assignment that is no model.
    """
    from isolang import _native

    solver, part = solver_of(pair.solver)
    theory = theory_of(pair.encoding, solver)
    if theory is None:
        raise SolverError(f"{pair}: the solver does not take this encoding")
    until = None if seconds is None else time.perf_counter() + seconds
    watch = _Stopwatch()
    progress("prune")
    polygraph = build_polygraph(problem, automata, pair.prune, until=until)  # type: ignore[arg-type]
    watch.lap("seconds_prune")
    progress("encode")
    formula = ENCODINGS[pair.encoding].encode(polygraph, theory, until=until)
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
        if answer.core is not None:
            core = tuple(problem.native.read_op[formula.reads[list(answer.core), 0]].tolist())
        return NoModel(core=core, statistics=statistics)
    assert answer.values is not None
    try:
        source, start, txn = decode(formula, answer.values)
    except NoOrderError as error:
        raise WrongModelError(str(error)) from None
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
