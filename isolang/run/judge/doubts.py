"""Finds doubts: reasons to trust the verdict on a run less than it seems to deserve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from isolang.run.play.phases import MIN_COMMITS

if TYPE_CHECKING:
    from isolang.run.play.state import Run
    from isolang.verdict import Verdict

_MAX_LISTED: Final = 3  # the maximum number of hung calls or bad responses in a doubt


class Doubt(Struct, frozen=True, kw_only=True):
    """A reason to trust a verdict less.

    Attributes:
        grave: whether the doubt makes a valid verdict meaningless, in which case the exit code is
            3.
    """

    text: str
    grave: bool = True


def doubts_of(run: Run) -> tuple[Doubt, ...]:
    """Return the doubts about a verdict that arise from the course of the run."""
    state = run.state
    found: list[Doubt] = []

    def doubt(text: str, *, grave: bool = True) -> None:
        found.append(Doubt(text=text, grave=grave))

    if state.problem:
        doubt(f"the run ended early: {state.problem}")
    if state.unreachable():
        gone = state.refused > max(state.answered, state.began)
        since = max(state.answered - state.began, 0.0) if gone else state.silent_from
        refusal = f" ({state.refusal})" if state.refusal else ""
        how = "the server could not be reached" if state.refused else "the server answered nothing"
        how_long = "until the end" if gone else f"for {state.silent:.1f} s"
        doubt(f"{how}, starting at {since:.1f} s, {how_long}{refusal}")
    if state.hung:
        kinds = list(dict.fromkeys(state.hung))
        more = f", and {len(kinds) - _MAX_LISTED} more" if len(kinds) > _MAX_LISTED else ""
        doubt(
            f"{len(state.hung)} calls were still running at the end of the run, and were cut "
            f"off: {'; '.join(kinds[:_MAX_LISTED])}{more}"
        )
    if state.bad_responses:
        kinds = [what for what, _ in state.bad_responses.most_common(_MAX_LISTED)]
        count = sum(state.bad_responses.values())
        what = (
            f"{count:,} transactions received values that cannot be recorded, so their "
            "outcome is unknown"
        )
        doubt(f"{what}: {'; '.join(kinds)}")
    if state.faults and not any(state.faults.values()):
        doubt(
            f"no fault was injected within {run.seconds:.1f} s ({', '.join(state.faults)}); "
            "run longer with --seconds"
        )
    idle = [
        name + (f" ({state.played[name]} committed)" if state.played[name] else "")
        for name in run.planned
        if state.played[name] < MIN_COMMITS
    ]
    if idle:
        doubt(
            f"workloads that were not played within {run.seconds:.1f} s: {', '.join(idle)}; "
            "run longer with --seconds"
        )
    if state.unplayed_scripts:
        doubt(
            f"no time was left for the scripts {', '.join(state.unplayed_scripts)}; "
            "run longer with --seconds",
            grave=False,
        )
    if run.leftover:
        hint = (
            f"isocheck run {run.settings.target.partition('@')[2] or run.settings.target} --clean"
        )
        doubt(
            f"the run may have left tables behind ({run.leftover}); {hint} removes them",
            grave=False,
        )
    for note in run.notes:
        doubt(note, grave=False)
    beyond = claims_doubt(run)
    if beyond:
        doubt(beyond, grave=False)
    return tuple(found)


def claims_doubt(run: Run) -> str:
    """Return a doubt if ``--claims`` exceeds the level's promise; otherwise an empty string."""
    from isolang.language.hierarchy import IMPLIES, implied_by

    claims, level = run.claims, run.level
    if claims == level.claims or claims not in IMPLIES or level.claims not in IMPLIES:
        return ""
    if claims in implied_by(level.claims):
        return ""
    return (
        f"--claims {claims} is stronger than what {level.name} promises ({level.claims}), "
        "so a violation may not be the database's fault"
    )


def vacuity_doubt(verdict: Verdict) -> Doubt | None:
    """Return a doubt if the verdict is vacuous: the history could not have violated the level."""
    from isolang.comparison.vacuity import vacuity_reasons

    if verdict.outcome != "valid":
        return None
    why = vacuity_reasons(verdict.history, verdict.spec)
    if not why:
        return None
    committed = verdict.history.counts()["committed"]
    return Doubt(
        text=f"too little happened: {committed:,} transactions committed, and no choice of sources "
        f"and orders violates {verdict.spec.name} ({why})"
    )
