"""The machine behind a check's product graph: a position automaton, merged and looped."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from isolang.certify.expression import Positions


class Machine(Struct, frozen=True):
    """States and labelled steps; state 0 is the start, which words begin in.

    Attributes:
        states: their number.
        steps: relation to its steps ``(q, q')``, sorted.
        accepting: states at which a word may end. In a looped machine an ε-step leads from each to
            the start.
        looped: whether words are repeated (L(e)⁺) or read once (L(e)).
    """

    states: int
    steps: Mapping[str, tuple[tuple[int, int], ...]]
    accepting: tuple[int, ...]
    looped: bool


def machine(positions: Positions, *, looped: bool) -> Machine:
    """The machine of an expression without the empty word.

    Positions with the same future are merged (partition refinement), the start with none of them:
    in ``so^* ; rw`` the start and the position of ``so`` have the same future, but a cycle of
    ``so`` alone, which would then run through the start, completes no word. In a looped machine a
    position at which a word must end is the start itself.
    """
    labels, follow = positions.labels, positions.follow
    count = len(labels)
    block = [0] + [1 if p in positions.accepting else 2 for p in range(1, count)]
    while True:
        signature = [
            (block[p], frozenset((labels[f], block[f]) for f in follow[p])) for p in range(count)
        ]
        numbers: dict[tuple[int, frozenset[tuple[str, int]]], int] = {}
        refined = [numbers.setdefault(s, len(numbers)) for s in signature]
        if len(set(refined)) == len(set(block)):
            break
        block = refined
    ends = {block[p] for p in positions.accepting}
    going_on = {block[p] for p in range(count) if follow[p]}
    names: dict[int, int] = {block[0]: 0}
    for b in sorted(set(block) - {block[0]}):
        names[b] = 0 if looped and b in ends and b not in going_on else len(set(names.values()))
    steps: dict[str, set[tuple[int, int]]] = {}
    for p in range(count):
        for f in follow[p]:
            steps.setdefault(labels[f], set()).add((names[block[p]], names[block[f]]))
    return Machine(
        states=len(set(names.values())),
        steps={label: tuple(sorted(s)) for label, s in steps.items()},
        accepting=tuple(sorted({names[b] for b in ends} - {0})),
        looped=looped,
    )
