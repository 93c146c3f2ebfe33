"""Judges a history with and without the reads that a later read under a lock supersedes.

A history does not show which of two results of a superseded read its program used
(:mod:`isolang.history.superseded`). So if such reads alone make a history invalid, the verdict is
unknown, unless a reading option decides. A violation that remains without them is one for every
program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.errors import HistoryError
from isolang.history.superseded import (
    SupersededRead,
    counted_reads,
    in_words,
    superseded_reads,
    without_superseded_reads,
)
from isolang.limits import Deadline
from isolang.options import Options
from isolang.pipeline.decision import decide
from isolang.verdict import Invalid, Unknown, Valid, Verdict, unknown_instead

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.classify.route import Route


def judge(
    history: History,
    route: Route,
    deadline: Deadline,
    options: Options,
    progress: Callable[[str], object] = lambda phase: None,
    *,
    simplest: bool = True,
) -> Verdict:
    """Decide a history as :func:`decide` does, or answer *unknown* if superseded reads matter.

    The answer is *unknown*, too, if the history was read with ``--unit request`` and its units are
    not known.

    Raises:
        HistoryError: as for ``decide``.
        SolverError: as for ``decide``.
    """
    verdict = _judge_reads(history, route, deadline, options, progress, simplest=simplest)
    if history.carrying is None or not isinstance(verdict, Valid):
        return verdict
    from isolang.pipeline.requests import about_requests

    return about_requests(verdict, route, deadline, options, progress)


def _judge_reads(
    history: History,
    route: Route,
    deadline: Deadline,
    options: Options,
    progress: Callable[[str], object],
    *,
    simplest: bool,
) -> Verdict:
    verdict = decide(history, route, deadline, options, progress, simplest=simplest)
    if not isinstance(verdict, Invalid):
        return verdict
    reads = open_superseded_reads(history)
    if not reads:
        return verdict
    progress("without superseded reads")
    without = without_superseded_reads(history)
    other = decide(without, route, deadline, options, progress, simplest=simplest)
    if isinstance(other, Invalid):
        note = "the verdict does not depend on the superseded reads: it is the same with them"
        return replace(other, notes=(*other.notes, note))
    return _unknown(history, verdict, other, reads)


def open_superseded_reads(history: History) -> list[SupersededRead]:
    """Return the superseded reads of a history if no reading option says what to do with them.

    If the recorded statements are malformed, the result is empty, because every read counts.
    """
    if history.options.get("superseded_reads"):
        return []
    try:
        return superseded_reads(history)
    except HistoryError:
        return []


def _unknown(
    history: History, verdict: Invalid, other: Valid | Unknown, reads: list[SupersededRead]
) -> Unknown:
    """Return the verdict *unknown* for a history that is invalid only with its superseded reads."""
    remaining = "satisfies it" if isinstance(other, Valid) else f"is not decided ({other.reason})"
    reason = (
        f"superseded reads: {in_words(history, reads[0])}, with another result: right if the "
        f"program uses the second. The history violates {verdict.spec.name} "
        f"({verdict.violation.anomaly}), but without {counted_reads(history, reads)} like this one "
        f"it {remaining}; hint: --superseded-reads (superseded_reads in Python) ignore, if every "
        "program uses what it read under the lock, or count"
    )
    return unknown_instead(
        verdict, reason, "superseded reads", history=history, seconds=other.seconds
    )
