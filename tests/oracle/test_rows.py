"""Predicates, deletes and reads of sets: what they mean, and that lowering keeps it."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from oracle import adya, read_committed, replay, semantics, visible
from oracle.generate_rows import row_history, set_history
from oracle.history import (
    History,
    Row,
    is_list_key,
    keys,
    parse,
    show,
    to_edn,
)
from oracle.levels import LEVELS, PREDICATES, WEAK
from oracle.predicates import lower, truth

ALL = {
    n: c
    for n, c in (LEVELS | WEAK | PREDICATES).items()
    if n.split("-")[0] not in ("sser", "strong")
}


def lowered(history: History) -> dict[str, bool]:
    """Every level, of the history with reads of single keys in place of predicate reads."""
    low = lower(history)
    answers = semantics.satisfied(low, list(ALL.values()), limit=20_000)
    verdicts = dict(zip(ALL, answers, strict=True))
    for name in ("rc", "rc-nosession"):
        verdicts[name] = read_committed.satisfied(low, sessions=name == "rc")
    return verdicts


def state_based(history: History) -> dict[str, bool]:
    """The same levels by states and visible sets, and by match-changing versions."""
    verdicts = dict(adya.satisfied(history))
    for level in ("rc", "ra", "cc", "pc", "psi", "si", "ser"):
        verdicts[level] = visible.satisfied(history, level)
        verdicts[f"{level}-nosession"] = visible.satisfied(history, level, session=False)
    return verdicts


# --- facts ---


@pytest.mark.parametrize(
    ("predicate", "row", "expected"),
    [
        (("=", "a", 1), Row((("a", None),)), None),
        (("not", ("=", "a", 1)), Row((("a", None),)), None),
        (("null", "a"), Row((("a", None),)), True),
        (("not", ("null", "a")), Row((("a", None),)), False),
        (("or", ("=", "a", 1), ("null", "a")), Row((("a", None),)), True),
        (("and", ("=", "a", 1), ("null", "b")), Row((("a", None), ("b", 3))), False),
        (("and", ("=", "a", 1), ("null", "b")), Row((("a", None), ("b", None))), None),
        (("between", "value", 1, 3), 3, True),
        (("between", "value", 1, 3), 4, False),
        (("in", "value", (1, None)), 2, None),
        (("in", "value", (2, None)), 2, True),
        (("=", "key", "k"), 7, True),
    ],
)
def test_predicates_have_three_values(predicate: object, row: object, expected: object) -> None:
    """SQL: comparing with NULL is unknown, and unknown is no match, not even under NOT."""
    assert truth(predicate, "k", row) is expected


#: Histories and the levels that allow them, by hand.
FACTS = [
    # A compare-and-set that failed saw something else; here nothing else is there.
    ("w(x,1) || notin(x,{1 nil})", {"pl-2": False, "ser": False}),
    ("w(x,1) || notin(x,{1})", {"ser": True}),
    # It saw the initial version, in its session after the write.
    ("w(x,1) -> notin(x,{1})", {"ser": False, "ser-nosession": True, "ra": False}),
    ("w(x,1) notin(x,{1})", {"pl-2": False}),
    ("w(x,1) in(x,{1 2})", {"ser": True}),
    ("!w(x,1) || in(x,{1})", {"pl-2": False}),
    ("?w(x,1) || in(x,{1}) -> notin(x,{1})", {"ser": False, "ser-nosession": True}),
    # Two failed compare-and-sets that have seen two writers in opposite orders: a long fork.
    (
        "w(x,1) || w(y,1) || notin(x,{nil}) notin(y,{1}) || notin(y,{nil}) notin(x,{1})",
        {"si": False, "psi": True, "pl-3": False},
    ),
    # Vbox, figure 1: two writers of x and y, and a predicate that is true of x alone.
    (
        "insert(x,0) insert(y,0) -> w(x,1) w(y,1) -> w(x,2) w(y,2) || scan([= value 1],{x 1})",
        {"ser": False, "pl-3": False, "pl-2-99": True, "pl-2": True, "ra": False},
    ),
    # A phantom: the row is not there, then it is. Only a predicate anti-dependency shows it.
    (
        "insert(x,1) insert(y,1) || scan([= value 1],{}) r(y,1)",
        {"pl-3": False, "pl-2-99": True, "locking-repeatable-read": True, "ra": False},
    ),
    # Predicate write skew: each finds no row and inserts one.
    (
        "scan([> value 0],{}) insert(x,1) || scan([> value 0],{}) insert(y,1)",
        {"ser": False, "si": True, "pl-3": False, "pl-2-99": True},
    ),
    # Its own row is seen, and so is that it was deleted.
    ("insert(x,1) scan([= value 1],{x 1}) delete(x) scan([= value 1],{})", {"ser": True}),
    ("insert(x,1) scan([= value 1],{})", {"pl-2": False}),
    # A deleted row is read as nothing, and nothing is what was there before.
    ("insert(x,1) -> delete(x) -> r(x,nil)", {"ser": True}),
    ("insert(x,1) -> delete(x) || r(x,nil)", {"ser": True}),
    # A cycle with an item and a predicate anti-dependency: Adya forbids it, locks allow it.
    (
        "r(x,nil) insert(y,1) || scan([= key y],{}) insert(x,1)",
        {"pl-2-99": False, "locking-repeatable-read": True, "pl-3": False, "si": True},
    ),
    # The next version after the one that was read is the reader's own: no item anti-dependency.
    (
        "scan([> value 0],{}) w(x,4) || r(x,nil) w(x,5)",
        {"pl-3": False, "pl-2-99": True, "locking-repeatable-read": True, "pl-2": True},
    ),
    # Another transaction's version lies in between.
    ("r(x,nil) w(x,5) || r(x,nil) w(x,4)", {"pl-2": True, "pl-2-99": False}),
    # The rows of one statement have no order; the reads of two statements have.
    ("insert(x,1) insert(y,1) || scan([= value 1],{x 1})", {"rc": True, "ra": False}),
    ("insert(x,1) insert(y,1) || r(x,1) scan([= value 1],{x 1})", {"rc": False}),
    # A predicate read must not see a version that follows the reader's own, even if no match
    # changes by it.
    (
        "scan([> value 0],{}) insert(x,1) || scan([> value 0],{}) insert(y,1) delete(x) || "
        "insert(y,3) insert(x,0)",
        {"pl-3": False, "ser-nosession": False},
    ),
    # A change that no predicate notices is no dependency.
    (
        "insert(x,1) -> w(x,5) || insert(y,1) r(z,nil) || insert(z,1) scan([= value 9],{})",
        {"ser": True},
    ),
]


@pytest.mark.parametrize(("text", "expected"), FACTS)
def test_facts_by_hand(text: str, expected: dict[str, bool]) -> None:
    """Both definitions give what was found by hand."""
    history = parse(text)
    for verdicts in (lowered(history), state_based(history)):
        assert expected | verdicts == verdicts | expected, text
        assert {n: verdicts[n] for n in expected} == expected, text


# --- two definitions ---


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("generate", [row_history, set_history])
def test_lowering_keeps_the_meaning(generate, part: int) -> None:
    """Reads of sets in place of predicate reads allow what the states of the table allow.

    For PL-2, PL-2.99 in both readings and PL-3 the other side is Adya's, by versions that change
    what a predicate matches; both of his definitions of a predicate read dependency give the same.
    """
    compared = 0
    for number in range(60):
        history = generate(random.Random(part << 20 | number))
        if any(is_list_key(history, k) for k in keys(history)) or len(history) > 4:
            continue
        try:
            got = lowered(history)
        except semantics.TooLargeError:
            continue
        expected = state_based(history)
        assert {n: got[n] for n in expected} == expected, show(history)
        assert adya.satisfied(history, thesis=True) == adya.satisfied(history), show(history)
        compared += 1
    assert compared > 25


@pytest.mark.parametrize("part", range(2))
def test_replay_knows_rows(part: int) -> None:
    """A third definition: transactions that run on snapshots of the table."""
    for number in range(200):
        history = row_history(random.Random(100 + part << 20 | number))
        for level in ("SER", "SI", "PC"):
            for session in (True, False):
                assert replay.satisfied(history, level=level, session=session) == visible.satisfied(
                    history, level.lower(), session=session
                ), f"{level}: {show(history)}"


def test_the_generator_separates_what_predicates_tell_apart() -> None:
    """PL-2.99 from PL-3, its two readings, and both from PL-2."""
    found: Counter[str] = Counter()
    for number in range(600):
        verdicts = adya.satisfied(row_history(random.Random(number)))
        found["phantom"] += verdicts["pl-2-99"] and not verdicts["pl-3"]
        found["readings"] += verdicts["locking-repeatable-read"] and not verdicts["pl-2-99"]
        found["item"] += verdicts["pl-2"] and not verdicts["locking-repeatable-read"]
    assert min(found.values()) >= 5, found


# --- notation ---


def test_notation_round_trips() -> None:
    """Histories with rows, predicates and sets are read back as they were."""
    for number in range(200):
        rng = random.Random(number)
        history = (row_history if number % 2 else set_history)(rng)
        assert parse(show(history)) == history


def test_edn_of_a_predicate_read() -> None:
    """The forms are those of the documentation."""
    where = "[and [>= a 1] [not [null b]] [!= key y]]"
    history = parse(f"scan({where},{{x {{:a 2 :b 1}}}}) insert(y,3) delete(x)")
    (invoke, done) = to_edn(history).splitlines()
    where = "[:rp {:where [:and [:>= :a 1] [:not [:null :b]] [:!= :key :y]]}"
    assert f"{where} nil] [:insert :y 3] [:delete :x]" in invoke
    assert f"{where} {{:x {{:a 2 :b 1}}}}] [:insert :y 3] [:delete :x]" in done
