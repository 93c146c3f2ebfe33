"""Makes proofs for solvers that give none.

If such a solver finds no model, the native engine makes a refutation. For a relational
specification, the proof is an unsat core small enough for the checker to try all choices.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from isolang.arrays import np
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.proofs import Refutation, Relations, Witness
from isolang.explain.part import part_of
from isolang.history.columns import APPEND, WRITE
from isolang.language.classify.relational import Relational
from isolang.pipeline.unsat_core import UnsatCore, unsat_core
from isolang.problem import build_problem
from isolang.solvers.answer import Unproved
from isolang.solvers.registry import NATIVE, SOLVERS

if TYPE_CHECKING:
    from isolang.pipeline.pair_run import PairRun
    from isolang.solvers.answer import Answer

# The share of the remaining time for finding an unsat core, and the work limit for the native
# solver's search for a model.
_CORE_SHARE, _MODEL_WORK = 1 / 3, 10_000_000


def prove(run: PairRun, answer: Answer) -> Witness | Relations | Refutation | UnsatCore:
    """Prove or disprove a pair's claim that no model exists.

    Raises:
        TimeoutError: if the deadline has passed.
    """
    assert isinstance(answer.result, Unproved)
    run.progress("prove")
    if isinstance(run.route, Relational):
        until = _stop_time(run)
        model = _native_model(run, answer, until)
        if model is not None:
            return model
        return unsat_core(run.problem, run.route, seed=run.options.seed, work=run.work, until=until)
    if answer.result.core is not None:
        refutation = _refutation_from_core(run, answer.result.core)
        if refutation is not None:
            return refutation
    found = run.solve_natively(run.problem).result
    assert isinstance(found, Witness | Refutation)
    return found


def _refutation_from_core(run: PairRun, core: Sequence[int]) -> Refutation | None:
    """Return a refutation that uses only the reads of the core; ``None`` if none is found.

    Additional reads only constrain a history further, so a refutation that uses only some of the
    reads also refutes the whole history. The checker must accept it.
    """
    from isolang.certify.native import check_natively

    history = run.history
    columns = history.columns
    reads = (columns.op_kind != WRITE) & (columns.op_kind != APPEND)
    kept = ~reads
    kept[np.asarray(core, np.int64)] = True
    if not kept.any() or kept.all():
        return None
    part = part_of(history, np.flatnonzero(kept).tolist())
    smaller = build_problem(part.history)
    if smaller.anomalies(limit=1):
        return None
    found = run.solve_natively(smaller).result
    if not isinstance(found, Refutation):
        return None
    refutation = Refutation(tuple(part.to_whole(found.steps)))
    try:
        check_natively(history, run.route.spec, refutation)
    except (CertificateRejected, NotCertifiedError):
        return None
    return refutation


def _native_model(run: PairRun, answer: Answer, until: float | None) -> Relations | None:
    """Return a model found by the native solver; ``None`` if it finds none."""
    from isolang.encodings.relational.formula import (
        RelationalFormula,
        decode_relations,
        formula_of,
    )

    if run.pair.solver == NATIVE or not isinstance(answer.formula, RelationalFormula):
        return None
    formula = formula_of(answer.formula.relations)
    try:
        solution = SOLVERS[NATIVE].solve(
            formula, until=until, seed=run.options.seed, work=_MODEL_WORK
        )
    except TimeoutError:
        return None  # the search for an unsat core decides instead
    return None if solution.values is None else decode_relations(formula, solution.values)


def _stop_time(run: PairRun) -> float | None:
    """Return when to stop, as a ``time.perf_counter()`` value; ``None`` for no limit."""
    try:
        remaining = run.deadline.remaining()
    except TimeoutError:
        remaining = 0.0
    return None if remaining is None else time.perf_counter() + remaining * _CORE_SHARE
