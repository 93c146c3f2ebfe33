"""Finds example names for each set of patterns that a single name can match."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

_MOST_VISITS: Final = 20_000
_State = tuple[frozenset[int], ...]


@lru_cache(maxsize=64)
def example_names(patterns: tuple[str, ...], most: int) -> dict[frozenset[str], tuple[str, ...]]:
    """Return, for each possible set of patterns, the shortest names that match exactly these.

    The search extends names by one character at a time and follows all patterns simultaneously.
    Characters that occur in no pattern are equivalent, so only one of them is used.

    >>> found = example_names(("a/*", "a/b"), 1)
    >>> {", ".join(sorted(matched)): names for matched, names in found.items()}
    {'': ('k',), 'a/*': ('a/',), 'a/*, a/b': ('a/b',)}
    """
    characters = sorted({c for pattern in patterns for c in pattern if c != "*"})
    fresh = next(c for c in "klmnopqrstuvwxyzKLMNOPQRSTUVWXYZ0123456789_" if c not in characters)
    start: _State = tuple(frozenset(_places_after_stars(pattern, 0)) for pattern in patterns)
    found: dict[frozenset[str], list[str]] = {}
    visited: Counter[_State] = Counter()
    todo: deque[tuple[_State, str]] = deque([(start, "")])
    while todo and visited.total() < _MOST_VISITS:
        state, name = todo.popleft()
        if visited[state] > most:
            continue
        visited[state] += 1
        matched = frozenset(
            pattern for pattern, at in zip(patterns, state, strict=True) if len(pattern) in at
        )
        names = found.setdefault(matched, [])
        if name and len(names) < most:
            names.append(name)
        for character in (fresh, *characters):
            after = tuple(
                frozenset(_next_places(pattern, at, character))
                for pattern, at in zip(patterns, state, strict=True)
            )
            todo.append((after, name + character))
    return {matched: tuple(names) for matched, names in found.items() if names}


def _places_after_stars(pattern: str, place: int) -> Iterator[int]:
    """Yield a position in a pattern, and every later position reachable by skipping only stars."""
    yield place
    while place < len(pattern) and pattern[place] == "*":
        place += 1
        yield place


def _next_places(
    pattern: str, places: Sequence[int] | frozenset[int], character: str
) -> Iterator[int]:
    for place in places:
        if place < len(pattern) and pattern[place] == "*":
            yield from _places_after_stars(pattern, place)
        elif place < len(pattern) and pattern[place] == character:
            yield from _places_after_stars(pattern, place + 1)
