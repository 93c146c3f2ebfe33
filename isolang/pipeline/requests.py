"""Says what a valid verdict about requests does not count, or why it is unknown.

A history read with ``--unit request`` has carried reads (:mod:`isolang.history.carried`). Some
further reads are carried only to find out whether a violation would follow from them: a note says
so, and the verdict stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from isolang.history.carried import with_noted_reads
from isolang.history.carrying import Kind
from isolang.history.session_tables import SESSION_TABLES
from isolang.limits import Deadline
from isolang.options import Options
from isolang.pipeline.decision import decide
from isolang.verdict import Invalid, Unknown, Valid, Verdict, unknown_instead

if TYPE_CHECKING:
    from isolang.language.classify.route import Route

_SHOWN: Final = 3  # the maximum number of units to name
_WHY: Final[dict[Kind, str]] = {
    "computed": "only through an UPDATE that computes from the row itself (n = n + 1)",
    "session": f"only through a table of sessions ({', '.join(SESSION_TABLES)})",
    "other": "only because the request wrote other rows than it had read; --carry all counts it",
}


def about_requests(
    verdict: Valid,
    route: Route,
    deadline: Deadline,
    options: Options,
    progress: Callable[[str], object],
) -> Verdict:
    """Return a valid verdict with notes about what it does not count, or *unknown*.

    It is unknown if no transaction names its request, or if the order of a request's transactions
    is not known.
    """
    carrying = verdict.history.carrying
    assert carrying is not None
    if not carrying.units:
        return unknown_instead(
            verdict,
            "units: no transaction names its request, so no request was judged; hint: name it with "
            ":unit in the history, isolation.call, or a comment such as /*unit='7'*/ or "
            "/*traceparent='00-…'*/ (docs/observe.md)",
            "units",
        )
    if carrying.unclear:
        names = ", ".join(carrying.unclear[:_SHOWN])
        more = len(carrying.unclear) - _SHOWN
        these = f"{names} and {more} more" if more > 0 else names
        return unknown_instead(
            verdict,
            "units: the transactions of a request overlap in time, or their order is not known: "
            f"{these}; what they read before they wrote is not known. Without them the history "
            f"satisfies {verdict.spec.name}",
            "units",
        )
    notes = list(verdict.notes)
    if without := carrying.without_unit:
        plural = "" if without == 1 else "s"
        notes.append(f"{without:,} committed transaction{plural} of no request carried no reads")
    if kinds := tuple(dict.fromkeys(read.kind for read in carrying.noted)):
        progress("noted reads")
        notes += _notes(verdict, kinds, route, deadline, options)
    return replace(verdict, notes=tuple(notes), seconds=deadline.seconds())


def _notes(
    verdict: Valid, kinds: tuple[Kind, ...], route: Route, deadline: Deadline, options: Options
) -> list[str]:
    """Return a note for each kind of noted reads with which the history is invalid."""
    quick = replace(options, certify=False)
    every = decide(with_noted_reads(verdict.history, kinds), route, deadline, quick)
    if isinstance(every, Valid):
        return []
    if isinstance(every, Unknown):
        return [f"what further reads of requests would violate is not known: {every.reason}"]
    if len(kinds) == 1:
        return [_note(every, kinds)]
    each = [
        (kind, decide(with_noted_reads(verdict.history, (kind,)), route, deadline, quick))
        for kind in kinds
    ]
    invalid = [_note(other, (kind,)) for kind, other in each if isinstance(other, Invalid)]
    return invalid or [_note(every, kinds)]


def _note(verdict: Invalid, kinds: tuple[Kind, ...]) -> str:
    """Return the note about a violation that is not counted."""
    history = verdict.history
    carried = {
        transaction.name: source
        for transaction in verdict.violation.transactions
        for operation in transaction.operations
        if (source := history.carried_from(operation.number)[0])
    }
    who = ", ".join(f"{name} after {source}" for name, source in carried.items())
    these = f" ({who})" if who else ""
    why = ", or ".join(_WHY[kind] for kind in kinds)
    return f"not counted: {verdict.violation.anomaly} of requests{these}, {why}"
