"""Clients in processes of their own, where one interpreter is too slow for the database.

The children are forked when the tables are there and before anything else runs in this process.
Each has a share of the clients and records into the same file; all of them read one clock.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from isolang.run.target import TargetError

if TYPE_CHECKING:
    from isolang.run.runner import Runner, State

_TELLING: Final = 0.1  # seconds between two reports of a child
_ENDING: Final = 60.0  # seconds for a child to end its last transactions


class Share(Struct, frozen=True):
    """Which part of a run a process has: one of several, counted from 0."""

    number: int = 0
    of: int = 1


class Children:
    """The processes of a run."""

    def __init__(self, runner: Runner, count: int) -> None:
        """Start them.

        Args:
            runner: whose clients they play.
            count: how many.
        """
        context = multiprocessing.get_context("fork")
        self._stop = context.Event()
        self._said: list[Connection] = []
        self._children = []
        for number in range(count):
            said, saying = context.Pipe(duplex=False)
            arguments = (runner, Share(number, count), self._stop, saying)
            child = context.Process(target=_play, args=arguments, daemon=True)
            child.start()
            saying.close()
            self._said.append(said)
            self._children.append(child)
        self.states: dict[int, State] = {}

    def listen(self) -> None:
        """Take what they have said: ``states`` is how it goes.

        Raises:
            TargetError: one of them cannot go on.
        """
        for number, said in enumerate(self._said):
            try:
                while said.poll():
                    self._take(number, said.recv())
            except EOFError:
                continue

    def end(self) -> None:
        """End them, and take the last they say.

        Raises:
            TargetError: one of them could not go on.
        """
        self._stop.set()
        for number, (said, child) in enumerate(zip(self._said, self._children, strict=True)):
            try:
                while said.poll(_ENDING):
                    self._take(number, said.recv())
            except EOFError:
                pass
            child.join(_ENDING)
            child.kill()

    def _take(self, number: int, what: State | str) -> None:
        if isinstance(what, str):
            raise TargetError(what)
        self.states[number] = what


def _play(runner: Runner, share: Share, stop: Event, saying: Connection) -> None:
    """Play a share of the clients; a child's part."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    parent = os.getppid()
    try:
        threads = runner.clients_of(share)
        while any(thread.is_alive() for thread in threads):
            ended = stop.wait(_TELLING) or os.getppid() != parent
            runner.go_on(ended=ended)
            saying.send(runner.state)
        runner.join(threads)
        saying.send(runner.state)
    except BaseException as error:
        saying.send(" ".join(str(error).split()) or type(error).__name__)
    saying.close()
    os._exit(0)  # the server and the tables are the parent's
