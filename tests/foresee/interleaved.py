"""All interleavings of programs with reads that lock, on a database with versions and locks.

A program is a sequence of steps ``(kind, row)``; all instances touch the same rows. The kinds are
``r``, ``for update`` and ``for share``, which read; ``w``; and ``u``, a statement that reads and
writes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement
from typing import TypeAlias

from foresee.by_definition import acyclic

Program: TypeAlias = tuple[tuple[str, str], ...]

INITIAL = -1


def random_program(draw: random.Random) -> Program:
    kinds = ["r", "r", "for update", "for share", "w", "w", "u"]
    return tuple((draw.choice(kinds), draw.choice("ab")) for _ in range(draw.choice([2, 3, 3])))


def always_serializable(programs: Sequence[Program], level: str, most: int = 3) -> bool:
    """Whether no interleaving of at most three instances has a cycle of dependencies."""
    return not any(
        True
        for n in range(2, most + 1)
        for some in combinations_with_replacement(programs, n)
        for _ in _cycles(some, level)
    )


def _cycles(programs: Sequence[Program], level: str) -> Iterator[bool]:
    """Yield for each interleaving with a cycle; who must abort makes an interleaving impossible."""
    n = len(programs)
    start = ((0,) * n, (), (), (), ())
    todo, seen = [start], {start}
    while todo:
        places, snapshots, locks, reads, committed = todo.pop()
        if all(place > len(program) for place, program in zip(places, programs, strict=True)):
            if _has_cycle(programs, dict(reads), committed):
                yield True
            continue
        for i in range(n):
            after = _step(programs, level, i, (places, snapshots, locks, reads, committed))
            if after is not None and after not in seen:
                seen.add(after)
                todo.append(after)


def _step(programs, level, i, state):
    places, snapshots, locks, reads, committed = state
    place, program = places[i], programs[i]
    if place > len(program):
        return None
    moved = (*places[:i], place + 1, *places[i + 1 :])
    if place == len(program):
        kept = tuple(one for one in locks if one[0] != i)
        return moved, snapshots, kept, reads, (*committed, i)
    if place == 0:
        snapshots = (*snapshots, (i, len(committed)))
    kind, row = program[place]
    others = {strength for owner, where, strength in locks if owner != i and where == row}
    wanted = {"r": "", "for share": "share"}.get(kind, "update")
    if (wanted == "update" and others) or (wanted == "share" and "update" in others):
        return None  # it waits
    writers = [t for t in committed if any(k in "wu" and x == row for k, x in programs[t])]
    visible = committed[: dict(snapshots)[i]] if level == "si" else committed
    if wanted and any(t not in visible for t in writers):
        return None  # at SI it fails
    if wanted:
        locks = tuple(sorted({*locks, (i, row, wanted)}))
    own = any(k in "wu" and x == row for k, x in program[:place])
    if kind != "w" and not own:
        source = next((t for t in reversed(writers) if t in visible), INITIAL)
        reads = tuple(sorted({*reads, ((i, place), (row, source))}))
    return moved, snapshots, locks, reads, committed


def _has_cycle(programs, reads, order) -> bool:
    """Whether wr, ww and rw have a cycle; versions are in the order of the commits."""
    edges = set()
    for row in "ab":
        writers = [t for t in order if any(k in "wu" and x == row for k, x in programs[t])]
        edges |= set(combinations(writers, 2))
        for (reader, _), (read, source) in reads.items():
            if read != row:
                continue
            if source != INITIAL:
                edges.add((source, reader))
            later = writers[writers.index(source) + 1 :] if source != INITIAL else writers
            edges |= {(reader, writer) for writer in later if writer != reader}
    return not acyclic(len(programs), edges)


def edn(programs: Sequence[Program]) -> str:
    """A run in which each program is executed once, alone."""
    last = {"a": "nil", "b": "nil"}
    lines = []
    for label, program in enumerate(programs):
        ops, noted = [], []
        for number, (kind, row) in enumerate(program, 1):
            lock = f" {kind}" if kind.startswith("for") else ""
            if kind != "w":
                ops.append(f'[:r "{row}/1" {last[row]}]')
                noted.append(f'"{number}{lock}"')
            if kind in ("w", "u"):
                last[row] = str(10 * label + number)
                ops.append(f'[:w "{row}/1" {last[row]}]')
                noted.append(f'"{number}"')
        lines.append(
            f'{{:type :ok, :process 0, :label "P{label}", :value [{" ".join(ops)}], '
            f":statements [{' '.join(noted)}]}}\n"
        )
    return "".join(lines)
