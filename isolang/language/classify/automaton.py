"""The automaton of a check, which the engine takes as input: the steps of each relation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from isolang.language.vocabulary import (
    NAMED,
    PARTS,
    RELATIONS,
    STATEMENT_LETTERS,
    TESTS,
    TRANSITIVE,
    is_test,
    relation_of,
    whole_letter,
)

LETTERS = (*RELATIONS, *STATEMENT_LETTERS, *TESTS)
"""All letters of the words that walks spell, except those with names in quotes."""

Sites: TypeAlias = Literal["transactions", "accesses", "statements", "operations"]
"""The kinds of nodes that the product of a history and an automaton pairs with states."""

Restriction: TypeAlias = tuple[str, tuple[str, ...], bool]
"""A letter without names, the patterns of its names, and whether they are excluded."""

_NAME: Final = re.compile(r'"([^"]*)"')


def restriction_of(letter: str) -> Restriction | None:
    """Return how the names in quotes restrict a letter, or ``None`` if it has no names.

    >>> restriction_of('wr[not "a/*", "b"]')
    ('wr', ('a/*', 'b'), True)
    """
    whole = whole_letter(letter)
    if whole == letter:
        return None
    rest = letter.removeprefix(whole)
    return whole, tuple(_NAME.findall(rest)), rest.startswith(("[not ", " not "))


def in_order(letters: Iterable[str]) -> list[str]:
    """Return letters in the order of the vocabulary, each before its variants with names."""
    place = {letter: i for i, letter in enumerate((*LETTERS, *NAMED))}
    return sorted(letters, key=lambda letter: (place[whole_letter(letter)], letter))


class Automaton(Struct, frozen=True, kw_only=True):
    """The automaton of one check; its product with a history is the check's event graph.

    State 0 is the only initial state and the only final state, and every loop of the automaton
    passes it. The check is violated if and only if the product has a cycle. Read from state 0 on,
    this cycle spells a word of L(e)⁺ (docs/routes.md#event-graphs).

    Attributes:
        check: the name of the check.
        states: the number of states, which are 0 … states - 1.
        steps: for each letter, its steps ``(q, q')``. A letter is one of ``LETTERS``, such a letter
            with names in quotes, as ``wr["audit/*"]``, or ``label "audit"``. For a pair T → S of
            the relation, a step is the product edge (T, q) → (S, q'). For a transaction T that
            passes a test, it is the product edge (T, q) → (T, q').
        epsilon: the moves ``(q, q')`` inside one transaction, which are the product edges (T, q) →
            (T, q').
        repeatable: the relations among ``so``, ``rt`` whose immediate pairs suffice, because each
            step can be repeated in place.
        back: the return paths that a single ``rw`` must not close. For each ``(q, q')``, an ``rw``
            pair S → B is forbidden if (B, q') reaches (S, q). The product has no edges for such
            pairs, and loops of the automaton need not pass state 0.
        closing: the anti-dependencies that close ``back``: ``irw``, ``prw``, or ``rw`` for all of
            them. If the value is ``wr``, a ``wr`` pair S → B is forbidden if (B, q') reaches (S,
            q).
        direct: the return paths of a single pair, instead of ``back``: ``so``, ``wr``, or ``earlier
            wr``, which means that S read from B by an operation before the operation of the ``rw``
            pair. Such an automaton has no steps. If the value is ``components``, the automaton has
            one state, and a cycle of steps is allowed unless it has a pair of a ``closing``
            relation. The words are such a pair before (or after, if not ``closing_first``) any
            number of other pairs.
        sites: the kind of nodes that the product pairs with states, which may be ``transactions``.
            If it is ``accesses``, the nodes are accesses (T, x) of transactions to keys. A walk
            stays with one key, every step leads between accesses to this key, and ``W`` and ``R``
            test for its writes and reads. If it is ``statements``, each statement that reads is a
            node. The letters ``wr`` and ``committed-before`` lead to a statement, ``rw``,
            ``committed-after`` and ``tx`` lead from a statement, and ``answered-before`` and ``po``
            lead from one statement to another. All other letters lead from COMMIT to COMMIT, whose
            nodes are the transactions. If it is ``operations``, in addition ``ww`` leads to the
            node of the write, which is the first later statement that reads, or a node after all
            statements. Then ``po`` leads on within a state.
        judges: whether cycles of the product are violations. If not, the automaton exists for its
            return paths only, and another check forbids each of its cycles.
    """

    check: str
    states: int
    steps: Mapping[str, tuple[tuple[int, int], ...]]
    epsilon: tuple[tuple[int, int], ...]
    repeatable: frozenset[str]
    back: tuple[tuple[int, int], ...] = ()
    direct: frozenset[str] = frozenset()
    judges: bool = True
    closing: frozenset[str] = frozenset(("rw",))
    closing_first: bool = True
    sites: Sites = "transactions"

    @property
    def restricted(self) -> Mapping[str, Restriction]:
        """The letters of the steps that have names in quotes, each with its restriction."""
        return {
            letter: restriction for letter in self.steps if (restriction := restriction_of(letter))
        }

    @property
    def relations(self) -> frozenset[str]:
        """The letters of the steps, without names in quotes."""
        return frozenset(map(whole_letter, self.steps))

    def of(self, letter: str) -> tuple[tuple[int, int], ...]:
        """Return the steps of a letter, including those that names restrict."""
        return tuple(
            step
            for own, steps in self.steps.items()
            if whole_letter(own) == letter
            for step in steps
        )

    def may_forbid(self, walk: Sequence[str]) -> bool:
        """Return whether a closed walk over edges of these relations may be a violation.

        ``False`` is certain. ``True`` is not certain, because the transactions of the walk may fail
        tests, and its reads may be of the wrong kind.

        Args:
            walk: the relations of the edges, in order; the last edge leads to the start of the
                first one.
        """
        if self.back or self.direct or self.sites != "transactions":
            return True
        tests = [letter for letter in self.steps if is_test(letter)]
        free = _closed(_moves(self.states, (*self.epsilon, *self._steps_of(tests))))
        leads: dict[str, list[int]] = {}
        for relation in walk:
            if relation not in leads:
                names = (relation, *PARTS.get(relation, ()))
                letters = [letter for letter in self.steps if relation_of(letter) in names]
                leads[relation] = _moves(self.states, self._steps_of(letters))
        around = []
        for q in range(self.states):
            here, before = free[q], walk[-1]
            for relation in walk:
                reached = _after(here, leads[relation])
                if relation == before and relation in TRANSITIVE:  # one step may cover both edges
                    reached |= here
                here, before = _after(reached, free), relation
            around.append(here)
        # The walk may have to go around several times before it returns to the state where it
        # began.
        often = _closed(around)
        return any(_after(around[q], often) >> q & 1 for q in range(self.states))

    def _steps_of(self, letters: Iterable[str]) -> list[tuple[int, int]]:
        return [step for letter in letters for step in self.steps.get(letter, ())]


def _moves(states: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return, for each state, a bit set of the states that the moves lead to from it."""
    rows = [0] * states
    for a, b in pairs:
        rows[a] |= 1 << b
    return rows


def _after(here: int, moves: Sequence[int]) -> int:
    """Return the states that one move leads to from any of the states ``here``."""
    reached = 0
    for q, row in enumerate(moves):
        if here >> q & 1:
            reached |= row
    return reached


def _closed(moves: Sequence[int]) -> list[int]:
    """Return the reflexive and transitive closure of the moves."""
    rows = [row | 1 << q for q, row in enumerate(moves)]
    for _ in rows:
        rows = [row | _after(row, rows) for row in rows]
    return rows
