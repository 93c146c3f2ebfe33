"""Words of a regular language: shortest ones, loops inside them, how often they use a letter.

The message about a check that is refused shows one of them.
"""

from __future__ import annotations

from isolang.language.regular import Dfa

Word = tuple[str, ...]


def find_loop(dfa: Dfa) -> tuple[Word, Word, Word] | None:
    """A loop inside the words: u, v, w with u vⁿ w accepted for every n and v not empty.

    ``None`` iff the language is finite. (SOUND BECAUSE every kept state lies on an accepted word.)
    """
    if dfa.empty:
        return None
    best: tuple[Word, Word, Word] | None = None
    to_state = _shortest(dfa, 0)
    tried = 0
    # The shortest loop reads best in a message; in a large automaton the first few will do.
    for state in sorted(_looping(dfa)):
        if tried >= 50:
            break
        if (loop := _shortest_loop(dfa, state)) is None:
            continue  # it lies on a path from one loop to another
        tried += 1
        away = _shortest(dfa, state)
        rest = min((away[f] for f in dfa.final if f in away), key=lambda w: (len(w), w))
        found = (to_state[state], loop, rest)
        if best is None or _length(found) < _length(best):
            best = found
    return best


def shortest_word(dfa: Dfa) -> Word:
    """A shortest accepted word of a language that is not empty."""
    words = _shortest(dfa, 0)
    return min((words[state] for state in dfa.final), key=lambda w: (len(w), w))


def most_uses(dfa: Dfa, letter: str) -> int:
    """How often a word uses ``letter``: 0, 1, or 2 for more than once."""
    order = [(0, 0)]
    seen = set(order)
    for state, uses in order:
        for a, target in dfa.moves[state].items():
            found = (target, min(2, uses + (a == letter)))
            if found not in seen:
                seen.add(found)
                order.append(found)
    return max(uses for _, uses in order)


def _looping(dfa: Dfa) -> set[int]:
    """The states on loops and on paths from loop to loop: leaves and roots are peeled off."""
    left = set(range(len(dfa.moves)))
    forward = [set(row.values()) for row in dfa.moves]
    backward: list[set[int]] = [set() for _ in dfa.moves]
    for source, targets in enumerate(forward):
        for target in targets:
            backward[target].add(source)
    for here, there in ((forward, backward), (backward, forward)):
        count = {state: len(here[state] & left) for state in left}
        todo = [state for state in left if not count[state]]
        while todo:
            state = todo.pop()
            left.discard(state)
            for neighbour in there[state]:
                if neighbour in left:
                    count[neighbour] -= 1
                    if not count[neighbour]:
                        todo.append(neighbour)
    return left


def _length(parts: tuple[Word, Word, Word]) -> tuple[int, int]:
    return len(parts[1]), sum(map(len, parts))


def _shortest(dfa: Dfa, start: int) -> dict[int, Word]:
    words: dict[int, Word] = {start: ()}
    order = [start]
    for state in order:
        for letter, target in sorted(dfa.moves[state].items()):
            if target not in words:
                words[target] = (*words[state], letter)
                order.append(target)
    return words


def _shortest_loop(dfa: Dfa, state: int) -> Word | None:
    words = _shortest(dfa, state)
    loops = [
        (*word, letter)
        for source, word in words.items()
        for letter, target in dfa.moves[source].items()
        if target == state
    ]
    return min(loops, key=lambda w: (len(w), w), default=None)
