"""Plays the scripts of a run, before its workloads or while they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from isolang.run.play.clients import Clients
from isolang.run.play.interleave import interleave
from isolang.run.play.level_mix import LevelMix, TransactionLevel
from isolang.run.play.phases import RunPlan
from isolang.run.play.state import RunState
from isolang.run.record.recorder import Recorder
from isolang.run.settings import Settings
from isolang.run.target import Target
from isolang.run.workloads.scripted import Script

_SCRIPT_SHARE: Final = 0.25  # scripts begin within this share of the time if workloads follow


class ScriptPlayer:
    """Plays the scripts of a run, on keys that its workloads do not use.

    Attributes:
        postponed: the scripts that did not fit in before the workloads, each with the levels of its
            transactions.
    """

    def __init__(
        self, settings: Settings, plan: RunPlan, target: Target, mix: LevelMix, recorder: Recorder
    ) -> None:
        """Prepare to play the scripts of a plan."""
        self._settings, self._plan, self._target = settings, plan, target
        self._mix, self._recorder = mix, recorder
        self.postponed: list[tuple[Script, list[TransactionLevel]]] = []

    def play(self, clients: Clients, show: Callable[[RunState], None]) -> None:
        """Play one script after another; if workloads follow, use only part of the run's time."""
        random = Random(f"{self._settings.seed}/scripts")
        state, most = clients.state, _SCRIPT_SHARE * self._settings.length
        state.workload = "scripted"
        for script in self._plan.scripts:
            levels = [self._mix.draw(random) for _ in script.programs]
            if self._plan.phases and time.monotonic() - state.began >= most:
                self.postponed.append((script, levels))
                continue
            self._play(clients, script, levels)
            show(state)
        state.unplayed_scripts = tuple(script.name for script, _ in self.postponed)

    def play_postponed(self, clients: Clients) -> None:
        """Play the postponed scripts while the clients play the workloads on other keys."""
        for script, levels in self.postponed:
            if clients.stopped.is_set():
                return
            try:
                self._play(clients, script, levels)
            except Exception:  # the server cannot be reached; the clients notice that, too
                return
            clients.state.unplayed_scripts = clients.state.unplayed_scripts[1:]

    def _play(self, clients: Clients, script: Script, levels: Sequence[TransactionLevel]) -> None:
        played = interleave(
            script.renamed_programs(),
            script.schedule,
            target=self._target,
            level=levels,
            recorder=self._recorder,
            session=script.name,
        )
        for one, at in zip(played, levels, strict=True):
            clients.count(one.outcome, level=at.level, workload="scripted")
