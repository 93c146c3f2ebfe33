"""Histories whose truth is known: random workloads on a simulated multi-version database.

>>> from isolang.workload import Workload, generate
>>> history = generate(Workload(rule="snapshot", transactions=200, bugs=("lost update",), seed=1))
>>> history.truth.satisfies
('pc', 'cc', 'ra', 'rc', 'pl-2', 'pl-1')
>>> history.truth.violates
('sser', 'strong-si', 'ser', 'si', 'psi')
>>> history.truth.planted[0].transactions
('T101', 'T102')
"""

from __future__ import annotations

from isolang.workload.anomalies import BUGS, Bug
from isolang.workload.changes import change_reads
from isolang.workload.generate import generate
from isolang.workload.rules import RULES, Rule
from isolang.workload.truth import LEVELS, Planted, SimulatedHistory, Truth
from isolang.workload.workload import Workload

__all__ = [
    "BUGS",
    "LEVELS",
    "RULES",
    "Bug",
    "Planted",
    "Rule",
    "SimulatedHistory",
    "Truth",
    "Workload",
    "change_reads",
    "generate",
]
