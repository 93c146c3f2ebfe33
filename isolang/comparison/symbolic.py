"""Interprets relations on all histories of a few transactions and keys simultaneously."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations

import numpy as np

from isolang._native import AcyclicSolver
from isolang.comparison.effort import Effort
from isolang.comparison.variables import HistoryVariables, SmallScope
from isolang.encodings.relational.circuit import FALSE, TRUE
from isolang.encodings.relational.interpretation import T0, Interpretation, Moment, Pair, ReadEvent
from isolang.encodings.relational.relation import Relation, relation_of
from isolang.language.meaning.core import Named
from isolang.language.syntax.ast import KeyClass


class SymbolicInterpretation(Interpretation[int]):
    """All histories of a scope, with a literal for each pair of a relation.

    Attributes:
        variables: the variables whose values determine a history.
    """

    def __init__(self, scope: SmallScope) -> None:
        """Create the variables, and the clauses that restrict them to histories."""
        self.variables = HistoryVariables(scope)
        self.circuit = self.variables.circuit
        self.keys = self.variables.keys
        self.reads = self.variables.reads
        self.events = scope.operations
        self.included = [TRUE] * (scope.transactions + 1)
        self._solver = AcyclicSolver(0, 0)
        self._known_variables = self._known_literals = 0

    def in_session(self) -> list[Pair]:
        """Return the possible session-order pairs, each with its variable."""
        return [(a, b, literal) for (a, b), literal in self.variables.so.items()]

    def finished(self, t: int) -> bool:
        """Return true, because every transaction in a small history is committed."""
        return True

    def in_group(self, a: int, b: int) -> int:
        """Return the variable that is true if the sessions of a and b are in the same group."""
        return self.variables.together.get((min(a, b), max(a, b)), FALSE)

    def bears(self, of: Named, t: int) -> int:
        """Return a literal that is true if one of the transaction's names matches ``of``."""
        return self.circuit.any_of(
            literal
            for (word, u, name), literal in self.variables.bears.items()
            if (word, u) == (of.word, t) and of.name in self.variables.matching[word, name]
        )

    def share_label(self, a: int, b: int) -> int:
        """Return a literal that is true if a and b have a label in common."""
        both, labels = self.circuit.both, self.variables.bears
        return self.circuit.any_of(
            both(literal, labels[word, b, name])
            for (word, t, name), literal in labels.items()
            if word == "label" and t == a
        )

    def key_in(self, within: KeyClass, key: int) -> int:
        """Return a literal that is true if a key belongs to a class of keys."""
        found = self.circuit.any_of(
            self.variables.key_names[key, name]
            for name, matched in self.variables.keys_matching.items()
            if matched & set(within.patterns)
        )
        return -found if within.negated else found

    def moment(self, what: Moment, t: int, of: ReadEvent | int | None = None) -> int | None:
        """Return the transaction, because only whole transactions have times.

        If the histories have no times, return ``None``.
        """
        return t if self.variables.scope.real_time else None

    def precedes(self, a: int, b: int) -> int:
        """Return the variable that is true if transaction a ends before transaction b begins."""
        return self.variables.rt.get((a, b), FALSE)

    def writers(self, key: int) -> list[tuple[int, int]]:
        """Return the possible writers of a key, each with the literal of its write."""
        return [(T0, TRUE), *((t, self.variables.write[t, key]) for t in self.variables.txns)]

    def happens(self, read: ReadEvent) -> int:
        """Return a literal that is true if the history contains the read."""
        return self.variables.happening[read.reader, read.key, read.op]

    def sources(self, read: ReadEvent) -> list[tuple[int, int]]:
        """Return the possible sources of a read, each with its variable."""
        return list(self.variables.sources(read.reader, read.key, read.op).items())

    def candidates(self, read: ReadEvent) -> list[tuple[int, int]]:
        """Return the same as ``sources``, because every value is written only once."""
        return self.sources(read)

    def shown(self, key: int) -> Relation:
        """Return the pairs of a key's version order shown by list reads."""
        return relation_of(self._vo(key))

    def all_events(self) -> list[Pair]:
        """Return all possible events, each with its transaction and its literal.

        The first events are the writes of T0, one for each key.
        """
        return [(e, t, literal) for e, (t, literal) in self.variables.elements.items()]

    def program_order(self) -> list[Pair]:
        """Return the possible program-order pairs, each with its literal."""
        there = {e: literal for e, (_, literal) in self.variables.elements.items()}
        all_of = self.circuit.all_of
        return [
            (a, b, all_of((x, there[a], there[b]))) for (a, b), x in self.variables.order.items()
        ]

    def one_statement(self, a: ReadEvent, b: ReadEvent) -> bool:
        """Return false, because each statement in a small history has only one read."""
        return False

    def read_event(self, read: ReadEvent) -> int:
        """Return the number of a read's event."""
        return self.variables.event_of[read.reader, read.key, read.op]

    def write_event(self, key: int, t: int) -> int:
        """Return the number of the event in which transaction t, possibly T0, writes a key."""
        return self.variables.event_of[t, key, None]

    @property
    def size(self) -> int:
        """The number of elements: transactions and events."""
        return len(self.included) + len(self.variables.elements)

    def __str__(self) -> str:
        return "a small history"

    def _vo(self, x: int) -> Iterator[tuple[int, int, int]]:
        if not self.variables.scope.lists:
            return
        both, all_of, some = self.circuit.both, self.circuit.all_of, self.circuit.any_of
        before = self.variables.shown[x]
        read_from = {
            s: some(
                literal
                for (_, y, _, r), literal in self.variables.source.items()
                if (y, r) == (x, s)
            )
            for s in self.variables.txns
        }
        for a in self.variables.txns:
            upto = [read_from[a]]
            upto += [both(before[a, s], read_from[s]) for s in self.variables.txns if s != a]
            seen = some(upto)
            for b in self.variables.txns:
                if a != b:
                    there = (self.variables.write[a, x], self.variables.write[b, x], before[a, b])
                    yield a, b, all_of((self.variables.are_lists[x], seen, *there))

    # --- counting ---

    @cached_property
    def operations(self) -> list[int]:
        """The literals, one per operation, that are true if the history contains it."""
        return [*self.variables.write.values(), *self.variables.happening.values()]

    @cached_property
    def written_twice(self) -> int:
        """A literal that is true if two transactions write the same key."""
        both, pairs = self.circuit.both, list(combinations(self.variables.txns, 2))
        written = [
            both(self.variables.write[a, x], self.variables.write[b, x])
            for x in self.keys
            for a, b in pairs
        ]
        return self.circuit.alias_of(self.circuit.any_of(written))

    @cached_property
    def extras(self) -> list[int]:
        """The literals that a smallest history makes false where possible, in order of priority.

        Literals of lists come first. Literals of reads from transactions other than T0 come next,
        because their sources may be in the future. Literals of sessions, times and groups follow.
        """
        wrote = (literal for (_, _, _, s), literal in self.variables.source.items() if s != T0)
        return [
            *self.variables.are_lists,
            *wrote,
            *self.variables.so.values(),
            *self.variables.rt.values(),
            *self.variables.together.values(),
            *self.variables.bears.values(),
            *(
                x
                for (_, name), x in self.variables.key_names.items()
                if self.variables.keys_matching[name]
            ),
        ]

    # --- solving ---

    def solve(self, assumptions: Sequence[int], effort: Effort) -> Sequence[int] | None:
        """Return a model in which all ``assumptions`` are true; ``None`` if no such model exists.

        Raises:
            TimeoutError: if the search reaches its limit.
        """
        more = self.circuit.variables - self._known_variables
        if more:
            self._solver.new_variables(more)
            self._known_variables += more
        clauses = self.circuit.clauses
        built = len(clauses) - self._known_literals
        if built:
            self._solver.add_clauses(np.array(clauses[self._known_literals :], np.int32))
            self._known_literals = len(clauses)
        open_literals = [literal for literal in assumptions if literal != TRUE]
        if FALSE in open_literals or not effort.solve(self._solver, open_literals, built=built):
            return None
        values: list[int] = self._solver.model().tolist()
        return values

    def fixed(self, model: Sequence[int]) -> list[int]:
        """Return literals that are all true in a model's history, and in no other history."""
        return [v if model[v] else -v for v in self.variables.free]
