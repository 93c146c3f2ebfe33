"""Requests of several transactions: the tool and the definition agree on random histories."""

from __future__ import annotations

import random
from io import BytesIO

import pytest
from msgspec.structs import replace

from isolang import check, load_history
from isolang.certify.carried import check_carried_reads
from isolang.history.carried import with_carried_reads
from isolang.language.load import load_spec
from oracle import semantics, units
from oracle.generate import well_formed

LEVELS = {name: load_spec(name) for name in ("ser", "si", "pl-3", "pl-2")}


def as_told_text(rng: random.Random) -> tuple[units.Units, str]:
    while True:
        history, told = units.told_history(rng)
        if len(history) <= 7 and well_formed(history) and units.one_by_one(history):
            return units.as_told(history, told), units.as_text(history, told)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_verdicts_on_requests_are_those_of_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    outcomes = set()
    for number in range(90):
        definition, text = as_told_text(rng)
        level, everything = rng.choice(["ser", "ser", *LEVELS]), rng.random() < 0.3
        carry = "all" if everything else "rows"
        try:
            expected = definition.verdict(level, everything=everything, limit=3000)
        except semantics.TooLargeError:
            continue
        history = load_history(BytesIO(text.encode()), "edn", unit="request", carry=carry)
        plain = load_history(BytesIO(text.encode()), "edn")
        if number % 2 and (implied := plain.columns.implied()) is not None:
            # As in large histories, what predicate reads did not return is no operation.
            history = with_carried_reads(replace(plain, columns=implied), everything=everything)
        check_carried_reads(history)
        verdict = check(history, LEVELS[level], certify=number % 3 == 0)
        noted = any(note.startswith("not counted") for note in verdict.notes)
        assert (verdict.outcome, noted) == expected, text
        assert verdict.certified or number % 3 or verdict.outcome == "unknown", text
        outcomes.add(expected)
    assert {("valid", False), ("invalid", False), ("unknown", False)} <= outcomes
