"""What a split transaction lets others do while it runs, by templates that can be read off."""

import pytest

from isolang.foresee.chaining import ChainBuilder
from isolang.foresee.schedules import ChainedTransaction, Instance, SearchBudget
from isolang.foresee.templates import templates
from isolang.foresee.within import SplitTransaction, SsiRules
from isolang.programs.syntax import parse_templates

TEXT = """
program P(c, d) where c != d r(x[c]) r(x[d]) w(x[c], 0)
program Q(c) w(x[c], 1)
program R(c) r(x[c]) w(y[c], 1)
"""
P, Q, R = range(3)


@pytest.fixture(params=["mvrc", "si", "ssi"])
def level(request):
    """The level of T1."""
    return request.param


@pytest.fixture
def split(level):
    """T1 is P with the rows 0 and 1: it overlooks a write of row 1, and its write closes."""
    found = templates(parse_templates(TEXT))
    first = Instance(branch=found.branches[P], values={"c": 0, "d": 1})
    return SplitTransaction(found, level, first, (1, 2))


def chained(branch, row):
    """An instance of Q or R that accesses a row."""
    return ChainedTransaction(branch=branch, values=(("c", row),))


def test_which_writes_it_lets_pass(split, level):
    """At SI and SSI none writes what it writes; at MVRC, none writes what it has written."""
    assert split.after == (1 if level == "mvrc" else 0)
    assert split.allows(chained(Q, 0)) == (level == "mvrc")
    assert split.allows(chained(Q, 1))
    assert split.allows(chained(R, 0))


def test_what_closes_the_cycle(split, level):
    """A read of what it writes does; a later write of it only if it writes without a snapshot."""
    write, read = (split.templates.branches[n].statements[0] for n in (Q, R))
    assert split.can_reach_a1(read)
    assert split.can_reach_a1(write) == (level == "mvrc")


def test_chains_that_ssi_aborts(split, level):
    """T1 overlooks the write of Q, and R overlooks the write of T1: at SSI, one must not be R."""
    rules = SsiRules(split, dict.fromkeys("PQR", "ssi"))
    chain = [chained(Q, 1), chained(R, 0)]
    assert rules.allows_commit(chain) == (level != "ssi")
    assert SsiRules(split, {"P": "ssi", "Q": "ssi", "R": "si"}).allows_commit(chain)


def test_transactions_that_access_the_same_row(split, level):
    """Another transaction takes the value of the row; T1 may have, or not have, its other rows."""
    chaining = ChainBuilder(split, ["c", "d"], SearchBudget())
    write = split.templates.branches[Q].statements[0]
    assert [*chaining.instances_on_same_row(Q, write, split.b1, split.instance.values)] == [
        chained(Q, 1)
    ]
    steps = {
        (one.branch, one.values) for _, _, one in chaining.following_transactions(chained(Q, 1))
    }
    assert (R, (("c", 1),)) in steps
    assert ((Q, (("c", 0),)) in steps) is False
    assert chaining.merge(chained(Q, 1), chained(Q, 1)) == chained(Q, 1)
    assert chaining.merge(chained(Q, 1), chained(Q, -1)) is None
