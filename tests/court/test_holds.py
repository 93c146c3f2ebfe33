"""Calls that the proxy stops before a turn."""

from types import SimpleNamespace

import pytest

from isolang.observe.wire.holds import Holds


class Wire:
    """A connection of a call; the server answers when the test says so."""

    def __init__(self, call):
        self.call, self.is_idle, self.waiting = call, True, []

    def executions(self):
        """What the server has not answered."""
        return self.waiting

    def executed(self):
        """No transaction is open."""
        return 0


class Client:
    """What a proxy's connection is for holds."""

    def __init__(self, call):
        self.wire, self.taken = Wire(call), []

    def send(self, holds, data, tickets=()):
        """Send bytes as the listener does."""
        if holds.admits(self, data):
            self.take(data, tickets)

    def take(self, data, tickets=()):
        """Pass bytes on; the server has not answered them yet."""
        self.taken.append(data)
        self.wire.is_idle = False
        plan = SimpleNamespace(kind="select")
        self.wire.waiting = [
            SimpleNamespace(ticket=t, statement=SimpleNamespace(plan=plan, text=data))
            for t in tickets
        ]

    def answer(self, holds):
        """Let the server answer."""
        holds.note_statements(self)
        self.wire.is_idle, self.wire.waiting = True, []


@pytest.fixture
def holds():
    """Holds whose functions run at once."""
    return Holds(lambda function: function())


def test_a_call_waits_before_its_turn(holds):
    """And goes on in order when it may."""
    ann = Client(1)
    holds.stop_before(1, 1)
    ann.send(holds, "a", [(1, 1)])
    assert not holds.is_stopped(1)
    ann.send(holds, "more of a")  # the server has not answered yet, so it is the same turn
    ann.answer(holds)
    ann.send(holds, "b", [(2, 2)])
    ann.send(holds, "c")
    assert (ann.taken, holds.is_stopped(1), holds.count(1)) == (["a", "more of a"], True, 1)
    holds.release(1)
    assert ann.taken == ["a", "more of a", "b", "c"]
    assert not holds.is_stopped(1)


def test_all_connections_of_a_call_wait(holds):
    """A call with a pool is one call; others, and connections of no call, pass."""
    first, second, bob, own = Client(1), Client(1), Client(2), Client(0)
    holds.stop_before(1, 1)
    first.send(holds, "a")
    first.answer(holds)
    second.send(holds, "b")
    bob.send(holds, "c")
    own.send(holds, "d")
    assert [client.taken for client in (first, second, bob, own)] == [["a"], [], ["c"], ["d"]]
    assert holds.await_stop(1, 1.0, lambda: False)


def test_turns_have_their_statements(holds):
    """Once each, however many bytes answer them."""
    ann = Client(1)
    ann.send(holds, "a", [(1, 1), (2, 2)])
    holds.note_statements(ann)
    assert holds.awaits_server(1)
    assert not holds.awaits_server(2)
    ann.answer(holds)
    ann.send(holds, "b")
    assert [[held.text for held in turn.statements] for turn in holds.turns] == [
        ["a", "a"],
        [],
    ]


def test_statements_of_one_message_share_a_ticket(holds):
    """Each is a statement of the turn all the same."""
    ann = Client(1)
    ann.send(holds, "a; b", [(1, 1), (1, 1)])
    ann.answer(holds)
    assert len(holds.turns[0].statements) == 2


def test_a_call_without_turns_does_not_hold_up_the_court(holds):
    """Its end is not awaited for ever."""
    assert not holds.await_stop(1, 0.01, lambda: False)
    assert not holds.await_end(1, 0.01, lambda: False)
    assert holds.await_end(1, 0.01, lambda: True)
