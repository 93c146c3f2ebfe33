"""Rules on a case, from what was recorded, predicted and played."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

from isolang.explain.harm import Harm, harm_place

if TYPE_CHECKING:
    from isolang.court.stage import PlayedCalls
    from isolang.verdict import Invalid

Standing: TypeAlias = Literal["proved", "not convicted", "unknown", "acquitted"]


class PlayedViolation(Struct, frozen=True, kw_only=True, eq=False):
    """A played schedule that violates the level.

    Attributes:
        harm: the harm of the violation.
        option: the option for reading its history, without which it is not certain; empty if it is.
    """

    played: PlayedCalls
    verdict: Invalid
    harm: Harm
    option: str = ""


class Evidence(Struct, kw_only=True, eq=False):
    """The evidence of a case at one level.

    Attributes:
        recorded: how many orders were recorded.
        predicted: how many schedules were predicted.
        played: how many schedules were played.
        possible: how many schedules there are in which one call is held while others run.
        violations: the played schedules that violate the level.
        unseen: what was not seen and may matter.
        undecided: why verdicts are unknown for other reasons, or schedules were not played.
        strange: the harm of played schedules that no order of the calls explains, although their
            histories satisfy the level.
        transactions: for each call, the most transactions that it ran in a recorded order, with
            those that it rolled back.
        looking_away: statements that depend on the locks of others, or on sequences they have set.
        writes: whether a call wrote anything in a recorded order.
        level: the weakest level of the recorded transactions.
        at_once: statements that may write, and that are sent together with their COMMIT.
        together: statements that are sent together with an earlier one that sees or changes rows.
        deadlocks: whether a call met a deadlock.
        failures: the harm of schedules in which a call failed as in no order.
        refused: the calls that the database rolled back because of another one, and that then
            failed.
        robust: the conditions under which the programs are robust; empty if that is not known.
        not_robust: why the programs are not known to be robust.
    """

    recorded: int = 0
    predicted: int = 0
    played: int = 0
    possible: int = 0
    violations: list[PlayedViolation] = []
    unseen: list[str] = []
    undecided: list[str] = []
    strange: list[Harm] = []
    transactions: list[int] = []
    looking_away: list[str] = []
    at_once: list[str] = []
    together: list[str] = []
    writes: bool = True
    level: str = ""
    deadlocks: bool = False
    failures: list[Harm] = []
    refused: set[str] = set()
    robust: Sequence[str] = ()
    not_robust: str = ""


class Ruling(Struct, frozen=True, kw_only=True, eq=False):
    """The ruling on a case at one level.

    Attributes:
        ground: why.
        notes: what the ruling rests on, each with a name such as ``only if``.
        conviction: the worst violation; ``None`` if nothing was violated.
    """

    standing: Standing
    ground: str
    notes: tuple[tuple[str, str], ...] = ()
    conviction: PlayedViolation | None = None


def rule(evidence: Evidence) -> Ruling:
    """Return the ruling.

    SOUND BECAUSE a violation that does no harm with this data prevents every acquittal, and so does
    a call that fails as in no order.
    """
    ranked = sorted(evidence.violations, key=lambda violation: harm_place(violation.harm))
    worst = ranked[0] if ranked else None
    if worst is not None and worst.harm.kind == "harmful":
        return Ruling(standing="proved", ground=worst.harm.headline(), conviction=worst)
    if evidence.strange:
        ground = "no violation was seen, but no order of the calls explains what a schedule did"
        why = evidence.strange[0].headline()
        return Ruling(standing="unknown", ground=ground, notes=(("because", why),))
    if worst is not None:
        ground = f"{worst.verdict.violation.anomaly}, {worst.harm.headline()}"
        return Ruling(standing="not convicted", ground=ground, conviction=worst)
    if evidence.unseen:
        unseen = tuple(("not seen", why) for why in dict.fromkeys(evidence.unseen))
        ground = "something that may matter was not seen"
        return Ruling(standing="unknown", ground=ground, notes=unseen)
    if evidence.failures:
        return Ruling(standing="not convicted", ground=evidence.failures[0].headline())
    if not evidence.writes:
        ground = "no call wrote anything, so this state does not show what the calls may do"
        return Ruling(standing="not convicted", ground=ground)
    refused = tuple(
        ("rolled back", f"{name}, by the database because of another call, and it did not retry")
        for name in sorted(evidence.refused)
    )
    several = any(count > 1 for count in evidence.transactions)
    if evidence.robust and not several:
        conditions = tuple(("only if", condition) for condition in evidence.robust)
        conditions += tuple(
            ("not decided", f"what this finds while others hold locks or set sequences: {text}")
            for text in dict.fromkeys(evidence.looking_away)
        )
        ground = "the programs are robust"
        return Ruling(standing="acquitted", ground=ground, notes=(*conditions, *refused))
    missing = [*why_incomplete(evidence)]
    if not missing:
        ground = "the search for these two calls, their arguments and this state was complete"
        return Ruling(standing="acquitted", ground=ground, notes=(*COMPLETE, *refused))
    if evidence.robust:
        missing.insert(0, "the programs are robust, which says nothing about several transactions")
    elif evidence.not_robust:
        missing.insert(0, f"the programs are not known to be robust: {evidence.not_robust}")
    ground = f"{evidence.played} of {evidence.possible} schedules were played, and none did harm"
    if not evidence.possible:
        ground = "no call can be held, so no schedule was played"
    return Ruling(
        standing="not convicted",
        ground=ground,
        notes=(*(("because", why) for why in missing), *refused),
    )


COMPLETE: Final = (
    ("only if", "a call that finds the same rows does the same: it depends on no clock, no random "
     "number and nothing outside the database"),
    ("only if", "nobody else changes these rows at the same time"),
    ("not covered", "other arguments, other data, and branches that the calls did not take"),
)  # fmt: skip
"""What a complete search rests on (docs/court.md)."""


def why_incomplete(evidence: Evidence) -> Iterator[str]:
    """Yield the reasons why the search for two calls was not complete."""
    if len(evidence.transactions) != 2:
        yield f"there are {len(evidence.transactions)} calls, and it is complete only for two"
    if any(count > 1 for count in evidence.transactions):
        yield "a call runs several transactions"
    if evidence.played < evidence.possible:
        yield f"{evidence.played} of {evidence.possible} schedules were played in the time"
    yield from dict.fromkeys(evidence.undecided)
    if evidence.looking_away:
        yield f"a statement depends on the locks of others or sequences: {evidence.looking_away[0]}"
    if evidence.at_once:
        yield f"a call cannot be held between this and its COMMIT: {evidence.at_once[0]}"
    if evidence.together:
        yield f"a call cannot be held before this, sent with others: {evidence.together[0]}"
    if evidence.deadlocks:
        yield "a call met a deadlock"


def exit_code_of(rulings: Sequence[Ruling]) -> int:
    """Return the exit code of some rulings: 1 proved, 0 all acquitted, otherwise 3."""
    standings = {ruling.standing for ruling in rulings}
    return 1 if "proved" in standings else 0 if standings == {"acquitted"} else 3
