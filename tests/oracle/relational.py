r"""Which small histories satisfy a specification, whatever it is made of? By trying everything.

``semantics`` knows ``rf`` and ``ww`` and relations between transactions. This module reads the
whole language: every ``exists``, events as well as transactions, every operator, ``flag`` and
``not``. It takes nothing from the package but the lowered expressions, and it searches without any
idea: existentials in the order of their declaration, each with all its values, each check as soon
as everything that it names is there.

How the language reference is read where it leaves a choice:

* The universe is the included transactions and, if a name needs them, their events; ``id``, ``?``
  and ``^*`` speak of all of it. T0 has one write event per key. The write event of a transaction
  for a key is its last one; other events occur in ``po`` and ``tx`` only. A read whose result is
  not known is an event, but no external read.
* ``order on S`` is a strict total order on S; ``choice of e`` a part of e with exactly one pair for
  each element of its range; ``relation on S`` any subset of S × S. ``containing`` and ``within``
  are meant literally. Besides, what is called ``ww``, ``co``, ``ar`` or ``vis`` contains ``init``
  (between its own elements), as the reference says.
* A maybe transaction that nobody reads from may be in or out: both cases are always tried. Leaving
  it out is sound for most specifications, and a reader of this module can see for which; the right
  side of a ``\`` must have no composition or closure either.
* Anomalies of the pre-pass are violations iff an unflagged check, or a bound of an ``exists`` other
  than ``rf`` and ``ww``, mentions ``rf``, ``wr`` or ``rw``; so are list reads of which neither is a
  prefix of the other, and list reads in which a transaction's elements do not stand together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, permutations, product

import msgspec

from isolang.language.load import load_spec
from isolang.language.meaning import core

from . import moments
from .history import History, is_write, keys, timed
from .semantics import (
    T0,
    TIMES,
    Facts,
    Source,
    TooLargeError,
    _choices,
    _shown_order,
    _subsets,
    called,
    closure,
    compose,
    facts,
    names,
    transpose,
)
from .versions import given_order

__all__ = ["TooLargeError", "World", "evaluate", "flags", "holds", "satisfied", "worlds"]

#: What times say of reads: see ``_of_reads``.
_READ_TIMES = frozenset(("committed-before", "committed-after", "answered-before"))
_ON_EVENTS = frozenset(("po", "tx", "rf", "cand", "statement", "last-write", "pred")) | _READ_TIMES
_CONTAIN_INIT = frozenset(("ww", "co", "ar", "vis"))
_SETS = frozenset(("T", "W", "R", "last-write", "pred"))

Rf = Sequence[Source]


@dataclass(slots=True)
class World:
    """One assignment.

    A relation is an integer of size·size bits, bit i·size + j meaning i → j; a set has size bits.
    ``keyed`` has one value per key.
    """

    size: int
    n_keys: int
    plain: dict[str, int] = field(default_factory=dict)
    keyed: dict[str, list[int]] = field(default_factory=dict)
    sets: dict[str, int] = field(default_factory=dict)
    included: tuple[int, ...] = ()
    #: the names of the keys, and of each transaction its labels and its level
    keys: tuple[str, ...] = ()
    named: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)

    @property
    def identity(self) -> int:
        return _identity(self.size)

    def pairs(self, value: int) -> set[tuple[int, int]]:
        """A relation as a set of pairs: 0 is T0, i + 1 the i-th included transaction."""
        n = self.size
        return {(i // n, i % n) for i in range(n * n) if value >> i & 1}


# --- expressions ---


@lru_cache(maxsize=64)
def _identity(n: int) -> int:
    return sum(1 << (i * n + i) for i in range(n))


def _times(rows: int, columns: int, n: int) -> int:
    return sum(columns << (i * n) for i in range(n) if rows >> i & 1)


def _rows(a: int, n: int) -> int:
    row = (1 << n) - 1
    return sum(1 << i for i in range(n) if (a >> (i * n)) & row)


def _union(values: Sequence[int]) -> int:
    out = 0
    for value in values:
        out |= value
    return out


Evaluate = Callable[[World, Mapping[str, int]], int]


def evaluate(e: core.Core, w: World, binding: Mapping[str, int] | None = None) -> int:
    """The value of an expression; ``binding`` gives key variables the numbers of their keys."""
    return _compile(e)(w, binding or {})


@lru_cache(maxsize=8192)
def _compile(e: core.Core) -> Evaluate:
    match e:
        case core.Rel(name="id"):
            return lambda w, _b: w.identity
        case core.Rel(name=name, key=None) if name in _SETS:

            def whole(w: World, _b: Mapping[str, int]) -> int:
                return w.sets[name] if name in w.sets else _union(w.keyed[name])

            return whole
        case core.Rel(name=name, key=None):

            def relation(w: World, _b: Mapping[str, int]) -> int:
                return w.plain[name] if name in w.plain else _union(w.keyed[name])

            return relation
        case core.Rel(name=name, key=str() as key):
            return lambda w, b: w.keyed[name][b[key]]
        case core.Union(parts=parts):
            fs = [_compile(p) for p in parts]
            return lambda w, b: _union([f(w, b) for f in fs])
        case core.Inter(parts=parts):
            fs = [_compile(p) for p in parts]

            def inter(w: World, b: Mapping[str, int]) -> int:
                out = fs[0](w, b)
                for f in fs[1:]:
                    out &= f(w, b)
                return out

            return inter
        case core.Seq(parts=parts):
            fs = [_compile(p) for p in parts]

            def seq(w: World, b: Mapping[str, int]) -> int:
                out = fs[0](w, b)
                for f in fs[1:]:
                    out = compose(out, f(w, b), w.size)
                return out

            return seq
        case core.Diff(left=left, right=right):
            f, g = _compile(left), _compile(right)
            return lambda w, b: f(w, b) & ~g(w, b)
        case core.Product(left=left, right=right):
            f, g = _compile(left), _compile(right)
            return lambda w, b: _times(f(w, b), g(w, b), w.size)
        case core.Inverse(arg=arg):
            f = _compile(arg)
            return lambda w, b: transpose(f(w, b), w.size)
        case core.Plus(arg=arg):
            f = _compile(arg)
            return lambda w, b: closure(f(w, b), w.size)
        case core.Star(arg=arg):
            f = _compile(arg)
            return lambda w, b: closure(f(w, b), w.size) | w.identity
        case core.Opt(arg=arg):
            f = _compile(arg)
            return lambda w, b: f(w, b) | w.identity
        case core.Lift(arg=arg):
            f = _compile(arg)
            return lambda w, b: _times(f(w, b), (1 << w.size) - 1, w.size) & w.identity
        case core.Domain(arg=arg):
            f = _compile(arg)
            return lambda w, b: _rows(f(w, b), w.size)
        case core.Range(arg=arg):
            f = _compile(arg)
            return lambda w, b: _rows(transpose(f(w, b), w.size), w.size)
        case core.ForKey(key=key, body=body):
            f = _compile(body)
            if e.within is None:
                return lambda w, b: _union([f(w, {**b, key: k}) for k in range(w.n_keys)])
            within = e.within

            def of_class(w: World, b: Mapping[str, int]) -> int:
                found = [any(called(k, p) for p in within.patterns) for k in w.keys]
                chosen = [k for k, inside in enumerate(found) if inside != within.negated]
                return _union([f(w, {**b, key: k}) for k in chosen])

            return of_class
        case core.Named(word=word, name=name):
            return lambda w, _b: sum(
                1 << i for i, of in enumerate(w.named[word]) if any(called(n, name) for n in of)
            )
    raise TypeError(f"not a core expression: {e!r}")


def holds(check: core.Check, w: World) -> bool:
    """Whether an assignment meets a check."""
    value = evaluate(check.expr, w)
    match check.kind:
        case "acyclic":
            met = not closure(value, w.size) & w.identity
        case "irreflexive":
            met = not value & w.identity
        case "empty":
            met = not value
        case "require":
            assert check.bound is not None
            met = not value & ~evaluate(check.bound, w)
    return met != check.negated


# --- what is given ---


def _given(
    history: History,
    fact: list[Facts],
    included: tuple[int, ...],
    all_keys: list[str],
    events: bool,
    error: moments.Error = 0,
) -> tuple[World, dict[tuple[int, int], int], dict[tuple[int, str], int]]:
    """The given relations; and the numbers of events: of operations, and of last writes."""
    number = {T0: 0} | {t: i + 1 for i, t in enumerate(included)}
    m = len(included) + 1
    op_event: dict[tuple[int, int], int] = {}
    write_event: dict[tuple[int, str], int] = {}
    owner: list[int] = []
    if events:
        for key in all_keys:
            write_event[T0, key] = m + len(owner)
            owner.append(0)
        for t in included:
            for j, op in enumerate(history[t].ops):
                if op[0] == "silent":
                    continue
                op_event[t, j] = m + len(owner)
                if is_write(op):
                    write_event[t, op[1]] = m + len(owner)
                owner.append(number[t])
    n = m + len(owner)
    w = World(n, len(all_keys), included=included, keys=tuple(all_keys))
    w.named["label"] = [(), *(history[t].labels for t in included)]
    w.named["level"] = [(), *(tuple(filter(None, [history[t].level])) for t in included)]

    def edge(a: int, b: int) -> int:
        return 1 << (a * n + b)

    init = _union([edge(0, i) for i in range(1, m)])
    so = rt = init
    for a in included:
        if history[a].status == "maybe":
            continue  # it may have ended at any later time: no outgoing edges
        for b in included:
            first, second = history[a], history[b]
            if a < b and first.session == second.session:
                so |= edge(number[a], number[b])
            if a != b and moments.follows(first, second, error):
                rt |= edge(number[a], number[b])
    w.sets["T"] = (1 << m) - 1
    alike = [(a, b) for a in included for b in included if a != b]
    w.plain["same-group"] = _union(
        [
            edge(number[a], number[b])
            for a, b in alike
            if history[a].group == history[b].group is not None
        ]
    )
    w.plain["same-label"] = _union(
        [
            edge(number[a], number[b])
            for a, b in alike
            if set(history[a].labels) & set(history[b].labels)
        ]
    )
    w.plain |= {"init": init, "so": so, "rt": rt}
    for name, pairs in moments.relations(history, list(included), error).items():
        w.plain[name] = _union([edge(number[a], number[b]) for a, b in pairs])
    w.keyed["W"], w.keyed["R"], w.keyed["vo"], w.keyed["cand"] = [], [], [], []
    w.keyed["last-write"] = []
    for key in all_keys:
        writes = [t for t in included if any(is_write(o) and o[1] == key for o in history[t].ops)]
        reads = [t for t in included if any(k == key for k, _, _ in fact[t].reads)]
        w.keyed["W"].append(1 | sum(1 << number[t] for t in writes))
        w.keyed["R"].append(sum(1 << number[t] for t in reads))
        shown = [elements for t in included for k, elements in fact[t].lists if k == key]
        order = _shown_order(history, key, included, shown)
        order |= given_order(history, key, included)
        w.keyed["vo"].append(_union([edge(number[a], number[b]) for a, b in order]))
    if events:
        w.plain["tx"] = _union([edge(m + i, t) for i, t in enumerate(owner)])
        w.plain["po"] = _union(
            [
                edge(op_event[t, i], op_event[t, j])
                for t in included
                for j in range(len(history[t].ops))
                for i in range(j)
                if {(t, i), (t, j)} <= op_event.keys()
                if history[t].statement(i) < history[t].statement(j)
            ]
        )
        read_event = {(t, op): op_event[t, op] for t in included for _, _, op in fact[t].reads}
        missing = [e for (t, op), e in read_event.items() if history[t].ops[op][0] == "miss"]
        w.sets["pred"] = sum(1 << e for e in missing)
        for name, found in _of_reads(history, included, read_event, number, error).items():
            w.plain[name] = _union([edge(a, b) for a, b in found])
        for key in all_keys:
            candidates = 0
            for t in included:
                for k, sources, op in fact[t].reads:
                    if k == key:
                        for source in sources:
                            if source in number:
                                candidates |= edge(write_event[source, key], op_event[t, op])
            w.keyed["cand"].append(candidates)
            last = [write_event[t, key] for t in (T0, *included) if (t, key) in write_event]
            w.keyed["last-write"].append(sum(1 << e for e in last))
    return w, op_event, write_event


def _of_reads(
    history: History,
    included: tuple[int, ...],
    event: Mapping[tuple[int, int], int],
    number: Mapping[int, int],
    error: moments.Error,
) -> dict[str, list[tuple[int, int]]]:
    """What is given of external reads, by their numbers.

    ``committed-before``: a transaction had committed before a read of another one was sent.
    ``committed-after``: it sent its COMMIT after the read was answered. ``answered-before``: a read
    was answered before the other was sent. ``statement``: two reads are of one statement. Nothing
    leads out of an indeterminate transaction or its reads.
    """
    out: dict[str, list[tuple[int, int]]] = {name: [] for name in (*_READ_TIMES, "statement")}
    for (t, op), e in event.items():
        instant = moments.operation(history[t], op)
        for (u, other), f in event.items():
            if t == u and history[t].statement(op) == history[t].statement(other):
                out["statement"].append((e, f))
            later = moments.operation(history[u], other)
            if history[t].status != "maybe" and moments.precedes(instant, later, error):
                out["answered-before"].append((e, f))
        for u in included:
            commit = moments.commit(history[u])
            if u == t:
                continue
            if history[u].status != "maybe" and moments.precedes(commit, instant, error):
                out["committed-before"].append((number[u], e))
            if history[t].status != "maybe" and moments.precedes(instant, commit, error):
                out["committed-after"].append((e, number[u]))
    return out


# --- what is chosen ---


def _with_reads(
    base: World,
    history: History,
    fact: list[Facts],
    rf: Rf,
    all_keys: list[str],
    op_event: Mapping[tuple[int, int], int],
    write_event: Mapping[tuple[int, str], int],
) -> World:
    w = World(
        base.size,
        base.n_keys,
        dict(base.plain),
        dict(base.keyed),
        base.sets,
        base.included,
        base.keys,
        base.named,
    )
    number = {T0: 0} | {t: i + 1 for i, t in enumerate(w.included)}
    n = w.size
    items, missed = [0] * w.n_keys, [0] * w.n_keys
    chosen = [0] * w.n_keys
    for reader, key, source, op in rf:
        of = missed if history[reader].ops[op][0] == "miss" else items
        of[all_keys.index(key)] |= 1 << (number[source] * n + number[reader])
        if "tx" in w.plain:
            bit = 1 << (write_event[source, key] * n + op_event[reader, op])
            chosen[all_keys.index(key)] |= bit
    w.keyed |= {"iwr": items, "pwr": missed}
    w.keyed["wr"] = [a | b for a, b in zip(items, missed, strict=True)]
    if "tx" in w.plain:
        w.keyed["rf"] = chosen
    return w


def _elements(s: int) -> list[int]:
    return [i for i in range(s.bit_length()) if s >> i & 1]


def _values(exists: core.Exists, w: World, binding: Mapping[str, int]) -> Iterator[int]:
    """All values of one existential, for one key."""
    n = w.size
    over = evaluate(exists.over, w, binding)
    least = evaluate(exists.containing, w, binding) if exists.containing is not None else 0
    most = evaluate(exists.within, w, binding) if exists.within is not None else -1
    if exists.kind == "choice":
        most &= over
        ends: dict[int, list[int]] = {}
        for i in _elements(over):
            ends.setdefault(i % n, []).append(i)
        for pairs in product(*ends.values()):
            value = _union([1 << i for i in pairs])
            if not value & ~most and not least & ~value:
                yield value
        return
    carrier = _times(over, over, n)
    if exists.name in _CONTAIN_INIT:
        least |= w.plain["init"] & carrier
    if exists.kind == "order":
        for order in permutations(_elements(over)):
            value, later = 0, 0
            for i in reversed(order):
                value |= later << (i * n)
                later |= 1 << i
            if not least & ~value and not value & ~most:
                yield value
        return
    most &= carrier
    if least & ~most:
        return
    free = _elements(most & ~least)
    if len(free) > 24:
        raise TooLargeError(f"{len(free)} pairs may or may not be in `{exists.name}`")
    for bits in range(1 << len(free)):
        yield least | _union([1 << pair for i, pair in enumerate(free) if bits >> i & 1])


def _mentioned(e: core.Core | None) -> set[str]:
    """As `names`, with what the definitions of wr and rw stand for."""
    found = names(e)
    if found & {"rw", "irw", "prw"}:
        found |= {"wr", "ww"}
    return found | ({"rf"} if found & {"wr", "iwr", "pwr"} else set())


def worlds(
    history: History,
    spec: core.Spec,
    *,
    initial: object = None,
    limit: int | None = None,
    error: moments.Error = 0,
) -> Iterator[World]:
    """Every assignment that meets every unflagged check.

    Args:
        history: at most four or so transactions.
        spec: any specification.
        initial: what T0 wrote to each register, beside nil.
        limit: of assignments, complete or not.
        error: of the clocks.

    Raises:
        ValueError: real time is used and the history has none.
        TooLargeError: the limit was passed.
    """
    checks = [check for check in spec.checks if not check.flag]
    judged = set[str]().union(*(_mentioned(c.expr) | _mentioned(c.bound) for c in checks))
    bounds = [e for e in spec.exists if e.name not in ("rf", "ww")]
    for e in bounds:
        judged |= _mentioned(e.over) | _mentioned(e.containing) | _mentioned(e.within)
    if judged & (TIMES | _READ_TIMES) and not timed(history):
        raise ValueError("rt on a history without times is an error, never a pass")
    events = bool(_spelled(spec) & _ON_EVENTS)
    fact = facts(history, initial)
    all_keys = keys(history)
    declared = [e for e in spec.exists if e.name != "rf"]
    stages = _stages(checks, declared)
    committed = [i for i, t in enumerate(history) if t.status == "committed"]
    maybes = [i for i, t in enumerate(history) if t.status == "maybe"]
    budget = [limit if limit is not None else -1]
    done: set[object] = set()
    for extra in _subsets(maybes):
        for included, rf in _choices(history, fact, committed + list(extra)):
            seen = (included, tuple(sorted(rf)))
            if seen in done:
                continue
            done.add(seen)
            if "rf" in judged and (
                any(fact[i].anomalies for i in included) or _lists_clash(history, fact, included)
            ):
                continue
            base, op_event, write_event = _given(history, fact, included, all_keys, events, error)
            w = _with_reads(base, history, fact, rf, all_keys, op_event, write_event)
            yield from _assign(w, declared, stages, 0, budget)


def _lists_clash(history: History, fact: list[Facts], included: Sequence[int]) -> bool:
    """Whether two list reads are no prefixes of one another, or one tears a transaction apart."""
    writer = {
        (key, value): i
        for i, t in enumerate(history)
        for kind, key, value in t.ops
        if kind == "append"
    }
    lists = [read for i in included for read in fact[i].lists]
    for key, elements in lists:
        blocks = [by for by, _ in groupby(writer.get((key, e)) for e in elements)]
        if len(blocks) > len(set(blocks)):
            return True
    return any(
        key == other and a[: len(b)] != b[: len(a)]
        for (key, a), (other, b) in product(lists, lists)
    )


def _spelled(spec: core.Spec) -> set[str]:
    """The names that must have a value; the bounds of rf are known without events."""
    parts = [part for check in spec.checks for part in (check.expr, check.bound)]
    for e in spec.exists:
        if e.name != "rf":
            parts += [e.over, e.containing, e.within]
    parts += [expr for _, expr in spec.shows]
    return set[str]().union(*map(names, parts))


def _stages(checks: list[core.Check], declared: list[core.Exists]) -> list[list[core.Check]]:
    """Stage i has the checks that can be judged once i existentials are there."""
    order = {e.name: i + 1 for i, e in enumerate(declared)}
    order |= dict.fromkeys(("rw", "irw", "prw"), order.get("ww", 0))
    stages: list[list[core.Check]] = [[] for _ in range(len(declared) + 1)]
    for check in checks:
        needs = names(check.expr) | names(check.bound)
        stages[max((order.get(name, 0) for name in needs), default=0)].append(check)
    return stages


def _assign(
    w: World,
    declared: list[core.Exists],
    stages: list[list[core.Check]],
    at: int,
    budget: list[int],
) -> Iterator[World]:
    if budget[0] == 0:
        raise TooLargeError("more assignments than allowed")
    budget[0] -= 1
    if not all(holds(check, w) for check in stages[at]):
        return
    if at == len(declared):
        yield World(
            w.size, w.n_keys, dict(w.plain), dict(w.keyed), w.sets, w.included, w.keys, w.named
        )
        return
    exists = declared[at]
    if exists.key is None:
        for value in _values(exists, w, {}):
            w.plain[exists.name] = value
            yield from _assign(w, declared, stages, at + 1, budget)
        _forget(w, exists.name)
        return
    per_key = [list(_values(exists, w, {exists.key: k})) for k in range(w.n_keys)]
    for combination in product(*per_key):
        w.keyed[exists.name] = list(combination)
        if exists.name == "ww":
            for reads, name in (("wr", "rw"), ("iwr", "irw"), ("pwr", "prw")):
                w.keyed[name] = [
                    compose(transpose(wr, w.size), ww, w.size) & ~w.identity
                    for wr, ww in zip(w.keyed[reads], combination, strict=True)
                ]
        yield from _assign(w, declared, stages, at + 1, budget)
    _forget(w, exists.name)


def _forget(w: World, name: str) -> None:
    w.plain.pop(name, None)
    w.keyed.pop(name, None)


def over_versions(checks: Sequence[core.Check]) -> core.Spec:
    """The specification of these checks over the sources of reads and the orders of versions."""
    spec = load_spec('include "adya.iso"\nacyclic ww as c\n')
    return msgspec.structs.replace(spec, checks=tuple(checks))


def satisfied(
    history: History,
    spec: core.Spec,
    *,
    initial: object = None,
    limit: int | None = None,
    error: moments.Error = 0,
) -> bool:
    """Whether some assignment meets every unflagged check."""
    found = worlds(history, spec, initial=initial, limit=limit, error=error)
    return next(found, None) is not None


def flags(history: History, spec: core.Spec, *, initial: object = None) -> dict[str, bool]:
    """For each flag, whether no assignment that meets the unflagged checks also meets it."""
    held = {check.name: True for check in spec.checks if check.flag}
    for w in worlds(history, spec, initial=initial):
        for check in spec.checks:
            if check.flag and holds(check, w):
                held[check.name] = False
    return held
