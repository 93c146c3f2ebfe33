"""Uses a SAT solver to find reads of a few transactions that one level allows and another forbids.

A question states the operations and sessions of at most four transactions, and leaves the sources
of some reads open. The SAT solver of ``isocheck spec compare`` proposes sources that the weaker
level allows, and excludes those that the stronger level also allows. Sources excluded for one
question remain excluded for later questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from isolang.comparison.effort import Effort
from isolang.comparison.normal import normal
from isolang.comparison.separate import Bounds, Separator, partial_relations, scope_of
from isolang.encodings.relational.bounded import name_matches
from isolang.encodings.relational.interpretation import T0
from isolang.errors import UnsupportedError
from isolang.foresee.run import INITIAL

if TYPE_CHECKING:
    from isolang.language.meaning.core import Spec

MOST_KEYS: Final = 8
"""The largest number of keys in a question."""

_CONFLICTS: Final = 20_000  # the largest number of solver conflicts for one question
# The largest number of reads of the same key by one transaction that may return different versions.
_READS: Final = 2

Step: TypeAlias = tuple[Literal["r", "w"], int]
"""An operation of a question: whether it is an external read or a write, and its key."""


class OpenReads(Struct, frozen=True, kw_only=True):
    """A question about a few transactions in which the sources of some reads are open.

    Transactions and keys are numbered from 0. Within a session, later transactions have larger
    numbers.

    Attributes:
        steps: for each transaction, its operations. A transaction writes a key at most once.
        sources: for each transaction, the transactions that its reads read from, in the order of
            ``steps``; ``INITIAL`` for the initial version; ``None`` if its reads are open.
        labels: for each transaction and each of its labels, the patterns in the levels that match
            the label.
        levels: for each transaction, the patterns that match its requested level; ``None`` if it
            requested no level.
    """

    steps: tuple[tuple[Step, ...], ...]
    sessions: tuple[int, ...]
    sources: tuple[tuple[int, ...] | None, ...]
    lists: tuple[bool, ...]
    labels: tuple[frozenset[frozenset[str]], ...] = ()
    levels: tuple[frozenset[str] | None, ...] = ()
    groups: tuple[str, ...] = ()
    keys: tuple[frozenset[str], ...] = ()


class Completion(Struct, frozen=True, kw_only=True):
    """An answer to a question: sources for which the levels have different verdicts.

    Attributes:
        sources: for each transaction, the sources of its reads, in the order of its steps.
        order: the transactions in an order in which each reads only from earlier ones; the last
            transaction is the stranger.
    """

    sources: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]


class Completions:
    """Answers questions about two levels and remembers the answers.

    Attributes:
        ordered: whether a level depends on the order of the operations within a transaction.
    """

    def __init__(self, at: Spec, against: Spec) -> None:
        """Prepare for questions about two levels.

        Raises:
            UnsupportedError: the levels depend on something that questions do not state.
        """
        self._at, self._against = normal(at), normal(against)
        names = self._at.mentioned() | self._against.mentioned()
        missing = [*partial_relations((self._at, self._against)), *sorted(names & {"same-label"})]
        if missing:
            raise UnsupportedError(
                f"predict: no search for {at.name} against {against.name}: they "
                f"compare {', '.join(f'`{name}`' for name in missing)} (expected "
                "levels over sessions, groups, labels, keys and sources of reads); "
                "hint: choose levels without these"
            )
        self._scope = replace(
            scope_of((self._at, self._against), Bounds(one_by_one=True), 1), sessions=True
        )
        self.ordered = self._scope.operations
        self._separators: dict[tuple[int, int, int, bool], Separator] = {}
        self._known: dict[OpenReads, Completion | None] = {}

    def patterns_of_key(self, name: str) -> frozenset[str]:
        """Return the patterns in the levels that match a key's name."""
        return _matching(self._scope.key_patterns, name)

    def patterns_of_label(self, name: str) -> frozenset[str]:
        """Return the patterns in the levels that match a label."""
        return _matching(self._scope.labels, name)

    def patterns_of_level(self, name: str) -> frozenset[str]:
        """Return the patterns in the levels that match a requested level's name."""
        return _matching(self._scope.levels, name)

    @property
    def compares_groups(self) -> bool:
        """True if any of the levels depends on the groups of sessions."""
        return self._scope.groups

    def is_answered(self, question: OpenReads) -> bool:
        """Return whether the question has been answered before, so its answer costs nothing."""
        return question in self._known

    def answer(self, question: OpenReads) -> Completion | None:
        """Return sources that one level allows and the other forbids; ``None`` if none exist.

        Raises:
            TimeoutError: the question is too hard.
        """
        if question not in self._known:
            self._known[question] = self._answer(question)
        return self._known[question]

    def _answer(self, question: OpenReads) -> Completion | None:
        twice = any(len(own) > len(set(own)) for own in question.steps)
        size = len(question.steps), len(question.lists), 1 + twice, any(question.lists)
        separator = self._separators.get(size)
        if separator is None:
            n, keys, reads, lists = size
            scope = replace(self._scope, transactions=n, keys=keys, reads=reads, lists=lists)
            separator = self._separators[size] = Separator(self._against, scope, renumber=False)
        literals = _QuestionEncoder(question, separator)
        model = separator.model(self._at, Effort(_CONFLICTS), list(literals.literals()))
        return None if model is None else literals.completion(model)


def _matching(patterns: Sequence[str], name: str) -> frozenset[str]:
    return frozenset(pattern for pattern in patterns if name_matches(pattern, name))


class _QuestionEncoder:
    """Translates a question into literals of a symbolic history, and a model into an answer."""

    def __init__(self, question: OpenReads, separator: Separator) -> None:
        self.question = question
        self.circuit = separator.histories.circuit
        self.of = separator.histories.variables
        # For each transaction, the slot of each read: its key, and its number among the reads of
        # the key.
        self.slots: list[list[tuple[int, int]]] = []
        for own in question.steps:
            seen: dict[int, int] = {}
            slots = []
            for kind, key in own:
                if kind == "r":
                    slots.append((key, min(seen.get(key, 0), _READS - 1)))
                    seen[key] = seen.get(key, 0) + 1
            self.slots.append(slots)

    def literals(self) -> Iterator[int]:
        """Yield literals that fix the sessions and operations stated by the question."""
        named = self.circuit.alias_of
        for x, is_list in enumerate(self.question.lists):
            if self.of.scope.lists:
                yield self.of.are_lists[x] if is_list else -self.of.are_lists[x]
        for (a, b), literal in self.of.so.items():
            same = self.question.sessions[a - 1] == self.question.sessions[b - 1]
            yield literal if same and a < b else -literal
        for t in self.of.txns:
            steps = self.question.steps[t - 1]
            for x in self.of.keys:
                yield self.of.write[t, x] if ("w", x) in steps else -self.of.write[t, x]
                for j in self.of.slots:
                    happens = named(self.of.happening[t, x, j])
                    if (x, j) not in self.slots[t - 1]:
                        yield -happens
                    elif j == 0:
                        yield happens
            sources = self.question.sources[t - 1]
            if sources is not None:
                yield from self._source_literals(t, sources)
            yield from self._order_literals(t)
        yield from self._name_literals()

    def _source_literals(self, t: int, sources: Sequence[int]) -> Iterator[int]:
        """Yield literals that fix the recorded sources of a transaction's reads."""
        seen: dict[int, list[int]] = {}
        for (x, _), source in zip(self.slots[t - 1], sources, strict=True):
            own = seen.setdefault(x, [])
            if source not in own and len(own) < _READS:
                own.append(source)
        for x, own in seen.items():
            if not self.of.scope.operations:
                own.sort()  # if the order of reads is irrelevant, the scope has only this order
            for j in self.of.slots:
                if j < len(own):
                    yield self.of.source[t, x, j, _number(own[j])]
                elif (x, j) in self.slots[t - 1]:
                    yield -self.circuit.alias_of(self.of.happening[t, x, j])

    def _order_literals(self, t: int) -> Iterator[int]:
        if not self.of.scope.operations:
            return
        events = []
        slots = iter(self.slots[t - 1])
        for kind, x in self.question.steps[t - 1]:
            if kind == "w":
                events.append(self.of.event_of[t, x, None])
            elif (event := self.of.event_of[(t, *next(slots))]) not in events:
                events.append(event)
        for a, b in combinations(events, 2):
            yield self.of.order[a, b]

    def _name_literals(self) -> Iterator[int]:
        question, of = self.question, self.of
        for (word, t, name), literal in of.bears.items():
            matched = of.matching[word, name]
            if word == "label":
                bears = matched in question.labels[t - 1]
            else:
                bears = matched == question.levels[t - 1]
            yield literal if bears else -literal
        unused = dict(of.keys_matching)  # no two keys have the same name
        for x, matched in enumerate(question.keys if of.key_names else ()):
            name = next(name for name in unused if unused[name] == matched)
            del unused[name]
            yield of.key_names[x, name]
        for (a, b), literal in of.together.items():
            yield literal if question.groups[a - 1] == question.groups[b - 1] else -literal

    # --- answers ---

    def completion(self, model: Sequence[int]) -> Completion | None:
        """Return the answer in a model; ``None`` if the transactions cannot be put in order."""
        value = self.circuit.value
        found: dict[tuple[int, int, int], int] = {}
        for (t, x, j, source), literal in self.of.source.items():
            if value(literal, model):
                found[t, x, j] = source
        before: dict[int, set[int]] = {t: set() for t in self.of.txns}
        for (a, b), literal in self.of.so.items():
            if value(literal, model):
                before[b].add(a)
        for (t, x, _), source in found.items():
            before[t].add(source)
            if self.question.lists[x]:
                shown = self.of.shown[x]
                for other in self.of.txns:
                    writes = ("w", x) in self.question.steps[other - 1]
                    if writes and other != source and value(shown.get((other, source), -1), model):
                        before[t].add(other)
        order = _reading_order(before)
        if order is None:
            return None
        return Completion(
            sources=tuple(
                tuple(
                    _member(found[t, x, j] if (t, x, j) in found else found[t, x, 0])
                    for x, j in self.slots[t - 1]
                )
                for t in self.of.txns
            ),
            order=tuple(map(_member, order)),
        )


def _number(source: int) -> int:
    return T0 if source == INITIAL else source + 1


def _member(number: int) -> int:
    return INITIAL if number == T0 else number - 1


def _reading_order(before: Mapping[int, set[int]]) -> list[int] | None:
    """Return an order in which each transaction follows its predecessors.

    Return ``None`` if the predecessors form a cycle.
    """
    found: list[int] = []
    while len(found) < len(before):
        ready = [t for t in before if t not in found and before[t] <= {T0, t, *found}]
        if not ready:
            return None
        found.append(ready[0])
    return found
