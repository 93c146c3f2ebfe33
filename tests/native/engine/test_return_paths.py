"""Checks that a single ``rw`` must not close: RC, RA, CC, PSI, in all styles, and what users write.

The slice that runs with the other tests; ``benchmarks/campaign.py`` is the long run.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from oracle import relational, semantics
from oracle.generate import (
    any_history,
    every_small_history,
    mutated_litmus,
    random_times,
    well_formed,
)
from oracle.guarantees import GUARANTEE_LITMUS
from oracle.history import History, parse, show, timed
from oracle.levels import WEAK_STYLES
from oracle.pipeline import Levels, level_of, to_tool, tool_verdict
from support.certify import is_accepted_by_both, some_strategy

from isolang.certify.errors import NotCertifiedError
from isolang.certify.native import check_natively
from isolang.certify.proofs import Refutation, Witness
from isolang.history import History as ToolHistory
from isolang.language.classify.event_graph import NotAnEventGraph, Plan
from isolang.language.classify.route import native_plan
from isolang.language.load import load_spec
from isolang.problem import build_problem
from isolang.solvers import engine

ADYA = 'include "adya.iso"\n'
ORDER = 'include "commit-order.iso"\n'
VISIBLE = 'include "visibility.iso"\n'
PLANS = {name: native_plan(load_spec(name)) for name in WEAK_STYLES}


@pytest.fixture(scope="module")
def levels() -> Levels:
    return Levels(WEAK_STYLES)


def histories(seed: int, number: int) -> Iterator[History]:
    rng = random.Random(seed)
    for _ in range(number):
        yield any_history(rng)


def solved(history: ToolHistory, plan: Plan, **how: object) -> Witness | Refutation:
    """What the engine says, without the checks of the pipeline around it."""
    problem = build_problem(history)
    how = {"strategy": some_strategy(history), **how}
    answer = engine.solve(history.columns, problem.native, plan.automata, **how)  # type: ignore[arg-type]
    assert isinstance(answer.result, Witness | Refutation)
    return answer.result


# --- verdicts ---


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_generated_histories(levels: Levels, seed: int) -> None:
    """Mutated litmus histories, simulated databases and random ones; every style of every level."""
    for number, history in enumerate(histories(5_000 + seed, 20)):
        try:
            _, wrong = levels.compare(history, seed=number)
        except semantics.TooLargeError:
            continue
        assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.slow
def test_every_small_history_sampled(levels: Levels) -> None:
    """Every 30,000th of all 536,575 histories of at most three transactions and two registers."""
    for history in every_small_history(offset=411, step=30_000):
        assert not levels.compare(history)[1]


@pytest.mark.slow
def test_search_by_itself() -> None:
    """Most histories have a model that is found with stronger checks; here there is no presolve.

    Both checkers accept what the search says, and it is what the oracle says.
    """
    seen: Counter[str] = Counter()
    oracle = Levels(WEAK_STYLES)
    for number, history in enumerate(histories(77, 80)):
        given = to_tool(history)
        if build_problem(given).anomalies(limit=1):
            continue
        try:
            expected = oracle.expected(history)
        except semantics.TooLargeError:
            continue
        for name, verdict in expected.items():
            proof = solved(given, PLANS[name], seed=number, presolve=False)
            got = "valid" if isinstance(proof, Witness) else "invalid"
            assert got == verdict, f"{name}: {show(history)}"
            assert is_accepted_by_both(given, PLANS[name].spec, proof), f"{name}: {show(history)}"
            seen[got] += 1
    assert min(seen["valid"], seen["invalid"]) > 50


def test_clocks_that_are_short_of_memory() -> None:
    """They answer "not known"; then the search finds what they missed."""
    for history in histories(78, 60):
        given = to_tool(history)
        if build_problem(given).anomalies(limit=1):
            continue
        for name in ("cc", "psi", "cc-nosession"):
            full = solved(given, PLANS[name])
            short = solved(given, PLANS[name], clock_bytes=1, presolve=False)
            assert type(full) is type(short), f"{name}: {show(history)}"
            assert is_accepted_by_both(given, PLANS[name].spec, short)


# --- proofs ---


@pytest.mark.slow
def test_no_witness_of_a_weaker_level_passes() -> None:
    """On an invalid history every witness is refused, though it is one for a weaker level."""
    refused: Counter[str] = Counter()
    weaker = native_plan(load_spec("pl-2"))
    for history in histories(79, 200):
        given = to_tool(history)
        if build_problem(given).anomalies(limit=1):
            continue
        witness = solved(given, weaker)
        if isinstance(witness, Refutation):
            continue
        for name in ("rc", "ra", "ra-adya", "cc", "cc-vis", "cc-adya", "psi", "psi-vis"):
            if isinstance(solved(given, PLANS[name]), Refutation):
                assert not is_accepted_by_both(given, PLANS[name].spec, witness), (
                    f"{name}: {show(history)}"
                )
                refused[name] += 1
    assert min(refused[name] for name in ("rc", "ra", "cc", "psi")) >= 5, refused


@pytest.mark.slow
def test_checkers_agree_on_changed_witnesses() -> None:
    """Orders turned around: both accept, or both refuse."""
    says: Counter[bool] = Counter()
    rng = random.Random(80)
    for history in histories(81, 120):
        given = to_tool(history)
        if build_problem(given).anomalies(limit=1):
            continue
        for name in ("rc", "ra", "cc", "psi", "ra-adya", "psi-vis-nosession"):
            witness = solved(given, PLANS[name])
            if isinstance(witness, Refutation):
                continue
            order = np.array(witness.order_txn)
            for start, end in zip(witness.order_start[:-1], witness.order_start[1:], strict=True):
                if rng.random() < 0.7:
                    order[start:end] = order[start:end][::-1]
            changed = Witness(witness.source, witness.order_start, order)
            says[is_accepted_by_both(given, PLANS[name].spec, changed)] += 1
    assert min(says.values()) > 20, says


@pytest.mark.parametrize("name", ["update-atomic", "rss", "pl-3u", "pl-cs", "pl-fcv"])
def test_checkers_agree_on_changed_witnesses_of_single_steps(name: str) -> None:
    """Likewise with real time, and return paths that are a step of time or of the versions."""
    changed_witnesses_agree(name, random.Random(83), 30)


def changed_witnesses_agree(name: str, rng: random.Random, number: int) -> None:
    says: Counter[bool] = Counter()
    plan = native_plan(load_spec(name))
    for _ in range(number):
        given = to_tool(random_times(rng, any_history(rng)))
        problem = build_problem(given)
        if not given.columns.transactions() or problem.anomalies(limit=1):
            continue
        witness = solved(given, native_plan(load_spec("pl-1")))
        if isinstance(witness, Refutation):
            continue
        order = np.array(witness.order_txn)
        for start, end in zip(witness.order_start[:-1], witness.order_start[1:], strict=True):
            if rng.random() < 0.5:
                rng.shuffle(part := order[start:end].tolist())
                order[start:end] = part
        for some in (witness, Witness(witness.source, witness.order_start, order)):
            says[is_accepted_by_both(given, plan.spec, some)] += 1
    assert min(says.values()) > 5, says


@pytest.mark.slow
def test_refutations_are_of_their_level() -> None:
    """What refutes a level does not refute a weaker one that the history satisfies."""
    tried: Counter[str] = Counter()
    for history in histories(82, 500):
        given = to_tool(history)
        if build_problem(given).anomalies(limit=1):
            continue
        for weak, strong in (("rc", "ra"), ("ra", "cc"), ("cc", "psi"), ("cc-adya", "psi")):
            proof = solved(given, PLANS[strong])
            if isinstance(proof, Witness) or isinstance(solved(given, PLANS[weak]), Refutation):
                continue
            names = [check.name for check in PLANS[weak].spec.checks] + ["co"]
            for name in names:
                claimed = [
                    ("cycle", name, step[2]) if step[0] == "cycle" else step
                    for step in proof.plain()
                ]
                assert not is_accepted_by_both(given, PLANS[weak].spec, Refutation.of(claimed))
            tried[f"{weak} {strong}"] += 1
    assert min(tried.values()) >= 3, tried
    assert len(tried) == 4


def test_the_earlier_read_must_be_earlier() -> None:
    """RC forbids seeing a write and then missing another one; not missing it and then seeing."""
    given = to_tool(parse("w(x,1) w(y,1) || r(x,nil) r(y,1)"))
    cycle = [("wr", 0, 1, 1, 3, -1), ("rw", 1, 0, 0, 2, 2)]
    assert not is_accepted_by_both(
        given, PLANS["rc"].spec, Refutation.of([("cycle", "monotonic-reads", cycle)])
    )
    assert is_accepted_by_both(
        given, PLANS["ra"].spec, Refutation.of([("cycle", "fractured-read", cycle)])
    )


# --- session guarantees ---

GUARANTEES = {
    "+".join(some): "".join(f'include "{name}.iso"\n' for name in some)
    for some in (("ryw",), ("mr",), ("mw",), ("wfr",), ("mr", "mw"), ("ryw", "mr", "mw", "wfr"))
}


@pytest.mark.parametrize("operations, forbid", GUARANTEE_LITMUS)  # noqa: PT006
def test_what_session_guarantees_forbid(operations: str, forbid: str) -> None:
    """The engine knows it, too, which looks at who writes and who reads only in passing."""
    history = parse(operations)
    plans = {name: native_plan(load_spec(name)) for name in ("ryw", "mr", "mw", "wfr")}
    got = {name for name, plan in plans.items() if tool_verdict(history, plan) == "invalid"}
    assert got == set(forbid.split())


@pytest.mark.parametrize("name", GUARANTEES)
def test_session_guarantees_on_random_histories(name: str) -> None:
    """They saturate, and agree with every choice of a visibility and an arbitration."""
    plan = native_plan(load_spec(GUARANTEES[name]))
    assert plan.kind == "saturation"
    rng = random.Random(name)
    seen: Counter[str] = Counter()
    while seen["valid"] + seen["invalid"] < 60:
        history = mutated_litmus(rng) if rng.random() < 0.5 else any_history(rng)
        if len(history) > 4 or not well_formed(history):
            continue
        try:
            valid = relational.satisfied(history, plan.spec, limit=5_000)
        except relational.TooLargeError:
            continue
        expected = "valid" if valid else "invalid"
        assert tool_verdict(history, plan) == expected, show(history)
        seen[expected] += 1
    assert min(seen.values()) > 5, seen


def test_only_who_writes_or_reads_is_ordered() -> None:
    """A session's transaction that only writes need not see what the session wrote before."""
    ryw = native_plan(load_spec("ryw"))
    ww = "w(x,1) -> w(x,2) w(y,1) || r(y,1) r(x,1)"
    assert tool_verdict(parse(ww), ryw) == "valid"
    without = load_spec(
        'include "visibility-nosession.iso"\nrequire so in vis as sees-all\n'
        "require so ; vis in vis as all-follow\n"
    )
    assert tool_verdict(parse(ww), native_plan(without)) == "invalid"
    test = native_plan(load_spec(f"{ADYA}acyclic ww | ([W] ; so ; [R]) | wr as c\n"))
    assert tool_verdict(parse("r(x,1) -> w(y,1) || r(y,1) -> w(x,1)"), test) == "valid"
    assert tool_verdict(parse("w(z,1) r(x,1) -> w(y,1) r(z,1) || r(y,1) w(x,1)"), test) == "invalid"


# --- what users write ---


def random_expression(rng: random.Random, depth: int, letters: list[str]) -> str:
    kind = rng.random() if depth else 0.0
    if kind < 0.25:
        return rng.choice(letters)
    left = random_expression(rng, depth - 1, letters)
    if kind < 0.75:
        return f"({left} {'|' if kind < 0.5 else ';'} {random_expression(rng, depth - 1, letters)})"
    return f"({left}){rng.choice(['?', '^+', '^*'])}"


@pytest.mark.slow
def test_random_specifications() -> None:
    """``irreflexive phi ; rw`` with a random phi, beside checks that forbid its loops."""
    rng = random.Random(83)
    seen: Counter[str] = Counter()
    while seen["specifications"] < 30:
        base = rng.choice(["so | wr | ww", "wr | ww", "so | rt | wr | ww"])
        letters = rng.choice([["so", "wr"], ["so", "wr", "ww"], ["wr", "ww"], ["so", "wr", "rt"]])
        if rng.random() < 0.3:
            letters = [*letters, "([W] ; so)", "(so ; [R])", "(wr ; so ; [W])"]
        phi = random_expression(rng, 3, letters)
        text = f"{ADYA}acyclic {base} as a\nirreflexive {phi} ; {rng.choice(['rw', 'rw?'])} as b\n"
        try:
            plan = native_plan(load_spec(text))
        except NotAnEventGraph:
            seen["refused"] += 1
            continue
        seen["specifications"] += 1
        seen["of several states"] += any(a.back and a.states > 1 for a in plan.automata)
        for history in histories(rng.randrange(10**6), 4):
            if plan.uses_real_time and not timed(history):
                continue
            try:
                (valid,) = semantics.satisfied(history, [plan.spec.checks], limit=3_000)
            except semantics.TooLargeError:
                continue
            expected = "valid" if valid else "invalid"
            assert tool_verdict(history, plan) == expected, f"{text}{show(history)}"
            seen[expected] += 1
    assert min(seen["valid"], seen["invalid"], seen["of several states"]) > 5, seen


@pytest.mark.parametrize(
    ("name", "kind"),
    [(n, "reachability" if n.startswith("psi") else "saturation") for n in WEAK_STYLES],
)
def test_kinds(name: str, kind: str) -> None:
    """PSI searches for version orders; the others follow from what was read."""
    assert PLANS[name].kind == kind
    assert PLANS[name].reasons


def test_styles_compile_to_the_same() -> None:
    """Up to the names of checks, the styles of a level are one set of automata."""
    for name, plan in PLANS.items():

        def shape(p: Plan) -> list[tuple[object, ...]]:
            return [(a.states, dict(a.steps), a.back, a.direct) for a in p.automata]

        if level_of(name) != "psi" and level_of(name) != "psi-nosession":
            assert shape(plan) == shape(PLANS[level_of(name)]), name


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (ADYA + "irreflexive (so | wr)^+ ; rw as c", "a loop that no other check forbids"),
        (ADYA + "acyclic wr | ww as a\nirreflexive (so | wr)^+ ; rw as c", "a loop"),
        (ADYA + "acyclic so | wr | ww as a\nirreflexive (wr ; rw)^+ ; rw as c", "a loop"),
        (ADYA + "acyclic so | wr | ww as a\nirreflexive wr ; (rw | so) ; wr as c", "not last"),
        (ADYA + "acyclic so | wr | ww as a\nflag irreflexive wr ; rw as c", "flag"),
        (ORDER + "require obs(so?) in co as c", "more than its order contains"),
        (ORDER + "require obs(rt) in co as c", "more than its order contains"),
        (ORDER + "require obs(co) in co as c", "uses `co`"),
        (ORDER + "require so in co as c\nacyclic wr as d", "not a plain"),
        (VISIBLE + "require (vis ; so)^+ in vis as c", "is inside an operator"),
        ('include "prelude.iso"\nexists o : order on T containing so | wr\n'
         "require obs(so) in o as c", "need not contain `vo`"),
    ],
)  # fmt: skip
def test_refused(text: str, reason: str) -> None:
    """What has no exact form here is left to slower routes, with the reason."""
    from isolang.language.classify.return_paths import classify_return_paths

    with pytest.raises(NotAnEventGraph) as refusal:
        classify_return_paths(load_spec(text + "\n"))
    assert reason in refusal.value.reason


def test_rules_for_visibility() -> None:
    """Monotonic visibility: what a transaction sees, the later ones of its session see."""
    plan = native_plan(load_spec(VISIBLE + "require vis ; so in vis as MR\n"))
    (order, walks) = plan.automata
    assert order.judges
    assert not walks.judges
    broken = parse("w(x,1) || r(x,1) -> r(x,nil)")
    assert tool_verdict(broken, plan) == "invalid"
    assert tool_verdict(broken, PLANS["ra"]) == "valid"
    assert tool_verdict(parse("w(x,1) || r(x,1) w(y,1) || r(y,1) r(x,nil)"), plan) == "valid"


def test_orders_of_another_form_are_not_certified() -> None:
    """The native checker says so; it does not guess."""
    given = to_tool(parse("w(x,1) || r(x,1)"))
    for phi in ("so?", "rt", "so ; co"):
        spec = load_spec(ORDER + f"require obs({phi}) in co as c\n")
        for check in (check_natively,):
            with pytest.raises(NotCertifiedError, match="not certified"):
                check(given, spec, Witness.of([-1, 0], [0, 1], [0]))
