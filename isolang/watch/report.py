"""The records that a watch returns: one for each round, and the report at its end."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from isolang.verdict import Verdict

Outcome: TypeAlias = Literal["valid", "invalid", "suspected", "unknown"]


class Round(Struct, frozen=True, kw_only=True):
    """The result of one round.

    Attributes:
        number: the number of the round, from 1.
        seen: transactions seen so far, except those in flight.
        given_up: indeterminate transactions that the watch no longer waits for.
        outcome: ``valid`` so far, or what the watch found.
        holding: what keeps the window long, in words.
        note: what the watch waits for, in words: of a suspected violation, before its verdict.
    """

    number: int
    seen: int
    judged: int
    cut: int
    kept: int
    parts: int
    put_back: int
    exchanged: int
    keys: int
    given_up: int = 0
    outcome: Outcome
    holding: str = ""
    violations: int = 0
    note: str = ""


class WatchReport(Struct, frozen=True, kw_only=True):
    """The result of a watch.

    Attributes:
        outcome: ``suspected`` if the transactions seen violate the level, but later transactions,
            or values that the watch forgot, may explain the violation.
        note: what the outcome rests on, in words; empty if it rests on nothing else.
        verdict: the verdict on a part of an invalid stream, or on the last window of an undecided
            one.
        places: where the transactions of that verdict are in the log, as ``file:line``.
        assumed: keys and values; the verdict assumes that no other transaction writes them.
        given_up: how many indeterminate transactions the watch stopped waiting for.
        given_up_at: the places of the first of them, as ``file:line``.
        violations: how many violations the watch found; ``verdict`` is about the first.
    """

    outcome: Outcome
    note: str
    seen: int
    parts: int
    verdict: Verdict | None = None
    places: tuple[str, ...] = ()
    assumed: tuple[tuple[object, object], ...] = ()
    given_up: int = 0
    given_up_at: tuple[str, ...] = ()
    violations: int = 0
