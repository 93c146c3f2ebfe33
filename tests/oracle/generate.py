"""Small histories in which isolation levels differ.

Of 2,000 plain random histories three separate SER from SI and none PC from SI, so most of these
start from a history that is known to separate two levels (the litmus files), or from a simulated
database with a fault, and are changed.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, permutations
from typing import Any

from support.paths import TESTS

from .history import (
    UNKNOWN,
    History,
    Op,
    Txn,
    has_time,
    is_list_key,
    keys,
    parse,
    sort_by_session,
    with_wide_times,
    without_time,
)

LITMUS = TESTS / "litmus"

MAX_TXNS = 7


@lru_cache(maxsize=1)
def litmus_table() -> list[dict[str, str]]:
    """The rows of ``litmus/expected.csv``."""
    with (LITMUS / "expected.csv").open(newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


@lru_cache(maxsize=1)
def litmus_histories() -> list[History]:
    return [parse(row["operations"]) for row in litmus_table()]


# --- plain random ---


def random_history(rng: random.Random, *, times: bool = False) -> History:
    """Two to five transactions of one to three operations, without any idea."""
    return (_random_lists if rng.random() < 1 / 3 else _random_registers)(rng, times)


def _random_txn(rng: random.Random, ops: list[Op], times: bool) -> Txn:
    status: Any = rng.choice(["committed"] * 6 + ["maybe", "aborted"])
    begin = rng.randint(0, 6) if times else None
    end = None if begin is None or status == "maybe" else begin + rng.randint(0, 4)
    return Txn(rng.randint(0, 2), tuple(ops), status, begin, end)


def _random_registers(rng: random.Random, times: bool) -> History:
    names, values = "xy"[: rng.randint(1, 2)], rng.randint(1, 3)
    txns = []
    for _ in range(rng.randint(2, 5)):
        ops: list[Op] = []
        for _ in range(rng.randint(1, 3)):
            key = rng.choice(names)
            if rng.random() < 0.5:
                ops.append(("w", key, rng.randint(1, values)))
            else:
                ops.append(("r", key, rng.choice([None, *range(1, values + 1)])))
        txns.append(_random_txn(rng, ops, times))
    return sort_by_session(txns)


def _random_lists(rng: random.Random, times: bool) -> History:
    names = "xy"[: rng.randint(1, 2)]
    txns, element = [], 0
    for _ in range(rng.randint(2, 5)):
        ops: list[Op] = []
        for _ in range(rng.randint(1, 3)):
            element += 1
            key = rng.choice(names)
            ops.append(("append", key, element) if rng.random() < 0.5 else ("r", key, ()))
        txns.append(_random_txn(rng, ops, times))
    return _fill_list_reads(rng, sort_by_session(txns))


def _empty_list(rng: random.Random) -> tuple[()] | None:
    """What a read of an empty list returns: databases say ``[]`` or nil, and some say both."""
    return rng.choice([(), None])


def _fill_list_reads(rng: random.Random, history: History) -> History:
    """Gives each list read a prefix of one order of the key's elements."""
    elements: dict[str, list[Any]] = {}
    for t in history:
        if t.status == "aborted" and rng.random() < 0.9:
            continue
        for kind, key, value in t.ops:
            if kind == "append":
                elements.setdefault(key, []).append(value)
    for order in elements.values():
        if rng.random() < 0.4:
            rng.shuffle(order)

    def fill(op: Op) -> Op:
        if op[0] != "r" or op[2] == UNKNOWN:
            return op
        order = elements.get(op[1], [])
        return ("r", op[1], tuple(order[: rng.randint(0, len(order))]) or _empty_list(rng))

    return tuple(replace(t, ops=tuple(map(fill, t.ops))) for t in history)


# --- mutations ---


def _replace_txn(history: History, i: int, t: Txn | None) -> History:
    return history[:i] + (() if t is None else (t,)) + history[i + 1 :]


def _replace_op(history: History, i: int, j: int, *ops: Op) -> History:
    t = history[i]
    return _replace_txn(history, i, replace(t, ops=t.ops[:j] + ops + t.ops[j + 1 :]))


def _pick_op(rng: random.Random, history: History, kind: str) -> tuple[int, int] | None:
    found = [
        (i, j)
        for i, t in enumerate(history)
        for j, op in enumerate(t.ops)
        if kind in (op[0], "any") and op[2] != UNKNOWN
    ]
    return rng.choice(found) if found else None


def _values(history: History, key: str) -> list[Any]:
    return sorted({o[2] for t in history for o in t.ops if o[1] == key and o[0] in ("w", "append")})


def change_source(rng: random.Random, history: History) -> History:
    """One read returns something else."""
    at = _pick_op(rng, history, "r")
    if at is None:
        return history
    _, key, value = history[at[0]].ops[at[1]]
    if is_list_key(history, key):
        elements = list(value or ())
        missing = [v for v in _values(history, key) if v not in elements]
        choice = rng.random()
        if missing and choice < 0.5:
            elements.append(rng.choice(missing))
        elif elements and choice < 0.9:
            elements.pop(-1 if rng.random() < 0.8 else rng.randrange(len(elements)))
        elif len(elements) > 1:
            rng.shuffle(elements)
        return _replace_op(history, *at, ("r", key, tuple(elements) or _empty_list(rng)))
    return _replace_op(history, *at, ("r", key, rng.choice([None, *_values(history, key)])))


def duplicate_value(rng: random.Random, history: History) -> History:
    """Two values of a register become one, in writes and in reads."""
    names = [k for k in keys(history) if not is_list_key(history, k)]
    if not names:
        return history
    key = rng.choice(names)
    values = _values(history, key)
    if len(values) < 2:
        return history
    a, b = rng.sample(values, 2)

    def merge(op: Op) -> Op:
        return (op[0], key, a) if op[1] == key and op[2] == b else op

    return tuple(replace(t, ops=tuple(map(merge, t.ops))) for t in history)


def change_written(rng: random.Random, history: History) -> History:
    """One write of a register writes another value, its readers not following."""
    at = _pick_op(rng, history, "w")
    if at is None:
        return history
    key = history[at[0]].ops[at[1]][1]
    return _replace_op(history, *at, ("w", key, rng.choice([*_values(history, key), 9])))


def drop_op(rng: random.Random, history: History) -> History:
    at = _pick_op(rng, history, "any")
    if at is None:
        return history
    if len(history[at[0]].ops) == 1:
        return _replace_txn(history, at[0], None)
    return _replace_op(history, *at)


def swap_ops(rng: random.Random, history: History) -> History:
    """The operations of one transaction in another order."""
    i = rng.randrange(len(history))
    ops = list(history[i].ops)
    rng.shuffle(ops)
    return _replace_txn(history, i, replace(history[i], ops=tuple(ops)))


def add_read(rng: random.Random, history: History) -> History:
    """One more read, of something that was written, at any place of some transaction."""
    i = rng.randrange(len(history))
    key = rng.choice(keys(history))
    value: Any
    if is_list_key(history, key):
        seen = [o[2] for t in history for o in t.ops if o[1] == key and isinstance(o[2], tuple)]
        value = rng.choice([_empty_list(rng), *seen])
    else:
        value = rng.choice([None, *_values(history, key)])
    ops = list(history[i].ops)
    ops.insert(rng.randint(0, len(ops)), ("r", key, value))
    return _replace_txn(history, i, replace(history[i], ops=tuple(ops)))


def _fresh(history: History, key: str) -> int:
    return max([v for v in _values(history, key) if isinstance(v, int)], default=0) + 1


def add_write(rng: random.Random, history: History) -> History:
    """One more write: fresh, or (registers) of a value written before, perhaps of a new key."""
    i = rng.randrange(len(history))
    key = rng.choice([*keys(history), "p"])
    ops = list(history[i].ops)
    if is_list_key(history, key):
        op: Op = ("append", key, _fresh(history, key))
    else:
        op = ("w", key, rng.choice([_fresh(history, key), *_values(history, key)]))
    ops.insert(rng.randint(0, len(ops)), op)
    return _replace_txn(history, i, replace(history[i], ops=tuple(ops)))


def add_txn(rng: random.Random, history: History) -> History:
    """Padding: one more transaction, on its own session or on another one's."""
    if len(history) >= MAX_TXNS:
        return history
    session = rng.choice([t.session for t in history] + [99, 99])
    begin = end = None
    if has_time(history):
        begin = rng.randint(0, 12)
        end = begin + rng.randint(0, 6)
    empty = Txn(session, (), "committed", begin, end)
    place = rng.randint(0, len(history))
    longer = (*history[:place], empty, *history[place:])
    for _ in range(rng.randint(1, 2)):
        key = rng.choice(keys(history))
        if is_list_key(history, key):
            seen = [o[2] for t in history for o in t.ops if o[1] == key and isinstance(o[2], tuple)]
            op: Op = (
                ("append", key, _fresh(longer, key))
                if rng.random() < 0.5
                else ("r", key, rng.choice([_empty_list(rng), *seen]))
            )
        elif rng.random() < 0.5:
            op = ("w", key, rng.choice([_fresh(longer, key), *_values(longer, key)]))
        else:
            op = ("r", key, rng.choice([None, *_values(longer, key)]))
        t = longer[place]
        longer = _replace_txn(longer, place, replace(t, ops=(*t.ops, op)))
    return sort_by_session(longer)


def merge_sessions(rng: random.Random, history: History) -> History:
    sessions = sorted({t.session for t in history})
    if len(sessions) < 2:
        return history
    a, b = rng.sample(sessions, 2)
    order = list(history)
    if rng.random() < 0.5:
        order.reverse()
        # each session keeps its own order, only which one comes first changes
        order = sorted(history, key=lambda t: (t.session == a, t.session))
    return sort_by_session(replace(t, session=a) if t.session == b else t for t in order)


def split_session(rng: random.Random, history: History) -> History:
    """One transaction leaves its session."""
    i = rng.randrange(len(history))
    return sort_by_session(_replace_txn(history, i, replace(history[i], session=99)))


def reorder_session(rng: random.Random, history: History) -> History:
    order = list(history)
    rng.shuffle(order)
    return sort_by_session(order)


def change_status(rng: random.Random, history: History) -> History:
    """A commit becomes unknown, or an abort."""
    i = rng.randrange(len(history))
    status: Any = rng.choice(["maybe", "maybe", "aborted", "committed"])
    t = replace(history[i], status=status)
    if status == "maybe":
        if rng.random() < 0.5:  # what its reads returned was lost with the answer
            t = replace(t, ops=tuple(("r", o[1], UNKNOWN) if o[0] == "r" else o for o in t.ops))
    elif any(o[2] == UNKNOWN for o in t.ops):
        t = replace(t, ops=tuple(o for o in t.ops if o[2] != UNKNOWN))
        if not t.ops:
            return history
    return _replace_txn(history, i, t)


def split_txn(rng: random.Random, history: History) -> History:
    """One transaction becomes two of its session."""
    candidates = [i for i, t in enumerate(history) if len(t.ops) > 1]
    if not candidates or len(history) >= MAX_TXNS:
        return history
    i = rng.choice(candidates)
    t = history[i]
    cut = rng.randint(1, len(t.ops) - 1)
    halves = (replace(t, ops=t.ops[:cut]), replace(t, ops=t.ops[cut:]))
    return (*history[:i], *halves, *history[i + 1 :])


def merge_txns(rng: random.Random, history: History) -> History:
    """Two neighbours of a session become one transaction."""
    candidates = [
        i for i in range(len(history) - 1) if history[i].session == history[i + 1].session
    ]
    if not candidates:
        return history
    i = rng.choice(candidates)
    a, b = history[i], history[i + 1]
    return (*history[:i], replace(b, ops=a.ops + b.ops, begin=a.begin), *history[i + 2 :])


def copy_txn(rng: random.Random, history: History) -> History:
    """The same transaction again elsewhere: equal values, several sources."""
    if len(history) >= MAX_TXNS or any(is_list_key(history, k) for k in keys(history)):
        return history
    t = rng.choice(history)
    return sort_by_session((*history, replace(t, session=rng.choice([t.session, 99]))))


def random_times(rng: random.Random, history: History) -> History:
    """Real-time intervals under which sessions run in order."""
    clock: dict[int, int] = {}
    span = rng.choice([2, 4, 12])
    out = []
    for t in history:
        begin = max(clock.get(t.session, 0), rng.randint(0, 10))
        end = begin + rng.randint(0, span)
        clock[t.session] = end + rng.randint(0, 1)
        out.append(replace(t, begin=begin, end=end))
    return tuple(out)


def nudge_time(rng: random.Random, history: History) -> History:
    """One transaction begins or ends at another moment (its session need not be sequential any
    more).
    """
    if not has_time(history):
        return random_times(rng, history)
    i = rng.randrange(len(history))
    t = history[i]
    begin = max(0, (t.begin or 0) + rng.randint(-3, 3))
    end = begin + rng.randint(0, 4)
    return _replace_txn(history, i, replace(t, begin=begin, end=end))


def rename_key(rng: random.Random, history: History) -> History:
    """Two register keys become one."""
    names = [k for k in keys(history) if not is_list_key(history, k)]
    if len(names) < 2:
        return history
    a, b = rng.sample(names, 2)

    def rename(op: Op) -> Op:
        return (op[0], a, op[2]) if op[1] == b else op

    return tuple(replace(t, ops=tuple(map(rename, t.ops))) for t in history)


def to_lists(rng: random.Random, history: History) -> History:
    """Registers become lists: a read of v returns the elements up to v in some order of the
    writes.
    """
    number, order = 0, {}
    txns = []
    for t in history:
        ops: list[Op] = []
        for kind, key, value in t.ops:
            if kind == "w" and not is_list_key(history, key):
                number += 1
                if t.status != "aborted":
                    order.setdefault(key, []).append((number, value))
                ops.append(("append", key, number))
            else:
                ops.append((kind, key, value))
        txns.append(replace(t, ops=tuple(ops)))
    for elements in order.values():
        if rng.random() < 0.7:
            rng.shuffle(elements)

    def convert(op: Op) -> Op:
        kind, key, value = op
        if kind != "r" or isinstance(value, tuple) or value == UNKNOWN:
            return op
        elements = order.get(key, [])
        stops = [n for n, (_, v) in enumerate(elements) if v == value]
        if value is None or not stops:
            return ("r", key, _empty_list(rng))
        return ("r", key, tuple(e for e, _ in elements[: rng.choice(stops) + 1]))

    return tuple(replace(t, ops=tuple(map(convert, t.ops))) for t in txns)


MUTATIONS: tuple[Callable[[random.Random, History], History], ...] = (
    change_source,
    change_source,
    change_source,
    duplicate_value,
    duplicate_value,
    change_written,
    drop_op,
    swap_ops,
    add_read,
    add_read,
    add_write,
    add_write,
    add_txn,
    add_txn,
    merge_sessions,
    split_session,
    reorder_session,
    change_status,
    split_txn,
    merge_txns,
    copy_txn,
    rename_key,
    nudge_time,
)


# --- what is rare, and allowed ---


def add_empty(rng: random.Random, history: History) -> History:
    """A transaction without operations, of any session and status."""
    session = rng.choice([t.session for t in history] + [99])
    status: Any = rng.choice(["committed", "committed", "maybe", "aborted"])
    begin = rng.randint(0, 10) if has_time(history) else None
    end = None if begin is None else begin + rng.randint(0, 4)
    place = rng.randint(0, len(history))
    empty = Txn(session, (), status, begin, end)
    return sort_by_session((*history[:place], empty, *history[place:]))


def _list_read(rng: random.Random, history: History) -> tuple[int, int] | None:
    found = [
        (i, j)
        for i, t in enumerate(history)
        for j, op in enumerate(t.ops)
        if op[0] == "r" and op[2] != UNKNOWN and is_list_key(history, op[1])
    ]
    return rng.choice(found) if found else None


def nil_for_empty(rng: random.Random, history: History) -> History:
    """A list read returns nil, which is the empty list."""
    at = _list_read(rng, history)
    if at is None:
        return history
    return _replace_op(history, *at, ("r", history[at[0]].ops[at[1]][1], None))


def repeat_element(rng: random.Random, history: History) -> History:
    """A list read shows one of its elements once more, at any place."""
    at = _list_read(rng, history)
    if at is None:
        return history
    _, key, value = history[at[0]].ops[at[1]]
    elements = list(value or ())
    if not elements:
        return history
    elements.insert(rng.randint(0, len(elements)), rng.choice(elements))
    return _replace_op(history, *at, ("r", key, tuple(elements)))


def tear_append(rng: random.Random, history: History) -> History:
    """A transaction appends twice to a key, and a list read shows one of the two, or both apart."""
    appends = [
        (i, j) for i, t in enumerate(history) for j, op in enumerate(t.ops) if op[0] == "append"
    ]
    if not appends:
        return history
    i, j = rng.choice(appends)
    key, element = history[i].ops[j][1], history[i].ops[j][2]
    other = _fresh(history, key)
    history = _replace_op(history, i, j, ("append", key, element), ("append", key, other))
    at = _list_read(rng, history)
    if at is None or history[at[0]].ops[at[1]][1] != key:
        return history
    elements = list(history[at[0]].ops[at[1]][2] or ())
    elements.insert(rng.randint(0, len(elements)), other)
    return _replace_op(history, *at, ("r", key, tuple(elements)))


def read_again(rng: random.Random, history: History) -> History:
    """A transaction reads a key once more, and sees the same, perhaps nil for the empty list."""
    at = _pick_op(rng, history, "r")
    if at is None:
        return history
    read = history[at[0]].ops[at[1]]
    same = read if read[2] not in (None, ()) else ("r", read[1], rng.choice([None, read[2]]))
    return _replace_op(history, *at, read, same)


def contradicting_lists(rng: random.Random) -> History:
    """List reads that repeat, lack and mix up elements, or show some that nobody appended."""
    names = "xy"[: rng.randint(1, 2)]
    appends: list[list[Op]] = [[] for _ in range(rng.randint(1, 4))]
    elements: dict[str, list[object]] = {key: [] for key in names}
    for ops in appends:
        for _ in range(rng.randint(0, 3)):
            key = rng.choice(names)
            elements[key].append(len(elements[key]) + 1)
            ops.append(("append", key, len(elements[key])))
    final = {key: rng.sample(all_of, len(all_of)) for key, all_of in elements.items()}

    def read() -> Op:
        key = rng.choice(names)
        shown = final[key][: rng.randint(0, len(final[key]))]
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            kind = rng.random()
            if shown and kind < 0.4:
                shown.insert(rng.randint(0, len(shown)), rng.choice(shown))
            elif shown and kind < 0.6:
                shown.pop(rng.randrange(len(shown)))
            elif shown and kind < 0.7:
                rng.shuffle(shown)
            else:
                shown.insert(rng.randint(0, len(shown)), 99)
        return ("r", key, tuple(shown))

    for ops in appends:
        if rng.random() < 0.3:
            ops.insert(rng.randint(0, len(ops)), read())
    reads = [[read() for _ in range(rng.choice([1, 1, 2]))] for _ in range(rng.randint(1, 4))]
    return tuple(Txn(session, tuple(ops)) for session, ops in enumerate((*appends, *reads)))


UNUSUAL: tuple[Callable[[random.Random, History], History], ...] = (
    add_empty,
    add_empty,
    nil_for_empty,
    nil_for_empty,
    repeat_element,
    tear_append,
    read_again,
)


def unusual(rng: random.Random, history: History) -> History:
    """A history after one to three changes that people's databases seldom make."""
    changed = history
    for _ in range(rng.randint(1, 3)):
        changed = rng.choice(UNUSUAL)(rng, changed)
    return changed if well_formed(changed) else history


def mutated_litmus(rng: random.Random) -> History:
    """A litmus history after a few changes."""
    history = rng.choice(litmus_histories())
    if rng.random() < 0.25:
        history = to_lists(rng, history)
    if rng.random() < 0.5:
        history = random_times(rng, without_time(history))
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4, 6])):
        history = rng.choice(MUTATIONS)(rng, history) or history
    return history


# --- histories that separate neighbouring levels ---

_SEPARATING = (
    "write-skew",
    "three-way-write-skew",
    "write-skew-then-read",
    "read-only-anomaly",
    "long-fork",
    "long-fork-in-sessions",
    "long-fork-list",
    "lost-update",
    "lost-update-seen",
    "lost-update-list",
    "causality-violation",
    "causality-violation",
    "causality-violation",
    "non-monotonic-session-reads",
    "fractured-read",
    "session-only-cycle",
    "stale-read-in-session",
    "stale-read-in-real-time",
    "monotonic-reads-later-write",
)
_GENTLE: tuple[Callable[[random.Random, History], History], ...] = (
    add_txn,
    add_read,
    add_write,
    merge_sessions,
    split_session,
    reorder_session,
    swap_ops,
    split_txn,
    copy_txn,
)


def separating(rng: random.Random) -> History:
    """A history that separates two levels, after changes that mostly leave that as it is.

    Real time, if there is any, mostly adds nothing to session order, so that what separates SI from
    SER separates strong SI from SSER; or nothing at all, so that to both sessions matter.
    """
    table = {row["history"]: row["operations"] for row in litmus_table()}
    while True:
        history = without_time(parse(table[rng.choice(_SEPARATING)]))
        if rng.random() < 0.25:
            history = to_lists(rng, history)
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            history = rng.choice(_GENTLE)(rng, history) or history
        kind = rng.random()
        if kind < 0.3:
            history = with_wide_times(history)
        elif kind < 0.45:  # all at once, also those of one session
            history = tuple(replace(t, begin=0, end=9) for t in history)
        elif kind < 0.6:
            history = random_times(rng, history)
        if len(history) <= MAX_TXNS and well_formed(history):
            return history


# --- simulated databases ---


STORES = ("serial", "snapshot", "prefix", "committed", "dirty")
FAULTS = ("stale-snapshot", "lost-write", "early-value", "wrong-abort")


def simulated(rng: random.Random) -> History:
    """What clients of a small store see, at some isolation level, sometimes with a fault."""
    level = rng.choice(["serial", "snapshot", "snapshot", "prefix", "prefix", "committed", "dirty"])
    history = run_store(
        rng,
        level,
        fault=rng.choice([None, None, *FAULTS]),
        lists=rng.random() < 0.3,
        keys=rng.randint(1, 3),
        transactions=rng.randint(3, 6),
        sessions=rng.randint(2, 4),
    )
    return history if rng.random() < 0.5 else without_time(history)


def run_store(
    rng: random.Random,
    level: str,
    *,
    fault: str | None = None,
    lists: bool = False,
    keys: int = 3,
    transactions: int = 6,
    sessions: int = 3,
) -> History:
    """Runs clients against a store; their history, with real time.

    Snapshots are versions of the whole store. ``serial`` runs one transaction at a time;
    ``snapshot`` aborts the second committer of a key; ``prefix`` does not; ``committed`` reads the
    newest committed values; ``dirty`` also reads what others have not committed.
    """
    names = [f"k{i}" for i in range(keys)] if keys > 3 else "xyz"[:keys]
    few_values = not lists and rng.random() < 0.5
    read_modify_write = rng.random() < 0.5
    versions: list[dict[str, Any]] = [{}]
    writers: dict[str, int] = {}  # key -> version that wrote it last
    running: dict[int, dict[str, Any]] = {}
    txns: list[Txn] = []
    started = clock = element = 0
    while started < transactions or running:
        clock += rng.randint(0, 1)
        session = rng.randrange(sessions)
        t = running.get(session)
        if t is None:
            if started == transactions or (level == "serial" and running):
                continue
            age = len(versions) - 1
            if fault == "stale-snapshot" and rng.random() < 0.4:
                age = max(0, age - rng.randint(1, 2))
            started += 1
            todo = []
            for _ in range(rng.randint(1, 3)):
                key = rng.choice(names)
                if read_modify_write and rng.random() < 0.6:
                    todo += [("r", key), ("w", key)]
                else:
                    todo.append((rng.choice("rw"), key))
            running[session] = {"age": age, "todo": todo, "ops": [], "own": {}, "begin": clock}
            continue
        if t["todo"]:
            kind, key = t["todo"].pop(0)
            if kind == "w":
                element += 1
                value = rng.randint(1, 2) if few_values else element
                t["own"].setdefault(key, []).append(value)
                t["ops"].append(("append" if lists else "w", key, value))
                continue
            newest = len(versions) - 1
            base = versions[t["age"] if level in ("serial", "snapshot", "prefix") else newest].get(
                key
            )
            if level == "dirty" or (fault == "early-value" and rng.random() < 0.3):
                for other in running.values():
                    if other is not t and key in other["own"]:
                        extra = other["own"][key]
                        base = (*(base or ()), *extra) if lists else extra[-1]
            own = t["own"].get(key)
            if lists:
                seen: Any = (*(base or ()), *(own or ()))
            else:
                seen = own[-1] if own else base
            t["ops"].append(("r", key, seen))
            continue
        del running[session]
        conflict = level in ("serial", "snapshot") and any(
            writers.get(key, 0) > t["age"] for key in t["own"]
        )
        fate = rng.random()
        status: Any = "committed"
        applied = True
        if conflict or fate < 0.05:
            status, applied = "aborted", fault == "wrong-abort" and rng.random() < 0.5
        elif fate < 0.15:
            status, applied = "maybe", rng.random() < 0.5
        if fault == "lost-write" and rng.random() < 0.3:
            applied = False
        if applied:
            store = dict(versions[-1])
            for key, values in t["own"].items():
                store[key] = (*store.get(key, ()), *values) if lists else values[-1]
                writers[key] = len(versions)
            versions.append(store)
        ops = t["ops"]
        if status == "maybe":
            ops = [("r", o[1], UNKNOWN) if o[0] == "r" else o for o in ops]
        end = clock
        txns.append(Txn(session, tuple(ops), status, t["begin"], end))
    return sort_by_session(txns)


SOURCES: dict[str, Callable[[random.Random], History]] = {
    "mutated litmus": mutated_litmus,
    "simulated": simulated,
    "random": lambda rng: random_history(rng, times=rng.random() < 0.5),
}


def any_history(rng: random.Random) -> History:
    """One history from any source, the ones that separate levels more often."""
    source = rng.choices(list(SOURCES), weights=[6, 3, 1])[0]
    while True:
        history = SOURCES[source](rng)
        if history and well_formed(history):
            return history


def well_formed(history: History) -> bool:
    """Whether the tool takes it: what it refuses, with a message, is no matter of isolation.

    It refuses a key that is both register and list, an element appended twice, a row returned
    twice by one statement, and a transaction that ends before it begins, or does anything outside.
    """
    kinds: dict[str, set[str]] = {}
    elements: set[tuple[str, Any]] = set()
    for t in history:
        if not _in_order(t):
            return False
        for op in t.ops:
            kind, key, value = op if len(op) == 3 else (*op, None)
            if kind == "scan":
                if len(dict(value)) < len(value):
                    return False
                for row, _ in value:
                    kinds.setdefault(row, set()).add("register")
            elif kind in ("in", "notin", "miss", "insert", "delete"):
                kinds.setdefault(key, set()).add("register")
            elif kind == "append":
                if (key, value) in elements:
                    return False
                elements.add((key, value))
                kinds.setdefault(key, set()).add("list")
            elif kind == "w":
                kinds.setdefault(key, set()).add("register")
            elif isinstance(value, tuple):
                kinds.setdefault(key, set()).add("list")
            elif value not in (None, UNKNOWN):
                kinds.setdefault(key, set()).add("register")
    return all(len(k) == 1 for k in kinds.values())


def _in_order(t: Txn) -> bool:
    """Whether its times are within one another; those that are not known are anywhere."""

    def ascending(*times: int | None) -> bool:
        known = [at for at in times if at is not None]
        return known == sorted(known)

    pairs = [pair for pair in t.times or () if pair]
    return (
        ascending(t.begin, t.commit, t.answered, t.end)
        and all(ascending(t.begin, *pair, t.answered, t.end) for pair in pairs)
        and all(ascending(one[0], later[1]) for one, later in combinations(pairs, 2))
    )


# --- every small history ---


def _columns() -> list[tuple[tuple[Any, Any], ...]]:
    """What three transactions may do with one key: (what it reads or "-", what it writes or None)
    each.

    Values are numbered by first write, so that renaming values gives nothing new.
    """

    def writes(n: int, used: int) -> Iterator[tuple[Any, ...]]:
        if n == 0:
            yield ()
            return
        for value in (None, *range(1, used + 2)):
            for rest in writes(n - 1, max(used, value or 0)):
                yield (value, *rest)

    out = []
    for written in writes(3, 0):
        values = sorted({v for v in written if v is not None})
        options = ["-", None, *values]
        for a in options:
            for b in options:
                for c in options:
                    out.append(tuple(zip((a, b, c), written, strict=True)))
    return out


def _normal(column: tuple[tuple[Any, Any], ...]) -> tuple[tuple[Any, Any], ...]:
    names: dict[Any, Any] = {None: None, "-": "-"}
    for _, written in column:
        names.setdefault(written, len(names) - 1)
    return tuple((names[r], names[w]) for r, w in column)


#: Which transactions share a session: all apart, the first two, all three.
_SESSIONS = ((0, 1, 2), (0, 0, 1), (0, 0, 0))


def every_small_history(offset: int = 0, step: int = 1) -> Iterator[History]:
    """Every history of at most three transactions and two registers, up to renaming.

    With ``step``, every step-th of them, beginning at number ``offset``.

    A transaction reads each key at most once, before it writes it; each value read was written,
    or is the initial one. Transactions, keys and values are up to symmetry; sessions are all
    apart, two in order and one, or one.
    """
    columns = _columns()
    number = {c: i for i, c in enumerate(columns)}
    moves = [
        [number[_normal(tuple(c[p] for p in order))] for c in columns]
        for order in permutations(range(3))
    ]
    count = -1
    for i, first in enumerate(columns):
        for j in range(i, len(columns)):
            second = columns[j]
            busy = [first[t] != _NOTHING or second[t] != _NOTHING for t in range(3)]
            if not any(busy):
                continue
            for sessions in _SESSIONS:
                if (sessions == (0, 0, 1) and not (busy[0] and busy[1])) or (
                    sessions == (0, 0, 0) and not all(busy)
                ):
                    continue  # another choice gives the same
                if sessions == (0, 1, 2) and any(
                    tuple(sorted((m[i], m[j]))) < (i, j) for m in moves
                ):
                    continue
                count += 1
                if count < offset or (count - offset) % step:
                    continue
                yield tuple(
                    Txn(sessions[t], _small_ops(first[t], second[t])) for t in range(3) if busy[t]
                )


_NOTHING = ("-", None)


def _small_ops(x: tuple[Any, Any], y: tuple[Any, Any]) -> tuple[Op, ...]:
    reads: list[Op] = [("r", key, read) for key, (read, _) in (("x", x), ("y", y)) if read != "-"]
    writes: list[Op] = [
        ("w", key, written) for key, (_, written) in (("x", x), ("y", y)) if written is not None
    ]
    return (*reads, *writes)
