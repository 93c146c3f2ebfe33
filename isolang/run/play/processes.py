"""Runs clients in several processes, for databases that are faster than one interpreter.

The processes are forked after the tables have been created and before this process starts a thread.
Each process plays a share of the clients. All processes record into the same file and read the same
clock.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import Final

from isolang.errors import message_in_one_line
from isolang.run.play.clients import ENDING_S, Clients, ClientShare
from isolang.run.play.state import RunState
from isolang.run.target import TargetError

_REPORT_INTERVAL: Final = 0.1  # seconds between two reports of a process
_ENDING: Final = ENDING_S + 1.0  # the time limit for the last transactions of a process


class ClientProcesses:
    """The processes that play the clients of a run."""

    def __init__(self, clients: Clients, count: int) -> None:
        """Start the processes."""
        context = multiprocessing.get_context("fork")
        self._stop = context.Event()
        self._reports: list[Connection] = []
        self._children = []
        for number in range(count):
            report, to_parent = context.Pipe(duplex=False)
            arguments = (clients, ClientShare(number, count), self._stop, to_parent)
            child = context.Process(target=_play, args=arguments, daemon=True)
            child.start()
            to_parent.close()
            self._reports.append(report)
            self._children.append(child)
        self._states: dict[int, RunState] = {}

    def listen(self) -> list[RunState]:
        """Receive the reports that have arrived, and return the latest report from each process.

        Raises:
            TargetError: a process has failed.
        """
        for number, report in enumerate(self._reports):
            try:
                while report.poll():
                    self._receive(number, report.recv())
            except EOFError:
                continue
        return list(self._states.values())

    def end(self) -> list[RunState]:
        """Tell the processes to end, wait for them, and return the last report from each.

        Raises:
            TargetError: a process has failed.
        """
        self._stop.set()
        until = time.monotonic() + _ENDING
        for number, (report, child) in enumerate(zip(self._reports, self._children, strict=True)):
            try:
                while report.poll(max(0.0, until - time.monotonic())):
                    self._receive(number, report.recv())
            except EOFError:
                pass
            child.join(max(0.0, until - time.monotonic()))
            if child.is_alive():
                child.kill()
                state = self._states.setdefault(number, RunState())
                state.hung += (f"client process {number + 1}, which does not answer",)
        return list(self._states.values())

    def _receive(self, number: int, what: RunState | str) -> None:
        if isinstance(what, str):
            raise TargetError(what)
        self._states[number] = what


def _play(clients: Clients, share: ClientShare, stop: Event, to_parent: Connection) -> None:
    """Play a share of the clients; this is the main function of a new process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent handles Ctrl-C
    parent = os.getppid()
    try:
        clients.start(share)
        while clients.any_alive():
            if stop.wait(_REPORT_INTERVAL) or os.getppid() != parent:
                clients.stopped.set()
            clients.choose()
            to_parent.send(clients.state)
        clients.end()
        to_parent.send(clients.state)
        if clients.fatal is not None:
            raise clients.fatal
    except BaseException as error:
        to_parent.send(message_in_one_line(error))
    to_parent.close()
    os._exit(0)  # only the parent closes the server and removes the tables
