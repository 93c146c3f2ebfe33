"""Databases at work in real time, with clients whose clocks are off: what they note is allowed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

from .generate_rows import random_predicate
from .history import UNKNOWN, History, Op, Txn, has_moments, is_write, sort_by_session
from .moments import Kind
from .predicates import matches


@dataclass(slots=True)
class _Running:
    session: int
    begin: int
    todo: list[tuple[Any, ...]]
    ops: list[Op] = field(default_factory=list)
    times: list[tuple[int, int]] = field(default_factory=list)
    own: dict[str, Any] = field(default_factory=dict)
    snapshot: dict[str, Any] | None = None
    taken: int = 0
    sent: int | None = None
    answer: list[Op] = field(default_factory=list)
    commit: int | None = None
    committed: bool = False


def timed_history(
    rng: random.Random,
    kind: Kind,
    *,
    error: int = 0,
    transactions: int = 4,
    rows: bool = False,
    fault: bool = False,
) -> History:
    """What the clients of one database note.

    Args:
        rng: where all draws come from.
        kind: what the database does.
        error: no two clocks differ by more.
        transactions: how many are begun.
        rows: predicate reads, inserts and deletes among the operations.
        fault: now and then a snapshot is older than it should be, or a conflict goes unnoticed.
    """
    sessions = rng.randint(2, 3)
    offset = {s: rng.randint(0, error) for s in range(sessions)}
    names = "xyz"[: rng.choice((1, 1, 1, 2, 2, 2, 3))]
    store: dict[str, Any] = {}
    past: list[dict[str, Any]] = [{}]
    changed: dict[str, int] = {}
    locks: dict[str, _Running] = {}
    running: dict[int, _Running] = {}
    txns: list[Txn] = []
    clock, value, left = 0, 0, transactions
    few = rng.random() < 0.4
    together = rng.random() < 0.4  # statements that return several rows, each told by itself

    def finish(t: _Running, status: Any) -> None:
        nonlocal running
        for key in [k for k, by in locks.items() if by is t]:
            del locks[key]
        ops, times = t.ops, t.times
        if status == "maybe":
            ops = [("r", o[1], UNKNOWN) if o[0] in ("r", "in", "notin") else o for o in ops]
            kept = [j for j, o in enumerate(ops) if o[0] != "scan"]
            ops, times = [ops[j] for j in kept], [times[j] for j in kept]
        off = offset[t.session]
        txns.append(
            Txn(
                t.session,
                tuple(ops),
                status,
                t.begin + off,
                None if status == "maybe" else clock + off,
                times=tuple((a + off, b + off) for a, b in times),
                commit=None if t.commit is None else t.commit + off,
            )
        )
        del running[t.session]

    def plan() -> list[tuple[Any, ...]]:
        out: list[tuple[Any, ...]] = []
        for _ in range(rng.randint(1, 3)):
            key = rng.choice(names)
            draw = rng.random()
            if together and rng.random() < 0.5:
                out.append(("together", rng.sample(names, len(names))))
            elif rows and draw < 0.35:
                out.append(("scan", random_predicate(rng, columns=False)))
            elif draw < 0.5:
                out.append((rng.choice(("r", "r", "in", "notin")), key))
            else:
                out.append((rng.choice(("w", "w", "delete")) if rows else "w", key))
        return out

    def effect(t: _Running) -> bool:
        """The next operation has its effect, unless it waits for a lock."""
        nonlocal value
        op = t.todo[0]
        taking = kind.snapshot == "first statement" or not is_write(op)
        if kind.snapshot != "statement" and t.snapshot is None and taking:
            old = fault and rng.random() < 0.3
            t.taken = max(0, len(past) - 1 - (rng.randint(1, 2) if old else 0))
            t.snapshot = past[t.taken]
        base = t.snapshot or {}
        if kind.snapshot == "statement":
            old = fault and rng.random() < 0.15
            base = rng.choice(past[-3:]) if old else store
        if is_write(op):
            key = op[1]
            if kind.locks and locks.get(key, t) is not t and not (fault and rng.random() < 0.1):
                return False
            if kind.locks:
                locks[key] = t
            if op[0] == "delete" and {**store, **base, **t.own}.get(key) is None:
                op = ("w", key)
            value += 1
            new = None if op[0] == "delete" else rng.randint(1, 2) if few or rows else value
            t.own[key] = new
            t.answer = [op if op[0] == "delete" else ("w", key, new)]
            return True
        state = {**base, **t.own}
        if op[0] == "together":
            odd = {**rng.choice(past[-3:]), **t.own} if fault and rng.random() < 0.3 else state
            t.answer = [("r", k, (state if i else odd).get(k)) for i, k in enumerate(op[1])]
            return True
        if op[0] == "scan":
            found = [(k, v) for k, v in state.items() if matches(op[1], k, v)]
            t.answer = [(*op, tuple(found))]
            return True
        seen = state.get(op[1])
        others = [v for v in (None, 1, 2, 3) if v != seen]
        some = tuple(rng.sample(others, rng.randint(1, 2)))
        t.answer = [
            {
                "r": ("r", op[1], seen),
                "in": ("in", op[1], (seen, *some)),
                "notin": ("notin", op[1], some),
            }[op[0]]
        ]
        return True

    def conflict(t: _Running) -> bool:
        late = kind.exclusive and any(changed.get(k, 0) > t.taken for k in t.own)
        return late and not (fault and rng.random() < 0.3)

    waiting = 0
    while left or running:
        clock += rng.choice((0, 1, 1, 2))
        session = rng.randrange(sessions)
        t = running.get(session)
        if t is None:
            if left:
                left -= 1
                running[session] = _Running(session, clock, plan())
            continue
        if t.todo:
            if t.sent is None:
                t.sent = clock
            elif not t.answer:
                waiting = 0 if effect(t) else waiting + 1
                if waiting > 20:  # a deadlock
                    finish(t, "aborted")
                    waiting = 0
            else:
                t.todo.pop(0)
                t.ops += t.answer
                t.times += [(t.sent, clock)] * len(t.answer)
                t.sent, t.answer = None, []
                if conflict(t):
                    finish(t, "aborted")
        elif t.commit is None:
            t.commit = clock
        elif not t.committed:
            if conflict(t):
                finish(t, "aborted")
                continue
            if rng.random() < 0.05:
                finish(t, "maybe")
                continue
            store = {**store, **t.own}
            changed |= dict.fromkeys(t.own, len(past))
            past.append(store)
            t.committed = True
            if rng.random() < 0.05:
                finish(t, "maybe")
        else:
            finish(t, "committed")
    return sort_by_session(txns)


def partly_noted(rng: random.Random, history: History) -> History:
    """The history as clients tell it that do not note all times of what they do.

    A transaction has its begin and its end, except where it did not commit, and beside them: none
    of its times; only when COMMIT was sent; all but that; or those of some operations, of which
    some are known to be sent and not to be answered, or the other way round.
    """
    return tuple(
        _partly(rng, t) if t.times is not None and rng.random() < 0.7 else t for t in history
    )


def _partly(rng: random.Random, t: Txn) -> Txn:
    times = t.times or ()
    what = rng.random()
    if what < 0.2:
        return replace(t, times=None, commit=None)
    if what < 0.35:
        times = (None,) * len(times)
    elif what > 0.5:
        times = tuple(None if rng.random() < 0.4 else _some_of(rng, pair) for pair in times)
    commit = t.commit if what < 0.35 or (what > 0.5 and rng.random() < 0.7) else None
    begin = None if t.status != "committed" and rng.random() < 0.15 else t.begin
    said = any(times) or commit is not None
    return replace(t, begin=begin, times=times if said else None, commit=commit)


def _some_of(rng: random.Random, pair: tuple[int | None, int | None] | None) -> Any:
    """The pair, mostly; or with one of both times unknown."""
    if pair is None or rng.random() < 0.8:
        return pair
    return (pair[0], None) if rng.random() < 0.5 else (None, pair[1])


def as_files_say(rng: random.Random, history: History) -> History:
    """The same as only a file can say it: of some COMMITs it says when they were answered.

    Now and then its lines alone say when transactions began and ended.
    """
    by_lines = rng.random() < 0.6

    def answered(t: Txn) -> int | None:
        if t.end is None or not has_moments(t) or rng.random() < 0.3:
            return None
        known = [at for p in t.times or () if p for at in p if at is not None]
        return rng.randint(max([*known, t.end if t.commit is None else t.commit]), t.end)

    return tuple(replace(t, by_lines=by_lines, answered=answered(t)) for t in history)


def disturbed(rng: random.Random, history: History) -> History:
    """One time or one read is another one; the times of a session stay in order."""
    i = rng.randrange(len(history))
    t = history[i]
    if rng.random() < 0.5 and t.times and t.ops:
        j = rng.randrange(len(t.ops))
        if t.ops[j][0] == "r" and t.ops[j][2] != UNKNOWN:
            seen = rng.choice((None, 1, 2, 3))
            ops = (*t.ops[:j], ("r", t.ops[j][1], seen), *t.ops[j + 1 :])
            return (*history[:i], replace(t, ops=ops), *history[i + 1 :])
    if t.times is None:
        return history
    return (*history[:i], moved(t, rng.choice((-3, -2, -1, 1, 2, 3))), *history[i + 1 :])


def moved(t: Txn, by: int) -> Txn:
    """The transaction with all of its times by so much later."""

    def later(at: int | None) -> int | None:
        return None if at is None else at + by

    return replace(
        t,
        begin=later(t.begin),
        end=later(t.end),
        times=t.times and tuple(pair and (later(pair[0]), later(pair[1])) for pair in t.times),
        commit=later(t.commit),
        answered=later(t.answered),
    )
