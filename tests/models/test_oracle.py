"""Verdicts on random histories of objects agree with a brute force over all orders."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from msgspec.structs import replace
from oracle.linearizations import is_linearizable, linearizations
from support.objects import random_call, random_history, random_machine

from isolang import UNKNOWN, Model, Operation, linearize, models
from isolang.models.exhaust import has_linearization
from isolang.models.replay import fault_in
from isolang.models.search import Search


def compare(history, model):
    """The verdict of a history, which the brute force and both other algorithms confirm."""
    verdict = linearize(history, model)
    expected = "valid" if is_linearizable(history, model) else "invalid"
    assert verdict.outcome == expected, (history, verdict)
    assert verdict.certified, (history, verdict.certified_reason)
    if verdict.outcome == "valid":
        assert fault_in(verdict.linearization, history, model) == ""
    else:
        # What is shown is enough for the violation: operations that ended later need not have.
        window = [
            replace(o, end=float("inf")) if o.end > verdict.stuck.end else o for o in verdict.window
        ]
        assert not is_linearizable(window, model)
        for partial in verdict.longest:
            rest = [o for o in verdict.window if not any(o is other for other in partial.order)]
            assert verdict.stuck in rest
            assert not any(
                o.end < other.start for other, o in itertools.combinations(partial.order, 2)
            )
    return verdict.outcome


@pytest.mark.slow
@pytest.mark.parametrize("name", models.READY)
@pytest.mark.parametrize("ties", [False, True])
def test_ready_models(name, ties):
    """Of each model, random histories of up to six operations have the brute force's verdict."""
    random, model, outcomes = Random(f"{name} {ties}"), models.READY[name](), set()
    for number in range(300):
        history = random_history(
            random,
            random.randrange(1, 7),
            lambda r: random_call(r, name),
            keys=1 + number % 2,
            ties=ties,
        )
        outcomes.add(compare(history, model))
    assert outcomes == {"valid", "invalid"}


def random_machine_call(random):
    return random.choice("fg"), None, random.randrange(2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_machines(seed):
    """So have histories of random machines, which may have several next states."""
    random, outcomes = Random(seed), set()
    for number in range(600):
        history = random_history(
            random, random.randrange(1, 7), random_machine_call, ties=number % 2 == 0
        )
        outcomes.add(compare(history, random_machine(random)))
    assert outcomes == {"valid", "invalid"}


@pytest.mark.slow
def test_linearizations_are_checked():
    """The checker accepts exactly those orders that the brute force lists."""
    random, accepted, rejected = Random(5), 0, 0
    for _ in range(150):
        model = random_machine(random)
        history = random_history(random, 4, random_machine_call, ties=True)
        expected = set(linearizations(history, model))
        for many in range(5):
            for order in itertools.permutations(range(4), many):
                fault = fault_in([history[i] for i in order], history, model)
                assert (fault == "") == (order in expected), (history, order, fault)
                accepted += not fault
                rejected += bool(fault)
    assert min(accepted, rejected) > 100


@pytest.mark.slow
def test_large_histories_of_machines():
    """Both algorithms agree on histories too large for the brute force."""
    random, outcomes = Random(6), set()
    for number in range(200):
        model = random_machine(random)
        history = random_history(
            random, random.randrange(8, 20), random_machine_call, ties=number % 2 == 0
        )
        result = Search(history, model, limit=100_000).run()
        possible = has_linearization(history, model, most=5_000)
        if result.order is not None:
            assert fault_in([history[i] for i in result.order], history, model) == ""
        if possible is not None:
            assert possible == (result.order is not None), history
            outcomes.add(possible)
    assert outcomes == {True, False}


def test_values_of_different_types():
    """``1``, ``1.0``, ``True`` and ``"1"`` are different values and different states."""
    for written, read in itertools.permutations([1, 1.0, True, "1"], 2):
        history = [
            Operation("write", written, start=0, end=1),
            Operation("read", output=read, start=2, end=3),
        ]
        assert linearize(history, models.register()).outcome == "invalid"
        history[1] = replace(history[1], output=written)
        assert linearize(history, models.register()).outcome == "valid"


def test_equal_calls_of_different_types():
    """A write of ``True`` is not a write of ``1``, although Python calls them equal."""
    history = [
        Operation("write", 1, start=0, end=1),
        Operation("write", True, start=2, end=3),
        Operation("read", output=True, start=4, end=5),
    ]
    assert linearize(history, models.register()).outcome == "valid"
    history[2] = replace(history[2], output=1)
    assert linearize(history, models.register()).outcome == "invalid"


def test_states_of_different_types():
    """States that are equal in Python, but not of one type, are kept apart."""

    def step(state, call):
        if call.f == "set":
            return [1, True]
        return [state] if type(state).__name__ == call.output else []

    model = Model(0, step)
    for kind in ("int", "bool"):
        history = [Operation("set", start=0, end=1), Operation("type", output=kind, start=2, end=3)]
        assert linearize(history, model).outcome == "valid"


def test_pending_operations_take_effect_or_not():
    """An operation that never returned may take effect at any later time, or never."""
    lost = Operation("enqueue", 7, UNKNOWN, start=0)
    for output, outcome in ((7, "valid"), (None, "valid"), (8, "invalid")):
        history = [lost, Operation("dequeue", output=output, start=10, end=11)]
        assert linearize(history, models.queue()).outcome == outcome
    twice = [lost, *(Operation("dequeue", output=7, start=t, end=t + 1) for t in (10, 12))]
    assert linearize(twice, models.queue()).outcome == "invalid"
