"""Jobs in children of their own: what ends a child is a verdict's reason, and the run goes on."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from isolang.jobs.child import NO_LIMIT, Children, Ended, Say
from isolang.jobs.job import Job, run_job
from isolang.limits import about_default_memory
from isolang.output.records import Report, unknown_report

# A child that has not given up by itself so long after its deadline is ended. Starting takes time,
# for which the machine is to blame, not the history.
_GRACE = 0.5
_START = 5.0
# Looking for a minimal part keeps to the deadline by itself, but writes its last step whole.
_MINIMAL = 1.0


def run_apart(children: Children, job: Job, progress: Callable[[str], object]) -> list[Report]:
    """Run a job in a child, and in another one what a child that was ended left undone."""
    reports: list[Report] = []
    while len(reports) < len(job.specs):
        left = replace(job, specs=job.specs[len(reports) :])
        done, reason = _run(children, left, progress)
        reports += done
        if children.closed:
            return reports
        if len(reports) < len(job.specs):
            report = unknown_report(job.history, job.specs[len(reports)][0], reason)
            reports.append(replace(report, limits=job.limits))
    return reports


def work(job: Job, say: Say) -> None:
    """Run a job, in the child."""
    from msgspec import to_builtins

    run_job(job, lambda report: say("report", to_builtins(report)), lambda name: say("phase", name))


def _run(
    children: Children, job: Job, progress: Callable[[str], object]
) -> tuple[list[Report], str]:
    """The reports of one child, and why it ended if not all are there."""
    reports: list[Report] = []
    phase = "start"
    timeout = job.options.timeout
    patience = NO_LIMIT if timeout is None else timeout + _GRACE

    def hear(kind: str, what: Any) -> float | None:
        nonlocal phase
        if kind == "report":
            reports.append(convert(what, Report))
        else:
            phase = what
            progress(what)
        again = kind == "report" or what == "read"
        return patience + (_MINIMAL if job.output.minimal else 0.0) if again else None

    ended = children.run(
        f"{__name__}:work", job, hear, first=patience + _START, stdin=job.history == "-"
    )
    if ended.late:
        return reports, f"timeout: the time ran out in phase {phase}"
    return reports, _why(ended, phase, job)


def _why(ended: Ended, phase: str, job: Job) -> str:
    """Say in words why a child ended without its reports."""
    capped = job.options.memory is not None
    if capped and phase == "start":
        return "memory: the limit is less than the checker itself needs to start"
    if ended.lacked_memory or (capped and -ended.status == signal.SIGSEGV):
        default = "" if capped else about_default_memory(job.parallel)
        return f"memory: the memory ran out in phase {phase}{default}"
    if ended.status < 0:
        try:
            name = signal.Signals(-ended.status).name
        except ValueError:
            name = f"signal {-ended.status}"
        hint = ""
        if name == "SIGKILL":
            hint = "; perhaps the system had no memory left (--memory sets a limit)"
        return f"crash: the checker was ended by {name} in phase {phase}{hint}"
    said = f"crash: the checker ended with status {ended.status} in phase {phase}"
    return f"{said}: {ended.last_line}".rstrip(": ")
