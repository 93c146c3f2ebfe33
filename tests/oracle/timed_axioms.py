"""Levels with the times of operations, as axioms over dependencies and the order of moments.

Two nodes a transaction, its snapshot and its commit (of a level by statements, each statement has
one). What is read was committed before the snapshot, what was overwritten committed after it,
versions come in the order of commits, and moments that do not overlap are in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations, product

from .adya import acyclic
from .history import History, keys
from .moments import Error, Event, Kind, Moment, events, known_before
from .predicates import lower
from .semantics import T0, Source, World, _choices, _Frame, facts


def satisfied(
    history: History,
    kind: Kind,
    *,
    error: Error = 0,
    session: bool = True,
    initial: object = None,
) -> bool:
    """Whether some sources and version orders agree with the moments."""
    low = lower(history, initial)
    fact = facts(low, initial)
    committed = [i for i, t in enumerate(low) if t.status == "committed"]
    all_keys = keys(low)
    for included, rf in _choices(low, fact, committed):
        if any(fact[t].anomalies for t in included):
            continue
        frame = _Frame(low, fact, included, all_keys)
        moments: dict[Event, Moment] = {}
        for t in included:
            moments |= events(low[t], t, kind)
        given = {
            (p, q)
            for p, q in permutations(moments, 2)
            if known_before(low, p, q, moments, error, session=session)
        }
        for w in frame.worlds(rf):
            if acyclic(given | set(_dependencies(low, moments, kind, frame, w, rf))):
                return True
    return False


def _dependencies(
    history: History,
    moments: Iterable[Event],
    kind: Kind,
    frame: _Frame,
    w: World,
    rf: list[Source],
) -> Iterator[tuple[Event, Event]]:
    m = frame.m
    of = {number: t for t, number in frame.number.items()}
    commit = {e.txn: e for e in moments if e.kind == "commit"}
    snapshot = {e.txn: e for e in moments if e.kind == "snapshot"}
    statement = {(e.txn, e.place): e for e in moments if e.kind == "read"}
    lock = {(e.txn, e.key): e for e in moments if e.kind == "lock"}
    for k, key in enumerate(frame.keys):
        order = [
            (of[a], of[b])
            for a, b in product(range(1, m), repeat=2)
            if w.keyed["ww"][k] >> (a * m + b) & 1
        ]
        for a, b in order:
            yield commit[a], commit[b]
            if kind.exclusive:
                yield commit[a], snapshot[b]
            if kind.locks:
                yield commit[a], lock[b, key]
        writers = {of[a] for a in frame.writers[k]}
        for reader, read_key, source, op in rf:
            if read_key != key:
                continue
            place = history[reader].statement(op)
            read = snapshot[reader] if snapshot else statement[reader, place]
            if source != T0:
                yield commit[source], read
            for u in writers - {reader, source}:
                if source == T0 or (source, u) in order:
                    yield read, commit[u]
