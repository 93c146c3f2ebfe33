"""What to run: all that can be asked of a run."""

from __future__ import annotations

from msgspec import Struct, field

from isolang.run.faults import check_faults
from isolang.run.sql.statements import Access, Update
from isolang.run.target import Replicated, Serving, Target, TargetError
from isolang.run.workloads import Shape


class Settings(Struct, frozen=True, kw_only=True):
    """What to run.

    Attributes:
        target: a name or a URL.
        level: of the target; empty for its first one.
        claims: the specification to judge by; empty for what the level claims.
        workload: its name; ``auto`` for several.
        shape: the workload's sizes.
        seconds: how long.
        transactions: stop after this many, if that is earlier.
        sessions: clients at a time.
        processes: that the clients are shared out to.
        standby: this many more read from a standby.
        seed: of all random choices.
        faults: what goes wrong meanwhile, of ``FAULTS``.
        prefix: how the names of tables begin.
        access: how rows are found.
        update: how rows are written.
        savepoints: the share of writes before which another one is undone.
        folder: where to save histories.
        watched: judge growing prefixes while the clients run.
        to_the_end: go on after a violation.
        timeout: seconds for the verdict.
    """

    target: str
    level: str = ""
    claims: str = ""
    workload: str = "auto"
    shape: Shape = field(default_factory=Shape)
    seconds: float = 30.0
    transactions: int | None = None
    sessions: int = 10
    processes: int = 1
    standby: int = 0
    seed: int = 0
    faults: tuple[str, ...] = ()
    prefix: str = "isocheck_"
    access: Access = "index"
    update: Update = "update"
    savepoints: float = 0.0
    folder: str = "isocheck-runs"
    watched: bool = True
    to_the_end: bool = False
    timeout: float = 120.0


def check_settings(settings: Settings, target: Target) -> None:
    """Refuse what a target cannot do, and prepare it for what it can; nothing is started.

    Raises:
        TargetError: it cannot do this.
    """
    own = not target.address.host  # a server that is started here
    if settings.faults:
        check_faults(settings.faults)
        if not isinstance(target, Serving) or not own:
            hint = "leave the address out: isocheck run postgres --fault kill"
            raise TargetError(f"{target.name}: faults need a server started here; {hint}")
        target.proxied = target.tokens = True
    if settings.savepoints and "savepoints" in target.lacks:
        raise TargetError(f"{target.name}: it has no savepoints")
    if settings.processes > 1:
        if "processes" in target.lacks:
            raise TargetError(f"{target.name}: it lives in one process; leave out --processes")
        if settings.faults:
            raise TargetError("--processes: its clients cannot be reached by faults (--fault)")
    if settings.standby:
        if not isinstance(target, Replicated) or not own:
            hint = "isocheck run postgres --standby 2 has one"
            raise TargetError(f"{target.name}: no standby can be started; {hint}")
        target.standby = True
