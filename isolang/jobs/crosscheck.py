"""``--cross-check``: other pairs asked about a history, and what is kept if they disagree."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.errors import IsolangError
from isolang.output.records import ClaimReport, CrossCheckReport, Report
from isolang.pipeline.crosscheck import cross_check, partners
from isolang.solvers.registry import choose_pair

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.jobs.job import Job
    from isolang.language.classify.route import Route
    from isolang.limits import Deadline
    from isolang.verdict import Verdict

# Of the time that is left, this much is for the pairs; the rest is for writing what came of it.
_SHARE = 0.8


def cross_checked(
    job: Job, report: Report, verdict: Verdict, route: Route, deadline: Deadline
) -> Report:
    """Cross-check a verdict; the report with what came of it."""
    how = job.options
    chosen, _ = choose_pair(how.encoding, how.solver, how.prune, route=route)
    others = partners(chosen, job.cross_check, route)
    seconds = None
    if how.timeout is not None:
        try:
            left = deadline.remaining() or 0.0
        except TimeoutError:
            left = 0.0
        seconds = max(0.01, _SHARE * left / (len(others) + 1))
    found = cross_check(verdict.history, route, chosen, others, seconds=seconds, seed=how.seed)
    entry = CrossCheckReport(
        summary=found.summary(),
        claims=tuple(
            ClaimReport(
                pair=str(claim.pair),
                outcome=claim.outcome,
                detail=claim.detail,
                seconds=round(claim.seconds, 6),
            )
            for claim in found.claims
        ),
    )
    if not found.disagreement:
        return replace(report, cross_check=entry)
    stem = f"disagreement-{(verdict.history.sha256 or 'history')[:12]}"
    parts = {"history": (verdict.history, f"{stem}.edn")}
    if found.minimal is not None:
        parts["minimal"] = (found.minimal, f"{stem}-minimal.edn")
    saved, warnings = {}, list(report.warnings)
    for name, (history, file) in parts.items():
        path = os.path.join(job.certificates or ".", file)
        try:
            saved[name] = _save(history, path)
        except (IsolangError, OSError) as error:
            warnings.append(f"{path}: cannot be written ({error})")
    return replace(
        report,
        verdict="unknown",
        reason=found.summary(),
        anomaly=None,
        certified=False,
        certified_reason="",
        violation=None,
        cross_check=replace(entry, **saved),
        warnings=tuple(warnings),
    )


def _save(history: History, path: str) -> str:
    from isolang.history.writers import write_history

    write_history(history, path, format="edn", renumber=True)
    counts = history.counts()
    return f"{path} ({counts['transactions']} transactions, {counts['operations']} operations)"
