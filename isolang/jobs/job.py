"""Checks one history against one or several specifications, and saves the requested files."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from isolang.errors import IsolangError, internal_error
from isolang.options import Options, OutputOptions, ReadOptions
from isolang.output.records import Limits, Report, Standing, error_report, report_of, unknown_report

if TYPE_CHECKING:
    from isolang.explain.violation import Findings
    from isolang.history.history import History
    from isolang.language.classify.route import Route
    from isolang.limits import Deadline
    from isolang.pipeline.levels import Standing as LevelResult
    from isolang.verdict import Invalid, Verdict


# Report the strongest satisfied and the weakest violated levels only if the history has at most
# this many operations and at least this many seconds remain. The search has this work limit.
_LEVELS_MAX_OPERATIONS: Final = 20_000
_LEVELS_WORK: Final = 4_000_000
_LEVELS_MIN_SECONDS: Final = 0.1
# Histories of at least this many bytes are read faster with a heap in large pages.
_LARGE_FILE_BYTES: Final = 250_000
_HEAP_BYTES: Final = 64 << 20  # the size of this heap in bytes; unused bytes cost nothing

_RESULTS: Final[Mapping[str, LevelResult]] = {"valid": "satisfied", "invalid": "violated"}
# Levels that have the axioms of another one, but for real time. A test compares their checks.
_WITHOUT_REAL_TIME: Final = {"sser": "ser", "sser-nosession": "ser-nosession"}

Emit = Callable[[Report], object]
Progress = Callable[[str], object]


class UnloadedSpec(Struct, frozen=True):
    """The result for a specification that could not be loaded within the limits."""

    reason: str


class Job(Struct, frozen=True, kw_only=True):
    """A history, the specifications to check it against, and what to do with the results.

    Attributes:
        specs: the specifications, as named by the user, with their routes.
        options: the options of the check. The timeout applies to each verdict separately, and
            includes the time for reading.
        parallel: the number of jobs that run simultaneously and share the default memory limit.
        output: which files to write, and whether to search for every kind of anomaly.
        form: the form in :mod:`isolang.report.forms` in which to draw the verdict; empty for none.
        cross_check: the value of ``--cross-check``; empty for no cross-check.
        standing: whether to report the strongest satisfied and the weakest violated levels, if this
            takes little work.
        simplest: whether to search for the simplest violation, for human readers.
    """

    history: str
    specs: tuple[tuple[str, Route | UnloadedSpec], ...]
    reading: ReadOptions = ReadOptions()
    options: Options = Options()
    parallel: int = 1
    output: OutputOptions = OutputOptions()
    form: str = ""
    cross_check: str = ""
    standing: bool = False
    simplest: bool = True

    @property
    def limits(self) -> Limits:
        """Return the limits of each check; without a memory limit, use the default limit."""
        from isolang.limits import default_memory

        memory = self.options.memory
        return Limits(
            timeout=self.options.timeout,
            memory=default_memory(self.parallel) if memory is None else memory,
            default_memory=memory is None,
        )


def run_job(
    job: Job,
    emit: Emit,
    progress: Progress,
    decided: Callable[[Verdict, Route], object] = lambda verdict, route: None,
) -> None:
    """Read the history once, check it against each specification, and emit the reports in order.

    With ``--unit request``, the reports about transactions come before those about requests.
    """
    # Import these large modules before timing starts.
    from isolang import _native, api, pipeline  # noqa: F401

    if _is_large(job.history):
        import hashlib  # noqa: F401 - its libraries may not fit into the memory limit
    from isolang.limits import Deadline, memory_cap

    limits = job.limits

    def finished(report: Report) -> None:
        emit(replace(report, limits=limits))

    if job.options.memory is None and _is_large(job.history):
        _native.reserve_heap_in_large_pages(_HEAP_BYTES)
    with memory_cap(limits.memory, of_process=True):
        reading = Deadline(job.options.timeout)
        progress("read")
        history = _read_history(job, reading, finished)
        if history is None:
            return
        progress(f"{history.columns.transactions():,} transactions read")
        spent = {"read": reading.seconds().read}
        judged = [history]
        if job.reading.unit == "request":
            judged += _with_requests(job, history, reading, finished)
        for each in judged:
            summary = _HistorySummary(job, each, progress)
            for spec in job.specs:
                deadline = Deadline(job.options.timeout, already=spent)
                report = _check_spec(
                    job, each, spec, deadline, progress, summary=summary, decided=decided
                )
                finished(summary.attach_to(report))


def _with_requests(job: Job, history: History, reading: Deadline, emit: Emit) -> list[History]:
    """Return the history as requests are judged; on failure, emit reports and return nothing."""
    from isolang.history.carried import with_carried_reads

    try:
        with reading.during("read"):
            carried = with_carried_reads(history, everything=job.reading.carry == "all")
    except IsolangError as error:
        for name, _ in job.specs:
            emit(error_report(job.history, name, str(error), reading.seconds()))
        return []
    return [carried]


class _HistorySummary:
    """The facts about a history that do not depend on a specification: its anomalies and levels.

    They are computed once, after the first verdict.

    Attributes:
        judged: the history of the last verdict; ``None`` before the first one.
    """

    def __init__(self, job: Job, history: History, progress: Progress) -> None:
        self._job = job
        self._history = history
        self.judged: History | None = None
        self._progress = progress
        self._findings: Findings | None = None
        self._standing: Standing | None = None
        self._done = False

    def attach_to(self, report: Report) -> Report:
        """Return the report on a verdict with these facts added."""
        if report.verdict == "error" or not (self._job.output.all_anomalies or self._job.standing):
            return report
        if not self._done:
            try:
                self._find(report)
            except IsolangError:
                pass  # the report already has the reason
            except (TimeoutError, MemoryError):
                report = replace(
                    report,
                    warnings=(*report.warnings, "the search for anomalies ran out of memory"),
                )
            self._done = True
        return replace(report, findings=self._findings, standing=self._standing)

    def _find(self, report: Report) -> None:
        options = self._job.options
        remaining = None
        if options.timeout is not None:
            remaining = options.timeout - report.seconds.total
            if remaining <= _LEVELS_MIN_SECONDS:
                return
        if self._job.output.all_anomalies:
            from isolang.pipeline.findings import findings_of

            options = replace(options, timeout=remaining)
            found = findings_of(self._history, options, progress=self._progress)
            self._findings = _with_verdict(found, report)
        elif (
            self._history.columns.operations() > _LEVELS_MAX_OPERATIONS
            or report.verdict == "unknown"
        ):
            self._standing = Standing(looked_for=False)
        else:
            from isolang.limits import Deadline, Work
            from isolang.pipeline.levels import levels_of

            levels = levels_of(
                self._history,
                replace(options, certify=False),
                progress=self._progress,
                simplest=False,
                explained=False,
                deadline=Deadline(remaining),
                work=Work(_LEVELS_WORK),
                known=_known(report, self._history),
                with_set_reads=self.judged,
            )
            self._standing = Standing(
                strongest=levels.strongest(),
                weakest_violated=levels.weakest_violated(),
                unknown=any(level.standing == "unknown" for level in levels.levels.values()),
            )


def _known(report: Report, history: History) -> dict[str, LevelResult]:
    """Return what a verdict says about levels of the library; empty if it is about none."""
    from isolang.language.hierarchy import IMPLIES
    from isolang.language.library import level_of

    name = "" if report.level is None else level_of(report.level.source)
    if name not in IMPLIES or report.verdict not in _RESULTS:
        return {}
    known = {name: _RESULTS[report.verdict]}
    if report.violation is None or report.anomalies or _has_open_facts(history):
        return known
    # The explanation of a violation says what holds without some relations.
    weaker = {
        "without sessions": f"{name}-nosession",
        "without real time": _WITHOUT_REAL_TIME.get(name, ""),
    }
    for how, outcome in report.violation.relaxed.items():
        if (level := weaker.get(how, "")) in IMPLIES and outcome in _RESULTS:
            known[level] = _RESULTS[outcome]
    return known


def _has_open_facts(history: History) -> bool:
    """Return whether several readings of the history are judged, or only a part of its reads."""
    return (
        bool(len(history.columns.statement_txn))
        or history.has_statements()
        or history.possible_facts > 0
    )


def _with_verdict(findings: Findings, report: Report) -> Findings:
    """Return the findings, with the report's violation added if no finding has its kind."""
    from isolang.explain.violation import Finding

    violation = report.violation
    if violation is None or violation.anomaly in {one.anomaly for one in findings.anomalies}:
        return findings
    more = Finding(
        anomaly=violation.anomaly,
        count=1,
        counted="levels",
        level=report.spec,
        certified=report.certified,
        violation=violation,
    )
    return replace(findings, anomalies=(*findings.anomalies, more))


def _read_history(job: Job, reading: Deadline, emit: Emit) -> History | None:
    """Read the history; on failure, emit a report for each specification and return ``None``."""
    from isolang.history import read_history
    from isolang.limits import out_of_memory

    try:
        with reading.during("read"):
            options = replace(job.reading, unit="transaction", carry="rows")
            return read_history(job.history, options, timeout=job.options.timeout)
    except IsolangError as error:
        make, reason = error_report, str(error)
    except TimeoutError:
        make, reason = unknown_report, "timeout: the time limit was reached in phase read"
    except MemoryError as error:
        make, reason = unknown_report, f"memory: {out_of_memory(error, 'read')}{_default(job)}"
    except OSError as error:
        make, reason = error_report, f"{job.history}: {error.strerror or error}"
    except Exception as error:
        make, reason = unknown_report, _unexpected(error)
    for name, _ in job.specs:
        emit(make(job.history, name, reason, reading.seconds()))
    return None


def _check_spec(
    job: Job,
    history: History,
    spec: tuple[str, Route | UnloadedSpec],
    deadline: Deadline,
    progress: Progress,
    *,
    summary: _HistorySummary,
    decided: Callable[[Verdict, Route], object],
) -> Report:
    """Check the history against one specification, and return the report.

    If an exception occurs, the report contains its message.
    """
    from isolang.limits import out_of_memory
    from isolang.pipeline.other_reading import with_initial_transaction_note
    from isolang.pipeline.possible import judge

    name, route = spec
    if isinstance(route, UnloadedSpec):
        return unknown_report(job.history, name, route.reason, deadline.seconds())
    try:
        verdict = judge(history, route, deadline, job.options, progress, simplest=job.simplest)
        same = verdict.history.options == history.options
        summary.judged = verdict.history if same else None
        if verdict.outcome != "unknown":
            verdict = with_initial_transaction_note(verdict, route, job.options, deadline)
        decided(verdict, route)
        report = replace(report_of(job.history, name, verdict), warnings=tuple(route.warnings))
        if report.reason.startswith("memory:"):
            report = replace(report, reason=report.reason + _default(job))
        report = _save_files(job, report, verdict, route)
        if job.cross_check:
            from isolang.jobs.crosscheck import with_cross_check

            progress("cross-check")
            report = with_cross_check(
                report,
                verdict,
                route,
                job.options,
                deadline,
                which=job.cross_check,
                folder=job.output.certificates or ".",
            )
        return report
    except IsolangError as error:
        return error_report(job.history, name, str(error), deadline.seconds())
    except MemoryError as error:
        reason = f"memory: {out_of_memory(error, deadline.phase)}{_default(job)}"
    except Exception as error:
        reason = _unexpected(error)
    return unknown_report(job.history, name, reason, deadline.seconds())


def _unexpected(error: Exception) -> str:
    """Return the message for an unexpected exception, which does not end the job."""
    if os.environ.get("ISOLANG_TRACEBACK"):
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    return internal_error(error)


def _default(job: Job) -> str:
    from isolang.limits import default_memory_remark

    return default_memory_remark(job.parallel) if job.options.memory is None else ""


def _is_large(history: str) -> bool:
    try:
        return os.stat(history).st_size >= _LARGE_FILE_BYTES
    except (OSError, ValueError):  # a pipe, or a missing file; the reader raises the error
        return False


def _save_files(job: Job, report: Report, verdict: Verdict, route: Route) -> Report:
    """Save the requested files, and any certificate rejected by a checker."""
    from isolang.verdict import Invalid, Unknown, Valid

    proved = not isinstance(verdict, Invalid) or verdict.violation.anomaly != "no model"
    evidence = verdict.evidence if isinstance(verdict, Unknown) else None
    to_save: dict[str, Callable[[], str]] = {}
    if evidence is not None:
        to_save["certificate"] = lambda: str(evidence.save(job.output.certificates or "."))
    if isinstance(verdict, Valid | Invalid) and proved and job.output.certificates:
        certificate = verdict.certificate
        to_save["certificate"] = lambda: str(certificate().save(job.output.certificates))
    if isinstance(verdict, Invalid) and proved and job.output.minimal:
        invalid = verdict
        to_save["minimal"] = lambda: _write_minimal(job, invalid, route)
    if job.output.html:
        to_save["page"] = lambda: _write_page(job, report, verdict)
    if job.output.plot:
        to_save["plot"] = lambda: _draw(job.output.plot, verdict)
    if job.form:
        to_save["drawn"] = lambda: _draw_text(job.form, verdict)
    saved: dict[str, str] = {}
    unsaved: list[str] = []
    for name, save in to_save.items():
        try:
            saved[name] = save()
        except (IsolangError, OSError) as error:
            unsaved.append(str(error))
    return replace(report, **saved, unsaved=tuple(unsaved), warnings=(*report.warnings, *unsaved))


def _draw_text(form: str, verdict: Verdict) -> str:
    from isolang.report.forms import FORMS

    return FORMS[form](verdict)


def _write_page(job: Job, report: Report, verdict: Verdict) -> str:
    """Write the page about a verdict, and return the name of its file."""
    from isolang.report import page, save_page

    path = page_path(job.output.html, job.history, report)
    return save_page(page(verdict, name=job.history), path)


def page_path(path: str, history: str, report: Report) -> Path:
    """Return the path of the page about a verdict.

    If the path does not end in ``.html``, it is a folder, and the file gets a name made from the
    history and the specification.
    """
    named = Path(path)
    if named.suffix == ".html":
        return named
    requests = "-requests" if report.unit == "request" else ""
    stem = f"{Path(history).name}-{Path(report.spec).name}{requests}"
    return named / (re.sub(r"[^\w.-]", "_", stem) + ".html")


def _draw(path: str, verdict: Verdict) -> str:
    from isolang.report.figure import figure
    from isolang.report.picture import save_picture

    return save_picture(figure(verdict), path)


def _write_minimal(job: Job, verdict: Invalid, route: Route) -> str:
    from isolang.pipeline.exported import export_part
    from isolang.pipeline.minimal import minimise

    start = time.perf_counter()
    remaining = None
    if job.options.timeout is not None:
        remaining = max(0.1, job.options.timeout - verdict.seconds.total)
    part = minimise(verdict, route, seconds=remaining, seed=job.options.seed)
    found = export_part(part, route, seed=job.options.seed)
    found.save(job.output.minimal)
    return (
        f"{job.output.minimal} ({found.described()}; found in {time.perf_counter() - start:.1f} s)"
    )
