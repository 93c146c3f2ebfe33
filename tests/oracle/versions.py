"""Versions that operations state: what they mean, by the definitions of docs/versions.md.

A read that states a version saw the write that states the same one. Versions that are ordered are
integers, and the committed writers of a key come in their order. What the history states must not
contradict itself, nor the values: if it does, no level is met.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Any

from .before import names_of_initial
from .history import UNKNOWN, History, Named, Op, is_write, last_write, written


@dataclass(frozen=True, slots=True)
class Stated:
    """An operation that states a version."""

    txn: int
    at: int
    op: Op
    version: int
    status: str

    @property
    def value(self) -> Any:
        return written(self.op) if is_write(self.op) else self.op[2]


def state(history: History) -> list[Stated]:
    """All operations that state a version and say what they read or wrote."""
    return [
        Stated(i, j, t.ops[j], version, t.status)
        for i, t in enumerate(history)
        for j, version in sorted(t.versions)
        if is_write(t.ops[j]) or t.ops[j][2] != UNKNOWN
    ]


def source(history: History, read: Stated, initial: object) -> Named | None:
    """What a read says of its source; None: it is told by its value alone."""
    key = read.op[1]
    by: dict[str, list[Named]] = {"committed": [], "maybe": [], "aborted": []}
    silent = False
    for i, t in enumerate(history):
        for j, op in enumerate(t.ops):
            if is_write(op) and op[1] == key:
                if t.version(j) == read.version:
                    by[t.status].append((i, j))
                silent = silent or (t.version(j) is None and t.status != "aborted")
    if by["committed"]:
        return by["committed"][0]
    if len(by["maybe"]) > 1:
        return None  # which of them took effect is open
    if by["maybe"] or by["aborted"]:
        return (by["maybe"] or by["aborted"])[0]
    if silent:
        return None  # that write may have made it
    return "initial" if read.value in names_of_initial(initial, key) else "missing"


def of_another(history: History, read: Stated) -> bool:
    """Whether a read states another version than the own write of its key that precedes it."""
    t = history[read.txn]
    mine = last_write(t, read.op[1], read.at)
    return mine is not None and t.version(mine) not in (None, read.version)


def contradictions(history: History, initial: object = None) -> Iterator[str]:
    """What committed transactions state that cannot be."""
    stated = [s for s in state(history) if s.status == "committed"]
    ordered = any(t.ordered for t in history)
    reads = [s for s in stated if not is_write(s.op)]
    writes = [s for s in stated if is_write(s.op)]
    of_initial = []
    for read in reads:
        saw = source(history, read, initial)
        if saw == "missing":
            yield "nobody wrote the version"
        elif saw == "initial":
            of_initial.append(read)
        elif isinstance(saw, tuple) and written(history[saw[0]].ops[saw[1]]) != read.value:
            yield "the version was written with another value"
    for a, b in combinations(reads, 2):
        same = (a.op[1], a.version) == (b.op[1], b.version)
        if same and a.value != b.value:
            yield "the version was read with two values"
    for a, b in combinations(writes, 2):
        if a.op[1] == b.op[1]:
            if a.version == b.version:
                yield "the version was written twice"
            if ordered and a.txn == b.txn and a.version > b.version:
                yield "a transaction wrote versions in another order"
    for a, b in combinations(of_initial, 2):
        if a.op[1] == b.op[1] and a.version != b.version:
            yield "there were two versions at first"
    for read in of_initial:
        for write in writes:
            if ordered and write.op[1] == read.op[1] and write.version < read.version:
                yield "a version was written before the first one"


def resolved(history: History, initial: object = None) -> History | None:
    """The history with sources and orders in place of versions; None: it contradicts itself."""
    if not any(t.versions for t in history):
        return history
    if next(contradictions(history, initial), None) is not None:
        return None
    named: dict[int, list[tuple[int, Named]]] = {}
    for read in state(history):
        if not is_write(read.op):
            saw = source(history, read, initial)
            if saw is None and of_another(history, read):
                saw = "missing"
            if saw is not None:
                named.setdefault(read.txn, []).append((read.at, saw))
    return tuple(
        replace(
            t,
            sources=tuple(sorted((*t.sources, *named.get(i, ())), key=lambda s: s[0])),
            versions=(),
            ordered=False,
            ranks=tuple(_ranks(t)) if t.ordered and t.status == "committed" else (),
        )
        for i, t in enumerate(history)
    )


def _ranks(t: Any) -> Iterator[tuple[str, int]]:
    last = {op[1]: j for j, op in enumerate(t.ops) if is_write(op)}
    for key, j in last.items():
        if t.version(j) is not None:
            yield key, t.version(j)


def given_order(history: History, key: str, included: Any) -> set[tuple[int, int]]:
    """Which of the included writers of a key precede which others, as their ranks say."""
    rank = {t: dict(history[t].ranks)[key] for t in included if key in dict(history[t].ranks)}
    return {(a, b) for a, b in permutations(rank, 2) if rank[a] < rank[b]}
