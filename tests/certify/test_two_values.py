"""Proofs that a version was read with two values: neither checker takes a false one."""

import random

import pytest
from support.certify import is_accepted_by_both
from support.named_sources import has_two_values, random_history

from isolang import check, load_spec
from isolang.certify.certificate import Refutation
from isolang.certify.proofs import check_proof
from isolang.certify.steps import AnomalyStep
from isolang.history import History
from isolang.problem import AnomalyKind


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_both_checkers_accept_what_is_so(seed):
    """Every claim of two values, and every witness of a level that judges no reads, is tried."""
    rng = random.Random(seed)
    spec, refuted, witnessed = load_spec("pl-2"), 0, 0
    for _ in range(60):
        txns = random_history(rng)
        history = History.from_transactions(txns)
        contradiction = has_two_values(txns)
        operations, claims = history.columns.operations(), 0
        for op in range(operations):
            for other in (None, *range(operations)):
                reader = history.transaction_of(op)
                writer = None if other is None else history.transaction_of(other)
                step = AnomalyStep(int(AnomalyKind.TWO_VALUES), reader, op, writer, other)
                claims += is_accepted_by_both(history, spec, Refutation((step,)))
        assert contradiction or claims == 0, txns
        refuted += claims > 0
        anything = check(history, "pl-1")
        if anything.outcome == "valid":
            taken = is_accepted_by_both(history, spec, anything.witness)
            assert not (taken and contradiction), txns
            witnessed += taken
    assert min(refuted, witnessed) > 3, (refuted, witnessed)


@pytest.mark.parametrize("seed", range(4))
def test_the_python_checkers_accept_every_verdict(seed):
    """The verdicts of histories that read by name and by value, and have two values or not."""
    rng = random.Random(-1 - seed)
    for _ in range(60):
        history = History.from_transactions(random_history(rng, by_name=0.6))
        verdict = check(history, rng.choice(("pl-2", "ra", "si", "ser")))
        assert verdict.certified, verdict.reason
        check_proof(history, verdict.spec, verdict.certificate().proof)
