"""The edges that a history shows by itself, and the short cycles among them.

A read with one candidate reads from it; what reads a version and writes the key comes right after
it; list reads show orders. That is what Elle infers, and less than the engine knows; but a cycle of
such edges is a few lines to read, where the engine's first refutation may go around half of the
history. The cycles are guesses about where to look: the engine, and the checker, have the word.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, field

from isolang.certify.steps import Edge
from isolang.language.vocabulary import DEPENDENCIES
from isolang.problem.problem import Inclusion

if TYPE_CHECKING:
    from isolang.problem.problem import Problem

Cycle: TypeAlias = tuple[Edge, ...]

# Anti-dependencies are looked for to versions this far after the one read, and to this many of
# them: lost updates give a version several successors.
_VERSIONS, _SUCCESSORS = 4, 8
_LONGEST: Final = 8


ALL: Final = frozenset(("so", "rt", *DEPENDENCIES))


class KnownGraph(Struct, frozen=True):
    """Known edges between the included transactions, by where they begin.

    Attributes:
        n: the number of transactions, which is also T0's.
        after: per transaction, its edges; those of ``so`` lead to the next of the session.
        shown: for ``ww`` and ``rw``, the reads of those who overwrote what they had read, which
            show the order.
    """

    n: int
    after: dict[int, list[Edge]]
    shown: dict[Edge, tuple[int, ...]]
    _components: dict[frozenset[str], list[int]] = field(default_factory=dict)

    def components(self, relations: frozenset[str]) -> list[int]:
        """Per transaction the number of its strongly connected component, -1 where it is alone.

        Those of all edges are found first: components of some edges lie within them.
        """
        if not self._components:
            self._components[ALL] = _strong(self.n, _targets(self.after, ALL, [0] * (self.n + 1)))
        if relations not in self._components:
            within = self._components[ALL]
            self._components[relations] = _strong(self.n, _targets(self.after, relations, within))
        return self._components[relations]


def known_graph(
    problem: Problem, *, until: float, among: tuple[int, int] | None = None
) -> KnownGraph:
    """Collect the known edges of a history.

    Args:
        problem: of the history; reads with intrinsic anomalies give no edge.
        until: a moment of ``time.perf_counter`` after which the rest is left out.
        among: only those of reads, and of writers, from the first of these transactions to before
            the second.
    """
    native = problem.native
    n = native.n
    low, high = (0, n) if among is None else among
    included = native.inclusion == int(Inclusion.IN)
    writers = native.writer_txn.tolist()
    starts = native.candidate_start.tolist()
    candidates = native.candidate.tolist()
    next_of = _next_versions(problem, low, high)
    after: defaultdict[int, list[Edge]] = defaultdict(list)
    shown: dict[Edge, tuple[int, ...]] = {}
    for number, (reader, key, op) in enumerate(
        zip(
            native.read_txn.tolist(), native.read_key.tolist(), native.read_op.tolist(), strict=True
        )
    ):
        if number % 1024 == 0 and time.perf_counter() > until:
            break
        start, end = starts[number : number + 2]
        if end - start != 1 or not included[reader]:
            continue
        source = candidates[start]
        writer = writers[source]
        if writer != n:
            after[writer].append(Edge("wr", writer, reader, key, op))
        for later, ops in _later(source, next_of).items():
            over = writers[later]
            if over != reader and included[over]:
                edge = Edge("rw", reader, over, key, op, writer)
                after[reader].append(edge)
                shown[edge] = ops
    keys = _key_of_writers(problem)
    for source, successors in next_of.items():
        for later, ops in successors.items():
            a, b = writers[source], writers[later]
            if a != n and included[a] and included[b]:
                edge = Edge("ww", a, b, keys[source])
                after[a].append(edge)
                shown[edge] = ops
    last: dict[int, int] = {}
    unfinished = native.unfinished.tolist()
    for txn, session in enumerate(native.session[low:high].tolist(), low):
        if not included[txn]:
            continue
        if session in last:
            after[last[session]].append(Edge("so", last[session], txn))
        if not unfinished[txn]:
            last[session] = txn
    return KnownGraph(n, dict(after), shown)


def _reads(problem: Problem, low: int, high: int) -> Iterator[tuple[int, int, int, int]]:
    """The reads of some transactions: number, reader, key and operation; they stand together."""
    native = problem.native
    first, last = native.read_txn.searchsorted((low, high)).tolist()
    columns = (native.read_txn, native.read_key, native.read_op)
    return zip(range(first, last), *(c[first:last].tolist() for c in columns), strict=True)


def _key_of_writers(problem: Problem) -> list[int]:
    import numpy as np

    starts = problem.native.key_start
    keys: list[int] = np.repeat(np.arange(len(starts) - 1), np.diff(starts)).tolist()
    return keys


_Next: TypeAlias = dict[int, dict[int, tuple[int, ...]]]


def _next_versions(problem: Problem, low: int, high: int) -> _Next:
    """Per writer, those that come right after it, each with the read that shows it, if one does.

    Orders that list reads show need no read here: whoever looks at a key looks at those.
    """
    native = problem.native
    n, starts = native.n, native.key_start.tolist()
    writers = native.writer_txn.tolist()
    found: defaultdict[int, dict[int, tuple[int, ...]]] = defaultdict(dict)
    near = (native.writer_txn >= low) & (native.writer_txn < high) | (native.writer_txn == n)
    shown = near[native.vo_before] & near[native.vo_after]
    orders = (native.vo_before[shown].tolist(), native.vo_after[shown].tolist())
    for before, later in zip(*orders, strict=True):
        found[before][later] = ()
    listed = set(found)
    keys = _key_of_writers(problem)
    writer_of = {(keys[w], writers[w]): w for w in near.nonzero()[0].tolist()}
    first, candidates = native.candidate_start.tolist(), native.candidate.tolist()
    for number, reader, key, op in _reads(problem, low, high):
        start, end = first[number : number + 2]
        if end - start == 1 and candidates[start] not in listed:
            own = writer_of.get((key, reader))
            if own is not None:
                found[candidates[start]][own] = (op,)
    for start, end in pairwise(starts):
        # Where no version of a key is known to be the first, all come after T0's.
        if writers[start] == n and start not in found and end - start - 1 <= _SUCCESSORS:
            found[start] = dict.fromkeys(range(start + 1, end), ())
    return dict(found)


def _later(writer: int, next_of: _Next) -> dict[int, tuple[int, ...]]:
    """The versions that come soon after one, each with the reads that show it."""
    found: dict[int, tuple[int, ...]] = {}
    front: dict[int, tuple[int, ...]] = {writer: ()}
    for _ in range(_VERSIONS):
        following: dict[int, tuple[int, ...]] = {}
        for one, ops in front.items():
            for later, shown in islice(next_of.get(one, {}).items(), _SUCCESSORS):
                if later not in found and later != writer:
                    following.setdefault(later, (*ops, *shown))
        found |= following
        front = following
        if len(found) >= _SUCCESSORS:
            break
    return dict(islice(found.items(), _SUCCESSORS))


def short_cycles(
    graph: KnownGraph,
    relations: frozenset[str],
    *,
    closing: frozenset[str] | None = None,
    until: float,
    below: Callable[[], int] = lambda: _LONGEST + 1,
) -> Iterator[Cycle]:
    """Give cycles of known edges, those of two edges first, and then longer and longer ones.

    Of the longer ones, a shortest one for each edge that closes some.

    Args:
        graph: the edges.
        relations: those that may be used.
        closing: those of the edge that closes a cycle, if it is not one of these.
        until: a moment of ``time.perf_counter`` at which to end.
        below: cycles have fewer edges than that; asked again and again.
    """
    closing = relations if closing is None else closing
    component = graph.components(relations | closing)
    inner = {
        a: _best([e for e in edges if component[e.b] == component[a]])
        for a, edges in graph.after.items()
        if component[a] >= 0
    }
    closers = sorted((e for e in _all(inner) if e.relation in closing), key=_rank)
    inner = {a: [e for e in edges if e.relation in relations] for a, edges in inner.items()}
    by_ends: defaultdict[tuple[int, int], list[Edge]] = defaultdict(list)
    for edge in _all(inner):
        by_ends[edge.a, edge.b].append(edge)
    pairs = [(one, other) for one in closers for other in by_ends.get((one.b, one.a), ())]
    yield from sorted((pair for pair in pairs if _rank(pair[0]) >= _rank(pair[1])), key=_weight)
    closers = [edge for edge in closers if (edge.b, edge.a) not in by_ends]
    for length in range(3, _LONGEST + 1):
        if length >= below():
            return
        left = []
        for edge in closers:
            if time.perf_counter() > until:
                return
            path = _path(inner, edge.b, edge.a, length - 1)
            if path is None:
                left.append(edge)
            else:
                yield (edge, *path)
        closers = left


def _all(after: Mapping[int, Sequence[Edge]]) -> Iterator[Edge]:
    return (edge for edges in after.values() for edge in edges)


# From what people follow most easily.
_ORDER: Final = ("ww", "wr", "so", "rt", "rw")


def _rank(edge: Edge) -> int:
    return _ORDER.index(edge.relation)


def _weight(cycle: Cycle) -> tuple[int, bool, int]:
    """The simpler first; two updates of one version before two of different keys."""
    anti = sum(edge.relation == "rw" for edge in cycle)
    return anti, len({edge.key for edge in cycle}) > 1, sum(_rank(edge) for edge in cycle)


def _best(edges: Sequence[Edge]) -> list[Edge]:
    """Of parallel edges of one relation and key, the first."""
    found: dict[tuple[int, str, int], Edge] = {}
    for edge in edges:
        found.setdefault((edge.b, edge.relation, edge.key), edge)
    return sorted(found.values(), key=_rank)


def _path(after: dict[int, list[Edge]], start: int, end: int, longest: int) -> list[Edge] | None:
    """A shortest path of at most ``longest`` edges; of several, one with less rw at its start."""
    came: dict[int, Edge | None] = {start: None}
    front = [start]
    for _ in range(longest):
        following = []
        for a in front:
            for edge in after.get(a, ()):
                if edge.b in came:
                    continue
                came[edge.b] = edge
                if edge.b == end:
                    return _back(came, end)
                following.append(edge.b)
        front = following
    return None


def _back(came: dict[int, Edge | None], end: int) -> list[Edge]:
    path: list[Edge] = []
    while (edge := came[end]) is not None:
        path.append(edge)
        end = edge.a
    return path[::-1]


def _targets(
    after: Mapping[int, Sequence[Edge]], relations: frozenset[str], within: Sequence[int]
) -> dict[int, list[int]]:
    """The edges of some relations whose ends are in one component."""
    return {
        a: [e.b for e in edges if e.relation in relations and within[e.b] == within[a]]
        for a, edges in after.items()
        if within[a] >= 0
    }


def _strong(n: int, targets: Mapping[int, Sequence[int]]) -> list[int]:
    """Tarjan's algorithm, without recursion."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found = [-1] * (n + 1)
    number = 0
    for root, first in targets.items():
        if root in index:
            continue
        work: list[tuple[int, Iterator[int]]] = [(root, iter(first))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            for target in rest:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(targets.get(target, ()))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    members = []
                    while True:
                        one = stack.pop()
                        on_stack.discard(one)
                        members.append(one)
                        if one == node:
                            break
                    if len(members) > 1:
                        for one in members:
                            found[one] = number
                        number += 1
    return found
