"""The smallest part of a history that still shows the violation."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from isolang.certify.proofs import Exhaustion
from isolang.errors import IsolangError
from isolang.explain.part import Part, Sources, operations_of, part_of, whole_part
from isolang.explain.smaller import shrink
from isolang.limits import Deadline
from isolang.options import Options
from isolang.pipeline import decide
from isolang.problem import build_problem
from isolang.verdict import Invalid

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.classify.route import Route


def minimise(verdict: Invalid, route: Route, *, seconds: float = 10.0, seed: int = 0) -> History:
    """Find a small part of a history with the same anomaly.

    Args:
        verdict: of the whole history.
        route: of the spec that it violates.
        seconds: how long to look for a smaller one.
        seed: as in ``check``.

    Returns:
        A history from which no transaction and no operation can be left out without losing the
        anomaly, or a source that one of its reads may have; unless the time ended the search
        before. Labels and places are those of the whole.
    """
    end = time.perf_counter() + seconds
    history, refutation = verdict.history, verdict.refutation

    sources = Sources(build_problem(history))

    def same(part: Part) -> bool:
        left = max(0.1, end - time.perf_counter())
        options = Options(certify=False, seed=seed)
        try:
            found = decide(part.history, route, Deadline(left), options)
        except IsolangError:
            return False  # without its times, say, a part cannot be judged
        return (
            isinstance(found, Invalid)
            and found.violation.anomaly == verdict.violation.anomaly
            and sources.keeps_candidates(part)
        )

    if isinstance(refutation, Exhaustion):
        txns = refutation.transactions
        part = part_of(history, operations_of(history, txns), txns)
    else:
        part = sources.relevant_part(refutation.steps)
    if not same(part):
        part = whole_part(history)
    part = shrink(part, same, by_transaction=True, until=end)
    return shrink(part, same, by_transaction=False, until=end).history
