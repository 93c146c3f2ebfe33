"""The levels of Adya by his graphs, with predicates as he defines them: what they match.

A predicate read selects one version of every key (its version set) and returns those that match. A
version changes the matches of a predicate if it matches and the version before it does not, or the
other way round. Here versions of the keys are ordered and version sets selected in every way;
nothing is lowered to reads of single keys.

Two definitions of a predicate read dependency are known. A. Adya, B. Liskov, P. O'Neil (ICDE
2000): on those who wrote the selected version, or an earlier one, and changed the matches. A.
Adya's thesis (1999): on those who wrote the selected versions. An anti-dependency goes to those who
wrote a later version and changed the matches, in both.

One thing is asked beside the first: no version set holds a version that follows the reader's own in
the order. The second implies that. Without it a version that changes no match could be seen before
it is there, and PL-3 would allow, for instance, ``scan(> 0: none) insert(x,1)`` beside ``scan(> 0:
none) insert(y,1) delete(x)`` and ``insert(y,3) insert(x,0)``, which has no serial order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, permutations, product
from typing import NamedTuple, TypeVar

from .before import held, names_of_initial
from .history import DEAD, UNKNOWN, History, Txn, is_write, keys, last_write, named_version
from .moments import Error, follows
from .predicates import Predicate, deletes, lower_op, matches
from .semantics import allows
from .versions import given_order
from .visible import inclusions

T0 = -1


class Edge(NamedTuple):
    """A dependency: ``ww``, item and predicate reads ``iwr`` and ``pwr``, anti-dependencies
    ``irw`` and ``prw``; ``op`` is the reader's operation.
    """

    kind: str
    tail: int
    head: int
    key: str
    op: int = -1


class Seen(NamedTuple):
    """A version that a read selected."""

    reader: int
    key: str
    source: int
    op: int
    predicate: Predicate | None


@dataclass(frozen=True, slots=True)
class Graph:
    """The direct serialization graph of one choice of versions."""

    history: History
    included: tuple[int, ...]
    edges: tuple[Edge, ...]
    order: Mapping[str, tuple[int, ...]]
    seen: tuple[Seen, ...]
    #: how wrong the clocks may be
    error: Error = 0

    def of(self, *kinds: str) -> set[tuple[int, int]]:
        """The pairs that edges of these kinds join."""
        return {(e.tail, e.head) for e in self.edges if e.kind in kinds}


def graphs(
    history: History, *, initial: object = None, thesis: bool = False, error: Error = 0
) -> Iterator[Graph]:
    """Every graph of a history of registers and rows.

    A history whose reads cannot be explained at all (G1a, G1b) has none.
    """
    for included in map(tuple, inclusions(history)):
        version = {t: _installed(history[t]) for t in included}
        writers = {k: [t for t in included if k in version[t]] for k in keys(history)}

        def value(
            key: str, writer: int, version: Mapping[int, dict[str, object]] = version
        ) -> object:
            return held(initial, key) if writer == T0 else version[writer][key]

        options = [
            choice for t in included for choice in _selections(history, t, writers, value, initial)
        ]
        if not all(options):
            continue
        orders = [
            [
                (T0, *order)
                for order in permutations(writers[k])
                if not any(
                    order.index(a) > order.index(b) for a, b in given_order(history, k, included)
                )
            ]
            for k in writers
        ]
        for ordered in product(*orders):
            order = dict(zip(writers, ordered, strict=True))
            ww = [
                Edge("ww", a, b, k)
                for k, of in order.items()
                for place, a in enumerate(of)
                for b in of[place + 1 :]
            ]
            for chosen in product(*options):
                if any(_ahead(seen, order[seen.key]) for seen in chosen if seen.predicate):
                    continue
                edges = [e for seen in chosen for e in _edges(seen, order, value, thesis)]
                yield Graph(history, included, (*ww, *edges), order, chosen, error)


def _installed(t: Txn) -> dict[str, object]:
    """The last version of each key that a transaction writes."""
    return {op[1]: DEAD if op[0] == "delete" else op[2] for op in t.ops if is_write(op)}


def _selections(
    history: History,
    t: int,
    writers: Mapping[str, list[int]],
    value: Callable[[str, int], object],
    initial: object,
) -> Iterator[list[Seen]]:
    """For each version that a read of the transaction selects, all possibilities."""
    own: dict[str, object] = {}
    deleted = deletes(history, initial)

    def sources(key: str) -> list[int]:
        return [T0, *(u for u in writers[key] if u != t)]

    for j, op in enumerate(history[t].ops):
        if is_write(op):
            own[op[1]] = DEAD if op[0] == "delete" else op[2]
        elif op[0] == "scan":
            predicate, rows = op[1], dict(op[2])
            for key in writers:
                returned = key in rows

                def fits(
                    v: object, k: str = key, p: Predicate = predicate, of: object = rows.get(key)
                ) -> bool:
                    return matches(p, k, v) and v == of if of is not None else not matches(p, k, v)

                if key in own:
                    if not fits(own[key]):
                        yield []
                    continue
                fitting = [u for u in sources(key) if fits(value(key, u))]
                if len(fitting) == len(sources(key)):
                    continue  # nothing matches, so nothing changes a match
                yield [Seen(t, key, u, j, predicate) for u in fitting]
                if returned:
                    yield [Seen(t, key, u, j, None) for u in fitting]
        elif op[2] != UNKNOWN and history[t].named(j) is not None:
            mine = last_write(history[t], op[1], j)
            source = named_version(history, t, j, names_of_initial(initial, op[1]))
            if mine is not None:
                if history[t].named(j) != (t, mine) or not _fits_item(op, own[op[1]]):
                    yield []
                continue
            yield [Seen(t, op[1], u, j, None) for u in sources(op[1]) if u == source]
        elif op[2] != UNKNOWN:
            key = op[1]
            if key in own:
                if not _fits_item(op, own[key]):
                    yield []
                continue
            fitting = [u for u in sources(key) if u != T0 and _fits_item(op, value(key, u))]
            (as_item,) = lower_op(op, {}, deleted)
            if allows(as_item, None, initial):  # T0's version has its value, and the name nil
                fitting.append(T0)
            yield [Seen(t, key, u, j, None) for u in fitting]


def _fits_item(op: tuple[object, ...], version: object) -> bool:
    kind, _, value = op
    version = None if version == DEAD else version
    if kind == "r":
        return version == value
    return (version in value) == (kind == "in")  # type: ignore[operator]


def _ahead(seen: Seen, order: tuple[int, ...]) -> bool:
    """Whether a version follows the one that its reader writes."""
    return seen.reader in order and order.index(seen.reader) < order.index(seen.source)


def _edges(
    seen: Seen,
    order: Mapping[str, tuple[int, ...]],
    value: Callable[[str, int], object],
    thesis: bool,
) -> Iterator[Edge]:
    t, key, source, op, predicate = seen
    of = order[key]
    at = of.index(source)
    if predicate is None:
        if source != T0:
            yield Edge("iwr", source, t, key, op)
        # Tj directly item-anti-depends on Ti if Tj installs the next version after the one read.
        yield from (Edge("irw", t, u, key, op) for u in of[at + 1 : at + 2] if u != t)
        return
    holds = [matches(predicate, key, value(key, u)) for u in of]
    changes = [u for place, u in enumerate(of) if place and holds[place] != holds[place - 1]]
    read = [source] if thesis else [u for u in of[: at + 1] if u in changes]
    yield from (Edge("pwr", u, t, key, op) for u in read if u not in (T0, t))
    yield from (Edge("prw", t, u, key, op) for u in of[at + 1 :] if u in changes and u != t)


# --- what graphs forbid ---


Node = TypeVar("Node")


def reachable(pairs: set[tuple[Node, Node]], start: Node) -> set[Node]:
    """Where a walk of at least one step leads."""
    after: dict[Node, list[Node]] = {}
    for a, b in pairs:
        after.setdefault(a, []).append(b)
    found: set[Node] = set()
    todo = [start]
    while todo:
        for b in after.get(todo.pop(), ()):
            if b not in found:
                found.add(b)
                todo.append(b)
    return found


def acyclic(pairs: set[tuple[Node, Node]]) -> bool:
    """Whether nothing is left when what nothing leads to is taken away again and again."""
    while pairs:
        reached = {b for _, b in pairs}
        rest = {(a, b) for a, b in pairs if a in reached}
        if len(rest) == len(pairs):
            return False
        pairs = rest
    return True


def _no_g1(g: Graph) -> bool:
    return acyclic(g.of("ww", "iwr", "pwr"))


def _no_g2_item(g: Graph) -> bool:
    everything = g.of("ww", "iwr", "pwr", "irw", "prw")
    return all(a not in reachable(everything, b) | {b} for a, b in g.of("irw"))


def _no_g_single(g: Graph, *more: tuple[int, int]) -> bool:
    """No cycle with exactly one anti-dependency."""
    dependencies = g.of("ww", "iwr", "pwr") | set(more)
    return all(a not in reachable(dependencies, b) for a, b in g.of("irw", "prw"))


def _starts(g: Graph) -> set[tuple[int, int]]:
    """Start dependencies, which are taken from real time."""
    pairs = permutations(g.included, 2)
    return {(a, b) for a, b in pairs if follows(g.history[a], g.history[b], g.error)}


def _no_g_sib(g: Graph) -> bool:
    """G-SIb: a cycle with exactly one anti-dependency, start dependencies counted."""
    return _no_g_single(g, *_starts(g))


def _in_time(g: Graph) -> bool:
    """Nobody reads from, or overwrites, what began after its end."""
    return acyclic(g.of("ww", "iwr", "pwr") | _starts(g))


def _no_g_cursor(g: Graph) -> bool:
    """G-cursor(x): an anti-dependency of x that write dependencies of x lead back."""
    written = {(e.tail, e.head, e.key) for e in g.edges if e.kind == "ww"}
    return all((e.head, e.tail, e.key) not in written for e in g.edges if e.kind == "irw")


def _no_g_monotonic(g: Graph) -> bool:
    """G-monotonic: in the graph in which one transaction is unfolded into its statements, an
    anti-dependency of a read that dependencies and the order of statements lead back to it.
    """
    return not any(_goes_back(g, t) for t in g.included)


def _goes_back(g: Graph, t: int) -> bool:
    txn = g.history[t]
    last = {op[1]: txn.statement(j) for j, op in enumerate(txn.ops) if is_write(op)}
    number: dict[object, int] = {}

    def node(who: int, statement: int) -> int:
        return number.setdefault((who, statement) if who == t else who, len(number))

    def ends(e: Edge) -> tuple[int, int]:
        read = txn.statement(e.op) if e.op >= 0 else 0
        anti = e.kind in ("irw", "prw")
        tail = read if anti else last.get(e.key, 0)
        head = last.get(e.key, 0) if anti or e.kind == "ww" else read
        return node(e.tail, tail), node(e.head, head)

    places = sorted({txn.statement(j) for j in range(len(txn.ops))})
    walk = {(node(t, a), node(t, b)) for a, b in pairwise(places)}
    walk |= {ends(e) for e in g.edges if e.kind in ("ww", "iwr", "pwr")}
    anti = [ends(e) for e in g.edges if e.kind in ("irw", "prw") and e.tail == t]
    return any(a in reachable(walk, b) | {b} for a, b in anti)


def _no_g_update(g: Graph) -> bool:
    """G-update: a cycle among the transactions that write and one other."""
    everything = g.of("ww", "iwr", "pwr", "irw", "prw")
    writing = {t for t in g.included if any(map(is_write, g.history[t].ops))}
    return all(
        acyclic({(a, b) for a, b in everything if {a, b} <= writing | {t, T0}}) for t in g.included
    )


def _no_vanishing(g: Graph) -> bool:
    """OTV: after a read from a transaction, a later statement misses what that one wrote."""
    for first, later in product(g.seen, g.seen):
        t = g.history[first.reader]
        if first.reader != later.reader or t.statement(first.op) >= t.statement(later.op):
            continue
        order = g.order[later.key]
        source = first.source
        if source in order and order.index(later.source) < order.index(source):
            return False
    return True


#: Level -> whether a graph is free of what it forbids. PL-2 and on: A. Adya's thesis, 1999 (PL-MSR
#: is in ``definitions``, as it needs snapshots); of PL-FCV the first form is literal, the second
#: asks that the order of versions agrees with real time, too, as that of commits does. MAV: P.
#: Bailis et al., VLDB 2014: "if Tj reads a version of an object that Ti wrote, a later read by Tj
#: cannot return a value whose later version is installed by Ti".
LEVELS: dict[str, Callable[[Graph], bool]] = {
    "pl-2": _no_g1,
    "mav": lambda g: _no_g1(g) and _no_vanishing(g),
    "pl-2l": lambda g: _no_g1(g) and _no_g_monotonic(g),
    "pl-cs": lambda g: _no_g1(g) and _no_g_cursor(g),
    "pl-2-plus": lambda g: _no_g1(g) and _no_g_single(g),
    "pl-2-99": lambda g: _no_g1(g) and _no_g2_item(g),
    "locking-repeatable-read": lambda g: acyclic(g.of("ww", "iwr", "pwr", "irw")),
    "pl-fcv-literal": lambda g: _no_g1(g) and _no_g_sib(g),
    "pl-fcv": lambda g: _in_time(g) and _no_g_sib(g),
    "pl-3u": lambda g: _no_g1(g) and _no_g_update(g),
    "pl-3": lambda g: acyclic(g.of("ww", "iwr", "pwr", "irw", "prw")),
}


#: The levels that predicates tell apart.
PREDICATES = ("pl-2", "pl-2-99", "locking-repeatable-read", "pl-3")


def satisfied(
    history: History,
    levels: Iterable[str] = PREDICATES,
    *,
    initial: object = None,
    thesis: bool = False,
    error: Error = 0,
) -> dict[str, bool]:
    """For each of these levels, whether some graph of the history is allowed."""
    answer = dict.fromkeys(levels, False)
    for g in graphs(history, initial=initial, thesis=thesis, error=error):
        for level in answer:
            answer[level] = answer[level] or LEVELS[level](g)
        if all(answer.values()):
            break
    return answer
