"""Generates histories with known verdicts: random workloads on a simulated database.

>>> from isolang.simulator import Workload, generate
>>> history = generate(Workload(rule="snapshot", transactions=200, bugs=("lost update",), seed=1))
>>> history.truth.satisfies
('pc', 'cc', 'ra', 'rc', 'pl-2', 'pl-1')
>>> history.truth.violates
('sser', 'strong-si', 'ser', 'si', 'psi')
>>> history.truth.planted[0].transactions
('T101', 'T102')
"""

from __future__ import annotations

from isolang.simulator.anomalies import BUGS, Bug
from isolang.simulator.changes import change_reads
from isolang.simulator.generate import generate
from isolang.simulator.rules import RULES, Rule
from isolang.simulator.truth import LEVELS, Planted, SimulatedHistory, Truth
from isolang.simulator.workload import Workload

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
