"""Runs jobs in child processes; if a child ends early, the verdict is unknown, with the reason."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from isolang.jobs.child import NO_LIMIT, Children, EndedChild, Send
from isolang.jobs.job import Job, run_job
from isolang.limits import default_memory_remark
from isolang.output.records import Report, unknown_report

# A child is killed if it has not ended this many seconds after its deadline. Starting a child may
# take a few more seconds, which do not count toward the history's time limit.
_GRACE_S = 0.5
_START_S = 5.0
# The search for a minimal part stops at the deadline, but its result has yet to be written.
_WRITE_MINIMAL_S = 1.0


def run_in_child(children: Children, job: Job, progress: Callable[[str], object]) -> list[Report]:
    """Run a job in a child process, and return a report for each specification.

    If the child ends early, check the remaining specifications in another child.
    """
    reports: list[Report] = []
    while len(reports) < len(job.specs):
        rest = replace(job, specs=job.specs[len(reports) :])
        done, reason = _run(children, rest, progress)
        reports += done
        if children.closed:
            return reports
        if len(reports) < len(job.specs):
            report = unknown_report(job.history, job.specs[len(reports)][0], reason)
            reports.append(replace(report, limits=job.limits))
    return reports


def work(job: Job, send: Send) -> None:
    """Run a job in this child process, and send its reports to the parent."""
    from msgspec import to_builtins

    run_job(
        job,
        lambda report: send("report", to_builtins(report)),
        lambda name: send("phase", name),
    )


def _run(
    children: Children, job: Job, progress: Callable[[str], object]
) -> tuple[list[Report], str]:
    """Run a job in a single child."""
    reports: list[Report] = []
    phase = "start"
    timeout = job.options.timeout
    patience = NO_LIMIT if timeout is None else timeout + _GRACE_S

    def receive(kind: str, content: Any) -> float | None:
        nonlocal phase
        if kind == "report":
            reports.append(convert(content, Report))
        else:
            phase = content
            progress(content)
        again = kind == "report" or content == "read"
        return patience + (_WRITE_MINIMAL_S if job.output.minimal else 0.0) if again else None

    ended = children.run(
        f"{__name__}:work", job, receive, first=patience + _START_S, stdin=job.history == "-"
    )
    if ended.timed_out:
        return reports, f"timeout: the time limit was reached in phase {phase}"
    return reports, _why_ended(ended, phase, job)


def _why_ended(ended: EndedChild, phase: str, job: Job) -> str:
    """Return the reason why a child ended before it had sent all reports."""
    capped = job.options.memory is not None
    if capped and phase == "start":
        return "memory: the limit is too small for the checker to start"
    if ended.lacked_memory or (capped and -ended.status == signal.SIGSEGV):
        default = "" if capped else default_memory_remark(job.parallel)
        return f"memory: the memory limit was reached in phase {phase}{default}"
    if ended.status < 0:
        try:
            name = signal.Signals(-ended.status).name
        except ValueError:
            name = f"signal {-ended.status}"
        hint = ""
        if name == "SIGKILL":
            hint = "; perhaps the system ran out of memory (--memory sets a limit)"
        return f"crash: {name} ended the checker in phase {phase}{hint}"
    text = f"crash: the checker ended with status {ended.status} in phase {phase}"
    return f"{text}: {ended.last_line}".rstrip(": ")
