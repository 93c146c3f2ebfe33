"""Levels of the literature, each as its paper defines it.

Those of Adya by dependency graphs are in ``adya``. Here is what is said of executions: serial
orders, snapshots, what each session sees. Every function takes a history of registers (or rows) and
decides it by trying everything; indeterminate transactions may or may not have run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import permutations, product

from . import adya, visible
from .history import UNKNOWN, History, Txn, is_list_key, is_write, keys
from .moments import Error, follows, statement_reads
from .predicates import lower
from .replay import _merge, run
from .semantics import facts
from .visible import inclusions

# --- single objects ---


def project(history: History, key: str) -> History:
    """What is done with one key; the transactions that do nothing with it are gone."""
    out = []
    for t in history:
        at = [j for j, op in enumerate(t.ops) if op[1] == key]
        if at:
            times = t.times and tuple(t.times[j] for j in at)
            out.append(replace(t, ops=tuple(t.ops[j] for j in at), statements=None, times=times))
    return tuple(out)


def _search(history: History, included: list[int], before: Callable[[int, int], bool]) -> bool:
    """J. Wing, C. Gong (1993): whether the operations can be done one after the other."""
    lists = {k for k in keys(history) if is_list_key(history, k)}
    must = {b: {a for a in included if a != b and before(a, b)} for b in included}
    failed: set[object] = set()

    def step(done: frozenset[int], store: dict[str, object]) -> bool:
        if len(done) == len(included):
            return True
        state = (done, tuple(sorted(store.items(), key=str)))
        if state in failed:
            return False
        for t in included:
            if t not in done and must[t] <= done:
                own = run(history[t], store, lists)
                if own is not None and step(done | {t}, _merge(store, own, lists)):
                    return True
        failed.add(state)
        return False

    return step(frozenset(), {})


def linearizable(history: History, *, error: Error = 0) -> bool:
    """M. Herlihy, J. Wing (1990): of each object, the operations can be done one after the other,
    each at some instant between its invocation and its response.
    """

    def one(h: History) -> bool:
        return any(
            _search(h, included, lambda a, b: follows(h[a], h[b], error))
            for included in inclusions(h)
        )

    return all(one(project(history, key)) for key in keys(history))


def _in_session(history: History) -> Callable[[int, int], bool]:
    def before(a: int, b: int) -> bool:
        first, second = history[a], history[b]
        return first.session == second.session and a < b and first.status != "maybe"

    return before


def _of_each_key(history: History, allowed: Callable[[History, list[int]], bool]) -> bool:
    """Whether each key by itself is allowed. That a transaction has run is one fact for all keys:
    with an indeterminate one either all its keys are judged or none.
    """
    return any(
        all(allowed(h, list(range(len(h)))) for h in (project(ran, key) for key in keys(ran)))
        for ran in (tuple(history[t] for t in included) for included in inclusions(history))
    )


def per_key_sequential(history: History) -> bool:
    """L. Lamport (1979), of each object alone: one order that agrees with every session."""
    return _of_each_key(history, lambda h, all_of: _search(h, all_of, _in_session(h)))


def per_key_causal(history: History) -> bool:
    """Causal consistency of each object alone."""
    return _of_each_key(history, lambda h, all_of: visible.explains(h, all_of, "cc"))


# --- what each session sees ---


def pram(history: History, *, coherent: bool = False) -> bool:
    """R. Lipton, J. Sandberg (1988): for each session there is an order of its own transactions and
    the writes of all others, in the order of their sessions, that explains its reads.

    With ``coherent`` these orders agree on the writes of each key: processor consistency (J.
    Goodman, 1989; M. Ahamad et al., 1993).
    """
    lists = {k for k in keys(history) if is_list_key(history, k)}
    every = keys(history)
    writing = [{op[1] for op in t.ops if is_write(op)} for t in history]

    def writers(order: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Of each key, in their order."""
        return tuple(tuple(t for t in order if key in writing[t]) for key in every)

    for included in inclusions(history):
        before = _in_session(history)
        orders = [
            order
            for order in permutations(included)
            if not any(before(b, a) for i, a in enumerate(order) for b in order[i + 1 :])
        ]
        options = []
        for session in sorted({history[t].session for t in included}):
            shown = {
                t: history[t]
                if history[t].session == session
                else replace(history[t], ops=tuple(filter(is_write, history[t].ops)))
                for t in included
            }
            options.append({writers(o) for o in orders if _explains([shown[t] for t in o], lists)})
        if not coherent and all(options):
            return True
        if coherent and (not options or set.intersection(*options)):
            return True
    return False


def shared_pram(history: History) -> bool:
    """The same in the words of visibility (P. Viotti, M. Vukolić, 2016): all agree which of two
    writes wins. A transaction that reads sees the writes of its session before it and what the
    reads of its session saw; writes of a session are seen in their order. What is seen and
    the sessions agree with the order in which writes win.
    """
    history = lower(history)
    before = _in_session(history)
    writes = [any(map(is_write, t.ops)) for t in history]
    reads = [bool(f.reads) for f in facts(history)]
    pairs = [(a, b) for a, b in permutations(range(len(history)), 2) if before(a, b)]

    def ordered(order: tuple[int, ...]) -> bool:
        place = {t: i for i, t in enumerate(order)}
        return not any(place.get(b, len(order)) < place.get(a, -1) for a, b in pairs)

    def fits(seen: dict[int, frozenset[int]]) -> bool:
        for a, b in pairs:
            if a not in seen or b not in seen:
                continue
            if writes[a] and reads[b] and a not in seen[b]:
                return False
            if reads[a] and reads[b] and not seen[a] <= seen[b]:
                return False
            if writes[a] and writes[b] and any(b in s and a not in s for s in seen.values()):
                return False
        return True

    return visible.search(history, ordered, fits)


def _explains(order: list[Txn], lists: set[str]) -> bool:
    """Whether all reads return what the order says."""
    store: dict[str, object] = {}
    for t in order:
        own = run(t, store, lists)
        if own is None:
            return False
        store = _merge(store, own, lists)
    return True


# --- one order of all ---


def _serial(history: History, before: Callable[[int, int], bool]) -> bool:
    return any(_search(history, included, before) for included in inclusions(history))


def regular_sequential_serializability(history: History, *, error: Error = 0) -> bool:
    """J. Helt, M. Burke, A. Levy, W. Lloyd (SOSP 2021): one serial order that agrees with causality
    (sessions, and who read from whom); and in which a transaction that writes comes before all
    that write and begin after its end, and before those that begin after its end and read a key
    that it wrote. A predicate read reads the keys of which some version matches.
    """
    writes = [{op[1] for op in t.ops if is_write(op)} for t in history]
    reads = [{key for key, _, _ in f.reads} for f in facts(lower(history))]
    session = _in_session(history)

    def before(a: int, b: int) -> bool:
        later = follows(history[a], history[b], error) and history[a].status != "maybe"
        return session(a, b) or (
            later and bool(writes[a]) and bool(writes[b] or writes[a] & reads[b])
        )

    return _serial(history, before)


# --- snapshots ---


def monotonic_snapshot_reads(history: History) -> bool:
    """PL-MSR, A. Adya's thesis: what Oracle calls read consistency. Transactions commit one after
    the other; each statement reads what was committed at some moment, no statement at an earlier
    one than those before it, and none after the own commit. What a statement overwrites (for good)
    had been committed at its moment, too.
    """
    for included in inclusions(history):
        for order in permutations(included):
            states: list[dict[str, object]] = [{}]
            writers: list[dict[str, int]] = [{}]
            for t in order:
                new = visible._state(history, (t,), set(), {})
                states.append({**states[-1], **new})
                writers.append({**writers[-1], **dict.fromkeys(new, t)})
            if all(
                _advances(history[t], states[: place + 1], writers[: place + 1])
                for place, t in enumerate(order)
            ):
                return True
    return False


def _advances(t: Txn, states: list[dict[str, object]], writers: list[dict[str, int]]) -> bool:
    """Whether each statement can be at one of these states, in order; the earliest will do."""
    last = {op[1]: t.statement(j) for j, op in enumerate(t.ops) if is_write(op)}

    def fits(statement: int, at: int) -> bool:
        overwritten = [key for key, where in last.items() if where == statement]
        return statement_reads(t, statement, states[at]) and all(
            writers[at].get(key) == writers[-1].get(key) for key in overwritten
        )

    at = 0
    for statement in sorted({t.statement(j) for j in range(len(t.ops))}):
        while at < len(states) and not fits(statement, at):
            at += 1
        if at == len(states):
            return False
    return True


def generalized_si(history: History) -> bool:
    """S. Elnikety, F. Pedone, W. Zwaenepoel (SRDS 2005): each transaction reads what was committed
    at some moment before its commit, and no other writer of its keys commits in between.
    """
    return visible.satisfied(history, "si", session=False)


def prefix_consistent_si(history: History) -> bool:
    """The same; and a snapshot contains what the session committed before."""
    return visible.satisfied(history, "si")


def strong_partition_si(history: History, *, error: Error = 0) -> bool:
    """K. Daudjee, K. Salem (VLDB 2006), with groups as their labels: SI with sessions, and a
    snapshot contains whatever a transaction of the group committed before the transaction began.
    """
    in_session = _in_session(history)

    def before(a: int, b: int) -> bool:
        first, second = history[a], history[b]
        together = first.group is not None and first.group == second.group
        return in_session(a, b) or (together and follows(first, second, error))

    return visible.satisfied(history, "si", before=before)


def non_monotonic_si(history: History) -> bool | None:
    """M. Saeida Ardekani, P. Sutra, M. Shapiro (SRDS 2013): no read from what did not commit; a
    transaction that depends on another one (has read from it, directly or not) sees that version of
    a key or a later one; of two writers of a key one depends on the other.

    They assume that a transaction reads a key before it writes it; None for others.
    """
    for t in history:
        read: set[str] = set()
        for op in t.ops:
            if is_write(op) and op[1] not in read:
                return None
            if not is_write(op) and op[2] != UNKNOWN:
                read.add(op[1])
    return any(map(_consistent_and_free_of_conflicts, adya.graphs(history)))


def _consistent_and_free_of_conflicts(g: adya.Graph) -> bool:
    read_from = g.of("iwr")
    above = {t: adya.reachable(read_from, t) for t in g.included}
    if any(t in above[t] for t in g.included):
        return False
    for order in g.order.values():
        for a, b in product(order[1:], order[1:]):
            if a != b and b not in above[a] and a not in above[b]:
                return False
            if b in above[a] and order.index(b) < order.index(a):
                return False
    for seen in g.seen:
        order = g.order[seen.key]
        for t in order[1:]:
            depends = t != seen.reader and seen.reader in above[t]
            if depends and order.index(t) > order.index(seen.source):
                return False
    return True


# --- by name ---


def satisfied(
    history: History, names: Iterable[str], *, initial: object = None, error: Error = 0
) -> dict[str, bool]:
    """The levels of these names; those by real time need times, those of ``DEFINITIONS`` an empty
    beginning, and reads that name no source.
    """
    wanted = list(names)
    of_graphs = [n for n in wanted if n in adya.LEVELS]
    answer: dict[str, bool] = {}
    if of_graphs:
        answer = adya.satisfied(history, of_graphs, initial=initial, error=error)
    return answer | {n: DEFINITIONS[n](history, error) for n in wanted if n in DEFINITIONS}


#: Name -> whether a history is allowed.
DEFINITIONS: dict[str, Callable[[History, Error], bool]] = {
    "pl-msr": lambda h, _e: monotonic_snapshot_reads(h),
    "update-atomic": lambda h, _e: visible.satisfied(h, "ua"),
    "update-atomic-nosession": lambda h, _e: visible.satisfied(h, "ua", session=False),
    "gsi": lambda h, _e: generalized_si(h),
    "pcsi": lambda h, _e: prefix_consistent_si(h),
    "strong-partition-si": lambda h, e: strong_partition_si(h, error=e),
    "rss": lambda h, e: regular_sequential_serializability(h, error=e),
    "pram": lambda h, _e: pram(h),
    "shared-pram": lambda h, _e: shared_pram(h),
    "processor": lambda h, _e: pram(h, coherent=True),
    "per-key-sequential": lambda h, _e: per_key_sequential(h),
    "per-key-causal": lambda h, _e: per_key_causal(h),
    "linearizable": lambda h, e: linearizable(h, error=e),
    "tcc-plus": lambda h, _e: visible.satisfied(h, "cc"),
}

#: Those that need real time.
TIMED = {"pl-fcv", "pl-fcv-literal", "rss", "linearizable", "strong-partition-si"}
