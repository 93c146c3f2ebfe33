"""Proofs that somebody has tampered with, and histories that somebody has."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .generate import MUTATIONS
from .generate_rows import changed_rows
from .history import History, has_moments, is_list_key, keys
from .predicates import rich
from .simulate import disturbed, partly_noted

#: What an edge of a refutation may claim to be.
NAMES = (
    *("so", "rt", "init", "done", "late", "locked", "wr", "ww", "rw"),
    *("committed-before", "answered-before", "committed-after", "po", "tx"),
    *("rt[W,R]", "so[W,W]", "done[R,W]", "late[W,R]", "source", "before", "in"),
)


def tampered_history(rng: random.Random, history: History) -> History:
    """Another history, mostly of as many operations: a time, a value, a row or a status differs."""
    if any(map(has_moments, history)):
        return (disturbed if rng.random() < 0.7 else partly_noted)(rng, history)
    if rich(history):
        return changed_rows(rng, history)
    plain = [k for k in keys(history) if not is_list_key(history, k)]
    reads = [
        (i, j)
        for i, t in enumerate(history)
        for j, op in enumerate(t.ops)
        if op[0] == "r" and op[1] in plain
    ]
    if reads and rng.random() < 0.6:
        i, j = rng.choice(reads)
        ops = list(history[i].ops)
        ops[j] = ("r", ops[j][1], rng.choice((None, 1, 2, 3)))
        return (*history[:i], replace(history[i], ops=tuple(ops)), *history[i + 1 :])
    return rng.choice(MUTATIONS)(rng, history) or history


def tampered_arrays(
    rng: random.Random, transactions: int, source: Any, start: Any, order: Any
) -> tuple[Any, Any, Any]:
    """A witness with one or two changes."""
    source, start, order = source.copy(), start.copy(), order.copy()
    for _ in range(rng.choice((1, 1, 2))):
        what = rng.randrange(4)
        if what == 0 and len(source):
            source[rng.randrange(len(source))] = rng.randint(-2, transactions + 1)
        elif what == 1 and len(order):
            order[rng.randrange(len(order))] = rng.randint(-1, transactions + 1)
        elif what == 2 and len(order) > 1:
            i = rng.randrange(len(order) - 1)
            order[[i, i + 1]] = order[[i + 1, i]]
        elif what == 3:
            start[rng.randrange(len(start))] += rng.choice((-1, 1))
    return source, start, order


def tampered_snapshots(
    rng: random.Random, transactions: int, commits: Any, seen: Any
) -> tuple[Any, Any]:
    """An order of snapshots with a change."""
    commits, seen = commits.copy(), seen.copy()
    what = rng.randrange(4)
    if what == 0 and len(seen):
        seen[rng.randrange(len(seen))] = rng.randint(-2, transactions + 1)
    elif what == 1 and len(commits) > 1:
        i = rng.randrange(len(commits) - 1)
        commits[[i, i + 1]] = commits[[i + 1, i]]
    elif what == 2 and len(commits):
        commits[rng.randrange(len(commits))] = rng.randint(-1, transactions + 1)
    elif what == 3:
        commits = commits[: rng.randint(0, len(commits))]
    return commits, seen


def tampered_steps(rng: random.Random, transactions: int, steps: list[Any]) -> list[Any]:
    """A refutation in plain form with a step, a field or an edge changed."""
    steps = _lists(steps)
    if not steps:
        return steps
    i = rng.randrange(len(steps))
    what = rng.random()
    if what < 0.1:
        del steps[i]
    elif what < 0.2:
        j = rng.randrange(len(steps))
        steps[i], steps[j] = steps[j], steps[i]
    elif spots := list(_spots(steps[i])):
        where, at = rng.choice(spots)
        old = where[at]
        if isinstance(old, bool):
            where[at] = not old
        elif isinstance(old, int):
            where[at] = rng.choice((old + 1, old - 1, rng.randint(-1, transactions)))
        elif isinstance(old, str):
            where[at] = rng.choice(NAMES)
        elif old:
            change = rng.randrange(3)
            if change == 0:
                del old[rng.randrange(len(old))]
            elif change == 1:
                rng.shuffle(old)
            else:
                old.append(rng.choice(old))
    return steps


def _lists(raw: Any) -> Any:
    return [_lists(part) for part in raw] if isinstance(raw, (list, tuple)) else raw


def _spots(raw: list[Any]) -> Iterator[tuple[list[Any], int]]:
    for i, part in enumerate(raw):
        yield raw, i
        if isinstance(part, list):
            yield from _spots(part)
