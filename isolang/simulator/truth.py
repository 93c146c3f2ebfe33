"""Derives the truth of a generated history: the levels that it satisfies and violates."""

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
"""The levels decided by a truth, strongest first."""


def implied_levels(level: str) -> frozenset[str]:
    """Return the levels in :data:`LEVELS` that a level implies, including the level itself.

    >>> sorted(implied_levels("cc"))
    ['cc', 'pl-1', 'pl-2', 'ra', 'rc']
    """
    return frozenset(LEVELS) & {level, *implied_by(level)}


class Planted(Struct, frozen=True, kw_only=True):
    """A planted anomaly and its location in the history.

    Attributes:
        bug: the name of the bug in :data:`isolang.simulator.BUGS`.
        transactions: the names of the planted transactions, in the order of the bug's description.
        keys: the numbers of the anomaly's keys: x, and y if it uses two keys.
    """

    bug: str
    transactions: tuple[str, ...]
    keys: tuple[int, ...]
    violates: tuple[str, ...]


class Truth(Struct, frozen=True, kw_only=True):
    """The levels that a generated history satisfies and violates by construction, and why.

    Attributes:
        satisfies: the levels that the history satisfies by construction, the strongest level first.
            The history may satisfy a stronger level by chance; such a level is neither in
            ``satisfies`` nor in ``violates``.
        violates: the levels that the history violates because of planted anomalies.
    """

    rule: str
    satisfies: tuple[str, ...]
    violates: tuple[str, ...]
    planted: tuple[Planted, ...] = ()

    @classmethod
    def of(cls, rule: str, planted: Sequence[Planted]) -> Truth:
        """Derive the truth from the rule and the planted anomalies.

        SOUND BECAUSE: a level is satisfied if the rule satisfies it and each anomaly, at its
        instants of the simulation, satisfies it too (:mod:`isolang.simulator.anomalies`). A level
        is violated if at least one anomaly violates it.
        """
        holds = set(implied_levels(RULES[rule].level))
        fails: set[str] = set()
        for plant in planted:
            bug = BUGS[plant.bug]
            holds &= set().union(*(implied_levels(level) for level in bug.strongest))
            fails |= {level for level in LEVELS if implied_levels(level) & set(bug.weakest)}
        return cls(
            rule=rule,
            satisfies=_strongest_first(holds),
            violates=_strongest_first(fails),
            planted=tuple(planted),
        )

    def verdict(self, level: str) -> bool | None:
        """Return whether the history satisfies a level; ``None`` if the truth leaves that open."""
        return True if level in self.satisfies else False if level in self.violates else None

    def sentences(self) -> tuple[str, ...]:
        """Return sentences that state the truth for human readers."""
        sentences = [f"simulated under the rule {self.rule}: satisfies {', '.join(self.satisfies)}"]
        if self.violates:
            sentences.append(f"violates {', '.join(self.violates)}")
        sentences += [
            f"planted: {plant.bug}, in {', '.join(plant.transactions)}, on "
            f"{'key' if len(plant.keys) == 1 else 'keys'} {', '.join(map(str, plant.keys))}"
            for plant in self.planted
        ]
        return tuple(sentences)

    def with_names_of(self, written: History, read: History) -> Truth:
        """Return the truth with the transaction names that result from writing and reading a file.

        A format may number transactions differently. Planted transactions are identified by their
        operations on their keys, which no other transaction uses. Transactions that the format
        cannot express keep their names.
        """
        name_of = {written.name_of(txn): txn for txn in range(written.t0)}
        planted = []
        for plant in self.planted:
            keys = {str(key) for key in plant.keys}
            found = {_operations_text(read, txn, keys): txn for txn in range(read.t0)}
            names = (
                found.get(_operations_text(written, name_of[name], keys))
                for name in plant.transactions
            )
            named = tuple(
                before if txn is None else read.name_of(txn)
                for before, txn in zip(plant.transactions, names, strict=True)
            )
            planted.append(replace(plant, transactions=named))
        return replace(self, planted=tuple(planted))

    def as_json(self) -> dict[str, Any]:
        """Return the truth as the JSON object that is saved next to the history."""
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


def _operations_text(history: History, txn: int, keys: Collection[str]) -> tuple[str, ...]:
    """Return a transaction's operations on these keys as text; nil is the initial state."""
    texts = []
    for op in history.operations_of(txn):
        if history.key(int(history.columns.op_key[op])) in keys:
            text = history.describe_op(op)
            texts.append(re.sub(r", (nil|0|\[\])\)", ", nil)", text))
    return tuple(texts)


def _strongest_first(levels: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(levels, key=LEVELS.index))


class SimulatedHistory(History, frozen=True, kw_only=True):
    """A history from the simulator, with its truth.

    Attributes:
        truth: the levels that the history satisfies and violates by construction.
    """

    truth: Truth
