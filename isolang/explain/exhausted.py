"""Explains an unsat core: transactions, and checks that no choice for these satisfies."""

from __future__ import annotations

from collections.abc import Sequence

from isolang.certify.facts import Facts
from isolang.explain import names
from isolang.explain.operations import failed_comparisons
from isolang.explain.part import operations_of, part_of
from isolang.explain.transactions import show_transactions
from isolang.explain.violation import ArgumentView, PlainReason, Violation
from isolang.explain.words import Phrases
from isolang.language.meaning.core import Spec
from isolang.problem import Problem

NAME = "no assignment"
_LISTED = 12


def explain_exhausted(
    problem: Problem, transactions: Sequence[int], checks: Sequence[str], spec: Spec
) -> Violation:
    """Return a violation that names the transactions and checks of an unsat core."""
    history = problem.history
    part = part_of(history, operations_of(history, transactions), transactions)
    words = Phrases(part.history, Facts(part.history))
    inner = range(part.history.t0)
    shown = list(inner)[:_LISTED]
    matters = {op for t in shown for op in part.history.operations_of(t)}
    chosen = [exists.name for exists in spec.exists]
    who = _listed([history.name_of(t) for t in transactions[:_LISTED]])
    if len(transactions) > _LISTED:
        who += f" and {len(transactions) - _LISTED} more"
    who = who or "T0, which wrote the initial state,"
    of = _listed(chosen) if chosen else "the sources"
    what = _listed([f"`{name}`" for name in checks]) or "the bounds of what exists"
    text = f"No choice of {of} for {who} meets {what}."
    if len(checks) > 1:
        text += " If any one of these checks is left out, such a choice exists."
    views = show_transactions(part, words, shown, matters)
    return Violation(
        anomaly=NAME,
        meaning=names.meaning(NAME),
        check=checks[0] if checks else "",
        transactions=views,
        failed_comparisons=failed_comparisons(history, views),
        argument=ArgumentView(lemmas=(), conclusion=PlainReason(text=text)),
        of_transactions=len(transactions),
    )


def _listed(items: Sequence[str]) -> str:
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"
