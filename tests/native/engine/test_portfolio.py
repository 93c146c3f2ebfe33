"""Annealing and the state search: forced on, they decide what the oracle decides."""

import random
from collections import Counter

import numpy as np
import pytest
from oracle import semantics
from oracle.generate import any_history
from oracle.levels import LEVELS
from oracle.pipeline import expected_verdicts, to_tool
from support.certify import TOO_MANY_BY_DEFINITION, verdicts_of_both
from support.engine import PLANS as ENGINE_PLANS
from support.engine import answer, contended_history

from isolang import _native
from isolang.api import check
from isolang.certify.errors import NotCertifiedError
from isolang.certify.native import check_natively
from isolang.certify.proofs import Refutation
from isolang.certify.refutation import check_refutation
from isolang.certify.steps import ExhaustionStep
from isolang.explain.explain import explain
from isolang.history import History, Transaction
from isolang.language.classify.event_graph import classify
from isolang.language.load import load_spec
from isolang.options import Options
from isolang.problem import build_problem
from isolang.simulator import Workload, generate
from isolang.solvers.engine import constraint_load, solve

FORCED = ("anneal", "states")
#: Levels whose event graph is one line of reads and writes, in all its variants.
TOTAL_ORDERS = ("ser", "si", "pc", "sser", "strong-si", "pl-3", "si-nosession", "pc-nosession")
#: The same shape from users: the hub where the reads are; and shapes that are no line.
USERS = {
    "rw? ; (so | wr | ww)": "acyclic rw? ; (so | wr | ww) as a",
    "rt and init": "acyclic (rt | init | wr | ww) ; rw? as a",
    "writes overtake": "acyclic ((so | wr) ; rw?) | ww as a",
}
BY = ("cdcl", "anneal", "states")


def without_times(history):
    """The same, with nothing to guide the search."""
    return History.from_transactions(
        Transaction(t.ops, session=t.session, status=t.status) for t in history.transactions()
    )


@pytest.fixture(scope="module")
def plans():
    own = {n: classify(load_spec(f'include "adya.iso"\n{t}\n')) for n, t in USERS.items()}
    return own | {name: classify(load_spec(name)) for name in TOTAL_ORDERS}


def exhausted(result):
    """Whether an exhaustive search found nothing, which is a claim without steps to check."""
    return result.outcome == "invalid" and isinstance(result.result.steps[-1], ExhaustionStep)


def accepted(history, spec, result):
    """An exhausted search leaves no proof; every other answer does."""
    if exhausted(result):
        return True
    return verdicts_of_both(history, spec, result.result) == ("accepted", "accepted")


@pytest.mark.slow
@pytest.mark.parametrize("strategy", FORCED)
def test_forced_they_agree_with_brute_force(plans, strategy):
    """With clocks too small to prune, so that there is something left to search."""
    rng = random.Random(3)
    counts = Counter()
    compared = 0
    while compared < 120:
        given = any_history(rng)
        try:
            expected = expected_verdicts(given, [LEVELS[name] for name in TOTAL_ORDERS])
        except (semantics.TooLargeError, ValueError):
            continue
        compared += 1
        history = to_tool(given)
        for name, verdict in zip(TOTAL_ORDERS, expected, strict=True):
            if plans[name].uses_real_time and not history.columns.has_time:
                continue
            result = answer(history, plans[name], clock_bytes=1, strategy=strategy)
            if result is None:
                continue
            got = result.outcome
            assert got == verdict, (name, given)
            assert accepted(history, plans[name].spec, result), (name, given)
            counts[BY[int(result.statistics.get("decided_by", 0))], got] += 1
    assert counts[strategy, "valid"] > 25
    if strategy == "states":
        assert counts[strategy, "invalid"] > 2


@pytest.mark.parametrize("name", TOTAL_ORDERS)
def test_a_read_that_one_of_two_values_suits_waits_for_neither(plans, name):
    """T0 wrote nil and 2: once its version is gone, a read of 2 still has the other writer."""
    history = History.from_transactions(
        [
            Transaction(
                [("r", "y", None), ("w", "y", 3), ("w", "x", 1)], session=0, begin=0, end=9
            ),
            Transaction([("w", "y", 2)], session=1, begin=0, end=9),
            Transaction([("r", "x", 1), ("r", "y", 2)], session=2, begin=0, end=9),
        ],
        initial={"y": 2},
    )
    result = answer(history, plans[name], clock_bytes=1, strategy="states")
    assert result.outcome == "valid"
    assert accepted(history, plans[name].spec, result)


@pytest.mark.parametrize("name", ["ser", "si", "pc"])
def test_two_reads_of_a_key_replace_one_version(plans, name):
    """T0 wrote nil and 1, and a transaction reads both, then writes: it replaces one version."""
    history = History.from_transactions(
        [Transaction([("r", "x", None), ("r", "x", 1), ("w", "x", 1)], session=1)], initial=1
    )
    result = answer(history, plans[name], clock_bytes=1, strategy="states", presolve=False)
    assert result.outcome == "valid"
    assert accepted(history, plans[name].spec, result)


@pytest.mark.parametrize("strategy", FORCED)
@pytest.mark.parametrize("name", [*TOTAL_ORDERS, *USERS, *ENGINE_PLANS])
def test_forced_they_agree_with_the_search(plans, name, strategy):
    """Few values, several keys, indeterminate transactions; also where they do not apply."""
    plan = plans.get(name) or ENGINE_PLANS[name]
    for seed in range(25):
        history = contended_history(random.Random(seed), transactions=9)
        expected = answer(history, plan)
        if expected is None:
            continue
        result = answer(history, plan, clock_bytes=1, strategy=strategy, seed=seed)
        assert result.outcome == expected.outcome, seed
        assert accepted(history, plan.spec, result), seed


@pytest.mark.parametrize("name", ["ser", "si", "pc"])
@pytest.mark.parametrize("strategy", FORCED)
def test_larger_histories_get_a_witness(plans, name, strategy):
    rng = random.Random(name)
    for _ in range(3):
        history = serial(rng, transactions=60, keys=8, values=3, sessions=6)
        result = answer(history, plans[name], strategy=strategy)
        assert result.outcome == "valid"
        assert BY[int(result.statistics["decided_by"])] == strategy
        assert accepted(history, plans[name].spec, result)


def serial(rng, *, transactions, keys, values, sessions, changes=0):
    """A serial run dealt to sessions, and some reads changed."""
    state, given, reads = {}, [], []
    for number in range(transactions):
        ops = []
        for key in rng.sample(range(keys), 4):
            if rng.random() < 0.5:
                reads.append((number, len(ops)))
                ops.append(("r", key, state.get(key)))
            else:
                state[key] = rng.randint(1, values)
                ops.append(("w", key, state[key]))
        given.append(ops)
    for number, place in rng.sample(reads, changes):
        given[number][place] = (*given[number][place][:2], rng.randint(1, values))
    return History.from_transactions(
        [Transaction(ops=ops, session=rng.randrange(sessions)) for ops in given]
    )


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["auto", *FORCED])
def test_equal_seeds_give_equal_runs(plans, strategy):
    rng = random.Random(11)
    history = serial(rng, transactions=70, keys=10, values=3, sessions=8)
    runs = [answer(history, plans["si"], seed=7, strategy=strategy) for _ in range(2)]
    counts = [
        {k: v for k, v in run.statistics.items() if not k.startswith("seconds")} for run in runs
    ]
    assert counts[0] == counts[1]
    assert np.array_equal(runs[0].result.source, runs[1].result.source)
    assert np.array_equal(runs[0].result.order_txn, runs[1].result.order_txn)


def test_other_seeds_give_other_runs(plans):
    """Neighbouring seeds once shared one stream of random numbers, one step apart."""
    rng = random.Random(11)
    history = serial(rng, transactions=200, keys=30, values=3, sessions=12)
    runs = [answer(history, plans["ser"], seed=seed, strategy="anneal") for seed in range(6)]
    assert len({run.statistics["annealing_moves"] for run in runs}) == len(runs)


@pytest.mark.parametrize(
    ("strategy", "phase"), [("anneal", "annealing"), ("states", "searching over states")]
)
def test_each_phase_looks_at_the_clock(plans, strategy, phase):
    """What looks at the clock also tells what is being done, and can be ended there."""
    rng = random.Random(1)
    history = serial(rng, transactions=900, keys=20, values=5, sessions=30)
    problem = build_problem(history).native

    def end(at):
        if at == phase:
            raise InterruptedError(at)

    with pytest.raises(InterruptedError, match=phase):
        solve(
            history.columns, problem, plans["ser"].automata, strategy=strategy, progress=end,
            seconds=250,
        )  # fmt: skip


def test_an_unknown_says_how_hard_the_history_is():
    rng = random.Random(1)
    history = serial(rng, transactions=900, keys=20, values=5, sessions=30)
    verdict = check(history, load_spec("ser"), timeout=0.5)
    assert verdict.outcome == "unknown"
    assert "rho = " in verdict.reason
    assert verdict.statistics["load"] > 0.4


def overwriting(rng, *, transactions, keys, values, sessions, blind=0.0, changes=0):
    """A serial run in which nearly every write follows a read of its key; some reads changed."""
    state, given, reads = {}, [], []
    for number in range(transactions):
        ops = []
        for key in rng.sample(range(keys), min(keys, rng.randint(1, 3))):
            write = rng.random() < 0.5
            if not write or rng.random() >= blind:
                reads.append((number, len(ops)))
                ops.append(("r", key, state.get(key)))
            if write:
                state[key] = rng.randint(1, values)
                ops.append(("w", key, state[key]))
        given.append(ops)
    for number, place in rng.sample(reads, min(changes, len(reads))):
        given[number][place] = (
            "r",
            given[number][place][1],
            rng.choice([None, *range(1, values + 1)]),
        )
    return History.from_transactions(
        [Transaction(ops=ops, session=rng.randrange(sessions)) for ops in given]
    )


EXHAUSTED = [("exhaustion", 0)]


def natively(history, spec, refutation):
    """What the native checker says, which alone derives that there is no order."""
    return verdicts_of_both(history, spec, refutation)[1]


@pytest.mark.parametrize("name", ["ser", "si", "pc", "si-nosession", "pl-3"])
def test_precedences_refute_what_has_no_model_and_nothing_else(plans, name):
    """The native checker accepts the claim for most, and for no history that has a model."""
    rng = random.Random(name)
    counts = Counter()
    for _ in range(150):
        history = overwriting(
            rng,
            transactions=rng.randint(4, 12),
            keys=rng.randint(1, 4),
            values=rng.randint(1, 3),
            sessions=rng.randint(2, 6),
            blind=rng.choice([0, 0, 0.3]),
            changes=rng.randint(0, 3),
        )
        expected = answer(history, plans[name], strategy="cdcl")
        if expected is None:
            continue
        valid = expected.outcome == "valid"
        assert (answer(history, plans[name], strategy="states").outcome == "valid") == valid
        first = natively(history, plans[name].spec, Refutation.of(EXHAUSTED))
        assert first in (("not certified",) if valid else ("accepted", "not certified"))
        counts[valid, first] += 1
    assert counts[False, "accepted"] > 5 * counts[False, "not certified"]
    assert counts[False, "accepted"] > 10
    assert counts[True, "not certified"] > 10


# Sessions, and what their transactions did; no version may be overwritten twice.
COUNTED = {
    # Of the two versions 1, one is overwritten by the 2, so both precede the second read of 1. Then
    # one of them, or that read, stands between the 2 and its reader.
    "one goes, so both have come": [
        [[("w", "x", 1)]],
        [[("w", "x", 1)]],
        [[("r", "x", 1), ("w", "x", 2)], [("r", "x", 1)], [("r", "x", 2)]],
    ],
    # Three transactions replace a 1 of x.
    "from both ends": [
        [
            [("w", "x", 1)],
            [("r", "x", 1), ("w", "x", 2)],
            [("w", "x", 1)],
            [("r", "x", 1), ("w", "x", 2), ("w", "y", 1)],
        ],
        [[("w", "y", 2), ("w", "x", 1)]],
        [[("r", "y", 1), ("r", "x", 1)]],
        [[("r", "x", 1), ("w", "x", 1)]],
    ],
}


@pytest.mark.parametrize("name", COUNTED)
def test_precedences_count_versions(plans, name):
    """Without counting, the other rules find nothing here."""
    history = History.from_transactions(
        [
            Transaction(ops=ops, session=session)
            for session, transactions in enumerate(COUNTED[name])
            for ops in transactions
        ]
    )
    assert answer(history, plans["ser"], strategy="cdcl").outcome == "invalid"
    assert natively(history, plans["ser"].spec, Refutation.of(EXHAUSTED)) == "accepted"


@pytest.mark.parametrize("seed", range(3))
def test_annealing_stays_within_the_precedences(plans, seed):
    """They leave few orders; over all others annealing needs 1.0 to 1.8 million moves."""
    rng = random.Random(seed)
    history = overwriting(rng, transactions=400, keys=20, values=3, sessions=20)
    problem = build_problem(history)
    result = solve(
        history.columns, problem.native, plans["ser"].automata, seed=seed, strategy="anneal"
    )
    assert result.outcome == "valid"
    assert result.statistics["annealing_moves"] < 500_000
    check_natively(history, plans["ser"].spec, result.result)


def test_precedences_agree_with_brute_force(plans):
    """Histories as the oracle makes them: lists, failed operations, aborts, unknown outcomes."""
    rng = random.Random(8)
    counts = Counter()
    while sum(counts.values()) < 300:
        given = any_history(rng)
        try:
            expected = expected_verdicts(given, [LEVELS[name] for name in TOTAL_ORDERS])
        except (semantics.TooLargeError, ValueError):
            continue
        history = to_tool(given)
        for name, verdict in zip(TOTAL_ORDERS, expected, strict=True):
            if plans[name].uses_real_time and not history.columns.has_time:
                continue
            first = natively(history, plans[name].spec, Refutation.of(EXHAUSTED))
            assert verdict == "invalid" or first == "not certified", (name, given)
            counts[verdict, first] += 1
    assert counts["invalid", "accepted"] > 20


@pytest.mark.slow
def test_precedences_refute_what_other_searches_drown_in(plans):
    """A changed read among 300 transactions over two values, with a certificate."""
    rng = random.Random(3)
    refuted = 0
    for _ in range(6):
        history = overwriting(rng, transactions=300, keys=20, values=3, sessions=12, changes=1)
        result = answer(history, plans["ser"], strategy="states")
        if result is None or not exhausted(result):
            continue
        check_natively(history, plans["ser"].spec, result.result)
        refuted += 1
    assert refuted > 0


def test_an_exhausted_search_that_precedences_do_not_confirm_has_no_certificate(plans):
    """Nobody believes a claim: both checkers say that there is nothing to check."""
    rng = random.Random(5)
    spec = plans["si-nosession"].spec
    for _ in range(400):
        history = overwriting(
            rng, transactions=10, keys=3, values=2, sessions=5, blind=0.4, changes=2
        )
        result = answer(history, plans["si-nosession"], clock_bytes=1, strategy="states")
        if result is None or not exhausted(result):
            continue
        if natively(history, spec, result.result) == "accepted":
            continue
        assert answer(history, plans["si-nosession"], strategy="cdcl").outcome == "invalid"
        refutation = result.result
        with pytest.raises(NotCertifiedError, match="exhaustive search"):
            check_natively(history, spec, refutation)
        with pytest.raises(NotCertifiedError, match="not certified by definition"):
            check_refutation(history, spec, result.result.steps)
        violation = explain(build_problem(history), refutation.steps)
        assert violation.anomaly == "no order"
        return
    pytest.fail("no history was refuted by exhaustion alone")


def test_the_load_of_a_history():
    """Two of the four writers of x have the value read, one of the two of y: ln 2 and ln 2; two
    sessions of two and one of one transaction interleave in 30 ways."""
    history = History.from_transactions(
        [
            Transaction(ops=[("w", "x", 1)], session=0),
            Transaction(ops=[("w", "x", 1), ("w", "y", 1)], session=0),
            Transaction(ops=[("w", "x", 2)], session=1),
            Transaction(ops=[("r", "x", 1)], session=1),
            Transaction(ops=[("r", "y", 1)], session=2),
        ]
    )
    expected = 2 * np.log(2) / np.log(30)
    assert constraint_load(build_problem(history).native) == pytest.approx(expected, rel=1e-3)


def test_an_unknown_strategy_is_refused(plans):
    history = contended_history(random.Random(0))
    with pytest.raises(ValueError, match="strategy"):
        answer(history, plans["ser"], strategy="luck")


def contradictory(seed=4):
    """A history that no order explains, by a contradiction that takes long to find."""
    rng = random.Random(seed)
    return serial(rng, transactions=36, keys=5, values=3, sessions=12, changes=2)


@pytest.mark.parametrize("strategy", ["cdcl", "states"])
def test_the_searches_keep_to_their_memory(plans, strategy):
    """They end by themselves, without a deadline, when they hold what they may."""
    history = contradictory()
    problem = build_problem(history).native
    with pytest.raises(_native.OutOfMemory, match="0 MB") as raised:
        solve(
            history.columns,
            problem,
            plans["ser"].automata,
            strategy=strategy,
            search_bytes=100_000,
        )
    assert isinstance(raised.value, MemoryError)


@pytest.mark.slow
def test_an_unknown_for_lack_of_memory_explains_itself(monkeypatch):
    """All three together; they may hold half of the memory of the check, a gibibyte at most."""
    assert Options(memory=100).search_bytes() == 50_000_000
    assert Options(memory=100_000).search_bytes() == Options().search_bytes() == 1 << 30
    monkeypatch.setattr(Options, "search_bytes", lambda _: 100_000)
    verdict = check(contradictory(), load_spec("ser"))
    assert verdict.outcome == "unknown"
    assert verdict.cause == "memory"
    assert verdict.reason.startswith("memory: the searches filled the")
    assert "rho = " in verdict.reason


@pytest.mark.slow
def test_cdcl_refutes_from_where_annealing_froze(plans):
    """The refutation of a second search, begun from another order, is one that checkers accept."""
    rng = random.Random(2)
    for _ in range(12):
        history = serial(rng, transactions=60, keys=12, values=3, sessions=12, changes=2)
        result = answer(history, plans["ser"], clock_bytes=1)
        if result is None or result.outcome == "valid" or exhausted(result):
            continue
        assert verdicts_of_both(history, plans["ser"].spec, result.result) == (
            "accepted",
            "accepted",
        )
        if result.statistics.get("annealing_coolings", 0) > 0:
            return
    pytest.fail("no refutation came after a cooling")


@pytest.mark.slow
def test_large_and_dense():
    """What CDCL alone does not decide in a minute: the likely line, mended by a short cooling."""
    workload = Workload(
        transactions=10_000, sessions=200, keys=1000, read_share=0.1, values=50, seed=1
    )
    history = without_times(generate(workload))
    plan = classify(load_spec("ser"))
    result = solve(history.columns, build_problem(history).native, plan.automata, seconds=120)
    assert result.outcome == "valid"
    assert result.statistics["annealing_coolings"] >= 1
    check_natively(history, plan.spec, result.result)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "rule"),
    [("ser", "serializable"), pytest.param("si", "snapshot", marks=pytest.mark.slow)],
)
def test_what_a_cooling_leaves_is_repaired(level, rule):
    """All but what is in the way is held in its place; the model is one of the whole."""
    workload = Workload(
        rule=rule,
        transactions=5000,
        operations=6,
        sessions=200 if level == "ser" else 100,
        keys=500,
        values=50,
        read_share=0.2,
        seed=1,
    )
    history = without_times(generate(workload))
    plan = classify(load_spec(level))
    result = solve(history.columns, build_problem(history).native, plan.automata, seconds=120)
    assert result.outcome == "valid"
    assert result.statistics["repair_rounds"] > 1
    assert 0 < result.statistics["repair_released"] < 2500
    assert verdicts_of_both(history, plan.spec, result.result) == TOO_MANY_BY_DEFINITION
