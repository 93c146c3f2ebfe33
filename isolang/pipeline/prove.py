"""Proofs for solvers that give none.

The native engine refutes what they found unsatisfiable; of a specification that is decided as it is
written, an unsat core is found instead, small enough for the checker to go through all choices.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

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
    from isolang.pipeline.run import Run
    from isolang.solvers.answer import Answer

# Looking for an unsat core may take twice as long as the answer, within these bounds.
_CORE_SECONDS = (2.0, 20.0)


def prove(run: Run, answer: Answer) -> Witness | Relations | Refutation | UnsatCore:
    """Prove that there is no model, as a pair said without proof.

    Returns:
        A refutation or an unsat core; or a model, if there is one and the pair is wrong.

    Raises:
        TimeoutError: there was not enough time.
    """
    assert isinstance(answer.says, Unproved)
    if isinstance(run.route, Relational):
        seconds = _patience(run)
        model = _other_opinion(run, answer, seconds)
        if model is not None:
            return model
        return unsat_core(run.problem, run.route, seed=run.options.seed, seconds=seconds)
    if answer.says.core is not None:
        refutation = _from_core(run, answer.says.core)
        if refutation is not None:
            return refutation
    found = run.ask_engine(run.problem).says
    assert isinstance(found, Witness | Refutation)
    return found


def _from_core(run: Run, core: Sequence[int]) -> Refutation | None:
    """A refutation with the reads of the core alone, if the checker accepts one.

    Other reads only constrain, so a refutation without them is one of the whole.
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
    found = run.ask_engine(smaller).says
    if not isinstance(found, Refutation):
        return None
    refutation = Refutation(tuple(part.to_whole(found.steps)))
    try:
        check_natively(history, run.route.spec, refutation)
    except (CertificateRejected, NotCertifiedError):
        return None
    return refutation


def _other_opinion(run: Run, answer: Answer, seconds: float) -> Relations | None:
    """The native solver's model of the same encoding, where another solver claims there is none."""
    from isolang.encodings.relational.formula import (
        RelationalFormula,
        decode_relations,
        formula_of,
    )

    if run.pair.solver == NATIVE or not isinstance(answer.formula, RelationalFormula):
        return None
    formula = formula_of(answer.formula.relations)
    until = time.perf_counter() + seconds
    try:
        solution = SOLVERS[NATIVE].solve(formula, until=until, seed=run.options.seed)
    except TimeoutError:
        return None  # the unsat core has the last word
    return None if solution.values is None else decode_relations(formula, solution.values)


def _patience(run: Run) -> float:
    """The seconds to spend on an unsat core."""
    least, most = _CORE_SECONDS
    seconds = min(max(least, 2 * run.deadline.seconds().solve), most)
    try:
        left = run.deadline.remaining()
    except TimeoutError:
        return 0.0
    return seconds if left is None else min(seconds, left / 3)
