"""Small histories with reads that say less than a version, with rows, predicates and deletes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .generate import any_history, separating
from .history import (
    UNKNOWN,
    History,
    Op,
    Row,
    Txn,
    is_list_key,
    is_write,
    keys,
    parse,
    sort_by_session,
)
from .predicates import Predicate, matches

# --- sets of versions ---


def with_set_reads(rng: random.Random, history: History) -> History:
    """Some reads of registers say less than they did, or something else; and there are more."""
    if not keys(history):
        return history
    txns = []
    for t in history:
        ops: list[Op] = []
        for op in t.ops:
            if op[0] == "r" and op[2] != UNKNOWN and not is_list_key(history, op[1]):
                ops.append(_less(rng, history, op) if rng.random() < 0.6 else op)
            else:
                ops.append(op)
        if rng.random() < 0.25:
            key = rng.choice(keys(history))
            if not is_list_key(history, key):
                ops.insert(rng.randint(0, len(ops)), _random_set(rng, history, key))
        txns.append(replace(t, ops=tuple(ops)))
    return tuple(txns)


def _versions(history: History, key: str) -> list[Any]:
    written = {op[2] for t in history for op in t.ops if op[0] == "w" and op[1] == key}
    return [None, *sorted(written)]


def _less(rng: random.Random, history: History, op: Op) -> Op:
    """The same read, as of a set that has its version, or as of one that lacks it."""
    _, key, value = op
    others = [v for v in _versions(history, key) if v != value]
    some = rng.sample(others, rng.randint(0, len(others)))
    if rng.random() < 0.4:
        return ("in", key, _shuffled(rng, [value, *some]))
    return ("notin", key, _shuffled(rng, some or [9]))


def _random_set(rng: random.Random, history: History, key: str) -> Op:
    versions = [*_versions(history, key), 9]
    some = rng.sample(versions, rng.randint(1, min(3, len(versions))))
    return (rng.choice(("in", "notin", "notin")), key, tuple(some))


def _shuffled(rng: random.Random, values: list[Any]) -> tuple[Any, ...]:
    return tuple(rng.sample(values, len(values)))


def set_history(rng: random.Random) -> History:
    """A history of any source with reads of sets."""
    source = any_history if rng.random() < 0.6 else separating
    return sort_by_session(with_set_reads(rng, source(rng)))


# --- rows ---


def random_predicate(rng: random.Random, *, columns: bool, depth: int = 2) -> Predicate:
    """A predicate on rows of columns ``a`` and ``b``, or on the one column ``value``."""
    if depth and rng.random() < 0.3:
        head = rng.choice(("and", "or", "not"))
        parts = 1 if head == "not" else 2
        return (
            head,
            *(random_predicate(rng, columns=columns, depth=depth - 1) for _ in range(parts)),
        )
    column = rng.choice("ab") if columns else "value"
    kind = rng.random()
    if kind < 0.5:
        constant = rng.choice((0, 1, 2, 3, 0.5, 1.0, 2.0))
        return (rng.choice(("=", "!=", "<", "<=", ">", ">=")), column, constant)
    if kind < 0.55:
        modulus = rng.randint(1, 3)
        return ("mod", column, rng.choice((modulus, float(modulus))), rng.randrange(modulus))
    if kind < 0.65:
        low = rng.randint(0, 2)
        return ("between", column, low, low + rng.randint(0, 2))
    if kind < 0.8:
        return ("in", column, tuple(rng.sample(range(4), rng.randint(1, 2))))
    if kind < 0.9 and columns:
        return ("null", column)
    return ("=", "key", rng.choice("xyz")) if kind < 0.95 else (">=", column, 0)


def _random_row(rng: random.Random, columns: bool) -> Any:
    if not columns:
        return rng.randint(0, 3)
    return Row(tuple((name, rng.choice((None, 0, 1, 2))) for name in "ab"))


def row_history(rng: random.Random) -> History:
    """What clients of a small table see, at some isolation level; then perhaps changed."""
    columns = False
    if rng.random() < 0.3:
        history = parse(rng.choice(_SEPARATING))
        if rng.random() < 0.4:
            history = (*history, *(replace(t, session=9) for t in _table(rng, columns)[:1]))
    else:
        columns = rng.random() < 0.4
        history = _table(rng, columns)
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        history = _changed(rng, history, columns)
    return sort_by_session(history)


#: Histories of one column that two levels tell apart.
_SEPARATING = (
    "insert(x,1) insert(y,1) || scan([= value 1],{}) r(y,1)",
    "scan([> value 0],{}) insert(x,1) || scan([> value 0],{}) insert(y,1)",
    "r(x,nil) insert(y,1) || scan([= key y],{}) insert(x,1)",
    "insert(x,0) insert(y,0) -> w(x,1) w(y,1) -> w(x,2) w(y,2) || scan([= value 1],{x 1})",
    "insert(x,1) -> scan([>= value 0],{x 1}) delete(x) || scan([>= value 0],{x 1}) insert(y,2)",
    "insert(x,1) || insert(y,1) || scan([= value 1],{x 1}) || scan([= value 1],{y 1})",
    "insert(x,1) -> scan([= value 1],{x 1}) w(x,2) || scan([= value 1],{x 1}) w(x,3)",
    "insert(x,1) -> delete(x) -> scan([= value 1],{x 1})",
)


def equal_row_history(rng: random.Random) -> History:
    """What clients of one or two rows of few values see, so that equal rows are written again."""
    history = _table(rng, columns=False, names="xy"[: rng.randint(1, 2)], most=6, draw=_equal_op)
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        history = _changed(rng, history, columns=False)
    return sort_by_session(history)


def _equal_op(
    rng: random.Random, names: str, columns: bool, state: dict[str, Any], own: dict[str, Any]
) -> Op:
    if rng.random() < 0.1:
        return _random_op(rng, names, columns, state, own)
    if rng.random() < 0.45:
        predicate = (">=", "value", rng.choice((1, 1, 2)))
        return ("scan", predicate, _returned(rng, predicate, state))
    key = rng.choice(names)
    kind_of = "insert" if state.get(key) is None else "w"
    own[key] = rng.choice((1, 1, 2))
    return (kind_of, key, own[key])


def _table(
    rng: random.Random,
    columns: bool,
    names: str = "",
    most: int = 4,
    draw: Callable[..., Op] | None = None,
) -> History:
    """Serial, snapshot, prefix or committed: the versions of the whole table are kept."""
    draw = draw or _random_op
    level = rng.choice(("serial", "snapshot", "snapshot", "prefix", "committed", "committed"))
    names = names or "xyz"[: rng.randint(1, 3)]
    tables: list[dict[str, Any]] = [{}]
    written: dict[str, int] = {}
    running: dict[int, dict[str, Any]] = {}
    txns: list[Txn] = []
    left = rng.randint(2, most)
    sessions = rng.randint(2, 3)
    while left or running:
        session = rng.randrange(sessions)
        t = running.get(session)
        if t is None:
            if left and not (level == "serial" and running):
                left -= 1
                age = len(tables) - 1
                running[session] = {"age": age, "own": {}, "ops": [], "todo": rng.randint(1, 3)}
            continue
        if t["todo"]:
            t["todo"] -= 1
            base = tables[-1 if level == "committed" else t["age"]]
            state = {**base, **t["own"]}
            t["ops"].append(draw(rng, names, columns, state, t["own"]))
            continue
        del running[session]
        late = any(written.get(key, 0) > t["age"] for key in t["own"])
        status: Any = rng.choice(["committed"] * 8 + ["maybe", "aborted"])
        if level in ("serial", "snapshot") and late:
            status = "aborted"
        if status == "committed" or (status == "maybe" and rng.random() < 0.5):
            written |= dict.fromkeys(t["own"], len(tables))
            tables.append({**tables[-1], **t["own"]})
        txns.append(Txn(session, tuple(t["ops"]), status))
    return sort_by_session(txns)


def _random_op(
    rng: random.Random,
    names: str,
    columns: bool,
    state: dict[str, Any],
    own: dict[str, Any],
) -> Op:
    key = rng.choice(names)
    kind = rng.random()
    if kind < 0.4:
        predicate = random_predicate(rng, columns=columns)
        return ("scan", predicate, _returned(rng, predicate, state))
    if kind < 0.5:
        return ("r", key, state.get(key))
    if kind < 0.65 and state.get(key) is not None:
        own[key] = None
        return ("delete", key)
    row = _random_row(rng, columns)
    kind_of = "insert" if state.get(key) is None else "w"
    own[key] = row
    return (kind_of, key, row)


def _returned(
    rng: random.Random, predicate: Predicate, state: dict[str, Any]
) -> tuple[tuple[str, Any], ...]:
    rows = [(k, row) for k, row in state.items() if matches(predicate, k, row)]
    return tuple(rng.sample(rows, len(rows)))


def changed_rows(rng: random.Random, history: History) -> History:
    """A history of rows that differs in one place."""
    columns = any(isinstance(row, Row) for row in _rows(history))
    return _changed(rng, history, columns)


def _changed(rng: random.Random, history: History, columns: bool) -> History:
    """Another row read, a row more or less returned, an operation dropped, another session."""
    i = rng.randrange(len(history))
    t = history[i]
    if not t.ops:
        return history
    j = rng.randrange(len(t.ops))
    op = t.ops[j]
    kind = rng.random()
    new: tuple[Op, ...] = (op,)
    if kind < 0.5 and op[0] == "scan":
        rows = dict(op[2])
        if rows and rng.random() < 0.5:
            del rows[rng.choice(list(rows))]
        else:
            fitting = [
                (k, row) for k in keys(history) for row in _rows(history) if matches(op[1], k, row)
            ]
            if fitting:
                rows |= dict([rng.choice(fitting)])
        new = (("scan", op[1], tuple(rows.items())),)
    elif kind < 0.5 and op[0] == "r":
        new = (("r", op[1], rng.choice([None, *_rows(history)])),)
    elif kind < 0.6:
        new = ()
    elif kind < 0.8 and is_write(op):
        key = rng.choice(keys(history))
        new = rng.choice(
            ((op, ("delete", key)), (("w", key, _random_row(rng, columns)),), (("delete", key), op))
        )
    elif kind < 0.9:
        return sort_by_session(
            (*history[:i], replace(t, session=rng.randint(0, 3)), *history[i + 1 :])
        )
    ops = t.ops[:j] + new + t.ops[j + 1 :]
    return (*history[:i], replace(t, ops=ops), *history[i + 1 :])


def _rows(history: History) -> list[Any]:
    written = {op[2] for t in history for op in t.ops if op[0] in ("w", "insert")}
    return sorted(written, key=repr)


# --- single objects ---


def cas_history(rng: random.Random) -> History:
    """Clients of a register that reads, writes, compares and sets, one operation at a time.

    A compare-and-set that failed saw another value; one of unknown outcome may have been applied.
    Now and then a read is stale.
    """
    sessions, names = rng.randint(2, 4), "xy"[: rng.choice((1, 1, 2))]
    stale, values = rng.random() < 0.5, rng.choice((2, 3, 9))
    past: list[dict[str, Any]] = [{}]
    clock, left = 0, rng.randint(3, 6)
    running: dict[int, list[Any]] = {}  # session -> [begin, transaction or None]
    txns: list[Txn] = []
    while left or running:
        clock += rng.choice((0, 1, 1, 2))
        session = rng.randrange(sessions)
        if session not in running:
            if left:
                left -= 1
                running[session] = [clock, None]
            continue
        begin, done = running[session]
        if done is not None:
            end = None if done.status == "maybe" else clock
            txns.append(replace(done, begin=begin, end=end))
            del running[session]
            continue
        key, kind = rng.choice(names), rng.choice(("r", "w", "cas", "cas"))
        at = max(0, len(past) - 1 - rng.randint(1, 2)) if stale and rng.random() < 0.4 else -1
        seen, new = past[at].get(key), rng.randint(1, values)
        lost, applied = rng.random() < 0.12, True
        ops: tuple[Op, ...] = (("r", key, UNKNOWN if lost else seen),)
        if kind == "w":
            ops = (("w", key, new),)
        elif kind == "cas":
            expected = seen if rng.random() < 0.6 else rng.choice((None, 1, 2))
            applied = expected == seen
            ops = (("r", key, expected), ("w", key, new)) if applied or lost else ()
            ops = ops or (("notin", key, (expected,)),)
        if lost and rng.random() < 0.5:
            applied = False
        if applied and is_write(ops[-1]):
            past.append({**past[-1], key: new})
        running[session][1] = Txn(session, ops, "maybe" if lost else "committed")
    return sort_by_session(txns)
