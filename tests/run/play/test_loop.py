"""When the loop of a run ends, with clients that do nothing."""

import threading
import time
from types import SimpleNamespace

import pytest

from isolang.errors import IsolangError
from isolang.run.play.loop import RunLoop
from isolang.run.settings import Settings
from isolang.run.target import TargetError


class IdleClients:
    """Clients that note what is called."""

    def __init__(self, *, silent=0.0, committed=0):
        self.calls, self.fatal, self.stopped = [], None, threading.Event()
        self.state = SimpleNamespace(
            began=time.monotonic(), ended=None, look=None, faults=None, refusal="", refused=0,
            answered=0, total=lambda: committed, note_silence=lambda now, excused: silent,
        )  # fmt: skip

    def start(self):
        """Start nothing."""
        self.calls.append("start")

    def choose(self):
        """Choose nothing."""

    def end(self):
        """End nothing."""
        self.calls.append("end")

    def fail(self, error):
        """Note the error, and stop."""
        self.fatal = error
        self.stopped.set()


def play(clients, *, phases=(1,), refuted=False, scripts=lambda *_: None, **options):
    """Play a run, and return how often its progress was shown."""
    shown = []
    watcher = SimpleNamespace(last="look", refuted=threading.Event())
    if refuted:
        watcher.refuted.set()
    loop = RunLoop(
        Settings(target="memory", watched=False, **{"seconds": 3000} | options),
        SimpleNamespace(phases=phases), SimpleNamespace(name="memory"), clients=clients,
        recorder=None, watcher=watcher, show=shown.append,
    )  # fmt: skip
    loop.play(SimpleNamespace(play=scripts, postponed=()))
    assert clients.state.ended is not None
    return len(shown)


@pytest.mark.parametrize(
    ("committed", "options", "shown"),
    [(7, {"transactions": 7}, 1), (0, {"refuted": True}, 1), (0, {"seconds": 1}, 0)],
    ids=["enough transactions", "a violation", "the time is up"],
)
def test_it_ends(committed, options, shown):
    """After enough transactions, a violation, or the time."""
    clients = IdleClients(committed=committed)
    clients.state.began -= 2
    assert play(clients, **options) == shown
    assert (clients.calls, clients.fatal, clients.stopped.is_set()) == (
        ["start", "end"],
        None,
        True,
    )


def test_a_silent_database_ends_it():
    """The error says for how long."""
    clients = IdleClients(silent=61.0)
    assert play(clients) == 1
    assert isinstance(clients.fatal, TargetError)
    assert str(clients.fatal) == "memory: no answer for 61 s"


def test_without_phases_nothing_starts():
    """Scripts alone are a run, and their error ends it."""

    def fail(*_):
        raise IsolangError("no script")

    clients = IdleClients()
    assert play(clients, phases=()) == 0
    assert clients.calls == []
    assert play(clients, scripts=fail) == 0
    assert (clients.calls, str(clients.fatal)) == ([], "no script")
