"""``isolang.linearize``: its verdicts, its limits, and its errors."""

from __future__ import annotations

import pickle
import time
from random import Random

import pytest
from msgspec.structs import replace
from support.objects import random_run
from support.paths import ROOT

import isolang
from isolang import UNKNOWN, Model, Operation, linearize, models
from isolang.errors import HistoryError, ModelError, OptionError
from isolang.models.exhaust import has_linearization
from isolang.models.linearize import MOST_CONFIRMED
from isolang.models.replay import fault_in


def sequence(*calls):
    """Operations one after another, given as function, argument and result."""
    return [Operation(*call, start=2 * i, end=2 * i + 1) for i, call in enumerate(calls)]


WRONG = sequence(("enqueue", 1, None), ("enqueue", 2, None), ("dequeue", None, 2))


def test_a_verdict_has_no_truth_value():
    """``assert linearize(…)`` fails, whatever the history."""
    for history in (WRONG, WRONG[:2]):
        with pytest.raises(TypeError, match="no truth value"):
            bool(linearize(history, models.queue()))


def test_an_empty_history_is_linearizable():
    """So is one whose operations never returned."""
    for history in ([], [Operation("dequeue"), Operation("enqueue", 1)]):
        verdict = linearize(history, models.queue())
        assert (verdict.outcome, verdict.certified) == ("valid", True)
        assert verdict.linearization == ()


@pytest.mark.parametrize(
    ("name", "allowed", "forbidden"),
    [
        ("register", [("write", 1, None), ("cas", (1, 2), True), ("cas", (1, 3), False),
                      ("get", None, 2)],
         [("cas", (None, 1), False)]),
        ("counter", [("add", 5, 5), ("decrement", None, 4), ("increment", None, None),
                     ("read", None, 5)],
         [("increment", None, 2)]),
        ("queue", [("enqueue", 1, True), ("enqueue", 1, 1), ("dequeue", None, 1),
                   ("dequeue", None, 1), ("dequeue", None, None)],
         [("enqueue", 1, None), ("enqueue", 2, None), ("dequeue", None, 2)]),
        ("unordered-queue", [("enqueue", 1, None), ("enqueue", 2, None), ("dequeue", None, 2),
                             ("dequeue", None, 1)],
         [("enqueue", 1, None), ("dequeue", None, 1), ("dequeue", None, 1)]),
        ("stack", [("push", 1, None), ("push", 2, None), ("pop", None, 2), ("pop", None, 1),
                   ("pop", None, None)],
         [("push", 1, None), ("push", 2, None), ("pop", None, 1)]),
        ("set", [("add", 2, True), ("add", 1, None), ("add", 1, False), ("contains", 1, True),
                 ("read", None, frozenset((1, 2))), ("read", None, (2, 1)),
                 ("remove", 2, True), ("remove", 2, False), ("read", None, [1])],
         [("add", 1, None), ("read", None, [1, 1])]),
        ("mutex", [("acquire", None, True), ("acquire", None, False), ("release", None, None),
                   ("release", None, False)],
         [("acquire", None, None), ("acquire", None, None)]),
        ("list", [("read", None, None), ("append", 1, None), ("append", 1, 1),
                  ("read", None, [1, 1])],
         [("append", 1, None), ("append", 2, None), ("read", None, (2, 1))]),
    ],
)  # fmt: skip
def test_what_the_ready_models_allow(name, allowed, forbidden):
    """One operation after another, each model allows what its object does, and nothing else."""
    model = models.READY[name]()
    assert model.name == name
    for calls, outcome in ((allowed, "valid"), (forbidden, "invalid")):
        verdict = linearize(sequence(*calls), model)
        assert (verdict.outcome, verdict.certified) == (outcome, True), verdict


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("register", ("cas", 1, True)), ("register", ("read", 1, None)),
        ("register", ("write", 1, 2)), ("counter", ("add", True, None)),
        ("counter", ("increment", 2, None)), ("counter", ("increment", None, "a")),
        ("queue", ("enqueue", 5, 1)), ("queue", ("push", 1, None)),
        ("unordered-queue", ("enqueue", float("nan"), None)), ("set", ("contains", 1, None)),
        ("set", ("read", None, 5)), ("set", ("add", object(), None)),
        ("mutex", ("acquire", None, 5)), ("list", ("read", 1, ())),
    ],
)  # fmt: skip
def test_calls_that_a_model_does_not_know(name, call):
    """They are errors, also where the search would not come to them."""
    with pytest.raises(HistoryError, match=rf"operation 1: model {name}: {call[0]}: "):
        linearize(sequence(call), models.READY[name]())


def test_an_enqueue_that_returned_one_is_not_one_that_returned_true():
    """``1`` equals ``True`` in Python, but a result 1 says something that the model ignores."""
    with pytest.raises(HistoryError, match="returns nothing"):
        linearize(sequence(("enqueue", "a", 1)), models.queue())


def test_malformed_operations():
    """Operations that end before they start, and what is no operation or model, are errors."""
    for history in ([Operation("read", start=2, end=1)], ["read"], [Operation(5)]):
        with pytest.raises(HistoryError, match="operation 1: "):
            linearize(history, models.register())
    with pytest.raises(HistoryError):
        linearize([Operation("read", start=float("nan"))], models.register())
    with pytest.raises(ModelError, match="not a model"):
        linearize([], models.queue)
    with pytest.raises(OptionError):
        linearize([], models.queue(), timeout=-1)
    with pytest.raises(ModelError, match="partition"):
        linearize(WRONG, Model(0, lambda state, call: [0], partition=lambda operation: []))


def test_limits_make_the_verdict_unknown():
    """A limit of configurations, of time, or of memory: the verdict says which one was reached."""
    history = [Operation("push", i, None, start=i, end=100) for i in range(30)]
    history += [Operation("pop", None, i, start=101, end=200) for i in range(30)]
    wrong = [*history, Operation("pop", None, 50, start=203, end=204)]
    model = Model((), models.stack().step)  # without a shortcut
    verdict = linearize(wrong, model, limit=1000)
    assert (verdict.outcome, verdict.configurations) == ("unknown", 1001)
    assert verdict.reason == "the limit of configurations (1,000) was reached"
    verdict = linearize(wrong, model, timeout=0.05)
    assert (verdict.outcome, verdict.reason) == ("unknown", "the time limit of 0.05 s was reached")


def test_a_step_that_does_not_end_is_interrupted():
    """The time limit holds for the model's own code, too."""

    def step(state, call):
        time.sleep(60)

    verdict = linearize(WRONG, Model(0, step), timeout=0.05)
    assert verdict.outcome == "unknown"


def test_an_invalid_verdict_without_confirmation_says_so(monkeypatch):
    """If the second algorithm gives up, the verdict is not certified, and says why."""
    monkeypatch.setattr("isolang.models.linearize.MOST_CONFIRMED", 1)
    verdict = linearize(WRONG, models.queue())
    assert (verdict.outcome, verdict.certified) == ("invalid", False)
    assert "rests on the search alone" in verdict.certified_reason
    assert linearize(WRONG, models.queue(), certify=False).certified_reason == "not asked for"
    assert MOST_CONFIRMED > 1


def test_a_step_that_contradicts_itself_gives_no_verdict():
    """If the algorithms disagree, because ``step`` is not a function, the verdict is unknown."""
    times = []

    def step(state, call):
        times.append(call)
        return [0] if len(times) > 3 else []

    verdict = linearize(sequence(("f", None, 0), ("f", None, 1)), Model(0, step))
    while verdict.outcome == "invalid" and len(times) <= 3:
        verdict = linearize(sequence(("f", None, 0)), Model(0, step))
    assert verdict.outcome in ("unknown", "valid")


def test_forged_linearizations_are_rejected():
    """An order that lacks, repeats, invents or swaps operations, or that no run has."""
    history = [
        Operation("enqueue", 1, None, start=0, end=1),
        Operation("enqueue", 2, None, start=0, end=3),
        Operation("dequeue", None, 1, start=4, end=5),
        Operation("enqueue", 3, start=4),
    ]
    good = linearize(history, models.queue()).linearization
    assert fault_in(good, history, models.queue()) == ""
    first, two, three, lost = history
    for forged, fault in (
        ([first, two], "lacks"),
        ([first, two, three, three], "twice"),
        ([first, two, lost, three, lost], "twice"),
        ([first, two, three, replace(lost)], "the history lacks"),
        ([first, three, two], "comes after"),
        ([two, first, three], "does not allow"),
        ([replace(first, input=1), two, three], "the history lacks"),
    ):
        assert fault in fault_in(forged, history, models.queue())


def test_objects_are_judged_one_by_one_and_merged():
    """Each key has a state of its own, and the linearization of all of them keeps real time."""
    history = []
    for i in range(30):
        key = "abc"[i % 3]
        history.append(Operation("increment", output=i // 3 + 1, start=i, end=i + 5, key=key))
    verdict = linearize(history, models.counter())
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    verdict = linearize([*history, Operation("read", output=3, start=90, end=91, key="b")],
                        models.counter())  # fmt: skip
    assert (verdict.outcome, verdict.key, verdict.stuck.output) == ("invalid", "b", 3)
    assert len(verdict.window) == 11


def test_a_partition_of_ones_own():
    """``partition`` makes objects of what the operations say."""
    history = sequence(("add", "a", True), ("add", "b", True), ("add", "a", False))
    model = models.set_()
    by_element = Model(model.initial, model.step, partition=lambda operation: operation.input)
    assert linearize(history, by_element).outcome == "valid"
    assert linearize(sequence(("add", "a", False)), by_element).outcome == "invalid"


def test_verdicts_can_be_pickled_and_shown():
    """The text of a verdict says what the command line says; a repr is one line."""
    verdict = linearize(WRONG, models.queue())
    assert "then the state is [1 2], and dequeue → 2 is not possible" in str(verdict)
    assert repr(verdict) == "<NotLinearizable: queue, stuck at dequeue → 2>"
    operation = pickle.loads(pickle.dumps(verdict.stuck))
    assert operation == verdict.stuck


@pytest.mark.slow
@pytest.mark.parametrize("name", models.READY)
def test_runs_of_objects_are_linearizable(name):
    """A history recorded from an object is valid; if results are changed, both algorithms agree."""
    random = Random(name)
    for wrong in (0, 0, 1, 2):
        history = random_run(random, 60, 4, name, wrong=wrong, lost=0.05)
        verdict = linearize(history, models.READY[name](), certify=False)
        if not wrong:
            assert verdict.outcome == "valid"
        possible = has_linearization(history, models.READY[name](), most=20_000)
        assert possible in (None, verdict.outcome == "valid")


def test_the_page_shows_the_example():
    """The model of docs/models.md is that of examples/store_model.py."""
    page = (ROOT / "docs/models.md").read_text(encoding="utf-8")
    example = (ROOT / "examples/store_model.py").read_text(encoding="utf-8")
    shown = page.split("```python\n")[1].split("```")[0]
    assert example.endswith(shown)


def test_unknown_results_of_ready_models():
    """An unknown result of an operation that returned allows every result."""
    history = sequence(
        ("enqueue", 1, None), ("enqueue", 2, None), ("dequeue", None, UNKNOWN), ("dequeue", None, 2)
    )
    assert linearize(history, models.queue()).outcome == "valid"
    assert linearize(history[:3] + history[2:3], models.queue()).outcome == "valid"
    assert isolang.UNKNOWN is UNKNOWN
