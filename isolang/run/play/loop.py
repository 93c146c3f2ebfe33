"""Lets the clients play until the time is up, a violation is found, or an error ends the run."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread
from typing import Final

from isolang.errors import IsolangError
from isolang.run.play.clients import ENDING_S, Clients
from isolang.run.play.faults import Nemesis
from isolang.run.play.live import Watcher
from isolang.run.play.phases import RunPlan
from isolang.run.play.processes import ClientProcesses
from isolang.run.play.scripts import ScriptPlayer
from isolang.run.play.state import RunState
from isolang.run.record.recorder import Recorder
from isolang.run.settings import Settings
from isolang.run.target import MarksTables, Target, TargetError

LONGEST_SILENCE: Final = 60.0  # a run ends after this many seconds without a response


class RunLoop:
    """The phase of a run in which clients play, faults are injected, and the history is checked."""

    def __init__(
        self,
        settings: Settings,
        plan: RunPlan,
        target: Target,
        *,
        clients: Clients,
        recorder: Recorder,
        watcher: Watcher,
        show: Callable[[RunState], None],
    ) -> None:
        """Store the parts of the run without starting anything.

        Args:
            show: a function called with the progress a few times a second.
        """
        self._settings, self._plan, self._target = settings, plan, target
        self._clients, self._recorder, self._watcher = clients, recorder, watcher
        self._show = show
        self._children: ClientProcesses | None = None

    def play(self, scripts: ScriptPlayer) -> None:
        """Play the scripts, and then let the clients play the workloads."""
        clients, watcher = self._clients, self._watcher
        try:
            scripts.play(clients, self._show)
        except IsolangError as error:
            clients.fail(error)
        if clients.fatal is not None or not self._plan.phases:
            clients.state.ended = time.monotonic()
            return
        nemesis = script_thread = None
        if self._settings.processes > 1:
            self._children = ClientProcesses(clients, self._settings.processes)
        else:
            clients.start()
            nemesis = self._nemesis()
            if scripts.postponed and nemesis is None:
                script_thread = Thread(target=scripts.play_postponed, args=(clients,), daemon=True)
                script_thread.start()
        if self._settings.watched:
            watcher.watch(clients.state.total)
        try:
            self._watch(nemesis)
        finally:
            clients.state.ended = time.monotonic()
            clients.stopped.set()
            if nemesis is not None:
                nemesis.end()
                clients.state.faults = nemesis.done
            if self._children is not None:
                self._add_up(self._children.end)
            clients.end()
            if script_thread is not None:
                script_thread.join(ENDING_S)

    def _watch(self, nemesis: Nemesis | None) -> None:
        """Show the progress until the run must end."""
        settings, clients, watcher = self._settings, self._clients, self._watcher
        state = clients.state
        until = state.began + settings.length
        most = settings.transactions
        while (now := time.monotonic()) < until and not clients.stopped.wait(0.1):
            state.look = watcher.last
            clients.choose()
            if self._children is not None:
                self._add_up(self._children.listen)
            if isinstance(self._target, MarksTables) and self._target.ownership() == "lost":
                return  # the runner then raises the error
            silent = state.note_silence(now, excused=nemesis is not None and nemesis.busy)
            self._show(state)
            if silent > LONGEST_SILENCE:
                why = f" ({state.refusal})" if state.refused > state.answered else ""
                clients.fail(TargetError(f"{self._target.name}: no answer for {silent:.0f} s{why}"))
            if most is not None and state.total() >= most:
                return
            if watcher.refuted.is_set() and not settings.to_the_end:
                return

    def _add_up(self, reports: Callable[[], list[RunState]]) -> None:
        """Replace the state's counts with their sums over all client processes."""
        try:
            self._clients.state.add_up(reports())
        except TargetError as error:
            self._clients.fail(error)

    def _nemesis(self) -> Nemesis | None:
        """Start the thread that injects faults; return ``None`` if the run has no faults."""
        if not self._settings.faults:
            return None
        keys = (*self._plan.registers(), *self._plan.lists())
        return Nemesis(
            self._settings.faults,
            target=self._target,
            recorder=self._recorder,
            seed=self._settings.seed,
            every=self._settings.fault_every,
            restarted=lambda: self._clients.read_back(keys),
            back_up=self._clients.back_up,
            failed=self._clients.fail,
        )
