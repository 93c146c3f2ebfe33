"""Which workloads a run plays, and for how long each."""

from __future__ import annotations

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
"""What ``auto`` plays first: half a second for what databases are known to show."""

AUTO: Final = (
    ("pairs", 0.5),
    ("insert-delete", 0.1),
    ("rmw", 0.1),
    ("append", 0.1),
    ("long-fork", 0.1),
    ("bank", 0.05),
    ("blindw-rw+", 0.05),
)
"""What it plays then, and for which shares of the time: what finds most comes first."""

_STEPS: Final = frozenset({"rows", "conversations"})  # what scripts need


class Phase(Struct, frozen=True, kw_only=True):
    """A workload, and for which share of the time it is played."""

    workload: Workload
    share: float


class Plan(Struct, frozen=True, kw_only=True):
    """What a run plays.

    Attributes:
        scripts: first these, one after the other.
        phases: then these, each by many clients.
    """

    scripts: tuple[Script, ...] = ()
    phases: tuple[Phase, ...] = ()

    def registers(self) -> tuple[str, ...]:
        """The keys that hold numbers."""
        names = [name for script in self.scripts for name in script.names()]
        names += [name for phase in self.phases for name in phase.workload.registers]
        return tuple(dict.fromkeys(names))

    def lists(self) -> tuple[str, ...]:
        """The keys that hold lists."""
        names = [name for phase in self.phases for name in phase.workload.lists]
        return tuple(dict.fromkeys(names))

    def workload(self, passed: float) -> str:
        """The workload that is played when this share of the time has passed."""
        for phase in self.phases:
            passed -= phase.share
            if passed < 0:
                return phase.workload.name
        return self.phases[-1].workload.name if self.phases else "scripted"


def plan_of(settings: Settings, target: Target) -> Plan:
    """What a run plays.

    Raises:
        TargetError: there is no such workload, or the target cannot do what it needs.
    """
    scripts = () if target.lacks & _STEPS else SCRIPTS
    if settings.workload == "scripted":
        if not scripts:
            raise TargetError(f"{target.name}: scripts need steps, which this target lacks")
        return Plan(scripts=scripts)
    if settings.workload != "auto":
        workload = workload_named(settings.workload, settings.shape)
        lacking = workload.needs & target.lacks
        if lacking:
            what = f"{workload.name} needs {' and '.join(sorted(lacking))}"
            raise TargetError(
                f"{target.name}: {what}, which this target lacks; try --workload mini"
            )
        return Plan(phases=(Phase(workload=workload, share=1.0),))
    able = [(workload_named(name), share) for name, share in AUTO]
    chosen = [(one, share) for one, share in able if not one.needs & target.lacks]
    total = sum(share for _, share in chosen)
    phases = tuple(Phase(workload=one, share=share / total) for one, share in chosen)
    known = tuple(one for one in scripts if one.name in AUTO_SCRIPTS)
    return Plan(scripts=known, phases=phases)
