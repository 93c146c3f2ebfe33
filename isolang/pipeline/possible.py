"""Judges a history with the facts that certainly decided answers, and with those that may have.

A violation counts if the certain facts alone have it. A history is valid if all facts together
satisfy the level (:mod:`isolang.history.possible`). Where the two differ, the verdict is unknown.
It is also unknown instead of valid if the observer of the application did not see everything
(:mod:`isolang.history.not_seen`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from isolang.history.not_seen import allowing_hint, unseen_reason
from isolang.limits import Deadline
from isolang.options import Options
from isolang.pipeline import superseded
from isolang.verdict import Invalid, Unknown, Valid, Verdict, unknown_instead

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.classify.route import Route

LOST_FACTS: Final = (
    "the history was changed after it was read, and lacks the facts that only may have decided "
    "answers"
)
_MOST_NAMED = 3  # the maximum number of statements named in a reason


def judge(
    history: History,
    route: Route,
    deadline: Deadline,
    options: Options,
    progress: Callable[[str], object] = lambda phase: None,
    *,
    simplest: bool = True,
) -> Verdict:
    """Decide a history, or answer *unknown* if the verdict depends on what is not known.

    These are facts that only may have decided an answer, and operations that were not seen.

    Raises:
        HistoryError: as for :func:`isolang.pipeline.decision.decide`.
        SolverError: as for ``decide``.
    """
    verdict = _judge_facts(history, route, deadline, options, progress, simplest=simplest)
    if not isinstance(verdict, Valid) or not (unseen := history.harmful_unseen()):
        return verdict
    reason = f"{unseen_reason(unseen)}; {allowing_hint(unseen)}"
    return unknown_instead(verdict, reason, "unseen", history=history)


def _judge_facts(
    history: History,
    route: Route,
    deadline: Deadline,
    options: Options,
    progress: Callable[[str], object],
    *,
    simplest: bool,
) -> Verdict:
    verdict = superseded.judge(history, route, deadline, options, progress, simplest=simplest)
    if not isinstance(verdict, Valid):
        return verdict
    whole = history.with_all_facts()
    if whole is None:
        if not history.lacks_facts:
            return verdict
        reason = f"possible facts: {LOST_FACTS}"
        return unknown_instead(verdict, reason, "possible facts", history=history)
    progress("with all facts")
    other = superseded.judge(whole, route, deadline, options, progress, simplest=simplest)
    if isinstance(other, Valid):
        return replace(other, notes=(*other.notes, _counted(history)))
    return other if isinstance(other, Unknown) else _unknown(history, other)


def _counted(history: History) -> str:
    number = history.possible_facts
    facts = "1 fact that only may have decided an answer" if number == 1 else (
        f"{number:,} facts that only may have decided answers")  # fmt: skip
    return f"the history satisfies the level with and without {facts}; the proof has all facts"


def _unknown(history: History, other: Invalid) -> Unknown:
    """Return the verdict for a history that is invalid only with its possible facts."""
    named = possible_facts_of(other)
    more = f"; and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    reason = (
        f"possible facts: what certainly decided the answers satisfies {other.spec.name}, but with "
        f"all that may have decided them, the history violates it ({other.violation.anomaly}). It "
        f"depends on {'; '.join(named[:_MOST_NAMED]) or 'facts that are not certain'}{more}"
    )
    return unknown_instead(other, reason, "possible facts", history=history)


def possible_facts_of(verdict: Invalid) -> list[str]:
    """Return the possible facts in a violation, each with its transaction and its caller."""
    history = verdict.history
    named: dict[str, None] = {}
    for txn in verdict.violation.transactions:
        for view in txn.operations:
            if history.is_possible_fact(view.number):
                caller = f", {view.caller}" if view.caller else ""
                named[f"{txn.name}: {view.text}{caller}"] = None
    return list(named)
