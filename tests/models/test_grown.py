"""Lists and sets that only grow: what their reads allow is what a brute force finds."""

from __future__ import annotations

from random import Random

import pytest
from oracle.linearizations import is_linearizable
from support.objects import random_history, random_run

from isolang import linearize, models
from isolang.models.replay import fault_in


def growing(name):
    """Draw calls that put a value in, and reads of values of one order, or of a wrong one."""

    def call(random):
        if random.random() < 0.5:
            return "append" if name == "list" else "add", random.randrange(4), None
        values = [0, 1, 2, 3, 3] if random.random() < 0.8 else random.sample(range(4), 4)
        read = values[: random.randrange(4)]
        return "read", None, tuple(read) if name == "list" else frozenset(read)

    return call


@pytest.mark.slow
@pytest.mark.parametrize("name", ["list", "set"])
def test_verdicts_are_those_of_the_brute_force(name):
    """Of random histories, those with an accepted proposal and those without agree with it."""
    random, model, seen = Random(name), models.READY[name](), set()
    for number in range(2500):
        history = random_history(
            random, random.randrange(2, 7), growing(name), ties=number % 2 == 0
        )
        possible = is_linearizable(history, model)
        order = model.shortcut(history).order
        proposed = order is not None and not fault_in([history[i] for i in order], history, model)
        assert possible or not proposed
        verdict = linearize(history, model)
        assert verdict.outcome == ("valid" if possible else "invalid"), history
        assert verdict.certified
        seen.add((possible, proposed))
    assert seen >= {(True, True), (False, False)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["list", "set"])
@pytest.mark.parametrize("clients", [3, 20, 50])
def test_recorded_runs_are_decided(name, clients):
    """A run needs no search; with a wrong read, a search over the allowed states ends."""
    random, values = Random(clients), iter(range(10_000))

    def call(random):
        if random.random() < 0.7:
            return "append" if name == "list" else "add", next(values), None
        return "read", None, None

    for wrong, lost in ((0, 0), (0, 0.05), (2, 0), (2, 0.05)):
        history = random_run(random, 100, clients, name, wrong=wrong, lost=lost, functions=call)
        verdict = linearize(history, models.READY[name](), limit=100_000, certify=not wrong)
        if wrong:
            assert verdict.outcome in ("valid", "invalid")
        else:
            assert (verdict.outcome, verdict.configurations) == ("valid", 0)
