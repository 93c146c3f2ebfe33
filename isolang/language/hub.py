"""From the words of a check to the automaton whose product with a history is exact.

``acyclic e`` and ``irreflexive e`` over a regular expression e of ``init so rt wr ww rw`` speak of
the words that closed walks of the history spell: the check is violated iff some closed walk spells
a word of a language K, where K = L(e)⁺ for ``acyclic`` and K = L(e) for ``irreflexive``. The engine
detects cycles of a product graph, and a cycle may turn any number of times; three conditions make
the two agree.

1. The empty word is not in K: else the relation is reflexive and nothing satisfies the check.
2. K·K ⊆ K. True of L⁺. For ``irreflexive`` it is decided here, and where it fails the check is
   refused: a cycle of two words of L (a long fork is two of ``(so | wr) ; rw``) would count as a
   violation.
3. K = F⁺ for a *finite* F. An automaton whose loops all pass the hub accepts, from hub to hub, F*
   for a finite F (the words of paths that touch the hub at both ends only, of which there are
   finitely many); conversely a finite F has such an automaton, its acyclic acceptor with the ends
   merged into the hub.

SOUND BECAUSE, with such an automaton: a cycle of the product projects to a loop of the automaton,
which passes the hub; read from there it spells a word of F⁺ = K, and its transactions a closed
walk. A closed walk that spells a word of K, hence of F⁺, is a closed walk of the product from a hub
node to itself, which contains a cycle (none of silent moves alone: all of those lead to the hub).

Whether a finite F exists is decided, not guessed: the only candidate is the base of K, the words
that are not a product of two words of K (every generating set contains it, and it generates, by
induction on length). So ``(so | wr)^+ | ww`` is accepted though its text has a loop: its base is
{so, wr, ww}. In ``(so | wr)^+ ; rw`` the base is infinite, and every automaton has a loop that
turns without ``rw``.

``[W]`` and ``[R]`` are letters that a walk spells without going anywhere. A word of nothing else
would stand for pairs of the identity, so there must be none in K: no cycle of the product stays at
one transaction.

``so``, ``rt`` and ``init`` are transitive, which makes the base smaller. Let U be K with every
such letter r replaced by r⁺: the same relation. A word of U from which doubled letters can be
removed within U is not needed, as its walks also spell the shorter word. So F is the base of U
without the words that are some word of U with one transitive letter doubled. By induction on
length every walk that spells a word of U joins two transactions that a walk spelling a word of F⁺
joins; and F ⊆ K, because a word of U outside K contains a doubled letter. Hence F⁺ ⊆ K: the cycles
that are found spell words of the check as it was written.
"""

from __future__ import annotations

from msgspec.structs import replace

from isolang.language.automaton import LETTERS, Automaton
from isolang.language.expression import TRANSITIVE
from isolang.language.regular import Dfa, concatenate, plus, stretched, subtract


def generators(stretched_language: Dfa, *, acyclic: bool) -> Dfa:
    """F of the module's comment: what generates the check's words, up to the transitive letters.

    Args:
        stretched_language: L(e) with r⁺ for each transitive letter r.
        acyclic: whether the check is ``acyclic``; for ``irreflexive``, L(e)·L(e) ⊆ L(e) must hold.
    """
    # For `irreflexive`, K = L = L⁺ by condition 2; replacing letters keeps that.
    whole = plus(stretched_language) if acyclic else stretched_language
    base = subtract(whole, concatenate(whole, whole))
    return subtract(base, stretched(whole, TRANSITIVE))


def hub_automaton(check: str, base: Dfa) -> Automaton:
    """The acyclic acceptor of a finite language with its ends merged into the hub.

    Final states that have moves stay apart and get a silent move to the hub.
    """
    number = {0: 0}
    number.update({state: 0 for state in base.final if not base.moves[state]})
    order = [0]
    for state in order:
        row = base.moves[state]
        for letter in LETTERS:
            if (target := row.get(letter)) is not None and target not in number:
                number[target] = len(order)
                order.append(target)
    steps: dict[str, tuple[tuple[int, int], ...]] = {}
    for letter in LETTERS:
        pairs = sorted(
            (number[state], number[row[letter]])
            for state, row in enumerate(base.moves)
            if letter in row
        )
        if pairs:
            steps[letter] = tuple(pairs)
    silent = tuple(sorted((number[state], 0) for state in base.final if number[state]))
    automaton = Automaton(
        check=check,
        states=len(order),
        steps=steps,
        epsilon=silent,
        repeatable=frozenset(),
    )
    repeatable = (r for r in ("so", "rt") if r in steps and is_repeatable(automaton, r))
    return replace(automaton, repeatable=frozenset(repeatable))


def is_repeatable(automaton: Automaton, relation: str) -> bool:
    """Whether immediate pairs of a transitive relation suffice.

    SOUND BECAUSE: if each step q → q' of the relation can be made as two steps in a row, with
    silent moves around them, then by induction it can be made as any number of them, along a chain
    of immediate pairs.
    """
    steps = automaton.steps[relation]

    def silent(states: frozenset[int]) -> frozenset[int]:
        while True:
            more = states | {q2 for q1, q2 in automaton.epsilon if q1 in states}
            if more == states:
                return states
            states = frozenset(more)

    def step(states: frozenset[int]) -> frozenset[int]:
        return frozenset(q2 for q1, q2 in steps if q1 in states)

    def twice(q: int) -> frozenset[int]:
        return silent(step(silent(step(silent(frozenset((q,)))))))

    return all(q2 in twice(q1) for q1, q2 in steps)
