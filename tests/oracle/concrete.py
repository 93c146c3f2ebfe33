"""The interpretation of one small history, and specifications on it: every choice is tried.

It shares nothing with the package but the parsed axioms: the meaning of each relation is here once
more, for the oracle.

A relation over m elements is an integer of m·m bits (bit i·m + j means i → j), a set one of m bits.
Elements are T0, the transactions and, if a name needs them, the events. The operations cache
their results, as a handful of elements has few different relations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import permutations, product
from typing import TypeAlias

from isolang.language.meaning import mentions
from isolang.language.meaning.core import (
    Check,
    Core,
    Diff,
    Domain,
    Exists,
    ForKey,
    Inter,
    Inverse,
    Lift,
    Opt,
    Plus,
    Product,
    Range,
    Rel,
    Seq,
    Spec,
    Star,
    Union,
)
from isolang.language.vocabulary import OF_EVENTS, OVERWRITING
from isolang.rows import bits

from .concrete_histories import NO_READ, SmallHistory, subsets

EVENT_NAMES = OF_EVENTS
_ALWAYS_AFTER_T0 = frozenset(("ww", "co", "ar", "vis"))


class Interpretation:
    """Values of the names: per key for keyed ones; ``m`` elements, ``keys`` keys."""

    __slots__ = ("keyed", "keys", "m", "plain")

    def __init__(self, m: int, keys: int) -> None:
        self.m = m
        self.keys = keys
        self.plain: dict[str, int] = {}
        self.keyed: dict[str, Sequence[int]] = {}


@lru_cache(maxsize=1 << 16)
def compose(a: int, b: int, m: int) -> int:
    """``a ; b``."""
    row, out = (1 << m) - 1, 0
    for i in range(m):
        targets, middles = 0, (a >> (i * m)) & row
        while middles:
            low = middles & -middles
            targets |= b >> ((low.bit_length() - 1) * m)
            middles ^= low
        out |= (targets & row) << (i * m)
    return out


@lru_cache(maxsize=1 << 16)
def closure(a: int, m: int) -> int:
    """``a^+``."""
    while True:
        more = a | compose(a, a, m)
        if more == a:
            return a
        a = more


@lru_cache(maxsize=1 << 16)
def inverse(a: int, m: int) -> int:
    """``a^-1``."""
    return sum(1 << (j * m + i) for i in range(m) for j in range(m) if a >> (i * m + j) & 1)


@lru_cache(maxsize=64)
def identity(m: int) -> int:
    """``id``."""
    return sum(1 << (i * m + i) for i in range(m))


@lru_cache(maxsize=1 << 12)
def times(rows: int, columns: int, m: int) -> int:
    """``A * B``."""
    return sum(columns << (i * m) for i in range(m) if rows >> i & 1)


def _domain(a: int, m: int) -> int:
    row = (1 << m) - 1
    return sum(1 << i for i in range(m) if a >> (i * m) & row)


def _union(values: Sequence[int]) -> int:
    out = 0
    for value in values:
        out |= value
    return out


Value: TypeAlias = Callable[[Interpretation, Mapping[str, int]], int]


@lru_cache(maxsize=4096)
def value_of(e: Core) -> Value:
    """An expression as a function of the model and of the values of the key variables."""
    match e:
        case Rel(name="id"):
            return lambda w, _: identity(w.m)
        case Rel(name=name, key=None):
            return lambda w, _: w.plain[name] if name in w.plain else _union(w.keyed[name])
        case Rel(name=name, key=key):
            variable = key or ""
            return lambda w, b: w.keyed[name][b[variable]]
        case Union(parts=parts):
            return _folded([value_of(p) for p in parts], lambda a, b, _: a | b)
        case Inter(parts=parts):
            return _folded([value_of(p) for p in parts], lambda a, b, _: a & b)
        case Seq(parts=parts):
            return _folded([value_of(p) for p in parts], compose)
        case Diff(left=left, right=right):
            return _folded([value_of(left), value_of(right)], lambda a, b, _: a & ~b)
        case Product(left=left, right=right):
            return _folded([value_of(left), value_of(right)], times)
        case ForKey(key=key, body=body):
            f = value_of(body)
            return lambda w, b: _union([f(w, {**b, key: k}) for k in range(w.keys)])
        case Inverse(arg=arg):
            f = value_of(arg)
            return lambda w, b: inverse(f(w, b), w.m)
        case Plus(arg=arg):
            f = value_of(arg)
            return lambda w, b: closure(f(w, b), w.m)
        case Star(arg=arg):
            f = value_of(arg)
            return lambda w, b: closure(f(w, b), w.m) | identity(w.m)
        case Opt(arg=arg):
            f = value_of(arg)
            return lambda w, b: f(w, b) | identity(w.m)
        case Lift(arg=arg):
            f = value_of(arg)
            return lambda w, b: times(f(w, b), (1 << w.m) - 1, w.m) & identity(w.m)
        case Domain(arg=arg):
            f = value_of(arg)
            return lambda w, b: _domain(f(w, b), w.m)
        case Range(arg=arg):
            f = value_of(arg)
            return lambda w, b: _domain(inverse(f(w, b), w.m), w.m)


def _folded(fs: Sequence[Value], operation: Callable[[int, int, int], int]) -> Value:
    first, *rest = fs

    def value(w: Interpretation, b: Mapping[str, int]) -> int:
        out = first(w, b)
        for f in rest:
            out = operation(out, f(w, b), w.m)
        return out

    return value


def holds(check: Check, w: Interpretation) -> bool:
    """Whether the model meets the check."""
    value = value_of(check.expr)(w, {})
    if check.kind == "acyclic":
        met = not closure(value, w.m) & identity(w.m)
    elif check.kind == "irreflexive":
        met = not value & identity(w.m)
    elif check.kind == "empty" or check.bound is None:
        met = not value
    else:
        met = not value & ~value_of(check.bound)(w, {})
    return met != check.negated


# --- what a history gives ---


_KEYED = ("W", "R", "vo", "wr", "cand", "rf", "last-write")


def given(history: SmallHistory, *, events: bool) -> Interpretation:
    """The relations that are given, and ``rf`` and ``wr``, which are: values are written once."""
    size, n_keys = history.size, len(history.keys)
    owner: list[int] = []
    write: dict[tuple[int, int], int] = {}
    read: dict[tuple[int, int], int] = {}
    if events:
        for k in range(n_keys):
            write[0, k] = size + 1 + len(owner)
            owner.append(0)
        for t in range(1, size + 1):
            for k, writes in history.operations(t):
                (write if writes else read)[t, k] = size + 1 + len(owner)
                owner.append(t)
    m = size + 1 + len(owner)
    w = Interpretation(m, n_keys)

    def relation(pairs: Iterator[tuple[int, int]]) -> int:
        return _union([1 << (i * m + j) for i, j in pairs])

    init = relation((0, t) for t in range(1, size + 1))
    so = relation(
        (a, b) for session in history.sessions() for a in session for b in session if a < b
    )
    w.plain |= {
        "T": (1 << (size + 1)) - 1,
        "init": init,
        "so": init | so,
        "rt": init | relation(iter(history.before)),
        "group-rt": relation((a, b) for a, b in history.before if history.together(a, b)),
        # No operation has a time of its own here.
        "done": relation(iter(history.before)),
        "late": relation(iter(history.before)),
        "locked": relation(
            (a, b)
            for a, b in history.before
            if any(k.writers >> (a - 1) & k.writers >> (b - 1) & 1 for k in history.keys)
        ),
    }
    keyed: dict[str, list[int]] = {name: [] for name in _KEYED}
    for k, key in enumerate(history.keys):
        readers = [(s, t) for t, s in enumerate(key.sources, 1) if s != NO_READ]
        keyed["W"].append(1 | key.writers << 1)
        keyed["R"].append(sum(1 << t for _, t in readers))
        keyed["vo"].append(relation(key.vo()))
        keyed["wr"].append(relation(iter(readers)))
        if events:
            source = relation((write[s, k], read[t, k]) for s, t in readers)
            keyed["cand"].append(source)
            keyed["rf"].append(source)
            own = (event for (_, x), event in write.items() if x == k)
            keyed["last-write"].append(sum(1 << event for event in own))
    # There are no predicate reads here.
    w.keyed |= keyed | {"iwr": keyed["wr"], "pwr": [0] * n_keys}
    w.plain["pred"] = 0
    if events:
        numbered = list(enumerate(owner, size + 1))
        w.plain["tx"] = relation(iter(numbered))
        # No statement has a time of its own here; each read is one.
        reads = [(event, t) for (t, _), event in read.items()]
        w.plain["statement"] = relation((event, event) for event, _ in reads)
        w.plain["committed-before"] = relation(
            (a, event) for a, b in history.before for event, t in reads if t == b
        )
        w.plain["committed-after"] = relation(
            (event, b) for a, b in history.before for event, t in reads if t == a
        )
        w.plain["answered-before"] = relation(
            (i, j)
            for a, b in history.before
            for i, t in reads
            if t == a
            for j, s in reads
            if s == b
        )
        w.plain["po"] = relation(
            (i, j) for i, t in numbered for j, s in numbered if t == s != 0 and i < j
        )
    return w


# --- what is chosen ---


@lru_cache(maxsize=1 << 12)
def _orders(over: int, least: int, most: int, m: int) -> tuple[int, ...]:
    found = []
    for order in permutations([i for i in range(m) if over >> i & 1]):
        value = later = 0
        for i in reversed(order):
            value |= later << (i * m)
            later |= 1 << i
        if not least & ~value and not value & ~most:
            found.append(value)
    return tuple(found)


def _values(exists: Exists, w: Interpretation, binding: Mapping[str, int]) -> Iterator[int]:
    m = w.m
    over = value_of(exists.over)(w, binding)
    least = value_of(exists.containing)(w, binding) if exists.containing is not None else 0
    most = value_of(exists.within)(w, binding) if exists.within is not None else -1
    if exists.kind == "choice":
        by_end: dict[int, list[int]] = {}
        for bit in bits(over):
            by_end.setdefault(bit % m, []).append(1 << bit)
        for picked in product(*by_end.values()):
            value = _union(picked)
            if not value & ~most and not least & ~value:
                yield value
        return
    carrier = times(over, over, m)
    if exists.name in _ALWAYS_AFTER_T0:
        least |= w.plain["init"] & carrier
    if exists.kind == "order":
        yield from _orders(over, least, most & carrier, m)
        return
    most &= carrier
    if not least & ~most:
        for more in subsets(list(bits(most & ~least))):
            yield least | _union([1 << bit for bit in more])


def satisfiable(
    base: Interpretation, spec: Spec, checks: Sequence[Check], tick: Callable[[], None]
) -> bool:
    """Whether some choice of the existentials meets the checks.

    Args:
        base: of ``given``; its values of existentials are overwritten.
        spec: whose existentials are chosen, also those that the checks do not depend on.
        checks: each is judged as soon as what it depends on is chosen.
        tick: called for each choice.
    """
    first = needed(spec, checks)
    rest = tuple(e for e in spec.exists if e.name != "rf" and e not in first)
    declared = (*first, *rest)
    stages: list[list[Check]] = [[] for _ in range(len(declared) + 1)]
    for check in checks:
        own = {e.name for e in needed(spec, [check])}
        stages[max((i for i, e in enumerate(declared, 1) if e.name in own), default=0)].append(
            check
        )

    def search(at: int) -> bool:
        tick()
        if not all(holds(check, base) for check in stages[at]):
            return False
        return at == len(declared) or any(search(at + 1) for _ in _chosen(declared[at], base))

    return search(0)


def _chosen(exists: Exists, w: Interpretation) -> Iterator[None]:
    """Give one existential each of its values in turn."""
    if exists.key is None:
        for value in _values(exists, w, {}):
            w.plain[exists.name] = value
            yield
        return
    per_key = [list(_values(exists, w, {exists.key: k})) for k in range(w.keys)]
    for chosen in product(*per_key):
        w.keyed[exists.name] = chosen
        if exists.name == "ww":
            w.keyed["rw"] = [
                compose(inverse(wr, w.m), ww, w.m) & ~identity(w.m)
                for wr, ww in zip(w.keyed["wr"], chosen, strict=True)
            ]
            w.keyed |= {"irw": w.keyed["rw"], "prw": [0] * w.keys}
        yield


def needed(spec: Spec, checks: Sequence[Check]) -> tuple[Exists, ...]:
    """The existentials that checks depend on, but ``rf``, which the history gives."""
    wanted: set[str] = set()
    for check in checks:
        wanted |= mentions.names(check.expr)
        wanted |= mentions.names(check.bound) if check.bound is not None else frozenset()
    result = []
    for exists in reversed(spec.exists):
        used = exists.name in wanted or (exists.name == "ww" and OVERWRITING & wanted)
        if used and exists.name != "rf":
            result.append(exists)
            for part in (exists.over, exists.containing, exists.within):
                wanted |= mentions.names(part) if part is not None else frozenset()
    return tuple(reversed(result))
