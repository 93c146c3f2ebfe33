"""Compares a verdict with those of other encoding-solver pairs (``--cross-check``).

If the pairs disagree, the history is saved.
"""

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
    from isolang.language.classify.route import Route
    from isolang.limits import Deadline
    from isolang.options import Options
    from isolang.verdict import Verdict

_SHARE = 0.8  # the share of the remaining time that the pairs get; the rest is for writing files


def with_cross_check(
    report: Report,
    verdict: Verdict,
    route: Route,
    options: Options,
    deadline: Deadline,
    *,
    which: str,
    folder: str,
) -> Report:
    """Compare a verdict with those of other pairs, and add the result to its report."""
    chosen, _ = choose_pair(options.encoding, options.solver, options.prune, route=route)
    others = partners(chosen, which, route)
    seconds = None
    if options.timeout is not None:
        try:
            remaining = deadline.remaining() or 0.0
        except TimeoutError:
            remaining = 0.0
        seconds = max(0.01, _SHARE * remaining / (len(others) + 1))
    found = cross_check(verdict.history, route, chosen, others, seconds=seconds, seed=options.seed)
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
        path = os.path.join(folder, file)
        try:
            saved[name] = _save(history, path)
        except (IsolangError, OSError) as error:
            warnings.append(f"{path}: cannot write the file ({error})")
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
