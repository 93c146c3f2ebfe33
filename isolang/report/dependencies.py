"""Draws the dependencies of a witness, to show why a history satisfies a level."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from isolang.certify.proofs import Witness
from isolang.explain.violation import EdgeView, OperationView, Place, TransactionView
from isolang.history.history import History
from isolang.report.figure import drawn_graph
from isolang.report.picture import Picture
from isolang.verdict import Valid

MOST = 20
"""The maximum number of transactions in a picture; larger pictures would be unreadable."""


def dependencies(verdict: Valid) -> Picture | None:
    """Draw the sources, version orders and sessions of a witness.

    Edges join neighbours in version orders and in sessions. They also join each reader to the
    writer it read from, and to the next writer in the version order. A read without an edge from a
    writer returned the initial state.
    """
    history, witness = verdict.history, verdict.witness
    if not isinstance(witness, Witness) or history.t0 > MOST:
        return None
    edges: dict[tuple[int, int, str], list[str]] = {}
    for a, b, relation, key in dict.fromkeys(_edges(history, witness)):
        if a != history.t0:
            edges.setdefault((a, b, relation), []).append(key)
    committed = {t for t in range(history.t0) if history.status(t) == "committed"}
    shown = sorted(committed.union(*(ends[:2] for ends in edges)) - {history.t0})
    names = {t: history.name_of(t) for t in shown}
    return drawn_graph(
        names,
        [
            EdgeView(
                relation=relation,
                source=names[a],
                target=names[b],
                ends=(a, b),
                key=", ".join(keys),
                text="",
            )
            for (a, b, relation), keys in edges.items()
        ],
        [_view(history, t) for t in shown],
        f"the dependencies by which {verdict.spec.name} holds",
    )


def _edges(history: History, witness: Witness) -> Iterator[tuple[int, int, str, str]]:
    columns = history.columns
    orders: dict[int, list[int]] = {}
    for number, (start, end) in enumerate(pairwise(witness.order_start.tolist())):
        orders[number] = [history.t0, *witness.order_txn.tolist()[start:end]]
        for a, b in pairwise(orders[number][1:]):
            yield a, b, "ww", history.key(number)
    sources, keys = witness.source.tolist(), columns.op_key.tolist()
    for t in range(history.t0):
        for op in history.operations_of(t):
            if sources[op] < 0:
                continue
            key = history.key(keys[op])
            yield sources[op], t, "wr", key
            order = orders.get(keys[op], [history.t0])
            later = order[order.index(sources[op]) + 1 :]
            if later and later[0] != t:
                yield t, later[0], "rw", key
    last: dict[int, int] = {}
    for t, session in enumerate(columns.txn_session.tolist()):
        if history.status(t) != "committed":
            continue
        if session in last:
            yield last[session], t, "so", ""
        last[session] = t


def _view(history: History, txn: int) -> TransactionView:
    place = Place(file=history.name, unit=history.position_unit, position=0)
    return TransactionView(
        number=txn,
        name=history.name_of(txn),
        status=history.status(txn),
        session=history.session_of(txn),
        where=history.where(txn),
        place=place,
        operations=tuple(
            OperationView(
                number=op,
                text=history.describe_op(op),
                key=history.key(int(history.columns.op_key[op])),
                where=history.where_op(op),
                place=place,
            )
            for op in history.operations_of(txn)
        ),
        omitted=0,
    )
