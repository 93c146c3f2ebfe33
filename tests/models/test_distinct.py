"""Queues and stacks whose values are distinct: what needs no search is as a search decides."""

from __future__ import annotations

import math
from random import Random

import pytest
from msgspec.structs import replace
from oracle.linearizations import is_linearizable
from support.objects import random_history, random_run

from isolang import UNKNOWN, Operation, linearize, models
from isolang.models.distinct import of_queue
from isolang.models.replay import fault_in

NAMES = ["queue", "unordered-queue", "stack"]


def distinct_calls(name, values):
    """Draw calls that put different values in, and calls that take one of the first, or none."""
    unused = iter(values)

    def call(random):
        if random.random() < 0.5:
            return "push" if name == "stack" else "enqueue", next(unused), None
        return "pop" if name == "stack" else "dequeue", None, random.choice([None, *values[:5]])

    return call


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_verdicts_are_those_of_the_brute_force(name):
    """Of random histories of distinct values, proposals and cores agree with all orders."""
    random, model, seen = Random(name), models.READY[name](), set()
    for number in range(1500):
        values = random.sample(range(20), 20)
        history = random_history(
            random, random.randrange(2, 7), distinct_calls(name, values), ties=number % 2 == 0
        )
        possible = is_linearizable(history, model)
        shortcut = model.shortcut(history)
        proposed = shortcut.order is not None and not fault_in(
            [history[i] for i in shortcut.order], history, model
        )
        assert possible or not proposed
        if shortcut.core:
            assert not possible
            assert not is_linearizable([history[i] for i in shortcut.core], model)
        verdict = linearize(history, model)
        assert verdict.outcome == ("valid" if possible else "invalid")
        assert verdict.certified
        seen.add((possible, proposed, bool(shortcut.core)))
    assert {(True, True, False), (False, False, True), (False, False, False)} <= seen


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_recorded_objects_need_no_search(name):
    """A run with distinct values and no lost answer has a proposal that the replay accepts."""
    random = Random(name)
    for lost in (0, 0, 0.05):
        for clients in (2, 10, 50):
            call = distinct_calls(name, range(1000))
            history = random_run(random, 400, clients, name, lost=lost, functions=call)
            verdict = linearize(history, models.READY[name](), limit=2000 if lost else 1)
            assert lost or (verdict.outcome, verdict.certified) == ("valid", True)
            assert verdict.outcome != "invalid"


def test_two_values_in_the_wrong_order_are_the_whole_violation():
    """Among a thousand values, those two that left in the wrong order are shown, and confirmed."""
    history = [Operation("enqueue", i, None, start=2 * i, end=2 * i + 5) for i in range(1000)]
    taken = [*range(500), 504, *range(500, 504), *range(505, 1000)]
    history += [
        Operation("dequeue", output=value, start=3000 + 2 * i, end=3001 + 2 * i)
        for i, value in enumerate(taken)
    ]
    verdict = linearize(history, models.queue())
    assert (verdict.outcome, verdict.certified) == ("invalid", True)
    assert len(verdict.window) <= 4
    shown = {x for o in verdict.window for x in (o.input, o.output)} - {None}
    assert 504 in shown
    assert shown < set(range(500, 505))
    assert "no order of these" in str(verdict)


def test_a_lost_dequeue_may_have_taken_the_value_in_between():
    """A value that was overtaken may have left by a dequeue whose answer was lost."""
    history = [
        Operation("enqueue", "a", None, start=0, end=1),
        Operation("enqueue", "b", None, start=2, end=3),
        Operation("dequeue", output="b", start=4, end=5),
    ]
    assert of_queue(history).core == (0, 1, 2)
    assert linearize(history, models.queue()).outcome == "invalid"
    lost = Operation("dequeue", output=UNKNOWN, start=0, end=math.inf)
    verdict = linearize([*history, lost], models.queue())
    assert verdict.linearization.index(lost) < verdict.linearization.index(history[2])
    assert linearize([*history, replace(lost, start=6)], models.queue()).outcome == "invalid"


def test_a_queue_that_is_not_empty_at_first():
    """Its first values are dequeued without an enqueue, and repeated values are searched."""
    history = [
        Operation("dequeue", output=value, start=i, end=i + 0.5) for i, value in enumerate("ab")
    ]
    for model in (models.queue("ab"), models.unordered_queue("ba")):
        assert linearize(history, model).outcome == "valid"
    assert linearize(history, models.queue("ba")).outcome == "invalid"
    assert linearize(history, models.queue()).outcome == "invalid"
    twice = [Operation("enqueue", "a", None, start=-2, end=-1)] * 2 + [history[0]] * 2
    assert linearize(twice, models.queue()).outcome == "valid"


def test_three_values_that_cannot_be_nested():
    """In a stack, those values are shown that cannot be nested, and no others."""
    history = []
    for i in range(200):  # each value is popped before the next is pushed
        history += [
            Operation("push", i, None, start=10 * i, end=10 * i + 1),
            Operation("pop", output=i, start=10 * i + 5, end=10 * i + 6),
        ]
    a, b = 10 * 100 + 2, 10 * 100 + 4
    history += [
        Operation("push", "a", None, start=a, end=a + 1),
        Operation("push", "b", None, start=b, end=b + 0.5),
        Operation("pop", output="a", start=b + 0.6, end=b + 0.7),
        Operation("pop", output="b", start=2500, end=2501),
    ]
    verdict = linearize(history, models.stack())
    assert (verdict.outcome, verdict.certified) == ("invalid", True)
    assert len({x for o in verdict.window for x in (o.input, o.output)} - {None}) == 2
