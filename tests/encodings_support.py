"""Every (encoding, solver, prune) triple on one history, against what is expected."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from unittest.mock import patch

from oracle import semantics
from oracle.generate import any_history
from oracle.history import History as PlainHistory
from oracle.levels import ADJACENT
from oracle.pipeline import Levels

from isolang import _native
from isolang.certify.certificate import Witness
from isolang.certify.native import check_natively
from isolang.crosscheck import has_intrinsic_violation
from isolang.encodings.decode import decode
from isolang.encodings.registry import ENCODINGS
from isolang.history import History
from isolang.language.classify import Plan
from isolang.problem import build_problem
from isolang.problem.polygraph import PRUNE, build_polygraph
from isolang.solvers.registry import SOLVERS, fitting, theory_of

#: All pairs of an encoding and an installed solver, the engine's own left out.
PAIRS = tuple((e, s) for e, s in fitting() if e in ENCODINGS)


@cache
def one_context() -> Any:
    """One Z3 context for all small formulas: making one costs more than most of them."""
    import z3

    return z3.Context()


@dataclass
class Conformance:
    """Runs triples, shares what they have in common, and counts."""

    pairs: Iterable[tuple[str, str]] = PAIRS
    stages: Iterable[str] = PRUNE
    compared: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    conflicts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def run(self, history: History, plan: Plan, expected: str, *, seed: int = 0) -> bool:
        """Compare all triples on one history; ``False`` if the pre-pass alone decides it."""
        problem = build_problem(history)
        if has_intrinsic_violation(problem, plan):
            return False
        self.verdicts[expected] += 1
        for stage in self.stages:
            polygraph = build_polygraph(problem, plan.automata, stage)
            formulas = {}
            for encoding, name in self.pairs:
                solver = SOLVERS[name]
                theory = theory_of(encoding, solver)
                if (encoding, theory) not in formulas:
                    made = ENCODINGS[encoding].encode(polygraph, theory)
                    formulas[encoding, theory] = made
                formula = formulas[encoding, theory]
                with patch("isolang.solvers.z3.new_context", one_context):
                    answer = solver.solve(formula, until=None, seed=seed)
                self.conflicts[name] += int(answer.statistics.get("conflicts", 0))
                self.compared[encoding, name, stage] += 1
                got = "valid" if answer.satisfiable else "invalid"
                if got != expected:
                    self.wrong.append(f"{encoding}/{name}/{stage}: {got}, not {expected}")
                elif answer.satisfiable:
                    source, start, txn = decode(formula, answer.values)
                    by_op = _native.operation_sources(history.columns, problem.native, source)
                    check_natively(history, plan.spec, Witness(by_op, start, txn))
        return True


def separating(rng: random.Random, levels: Levels) -> Iterator[tuple[PlainHistory, str, str]]:
    """Histories on which two adjacent levels differ, each with one of the two and its verdict."""
    while True:
        history = any_history(rng)
        try:
            expected = levels.expected(history)
        except semantics.TooLargeError:
            continue
        apart = [
            pair
            for pair in ADJACENT
            if expected.get(pair[0]) == "valid" and expected.get(pair[1]) == "invalid"
        ]
        sides = [level for pair in apart for level in pair if applies(levels.plans[level])]
        if sides:
            level = rng.choice(sides)
            yield history, level, expected[level]


def applies(plan: Plan) -> bool:
    """Whether encodings are of specifications of this kind."""
    return plan.kind == "event graph"
