"""Derives writer orders, and contradictions between operations, from stated versions.

The functions apply the definitions in ``docs/versions.md`` to pairs of operations. They share no
code with the engine's pre-pass.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from isolang.certify.history_index import COMMITTED, FROM_INITIAL, FROM_MISSING, READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolang.certify.facts import Facts


def versions_contradict(facts: Facts, op: int, other: int | None) -> bool:
    """Return whether the stated versions of two operations contradict each other.

    If ``other`` is ``None``, return whether the version of ``op`` alone is a contradiction.
    """
    if not _counts(facts, op):
        return False
    if other is None:
        return _reads(facts, op) and facts.source[op] == FROM_MISSING
    if facts.key[op] != facts.key[other] or op == other:
        return False
    same = facts.version[op] == facts.version[other]
    agree = facts.as_read(facts.value[op]) == facts.as_read(facts.value[other])
    if _reads(facts, op) and same and facts.source[op] == other:
        return not agree  # this applies even if the writer did not commit
    if not _counts(facts, other):
        return False
    reads = [o for o in (op, other) if _reads(facts, o)]
    if len(reads) == 2:
        return not agree if same else all(facts.source[o] == FROM_INITIAL for o in reads)
    if not reads:
        first, last = sorted((op, other))
        descends = facts.txn_of[op] == facts.txn_of[other] and is_later_version(facts, first, last)
        return same or descends
    (read,) = reads
    write = other if read == op else op
    return facts.source[read] == FROM_INITIAL and is_later_version(facts, read, write)


def states_other_version(facts: Facts, read: int, own: int) -> bool:
    """Return whether a read states a version other than that of the preceding own write."""
    if not facts.has_versions:
        return False
    versions = facts.version[read], facts.version[own]
    # mutant: python-own-versions-unchecked
    return min(versions) >= 0 and versions[0] != versions[1]


def is_later_version(facts: Facts, a: int, b: int) -> bool:
    """Return whether the version stated by ``a`` is later than the one stated by ``b``."""
    return facts.versions_ordered and facts.version_number(a) > facts.version_number(b)


def first_contradiction(facts: Facts) -> tuple[int, int | None] | None:
    """Return two operations whose versions contradict each other.

    If the version of a single operation is a contradiction, the second element is ``None``. If no
    versions contradict each other, return ``None``.
    """
    of_key: defaultdict[int, list[int]] = defaultdict(list)
    for op in range(len(facts.key) if facts.has_versions else 0):
        if not _counts(facts, op):
            continue
        of_key[facts.key[op]].append(op)
        alone = facts.source[op] if facts.source[op] >= 0 else None
        if versions_contradict(facts, op, alone):
            return op, alone
    for ops in of_key.values():
        for op, other in _neighbours(facts, ops):
            if versions_contradict(facts, op, other):
                return op, other
    return None


def _neighbours(facts: Facts, ops: list[int]) -> list[tuple[int, int]]:
    """Return pairs of operations on one key, including a contradicting pair if there is one."""
    groups: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for op in ops:
        kind = "read" if _reads(facts, op) else "write"
        groups[kind, facts.version[op]].append(op)
        if kind == "write":
            groups["own", facts.txn_of[op]].append(op)
        elif facts.source[op] == FROM_INITIAL:
            groups["initial", 0].append(op)
    # Comparing neighbours suffices: if no neighbours differ, all operations in a group are equal.
    pairs = [pair for group in groups.values() for pair in pairwise(group)]
    initial = groups.get(("initial", 0), [])[:1]
    writes = [op for op in ops if not _reads(facts, op)]
    if facts.versions_ordered and initial and writes:
        pairs.append((initial[0], min(writes, key=facts.version_number)))
    return pairs


def _counts(facts: Facts, op: int) -> bool:
    """Return whether an operation belongs to a committed transaction and states a version."""
    return (
        facts.has_versions
        and facts.version[op] >= 0
        and bool(facts.ok[op])
        and facts.kind[op] in (READ, WRITE)
        and facts.txn_of[op] != facts.n
        and facts.status[facts.txn_of[op]] == COMMITTED
        and (facts.kind[op] == WRITE or facts.value[op] >= 0)
    )


def _reads(facts: Facts, op: int) -> bool:
    return facts.kind[op] == READ and facts.value[op] >= 0


def stated_before(facts: Facts, key: int, a: int, b: int) -> bool:
    """Return whether the version of ``key`` stated by ``a`` is earlier than ``b``'s."""
    first, second = facts.last[a].get(key), facts.last[b].get(key)
    if not facts.versions_ordered or first is None or second is None:
        return False
    return (
        _counts(facts, first) and _counts(facts, second) and is_later_version(facts, second, first)
    )


def sort_by_version(facts: Facts, key: int, writers: Iterable[int]) -> list[int]:
    """Return the writers that state a version of ``key``, in version order, without T0."""
    if not facts.versions_ordered:
        return []
    stated = [(facts.last[t].get(key), t) for t in writers if t != facts.n]
    known = [(op, t) for op, t in stated if op is not None and _counts(facts, op)]
    return [t for op, t in sorted(known, key=lambda one: facts.version_number(one[0]))]


def agrees_with_stated(facts: Facts, key: int, order: list[int]) -> bool:
    """Return whether a version order of ``key`` agrees with the versions stated by its writers."""
    if not facts.versions_ordered:
        return True
    stated = [facts.last[t][key] for t in order if _counts(facts, facts.last[t][key])]
    return not any(is_later_version(facts, a, b) for a, b in pairwise(stated))
