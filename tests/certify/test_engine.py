"""What the engine returns is certified by both checkers, whatever it says."""

import random

import pytest
from support.certify import history, some_strategy, verdicts_of_both

from isolang.certify.proofs import Refutation, Witness
from isolang.certify.steps import AnomalyStep
from isolang.errors import UnsupportedError
from isolang.history import UNKNOWN, Transaction
from isolang.language.classify.event_graph import classify
from isolang.language.load import load_spec
from isolang.problem import build_problem
from isolang.solvers.engine import solve

OWN = {
    "two-checks": 'include "adya.iso"\nacyclic so | (wr ; rw?) | ww as a\nacyclic wr | ww as b',
    "rt-and-rw": 'include "adya.iso"\nacyclic (rt | wr | ww) ; rw? as mine',
    "plus": 'include "adya.iso"\nacyclic ((so | ww)^+ ; wr?) | rw as mine',
}
NAMES = ["pl-1", "pl-2", "pl-3", "pc", "si", "ser", "sser", "strong-si", "pc-nosession"]
NAMES += ["si-nosession", "ser-nosession", "sser-nosession"]
PLANS = {name: classify(load_spec(name)) for name in NAMES}


def random_history(rng, *, lists, timed):
    """A few transactions that mostly read what was there at some moment of a serial run."""
    keys = "xyz"[: rng.randint(1, 3)]
    values = rng.randint(1, 4)
    state = {}
    given = []
    clock = 0
    fresh = 0
    for _ in range(rng.randint(1, 7)):
        before, ops = dict(state), []
        for _ in range(rng.randint(1, 4)):
            key = rng.choice(keys)
            if rng.random() < 0.5:
                fresh += 1
                if lists:
                    state[key] = [*state.get(key, []), fresh]
                    ops.append(("append", key, fresh))
                else:
                    state[key] = rng.randint(1, values) if rng.random() < 0.7 else 100 + fresh
                    ops.append(("w", key, state[key]))
            else:
                seen = state if rng.random() < 0.8 else before
                result = seen.get(key, [] if lists else None)
                if rng.random() < 0.06:
                    result = UNKNOWN
                elif lists and rng.random() < 0.1:
                    result = result[:-1]
                elif not lists and rng.random() < 0.1:
                    result = rng.randint(1, values)
                ops.append(("r", key, result))
        status = rng.choices(["committed", "aborted", "maybe"], [8, 1, 2])[0]
        if status == "aborted" and rng.random() < 0.8:
            state = before
        clock += rng.randint(0, 2)
        given.append(
            Transaction(
                ops=ops,
                session=rng.randint(0, 2),
                status=status,
                begin=clock if timed else None,
                end=clock + rng.randint(0, 4) if timed and status != "maybe" else None,
                failed=(0,) if rng.random() < 0.03 else (),
            )
        )
    if rng.random() < 0.3:
        rng.shuffle(given)
    return history(*given)


def engine_proof(h, plan):
    """The proof of the engine's verdict, as the pipeline makes it; ``None`` if it has none."""
    try:
        problem = build_problem(h)
    except UnsupportedError:
        return None
    if plan.uses_reads_from and (found := problem.anomalies(limit=1)):
        a = found[0]
        return Refutation((AnomalyStep(int(a.kind), a.txn, a.op, a.other_txn, a.other_op),))
    strategy = some_strategy(h)
    return solve(h.columns, problem.native, plan.automata, seconds=20, strategy=strategy).result


def run(seed, rounds):
    rng = random.Random(seed)
    counts = {"valid": 0, "invalid": 0, "undecided": 0}
    for _ in range(rounds):
        h = random_history(rng, lists=rng.random() < 0.4, timed=rng.random() < 0.6)
        for name, plan in PLANS.items():
            if plan.uses_real_time and not h.columns.has_time:
                continue
            proof = engine_proof(h, plan)
            if proof is None:
                counts["undecided"] += 1
                continue
            verdicts = verdicts_of_both(h, plan.spec, proof)
            assert verdicts == ("accepted", "accepted"), (
                name,
                describe(h),
                reasons(h, plan, proof),
            )
            counts["valid" if isinstance(proof, Witness) else "invalid"] += 1
    return counts


def reasons(h, plan, proof):
    from isolang.certify.native import check_natively
    from isolang.certify.proofs import check_proof
    from isolang.errors import IsolangError

    found = []
    for check in (check_proof, check_natively):
        try:
            check(h, plan.spec, proof)
        except IsolangError as error:
            found.append(str(error))
    return found


def describe(h):
    return list(h.transactions())


@pytest.mark.parametrize("name", OWN)
def test_specs_of_users_are_certified(name):
    plan = classify(load_spec(OWN[name]))
    rng = random.Random(7)
    valid = invalid = 0
    for _ in range(60):
        h = random_history(rng, lists=False, timed=True)
        if plan.uses_real_time and not h.columns.has_time:
            continue
        proof = engine_proof(h, plan)
        if proof is not None:
            assert verdicts_of_both(h, plan.spec, proof) == ("accepted", "accepted"), describe(h)
            valid += isinstance(proof, Witness)
            invalid += isinstance(proof, Refutation)
    assert valid > 5
    assert invalid > 5


@pytest.mark.slow
def test_the_engines_verdicts_are_certified():
    counts = run(1, 120)
    assert counts["valid"] > 300, counts
    assert counts["invalid"] > 300, counts
