"""When versions may come in another order than in the run, and what a stranger may read then."""

import pytest

from isolang.foresee.blind_writes import BlindWrites
from isolang.foresee.run import INITIAL, Access, Arrangement, ExecutedProgram
from isolang.foresee.stranger import Strangers
from isolang.history import columns as c

X, Y = 0, 1


def read(key, source):
    """An external read of a key."""
    return Access(op=0, kind=c.READ, key=key, source=source)


def write(key):
    """A write of a key."""
    return Access(op=0, kind=c.WRITE, key=key)


def arranged(*transactions, sessions=None):
    """An arrangement of transactions."""
    programs = [ExecutedProgram.of(one) for one in transactions]
    return Arrangement(programs, sessions or range(len(programs)))


UPDATES = arranged([write(X)], [read(X, 0), write(X)], [read(X, 1)])
BLIND = arranged([write(X)], [write(X)], [read(X, 1)])


@pytest.mark.parametrize("level", ["rc", "ra", "cc", "si"])
def test_keys_whose_order_is_open(level):
    """Two writers of a key have another order unless the second one depends on the first."""
    assert not BlindWrites(UPDATES, level).may_allow_other_orders(2)
    blind = BlindWrites(BLIND, level)
    assert blind.may_allow_other_orders(2)
    assert blind.allows_other_orders(2, 0b111)
    assert not blind.allows_other_orders(2, 0b101)
    session = arranged([write(X)], [write(X)], [read(X, 1)], sessions=[0, 0, 1])
    assert not BlindWrites(session, level).may_allow_other_orders(2)


@pytest.mark.parametrize("level", ["rc", "ra", "cc", "si"])
def test_where_the_stranger_itself_comes(level):
    """Only at si it matters whether it is the last writer: it is, if all others read the key."""
    order = arranged([write(X)], [write(X)], sessions=[0, 0])
    assert BlindWrites(order, level).allows_other_orders(1, 0b11) == (level == "si")
    read_before = arranged([read(X, INITIAL), write(X)], [read(X, 0), write(X)])
    assert not BlindWrites(read_before, level).allows_other_orders(1, 0b11)


def test_sources_that_close_no_cycle():
    """What it reads must be overwritten, and lead back to what it reads, writes or follows."""
    order = arranged(
        [read(X, INITIAL), write(X), write(Y)], [read(X, 0), read(Y, 0), write(Y)],
        [read(X, 0), read(Y, 1)],
    )  # fmt: skip
    blind = BlindWrites(order, "rc")
    assert not blind.may_close_cycle(2, 0b111, (0, 1))  # as in the run
    assert blind.may_close_cycle(2, 0b111, (INITIAL, 1))
    must_see_y = BlindWrites(order, "ra")
    assert not must_see_y.may_close_cycle(2, 0b111, (0, INITIAL))


def test_a_lost_update():
    """At si, it may not overwrite a version that it overlooked, whichever order the two have."""
    sources = (INITIAL,)
    order = arranged([read(X, INITIAL), write(X)], [read(X, 0), write(X)])
    assert not BlindWrites(order, "si").may_close_cycle(1, 0b11, sources)
    assert BlindWrites(order, "cc").may_close_cycle(1, 0b11, sources)


def test_strangers_share_the_relations_of_the_run():
    """They are computed once for an arrangement."""
    one, other = Strangers(BLIND, "si"), Strangers(BLIND, "rc")
    assert one.order.ancestors is other.order.ancestors
    assert one.blind is one.blind
    assert one.order.conflicts == [0b010, 0b100, 0]
