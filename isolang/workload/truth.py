"""What is known of a generated history by construction: levels it satisfies, levels it violates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from isolang.history.history import History
from isolang.language.hierarchy import implied_by
from isolang.workload.anomalies import BUGS
from isolang.workload.rules import RULES

LEVELS: Final = (
    "sser",
    "strong-si",
    "ser",
    "si",
    "psi",
    "pc",
    "cc",
    "ra",
    "rc",
    "pl-2",
    "pl-1",
)
"""The levels that a truth speaks of, strongest first."""


def implied(level: str) -> frozenset[str]:
    """Give a level and all of these that follow from it.

    >>> sorted(implied("cc"))
    ['cc', 'pl-1', 'pl-2', 'ra', 'rc']
    """
    return frozenset(LEVELS) & {level, *implied_by(level)}


class Planted(Struct, frozen=True, kw_only=True):
    """Where an anomaly stands.

    Attributes:
        bug: its name in :data:`isolang.workload.BUGS`.
        transactions: the labels of its transactions, in the order of the bug's description.
        keys: its keys x and y (those it uses), as numbers.
        violates: the weakest levels that it violates.
    """

    bug: str
    transactions: tuple[str, ...]
    keys: tuple[int, ...]
    violates: tuple[str, ...]


class Truth(Struct, frozen=True, kw_only=True):
    """What is known of a generated history, and why.

    Attributes:
        rule: the rule that the database ran under.
        satisfies: levels that the history satisfies by construction, strongest first. A weaker rule
            than a level's may satisfy the level by chance: it is then in neither tuple.
        violates: levels that it violates, because of what was planted.
        planted: what was planted, and where.
    """

    rule: str
    satisfies: tuple[str, ...]
    violates: tuple[str, ...]
    planted: tuple[Planted, ...] = ()

    @classmethod
    def of(cls, rule: str, planted: Sequence[Planted]) -> Truth:
        """Derive the truth from the rule and what was planted.

        SOUND BECAUSE: a level is satisfied if both the rule and each anomaly, among the instants of
        the simulation, satisfy it (:mod:`isolang.workload.anomalies`); it is violated as soon as
        one anomaly violates it.
        """
        holds = set(implied(RULES[rule].level))
        fails: set[str] = set()
        for plant in planted:
            bug = BUGS[plant.bug]
            holds &= set().union(*(implied(level) for level in bug.strongest))
            fails |= {level for level in LEVELS if implied(level) & set(bug.weakest)}
        return cls(
            rule=rule,
            satisfies=_ordered(holds),
            violates=_ordered(fails),
            planted=tuple(planted),
        )

    def verdict(self, level: str) -> bool | None:
        """Whether a level holds; ``None`` if that is not known by construction."""
        return True if level in self.satisfies else False if level in self.violates else None

    def sentences(self) -> tuple[str, ...]:
        """Say it in words."""
        said = [f"simulated under the rule {self.rule}: satisfies {', '.join(self.satisfies)}"]
        if self.violates:
            said.append(f"violates {', '.join(self.violates)}")
        said += [
            f"planted: {plant.bug}, in {', '.join(plant.transactions)}, on "
            f"{'key' if len(plant.keys) == 1 else 'keys'} {', '.join(map(str, plant.keys))}"
            for plant in self.planted
        ]
        return tuple(said)

    def as_json(self) -> dict[str, Any]:
        """Give it as a JSON object, for a file beside the history."""
        return {
            "rule": self.rule,
            "argument": RULES[self.rule].argument,
            "satisfies": list(self.satisfies),
            "violates": list(self.violates),
            "planted": [
                {
                    "bug": plant.bug,
                    "what": BUGS[plant.bug].title,
                    "transactions": list(plant.transactions),
                    "keys": list(plant.keys),
                    "violates": list(plant.violates),
                }
                for plant in self.planted
            ],
        }


def _ordered(levels: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(levels, key=LEVELS.index))


class SimulatedHistory(History, frozen=True, kw_only=True):
    """A generated history.

    Attributes:
        truth: what is known of it by construction.
    """

    truth: Truth
