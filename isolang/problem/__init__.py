"""The problem of a history: its facts and the choices it leaves open, regardless of the level."""

from __future__ import annotations

from isolang.problem.anomalies import Anomaly, AnomalyKind
from isolang.problem.order import find_order_contradiction
from isolang.problem.problem import InclusionStatus, Problem, build_problem

__all__ = [
    "Anomaly",
    "AnomalyKind",
    "InclusionStatus",
    "Problem",
    "build_problem",
    "find_order_contradiction",
]
