r"""Which specifications does a small history satisfy? By trying everything.

"A history satisfies a spec iff *some* assignment of the ``exists`` relations meets every unflagged
check." This module enumerates the assignments: a source for each external read of each included
transaction, and a total order of the writers of each key, and evaluates every check of every
specification on each. One enumeration serves all specifications.

A relation over the m included transactions (T0 is number 0) is one Python integer of m·m bits,
bit i·m + j meaning i → j; a set is an integer of m bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import permutations, product
from typing import NamedTuple

from isolang.language.meaning import core

from . import moments
from .before import names_of_initial
from .errors import TooLargeError
from .history import UNKNOWN, History, Op, is_write, keys, last_write, named_version, written
from .versions import given_order

T0 = -1

#: A specification is its checks.
Checks = Sequence[core.Check]


# --- what a history says ---


@dataclass(slots=True)
class Facts:
    """What a transaction contributes if it is included."""

    #: external reads of registers and lists: (key, possible sources, operation); a source is a
    #: transaction or T0
    reads: list[tuple[str, tuple[int, ...], int]]
    #: transactions that are included if this one is, because their elements stand in its list reads
    shown: set[int]
    #: every list read, as it stands
    lists: list[tuple[str, tuple[object, ...]]]
    #: names of anomalies visible without choosing anything
    anomalies: list[str]


class Source(NamedTuple):
    """A chosen source of an external read."""

    reader: int
    key: str
    source: int
    op: int


def allows(op: Op, version: object, initial: object) -> bool:
    """Whether a read may have seen this version of a register; T0's version is None.

    Where the initial version holds a value, None still names it, unless the value replaces it; but
    not to be None is to be that value, too.
    """
    kind, key, value = op
    names = names_of_initial(initial, key) if version is None else (version,)
    if kind == "r":
        return value in names
    if kind == "in":
        return any(v in names for v in value)
    return names[-1] not in value


def facts(history: History, initial: object = None) -> list[Facts]:
    """The pre-pass of the language reference, one transaction at a time, of a lowered history.

    ``initial`` is what T0 wrote to each register, beside nil, or instead of it (``Before``).
    """
    last: dict[str, list[tuple[int, object]]] = {}  # key -> (transaction, its last value)
    any_write: dict[tuple[str, object], list[int]] = {}
    appended: dict[tuple[str, object], list[int]] = {}  # (key, element) -> who appended it
    groups: dict[tuple[int, str], tuple[object, ...]] = {}  # (txn, key) -> its elements, in order
    for i, t in enumerate(history):
        final: dict[str, object] = {}
        for kind, key, value in t.ops:
            if kind == "w":
                final[key] = value
                any_write.setdefault((key, value), []).append(i)
            elif kind == "append":
                appended.setdefault((key, value), []).append(i)
                groups[i, key] = (*groups.get((i, key), ()), value)
        for key, value in final.items():
            last.setdefault(key, []).append((i, value))
    list_keys = {key for _, key in groups} | {
        op[1] for t in history for op in t.ops if op[0] == "r" and isinstance(op[2], tuple)
    }
    result = []
    for i, t in enumerate(history):
        f = Facts([], set(), [], [])
        own: dict[str, object] = {}
        own_list: dict[str, tuple[object, ...]] = {}
        for j, op in enumerate(t.ops):
            kind, key, value = op
            if kind == "w":
                own[key] = value
            elif kind == "append":
                own_list[key] = (*own_list.get(key, ()), value)
            elif value != UNKNOWN and t.named(j) is not None:
                mine = last_write(t, key, j)
                source = named_version(history, i, j, names_of_initial(initial, key))
                if mine is not None:
                    if t.named(j) != (i, mine) or value != written(t.ops[mine]):
                        f.anomalies.append("not-own-write")
                elif source is None:
                    f.anomalies.append("no-such-version")
                else:
                    f.reads.append((key, (source,), j))
            elif value == UNKNOWN:
                continue
            elif key in list_keys:
                elements = () if value is None else value
                shown = own_list.get(key, ())
                _list_read(history, i, j, key, elements, shown, appended, groups, f)
            elif key in own:
                if not allows(op, own[key], None):
                    f.anomalies.append("not-own-write")
            else:
                sources = tuple(
                    writer
                    for writer, version in last.get(key, ())
                    if writer != i
                    and history[writer].status != "aborted"
                    and allows(op, version, initial)
                ) + ((T0,) if allows(op, None, initial) else ())
                if sources:
                    f.reads.append((key, sources, j))
                elif kind == "r":
                    f.anomalies.append(_register_anomaly(history, i, key, value, any_write))
                else:
                    f.anomalies.append("no-such-version")
        result.append(f)
    return result


def _register_anomaly(history, i, key, value, any_write) -> str:
    writers = any_write.get((key, value), [])
    if not writers:
        return "thin-air"
    if i in writers:
        return "future-read"
    if any(history[j].status != "aborted" for j in writers):
        return "G1b"
    return "G1a"


def _list_read(history, i, j, key, elements, own, appended, groups, f: Facts) -> None:
    """A read of [v1 … vn] is an exact prefix of the key's list, own appends so far at its end."""
    f.lists.append((key, elements))
    for by in (appended.get((key, element), []) for element in elements):
        if by and by[0] != i and history[by[0]].status != "aborted":
            f.shown.add(by[0])  # it took effect, whatever else the read contradicts
    prefix = elements
    if own:
        if elements[-len(own) :] != own:
            f.anomalies.append("not-own-append")
            return
        prefix = elements[: len(elements) - len(own)]
    seen: dict[int, list[object]] = {}
    last: int | None = T0  # who appended the last element, as its own last one
    for element in prefix:
        by = appended.get((key, element), [])
        if len(by) > 1:
            raise ValueError("the oracle needs distinct elements in each list")
        if not by:
            f.anomalies.append("thin-air")
        elif by[0] == i:
            f.anomalies.append("future-read")
        elif history[by[0]].status == "aborted":
            f.anomalies.append("G1a")
        else:
            last = by[0] if element == groups[by[0], key][-1] else None
            seen.setdefault(by[0], []).append(element)
            continue
        last = None
    for writer, shown in seen.items():
        if tuple(shown) != groups[writer, key]:
            f.anomalies.append("G1b")  # or not contiguous, or out of order: an anomaly in any case
    if last is not None and not own:
        f.reads.append((key, (last,), j))


# --- bit matrices ---


@cache
def _column(m: int) -> int:
    return sum(1 << (i * m) for i in range(m))


@cache
def _identity(m: int) -> int:
    return sum(1 << (i * m + i) for i in range(m))


def compose(a: int, b: int, m: int) -> int:
    if not a or not b:
        return 0
    column, row, out = _column(m), (1 << m) - 1, 0
    for k in range(m):
        heads = (a >> k) & column
        if heads:
            out |= heads * ((b >> (k * m)) & row)
    return out


def closure(a: int, m: int) -> int:
    column, row = _column(m), (1 << m) - 1
    for k in range(m):
        heads = (a >> k) & column
        if heads:
            a |= heads * ((a >> (k * m)) & row)
    return a


def transpose(a: int, m: int) -> int:
    out = 0
    while a:
        low = a & -a
        i, j = divmod(low.bit_length() - 1, m)
        out |= 1 << (j * m + i)
        a ^= low
    return out


def _pairs(rows: int, columns: int, m: int) -> int:
    """Rows × columns, of two sets."""
    return sum(columns << (i * m) for i in range(m) if rows >> i & 1)


def _rows_of(a: int, m: int) -> int:
    row = (1 << m) - 1
    return sum(1 << i for i in range(m) if (a >> (i * m)) & row)


# --- evaluating expressions ---


class World:
    """One assignment: every relation as a matrix, keyed ones also per key."""

    __slots__ = ("keyed", "keys", "m", "n_keys", "named", "rel", "sets")

    def __init__(self, m: int, n_keys: int) -> None:
        self.m = m
        self.n_keys = n_keys
        self.rel: dict[str, int] = {}
        self.keyed: dict[str, list[int]] = {}
        self.sets: dict[str, list[int]] = {}
        #: the names of the keys, and of each transaction its labels and its level
        self.keys: list[str] = []
        self.named: dict[str, list[tuple[str, ...]]] = {}

    def bearers(self, word: str, pattern: str) -> int:
        """The set of the transactions that a name selects."""
        names = self.named[word]
        return sum(1 << i for i, of in enumerate(names) if any(called(n, pattern) for n in of))

    def keys_of(self, within: core.KeyClass | None) -> list[int]:
        """The keys that a ``for`` goes over."""
        if within is None:
            return list(range(self.n_keys))
        listed = [any(called(key, p) for p in within.patterns) for key in self.keys]
        return [k for k, found in enumerate(listed) if found != within.negated]


def called(name: str, pattern: str) -> bool:
    """Whether a name is of a pattern, in which a star stands for any text, also for none."""
    if not pattern:
        return not name
    if pattern[0] == "*":
        return called(name, pattern[1:]) or (bool(name) and called(name[1:], pattern))
    return bool(name) and name[0] == pattern[0] and called(name[1:], pattern[1:])


Evaluate = Callable[[World, "dict[str, int]"], int]
_SETS = {"T", "W", "R"}


@lru_cache(maxsize=4096)
def compile_expression(e: core.Core) -> Evaluate:
    """The value of an expression as a function of the assignment and of what the key variables
    stand for.
    """
    match e:
        case core.Rel("T", _):
            return lambda w, _b: (1 << w.m) - 1
        case core.Rel(name, key) if name in _SETS:
            if key is None:
                return lambda w, _b: _union(w.sets[name])
            return lambda w, b: w.sets[name][b[key]]
        case core.Rel(name, None):
            return lambda w, _b: w.rel[name]
        case core.Rel(name, key):
            return lambda w, b: w.keyed[name][b[key]]
        case core.Union(parts):
            fs = [compile_expression(p) for p in parts]
            if len(fs) == 2:
                f, g = fs
                return lambda w, b: f(w, b) | g(w, b)

            def union(w: World, b: dict[str, int]) -> int:
                out = 0
                for f in fs:
                    out |= f(w, b)
                return out

            return union
        case core.Seq(parts):
            fs = [compile_expression(p) for p in parts]

            def seq(w: World, b: dict[str, int]) -> int:
                out = fs[0](w, b)
                for f in fs[1:]:
                    out = compose(out, f(w, b), w.m)
                return out

            return seq
        case core.Inter(parts):
            fs = [compile_expression(p) for p in parts]

            def inter(w: World, b: dict[str, int]) -> int:
                out = fs[0](w, b)
                for f in fs[1:]:
                    out &= f(w, b)
                return out

            return inter
        case core.Diff(left, right):
            f, g = compile_expression(left), compile_expression(right)
            return lambda w, b: f(w, b) & ~g(w, b)
        case core.Product(left, right):
            f, g = compile_expression(left), compile_expression(right)
            return lambda w, b: _pairs(f(w, b), g(w, b), w.m)
        case core.Inverse(arg):
            f = compile_expression(arg)
            return lambda w, b: transpose(f(w, b), w.m)
        case core.Plus(arg):
            f = compile_expression(arg)
            return lambda w, b: closure(f(w, b), w.m)
        case core.Star(arg):
            f = compile_expression(arg)
            return lambda w, b: closure(f(w, b), w.m) | _identity(w.m)
        case core.Opt(arg):
            f = compile_expression(arg)
            return lambda w, b: f(w, b) | _identity(w.m)
        case core.Lift(arg):
            f = compile_expression(arg)
            return lambda w, b: _pairs(f(w, b), (1 << w.m) - 1, w.m) & _identity(w.m)
        case core.Domain(arg):
            f = compile_expression(arg)
            return lambda w, b: _rows_of(f(w, b), w.m)
        case core.Range(arg):
            f = compile_expression(arg)
            return lambda w, b: _rows_of(transpose(f(w, b), w.m), w.m)
        case core.ForKey(key, body, within):
            f = compile_expression(body)
            return lambda w, b: _union([f(w, {**b, key: k}) for k in w.keys_of(within)])
        case core.Named(word, pattern):
            return lambda w, _b: w.bearers(word, pattern)
    raise TypeError(f"not a core expression: {e!r}")


def _union(values: list[int]) -> int:
    out = 0
    for v in values:
        out |= v
    return out


def compile_check(check: core.Check) -> Callable[[World], bool]:
    f = compile_expression(check.expr)
    test: Callable[[World], bool]
    if check.kind == "acyclic":

        def test(w: World) -> bool:
            return not closure(f(w, {}), w.m) & _identity(w.m)
    elif check.kind == "irreflexive":

        def test(w: World) -> bool:
            return not f(w, {}) & _identity(w.m)
    elif check.kind == "empty":

        def test(w: World) -> bool:
            return not f(w, {})
    else:
        assert check.bound is not None
        g = compile_expression(check.bound)

        def test(w: World) -> bool:
            return not f(w, {}) & ~g(w, {})

    return (lambda w: not test(w)) if check.negated else test


def names(e: core.Core | None) -> set[str]:
    """Every relation and set named in an expression."""
    match e:
        case None:
            return set()
        case core.Rel(name, _):
            return {name}
        case core.Union(parts) | core.Seq(parts) | core.Inter(parts):
            return set().union(*map(names, parts))
        case core.Diff(a, b) | core.Product(a, b):
            return names(a) | names(b)
        case core.ForKey(_, body):
            return names(body)
        case core.Named(word, _):
            return {word}
    return names(e.arg)


#: The relations that reads make: of single keys (``iwr``, ``irw``) and of predicates.
READS = frozenset(("rf", "wr", "rw", "iwr", "pwr", "irw", "prw"))


#: The relations that times make.
TIMES = frozenset(("rt", "group-rt", "done", "late", "locked"))


def uses_rf(checks: Checks) -> bool:
    found = set().union(*(names(c.expr) | names(c.bound) for c in checks))
    return bool(found & READS)


def needs_time(checks: Checks) -> bool:
    return any((names(c.expr) | names(c.bound)) & TIMES for c in checks)


# --- the enumeration ---


@dataclass(frozen=True, slots=True)
class Prepared:
    """A specification, made ready once for many histories: see ``prepare``."""

    compiled: tuple[Callable[[World], bool], ...]
    reading: bool
    real_time: bool
    monotone: bool


def prepare(checks: Checks) -> Prepared:
    """Compile a specification; flagged checks are left out, as the reference says."""
    checks = [c for c in checks if not c.flag]
    named = set().union(*(names(c.expr) | names(c.bound) for c in checks))
    if not named - _GIVEN:
        raise ValueError("a specification without wr, ww or rw has no assignment to enumerate")
    return Prepared(
        tuple(compile_check(c) for c in checks),
        uses_rf(checks),
        needs_time(checks),
        all(not c.negated and c.kind != "require" for c in checks),
    )


_GIVEN = {"so", "init", "id", "T", "label", "level", "same-group", "same-label", *TIMES}


def _choices(
    history: History, fact: list[Facts], roots: list[int]
) -> Iterator[tuple[tuple[int, ...], list[Source]]]:
    """Every (included transactions, sources): the least set that the chosen sources need."""

    def extend(
        todo: list[int], included: frozenset[int], rf: list[Source]
    ) -> Iterator[tuple[tuple[int, ...], list[Source]]]:
        if not todo:
            yield tuple(sorted(included)), rf
            return
        t, rest = todo[0], todo[1:]
        for sources in product(*(s for _, s, _ in fact[t].reads)):
            needed = {s for s in sources if s != T0} | fact[t].shown
            new = sorted(needed - included)
            chosen = [
                Source(t, key, s, op)
                for (key, _, op), s in zip(fact[t].reads, sources, strict=True)
            ]
            yield from extend(rest + new, included | set(new), rf + chosen)

    yield from extend(list(roots), frozenset(roots), [])


def satisfied(
    history: History,
    specs: Sequence[Checks | Prepared],
    *,
    initial: object = None,
    limit: int | None = None,
    error: moments.Error = 0,
) -> list[bool]:
    """For each specification (its checks, or prepared), does the history satisfy it?

    ``rt`` needs times: a history without them is an error. ``error`` is that of the clocks.

    Raises:
        TooLargeError: more than ``limit`` assignments were tried.
    """
    ready = [s if isinstance(s, Prepared) else prepare(s) for s in specs]
    if any(s.real_time for s in ready) and not any(t.begin is not None for t in history):
        raise ValueError("rt on a history without times is an error, never a pass")
    fact = facts(history, initial)
    all_keys = keys(history)
    reading = [s.reading for s in ready]
    compiled = [s.compiled for s in ready]
    answer = [False] * len(specs)
    committed = [i for i, t in enumerate(history) if t.status == "committed"]
    maybes = [i for i, t in enumerate(history) if t.status == "maybe"]
    # Leaving unread indeterminate transactions out is sound for these checks (docs/language.md);
    # otherwise all cases are tried.
    more = [()] if all(s.monotone for s in ready) else list(_subsets(maybes))
    open_specs = set(range(len(specs)))
    anomalous = any(fact[i].anomalies for i in committed)
    if anomalous:  # only what does not look at reads can still be satisfied
        open_specs = {i for i in open_specs if not reading[i]}
    worlds: dict[tuple[int, ...], _Frame] = {}
    tried = 0
    for extra in more:
        for included, rf in _choices(history, fact, committed + list(extra)):
            if not open_specs:
                return answer
            frame = worlds.get(included)
            if frame is None:
                frame = worlds[included] = _Frame(history, fact, included, all_keys, error)
            bad = any(fact[i].anomalies for i in included)
            live = [i for i in open_specs if not (bad and reading[i])]
            for world in frame.worlds(rf):
                tried += 1
                if limit is not None and tried > limit:
                    raise TooLargeError(f"more than {limit} assignments")
                done = [i for i in live if all(check(world) for check in compiled[i])]
                for i in done:
                    answer[i] = True
                    open_specs.discard(i)
                    live.remove(i)
                if not live:
                    break
    return answer


def _subsets(items: list[int]) -> Iterator[tuple[int, ...]]:
    for bits in product((False, True), repeat=len(items)):
        yield tuple(x for x, keep in zip(items, bits, strict=True) if keep)


def _shown_order(
    history: History, key: str, included: tuple[int, ...], lists: list[tuple[object, ...]]
) -> set[tuple[int, int]]:
    """Which transaction list reads show to precede which other one.

    The elements of a read stand in its order, and every other included append comes after them.
    """
    writer = {
        value: t
        for t in included
        for kind, k, value in history[t].ops
        if kind == "append" and k == key
    }
    pairs = set()
    for shown in lists:
        order = [writer.get(e) for e in shown]
        rest = [t for e, t in writer.items() if e not in shown]
        for place, a in enumerate(order):
            pairs |= {(a, b) for b in (*order[place + 1 :], *rest) if None not in (a, b) and a != b}
    return pairs


class _Frame:
    """What depends on the set of included transactions alone."""

    def __init__(
        self,
        history: History,
        fact: list[Facts],
        included: tuple[int, ...],
        all_keys: list[str],
        error: moments.Error = 0,
    ) -> None:
        self.history = history
        self.number = {T0: 0} | {t: i + 1 for i, t in enumerate(included)}
        self.m = m = len(included) + 1
        self.keys = all_keys
        self.so = self.rt = self.init = _pairs(1, (1 << m) - 2, m)
        for a in included:
            if history[a].status == "maybe":
                continue  # no outgoing edges: it may have ended at any later time
            for b in included:
                ta, tb = history[a], history[b]
                edge = 1 << (self.number[a] * m + self.number[b])
                if a < b and ta.session == tb.session:
                    self.so |= edge
                if a != b and moments.follows(ta, tb, error):
                    self.rt |= edge
        self.timed = self._timed(error)
        self.alike = self._alike(included)
        self.named = {
            "label": [(), *(history[t].labels for t in included)],
            "level": [(), *((history[t].level,) if history[t].level else () for t in included)],
        }
        self.writers: list[list[int]] = []
        self.vo: list[int] = []
        self.readers: list[int] = []
        for key in all_keys:
            writers = [
                t for t in included if any(is_write(o) and o[1] == key for o in history[t].ops)
            ]
            self.writers.append([self.number[t] for t in writers])
            readers = 0
            for t in included:
                if any(k == key for k, _, _ in fact[t].reads):
                    readers |= 1 << self.number[t]
            self.readers.append(readers)
            shown = [list_ for t in included for k, list_ in fact[t].lists if k == key]
            pairs = _shown_order(history, key, included, shown)
            pairs |= given_order(history, key, included)
            self.vo.append(sum(1 << (self.number[a] * m + self.number[b]) for a, b in pairs))
        self.orders = [self._orders(k) for k in range(len(all_keys))]

    def _alike(self, included: tuple[int, ...]) -> dict[str, int]:
        """Different transactions of one group, and those with a label in common."""
        history, number, m = self.history, self.number, self.m
        group = label = 0
        for a in included:
            for b in included:
                edge = 1 << (number[a] * m + number[b]) if a != b else 0
                if history[a].group is not None and history[a].group == history[b].group:
                    group |= edge
                if set(history[a].labels) & set(history[b].labels):
                    label |= edge
        return {"same-group": group, "same-label": label}

    def _timed(self, error: moments.Error) -> dict[str, int]:
        """What the times of operations say: see ``moments.relations``."""
        given = moments.relations(self.history, [t for t in self.number if t != T0], error)
        number, m = self.number, self.m
        return {
            name: _union([1 << (number[a] * m + number[b]) for a, b in pairs])
            for name, pairs in given.items()
        }

    def _orders(self, key: int) -> list[int]:
        """Every version order of the key, T0 first, that contains what list reads show."""
        m, vo = self.m, self.vo[key]
        out = []
        for order in permutations(self.writers[key]):
            ww, later = 0, 0
            for w in reversed((0, *order)):
                ww |= later << (w * m)
                later |= 1 << w
            if not vo & ~ww:
                out.append(ww)
        return out

    def worlds(self, rf: list[Source]) -> Iterator[World]:
        m, n_keys = self.m, len(self.keys)
        items, missed = [0] * n_keys, [0] * n_keys
        for reader, key, source, op in rf:
            of = missed if self.history[reader].ops[op][0] == "miss" else items
            of[self.keys.index(key)] |= 1 << (self.number[source] * m + self.number[reader])
        wr = [a | b for a, b in zip(items, missed, strict=True)]
        different = ~_identity(m)

        def overwritten(read: list[int], k: int, ww: int) -> int:
            return compose(transpose(read[k], m), ww, m) & different

        per_key = [
            [(ww, overwritten(items, k, ww), overwritten(missed, k, ww)) for ww in self.orders[k]]
            for k in range(n_keys)
        ]
        w = World(m, n_keys)
        w.keys, w.named = self.keys, self.named
        w.sets["W"] = [1 | sum(1 << x for x in self.writers[k]) for k in range(n_keys)]
        w.sets["R"] = self.readers
        w.keyed["wr"] = wr
        w.keyed["vo"] = self.vo
        w.rel |= {
            "so": self.so,
            "rt": self.rt,
            "init": self.init,
            "id": _identity(m),
            "wr": _union(wr),
            "iwr": _union(items),
            "pwr": _union(missed),
            "vo": _union(self.vo),
            **self.alike,
            **self.timed,
        }
        for combination in product(*per_key):
            ww = irw = prw = 0
            for order, item, predicate in combination:
                ww |= order
                irw |= item
                prw |= predicate
            w.rel |= {"ww": ww, "irw": irw, "prw": prw, "rw": irw | prw}
            w.keyed["ww"] = [order for order, _, _ in combination]
            w.keyed["rw"] = [item | predicate for _, item, predicate in combination]
            w.keyed["irw"] = [item for _, item, _ in combination]
            yield w
