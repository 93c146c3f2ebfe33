"""Recorded times guide the search for levels without real time, and decide nothing.

Right, skewed or made up, they may cost time; the verdict is that of the history without them, and
no step of a refutation is of real time.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from support.sampling import quick_first

from isolang.api import check, load_spec
from isolang.certify.proofs import Refutation
from isolang.certify.steps import CycleStep
from isolang.history import History, Transaction
from isolang.language.classify.event_graph import Plan, classify
from isolang.problem import build_problem
from isolang.simulator import SimulatedHistory, Workload, generate
from isolang.solvers import engine

Op = tuple[str, str, int | None]
LEVELS = ("ser", "si", "pc", "ser-nosession", "si-nosession")
PLANS = {level: classify(load_spec(level)) for level in LEVELS}


def concurrent(rng: random.Random, wrong: str) -> list[Transaction]:
    """A dense history of few values, with times that are wrong in one way, or right."""
    keys = "xyz"[: rng.randint(1, 3)]
    state: dict[str, int | None] = dict.fromkeys(keys)
    older = dict(state)
    found = []
    sessions = rng.randint(2, 8)
    clock = {s: rng.randint(-40, 40) if wrong == "clocks" else 0 for s in range(sessions)}
    for moment in range(rng.randint(8, 30)):
        ops: list[Op] = []
        stale = wrong == "stale" and rng.random() < 0.3
        written: set[str] = set()
        for key in rng.choices(keys, k=rng.randint(1, 3)):
            if rng.random() < 0.4 and key not in written:
                seen = (older if stale else state)[key]
                ops.append(("r", key, rng.choice([seen] * 30 + [1])))
            elif not stale:
                state[key] = rng.randint(1, 3)
                written.add(key)
                ops.append(("w", key, state[key]))
        if rng.random() < 0.3:
            older = dict(state)
        session = rng.randrange(sessions)
        at = 10 * moment + clock[session]
        if wrong == "random":
            at = rng.randrange(300)
        found.append(
            Transaction(
                ops or [("r", keys[0], state[keys[0]])],
                session=session,
                status="maybe" if ops and rng.random() < 0.05 else "committed",
                begin=at - rng.randrange(15),
                end=at + rng.randrange(15),
            )
        )
    return found


def without_times(transactions: list[Transaction]) -> History:
    return History.from_transactions(
        Transaction(t.ops, session=t.session, status=t.status) for t in transactions
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong", quick_first(["nothing", "clocks", "stale", "random"], 2, rest="campaign")
)
def test_no_verdict_depends_on_times(wrong: str) -> None:
    """Also where pruning and the first search leave enough open for the times to be asked."""
    guided: Counter[str] = Counter()
    for seed in range(400):
        transactions = concurrent(random.Random(f"{wrong} {seed}"), wrong)
        level = LEVELS[seed % len(LEVELS)]
        plan = PLANS[level]
        assert isinstance(plan, Plan)
        answers = []
        for history in (History.from_transactions(transactions), without_times(transactions)):
            problem = build_problem(history)
            if problem.anomalies(limit=1):
                break
            answers.append(
                engine.solve(history.columns, problem.native, plan.automata, clock_bytes=1)
            )
        if not answers:
            continue
        says = [type(answer.result).__name__ for answer in answers]
        assert says[0] == says[1], (wrong, seed, level)
        if "timed_rounds" in answers[0].statistics:
            guided[says[0]] += 1
        if isinstance(answers[0].result, Refutation):
            relations = {
                edge.relation
                for step in answers[0].result.steps
                if isinstance(step, CycleStep)
                for edge in step.edges
            }
            assert relations <= {"so", "wr", "ww", "rw"}
    assert guided["Witness"] + guided["Refutation"] > 40


@pytest.mark.parametrize(
    ("rule", "bugs", "level", "outcome"),
    [
        ("strict-serializable", (), "ser", "valid"),
        ("serializable", ("clock skew",), "ser", "valid"),
        ("serializable", ("stale read",), "ser", "valid"),
        ("snapshot", (), "si", "valid"),
        ("serializable", ("write skew",), "ser", "invalid"),
        ("snapshot", ("lost update",), "si", "invalid"),
    ],
)
def test_guided_verdicts_are_certified(
    rule: str, bugs: tuple[str, ...], level: str, outcome: str
) -> None:
    history = generate(
        Workload(
            rule=rule,
            bugs=bugs,
            transactions=400,
            sessions=30,
            operations=4,
            keys=20,
            values=3,
            read_modify_write=1.0,
            seed=5,
        )
    )
    verdict = check(history, load_spec(level), timeout=60)
    assert (verdict.outcome, verdict.certified) == (outcome, True)
    if outcome == "valid":
        assert verdict.statistics["timed_rounds"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_round_withdraws_the_times_around_every_contradiction(seed: int) -> None:
    """Many transactions of this history contradict its times, but a few rounds find a model."""
    history = generate(
        Workload(rule="snapshot", transactions=10_000, sessions=100, keys=1000, seed=seed)
    )
    verdict = check(history, load_spec("si"), timeout=60)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert 2 <= verdict.statistics["timed_rounds"] <= 4


def with_crashes(*, keys: int, seed: int) -> SimulatedHistory:
    """Return a snapshot history of 16 clients, some of whose transactions abort or are unknown."""
    return generate(
        Workload(
            rule="snapshot",
            transactions=20_000,
            sessions=16,
            keys=keys,
            info_rate=0.02,
            abort_rate=0.05,
            seed=seed,
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "outcome"), [(2, "valid"), (10, "invalid")])
def test_one_pass_without_times_follows_the_first_contradiction(seed: int, outcome: str) -> None:
    """With times, these histories would take many rounds, because each one leaves other walks."""
    history = with_crashes(keys=8000, seed=seed)
    verdict = check(history, load_spec("ser-nosession"), timeout=60)
    assert (verdict.outcome, verdict.certified) == (outcome, True)
    assert verdict.statistics["timed_rounds"] == 1
    assert "presolve_rounds" not in verdict.statistics


def test_sessions_that_continue_others_are_not_many() -> None:
    """A client that continues as another session needs no assumed order of the history."""
    history = with_crashes(keys=2000, seed=1)
    verdict = check(history, load_spec("si"), timeout=60)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert "timed_rounds" not in verdict.statistics
    assert "presolve_rounds" not in verdict.statistics


def test_the_search_hardly_moves_transactions_that_had_no_effect() -> None:
    """At their own times, half of the unfinished transactions would have to pass many readers."""
    history = generate(
        Workload(transactions=8000, sessions=16, keys=800, values=10, info_rate=0.02, seed=1)
    )
    verdict = check(history, load_spec("ser"), timeout=60)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert verdict.statistics["conflicts"] < 50  # of 160 unfinished transactions
