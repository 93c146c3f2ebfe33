"""The definitions of the kernel say what isolang says, on every history that they can try."""

import random
from functools import cache

import pytest
from oracle.generate import any_history
from oracle.generate_crossed import crossed_history
from oracle.history import parse
from oracle.pipeline import to_tool
from support.kernel import history_and_level, unsupported_reason
from support.kernel_definitions import MUTANTS, satisfies, size

from isolang.api import check
from isolang.errors import HistoryError, UnsupportedError
from isolang.language.load import load_spec

LEVELS = (
    "ser", "si", "sser", "psi", "pc", "ra", "cc", "pl-2", "strong-si", "coherence",
    "ra-adya", "update-atomic", "ser-co", "si-co", "sser-co", "cc-adya", "pl-1",
)  # fmt: skip
ANTI = 'spec anti "only anti-dependencies"\ninclude "adya.iso"\nacyclic rw as anti\n'
LARGEST = 3_000


@cache
def level(name):
    return load_spec(ANTI if name == "anti" else name)


def small_histories():
    """Histories of up to three transactions, as isolang reads them."""
    for number in range(1_500):
        rng = random.Random(number)
        try:
            if number % 3:
                history = any_history(rng)
                read = to_tool(history)
            else:
                crossed = crossed_history(rng)
                history = crossed.history
                read = to_tool(history, crossed.initial, crossed.error)
        except HistoryError:
            continue
        if len(history) <= 3:
            yield number, read


@pytest.mark.slow
def test_definitions_agree_with_isolang():
    """By brute force over all choices, on random histories with every feature that is covered."""
    verdicts = {True: 0, False: 0}
    wrong = []
    for number, history in small_histories():
        for name in random.Random(number).sample(LEVELS, 2):
            spec = level(name)
            if unsupported_reason(history, spec):
                continue
            text = history_and_level(history, spec)
            if size(text) > LARGEST:
                continue
            try:
                verdict = check(history, spec, certify=False, threads=1)
            except UnsupportedError:
                continue
            if type(verdict).__name__ == "Unknown":
                continue
            valid = type(verdict).__name__ == "Valid"
            verdicts[valid] += 1
            if satisfies(text) != valid:
                wrong.append((number, name, valid, text))
    assert not wrong
    assert min(verdicts.values()) > 60, verdicts


@pytest.mark.parametrize(
    ("mutant", "name", "notation"),
    [
        ("source", "anti", "r(x,1) w(x,1)"),
        ("indeterminate so", "si", "?w(x,1) -> r(x,nil) || r(x,1)"),
        ("rw with identity", "ser", "r(x,nil) w(x,1)"),
        ("rt not strict", "sser", "w(x,1) @1-3 || r(x,nil) @3-4"),
        ("own element", "anti", "r(x,[1 2]) append(x,1) || append(x,2)"),
    ],
)
def test_a_changed_definition_is_noticed(mutant, name, notation):
    """The definition agrees with isolang on the history, and the mutant of it does not."""
    history = to_tool(parse(notation))
    text = history_and_level(history, level(name))
    valid = type(check(history, level(name), certify=False)).__name__ == "Valid"
    assert satisfies(text) == valid
    assert satisfies(text, mutant) != valid
    assert mutant in MUTANTS
