"""Small histories in which levels of the literature differ: by statement, by session, by group."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

from .facts import FACTS
from .generate import MUTATIONS, any_history, random_times, well_formed
from .generate_rows import row_history, with_set_reads
from .history import History, Op, Txn, has_time, is_write, parse, sort_by_session
from .predicates import rich

#: Transactions of a history; the definitions try everything.
MOST = 4

_KNOWN: tuple[History, ...] = tuple(parse(text) for text, _ in FACTS)


def literature_history(rng: random.Random) -> History:
    """From any source below, or of the other kinds; of few transactions, mostly with times."""
    while True:
        source = rng.choice((known, known, by_statements, by_statements, by_sessions, _others))
        history = source(rng)
        if not history or len(history) > MOST or not well_formed(history):
            continue
        if not has_time(history) and rng.random() < 0.5:
            history = random_times(rng, history)
        if rich(history) and not one_by_one(history):
            continue  # a process of EDN does not
        return with_groups(rng, history) if rng.random() < 0.4 else history


def one_by_one(history: History) -> bool:
    """Whether a session begins each transaction after the end of the one before."""
    return all(
        a.end is None or b.begin is None or a.end < b.begin
        for a, b in pairwise(history)
        if a.session == b.session
    )


def _others(rng: random.Random) -> History:
    return (any_history if rng.random() < 0.7 else row_history)(rng)


def known(rng: random.Random) -> History:
    """An example of a paper, after a few changes."""
    history = rng.choice(_KNOWN)
    if all(op[0] == "r" or is_write(op) for t in history for op in t.ops):
        for _ in range(rng.choice((0, 1, 1, 2, 2, 3))):
            history = rng.choice(MUTATIONS)(rng, history) or history
        if rng.random() < 0.2:
            history = with_set_reads(rng, history)
    if rng.random() < 0.15:
        i = rng.randrange(len(history))
        history = (*history[:i], replace(history[i], status="maybe"), *history[i + 1 :])
    return history


def by_statements(rng: random.Random) -> History:
    """What clients see of a store whose statements each read a snapshot of their own.

    The snapshots of a transaction advance, mostly; a write may wait for the newest version.
    """
    names, few = "xyz"[: rng.randint(2, 3)], rng.random() < 0.4
    versions: list[dict[str, Any]] = [{}]
    txns: list[Txn] = []
    running: dict[int, dict[str, Any]] = {}
    left, value, fresh = rng.randint(3, 4), 0, rng.random() < 0.5
    while left or running:
        session = rng.randrange(4)
        t = running.get(session)
        if t is None:
            if left:
                left -= 1
                todo = rng.randint(1, 4)
                running[session] = {"todo": todo, "ops": [], "own": {}, "at": len(versions) - 1}
            continue
        if t["todo"]:
            t["todo"] -= 1
            key = rng.choice(names)
            newest = len(versions) - 1
            if rng.random() < 0.5:
                t["at"] = newest if fresh else rng.randint(t["at"], newest)
                low = 0 if rng.random() < 0.1 else t["at"]
                state = {**versions[rng.randint(low, t["at"])], **t["own"]}
                t["ops"].append(("r", key, state.get(key)))
                continue
            if rng.random() < 0.7:
                t["at"] = newest
            value += 1
            t["own"][key] = rng.randint(1, 2) if few else value
            t["ops"].append(("w", key, t["own"][key]))
            continue
        del running[session]
        versions.append({**versions[-1], **t["own"]})
        txns.append(Txn(session, tuple(t["ops"]), _status(rng)))
    return sort_by_session(txns)


def _status(rng: random.Random) -> Any:
    return rng.choice(["committed"] * 9 + ["maybe"])


def by_sessions(rng: random.Random) -> History:
    """What clients see whose sessions each have a replica: writes of a session come in its order.

    Replicas may agree on the last version of each key, and a write may be sent before what its
    session had seen.
    """
    names, sessions = "xy"[: rng.randint(1, 2)], rng.randint(2, 3)
    agree, causal, value = rng.random() < 0.5, rng.random() < 0.3, 0
    log: list[tuple[int, dict[str, tuple[int, Any]]]] = []
    applied = [[0] * sessions for _ in range(sessions)]  # how many of each session's writes
    stores: list[dict[str, tuple[int, Any]]] = [{} for _ in range(sessions)]
    of: list[list[int]] = [[] for _ in range(sessions)]  # a session's writes, in the log
    needs: list[list[int]] = []
    txns: list[Txn] = []

    def apply(session: int, other: int) -> None:
        number = of[other][applied[session][other]]
        if causal and any(a < b for a, b in zip(applied[session], needs[number], strict=True)):
            return
        applied[session][other] += 1
        for key, version in log[number][1].items():
            if not agree or version > stores[session].get(key, (-1, None)):
                stores[session][key] = version

    for _ in range(rng.randint(3, MOST)):
        session = rng.randrange(sessions)
        for other in range(sessions):
            for _ in range(rng.randint(0, len(of[other]) - applied[session][other])):
                apply(session, other)
        ops: list[Op] = []
        own: dict[str, tuple[int, Any]] = {}
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            key = rng.choice(names)
            if rng.random() < 0.5:
                value += 1
                new = value if rng.random() < 0.8 else rng.randint(1, 3)
                own[key] = (value, new)
                ops.append(("w", key, new))
            else:
                seen = {**stores[session], **own}.get(key)
                ops.append(("r", key, seen[1] if seen else None))
        txns.append(Txn(session, tuple(ops)))
        if own:
            needs.append(list(applied[session]))
            of[session].append(len(log))
            log.append((session, own))
            applied[session][session] += 1
            for key, version in own.items():
                if not agree or version > stores[session].get(key, (-1, None)):
                    stores[session][key] = version
    return sort_by_session(txns)


def with_groups(rng: random.Random, history: History) -> History:
    """Most transactions in a group, mostly those of a session in one."""
    of = {s: rng.choice(("a", "a", "b", None)) for s in sorted({t.session for t in history})}
    return tuple(
        replace(t, group=of[t.session] if rng.random() < 0.85 else rng.choice(("a", "b", None)))
        for t in history
    )
