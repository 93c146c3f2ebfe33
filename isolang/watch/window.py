"""The open window of a stream: what is not cut away yet, and how it is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isolang.api import check
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.native import check_natively
from isolang.certify.proofs import Witness
from isolang.history.clock_error import with_clock_error
from isolang.history.history import History
from isolang.history.transaction import Transaction
from isolang.language.classify.event_graph import Plan
from isolang.verdict import Valid, Verdict
from isolang.watch.state import State
from isolang.watch.stream import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A transaction of the window.

    Attributes:
        number: its number in the stream, from 1; what is in flight keeps the one it will have.
        given: as windows have it.
        place: where it stands in the log.
        in_flight: whether its outcome is still to come: so far it may have taken effect.
    """

    number: int
    given: Transaction
    place: Place
    in_flight: bool


def history_of(window: Sequence[Watched], state: State, *, clock_error: int = 0) -> History:
    """A window as a history that begins with what the last cut left; its order is the window's."""
    given = [member.given for member in window]
    history = History.from_transactions(given, initial=state.initial(given), name="the window")
    return with_clock_error(history, clock_error) if clock_error else history


def judge(
    history: History, plans: Sequence[Plan], first: int = 0, *, timeout: float | None = None
) -> tuple[Verdict, int]:
    """Judge a window by the first plan that it satisfies, the level itself last.

    Args:
        history: of the window.
        plans: of :func:`isolang.watch.levels.stricter`.
        first: the plan to begin with; the one that the last window satisfied.
        timeout: seconds for each.

    Returns:
        The verdict, which is *valid* by the witness of one of the plans only if that witness also
        satisfies the level, and the number of that plan.
    """
    level = plans[-1]
    for number in range(first, len(plans) - 1):
        said = check(history, plans[number], certify=False, simplest=False, timeout=timeout)
        if isinstance(said, Valid) and satisfies(history, level, said.witness):
            return said, number
    # The level's own verdict must be certified: a refutation is shown, a witness is cut along.
    return check(history, level, timeout=timeout), len(plans) - 1


def satisfies(history: History, plan: Plan, witness: object) -> bool:
    """Whether the independent checker accepts a witness of a level."""
    if not isinstance(witness, Witness):
        return False
    try:
        check_natively(history, plan.spec, witness)
    except (CertificateRejected, NotCertifiedError):
        return False
    return True
