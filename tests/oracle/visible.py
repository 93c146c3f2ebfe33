"""Levels by what each transaction sees: no relation between reads and writes, no version order.

There is a total order of the transactions (who wins) and for each transaction a set of earlier ones
(what it sees). A transaction reads the state that those which it sees leave behind, one after the
other in the order, its own writes over it. What the sets must obey makes the level (A. Cerone,
G. Bernardi, A. Gotsman, CONCUR 2015). Read committed looks inside transactions: there every row
that a statement reads has a set of its own, which contains the sets of the statements before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, permutations, product

from .history import History, Op, is_list_key, is_write, keys
from .predicates import matches
from .replay import _merge, run, sees

#: What the sets of a level obey: ``transitive`` (what one sees that I see, I see), ``prefix`` (all
#: before one that I see, I see), ``conflict`` (of two writers of a key the later one sees the
#: earlier), ``all`` (all before me).
RULES: dict[str, frozenset[str]] = {
    "ra": frozenset(),
    "ua": frozenset({"conflict"}),
    "cc": frozenset({"transitive"}),
    "psi": frozenset({"transitive", "conflict"}),
    "pc": frozenset({"prefix"}),
    "si": frozenset({"prefix", "conflict"}),
    "ser": frozenset({"all"}),
}


def satisfied(
    history: History,
    level: str,
    *,
    session: bool = True,
    real_time: bool = False,
    initial: object = None,
    before: Callable[[int, int], bool] | None = None,
) -> bool:
    """Decides ``rc`` (of registers) and the levels of ``RULES``.

    What each must see is what came before in its session, or what ``before`` says.
    """
    return any(
        explains(
            history,
            included,
            level,
            session=session,
            real_time=real_time,
            initial=initial,
            before=before,
        )
        for included in inclusions(history)
    )


def explains(
    history: History,
    included: list[int],
    level: str,
    *,
    session: bool = True,
    real_time: bool = False,
    initial: object = None,
    before: Callable[[int, int], bool] | None = None,
) -> bool:
    """The same, if these transactions have run and no others."""
    lists = {k for k in keys(history) if is_list_key(history, k)}
    store = {} if initial is None else {k: initial for k in keys(history) if k not in lists}
    if before is None:
        needed = earlier(history, included, session=session, real_time=real_time)
    else:
        needed = {b: {a for a in included if a != b and before(a, b)} for b in included}
    runs: dict[object, bool] = {}
    for order in permutations(included):
        if any(not needed[t] <= set(order[:place]) for place, t in enumerate(order)):
            continue
        if level == "rc":
            if all(_read_committed(history, order, p, store) for p in range(len(order))):
                return True
        elif _assign(history, order, RULES[level], needed, lists, store, runs):
            return True
    return False


def search(
    history: History,
    ordered: Callable[[tuple[int, ...]], bool],
    fits: Callable[[dict[int, frozenset[int]]], bool],
) -> bool:
    """Whether some order that is allowed, and sets that fit together, explain every read.

    Of what a transaction without reads sees nothing is said: it sees nothing.
    """
    lists = {k for k in keys(history) if is_list_key(history, k)}
    reads = [not all(map(is_write, t.ops)) for t in history]
    for included in inclusions(history):
        for order in filter(ordered, permutations(included)):
            options = [
                [
                    frozenset(seen)
                    for seen in _sets(order[:place] if reads[t] else (), frozenset())
                    if run(history[t], _state(history, seen, lists, {}), lists) is not None
                ]
                for place, t in enumerate(order)
            ]
            if any(fits(dict(zip(order, sets, strict=True))) for sets in product(*options)):
                return True
    return False


def inclusions(history: History) -> Iterator[list[int]]:
    """The committed transactions, with any of the indeterminate ones."""
    committed = [i for i, t in enumerate(history) if t.status == "committed"]
    maybes = [i for i, t in enumerate(history) if t.status == "maybe"]
    for keep in product((False, True), repeat=len(maybes)):
        yield sorted(committed + [m for m, k in zip(maybes, keep, strict=True) if k])


def earlier(
    history: History, included: list[int], *, session: bool, real_time: bool
) -> dict[int, set[int]]:
    """Those that each must see: of its session, or ended before it began."""

    def before(a: int, b: int) -> bool:
        first, second = history[a], history[b]
        if first.status == "maybe":
            return False  # it may have ended at any later time
        if session and first.session == second.session and a < b:
            return True
        timed = first.end is not None and second.begin is not None
        return real_time and timed and first.end < second.begin

    return {b: {a for a in included if a != b and before(a, b)} for b in included}


def _assign(
    history: History,
    order: tuple[int, ...],
    rules: frozenset[str],
    before: dict[int, set[int]],
    lists: set[str],
    initial: dict[str, object],
    runs: dict[object, bool],
) -> bool:
    """Whether sets can be found for transactions in this order."""
    written = {t: {op[1] for op in history[t].ops if is_write(op)} for t in order}

    def reads_well(t: int, seen: tuple[int, ...]) -> bool:
        if (t, seen) not in runs:
            runs[t, seen] = (
                run(history[t], _state(history, seen, lists, initial), lists) is not None
            )
        return runs[t, seen]

    def extend(seen: dict[int, frozenset[int]]) -> bool:
        place = len(seen)
        if place == len(order):
            return True
        t, possible = order[place], order[:place]
        needed = set(before[t])
        if "conflict" in rules:
            needed |= {u for u in possible if written[u] & written[t]}
        for choice in _sets(possible, rules):
            if not needed <= set(choice):
                continue
            if "transitive" in rules and any(not seen[u] <= set(choice) for u in choice):
                continue
            if reads_well(t, choice) and extend({**seen, t: frozenset(choice)}):
                return True
        return False

    return extend({})


def _sets(possible: tuple[int, ...], rules: frozenset[str]) -> Iterator[tuple[int, ...]]:
    if "all" in rules:
        yield possible
    elif "prefix" in rules:
        for length in range(len(possible) + 1):
            yield possible[:length]
    else:
        for length in range(len(possible) + 1):
            yield from combinations(possible, length)


def _state(
    history: History, seen: tuple[int, ...], lists: set[str], initial: dict[str, object]
) -> dict[str, object]:
    """What these leave behind, one after the other, whatever they have read."""
    store = initial
    for t in seen:
        own: dict[str, object] = {}
        for op in history[t].ops:
            if op[0] == "append":
                own[op[1]] = (*own.get(op[1], ()), op[2])  # type: ignore[misc]
            elif is_write(op):
                own[op[1]] = None if op[0] == "delete" else op[2]
        store = _merge(store, own, lists)
    return store


def _read_committed(
    history: History, order: tuple[int, ...], place: int, initial: dict[str, object]
) -> bool:
    """Whether one transaction can have read this, statement by statement."""
    t = history[order[place]]
    possible = order[:place]
    versions = {u: _state(history, (u,), set(), {}) for u in possible}
    all_keys = keys(history)

    def read(op: Op, own: dict[str, object], base: frozenset[int]) -> Iterator[frozenset[int]]:
        """Each set with which a statement returns this."""
        if op[0] == "scan":
            rows = dict(op[2])
            tests: list[tuple[str, Callable[[object], bool]]] = []
            for key in all_keys:
                found = matches(op[1], key, rows[key]) if key in rows else False
                if key in rows and not found:
                    return
                if key in rows:
                    tests.append((key, lambda v, row=rows[key]: v == row))
                else:
                    tests.append((key, lambda v, k=key: not matches(op[1], k, v)))
        else:
            tests = [(op[1], lambda v: sees(op, {op[1]: v}, {}, {}, set()))]
        options = []
        for key, test in tests:
            if key in own:
                if not test(own[key]):
                    return
                continue
            options.append([v for v in around(key, base) if test(shown(key, v))])
        for choice in product(*options):
            yield base.union(*choice)

    def around(key: str, base: frozenset[int]) -> Iterator[frozenset[int]]:
        yield base
        for u in possible:
            if u not in base and key in versions[u]:
                yield base | {u}

    def shown(key: str, seen: frozenset[int]) -> object:
        value = initial.get(key)
        for u in possible:
            if u in seen and key in versions[u]:
                value = versions[u][key]
        return value

    def go(at: int, own: dict[str, object], base: frozenset[int]) -> bool:
        if at == len(t.ops):
            return True
        op = t.ops[at]
        if is_write(op):
            return go(at + 1, {**own, op[1]: None if op[0] == "delete" else op[2]}, base)
        return any(go(at + 1, own, seen) for seen in set(read(op, own, base)))

    return go(0, {}, frozenset())
