"""Witnesses of histories whose set-reads are implicit, by definition: each of them gets its source.

An order of the COMMITs, and how many of them a predicate read sees, name the version that each of
its set-reads takes: the last one that is seen. What is left is a witness as any other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from isolang.certify.errors import CertificateRejected
from isolang.certify.facts import NO_SOURCE, READ_NONE_OF
from isolang.certify.statements import judged_statements

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns
    from isolang.certify.facts import Facts
    from isolang.history.history import History

    Numbers = Sequence[int] | NDArray[np.integer[Any]]


def written_out(history: History, source: Numbers) -> tuple[History, list[int], list[int]]:
    """The history with all set-reads as operations, a source for each, and which were implicit.

    These have no source yet; those of the others are at their new places.

    Raises:
        CertificateRejected: ``source`` has not one entry per operation.
    """
    few, whole = history.columns, history.written_out()
    if len(source) != few.operations():
        raise CertificateRejected(
            f"source has {len(source)} entries (expected one per operation: {few.operations()})"
        )
    sources, implicit = list[int](), list[int]()
    left: Counter[tuple[int, ...]] = Counter()
    by_place: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for op, told in enumerate(_told(few)):
        by_place[told].append(int(source[op]))
        left[told] += 1
    # Operations of a transaction that say the same are told in the same order, implicit ones last.
    for told in _told(whole.columns):
        if not left[told]:
            implicit.append(len(sources))
            sources.append(NO_SOURCE)
            continue
        sources.append(by_place[told][-left[told]])
        left[told] -= 1
    if left.total():
        raise CertificateRejected("the history has an operation that nobody observed")
    return whole, sources, implicit


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


def see(  # noqa: PLR0917 - a witness, and what is known of the history
    facts: Facts,
    history: History,
    included: AbstractSet[int],
    orders: Sequence[Sequence[int]],
    commits: Numbers | None,
    seen: Numbers | None,
    implicit: Sequence[int],
) -> dict[int, int]:
    """The source of each set-read that was implicit: the last version that it sees.

    Args:
        facts: of the history with all set-reads.
        history: that history.
        included: the transactions that are.
        orders: per key, the version order.
        commits: the order of their COMMITs.
        seen: per predicate read, how many of these it sees.
        implicit: the operations that were implicit.

    Raises:
        CertificateRejected: there is no such order.
    """
    columns = history.columns
    if commits is None or seen is None or len(seen) != len(columns.statement_start):
        raise CertificateRejected("the witness says not what predicate reads saw")
    committed = [int(t) for t in commits]
    # mutant: python-commits
    if sorted(committed) != sorted(included):
        raise CertificateRejected(
            "the order of snapshots does not have each included transaction once, and no other"
        )
    place = {t: i for i, t in enumerate(committed)}
    for key, order in enumerate(orders):
        # mutant: python-commits-as-versions
        if any(place[a] > place[b] for a, b in pairwise(order)):
            raise CertificateRejected(
                f"the order of snapshots contradicts the version order of key {key}"
            )
    judged = judged_statements(history, facts)
    for s in judged:
        t = int(columns.statement_txn[s])
        # mutant: python-sees-itself
        if t in place and not 0 <= int(seen[s]) <= place[t]:
            raise CertificateRejected(f"predicate read {s} sees its own COMMIT, or no snapshot")
    sources = dict[int, int]()
    for op in implicit:
        assert facts.kind[op] == READ_NONE_OF, "what was implicit"
        s = facts.statement_of(op)
        assert s in judged, "what was implicit is of a predicate read that is judged"
        if facts.txn_of[op] in place:
            snapshot = committed[: int(seen[s])]
            writers = [u for u in snapshot if facts.key[op] in facts.last[u]]
            sources[op] = writers[-1] if writers else facts.n
    return sources
