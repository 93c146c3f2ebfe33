"""Chooses the level of each transaction in a run at several levels."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping
from itertools import accumulate
from random import Random
from typing import Final

from msgspec import Struct

from isolang.run.settings import Settings
from isolang.run.target import Level, Target, TargetError
from isolang.run.targets import level_named

_RECORDED: Final[Mapping[str, str]] = {
    "sser": "ser", "strong-si": "si", "locking-repeatable-read": "pl-2-99",
}  # fmt: skip
"""The recorded level of a transaction in a mix, for levels that the specifications of mixes do not
know: a level that they know and that the transaction's level implies."""

_OF_LOCKS: Final = frozenset({"pl-2", "rc", "pl-2-99", "ser"})
_OF_SNAPSHOTS: Final = frozenset({"pl-2", "rc", "si", "ser"})
_EXPECTED: Final = "expected LEVEL:SHARE,LEVEL:SHARE"


class TransactionLevel(Struct, frozen=True):
    """The level of a transaction.

    Attributes:
        level: the target's name of the level.
        recorded: the level's name in the history; ``None`` if all transactions run at one level.
    """

    level: str
    recorded: str | None = None


class Mix(Struct, frozen=True, kw_only=True):
    """The level of a run, or several levels, each with its share of the transactions.

    Attributes:
        level: the level of the run; for several levels, a level with their joint name and with the
            specification that judges such a mix.
        parts: the levels at which transactions run.
        sums: the cumulative shares: for each level, the sum of its share and all earlier shares.
    """

    level: Level
    parts: tuple[Level, ...]
    sums: tuple[float, ...]

    def draw(self, random: Random) -> TransactionLevel:
        """Return the level of the next transaction; a single level uses no random number."""
        if len(self.parts) == 1:
            return TransactionLevel(self.level.name)
        place = bisect(self.sums, random.random() * self.sums[-1])
        chosen = self.parts[min(place, len(self.parts) - 1)]
        return TransactionLevel(chosen.name, recorded(chosen))

    def how_set(self, name: str | None) -> str:
        """Return how the adapter selects the level that has this name in the history."""
        found = [part.says for part in self.parts if len(self.parts) == 1 or recorded(part) == name]
        return ", or ".join(found)


def recorded(level: Level) -> str:
    """Return the name that a level has in the history of a mix."""
    return _RECORDED.get(level.claims, level.claims)


def mix_of(settings: Settings, target: Target) -> Mix:
    """Return the requested level of a run, or its mix of levels.

    Raises:
        TargetError: the level does not exist, or the target cannot mix levels in one run.
    """
    if not settings.level_mix:
        level = level_named(target, settings.level)
        return Mix(level=level, parts=(level,), sums=(1.0,))
    if settings.level:
        raise TargetError("--level and --level-mix exclude each other")
    shares = _shares(settings.level_mix, target)
    judged_by = getattr(target, "mixes", None)
    if judged_by is None:
        raise TargetError(
            f"{target.name}: a transaction cannot choose its level; --level names one"
        )
    parts = tuple(shares)
    name = ",".join(f"{part.name}:{share:g}" for part, share in shares.items())
    claims = settings.claims or judged_by or _judged_by(target, parts)
    level = Level(name=name, claims=claims, says="each transaction at its own")
    return Mix(level=level, parts=parts, sums=tuple(accumulate(shares.values())))


def _shares(text: str, target: Target) -> dict[Level, float]:
    found: dict[Level, float] = {}
    for part in text.split(","):
        name, _, share = part.rpartition(":")
        try:
            number = float(share)
        except ValueError:
            number = 0.0
        if not name or not 0 < number < float("inf"):
            raise TargetError(f"--level-mix: {_EXPECTED} (got {part!r})")
        level = level_named(target, name.strip())
        if level in found:
            raise TargetError(f"--level-mix: {level.name} is there twice (got {text!r})")
        found[level] = number
    if len(found) < 2:
        raise TargetError(f"--level-mix: {_EXPECTED} (got {text!r}); --level names one")
    return found


def _judged_by(target: Target, parts: tuple[Level, ...]) -> str:
    """Return the specification of the library that judges a mix of these levels.

    Raises:
        TargetError: no specification of the library does.
    """
    names = {recorded(part) for part in parts}
    if names <= _OF_LOCKS:
        return "mixed"
    if names <= _OF_SNAPSHOTS:
        return "mixed-levels"
    listed = ", ".join(f"{part.name} ({recorded(part)})" for part in parts)
    raise TargetError(
        f"{target.name}: no level of the library judges a mix of these (got {listed}); "
        "--claims SPEC names a specification that does"
    )
