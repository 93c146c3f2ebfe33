"""Every applicable (encoding, solver, prune) triple against brute force.

A witness that the checker refuses is an error here, not only a wrong verdict. The long run is
``benchmarks/conformance.py``.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from itertools import islice
from typing import Final

import pytest
from oracle.expressions import HARD, random_checks, random_predicate_checks, spec_text
from oracle.generate import litmus_table
from oracle.history import has_time, parse, show, with_wide_times
from oracle.judged import judged
from oracle.levels import ADJACENT, PREDICATES
from oracle.pipeline import Levels, to_tool
from support.encodings import (
    PAIRS,
    WRITTEN_OTHERWISE,
    WRITTEN_OTHERWISE_ADJACENT,
    Conformance,
    Pairs,
    one_context,
    separating_histories,
)
from support.sampling import quick_first

from isolang.api import load_spec
from isolang.cli.encode import THEORIES, written
from isolang.encodings.registry import ENCODINGS
from isolang.errors import UnsupportedError
from isolang.history import History, Transaction
from isolang.language.classify.event_graph import NotAnEventGraph, classify
from isolang.solvers.registry import SOLVERS, applicable_encodings, stages_of

#: Separating histories per triple, and into how many tests they are divided.
HISTORIES, SLICES = 120, 6

#: A sanitizer watches our own native code alone, and makes the rest slow.
SANITIZED = "ISOLANG_SANITIZED" in os.environ
OUR_PAIRS = tuple(p for p in PAIRS if p[1] == "native")
TESTED_PAIRS = OUR_PAIRS if SANITIZED else PAIRS


@pytest.fixture(scope="module")
def levels() -> Levels:
    return Levels()


def run(
    pairs: Pairs, levels: Levels, adjacent: Pairs, seed: int, count: int = HISTORIES // SLICES
) -> None:
    runs = Conformance(pairs=pairs)
    done = 0
    histories = separating_histories(random.Random(seed), levels, adjacent)
    for number, (history, level, expected) in enumerate(histories):
        done += runs.run(to_tool(history), levels.plans[level], expected, seed=number)
        assert not runs.wrong, f"{runs.wrong[0]} for {level}: {show(history)}"
        if done == count:
            break
    assert set(runs.compared) == {(e, s, p) for e, s in pairs for p in stages_of(e)}
    assert set(runs.compared.values()) == {count}
    assert min(runs.verdicts["valid"], runs.verdicts["invalid"]) > count / 5


@pytest.mark.slow
@pytest.mark.parametrize("part", quick_first(range(SLICES), 1, rest="campaign"))
def test_separating_histories(levels: Levels, part: int) -> None:
    """Every triple, on levels that are event graphs."""
    run(TESTED_PAIRS, levels, ADJACENT, 7_000 + part)


@pytest.mark.slow
@pytest.mark.parametrize("part", quick_first(range(SLICES), 1, rest="campaign"))
def test_levels_that_are_no_event_graphs(part: int) -> None:
    """The relational encoding, with every solver, on levels that no other encoding is of."""
    pairs = [(e, s) for e, s in TESTED_PAIRS if e == "relational"]
    run(pairs, Levels(WRITTEN_OTHERWISE), WRITTEN_OTHERWISE_ADJACENT, 7_100 + part)


def test_all_solvers_are_tested_here() -> None:
    """The test environment has every solver of the registry; none is skipped unnoticed."""
    assert {name for _, name in PAIRS} == set(SOLVERS)


@pytest.mark.slow
def test_litmus(levels: Levels) -> None:
    """The litmus table, by every pair without pruning: two levels a history."""
    rng = random.Random(1)
    runs = Conformance(pairs=TESTED_PAIRS, stages=("none",))
    for row in litmus_table():
        history = parse(row["operations"])
        history = history if has_time(history) else with_wide_times(history)
        for level in rng.sample(sorted(levels.plans), 2):
            runs.run(to_tool(history), levels.plans[level], row[level])
            assert not runs.wrong, f"{row['history']}, {level}: {runs.wrong[0]}"
    assert min(runs.verdicts["valid"], runs.verdicts["invalid"]) > 10


def solved_gnf(text: str) -> bool:
    """MonoSAT's format, by its own rules, to clingo."""
    import clingo

    control = clingo.Control(["--warn=none"])
    with control.backend() as backend:
        for line in text.splitlines():
            word, *rest = line.split()
            if word == "p":
                atoms = [0, *(backend.add_atom() for _ in range(int(rest[1])))]
                backend.add_rule(atoms[1:], choice=True)
            elif word == "edge":
                _, tail, head, variable = map(int, rest)
                backend.add_acyc_edge(tail, head, [atoms[variable]])
            elif word.lstrip("-").isdigit():
                clause = [int(x) for x in (word, *rest)][:-1]
                backend.add_rule([], [-atoms[x] if x > 0 else atoms[-x] for x in clause])
    return bool(control.solve().satisfiable)


def solved_dimacs(text: str) -> bool:
    """DIMACS, to a SAT solver that no pair uses by default."""
    from pysat.formula import CNF
    from pysat.solvers import Solver

    with Solver(name="minisat22", bootstrap_with=CNF(from_string=text)) as solver:
        return bool(solver.solve())


def solved_smtlib(text: str) -> bool:
    """SMT-LIB 2, as a file of it is read by Z3."""
    import z3

    solver = z3.Solver(ctx=one_context())
    solver.from_string(text)
    return str(solver.check()) == "sat"


OUTSIDE: Final = {"gnf": solved_gnf, "dimacs": solved_dimacs, "smt2": solved_smtlib}


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="other people's native code")
@pytest.mark.parametrize("weak", [False, True])
def test_exports(levels: Levels, weak: bool) -> None:
    """Each encoding in each format that can say it, read back and solved elsewhere."""
    if weak:
        levels, adjacent = Levels(WRITTEN_OTHERWISE), WRITTEN_OTHERWISE_ADJACENT
    else:
        adjacent = ADJACENT
    histories = separating_histories(random.Random(79 + weak), levels, adjacent)
    said: Counter[tuple[str, bool]] = Counter()
    for history, level, expected in islice(histories, 24):
        given, route = to_tool(history), levels.plans[level]
        for name, encoding in ENCODINGS.items():
            for to, solved in OUTSIDE.items():
                if not set(THEORIES[to]) & set(encoding.makers) or name not in applicable_encodings(
                    route
                ):
                    continue
                try:
                    text = written(given, route, to=to, encoding=name)
                except UnsupportedError:
                    continue  # the pre-pass alone decides it
                assert solved(text) == (expected == "valid"), f"{name}, {to}, {level}"
                said[to, expected == "valid"] += 1
    assert len(said) == 2 * len(OUTSIDE)


def expressions(rng: random.Random, specs: list, per_spec: int) -> Conformance:
    runs = Conformance(pairs=OUR_PAIRS)
    for checks in specs:
        try:
            plan = classify(load_spec(spec_text(checks)))
        except NotAnEventGraph:
            continue
        for history, expected in judged(rng, checks, per_spec):
            runs.run(to_tool(history), plan, expected)
            assert not runs.wrong, f"{runs.wrong[0]} for {spec_text(checks)}{show(history)}"
    return runs


@pytest.mark.slow
def test_specifications_nobody_wrote() -> None:
    """Combining writes, above all, must be left out where an expression does not permit it."""
    rng = random.Random(77)
    runs = expressions(rng, [random_checks(rng) for _ in range(70)], 3)
    assert min(runs.verdicts["valid"], runs.verdicts["invalid"]) > 5


@pytest.mark.slow
def test_specifications_that_stress_the_version_order() -> None:
    expressions(random.Random(78), list(HARD), 4)


@pytest.mark.parametrize("relation", ["pwr", "prw"])
def test_without_predicate_reads_none_is_by_predicate(relation: str) -> None:
    """A history in which all reads are by key has no edges of reads by predicate."""
    route = classify(load_spec(f'spec own\ninclude "adya.iso"\nacyclic so | {relation} as c\n'))
    history = {
        "pwr": [[("r", "x", 1)], [("w", "x", 1)]],
        "prw": [[("w", "x", 1)], [("r", "x", None)]],
    }[relation]
    one_session = [Transaction(ops=ops, session=0) for ops in history]
    runs = Conformance(pairs=OUR_PAIRS)
    runs.run(History.from_transactions(one_session), route, "valid")
    assert runs.verdicts["valid"] == 1
    assert not runs.wrong


@pytest.mark.slow
def test_reads_of_keys_told_from_reads_of_predicates() -> None:
    """Reads by key and by predicate have edges of their own."""
    rng = random.Random(79)
    runs = Conformance(pairs=OUR_PAIRS)
    for _ in range(300):
        checks = random_predicate_checks(rng) + rng.choice(((), random_checks(rng)))
        if rng.random() < 0.3:
            checks = PREDICATES["locking-repeatable-read"]
        try:
            plan = classify(load_spec(spec_text(checks)))
        except NotAnEventGraph:
            continue
        for history, expected in judged(rng, checks, 6):
            if expected == "invalid" or rng.random() < 0.1:
                runs.run(to_tool(history), plan, expected)
                assert not runs.wrong, f"{runs.wrong[0]} for {spec_text(checks)}{show(history)}"
    assert min(runs.verdicts["valid"], runs.verdicts["invalid"]) > 20
