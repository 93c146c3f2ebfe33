"""One history against some specs: what a run does for each history, here or in a child."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from isolang.cli.report import Report, error_report, report_of, unknown_report
from isolang.errors import IsolangError
from isolang.options import Options, ReadOptions

if TYPE_CHECKING:
    from isolang.language.classify.route import Route
    from isolang.verdict import Invalid, Verdict


_LARGE: Final = 250_000  # bytes of a history that is worth a heap in large pages
_HEAP: Final = 64 << 20  # bytes; what is not used costs nothing


class Job(Struct, frozen=True, kw_only=True):
    """What to do with one history.

    Attributes:
        history: a path, or ``-``.
        specs: each as the user named it, and its route.
        reading: how to read it.
        options: how to check it; the timeout is for each verdict, with reading.
        certificates: where to save certificates; empty for nowhere.
        minimal: where to write the smallest invalid part; empty for nowhere.
        cross_check: of ``--cross-check``; empty for none.
    """

    history: str
    specs: tuple[tuple[str, Route], ...]
    reading: ReadOptions = ReadOptions()
    options: Options = Options()
    certificates: str = ""
    minimal: str = ""
    cross_check: str = ""


def run_job(job: Job, emit: Callable[[Report], object], progress: Callable[[str], object]) -> None:
    """Read the history once, judge it by each spec, and emit one report for each, in order."""
    # Everything heavy is imported before the clock starts: it is not the history's fault.
    import numpy as np  # noqa: F401

    from isolang import _native
    from isolang.api import read
    from isolang.limits import Spending
    from isolang.pipeline import decide
    from isolang.pipeline.other_reading import with_other_reading

    if job.options.memory is None and _is_large(job.history):  # a cap counts addresses, too
        _native.reserve_heap_in_large_pages(_HEAP)
    reading = Spending(job.options.timeout)
    progress("read")
    try:
        with reading.during("read"):
            history = read(job.history, job.reading, timeout=job.options.timeout)
    except IsolangError as error:
        for name, _ in job.specs:
            emit(error_report(job.history, name, str(error), reading.seconds()))
        return
    except (TimeoutError, MemoryError) as error:
        what = "timeout: the time" if isinstance(error, TimeoutError) else "memory: the memory"
        for name, _ in job.specs:
            reason = f"{what} ran out in phase read"
            emit(unknown_report(job.history, name, reason, reading.seconds()))
        return
    spent = {"read": reading.seconds().read}
    for name, route in job.specs:
        spending = Spending(job.options.timeout, already=spent)
        try:
            verdict = decide(history, route, spending, job.options, progress)
        except IsolangError as error:
            emit(error_report(job.history, name, str(error), spending.seconds()))
            continue
        if verdict.outcome != "unknown":
            verdict = with_other_reading(verdict, route, job.options)
        report = report_of(job.history, name, verdict)
        report["warnings"] = list(route.warnings)
        _save(job, report, verdict, route)
        if job.cross_check:
            from isolang.cli.crosscheck import cross_checked

            progress("cross-check")
            cross_checked(job, report, verdict, route, spending)
        emit(report)


def _is_large(history: str) -> bool:
    try:
        return os.stat(history).st_size >= _LARGE
    except OSError:  # a pipe; or it is not there, which reading will say
        return False


def _save(job: Job, report: Report, verdict: Verdict, route: Route) -> None:
    """Save what the user asked for, and evidence that no one asked for: a rejected certificate."""
    from isolang.verdict import Invalid, Unknown, Valid

    options = {"timestamps": job.reading.timestamps, "initial": job.reading.initial}
    try:
        if isinstance(verdict, Unknown) and verdict.evidence is not None:
            report["certificate"] = str(verdict.evidence.save(job.certificates or "."))
        proved = not isinstance(verdict, Invalid) or verdict.violation.anomaly != "no model"
        if isinstance(verdict, Valid | Invalid) and proved and job.certificates:
            report["certificate"] = str(verdict.certificate(options).save(job.certificates))
        if isinstance(verdict, Invalid) and proved and job.minimal:
            report["minimal"] = _write_minimal(job, verdict, route)
    except IsolangError as error:
        report["warnings"].append(str(error))


def _write_minimal(job: Job, verdict: Invalid, route: Route) -> str:
    from isolang.history.writers import write_history
    from isolang.minimal import minimise

    start = time.perf_counter()
    left = 10.0
    if job.options.timeout is not None:
        left = max(0.1, min(left, job.options.timeout - verdict.seconds.total))
    part = minimise(verdict, route, seconds=left, seed=job.options.seed)
    written = write_history(part, job.minimal, format="edn", renumber=True)
    counts = part.counts()
    return (
        f"{job.minimal} ({counts['transactions']} transactions, {written.operations} operations, "
        f"found in {time.perf_counter() - start:.1f} s)"
    )
