"""The tool against brute force on reads that say less than a version."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from oracle import moments, semantics
from oracle.generate import well_formed
from oracle.generate_rows import cas_history, row_history, set_history
from oracle.history import History, Op, Txn, show
from oracle.pipeline import Levels, to_tool
from oracle.simulate import disturbed, timed_history

from isolang import check, load_spec
from isolang.certify.proofs import check_proof

KINDS = {"sets": set_history, "cas": cas_history}


@pytest.fixture(scope="module")
def levels() -> Levels:
    """Event graphs, weak levels and a level with sets of readers."""
    return Levels(("pl-2", "rc", "ra", "cc-vis", "mr", "psi", "pc-co", "si", "ser", "sser"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_tool_agrees_with_brute_force(levels: Levels, kind: str) -> None:
    """Every verdict is certified and the one that trying everything gives."""
    compared = 0
    for number in range(60):
        history = KINDS[kind](random.Random(number))
        if not well_formed(history):
            continue
        try:
            expected, wrong = levels.compare(history, seed=number)
        except semantics.TooLargeError:
            continue
        assert not wrong, f"{show(history)}: {wrong}"
        compared += len(expected)
    assert compared > 300


@pytest.mark.slow
def test_levels_that_predicates_tell_apart() -> None:
    """PL-2.99, as Adya says and as databases with locks on rows have it, and cursor stability."""
    levels = Levels(("pl-2", "pl-cs", "pl-2-99", "locking-repeatable-read", "pl-3"))
    apart: Counter[tuple[str, str]] = Counter()
    for number in range(120):
        history = row_history(random.Random(f"rows {number}"))
        if not well_formed(history):
            continue
        expected, wrong = levels.compare(history, seed=number)
        assert not wrong, f"{show(history)}: {wrong}"
        for weaker in ("locking-repeatable-read", "pl-2-99"):
            for stronger in ("pl-2-99", "pl-3"):
                verdicts = expected[weaker], expected[stronger]
                apart[weaker, stronger] += verdicts == ("valid", "invalid")
    assert sorted(pair for pair, count in apart.items() if not count) == [("pl-2-99", "pl-2-99")]


def _written_after_reading(rng: random.Random) -> History:
    """Transactions that read or scan two keys, and mostly write what they have read."""
    values: dict[str, list[int | None]] = {key: [None] for key in "xy"}
    out = []
    for number in range(rng.randint(2, 3)):
        ops: list[Op] = []
        for _ in range(rng.randint(1, 2)):
            key = rng.choice("xy")
            if rng.random() < 0.3:
                seen = [(k, rng.choice(values[k])) for k in "xy"]
                rows = tuple((k, v) for k, v in seen if v is not None)
                ops.append(("scan", (">", "value", 0), rows))
            else:
                ops.append(("r", key, rng.choice(values[key])))
            if rng.random() < 0.7:
                ops.append(("w", key, rng.randint(1, 5)))
                values[key].append(ops[-1][2])
        out.append(Txn(number, tuple(ops)))
    return tuple(out)


@pytest.mark.slow
def test_an_item_anti_dependency_leads_to_the_next_version() -> None:
    """PL-2.99 allows a cycle through a reader that wrote the next version itself."""
    levels, spec, found = Levels(("pl-2-99",)), load_spec("pl-2-99"), Counter[str]()
    closed = load_spec(
        'include "adya.iso"\nacyclic wr | ww as a\nirreflexive irw ; (wr | ww | irw | prw)^* as b'
    )
    for number in range(120):
        history = _written_after_reading(random.Random(f"next {number}"))
        if not well_formed(history):
            continue
        expected, wrong = levels.compare(history, seed=number)
        assert not wrong, f"{show(history)}: {wrong}"
        given = to_tool(history)
        check_proof(given, spec, check(given, spec).certificate().proof)
        beyond = expected["pl-2-99"] == "valid" and check(given, closed).outcome == "invalid"
        found[expected["pl-2-99"]] += 1
        found["beyond its own version"] += beyond
    assert min(found[name] for name in ("valid", "invalid", "beyond its own version")) > 2, found


def test_reads_of_statements_in_time() -> None:
    """What was committed when a statement was sent, with clocks that are right or wrong."""
    levels = Levels(("consistent-read-by-statement", "postgresql-read-committed"))
    found: Counter[str] = Counter()
    for number in range(40):
        rng = random.Random(f"statements {number}")
        kind = moments.KINDS[rng.choice(("bounded-si", "postgresql-read-committed"))]
        history = timed_history(rng, kind, transactions=3, fault=True)
        history = disturbed(rng, history)
        if not well_formed(history):
            continue
        expected, wrong = levels.compare(history, seed=number, error=rng.choice((0, 0, 2)))
        assert not wrong, f"{show(history)}: {wrong}"
        found += Counter(expected.values())
    assert min(found.values()) >= 5, found
