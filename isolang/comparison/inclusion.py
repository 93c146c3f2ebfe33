"""Proves that one regular language includes another, and checks such proofs.

The evidence is a set of state pairs that is closed under the steps of both automata. In each pair
in which the left automaton accepts, so does the right one (R. Milner's simulation, with a
deterministic right side). The check of the evidence shares no code with the functions that build
the automata or find the pairs.
"""

from __future__ import annotations

from msgspec import Struct

from isolang.language.classify.regular import Dfa

STUCK = -1
"""The state number of a right automaton that has rejected the word."""


class Inclusion(Struct, frozen=True, kw_only=True):
    """The claim that every word of ``left`` is a word of ``right``, with its evidence.

    Attributes:
        pairs: the pairs of states that the automata can be in after the same word; the state of
            ``right`` may be ``STUCK``.
    """

    left: Dfa
    right: Dfa
    pairs: frozenset[tuple[int, int]]


def prove(left: Dfa, right: Dfa) -> Inclusion | None:
    """Return a proof that ``right`` accepts every word of ``left``.

    If ``right`` rejects some word of ``left``, return ``None``.
    """
    todo, seen = [(0, 0)], {(0, 0)}
    while todo:
        p, q = todo.pop()
        if p in left.final and q not in right.final:
            return None
        row = right.moves[q] if q != STUCK else {}
        for letter, target in left.moves[p].items():
            pair = (target, row.get(letter, STUCK))
            if pair not in seen:
                seen.add(pair)
                todo.append(pair)
    return Inclusion(left=left, right=right, pairs=frozenset(seen))


def holds(claim: Inclusion) -> bool:
    """Return whether the evidence proves that every word of ``left`` is a word of ``right``."""
    left, right, pairs = claim.left, claim.right, claim.pairs
    if (0, 0) not in pairs:
        return False
    for p, q in pairs:
        if not (0 <= p < len(left.moves) and STUCK <= q < len(right.moves)):
            return False
        if p in left.final and (q == STUCK or q not in right.final):
            return False
        for letter, target in left.moves[p].items():
            after = STUCK if q == STUCK else right.moves[q].get(letter, STUCK)
            if (target, after) not in pairs:
                return False
    return True
