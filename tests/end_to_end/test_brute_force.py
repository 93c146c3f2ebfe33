"""The whole pipeline against the oracle: every library level on small histories, no disagreement.

This is the slice that runs with the other tests; ``benchmarks/campaign.py`` is the long run.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from oracle import semantics
from oracle.generate import (
    add_empty,
    any_history,
    contradicting_lists,
    every_small_history,
    random_times,
    separating,
    simulated,
    well_formed,
)
from oracle.history import History, Op, Status, Txn, parse, show, without_time
from oracle.levels import GUARANTEES, LEVELS, WEAK_ADJACENT
from oracle.pipeline import Levels, to_tool, tool_verdict_of
from support.sampling import quick_first
from support.specifications import histories

from isolang.api import check, load_spec
from isolang.history import History as ToolHistory
from isolang.history import Transaction
from isolang.language.classify.route import route
from isolang.pipeline.minimal import minimise

SLICES = 4
PER_SLICE = 80


@pytest.fixture(scope="module")
def levels() -> Levels:
    return Levels()


def agree(levels: Levels, history: History, *, seed: int = 0) -> dict[str, str]:
    expected, wrong = levels.compare(history, seed=seed)
    assert not wrong, "\n".join(map(str, wrong))
    return expected


@pytest.mark.slow
@pytest.mark.parametrize("part", quick_first(range(SLICES), 2, rest="campaign"))
def test_generated_histories(levels: Levels, part: int) -> None:
    """Mutated litmus histories, simulated databases and random ones."""
    rng = random.Random(1_000 + part)
    compared = 0
    while compared < PER_SLICE:
        history = any_history(rng)
        try:
            agree(levels, history, seed=compared)
        except semantics.TooLargeError:
            continue
        compared += 1


@pytest.mark.slow
def test_lists_whose_reads_contradict_each_other() -> None:
    """PL-1 judges no reads, but orders what they show, whatever else is wrong with them."""
    some, rng = Levels(("pl-1",)), random.Random(6)
    verdicts: Counter[str] = Counter()
    while verdicts.total() < 400:
        history = contradicting_lists(rng)
        if well_formed(history):
            verdicts[agree(some, history, seed=verdicts.total())["pl-1"]] += 1
    assert min(verdicts["valid"], verdicts["invalid"]) > 100


@pytest.mark.slow
def test_histories_that_separate_neighbours() -> None:
    """The weak levels, the session guarantees and what is next to them; and each is told apart."""
    names = ("rc", "ra", "cc", "cc-vis", "psi", "pc", "si", "ser", "ra-nosession", *GUARANTEES)
    some, rng = Levels(names), random.Random(4)
    separated: Counter[tuple[str, str]] = Counter()
    for number in range(80):
        expected = agree(some, separating(rng), seed=number)
        for weak, strong in WEAK_ADJACENT:
            if expected.get(weak) == "valid" and expected.get(strong) == "invalid":
                separated[weak, strong] += 1
    pairs = [(w, s) for w, s in WEAK_ADJACENT if w in names and s in names]
    assert len(pairs) > 10
    assert [pair for pair in pairs if not separated[pair]] == []


@pytest.mark.slow
@pytest.mark.parametrize("offset", quick_first(range(313, 16_313, 4_000), rest="campaign"))
def test_every_small_history_sampled(levels: Levels, offset: int) -> None:
    """Every 16,000th of all 536,575 histories of at most three transactions and two registers."""
    for history in every_small_history(offset=offset, step=16_000):
        agree(levels, history)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=histories())
def test_histories_that_shrink(levels: Levels, history: History) -> None:
    with suppress(semantics.TooLargeError):
        agree(levels, history)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=histories(times=True))
def test_histories_with_times_that_shrink(levels: Levels, history: History) -> None:
    with suppress(semantics.TooLargeError):
        agree(levels, history)


@pytest.mark.parametrize(
    "text",
    [
        "@4-6 -> w(x,1) @0-3",
        "@4-6 -> @0-3",
        "w(x,1) @0-1 -> @8-9 -> r(x,nil) @2-3 || w(y,1) @4-5",
        "r(x,1) @0-1 -> @2-3 || @4-5 -> w(x,1) @6-7",
    ],
)
def test_a_transaction_without_operations_on_a_cycle(levels: Levels, text: str) -> None:
    """Sessions and real time order it, so that a cycle may go through it; and it is shown."""
    history = parse(text)
    assert agree(levels, history)["sser"] == "invalid"
    given = to_tool(history)
    for how in ({}, {"encoding": "relational"}, {"solver": "native", "prune": "none"}):
        verdict = check(given, load_spec("sser"), **how)
        assert (verdict.outcome, verdict.certified) == ("invalid", True)
        assert verdict.violation.transactions
    verdict = check(given, load_spec("sser"))
    minimal = minimise(verdict, route(load_spec("sser")), seconds=20)
    assert check(minimal, load_spec("sser")).outcome == "invalid"


@pytest.mark.slow
@pytest.mark.parametrize("part", quick_first(range(SLICES), 2, rest="campaign"))
def test_transactions_without_operations(levels: Levels, part: int) -> None:
    """They may have times, any status, and any place in a session."""
    rng = random.Random(2_000 + part)
    compared: Counter[str] = Counter()
    while compared["histories"] < PER_SLICE // 2:
        history = random_times(rng, without_time(any_history(rng)))
        for _ in range(rng.randint(1, 3)):
            history = add_empty(rng, history)
        try:
            expected = agree(levels, history, seed=part)
        except semantics.TooLargeError:
            continue
        compared["histories"] += 1
        compared["violated by real time"] += (
            expected.get("sser") == "invalid" and expected["ser"] == "valid"
        )
    assert compared["violated by real time"] > 0


@pytest.mark.parametrize("status", ["aborted", "maybe"])
def test_nothing_committed(levels: Levels, status: Status) -> None:
    """Nothing ended before anything began then; levels with real time are judged by the rest."""
    for ops in ((), (("r", "x", 1),), (("w", "x", 1),)):
        history = (Txn(0, ops, status), Txn(0, ops, status, 3))
        assert set(agree(levels, history).values()) == {"valid"}
        assert "sser" in levels.applicable(history)


@pytest.mark.slow
@pytest.mark.parametrize("seed", quick_first([11, 12, 13], rest="campaign"))
def test_an_initial_value_that_is_written_too(levels: Levels, seed: int) -> None:
    """T0 wrote 1: a read of 1 may be of the initial state or of a later write of 1."""
    rng = random.Random(seed)
    differ = 0
    for number in range(50):
        history = any_history(rng)
        try:
            expected, wrong = levels.compare(history, seed=number, initial=1)
            differ += expected != levels.expected(history)
        except semantics.TooLargeError:
            continue
        assert not wrong, "\n".join(map(str, wrong))
    assert differ, "the initial value never mattered"


@pytest.mark.slow
def test_sources_that_the_format_names(levels: Levels) -> None:
    """Cobra's logs name the write of each read: then values do not matter.

    The same history twice: with a value of its own for each write, for the oracle; and with equal
    values and named sources, for the tool.
    """
    rng = random.Random(12)
    verdicts: Counter[str] = Counter()
    for _ in range(120):
        unique, named = with_sources(rng)
        try:
            expected = levels.expected(unique)
        except semantics.TooLargeError:
            continue
        for name, verdict in expected.items():
            assert tool_verdict_of(named, levels.plans[name]) == verdict, f"{name}: {show(unique)}"
            verdicts[verdict] += 1
    assert min(verdicts["valid"], verdicts["invalid"]) > 50


def with_sources(rng: random.Random) -> tuple[History, ToolHistory]:
    """A register history in which each read takes a random write, in both forms."""
    history = tuple(t for t in simulated_registers(rng) if t.status != "maybe")
    number = {
        (i, j): 100 * (i + 1) + j
        for i, t in enumerate(history)
        for j, op in enumerate(t.ops)
        if op[0] == "w"
    }
    unique, named = [], []
    for i, t in enumerate(history):
        own: dict[str, tuple[int, int]] = {}
        ops: list[Op] = []
        ops_named: list[tuple[object, ...]] = []
        for j, (kind, key, value) in enumerate(t.ops):
            if kind == "w":
                own[key] = (i, j)
                ops.append(("w", key, number[i, j]))
                ops_named.append(("w", key, 0))
                continue
            fitting = [(a, b) for a, b in number if history[a].ops[b][1:] == (key, value)]
            source = own.get(key) if rng.random() < 0.95 else None
            if source is None and fitting:
                source = rng.choice(fitting)
            ops.append(("r", key, None if source is None else number[source]))
            ops_named.append(("r", key, 0, "initial" if source is None else source))
        unique.append(Txn(t.session, tuple(ops), t.status, t.begin, t.end))
        named.append(Transaction(ops_named, t.session, t.status, t.begin, t.end))
    return tuple(unique), ToolHistory.from_transactions(named)


def simulated_registers(rng: random.Random) -> History:
    while True:
        history = simulated(rng)
        if not any(op[0] == "append" or isinstance(op[2], tuple) for t in history for op in t.ops):
            return history


def test_the_library_says_what_the_reference_says(levels: Levels) -> None:
    """The lowered ``.iso`` files and the levels written by hand are the same sets of histories."""
    rng = random.Random(5)
    for _ in range(100):
        history = any_history(rng)
        names = levels.applicable(history)
        try:
            by_hand = semantics.satisfied(history, [LEVELS[n] for n in names], limit=5_000)
        except semantics.TooLargeError:
            continue
        library = semantics.satisfied(history, [levels.plans[n].spec.checks for n in names])
        assert dict(zip(names, library, strict=True)) == dict(zip(names, by_hand, strict=True))
