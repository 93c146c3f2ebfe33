"""Plans the workloads of a run, and the share of the time that each of them gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from isolang.run.settings import Settings
from isolang.run.target import Target, TargetError
from isolang.run.workloads import Workload, workload_named
from isolang.run.workloads.scripted import SCRIPTS, Script

AUTO_SCRIPTS: Final = (
    "lost-update-in-turn",
    "write-skew",
    "fractured-re-read",
    "delete-beside-update",
    "insert-beside-insert",
    "update-to-the-value-it-has",
)
"""The scripts that ``auto`` plays first; each can reveal a known anomaly within half a second."""

AUTO: Final = (
    ("pairs", 0.5),
    ("insert-delete", 0.1),
    ("rmw", 0.1),
    ("append", 0.1),
    ("long-fork", 0.1),
    ("bank", 0.05),
    ("blindw-rw+", 0.05),
)
"""The workloads that ``auto`` plays next, with shares of the time; the most effective is first."""

MIN_COMMITS: Final = 2
"""The commits a workload needs to count as played; no anomaly has fewer transactions."""

_SHORT_TURN_COMMITS: Final = 10  # a short turn ends after this many commits

_SCRIPT_NEEDS: Final = frozenset({"rows", "conversations"})  # the features that scripts need


class Phase(Struct, frozen=True, kw_only=True):
    """A workload, and the share of the time that it gets."""

    workload: Workload
    share: float


class RunPlan(Struct, frozen=True, kw_only=True):
    """The scripts and workloads of a run.

    Attributes:
        phases: the workloads, played by many clients after the scripts.
    """

    scripts: tuple[Script, ...] = ()
    phases: tuple[Phase, ...] = ()

    def registers(self) -> tuple[str, ...]:
        """Return the keys that hold numbers in any script or workload."""
        names = [name for script in self.scripts for name in script.names()]
        names += [name for phase in self.phases for name in phase.workload.registers]
        return tuple(dict.fromkeys(names))

    def lists(self) -> tuple[str, ...]:
        """Return the keys that hold lists in any workload."""
        names = [name for phase in self.phases for name in phase.workload.lists]
        return tuple(dict.fromkeys(names))

    def workload(self, passed: float) -> str:
        """Return the name of the workload to play after this share (0 to 1) of the run."""
        for phase in self.phases:
            passed -= phase.share
            if passed < 0:
                return phase.workload.name
        return self.phases[-1].workload.name if self.phases else "scripted"


class WorkloadTurns:
    """Chooses the next workload by the time and by the number of commits of each workload.

    At first each workload has a short turn, which ends after a few committed transactions.
    Workloads with long transactions come last. The short turns take at most half of the time, and
    much less on a fast database. Then the clients are divided among the workloads that have not
    been played yet, for half of the remaining time. After that, each workload gets its share.

    Attributes:
        ends: the value of ``time.monotonic()`` at which the current short turn ends at the latest;
            infinite after the last short turn.
    """

    def __init__(self, plan: RunPlan, *, began: float, until: float) -> None:
        """Plan the turns of a run."""
        self._plan, self._until = plan, until
        workloads = [phase.workload for phase in plan.phases]
        self._all = [one.name for one in sorted(workloads, key=lambda one: one.long > 0)]
        self._waiting = self._all if len(self._all) > 1 else []
        self._half, self._shared = began + (until - began) / 2, began
        self._turn, self.ends = "", began if self._waiting else float("inf")
        self._together = False

    def choose(self, now: float, played: Mapping[str, int], client: int = 0) -> str:
        """Return the name of the workload for a client to play now."""
        while self.ends < float("inf"):
            if self._together:
                unplayed = [one for one in self._all if played.get(one, 0) < MIN_COMMITS]
                if unplayed and now < self.ends:
                    return unplayed[client % len(unplayed)]
                self.ends, self._shared = float("inf"), now
            elif self._turn and now < self.ends and played.get(self._turn, 0) < _SHORT_TURN_COMMITS:
                return self._turn
            elif self._waiting:
                self.ends = now + max(0.0, self._half - now) / len(self._waiting)
                self._turn, *self._waiting = self._waiting
            else:
                self._together, self.ends = True, now + (self._until - now) / 2
        passed = (now - self._shared) / max(self._until - self._shared, 1e-9)
        return self._plan.workload(passed)


def run_plan_of(settings: Settings, target: Target) -> RunPlan:
    """Return the scripts and workloads named by the settings or chosen by ``auto``.

    Raises:
        TargetError: the workload does not exist, or it needs a feature that the target lacks.
    """
    scripts = () if target.lacks & _SCRIPT_NEEDS else SCRIPTS
    if settings.workload == "scripted":
        if not scripts:
            raise TargetError(
                f"{target.name}: scripts send one operation at a time, which this target does not "
                "support"
            )
        return RunPlan(scripts=scripts)
    if settings.workload != "auto":
        workload = workload_named(settings.workload, settings.shape)
        lacking = workload.needs & target.lacks
        if lacking:
            what = f"{workload.name} needs {' and '.join(sorted(lacking))}"
            raise TargetError(
                f"{target.name}: {what}, which this target does not support; try --workload mini"
            )
        return RunPlan(phases=(Phase(workload=workload, share=1.0),))
    able = [(workload_named(name), share) for name, share in AUTO]
    chosen = [(one, share) for one, share in able if not one.needs & target.lacks]
    total = sum(share for _, share in chosen)
    phases = tuple(Phase(workload=one, share=share / total) for one, share in chosen)
    known = tuple(one for one in scripts if one.name in AUTO_SCRIPTS)
    return RunPlan(scripts=known, phases=phases)
