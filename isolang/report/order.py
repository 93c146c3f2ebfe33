"""Finds a transaction order that explains a valid history, from its witness."""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from isolang.arrays import np
from isolang.history import columns as c

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isolang.certify.proofs import Witness
    from isolang.history.history import History
    from isolang.verdict import Valid


LONGEST: Final = 50_000
"""The maximum number of transactions to list in order; longer lists would be unreadable."""


class Order(Struct, frozen=True, kw_only=True):
    """An order of transactions that explains a valid history.

    Attributes:
        kind: ``serial`` if each read returns its value when the transactions run one after another
            in this order; ``commit`` if the order only puts each transaction after those it read
            from or overwrote, as under snapshot isolation.
    """

    kind: Literal["serial", "commit"]
    sessions: bool
    txns: list[int]


def order_of(verdict: Valid) -> Order | None:
    """Return the strongest order shown by the witness.

    Return ``None`` if it shows no order, or if the history has too many transactions.
    """
    from isolang.certify.proofs import Witness

    if verdict.history.columns.transactions() > LONGEST:
        return None
    proof = verdict.certificate().proof
    if not isinstance(proof, Witness):
        return None
    history = verdict.history
    wr, ww, rw = _dependencies(history, proof)
    so = list(_session_order(history))
    attempts: tuple[tuple[Literal["serial", "commit"], bool, Iterable[tuple[int, int]]], ...] = (
        ("serial", True, (*so, *wr, *ww, *rw)),
        ("serial", False, (*wr, *ww, *rw)),
        ("commit", True, (*so, *wr, *ww)),
        ("commit", False, (*wr, *ww)),
    )
    effective = _effective_transactions(history, proof)
    for kind, sessions, edges in attempts:
        txns = _topological_order(history, effective, edges)
        if txns is not None:
            return Order(kind=kind, sessions=sessions, txns=txns)
    return None


def _effective_transactions(history: History, witness: Witness) -> list[int]:
    """Return the transactions that took effect in a witness.

    These are the committed transactions, and those that are the source of a read or occur in a
    version order.
    """
    there = np.asarray(history.columns.txn_status) == c.COMMITTED
    sources = witness.source[witness.source >= 0]
    for txns in (sources[sources < history.t0], witness.order_txn):
        there[txns] = True
    return np.flatnonzero(there).tolist()


def _session_order(history: History) -> Iterator[tuple[int, int]]:
    last: dict[int, int] = {}
    status = np.asarray(history.columns.txn_status).tolist()
    for txn, session in enumerate(np.asarray(history.columns.txn_session).tolist()):
        if status[txn] == c.COMMITTED:
            if session in last:
                yield last[session], txn
            last[session] = txn


def _dependencies(
    history: History, witness: Witness
) -> tuple[list[tuple[int, int]], list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the ``wr``, ``ww`` and ``rw`` edges.

    A ``ww`` or ``rw`` edge leads only to the writer of the next version.
    """
    columns, t0 = history.columns, history.t0
    start, writers = witness.order_start.tolist(), witness.order_txn.tolist()
    following: list[dict[int, int]] = []
    ww: list[tuple[int, int]] = []
    for key in range(len(start) - 1):
        order = writers[start[key] : start[key + 1]]
        following.append(dict(zip([t0, *order], order, strict=False)))
        ww += itertools.pairwise(order)
    wr: list[tuple[int, int]] = []
    rw: list[tuple[int, int]] = []
    reads = np.flatnonzero(witness.source >= 0)
    readers = np.searchsorted(columns.op_start, reads, side="right") - 1
    keys = np.asarray(columns.op_key)[reads]
    for source, reader, key in zip(
        witness.source[reads].tolist(), readers.tolist(), keys.tolist(), strict=True
    ):
        if source not in (t0, reader):
            wr.append((source, reader))
        after = following[key].get(source)
        if after is not None and after != reader:
            rw.append((reader, after))
    return wr, ww, rw


def _topological_order(
    history: History, txns: list[int], edges: Iterable[tuple[int, int]]
) -> list[int] | None:
    """Return a topological order that follows begin times where possible; ``None`` for a cycle."""
    place = {txn: i for i, txn in enumerate(txns)}
    successors: dict[int, list[int]] = {}
    waiting = dict.fromkeys(txns, 0)
    for a, b in edges:
        if a in place and b in place:
            successors.setdefault(a, []).append(b)
            waiting[b] += 1
    begin = history.columns.txn_begin
    first = {t: int(begin[t]) for t in txns} if history.columns.has_time else place
    ready = [(first[t], t) for t in txns if not waiting[t]]
    heapq.heapify(ready)
    out: list[int] = []
    while ready:
        _, txn = heapq.heappop(ready)
        out.append(txn)
        for after in successors.get(txn, ()):
            waiting[after] -= 1
            if not waiting[after]:
                heapq.heappush(ready, (first[after], after))
    return out if len(out) == len(txns) else None
