"""The hyper-polygraph of a history: its known edges and open choices at a stage of pruning.

Every encoding of event graphs starts from the polygraph. The stages of pruning are:

* ``none``: only the history's facts are known. Each external read chooses among its candidates,
  even if there is only one. Each pair of writers of a key may come in either order.
* ``known``: the facts and their direct consequences are known. A read's only candidate is its
  source, the orders shown by list reads are closed transitively, and anti-dependencies are derived.
* ``fixpoint``: everything that the native engine infers from paths of known edges is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from isolang.arrays import np
from isolang.problem.distinct import distinct, is_among
from isolang.problem.event_graph import EventGraph, Ints, build_event_graph
from isolang.problem.problem import InclusionStatus, Problem
from isolang.problem.prune import Prune
from isolang.problem.until import remaining_seconds
from isolang.rows import bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang.language.classify.automaton import Automaton


class Polygraph(Struct, frozen=True, kw_only=True):
    """The input of an encoding. Writers are indices into ``Problem.native.writer_*``.

    Attributes:
        graph: the event graph, which provides the edges for each choice.
        prune: the stage of pruning.
        contradiction: whether pruning found that no choice satisfies the axioms. If so, the other
            fields are meaningless.
        known: int32[m, 2]; the edges present under every choice.
        source: int32[reads]; the writer that each read reads from, or -1 if the source is open.
        choice_read: int32[k]; the reads whose source is open, with one entry for each candidate.
        choice_writer: int32[k]; for each entry of ``choice_read``, the candidate writer.
        settled: int32[s, 2]; the pairs of writers of one key in which the first certainly precedes
            the second. Pairs with T0 are left out, because T0 precedes all writers.
        open: int32[p, 2]; the pairs of writers of one key that may come in either order.
        inclusion: uint8[n + 1]; the status of each transaction, as in the problem except for
            optional transactions included by pruning.
    """

    graph: EventGraph
    prune: Prune
    contradiction: bool
    known: Ints
    source: Ints
    choice_read: Ints
    choice_writer: Ints
    settled: Ints
    open: Ints
    inclusion: NDArray[np.uint8]

    @property
    def problem(self) -> Problem:
        """The problem that the polygraph was built from."""
        return self.graph.problem

    def reduced(self, edges: Ints) -> Ints:
        """Return the edges without most of the redundant ones implied by paths of other edges."""
        from isolang import _native

        return _native.reduced_edges(self.graph.nodes, edges)

    def choosing_reads(self) -> NDArray[np.intp]:
        """Return the reads whose source is open, even those without candidates."""
        if not self.graph.uses_reads:
            return np.zeros(0, np.intp)
        (reads,) = np.nonzero(self.source < 0)
        return reads


def build_polygraph(
    problem: Problem,
    automata: Sequence[Automaton],
    prune: Prune = "fixpoint",
    *,
    until: float | None = None,
) -> Polygraph:
    """Build the polygraph of a problem and prune it up to a stage.

    Raises:
        TimeoutError: if this time has passed.
    """
    graph = build_event_graph(problem, automata)
    if prune == "fixpoint":
        return _fixpoint(graph, until)
    native = problem.native
    source = np.full(len(native.read_txn), -1, np.int32)
    alive = np.ones(len(native.candidate), bool)
    inclusion = native.inclusion.copy()
    settled = np.zeros((0, 2), np.int32)
    edges = [graph.facts]
    if prune == "known":
        if graph.uses_reads:
            alive = ~is_among(native.writer_txn[native.candidate], native.impossible)
            source = _only_candidates(problem, alive)
            taken = native.writer_txn[source[source >= 0]]
            inclusion[taken] = int(InclusionStatus.IN)
        if graph.uses_orders:
            settled = observed_version_orders(problem)
            u, v, _ = graph.ww(settled[:, 0], settled[:, 1])
            edges.append(np.stack((u, v), axis=1))
        edges += _edges_of_settled_reads(graph, source, settled)
    return _make_polygraph(
        graph,
        prune,
        known=np.concatenate(edges),
        source=source,
        alive=alive,
        settled=settled,
        inclusion=inclusion,
        until=until,
    )


def count_writer_pairs(problem: Problem) -> int:
    """Return the number of writer pairs on the same key."""
    writers = np.diff(problem.native.key_start).astype(np.int64)
    return int((writers * (writers - 1) // 2).sum())


def estimate_clauses(polygraph: Polygraph) -> int:
    """Estimate the number of clauses in an encoding of the polygraph.

    The estimate counts one clause per open pair of writers, and one per combination of a read's
    candidate and a writer of the same key.
    """
    native = polygraph.problem.native
    writers = np.diff(native.key_start).astype(np.int64)
    of_reads = writers[native.read_key]
    settled = of_reads[polygraph.source >= 0].sum()
    return int(len(polygraph.open) + settled + of_reads[polygraph.choice_read].sum())


def _only_candidates(problem: Problem, alive: NDArray[np.bool_]) -> Ints:
    """Return each read's only candidate, if it has just one and the reader is included.

    The value is -1 for all other reads.
    """
    native = problem.native
    reads = len(native.read_txn)
    of_read = np.repeat(np.arange(reads), np.diff(native.candidate_start))[alive]
    count = np.bincount(of_read, minlength=reads)
    only = np.full(reads, -1, np.int32)
    only[of_read] = native.candidate[alive]
    reader_in = native.inclusion[native.read_txn] == int(InclusionStatus.IN)
    return np.where((count == 1) & reader_in, only, np.int32(-1))


def observed_version_orders(problem: Problem) -> Ints:
    """Return the transitive closure of the version orders shown by list reads.

    The result contains pairs of writers, without those that begin with T0.
    """
    native = problem.native
    after: dict[int, set[int]] = defaultdict(set)
    for a, b in zip(native.vo_before.tolist(), native.vo_after.tolist(), strict=True):
        after[a].add(b)
    # For each writer, a bit mask of its key's later writers; bit 0 is the key's first writer.
    reach: dict[int, int] = {}
    first_of = native.key_start.tolist()
    pairs: list[tuple[int, int]] = []
    for a in _reverse_topological_order(after):
        first = first_of[int(np.searchsorted(native.key_start, a, side="right")) - 1]
        row = 0
        for b in after[a]:
            row |= 1 << (b - first) | reach.get(b, 0)
        reach[a] = row
        if native.writer_txn[a] != native.n:
            pairs += [(a, first + b) for b in bits(row)]
    return np.array(pairs, np.int32).reshape(-1, 2)


def _reverse_topological_order(after: dict[int, set[int]]) -> list[int]:
    """Return the writers that precede other writers, in reverse topological order."""
    done: dict[int, None] = {}
    for start in after:
        stack = [start]
        while stack:
            a = stack[-1]
            waiting = [b for b in after[a] if b in after and b not in done] if a not in done else []
            if waiting:
                stack += waiting
            else:
                done.setdefault(stack.pop())
    return list(done)


def _edges_of_settled_reads(graph: EventGraph, source: Ints, settled: Ints) -> list[Ints]:
    """Return the edges implied by reads whose source is settled.

    These are their ``wr`` edges, and their ``rw`` edges to writers that certainly come after the
    source.
    """
    reads = np.flatnonzero(source >= 0).astype(np.int32)
    u, v, _ = graph.wr(source[reads], reads)
    edges = [np.stack((u, v), axis=1)]
    if graph.uses_orders:
        which, writer = later_writers(graph.problem, source[reads], settled)
        u, v, _ = graph.rw(reads[which], writer)
        edges.append(np.stack((u, v), axis=1))
    return edges


def later_writers(
    problem: Problem, writers: Ints, settled: Ints
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return, for each given writer, its key's writers that certainly come later.

    T0 precedes all other writers of a key.

    Returns:
        Two arrays of equal length: indices into ``writers``, and the later writers.
    """
    native = problem.native
    order = np.argsort(settled[:, 0], kind="stable")
    start = np.searchsorted(settled[order, 0], np.arange(len(native.writer_txn) + 1))
    place, index = expand_ranges(start[writers], start[writers + 1])
    later = settled[order[index], 1]
    initial = native.writer_txn[writers] == native.n
    key = np.searchsorted(native.key_start, writers, side="right") - 1
    (which,) = np.nonzero(initial)
    place0, writer0 = expand_ranges(writers[which] + 1, native.key_start[key[which] + 1])
    return (
        np.concatenate([place, which[place0]]),
        np.concatenate([later, writer0]).astype(np.int32),
    )


def expand_ranges(
    start: NDArray[np.integer], end: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers in all ranges from ``start`` (inclusive) to ``end`` (exclusive).

    Returns:
        Two arrays of equal length: for each number, the index of its range, and the number itself.
    """
    length = (end - start).astype(np.int64)
    place = np.repeat(np.arange(len(length)), length)
    offset = np.arange(len(place)) - np.repeat(np.cumsum(length) - length, length)
    return place, start[place].astype(np.int64) + offset


def _make_polygraph(
    graph: EventGraph,
    prune: Prune,
    *,
    known: Ints,
    source: Ints,
    alive: NDArray[np.bool_],
    settled: Ints,
    inclusion: NDArray[np.uint8],
    until: float | None,
) -> Polygraph:
    native = graph.problem.native
    of_read = _reads_by_candidate(graph.problem)
    chosen = alive & (source[of_read] < 0) & graph.uses_reads
    without_candidates = np.bincount(of_read[alive], minlength=len(source)) == 0
    without_candidates &= inclusion[native.read_txn] == int(InclusionStatus.IN)
    return Polygraph(
        graph=graph,
        prune=prune,
        contradiction=bool(graph.uses_reads and without_candidates.any()),
        known=known,
        source=source,
        choice_read=of_read[chosen],
        choice_writer=native.candidate[chosen],
        settled=settled,
        open=_open_pairs(graph.problem, settled, until) if graph.uses_orders else settled[:0],
        inclusion=inclusion,
    )


def _reads_by_candidate(problem: Problem) -> Ints:
    native = problem.native
    reads = np.arange(len(native.read_txn), dtype=np.int32)
    return np.repeat(reads, np.diff(native.candidate_start))


def _open_pairs(problem: Problem, settled: Ints, until: float | None) -> Ints:
    """Return the pairs of writers of one key that may come in either order.

    These are all unsettled pairs without T0.
    """
    native = problem.native
    count = len(native.writer_txn)
    known = distinct(settled.min(axis=1).astype(np.int64) * count + settled.max(axis=1))
    pairs = [np.zeros((0, 2), np.int32)]
    starts = native.key_start.tolist()
    for first, last in pairwise(starts):
        remaining_seconds(until)
        i, j = np.triu_indices(last - first - 1, 1)
        a, b = first + 1 + i, first + 1 + j
        if len(known):
            free = ~is_among(a.astype(np.int64) * count + b, known)
            a, b = a[free], b[free]
        pairs.append(np.stack((a, b), axis=1).astype(np.int32))
    return np.concatenate(pairs)


def _fixpoint(graph: EventGraph, until: float | None) -> Polygraph:
    from isolang import _native

    native = graph.problem.native
    columns = graph.problem.history.columns
    pruned = _native.prune(columns, native, list(graph.automata), remaining_seconds(until) or 0.0)
    graph = _with_engine_numbering(graph, pruned["nodes"], pruned["version_base"])
    source: Ints = pruned["source"]
    settled: Ints = pruned["settled"].reshape(-1, 2)
    known = [pruned["edges"].reshape(-1, 2)]
    if not graph.uses_orders:
        u, v, _ = graph.ww(native.vo_before, native.vo_after)
        known.append(np.stack((u, v), axis=1))
    if pruned["consistent"] and not pruned["fixpoint"]:
        known += _edges_of_settled_reads(graph, source, settled)
    of_read = _reads_by_candidate(graph.problem)
    chosen = pruned["alive"].astype(bool) & (source[of_read] < 0) & graph.uses_reads
    return Polygraph(
        graph=graph,
        prune="fixpoint",
        contradiction=not pruned["consistent"],
        known=np.concatenate(known),
        source=source,
        choice_read=of_read[chosen],
        choice_writer=native.candidate[chosen],
        settled=settled,
        open=pruned["open"].reshape(-1, 2),
        inclusion=pruned["inclusion"],
    )


def _with_engine_numbering(graph: EventGraph, nodes: int, version_base: int) -> EventGraph:
    """Return the graph with auxiliary and version nodes numbered as in the engine."""
    if graph.version_base < 0:
        return replace(graph, nodes=nodes)
    writers = len(graph.order_node)
    base = version_base if version_base >= 0 else nodes
    order_node = base + np.arange(writers, dtype=np.int32)
    nodes = max(nodes, base + writers)
    return replace(graph, nodes=nodes, version_base=base, order_node=order_node)
