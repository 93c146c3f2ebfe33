"""Witnesses of histories whose set-reads are implicit, by definition: each of them gets its source.

An order of the COMMITs, and how many of them a predicate read sees, name the version that each of
its set-reads takes: the last one that is seen. What is left is a witness as any other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from isolang.certify.errors import CertificateRejected
from isolang.certify.facts import READ_NONE_OF

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns
    from isolang.certify.facts import Facts
    from isolang.history.history import History

    Numbers = Sequence[int] | NDArray[np.integer[Any]]

_UNSEEN = -(2**63) - 1
"""The source of an operation that was implicit, until it is known: no number that a witness has."""


def written_out(history: History, source: Numbers) -> tuple[History, list[int]]:
    """The history with all set-reads as operations, and the sources of the others in their places.

    Raises:
        CertificateRejected: ``source`` has not one entry per operation.
    """
    few, whole = history.columns, history.written_out()
    if len(source) != few.operations():
        raise CertificateRejected(
            f"source has {len(source)} entries (expected one per operation: {few.operations()})"
        )
    sources: list[int] = []
    left: Counter[tuple[int, ...]] = Counter()
    by_place: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for op, told in enumerate(_told(few)):
        by_place[told].append(int(source[op]))
        left[told] += 1
    # Operations of a transaction that say the same are told in the same order, implicit ones last.
    for told in _told(whole.columns):
        if not left[told]:
            sources.append(_UNSEEN)
            continue
        sources.append(by_place[told][-left[told]])
        left[told] -= 1
    if left.total():
        raise CertificateRejected("the history has an operation that nobody observed")
    return whole, sources


def _told(columns: Columns) -> Iterator[tuple[int, ...]]:
    """Of each operation its transaction, predicate read, kind, key and place."""
    start = columns.op_start.tolist()
    statement = {
        op: s
        for s, (first, end) in enumerate(
            zip(columns.statement_start.tolist(), columns.statement_end.tolist(), strict=True)
        )
        for op in range(first, end)
    }
    kind, key, place = (c.tolist() for c in (columns.op_kind, columns.op_key, columns.op_position))
    for t in range(columns.transactions()):
        for op in range(start[t], start[t + 1]):
            yield t, statement.get(op, -1), kind[op], key[op], place[op]


def see(
    facts: Facts,
    history: History,
    sources: list[int],
    commits: Numbers | None,
    seen: Numbers | None,
) -> None:
    """Give each set-read that was implicit its source, the last version that it sees.

    Raises:
        CertificateRejected: there is no such order.
    """
    columns = history.columns
    if commits is None or seen is None or len(seen) != len(columns.statement_start):
        raise CertificateRejected("the witness says not what predicate reads saw")
    order = [int(t) for t in commits]
    if len(set(order)) != len(order) or not all(0 <= t < facts.n for t in order):
        raise CertificateRejected("the order of snapshots is none of transactions")
    place = {t: i for i, t in enumerate(order)}
    starts, ends = columns.statement_start.tolist(), columns.statement_end.tolist()
    for s, (start, end) in enumerate(zip(starts, ends, strict=True)):
        t = facts.txn_of[start] if start < end else None
        # mutant: python-sees-itself
        if t in place and int(seen[s]) > place[t]:
            raise CertificateRejected(f"predicate read {s} sees its own COMMIT")
        for op in range(start, end):
            if sources[op] != _UNSEEN:
                continue
            assert facts.kind[op] == READ_NONE_OF, "what was implicit"
            if t not in place:
                sources[op] = -1
                continue
            writers = [u for u in order[: int(seen[s])] if facts.key[op] in facts.last[u]]
            sources[op] = writers[-1] if writers else facts.n
