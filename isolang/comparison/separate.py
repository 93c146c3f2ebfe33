"""The smallest history that one specification allows and another one forbids.

A SAT solver proposes a history with choices for which the first specification is met. It then looks
for choices for which the second one is met on that history. If there are any, they are excluded in
general form: from then on every proposal violates the second specification for *these* choices,
whatever else it is (counterexample-guided synthesis: A. Solar-Lezama and others, ASPLOS 2006).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from isolang.comparison.choices import Choices, numbered
from isolang.comparison.effort import Effort
from isolang.comparison.normal import Normal
from isolang.comparison.small import Small
from isolang.comparison.symbolic import Scope, Symbolic
from isolang.language.vocabulary import (
    COMPARING_GROUPS,
    COMPARING_TIMES,
    MOMENTS,
    OF_EVENTS,
    OF_STATEMENTS,
    SPLIT,
)

_STATEMENT: Final = "statement"


class Bounds(Struct, frozen=True, kw_only=True):
    """How far to look.

    Attributes:
        transactions: up to this many.
        keys: up to this many.
        reads: of one key by one transaction, at most.
        one_by_one: only what a database can show that does one step after the other, to reads by
            key.
        overlap: also histories of which a transaction of a session begins before the one before
            it ended; else sessions do one thing at a time, in proofs, too.
    """

    transactions: int = 4
    keys: int = 3
    reads: int = 2
    one_by_one: bool = False
    overlap: bool = False

    def kind(self) -> str:
        """Say of what the histories are, whatever their number of transactions."""
        often = "once" if self.reads == 1 else "twice"
        return (
            f"of committed transactions, which read a key at most {often} and write it "
            "at most once; registers and lists, each value written once"
        )


def lacking(levels: Iterable[Normal]) -> tuple[str, ...]:
    """Relations of some levels of which small histories have less than there may be.

    They have times of whole transactions, and statements of one operation.
    """
    names = frozenset[str]().union(*(level.mentioned() for level in levels))
    return tuple(sorted(names & {*MOMENTS, *OF_STATEMENTS, _STATEMENT}))


def said_of_lacking(names: Sequence[str]) -> str:
    """What small histories have of relations that they do not have in full, in a sentence."""
    times = ", ".join(f"`{name}`" for name in names if name != _STATEMENT)
    said = [
        "these histories have times of transactions, none of operations: of "
        f"{times} they have only what follows from `rt`"
    ] * bool(times)
    if _STATEMENT in names:
        said.append(f"each of their statements is one operation, so that `{_STATEMENT}` is empty")
    return "; ".join(said)


def scope_of(levels: Sequence[Normal], bounds: Bounds, transactions: int) -> Scope:
    """The histories in which levels may differ."""
    names = frozenset().union(*(level.mentioned() for level in levels))
    named, classes = (
        frozenset().union(*found) for found in zip(*(x.names() for x in levels), strict=True)
    )

    def of(word: str) -> tuple[str, ...]:
        return tuple(sorted({one.name for one in named if one.word == word}))

    return Scope(
        transactions=transactions,
        keys=bounds.keys,
        reads=bounds.reads,
        sessions="so" in names,
        real_time=bool(names & COMPARING_TIMES),
        groups=bool(names & COMPARING_GROUPS),
        operations=bool(names & OF_EVENTS),
        predicates=not bounds.one_by_one and bool(names & {*SPLIT, "pred"}),
        one_by_one=bounds.one_by_one,
        overlap=bounds.overlap,
        labels=of("label"),
        levels=of("level"),
        key_patterns=tuple(sorted({p for one in classes for p in one.patterns})),
        common_labels="same-label" in names,
    )


class Separator:
    """Looks for histories of one size that a specification forbids.

    Attributes:
        histories: all of them.
    """

    def __init__(self, forbids: Normal, scope: Scope) -> None:
        """Begin with all histories.

        Args:
            forbids: the specification to be violated.
            scope: which histories.

        Raises:
            SpecError: a specification speaks of something that these histories do not have.
        """
        self.histories = Symbolic(scope)
        self._forbids = forbids
        self._choices = Choices(forbids, self.histories)
        self._is_met = self._selector(self._choices)
        self._violated = self.histories.circuit.new()
        self._allowing: list[tuple[Normal, int]] = []

    def find(self, allows: Normal, effort: Effort, more: Sequence[int] = ()) -> Small | None:
        """A history that ``allows`` allows; ``None`` if there is none of this size.

        Args:
            allows: the other specification.
            effort: what it may take.
            more: literals that must be true.

        Raises:
            TimeoutError: that was not enough.
        """
        model = self._find(allows, effort, more)
        return None if model is None else self.histories.history(model)

    def allowed(self, level: Normal, effort: Effort, more: Sequence[int] = ()) -> Small | None:
        """A history that a specification allows, whatever the other one forbids; or ``None``.

        The arguments are those of :meth:`find`.
        """
        model = self.histories.solve([self._allowed(level), *more], effort)
        return None if model is None else self.histories.history(model)

    def _find(self, allows: Normal, effort: Effort, more: Sequence[int]) -> Sequence[int] | None:
        on = self.histories
        wanted = [self._allowed(allows), self._violated, *more]
        while (model := on.solve(wanted, effort)) is not None:
            other = on.solve([self._is_met, *on.fixed(model)], effort)
            if other is None:
                return model
            instance = Choices(self._forbids, on, self._choices.read(other))
            on.circuit.state((-self._violated, *(-x for x in instance.met)))
        return None

    def smallest(self, allows: Normal, effort: Effort) -> tuple[Small, bool] | None:
        """The same with as few operations, then keys, then sessions and times, as there can be.

        Returns:
            The history, and whether there is no smaller one: where the effort is over, what was
            found so far is given.

        Raises:
            TimeoutError: the effort was over before anything was found.
        """
        on = self.histories
        model = self._find(allows, effort, ())
        if model is None:
            return None
        bounds: list[int] = []
        try:
            for literals in (on.operations, on.used_keys):
                count = self._counter(literals)
                while number := sum(on.circuit.value(x, model) for x in literals):
                    fewer = [*bounds, -count[number - 1]]
                    if (less := self._find(allows, effort, fewer)) is None:
                        break
                    model = less
                bounds += [-x for x in count[number:][:1]]
            for x in on.extras:
                if on.circuit.value(x, model):
                    less = self._find(allows, effort, [*bounds, -x])
                    if less is None:
                        continue
                    model = less
                bounds.append(-x)
        except TimeoutError:
            return on.history(model), False
        return on.history(model), True

    def _allowed(self, level: Normal) -> int:
        """The variable that, assumed, states that a level is met."""
        for one, selector in self._allowing:
            if one is level:
                return selector
        selector = self._selector(numbered(level, self.histories) or Choices(level, self.histories))
        self._allowing.append((level, selector))
        return selector

    def _selector(self, choices: Choices) -> int:
        selector = self.histories.circuit.new()
        for x in choices.met:
            self.histories.circuit.state((-selector, x))
        return selector

    def _counter(self, literals: Sequence[int]) -> list[int]:
        """Per number n from 0: a literal that is true if more than n of the literals are."""
        circuit = self.histories.circuit
        found: list[int] = []
        for x in literals:
            grown = [circuit.any_of((x, found[0]))] if found else [x]
            for n in range(1, len(found) + 1):
                through = circuit.both(x, found[n - 1])
                grown.append(circuit.any_of((through, found[n])) if n < len(found) else through)
            found = grown
        return [circuit.named(x) for x in found]
