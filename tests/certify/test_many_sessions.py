"""Histories of many sessions with a transaction or two: witnesses and refutations of hot keys."""

import random

import pytest
from support.certify import verdicts_of_both

from isolang import check
from isolang.api import load_spec
from isolang.certify.proofs import Witness
from isolang.history import History, Transaction

MANY = 1_500  # more than the columns of a dense row


def made(transactions):
    """Each in a session of its own."""
    return History.from_transactions(
        [Transaction(ops, session=i) for i, ops in enumerate(transactions)]
    )


def one_key(count):
    """All write it."""
    return [[("w", "x", i + 1)] for i in range(count)]


def updates(count):
    """One reads from the other."""
    return [[("r", "x", i or None), ("w", "x", i + 1)] for i in range(count)]


def scattered_reads(count):
    """Of one key; who reads from whom has nothing to do with the order of the file."""
    rng = random.Random(count)
    writes = one_key(count // 2)
    reads = [[("r", "x", rng.randint(1, len(writes)))] for _ in writes]
    return [t for pair in zip(writes, reads, strict=True) for t in pair]


def pairs(count):
    """Keys of their own, each read by the next writer and by one that reads two."""
    writes = [[("r", i - 1, 1 if i else None), ("w", i, 1)] for i in range(count)]
    return writes + [[("r", i, 1), ("r", i + 1, 1)] for i in range(0, count - 1, 2)]


@pytest.mark.parametrize("level", ["cc", "ser", "si", "pram", "causal"])
@pytest.mark.parametrize("shape", [one_key, updates, scattered_reads, pairs])
def test_a_hot_key_is_decided_and_certified(shape, level):
    """Whatever the shape: no level is lost in pairs of writers."""
    verdict = check(made(shape(MANY)), level)
    assert (verdict.outcome, verdict.certified) == ("valid", True), verdict.reason


STALE = {  # after the writes of x and y by one, who is seen by the other
    "one key": ([("w", "x", MANY + 1)], [("r", "x", MANY + 1), ("w", "y", 1)], "x"),
    "own keys": ([("w", "a", 1)], [("r", "a", 1), ("w", "y", 1)], "a"),
}


@pytest.mark.parametrize("hidden", STALE)
@pytest.mark.parametrize("level", ["cc", "cc-nosession", "pram", "causal"])
def test_a_stale_read_among_many_is_found(hidden, level):
    """By the engine; and a witness that hides it, made for a weaker level, is refused."""
    first, second, key = STALE[hidden]
    shape = scattered_reads if hidden == "one key" else pairs
    late = [first, second, [("r", "y", 1), ("r", key, None)]]
    given = made(shape(MANY) + late)
    verdict = check(given, level)
    expected = "valid" if level == "pram" else "invalid"  # through a third session
    assert (verdict.outcome, verdict.certified) == (expected, True), verdict.reason
    weaker = check(given, "pl-2", certify=True)
    assert weaker.outcome == "valid"
    if expected == "invalid":
        proof = weaker.certificate().proof
        assert isinstance(proof, Witness)
        by_definition, natively = verdicts_of_both(given, load_spec(level), proof)
        assert natively == "rejected"
        assert by_definition in ("rejected", "not certified")  # of more transactions than it takes
