"""Mutates JSON values: each field gets values of wrong types, and other values of its own type."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

#: Values to put into each field, most of which are invalid there.
STRANGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1 << 31, 1 << 62, 1 << 63, 1 << 64, 10**30, 1.5, 1e300, "", "x",
    "\x1b[31m", "\u202e", "\ud800", [], [[]], [0], [None], [["x", 1]], {}, {"x": 1}, {"": []},
)  # fmt: skip


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every part of a JSON value, outer parts first."""
    yield path
    children = value.items() if isinstance(value, dict) else ()
    children = enumerate(value) if isinstance(value, list) else children
    for name, child in children:
        yield from paths_of(child, (*path, name))


def part_at(value: Any, path: tuple[Any, ...]) -> Any:
    """Return the part of a JSON value that a path leads to."""
    for name in path:
        value = value[name]
    return value


def mutants_of(value: Any, rng: random.Random, *, most: int) -> Iterator[tuple[str, Any]]:
    """Yield copies of a JSON value with one change each, and a description of each change.

    Args:
        value: the JSON value to change.
        rng: selects the places to change if there are more than ``most``.
        most: the greatest number of places to change.
    """
    paths = [path for path in paths_of(value) if path]
    for path in rng.sample(paths, min(most, len(paths))):
        for put in STRANGE:
            made = copy.deepcopy(value)
            part_at(made, path[:-1])[path[-1]] = put
            yield f"{path} = {put!r:.40}", made
        made = copy.deepcopy(value)
        del part_at(made, path[:-1])[path[-1]]
        yield f"without {path}", made
        was = part_at(value, path)
        if isinstance(was, dict):
            made = copy.deepcopy(value)
            part_at(made, path)["zzz"] = 1
            yield f"{path} with an unknown field", made
        if isinstance(was, list) and was:
            for changed in (was + was[-1:], was[::-1], was[1:]):
                made = copy.deepcopy(value)
                part_at(made, path[:-1])[path[-1]] = copy.deepcopy(changed)
                yield f"{path} with other elements", made
        if type(was) is int:
            for step in (-1, 1):
                made = copy.deepcopy(value)
                part_at(made, path[:-1])[path[-1]] = was + step
                yield f"{path} {step:+}", made
