"""Regular languages over small alphabets, with the operations needed to compile checks.

The automata in this module simply accept or reject words. ``event_graph`` and ``return_paths``
build the automata of checks (``automaton.py``) from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

MAX_STATES = 500
"""The maximum number of states in a deterministic automaton. The result of the subset construction
may grow exponentially, and the engine needs a node for each pair of a state and a transaction.
"""
MAX_NFA_STATES = 200_000
MAX_SUBSETS = 1_000_000
"""The maximum total size of all state sets in one subset construction."""

_State = TypeVar("_State")
_Pair = tuple[int, int | None]


class TooLargeError(Exception):
    """Raised when an automaton exceeds one of the limits in this module."""


class Nfa:
    """A nondeterministic automaton with silent transitions and one initial and one final state."""

    def __init__(self) -> None:
        self.moves: list[dict[str, list[int]]] = []
        self.silent: list[list[int]] = []
        self.initial = self.state()
        self.final = self.state()

    def state(self) -> int:
        """Add a state and return its number.

        Raises:
            TooLargeError: if the automaton already has ``MAX_NFA_STATES`` states.
        """
        if len(self.moves) >= MAX_NFA_STATES:
            raise TooLargeError
        self.moves.append({})
        self.silent.append([])
        return len(self.moves) - 1

    def move(self, source: int, letter: str, target: int) -> None:
        """Add a transition from ``source`` to ``target`` that reads ``letter``."""
        self.moves[source].setdefault(letter, []).append(target)

    def skip(self, source: int, target: int) -> None:
        """Add a silent transition from ``source`` to ``target``."""
        self.silent[source].append(target)

    def embed(self, dfa: Dfa) -> tuple[int, list[int]]:
        """Copy ``dfa`` into this automaton and return the new initial and final states."""
        offset = len(self.moves)
        for _ in dfa.moves:
            self.state()
        for source, row in enumerate(dfa.moves):
            for letter, target in row.items():
                self.move(offset + source, letter, offset + target)
        return offset, [offset + state for state in sorted(dfa.final)]


class Dfa(Struct, frozen=True):
    """A deterministic automaton with initial state 0, where a missing transition rejects the word.

    Every state other than the initial one is reachable and can reach a final state.
    """

    moves: tuple[Mapping[str, int], ...]
    final: frozenset[int]

    @property
    def empty(self) -> bool:
        """Return whether the automaton accepts no word."""
        return not self.final

    @property
    def nullable(self) -> bool:
        """Return whether the automaton accepts the empty word."""
        return 0 in self.final

    @property
    def letters(self) -> frozenset[str]:
        """The letters that occur in accepted words."""
        return frozenset(letter for row in self.moves for letter in row)


def determinise(nfa: Nfa) -> Dfa:
    """Return a deterministic automaton for the same language, by the subset construction.

    Raises:
        TooLargeError: if the construction produces too many state sets, or too large ones.
    """
    elements = 0

    def close(states: Iterable[int]) -> frozenset[int]:
        nonlocal elements
        todo, seen = list(states), set(states)
        while todo:
            for target in nfa.silent[todo.pop()]:
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        elements += len(seen)
        if elements > MAX_SUBSETS:
            raise TooLargeError
        return frozenset(seen)

    def successors(subset: frozenset[int]) -> dict[str, frozenset[int]]:
        reached: dict[str, set[int]] = {}
        for state in subset:
            for letter, targets in nfa.moves[state].items():
                reached.setdefault(letter, set()).update(targets)
        return {letter: close(reached[letter]) for letter in sorted(reached)}

    start = close(frozenset((nfa.initial,)))
    return _explore(start, successors, lambda subset: nfa.final in subset)


def _explore(
    start: _State,
    successors: Callable[[_State], Mapping[str, _State]],
    final: Callable[[_State], bool],
) -> Dfa:
    number = {start: 0}
    order = [start]
    moves: list[dict[str, int]] = []
    for state in order:
        row: dict[str, int] = {}
        for letter, target in successors(state).items():
            if target not in number:
                if len(order) >= MAX_STATES:
                    raise TooLargeError
                number[target] = len(order)
                order.append(target)
            row[letter] = number[target]
        moves.append(row)
    return _trim(moves, {number[state] for state in order if final(state)})


def _trim(moves: Sequence[Mapping[str, int]], final: set[int]) -> Dfa:
    """Return the automaton restricted to the states that can reach a final state.

    All states must be reachable from the initial state.
    """
    back: list[list[int]] = [[] for _ in moves]
    for source, row in enumerate(moves):
        for target in row.values():
            back[target].append(source)
    alive, todo = set(final), list(final)
    while todo:
        for source in back[todo.pop()]:
            if source not in alive:
                alive.add(source)
                todo.append(source)
    kept = sorted(alive | {0})
    number = {state: index for index, state in enumerate(kept)}
    rows = tuple(
        {letter: number[t] for letter, t in moves[state].items() if t in alive} for state in kept
    )
    return Dfa(rows, frozenset(number[state] for state in final))


def minimise(dfa: Dfa) -> Dfa:
    """Return the minimal automaton for the same language, by Moore's refinement."""
    block = [int(state in dfa.final) for state in range(len(dfa.moves))]
    while True:
        keys: dict[tuple[int, tuple[tuple[str, int], ...]], int] = {}
        refined = []
        for state, row in enumerate(dfa.moves):
            key = (block[state], tuple(sorted((a, block[t]) for a, t in row.items())))
            refined.append(keys.setdefault(key, len(keys)))
        if len(set(refined)) == len(set(block)):
            break
        block = refined
    # Number the blocks in the order of their first states, so that block 0 has the initial state.
    number: dict[int, int] = {}
    for b in block:
        number.setdefault(b, len(number))
    rows: list[dict[str, int]] = [{} for _ in number]
    for state, row in enumerate(dfa.moves):
        rows[number[block[state]]] = {a: number[block[t]] for a, t in row.items()}
    return Dfa(tuple(rows), frozenset(number[block[state]] for state in dfa.final))


def plus(dfa: Dfa) -> Dfa:
    """Return the language of all concatenations of one or more words of ``dfa``."""
    nfa = Nfa()
    start, finals = nfa.embed(dfa)
    nfa.skip(nfa.initial, start)
    for final in finals:
        nfa.skip(final, nfa.final)
        nfa.skip(final, start)
    return minimise(determinise(nfa))


def concatenate(left: Dfa, right: Dfa) -> Dfa:
    """Return the concatenation: all words of ``left``, each followed by each word of ``right``."""
    nfa = Nfa()
    first, left_finals = nfa.embed(left)
    second, right_finals = nfa.embed(right)
    nfa.skip(nfa.initial, first)
    for final in left_finals:
        nfa.skip(final, second)
    for final in right_finals:
        nfa.skip(final, nfa.final)
    return minimise(determinise(nfa))


def subtract(left: Dfa, right: Dfa) -> Dfa:
    """Return the language of all words of ``left`` that are not in ``right``."""

    def successors(pair: _Pair) -> dict[str, _Pair]:
        p, q = pair
        row = {} if q is None else right.moves[q]
        return {letter: (target, row.get(letter)) for letter, target in left.moves[p].items()}

    def final(pair: _Pair) -> bool:
        return pair[0] in left.final and pair[1] not in right.final

    start: _Pair = (0, 0)
    return minimise(_explore(start, successors, final))


def is_included(left: Dfa, right: Dfa) -> bool:
    """Return whether every word of ``left`` is a word of ``right``."""
    return subtract(left, right).empty


def rotations(dfa: Dfa) -> Dfa:
    """Return the language of all words v u such that u v is a word of ``dfa``."""
    nfa = Nfa()
    for middle in range(len(dfa.moves)):
        # The automaton reads v from `middle` to a final state, then u from state 0 to `middle`.
        second, finals = nfa.embed(dfa)
        first, _ = nfa.embed(dfa)
        nfa.skip(nfa.initial, second + middle)
        for final in finals:
            nfa.skip(final, first)
        nfa.skip(first + middle, nfa.final)
    return minimise(determinise(nfa))


def with_doubled_letter(dfa: Dfa, letters: Iterable[str]) -> Dfa:
    """Return the words of ``dfa``, each with one occurrence of a letter doubled.

    Only occurrences of the given ``letters`` are doubled.
    """
    nfa = Nfa()
    before, _ = nfa.embed(dfa)
    after, finals = nfa.embed(dfa)
    nfa.skip(nfa.initial, before)
    for final in finals:
        nfa.skip(final, nfa.final)
    doubled = frozenset(letters)
    for source, row in enumerate(dfa.moves):
        for letter, target in row.items():
            if letter in doubled:
                middle = nfa.state()
                nfa.move(before + source, letter, middle)
                nfa.move(middle, letter, after + target)
    return minimise(determinise(nfa))


def words_without(dfa: Dfa, letters: Iterable[str]) -> Dfa:
    """Return the language of all words of ``dfa`` without any of the given letters."""
    unwanted = frozenset(letters)
    rows = tuple({a: t for a, t in row.items() if a not in unwanted} for row in dfa.moves)
    everything = Dfa(({},), frozenset())
    return subtract(Dfa(rows, dfa.final), everything)


def up_to_last(dfa: Dfa, letter: str) -> Dfa:
    """Return the language of all words u such that ``dfa`` accepts u with ``letter`` appended."""
    final = {q for q, row in enumerate(dfa.moves) if row.get(letter) in dfa.final}
    return minimise(_trim(dfa.moves, final))


def rotations_around(dfa: Dfa, letter: str) -> Dfa:
    """Return the language of all words v u such that ``dfa`` accepts u a v, where a is ``letter``.

    Neither u nor v contains the letter a.
    """
    nfa = Nfa()
    rest = Dfa(tuple({a: t for a, t in row.items() if a != letter} for row in dfa.moves), dfa.final)
    for state, row in enumerate(dfa.moves):
        if letter in row:
            second, finals = nfa.embed(rest)
            first, _ = nfa.embed(rest)
            nfa.skip(nfa.initial, second + row[letter])
            for final in finals:
                nfa.skip(final, first)
            nfa.skip(first + state, nfa.final)
    return minimise(determinise(nfa))


def strip_ends(dfa: Dfa, first: str, last: str) -> Dfa:
    """Return the language of ``dfa`` with certain letters stripped from both ends of each word.

    All occurrences of ``first`` at the beginning of a word, and of ``last`` at its end, are
    removed.
    """
    nfa = Nfa()
    start, _ = nfa.embed(dfa)
    ending = set(dfa.final)
    beginning = [0]
    for state in beginning:
        target = dfa.moves[state].get(first)
        if target is not None and target not in beginning:
            beginning.append(target)
    while True:
        more = {q for q, row in enumerate(dfa.moves) if row.get(last) in ending} - ending
        if not more:
            break
        ending |= more
    for state in beginning:
        nfa.skip(nfa.initial, start + state)
    for state in ending:
        nfa.skip(start + state, nfa.final)
    every = minimise(determinise(nfa))
    letters = every.letters
    begins = Dfa(({first: 1}, dict.fromkeys(letters, 1)), frozenset((1,)))
    there = {**dict.fromkeys(letters, 0), last: 1}
    ends = Dfa((there, there), frozenset((1,)))
    return subtract(subtract(every, begins), ends)


def union(*languages: Dfa) -> Dfa:
    """Return the union of the languages."""
    nfa = Nfa()
    for dfa in languages:
        start, finals = nfa.embed(dfa)
        nfa.skip(nfa.initial, start)
        for final in finals:
            nfa.skip(final, nfa.final)
    return minimise(determinise(nfa))


def loops_at(dfa: Dfa, state: int) -> Dfa:
    """Return the language of the words that lead from a state back to itself.

    The language includes the empty word.
    """
    nfa = Nfa()
    start, _ = nfa.embed(dfa)
    nfa.skip(nfa.initial, start + state)
    nfa.skip(start + state, nfa.final)
    return minimise(determinise(nfa))


Word = tuple[str, ...]


def find_loop(dfa: Dfa) -> tuple[Word, Word, Word] | None:
    """Return words u, v, w such that v is not empty and u vⁿ w is accepted for every n.

    The result is ``None`` iff the language is finite. (SOUND BECAUSE every state lies on an
    accepted word if the language is not empty.)
    """
    if dfa.empty:
        return None
    best: tuple[Word, Word, Word] | None = None
    to_state = _shortest(dfa, 0)
    tried = 0
    # The shortest loop gives the clearest message, but trying all states of a large automaton would
    # take too long.
    for state in sorted(_states_on_loops(dfa)):
        if tried >= 50:
            break
        if (loop := _shortest_loop(dfa, state)) is None:
            continue  # the state lies on a path between two loops, but not on a loop
        tried += 1
        away = _shortest(dfa, state)
        rest = min((away[f] for f in dfa.final if f in away), key=lambda w: (len(w), w))
        found = (to_state[state], loop, rest)
        if best is None or _length(found) < _length(best):
            best = found
    return best


def shortest_word(dfa: Dfa) -> Word:
    """Return a shortest word of a nonempty language."""
    words = _shortest(dfa, 0)
    return min((words[state] for state in dfa.final), key=lambda w: (len(w), w))


def most_uses(dfa: Dfa, letter: str) -> int:
    """Return the maximum number of occurrences of ``letter`` in a word; 2 means two or more."""
    order = [(0, 0)]
    seen = set(order)
    for state, uses in order:
        for a, target in dfa.moves[state].items():
            found = (target, min(2, uses + (a == letter)))
            if found not in seen:
                seen.add(found)
                order.append(found)
    return max(uses for _, uses in order)


def _states_on_loops(dfa: Dfa) -> set[int]:
    """Return the states that lie on a loop or on a path from one loop to another."""
    remaining = set(range(len(dfa.moves)))
    forward = [set(row.values()) for row in dfa.moves]
    backward: list[set[int]] = [set() for _ in dfa.moves]
    for source, targets in enumerate(forward):
        for target in targets:
            backward[target].add(source)
    for here, there in ((forward, backward), (backward, forward)):
        count = {state: len(here[state] & remaining) for state in remaining}
        todo = [state for state in remaining if not count[state]]
        while todo:
            state = todo.pop()
            remaining.discard(state)
            for neighbour in there[state]:
                if neighbour in remaining:
                    count[neighbour] -= 1
                    if not count[neighbour]:
                        todo.append(neighbour)
    return remaining


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
