"""Clients in processes of their own, where one interpreter is too slow for the database.

The children are forked when the tables are there and before any thread runs in this process. Each
has a share of the clients and records into the same file; all of them read one clock.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import Final

from isolang.run.play.clients import ENDING, Clients, Share
from isolang.run.play.state import RunState
from isolang.run.target import TargetError

_TELLING: Final = 0.1  # seconds between two reports of a child
_ENDING: Final = ENDING + 1.0  # seconds for a child to end its last transactions


class ClientProcesses:
    """The processes of a run."""

    def __init__(self, clients: Clients, count: int) -> None:
        """Start them.

        Args:
            clients: that they play.
            count: how many.
        """
        context = multiprocessing.get_context("fork")
        self._stop = context.Event()
        self._said: list[Connection] = []
        self._children = []
        for number in range(count):
            said, saying = context.Pipe(duplex=False)
            arguments = (clients, Share(number, count), self._stop, saying)
            child = context.Process(target=_play, args=arguments, daemon=True)
            child.start()
            saying.close()
            self._said.append(said)
            self._children.append(child)
        self._states: dict[int, RunState] = {}

    def listen(self) -> list[RunState]:
        """Take what they have said: how it goes in each of them.

        Raises:
            TargetError: one of them cannot go on.
        """
        for number, said in enumerate(self._said):
            try:
                while said.poll():
                    self._take(number, said.recv())
            except EOFError:
                continue
        return list(self._states.values())

    def end(self) -> list[RunState]:
        """End them, and take the last they say.

        Raises:
            TargetError: one of them could not go on.
        """
        self._stop.set()
        until = time.monotonic() + _ENDING
        for number, (said, child) in enumerate(zip(self._said, self._children, strict=True)):
            try:
                while said.poll(max(0.0, until - time.monotonic())):
                    self._take(number, said.recv())
            except EOFError:
                pass
            child.join(max(0.0, until - time.monotonic()))
            if child.is_alive():
                child.kill()
                state = self._states.setdefault(number, RunState())
                state.hung += (f"process {number + 1} of the clients, which does not answer",)
        return list(self._states.values())

    def _take(self, number: int, what: RunState | str) -> None:
        if isinstance(what, str):
            raise TargetError(what)
        self._states[number] = what


def _play(clients: Clients, share: Share, stop: Event, saying: Connection) -> None:
    """Play a share of the clients; a child's part."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    parent = os.getppid()
    try:
        clients.start(share)
        while clients.alive():
            if stop.wait(_TELLING) or os.getppid() != parent:
                clients.stopped.set()
            clients.choose()
            saying.send(clients.state)
        clients.end()
        saying.send(clients.state)
        if clients.fatal is not None:
            raise clients.fatal
    except BaseException as error:
        saying.send(" ".join(str(error).split()) or type(error).__name__)
    saying.close()
    os._exit(0)  # the server and the tables are the parent's
