"""``--cross-check``: other pairs asked about a history, and what is kept if they disagree."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from isolang.crosscheck import SECONDS, cross_check, partners
from isolang.errors import IsolangError
from isolang.solvers.registry import choose_pair

if TYPE_CHECKING:
    from isolang.cli.job import Job
    from isolang.cli.report import Report
    from isolang.history.history import History
    from isolang.language.classify.route import Route
    from isolang.limits import Spending
    from isolang.verdict import Verdict

# Of the time that is left, so much is for the pairs; the rest is for writing what came of it.
_SHARE = 0.8


def cross_checked(
    job: Job, report: Report, verdict: Verdict, route: Route, spending: Spending
) -> None:
    """Cross-check a verdict, and put what came of it into its report."""
    chosen, _ = choose_pair(
        job.options.encoding, job.options.solver, job.options.prune, route=route
    )
    others = partners(chosen, job.cross_check, route)
    seconds = SECONDS
    if job.options.timeout is not None:
        try:
            left = spending.remaining() or 0.0
        except TimeoutError:
            left = 0.0
        seconds = max(0.01, _SHARE * left / (len(others) + 1))
    found = cross_check(
        verdict.history, route, chosen, others, seconds=seconds, seed=job.options.seed
    )
    entry = {
        "summary": found.summary(),
        "claims": [
            {
                "pair": str(claim.pair),
                "outcome": claim.outcome,
                "detail": claim.detail,
                "seconds": round(claim.seconds, 6),
            }
            for claim in found.claims
        ],
        "history": None,
        "minimal": None,
    }
    report["cross_check"] = entry
    if not found.disagreement:
        return
    report.update(verdict="unknown", reason=found.summary(), certified=False, violation=None)
    report.update(anomaly=None, certified_reason="")
    stem = f"disagreement-{(verdict.history.sha256 or 'history')[:12]}"
    entry["history"] = _saved(job, report, verdict.history, f"{stem}.edn")
    if found.minimal is not None:
        entry["minimal"] = _saved(job, report, found.minimal, f"{stem}-minimal.edn")


def _saved(job: Job, report: Report, history: History, name: str) -> str | None:
    from isolang.history.writers import write_history

    path = os.path.join(job.certificates or ".", name)
    try:
        write_history(history, path, format="edn", renumber=True)
    except (IsolangError, OSError) as error:
        report["warnings"].append(f"{path}: cannot be written ({error})")
        return None
    counts = history.counts()
    return f"{path} ({counts['transactions']} transactions, {counts['operations']} operations)"
