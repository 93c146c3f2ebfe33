"""SER, SI, PC and their real-time and session-free forms, by running the transactions: no
relation, no version order.

A history is serializable iff its transactions can run one after the other, each read returning
what the store holds. It is SI iff the 2n events "T takes its snapshot" and "T commits" can be
ordered so that each transaction reads from its snapshot and no other writer of a key that T
writes commits between T's two events; PC is SI without the last condition. These definitions
share nothing with the relational ones, so they check the oracle itself.
"""

from __future__ import annotations

from itertools import product

from .history import UNKNOWN, History, Op, Txn, is_list_key, is_write, keys
from .predicates import matches

State = tuple[tuple[str, object], ...]


def run(t: Txn, store: dict[str, object], lists: set[str]) -> dict[str, object] | None:
    """What the transaction leaves behind on a snapshot, or None if a read sees something else.

    A list key maps to the tuple of elements that the transaction appended, a key without a row to
    None.
    """
    own: dict[str, object] = {}
    for op in t.ops:
        kind, key = op[:2]
        if kind in ("w", "insert"):
            own[key] = op[2]
        elif kind == "delete":
            own[key] = None
        elif kind == "append":
            own[key] = (*own.get(key, ()), op[2])  # type: ignore[misc]
        elif not sees(op, {**store, **own}, store, own, lists):
            return None
    return own


def sees(
    op: Op,
    state: dict[str, object],
    store: dict[str, object],
    own: dict[str, object],
    lists: set[str],
) -> bool:
    """Whether a read returns this in a state, which is the store with the own writes over it."""
    kind, key, value = op
    if kind == "scan":
        rows = {k: row for k, row in state.items() if matches(key, k, row)}
        return rows == dict(value) and len(rows) == len(value)
    if value == UNKNOWN:
        return True
    if kind == "r" and key in lists:
        seen = (*store.get(key, ()), *own.get(key, ()))  # type: ignore[misc]
        return seen == (() if value is None else value)
    if kind == "r":
        return state.get(key) == value
    return (state.get(key) in value) == (kind == "in")


def _merge(store: dict[str, object], own: dict[str, object], lists: set[str]) -> dict[str, object]:
    new = dict(store)
    for key, value in own.items():
        new[key] = (*store.get(key, ()), *value) if key in lists else value  # type: ignore[misc]
    return new


def satisfied(
    history: History,
    *,
    level: str,
    session: bool = True,
    real_time: bool = False,
    initial: object = None,
) -> bool:
    """Decides ``SER``, ``SI`` or ``PC``; indeterminate transactions may or may not have run.

    ``initial`` is what every register holds before.
    """
    lists = {k for k in keys(history) if is_list_key(history, k)}
    store = {} if initial is None else {k: initial for k in keys(history) if k not in lists}
    committed = [i for i, t in enumerate(history) if t.status == "committed"]
    maybes = [i for i, t in enumerate(history) if t.status == "maybe"]
    for keep in product((False, True), repeat=len(maybes)):
        included = sorted(committed + [m for m, k in zip(maybes, keep, strict=True) if k])
        if _search(history, included, lists, store, level, session, real_time):
            return True
    return False


def _search(
    history: History,
    included: list[int],
    lists: set[str],
    before_all: dict[str, object],
    level: str,
    session: bool,
    real_time: bool,
) -> bool:
    def before(a: int, b: int) -> bool:
        ta, tb = history[a], history[b]
        if ta.status == "maybe":
            return False
        if session and ta.session == tb.session and a < b:
            return True
        return (
            real_time
            and ta.end is not None
            and tb.begin is not None
            and ta.end < tb.begin
            and a != b
        )

    must = {b: frozenset(a for a in included if a != b and before(a, b)) for b in included}
    writes = {t: frozenset(op[1] for op in history[t].ops if is_write(op)) for t in included}
    failed: set[tuple[frozenset[int], frozenset[tuple[int, State]], State]] = set()

    def freeze(store: dict[str, object]) -> State:
        return tuple(sorted(store.items()))

    def step(
        done: frozenset[int],
        running: dict[int, dict[str, object]],
        store: dict[str, object],
    ) -> bool:
        # running: T -> what it will write
        if len(done) == len(included):
            return True
        state = (
            done,
            frozenset((t, freeze(own)) for t, own in running.items()),
            freeze(store),
        )
        if state in failed:
            return False
        for t in included:
            if t in done or t in running or not must[t] <= done:
                continue
            own = run(history[t], store, lists)
            if own is None:
                continue
            if level == "SER":
                again = step(done | {t}, {}, _merge(store, own, lists))
            elif level == "PC" or not any(writes[t] & writes[u] for u in running):
                # First committer wins: under SI two writers of a key never overlap.
                again = step(done, {**running, t: own}, store)
            else:
                continue
            if again:
                return True
        for t, own in running.items():
            rest = {u: o for u, o in running.items() if u != t}
            if step(done | {t}, rest, _merge(store, own, lists)):
                return True
        failed.add(state)
        return False

    return step(frozenset(), {}, before_all)
