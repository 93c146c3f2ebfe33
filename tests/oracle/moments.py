"""Levels of databases whose clients note the time of every operation, by executions in real time.

An operation has its effect at some instant between its sending and its answer: a statement takes
a snapshot, a write locks its row, COMMIT makes versions visible. A history is allowed iff instants
can be found within these intervals such that a database of this kind, doing things in their order,
answers what was observed. Nothing is said about dependencies.

Each time that is known bounds what comes after it, or before it, in its transaction: of some
operations, and of COMMIT, nothing may be known, or only one of both times.

Clocks of different sessions may differ by ``error``: an instant is known to precede another one of
another clock only if more than that lies between. Equal times are no order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .before import held
from .history import History, Txn, is_write, keys
from .replay import run, sees
from .visible import inclusions

#: A margin between any two clocks, or how far each session's clock may be off.
Error = float | Mapping[int, float]


class Moment(NamedTuple):
    """An instant that lies between two times of one session's clock."""

    low: float
    high: float
    session: int


def precedes(p: Moment, q: Moment, error: Error = 0) -> bool:
    """Whether one instant is certainly before another one."""
    if p.session == q.session:
        return p.high < q.low
    if isinstance(error, Mapping):
        return p.high + error.get(p.session, 0) < q.low - error.get(q.session, 0)
    return p.high + error < q.low


def transaction(t: Txn) -> Moment:
    """When it ran, from its first statement to its end."""
    low = -math.inf if t.begin is None else t.begin
    known = t.end is not None and t.status != "maybe"
    return Moment(low, t.end if known else math.inf, t.session)


def operation(t: Txn, op: int) -> Moment:
    """When an operation had its effect: after it and all before it were sent, before it or any one
    behind it was answered.
    """
    times = t.times or ()
    asked = [p[0] for p in times[: op + 1] if p]
    told = [p[1] for p in times[op:] if p]
    return Moment(_latest(t, asked), _earliest(t, told), t.session)


def _latest(t: Txn, sent: Iterable[int | None]) -> float:
    """The latest of these sendings and the begin: nothing behind them had its effect before."""
    known = [at for at in (None if t.by_lines else t.begin, *sent) if at is not None]
    return max(known, default=-math.inf)


def _earliest(t: Txn, answered: Iterable[int | None]) -> float:
    """The earliest of these answers, that to COMMIT and the end: all had their effects before."""
    ended = () if t.status == "maybe" else (t.answered, None if t.by_lines else t.end)
    return min([at for at in (*answered, *ended) if at is not None], default=math.inf)


def first_statement(t: Txn, *, reads_only: bool = False) -> Moment:
    """When a snapshot is taken that the first statement, or the first read, takes; where there is
    nothing but COMMIT, that is the first statement.
    """
    for j, op in enumerate(t.ops):
        if not (reads_only and is_write(op)):
            return operation(t, j)
    return transaction(t) if reads_only else commit(t)


def commit(t: Txn) -> Moment:
    """When it committed: after COMMIT and all operations were sent, before its answer."""
    sent = [p[0] for p in t.times or () if p]
    return Moment(_latest(t, [*sent, t.commit]), _earliest(t, ()), t.session)


def follows(first: Txn, second: Txn, error: Error = 0) -> bool:
    """Whether a transaction ended before another one began."""
    if first.status == "maybe" or first.end is None or second.begin is None:
        return False  # an indeterminate transaction may have ended at any later time
    return precedes(transaction(first), transaction(second), error)


def relations(
    history: History, included: list[int], error: Error = 0
) -> dict[str, set[tuple[int, int]]]:
    """What times say of transactions, whatever the database does.

    ``done``: T had committed before S committed. ``late``: T's first statement was answered before
    S sent its COMMIT. ``locked``: T's write of some key was answered before S, which writes it too,
    sent its COMMIT. ``group-rt``: real time inside a group. As with sessions and real time nothing
    leads out of an indeterminate one.
    """
    out: dict[str, set[tuple[int, int]]] = {"done": set(), "late": set(), "locked": set()}
    out["group-rt"] = set()
    for a in included:
        for b in included:
            if a == b or history[a].status == "maybe":
                continue
            first, second = history[a], history[b]
            if first.group == second.group is not None and follows(first, second, error):
                out["group-rt"].add((a, b))
            end = commit(second)
            if precedes(commit(first), end, error):
                out["done"].add((a, b))
            if precedes(first_statement(first), end, error):
                out["late"].add((a, b))
            if any(precedes(m, end, error) for m in _common_writes(first, second)):
                out["locked"].add((a, b))
    return out


def _common_writes(first: Txn, second: Txn) -> list[Moment]:
    """When a transaction first wrote each key that the other one writes, too."""
    moments: dict[str, Moment] = {}
    for j, op in enumerate(first.ops):
        if is_write(op):
            moments.setdefault(op[1], operation(first, j))
    return [m for key, m in moments.items() if key in _written(second, len(second.ops))]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a database does.

    Attributes:
        snapshot: what takes one: a transaction's first statement or read, or each statement.
        exclusive: of two writers of a key one has committed before the other takes its snapshot.
        locks: a write locks its key until its transaction commits.
    """

    snapshot: Literal["first statement", "first read", "statement"]
    exclusive: bool = False
    locks: bool = False


KINDS = {
    "bounded-si": Kind("first statement", exclusive=True),
    "statement-rc": Kind("statement"),
    "postgresql-repeatable-read": Kind("first statement", exclusive=True, locks=True),
    "postgresql-read-committed": Kind("statement", locks=True),
    "innodb-repeatable-read": Kind("first read", locks=True),
}


class Event(NamedTuple):
    """What happens at one instant: ``snapshot``, ``read`` of a statement, ``lock``, ``commit``."""

    kind: str
    txn: int
    place: float
    key: str = ""


def events(t: Txn, number: int, kind: Kind) -> dict[Event, Moment]:
    """The events of a transaction; those of an earlier place come first."""
    out: dict[Event, Moment] = {}
    if kind.snapshot != "statement":
        reads_only = kind.snapshot == "first read"
        moment = first_statement(t, reads_only=reads_only)
        place = next((j for j, op in enumerate(t.ops) if not reads_only or not is_write(op)), 0)
        out[Event("snapshot", number, place - 0.5)] = moment
    locked: set[str] = set()
    for j, op in enumerate(t.ops):
        if is_write(op):
            if kind.locks and op[1] not in locked:
                locked.add(op[1])
                out[Event("lock", number, t.statement(j), op[1])] = operation(t, j)
        elif kind.snapshot == "statement":
            out[Event("read", number, t.statement(j))] = operation(t, j)
    out[Event("commit", number, math.inf)] = commit(t)
    return out


def known_before(
    history: History,
    p: Event,
    q: Event,
    moments: Mapping[Event, Moment],
    error: Error,
    *,
    session: bool,
) -> bool:
    """Whether one event comes before another one, by their transaction, session or times."""
    if p.txn == q.txn:
        return p.place < q.place
    first, second = history[p.txn], history[q.txn]
    if session and p.kind == "commit" and first.session == second.session and p.txn < q.txn:
        return first.status != "maybe" or precedes(moments[p], moments[q], error)
    return precedes(moments[p], moments[q], error)


def satisfied(
    history: History,
    kind: Kind,
    *,
    error: Error = 0,
    session: bool = True,
    initial: object = None,
) -> bool:
    """Whether a database of this kind can have answered this at these times."""
    store = {k: value for k in keys(history) if (value := held(initial, k)) is not None}
    return any(
        _search(history, included, kind, error, session, store) for included in inclusions(history)
    )


def _search(
    history: History,
    included: list[int],
    kind: Kind,
    error: Error,
    session: bool,
    initial: dict[str, object],
) -> bool:
    moments: dict[Event, Moment] = {}
    for t in included:
        moments |= events(history[t], t, kind)

    def before(p: Event, q: Event) -> bool:
        return known_before(history, p, q, moments, error, session=session)

    must = {q: {p for p in moments if p != q and before(p, q)} for q in moments}
    written = {t: _written(history[t], len(history[t].ops)) for t in included}
    failed: set[object] = set()

    def step(
        done: frozenset[Event],
        snapshots: frozenset[int],
        locks: frozenset[tuple[int, str]],
        store: dict[str, object],
    ) -> bool:
        if len(done) == len(moments):
            return True
        state = (done, tuple(sorted(store.items(), key=str)))
        if state in failed:
            return False
        for event in moments:
            if event in done or not must[event] <= done:
                continue
            t = event.txn
            new_snapshots, new_locks, new_store = snapshots, locks, store
            if event.kind == "snapshot":
                if run(history[t], store, set()) is None:
                    continue
                if kind.exclusive and any(written[u].keys() & written[t].keys() for u in snapshots):
                    continue
                new_snapshots = snapshots | {t}
            elif event.kind == "read":
                if not statement_reads(history[t], event.place, store):
                    continue
            elif event.kind == "lock":
                if any(key == event.key and u != t for u, key in locks):
                    continue
                new_locks = locks | {(t, event.key)}
            else:
                new_snapshots = snapshots - {t}
                new_locks = frozenset(lock for lock in locks if lock[0] != t)
                new_store = {**store, **written[t]}
            if step(done | {event}, new_snapshots, new_locks, new_store):
                return True
        failed.add(state)
        return False

    return step(frozenset(), frozenset(), frozenset(), initial)


def _written(t: Txn, until: int) -> dict[str, object]:
    """What the first operations of a transaction write."""
    return {op[1]: None if op[0] == "delete" else op[2] for op in t.ops[:until] if is_write(op)}


def statement_reads(t: Txn, statement: float, store: dict[str, object]) -> bool:
    """Whether the reads of a statement return this, own writes seen."""
    for j, op in enumerate(t.ops):
        if t.statement(j) == statement and not is_write(op):
            own = _written(t, j)
            if not sees(op, {**store, **own}, store, own, set()):
                return False
    return True
