"""A valid verdict on a history in which nothing was observed says so."""

import pytest

from isolang import History, Transaction, check

SAYS = "NOTHING WAS OBSERVED"


def says(transactions, spec):
    verdict = check(History.from_transactions(transactions), spec)
    assert verdict.outcome == "valid"
    return any(note.startswith(SAYS) for note in verdict.notes)


@pytest.mark.parametrize("spec", ["ser", "si", "cc", "pl-2", "si-vis"])
def test_writes_that_nobody_reads(spec):
    """Reads of the initial state and of the own session are no observation."""
    blind = [
        Transaction([("w", "x", 1), ("r", "y", None)], session=0),
        Transaction([("r", "x", 1)], session=0),
        Transaction([("w", "z", 2)], session=1),
    ]
    assert says(blind, spec)
    assert not says([*blind, Transaction([("r", "z", 2)], session=0)], spec)


def test_lists():
    """An element that another session appended was observed, or missed by who saw none."""
    append = Transaction([("append", "x", 1)], session=0)
    assert says([append, Transaction([("r", "y", [])], session=1)], "ser")
    assert not says([append, Transaction([("r", "x", [])], session=1)], "ser")
    assert not says([append, Transaction([("r", "x", [1])], session=1)], "ser")


def test_nothing_at_all():
    assert says([], "ser")


def test_who_read_nil_missed_what_another_session_wrote():
    """It came before whoever wrote the key, which is something to contradict."""
    write = Transaction([("w", "x", 1)], session=0)
    assert not says([write, Transaction([("r", "x", None)], session=1)], "ser")
    assert says([Transaction([("r", "x", None)], session=0), write], "ser")
