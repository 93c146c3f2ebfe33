"""The neutral problem: what a history settles by itself, and what must be chosen."""

from __future__ import annotations

from isolang.problem.anomalies import Anomaly, AnomalyKind
from isolang.problem.order import find_order_contradiction
from isolang.problem.problem import Inclusion, Problem, build_problem

__all__ = [
    "Anomaly",
    "AnomalyKind",
    "Inclusion",
    "Problem",
    "build_problem",
    "find_order_contradiction",
]
