"""Chooses the level of each transaction in a run that mixes several levels."""

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

_RECORDED_LEVELS: Final[Mapping[str, str]] = {
    "sser": "ser", "strong-si": "si", "locking-repeatable-read": "pl-2",
}  # fmt: skip
"""The weaker level recorded in the history in place of a level that no mix supports.

No specification for mixes contains the level, but some contain the weaker one.
"""

_LOCKING_LEVELS: Final = frozenset({"pl-2", "rc", "pl-2-99", "ser"})
_SNAPSHOT_LEVELS: Final = frozenset({"pl-2", "rc", "si", "ser"})
_EXPECTED: Final = "expected LEVEL:SHARE,LEVEL:SHARE"


class TransactionLevel(Struct, frozen=True):
    """The level at which a transaction runs.

    Attributes:
        recorded: the name of the level in the history; ``None`` if all transactions of the run have
            the same level, in which case the history records no levels.
    """

    level: str
    recorded: str | None = None


class LevelMix(Struct, frozen=True, kw_only=True):
    """The level of a run, or a mix of levels with the share of transactions at each level.

    Attributes:
        level: the level of the run. For a mix, this is an artificial level: its name combines the
            names of the levels, and its claim is the specification that judges the mix.
    """

    level: Level
    parts: tuple[Level, ...]
    cumulative_shares: tuple[float, ...]

    def draw(self, random: Random) -> TransactionLevel:
        """Return the level of the next transaction, drawn at random if the run mixes levels."""
        if len(self.parts) == 1:
            return TransactionLevel(self.level.name)
        place = bisect(self.cumulative_shares, random.random() * self.cumulative_shares[-1])
        chosen = self.parts[min(place, len(self.parts) - 1)]
        return TransactionLevel(chosen.name, recorded_name(chosen))

    def selecting_statement(self, name: str | None) -> str:
        """Return the statement that selects the level with this name in the history."""
        found = [
            part.says for part in self.parts if len(self.parts) == 1 or recorded_name(part) == name
        ]
        return ", or ".join(found)


def recorded_name(level: Level) -> str:
    """Return a level's name in the history of a mix."""
    return _RECORDED_LEVELS.get(level.claims, level.claims)


def level_mix_of(settings: Settings, target: Target) -> LevelMix:
    """Return the level or the mix of levels chosen by the user for a run.

    Raises:
        TargetError: the level does not exist, or the target cannot mix levels in one run.
    """
    if not settings.level_mix:
        level = level_named(target, settings.level)
        return LevelMix(level=level, parts=(level,), cumulative_shares=(1.0,))
    if settings.level:
        raise TargetError("--level and --level-mix cannot be combined")
    shares = _shares(settings.level_mix, target)
    judged_by = getattr(target, "mixes", None)
    if judged_by is None:
        raise TargetError(
            f"{target.name}: a transaction cannot choose its own level; choose one for all "
            "with --level"
        )
    parts = tuple(shares)
    name = ",".join(f"{part.name}:{share:g}" for part, share in shares.items())
    claims = settings.claims or judged_by or _spec_for_mix(target, parts)
    level = Level(name=name, claims=claims, says="each transaction at its own level")
    return LevelMix(level=level, parts=parts, cumulative_shares=tuple(accumulate(shares.values())))


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
            raise TargetError(f"--level-mix: {level.name} may be named only once (got {text!r})")
        found[level] = number
    if len(found) < 2:
        raise TargetError(f"--level-mix: {_EXPECTED} (got {text!r}); --level names one")
    return found


def _spec_for_mix(target: Target, parts: tuple[Level, ...]) -> str:
    """Return the name of the library specification for judging a mix of these levels."""
    names = {recorded_name(part) for part in parts}
    if names <= _LOCKING_LEVELS:
        return "mixed"
    if names <= _SNAPSHOT_LEVELS:
        return "mixed-levels"
    listed = ", ".join(f"{part.name} ({recorded_name(part)})" for part in parts)
    raise TargetError(
        f"{target.name}: no level of the library applies to a mix of these levels (got "
        f"{listed}); name a specification with --claims SPEC"
    )
