"""Walks over operations: PL-2L, PL-MSR, and what users write like them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from oracle.generate import any_history, well_formed
from oracle.generate_literature import literature_history
from oracle.generate_rows import row_history
from oracle.history import History, parse, show
from oracle.pipeline import Levels, to_tool, tool_verdict
from support.certify import is_accepted_by_both, some_strategy

from isolang.api import check
from isolang.certify.errors import CertificateRejected
from isolang.certify.native import check_natively
from isolang.certify.proofs import Refutation, Witness, check_proof
from isolang.language.classify.route import native_plan, route
from isolang.language.load import load_spec
from isolang.problem import build_problem
from isolang.solvers import engine

LEVELS = ("pl-2l", "pl-msr")

#: History, and what forbids it.
LITMUS = {
    "w(y,1) || r(y,1) w(x,1) || r(x,1) r(y,nil)": "pl-2l pl-msr",
    "w(y,1) || r(y,1) w(x,1) || r(y,nil) r(x,1)": "",
    "w(x,1) w(y,1) || r(x,nil) r(y,1)": "",
    "w(x,1) w(y,1) || r(y,1) r(x,nil)": "rc-nosession pl-2l pl-msr",
    "r(x,nil) w(x,1) || r(x,nil) w(x,2)": "",
    "w(x,1) || w(y,1) || r(x,1) r(y,nil) || r(y,1) r(x,nil)": "pl-msr",
    # Who overwrites has seen what it overwrites, from its write on.
    "w(x,1) w(y,1) || w(x,2) r(y,nil) || r(x,2) || r(x,1) r(x,2)": "pl-2l pl-msr",
    "w(x,1) w(y,1) || r(y,nil) w(x,2) || r(x,2) || r(x,1) r(x,2)": "",
    # Only its last write of the key is a version.
    "w(x,1) w(y,1) || w(x,2) r(y,nil) w(x,3) || r(x,1) r(x,3)": "",
    # The next but one.
    "w(x,1) w(y,1) || r(x,1) w(x,2) || r(x,2) w(x,3) r(y,nil) || r(x,2) r(x,3)": "pl-2l pl-msr",
}

ADYA = 'include "operations.iso"\n'
GOES_ON = "statement ; (po ; statement)?"
#: Not of the library; each has walks of another kind.
WRITTEN = {
    "with sessions": f"""
        acyclic so | wr | ww as G1c
        irreflexive (so | wr | ww)^* ; (met | so ; tx^-1) ; {GOES_ON} ; missed as monotonic""",
    "by reads only": f"""
        acyclic wr | ww as G1c
        irreflexive wr^* ; (tx^-1 ; rf) ; {GOES_ON} ; missed as monotonic""",
    "behind writes only": f"""
        acyclic wr | ww as G1c
        irreflexive (wr | ww)^* ; (for x: ww[x] ; tx^-1 ; [last-write[x]] ; po) ; {GOES_ON} ;
            missed as monotonic""",
    "snapshots of sessions": f"""
        acyclic so | ww | ((met | so ; tx^-1) ; {GOES_ON} ; (missed | tx)) as snapshots""",
    "snapshots, and write orders of sessions": f"""
        acyclic ww | (met ; {GOES_ON} ; (missed | tx)) as snapshots
        acyclic so | ww as ordered
        for each x: irreflexive ww[x] ; rw[x] as no-lost-update""",
    "both": f"""
        acyclic wr | ww as G1c
        acyclic ww | (met ; {GOES_ON} ; (missed | tx)) as snapshots
        irreflexive (wr | ww)^* ; met ; {GOES_ON} ; missed as monotonic""",
}


def histories(seed: int, number: int) -> Iterator[History]:
    rng = random.Random(seed)
    for _ in range(number):
        history = rng.choice((literature_history, any_history, row_history))(rng)
        if len(history) <= 5 and well_formed(history):
            yield history


@pytest.mark.parametrize("operations", LITMUS)
def test_litmus(operations: str) -> None:
    levels = ("rc-nosession", *LEVELS)
    history = parse(operations)
    found = [n for n in levels if tool_verdict(history, route(load_spec(n))) == "invalid"]
    assert found == LITMUS[operations].split()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_by_the_definitions(seed: int) -> None:
    """What is said is certified and what trying everything says."""
    levels, found = Levels(LEVELS), Counter[tuple[str, str]]()
    for number, history in enumerate(histories(seed, 150)):
        expected, wrong = levels.compare(history, seed=number)
        assert not wrong, f"{show(history)}: {wrong}"
        found += Counter(expected.items())
    assert min(found[n, v] for n in LEVELS for v in ("valid", "invalid")) >= 10, found


@pytest.mark.slow
def test_search_by_itself() -> None:
    """Without the stronger checks that are tried first; both checkers accept what is said."""
    plans = {name: native_plan(load_spec(name)) for name in LEVELS}
    oracle, seen = Levels(LEVELS), Counter[tuple[str, str]]()
    for number, history in enumerate(histories(7, 600)):
        given = to_tool(history)
        problem = build_problem(given)
        if not given.columns.transactions() or problem.anomalies(limit=1):
            continue
        for name, verdict in oracle.expected(history).items():
            how = {"strategy": some_strategy(given), "seed": number, "presolve": False}
            proof = engine.solve(given.columns, problem.native, plans[name].automata, **how).result  # type: ignore[arg-type]
            assert isinstance(proof, Witness | Refutation)
            got = "valid" if isinstance(proof, Witness) else "invalid"
            assert got == verdict, f"{name}: {show(history)}"
            assert is_accepted_by_both(given, plans[name].spec, proof), f"{name}: {show(history)}"
            seen[name, got] += 1
    assert min(seen[n, v] for n in LEVELS for v in ("valid", "invalid")) >= 10, seen


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_what_users_write(name: str) -> None:
    """The native engine says what relations say, pair by pair, and is certified."""
    spec = load_spec(ADYA + WRITTEN[name])
    plan = route(spec)
    assert plan.kind != "relational"
    found: Counter[str] = Counter()
    for history in histories(sum(map(ord, name)), 120):
        given = to_tool(history)
        verdict = check(given, plan)
        assert verdict.certified, show(history)
        slowly = check(given, plan, encoding="relational", solver="sat", certify=False)
        assert verdict.outcome == slowly.outcome, show(history)
        found[verdict.outcome] += 1
    assert min(found["valid"], found["invalid"]) >= 5, found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"acyclic met ; {GOES_ON} ; (missed | tx) as a", "write `| ww` next to it"),
        (f"acyclic ww | (met ; {GOES_ON} ; missed) as a", "lacks"),
        (f"irreflexive (wr | ww)^* ; met ; {GOES_ON} ; missed as a", "no other check forbids"),
        (f"acyclic wr as b irreflexive (wr | ww)^* ; met ; {GOES_ON} ; missed as a", "turn"),
        ("acyclic wr | ww as b irreflexive met ; po ; missed as a", "operations"),
    ],
)
def test_what_is_no_walk_over_operations(text: str, reason: str) -> None:
    """It is decided relationally, and the reason says why."""
    plan = route(load_spec(ADYA + text.replace(" irreflexive", "\nirreflexive")))
    assert plan.kind == "relational"
    assert reason


@pytest.mark.slow
def test_no_witness_of_a_weaker_level_passes() -> None:
    """On an invalid history every witness is refused, though it is one for a weaker level."""
    weaker, refused = native_plan(load_spec("pl-2")), Counter[str]()
    for history in histories(9, 500):
        given = to_tool(history)
        problem = build_problem(given)
        if not given.columns.transactions() or problem.anomalies(limit=1):
            continue
        witness = engine.solve(given.columns, problem.native, weaker.automata).result
        if not isinstance(witness, Witness):
            continue
        for name in LEVELS:
            if check(given, name).outcome == "invalid":
                assert not is_accepted_by_both(given, load_spec(name), witness), (
                    f"{name}: {show(history)}"
                )
                refused[name] += 1
    assert min(refused[name] for name in LEVELS) >= 10, refused


def test_the_write_must_come_before_the_read() -> None:
    """In a refutation ``ww`` goes on inside its transaction only from its last write of the key."""
    spec = load_spec("pl-2l")
    cycle = [("ww", 0, 1, 0, -1, -1), ("po", 1, 1, -1, 3, -1), ("rw", 1, 0, 1, 3, 2)]
    steps = [("cycle", "G-monotonic", cycle)]
    for text, stands in (
        ("w(x,1) w(y,1) || w(x,2) r(y,nil)", True),
        ("w(x,1) w(y,1) || w(z,2) r(y,nil) w(x,2)", False),
    ):
        given = to_tool(parse(text))
        shown = [*steps, ("rup", [(False, ("before", 0, 0, 1))])]
        says = []
        for checker in (check_natively, check_proof):
            with pytest.raises(CertificateRejected) as error:
                checker(given, spec, Refutation.of(shown))
            why = str(error.value)  # natively; by definition
            says.append("write does not come before" in why or "does not violate" in why)
        assert says == [not stands] * 2
