"""Proofs for solvers that have none: the native engine refutes what they found unsatisfiable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.proofs import Refutation
from isolang.explain.part import part_of
from isolang.history.columns import READ, READ_LIST
from isolang.problem import build_problem
from isolang.solvers import native

if TYPE_CHECKING:
    from isolang.language.classify.event_graph import Plan
    from isolang.problem import Problem
    from isolang.solvers.answer import NoModel

Engine: TypeAlias = Callable[["Problem"], native.Model | native.Refutation]


def prove(
    problem: Problem, plan: Plan, claim: NoModel, engine: Engine
) -> native.Model | native.Refutation:
    """Refute a problem of which a solver says that there is no model.

    If the solver gave a core, first with the reads of the core alone: other reads only constrain,
    so a refutation without them is one of the whole. The checker has the last word on that.

    Returns:
        A refutation; or a model, if there is one and the solver was wrong.

    Raises:
        TimeoutError: there was not enough time.
    """
    if claim.core is not None:
        found = _from_core(problem, plan, claim.core, engine)
        if found is not None:
            return found
    return engine(problem)


def _from_core(
    problem: Problem, plan: Plan, core: Sequence[int], engine: Engine
) -> native.Refutation | None:
    from isolang.certify.native import check_natively

    columns = problem.history.columns
    reads = (columns.op_kind == READ) | (columns.op_kind == READ_LIST)
    kept = ~reads
    kept[np.asarray(core, np.int64)] = True
    if not kept.any() or kept.all():
        return None
    part = part_of(problem.history, np.flatnonzero(kept).tolist())
    smaller = build_problem(part.history)
    if smaller.anomalies(limit=1):
        return None
    answer = engine(smaller)
    if isinstance(answer, native.Model):
        return None
    steps = part.to_whole(Refutation.of(answer.steps).steps)
    refutation = Refutation(tuple(steps))
    try:
        check_natively(problem.history, plan.spec, refutation)
    except (CertificateRejected, NotCertifiedError):
        return None
    return native.Refutation(steps=[step.plain() for step in steps], statistics=answer.statistics)
