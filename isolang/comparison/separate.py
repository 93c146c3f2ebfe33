"""Finds the smallest history that one specification allows and another forbids.

A SAT solver proposes a history with choices that satisfy the first specification. The solver then
searches for choices on that history that satisfy the second specification. If it finds such
choices, a clause excludes them: every history proposed later violates the second specification
under *these* choices (counterexample-guided synthesis: A. Solar-Lezama and others, ASPLOS 2006).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from isolang.comparison.choices import Choices, numbered_choices
from isolang.comparison.decoder import Decoder
from isolang.comparison.effort import Effort
from isolang.comparison.normal import Normal
from isolang.comparison.small import Small
from isolang.comparison.symbolic import SymbolicInterpretation
from isolang.comparison.variables import SmallScope
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
    """The bounds of a search through small histories.

    Attributes:
        one_by_one: whether to search only histories that a database can produce by executing one
            step after another. These histories have no predicate reads.
        overlap: whether to include histories in which a transaction begins before the previous one
            in its session has ended. If not, proofs also assume that sessions do one thing at a
            time.
    """

    transactions: int = 4
    keys: int = 3
    reads: int = 2
    one_by_one: bool = False
    overlap: bool = False

    def kind(self) -> str:
        """Return a phrase that describes the searched histories."""
        often = "once" if self.reads == 1 else "twice"
        return (
            f"of committed transactions, which read a key at most {often} and write it "
            "at most once; registers and lists, each value written once"
        )


def partial_relations(levels: Iterable[Normal]) -> tuple[str, ...]:
    """Return the relations that the levels mention but small histories have only in part.

    In small histories, only whole transactions have times, and each statement is a single
    operation.
    """
    names = frozenset[str]().union(*(level.mentioned() for level in levels))
    return tuple(sorted(names & {*MOMENTS, *OF_STATEMENTS, _STATEMENT}))


def describe_lacking(names: Sequence[str]) -> str:
    """Return a sentence that names the relations that small histories have only in part."""
    times = ", ".join(f"`{name}`" for name in names if name != _STATEMENT)
    sentences = [
        "these histories have times of transactions, but not of operations: they contain only "
        f"the pairs of {times} that follow from `rt`"
    ] * bool(times)
    if _STATEMENT in names:
        sentences.append(f"each of their statements is one operation, so `{_STATEMENT}` is empty")
    return "; ".join(sentences)


def scope_of(levels: Sequence[Normal], bounds: Bounds, transactions: int) -> SmallScope:
    """Return the scope of a search that covers everything the levels compare."""
    names = frozenset().union(*(level.mentioned() for level in levels))
    named, classes = (
        frozenset().union(*found) for found in zip(*(x.names() for x in levels), strict=True)
    )

    def of(word: str) -> tuple[str, ...]:
        return tuple(sorted({one.name for one in named if one.word == word}))

    return SmallScope(
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
    """Searches all histories of one size for a history that a specification forbids."""

    def __init__(self, forbids: Normal, scope: SmallScope, *, renumber: bool = True) -> None:
        """Encode the specification on all histories of the scope.

        Args:
            renumber: whether transactions may be renumbered, which speeds up the search. It must be
                false if further conditions refer to transactions by number.

        Raises:
            SpecError: if the specification uses a relation that small histories lack.
        """
        self.histories = SymbolicInterpretation(scope)
        self._renumber = renumber
        self._forbids = forbids
        self._choices = Choices(forbids, self.histories)
        self._is_met = self._selector(self._choices)
        self._violated = self.histories.circuit.new()
        self._allowing: list[tuple[Normal, int]] = []

    def find(self, allows: Normal, effort: Effort, more: Sequence[int] = ()) -> Small | None:
        """Find a history allowed by ``allows`` and forbidden by the specification of the search.

        If there is none of this size, return ``None``.

        Raises:
            TimeoutError: if the search reaches its limit.
        """
        model = self.model(allows, effort, more)
        return None if model is None else self._decoded(model)

    def allowed(self, level: Normal, effort: Effort, more: Sequence[int] = ()) -> Small | None:
        """Find a history that a level allows, whether or not the other specification forbids it.

        If there is none of this size, return ``None``. The arguments are the same as for
        :meth:`find`.
        """
        model = self.histories.solve([self._allowed(level), *more], effort)
        return None if model is None else self._decoded(model)

    def _decoded(self, model: Sequence[int]) -> Small:
        return Decoder(self.histories.variables, model).history()

    def model(self, allows: Normal, effort: Effort, more: Sequence[int]) -> Sequence[int] | None:
        """Return a circuit model for the history of :meth:`find`; ``None`` if none exists.

        The arguments and errors are the same as for :meth:`find`.
        """
        on = self.histories
        goal = [self._allowed(allows), self._violated, *more]
        while (model := on.solve(goal, effort)) is not None:
            other = on.solve([self._is_met, *on.fixed(model)], effort)
            if other is None:
                return model
            instance = Choices(self._forbids, on, self._choices.read(other))
            on.circuit.state((-self._violated, *(-x for x in instance.met)))
        return None

    def smallest(self, allows: Normal, effort: Effort) -> tuple[Small, bool] | None:
        """Find a separating history with the fewest operations, then keys, then sessions and times.

        Returns:
            The history, and whether it is known to be the smallest. If the search reaches its
            limit, the history is the smallest one found. If no history of this size separates the
            specifications, the result is ``None``.

        Raises:
            TimeoutError: if the search reaches its limit before it finds a history.
        """
        on = self.histories
        model = self.model(allows, effort, ())
        if model is None:
            return None
        bounds: list[int] = []
        try:
            for literals in (on.operations, on.variables.used_keys):
                count = self._counter(literals)
                while number := sum(on.circuit.value(x, model) for x in literals):
                    fewer = [*bounds, -count[number - 1]]
                    if (less := self.model(allows, effort, fewer)) is None:
                        break
                    model = less
                bounds += [-x for x in count[number:][:1]]
            for x in on.extras:
                if on.circuit.value(x, model):
                    less = self.model(allows, effort, [*bounds, -x])
                    if less is None:
                        continue
                    model = less
                bounds.append(-x)
        except TimeoutError:
            return self._decoded(model), False
        return self._decoded(model), True

    def _allowed(self, level: Normal) -> int:
        """Return a literal that, if the solver assumes it, makes the history satisfy the level."""
        for one, selector in self._allowing:
            if one is level:
                return selector
        choices = numbered_choices(level, self.histories) if self._renumber else None
        selector = self._selector(choices or Choices(level, self.histories))
        self._allowing.append((level, selector))
        return selector

    def _selector(self, choices: Choices) -> int:
        selector = self.histories.circuit.new()
        for x in choices.met:
            self.histories.circuit.state((-selector, x))
        return selector

    def _counter(self, literals: Sequence[int]) -> list[int]:
        """Return, for each n from 0, a literal that is true if more than n of ``literals`` are."""
        circuit = self.histories.circuit
        found: list[int] = []
        for x in literals:
            grown = [circuit.any_of((x, found[0]))] if found else [x]
            for n in range(1, len(found) + 1):
                through = circuit.both(x, found[n - 1])
                grown.append(circuit.any_of((through, found[n])) if n < len(found) else through)
            found = grown
        return [circuit.alias_of(x) for x in found]
