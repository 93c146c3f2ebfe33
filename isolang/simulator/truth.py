"""What is known of a generated history by construction: levels it satisfies, levels it violates."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from isolang.history.history import History
from isolang.language.hierarchy import implied_by
from isolang.simulator.anomalies import BUGS
from isolang.simulator.rules import RULES

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
        bug: its name in :data:`isolang.simulator.BUGS`.
        transactions: the numbers of its transactions, in the order of the bug's description.
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
        the simulation, satisfy it (:mod:`isolang.simulator.anomalies`); it is violated as soon as
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

    def named_as_in(self, written: History, read: History) -> Truth:
        """The same with the names that planted transactions have where the history is read again.

        A format may give transactions numbers of its own. They are found by what they did to their
        keys, which nobody else uses. Those that the format leaves out keep their names.

        Args:
            written: the history that this is the truth of.
            read: what a reader makes of the file that it was written to.
        """
        name_of = {written.name_of(txn): txn for txn in range(written.t0)}
        planted = []
        for plant in self.planted:
            keys = {str(key) for key in plant.keys}
            found = {_done(read, txn, keys): txn for txn in range(read.t0)}
            names = (found.get(_done(written, name_of[name], keys)) for name in plant.transactions)
            named = tuple(
                before if txn is None else read.name_of(txn)
                for before, txn in zip(plant.transactions, names, strict=True)
            )
            planted.append(replace(plant, transactions=named))
        return replace(self, planted=tuple(planted))

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


def _done(history: History, txn: int, keys: Collection[str]) -> tuple[str, ...]:
    """What a transaction did to some keys; the initial state is one under each of its names."""
    texts = []
    for op in history.operations_of(txn):
        if history.key(int(history.columns.op_key[op])) in keys:
            text = history.describe_op(op)
            texts.append(re.sub(r", (nil|0|\[\])\)", ", nil)", text))
    return tuple(texts)


def _ordered(levels: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(levels, key=LEVELS.index))


class SimulatedHistory(History, frozen=True, kw_only=True):
    """A generated history.

    Attributes:
        truth: what is known of it by construction.
    """

    truth: Truth
