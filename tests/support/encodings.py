"""Compares all triples of an encoding, a solver and a stage of pruning with an expected verdict."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from unittest.mock import patch

from oracle import semantics
from oracle.generate import any_history
from oracle.history import History as PlainHistory
from oracle.levels import ADJACENT, WEAK_ADJACENT, WEAK_STYLES
from oracle.pipeline import Levels, level_of

from isolang import _native
from isolang.certify.native import check_natively
from isolang.certify.proofs import Witness, check_proof
from isolang.encodings.decode import decode
from isolang.encodings.registry import ENCODINGS
from isolang.encodings.relational.formula import (
    RelationalFormula,
    RelationalInput,
    decode_relations,
    relational_input,
)
from isolang.history import History
from isolang.language.classify.plan import Route
from isolang.pipeline.pair_run import contradiction, written_spec
from isolang.problem import build_problem
from isolang.problem.polygraph import Polygraph, build_polygraph
from isolang.problem.prune import PRUNE
from isolang.solvers.registry import (
    SOLVERS,
    applicable_encodings,
    stages_of,
    starts_from_polygraph,
    supported_pairs,
    theory_of,
)

Pairs = Sequence[tuple[str, str]]

#: All pairs of an encoding and an installed solver, without the native engine.
PAIRS = tuple((e, s) for e, s in supported_pairs() if e in ENCODINGS)


@cache
def one_context() -> Any:
    """Return one Z3 context for all small formulas, because creating a context is slow."""
    import z3

    return z3.Context()


@dataclass
class Conformance:
    """Runs all triples on histories, and counts the verdicts and the solvers' conflicts.

    Triples share the pruned problems and the formulas that they have in common.
    """

    pairs: Iterable[tuple[str, str]] = PAIRS
    stages: Iterable[str] = PRUNE
    compared: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    conflicts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def run(self, history: History, route: Route, expected: str, *, seed: int = 0) -> bool:
        """Run all applicable triples; return ``False`` if the pre-pass alone decides."""
        problem = build_problem(history)
        if contradiction(problem, route) is not None:
            return False
        self.verdicts[expected] += 1
        subject: Polygraph | RelationalInput
        for stage in self.stages:
            subjects, formulas = {}, {}
            for encoding, name in self.pairs:
                if stage not in stages_of(encoding) or encoding not in applicable_encodings(route):
                    continue
                solver, from_polygraph = SOLVERS[name], starts_from_polygraph(encoding)
                theory = theory_of(encoding, solver)
                if from_polygraph not in subjects:
                    if from_polygraph:
                        subject = build_polygraph(problem, route.automata, stage)
                    else:
                        subject = relational_input(problem, written_spec(route))
                    subjects[from_polygraph] = subject
                if (encoding, theory) not in formulas:
                    made = ENCODINGS[encoding].encode(subjects[from_polygraph], theory)
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
                    self._judge(history, route, problem, formula, answer.values)
        return True

    def _judge(self, history: History, route: Route, problem, formula, values) -> None:
        """Check a solver's model; raise the checker's error if it rejects the model."""
        if isinstance(formula, RelationalFormula):
            check_proof(history, written_spec(route), decode_relations(formula, values))
            return
        source, start, txn = decode(formula, values)
        by_op = _native.operation_sources(history.columns, problem.native, source)
        check_natively(history, route.spec, Witness(by_op, start, txn))


def separating_histories(
    rng: random.Random, levels: Levels, adjacent: Pairs = ADJACENT
) -> Iterator[tuple[PlainHistory, str, str]]:
    """Yield histories on which two adjacent levels differ, with one of the levels and its verdict.

    Args:
        rng: the source of random choices.
        levels: the levels to evaluate, each in some of its styles.
        adjacent: the pairs (weaker level, stronger level) that a history may separate.
    """
    styles: dict[str, list[str]] = {}
    for name in levels.plans:
        styles.setdefault(level_of(name), []).append(name)
    while True:
        history = any_history(rng)
        try:
            expected = levels.expected(history)
        except semantics.TooLargeError:
            continue
        verdicts = {level_of(name): verdict for name, verdict in expected.items()}
        sides = [
            name
            for weaker, stronger in adjacent
            if verdicts.get(weaker) == "valid" and verdicts.get(stronger) == "invalid"
            for level in (weaker, stronger)
            for name in styles[level]
        ]
        if sides:
            name = rng.choice(sides)
            yield history, name, expected[name]


#: Levels whose text only the relational encoding supports: those whose cycles a single ``rw`` must
#: not close, and those that a theorem translates to event graphs.
WRITTEN_OTHERWISE = (*WEAK_STYLES, "pc-co", "si-co", "ser-co", "si-co-nosession", "ser-vis", "pl-2")
WRITTEN_OTHERWISE_ADJACENT = (*WEAK_ADJACENT, ("si", "ser"), ("pc", "si"), ("si-nosession", "si"))
