"""The automaton of a check: the input to the native engine."""

from __future__ import annotations

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
from isolang.patterns import pattern

LETTERS = (*RELATIONS, *STATEMENT_LETTERS, *TESTS)
"""All letters that may occur in words, except letters with quoted names."""

Sites: TypeAlias = Literal["transactions", "accesses", "statements", "operations"]
"""The things that serve as a history's nodes in its product with an automaton."""

Restriction: TypeAlias = tuple[str, tuple[str, ...], bool]
"""A letter without its names, the patterns for the names, and whether they are excluded."""

_NAME: Final = pattern(r'"([^"]*)"')


def restriction_of(letter: str) -> Restriction | None:
    """Return the restriction imposed on a letter by quoted names, or ``None`` if it has none.

    >>> restriction_of('wr[not "a/*", "b"]')
    ('wr', ('a/*', 'b'), True)
    """
    whole = whole_letter(letter)
    if whole == letter:
        return None
    rest = letter.removeprefix(whole)
    return whole, tuple(_NAME.findall(rest)), rest.startswith(("[not ", " not "))


def sort_letters(letters: Iterable[str]) -> list[str]:
    """Sort letters in vocabulary order; a letter with names follows the bare letter."""
    place = {letter: i for i, letter in enumerate((*LETTERS, *NAMED))}
    return sorted(letters, key=lambda letter: (place[whole_letter(letter)], letter))


class Automaton(Struct, frozen=True, kw_only=True):
    """The automaton of one check; its product with a history is the check's event graph.

    State 0 is the only initial state and the only final state, and every loop of the automaton
    passes state 0. The check is violated if and only if the product has a cycle. From state 0 on,
    such a cycle spells a word of L(e)⁺ (docs/routes.md#event-graphs).

    Attributes:
        steps: for each letter, its steps ``(q, q')``. A letter is one of ``LETTERS``, such a letter
            with quoted names (``wr["audit/*"]``), or ``label "audit"``. For a pair T → S of the
            relation, a step becomes the product edge (T, q) → (S, q'). If the letter is a test that
            the transaction T passes, the step becomes the product edge (T, q) → (T, q').
        epsilon: the silent transitions ``(q, q')``, which become product edges (T, q) → (T, q') for
            every transaction T.
        repeatable: the transitive relations, such as ``so`` and ``rt``, for which the event graph
            needs only the immediate pairs, because each step can be replaced by several steps.
        back: the return paths that must not be closed by a single ``rw``. For each ``(q, q')``, an
            ``rw`` pair S → B is forbidden if (B, q') reaches (S, q). The product has no edges for
            such pairs, and loops of the automaton need not pass state 0.
        closing: the anti-dependencies that must not close ``back``: ``irw``, ``prw``, or ``rw`` for
            both. If the value is ``wr``, a ``wr`` pair S → B is forbidden if (B, q') reaches (S,
            q).
        direct: used instead of ``back`` if the return paths consist of a single pair: ``so``,
            ``wr``, or ``earlier wr``, which means that S read from B in an operation before that of
            the ``rw`` pair. Such an automaton has no steps. If the value is ``components``, the
            automaton has only one state, and a cycle of steps is a violation only if it contains a
            pair of a ``closing`` relation. The words consist of such a pair followed by any number
            of other pairs (or preceded by them, if ``closing_first`` is false).
        without_writers: of ``components``: an ``irw`` pair counts only if its reader does not write
            the key.
        sites: the nodes of the history in the product. For ``transactions``, they are the
            transactions. For ``accesses``, they are the accesses (T, x) of transactions to keys: a
            walk stays on one key, every step leads from one access to this key to another, and
            ``W`` and ``R`` test for writes and reads of this key. For ``statements``, each
            statement that reads is a node, and the transactions are the nodes of their COMMITs. The
            letters ``wr`` and ``committed-before`` lead to a statement, ``rw``, ``committed-after``
            and ``tx`` lead from a statement, and ``answered-before`` and ``po`` lead from one
            statement to another. All other letters lead from COMMIT to COMMIT. For ``operations``,
            ``ww`` also leads to the node of the write, which is the first later statement that
            reads, or a node after all statements; ``po`` then leads to later statements in the same
            state.
        judges: whether cycles in the product are violations. If false, the automaton is used only
            for its return paths, because another check already forbids all of its cycles.
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
    without_writers: bool = False
    sites: Sites = "transactions"

    @property
    def restricted(self) -> Mapping[str, Restriction]:
        """The letters with quoted names that occur in steps, each with its restriction."""
        return {
            letter: restriction for letter in self.steps if (restriction := restriction_of(letter))
        }

    @property
    def relations(self) -> frozenset[str]:
        """The letters that occur in steps, without quoted names."""
        return frozenset(map(whole_letter, self.steps))

    def of(self, letter: str) -> tuple[tuple[int, int], ...]:
        """Return all steps that read a letter, with or without quoted names."""
        return tuple(
            step
            for own, steps in self.steps.items()
            if whole_letter(own) == letter
            for step in steps
        )

    def may_forbid(self, walk: Sequence[str]) -> bool:
        """Return whether a closed walk over edges of the given relations may be a violation.

        If the result is false, the walk is certainly not a violation. If it is true, the walk need
        not be a violation: its transactions may fail tests, or its reads may be of another kind.
        """
        if self.back or self.direct or self.sites != "transactions":
            return True
        tests = [letter for letter in self.steps if is_test(letter)]
        free = _closure_masks(_moves(self.states, (*self.epsilon, *self._steps_of(tests))))
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
                reached = _successors(here, leads[relation])
                # one transitive step may replace both edges
                if relation == before and relation in TRANSITIVE:
                    reached |= here
                here, before = _successors(reached, free), relation
            around.append(here)
        # The automaton may need several rounds of the walk to return to its first state.
        often = _closure_masks(around)
        return any(_successors(around[q], often) >> q & 1 for q in range(self.states))

    def _steps_of(self, letters: Iterable[str]) -> list[tuple[int, int]]:
        return [step for letter in letters for step in self.steps.get(letter, ())]


def _moves(states: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return, for each state, a bit mask of its successor states."""
    rows = [0] * states
    for a, b in pairs:
        rows[a] |= 1 << b
    return rows


def _successors(here: int, moves: Sequence[int]) -> int:
    """Return a bit mask of the states that are one transition away from any state in ``here``."""
    reached = 0
    for q, row in enumerate(moves):
        if here >> q & 1:
            reached |= row
    return reached


def _closure_masks(moves: Sequence[int]) -> list[int]:
    """Return the reflexive and transitive closure of transitions, as a bit mask for each state."""
    rows = [row | 1 << q for q, row in enumerate(moves)]
    for _ in rows:
        rows = [row | _successors(row, rows) for row in rows]
    return rows
