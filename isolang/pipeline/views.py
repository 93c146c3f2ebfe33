"""Gives each predicate read a view of its own, where no single order explains what all reads saw.

A level such as PL-2L allows two transactions to see two others in contradictory orders. Then no
order of COMMITs shows that the implicit set-reads hold (``isolang.pipeline.implicit``). But each
predicate read may have a view, which is a set of transactions. The view contains what the
transaction read before and in the predicate read, and of the other transactions all that were
earlier in the likely order and do not follow a version that the transaction misses. The source of
an implicit set-read is the last version in the view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.arrays import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang._native import Problem
    from isolang.certify.proofs import Witness
    from isolang.history.history import History

LARGEST, MOST_SET_READS = 5_000, 250_000
"""The maximum numbers of transactions, whose sets grow with their square, and of set-reads."""


def replay_views(
    history: History, witness: Witness, whole: History, problem: Problem, likely: Sequence[int]
) -> tuple[NDArray[np.int32], Witness] | None:
    """Choose the sources of implicit set-reads by a view for each predicate read.

    SOUND BECAUSE the checker judges the witness.

    Returns:
        The set-reads that contradict their views, as pairs of a predicate read and a key (int32[n,
        2]), and a witness for ``whole``. ``None`` if the dependencies of the witness form a cycle.
    """
    from isolang.explain.part import part_with_same_transactions

    columns, n = whole.columns, whole.t0
    ops = np.array(part_with_same_transactions(whole, history).ops)
    source = np.full(columns.operations(), -1, np.int32)
    source[ops] = witness.source
    txn_of = np.repeat(np.arange(n), np.diff(columns.op_start)).tolist()
    starts, order = witness.order_start.tolist(), witness.order_txn.tolist()
    orders = [order[start:end] for start, end in pairwise(starts)]
    keys, known = columns.op_key.tolist(), source.tolist()
    try:
        before, after = _reachable(n, orders, known, txn_of)
    except CycleError:  # a level may allow cycles of `ww`
        return None
    view_of = _views(whole, orders, known, before, after, likely=likely)
    made = np.setdiff1d(problem.read_op, ops)
    statement = np.searchsorted(columns.statement_start, made, side="right") - 1
    last = np.full(len(made), n, np.int32)
    for i, (op, s) in enumerate(zip(made.tolist(), statement.tolist(), strict=True)):
        view = view_of(s)
        for t in reversed(orders[keys[op]]):
            if view >> t & 1:
                last[i] = t
                break
    source[made] = last
    candidates = np.repeat(problem.read_op, np.diff(problem.candidate_start)) * (n + 1)
    allowed = np.isin(made * (n + 1) + last, candidates + problem.writer_txn[problem.candidate])
    missed = np.stack((statement, columns.op_key[made]), axis=1)[~allowed].astype(np.int32)
    return np.unique(missed, axis=0), replace(witness, source=source)


def _reachable(
    n: int, orders: Sequence[Sequence[int]], source: Sequence[int], txn_of: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return for each transaction what leads to it by ``wr`` and ``ww``, and what it leads to.

    The sets are numbers with a bit for each transaction; each contains the transaction itself.
    """
    into: list[set[int]] = [set() for _ in range(n)]
    for t, writer in zip(txn_of, source, strict=True):
        if 0 <= writer < n:
            into[t].add(writer)
    for order in orders:
        for a, b in pairwise(order):
            into[b].add(a)
    before = [1 << t for t in range(n)]
    after = before.copy()
    sorted_ = list(TopologicalSorter(dict(enumerate(into))).static_order())
    for t in sorted_:
        for u in into[t]:
            before[t] |= before[u]
    for t in reversed(sorted_):
        for u in into[t]:
            after[u] |= after[t]
    return before, after


def _views(
    whole: History,
    orders: Sequence[Sequence[int]],
    source: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
    *,
    likely: Sequence[int],
) -> Callable[[int], int]:
    """Return a function that computes the view of each predicate read as a set."""
    columns, n = whole.columns, whole.t0
    op_start, keys = columns.op_start.tolist(), columns.op_key.tolist()
    begin, end = columns.statement_start.tolist(), columns.statement_end.tolist()
    txns = columns.statement_txn.tolist()
    next_of = [{t: after[u] for t, u in pairwise((n, *order))} for order in orders]
    earlier, so_far = [0] * n, 0
    for t in likely:
        earlier[t] = so_far
        so_far |= before[t]

    @cache
    def view(s: int) -> int:
        t: int = txns[s]
        seen, missed = 0, after[t]
        for op in range(op_start[t], op_start[t + 1]):
            if (writer := source[op]) < 0:
                continue
            if op < end[s] and writer < n:
                seen |= before[writer]
            if op >= begin[s]:
                missed |= next_of[keys[op]].get(writer, 0)
        return seen | earlier[t] & ~missed

    return view
