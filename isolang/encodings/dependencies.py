"""Lists the dependencies that depend on choices, each with the choices it requires."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from isolang.arrays import np
from isolang.encodings.formula import Builder, Ints, PolygraphFormula, Theory
from isolang.problem.chains import Chains, build_chains
from isolang.problem.distinct import is_among
from isolang.problem.polygraph import expand_ranges
from isolang.problem.problem import InclusionStatus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang.problem.polygraph import Polygraph


class Dependencies(Struct, frozen=True, kw_only=True):
    """The ``ww`` and ``rw`` pairs that hold only under some choices, and the known edges.

    A pair may require a source and an order of two chains. A required source is encoded as 1 + the
    number of a source choice; 0 means that the pair requires no source. A required order is encoded
    as ±(1 + the number of an open pair of chains); 0 means that the pair requires no order. It is
    positive if the first chain of the open pair must precede the second. The ``wr`` pairs are the
    source choices themselves.

    Attributes:
        known: int32[m, 2]; the edges that hold under every choice, without most redundant edges:
            the known edges of the polygraph, and those that follow from settled sources and from
            chains.
        ww_first: int32; the first writer of each ``ww`` pair.
        ww_second: int32; the second writer of each ``ww`` pair.
        ww_order: int32; the order required by each ``ww`` pair.
        rw_read: int32; the external read of each ``rw`` pair.
        rw_writer: int32; the writer of each ``rw`` pair.
        rw_choice: int32; the source required by each ``rw`` pair.
        rw_order: int32; the order required by each ``rw`` pair.
    """

    chains: Chains
    known: Ints
    ww_first: Ints
    ww_second: Ints
    ww_order: Ints
    rw_read: Ints
    rw_writer: Ints
    rw_choice: Ints
    rw_order: Ints


def list_dependencies(polygraph: Polygraph, *, combined: bool = False) -> Dependencies:
    """Return the dependencies that a polygraph's choices can add."""
    graph = polygraph.graph
    chains = build_chains(polygraph, allowed=combined)
    a, b = chains.open[:, 0], chains.open[:, 1]
    number = np.arange(1, len(a) + 1, dtype=np.int32)
    none = np.zeros(0, np.int32)
    if not graph.uses_orders:
        empty = dict.fromkeys(("ww_first", "ww_second", "ww_order", "rw_read"), none)
        more = dict.fromkeys(("rw_writer", "rw_choice", "rw_order"), none)
        least = polygraph.reduced(polygraph.known)
        return Dependencies(chains=chains, known=least, **empty, **more)
    ordered = _Ordered(
        np.concatenate([a, b]), np.concatenate([b, a]), np.concatenate([number, -number])
    )
    settled = _Ordered(
        chains.settled[:, 0], chains.settled[:, 1], np.zeros(len(chains.settled), np.int32)
    )
    read = np.flatnonzero(polygraph.source >= 0).astype(np.int32)
    source = polygraph.source[read]
    point = _insertion_points(polygraph, chains, source, read)
    certain = _Reads(read, point, np.zeros(len(read), np.int32))
    # A read with a settled source precedes the writers that certainly come after that source. The
    # polygraph already has these edges for its settled pairs of writers. They are missing only for
    # pairs that were settled by combining writers into chains.
    fresh = _Ordered(*_newly_settled_pairs(polygraph, chains), settled.order[:0])
    moved = point != source
    parts = [
        _overwrites(polygraph, chains, ordered, certain),
        _overwrites(polygraph, chains, settled, _Reads(*(c[moved] for c in certain))),
        _overwrites(polygraph, chains, fresh, certain),
        _overwrites_inside_chains(chains, certain),
    ]
    read = polygraph.choice_read
    point = _insertion_points(polygraph, chains, polygraph.choice_writer, read)
    choice = np.arange(1, len(read) + 1, dtype=np.int32)
    for part in (ordered, settled):
        parts.append(_overwrites(polygraph, chains, part, _Reads(read, point, choice)))
    parts.append(_overwrites_inside_chains(chains, _Reads(read, point, choice)))
    rw = [np.concatenate(column) for column in zip(*parts, strict=True)]
    always = (rw[2] == 0) & (rw[3] == 0)
    known = [polygraph.known]
    for u, v, _ in (
        graph.rw(rw[0][always], rw[1][always]),
        graph.ww(np.flatnonzero(chains.next >= 0).astype(np.int32), chains.next[chains.next >= 0]),
        graph.ww(chains.tail[fresh.first], fresh.second),
    ):
        known.append(np.stack((u, v), axis=1))
    return Dependencies(
        chains=chains,
        known=polygraph.reduced(np.concatenate(known)),
        ww_first=chains.tail[ordered.first],
        ww_second=ordered.second,
        ww_order=ordered.order,
        rw_read=rw[0][~always],
        rw_writer=rw[1][~always],
        rw_choice=rw[2][~always],
        rw_order=rw[3][~always],
    )


class _Ordered:
    """Pairs of chains (represented by their heads), with the order required by each pair."""

    def __init__(self, first: Ints, second: Ints, order: Ints) -> None:
        order = order if len(order) == len(first) else np.zeros(len(first), np.int32)
        by_first = np.argsort(first, kind="stable")
        self.first, self.second = first[by_first], second[by_first]
        self.order = order[by_first]

    def after(self, heads: Ints) -> tuple[NDArray[np.int64], Ints, Ints]:
        """Return the chains that may come after the chains with the given heads.

        Returns:
            Three arrays of equal length: indices into ``heads``, the heads of later chains, and the
            orders required by the pairs.
        """
        start = np.searchsorted(self.first, heads, side="left")
        end = np.searchsorted(self.first, heads, side="right")
        place, index = expand_ranges(start, end)
        return place, self.second[index], self.order[index]


def _insertion_points(polygraph: Polygraph, chains: Chains, writer: Ints, read: Ints) -> Ints:
    """Return the writer that each read directly follows in its chain.

    This is usually the read's source. If the next writer is the reader itself, it is the reader,
    because ``rw`` does not relate a transaction to itself.
    """
    native, following = polygraph.problem.native, chains.next[writer]
    own = (following >= 0) & (native.writer_txn[following] == native.read_txn[read])
    return np.where(own, following, writer).astype(np.int32)


class _Reads(NamedTuple):
    """Three arrays of equal length: reads, their insertion points, and the required sources."""

    read: Ints
    point: Ints
    choice: Ints


def _overwrites(
    polygraph: Polygraph, chains: Chains, ordered: _Ordered, reads: _Reads
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the ``rw`` pairs from reads at the tail of a chain to the heads of later chains.

    Returns:
        Four arrays of equal length: reads, writers, required sources and required orders.
    """
    read, point, choice = reads
    (at_tail,) = np.nonzero(chains.next[point] < 0)
    place, writer, order = ordered.after(chains.head[point[at_tail]])
    place = at_tail[place]
    native = polygraph.problem.native
    own = native.writer_txn[writer] == native.read_txn[read[place]]
    writer = np.where(own, chains.next[writer], writer).astype(np.int32)
    keep = writer >= 0
    place = place[keep]
    return read[place], writer[keep], choice[place], order[keep]


def _overwrites_inside_chains(chains: Chains, reads: _Reads) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the ``rw`` pairs from reads of versions inside chains to the next writers."""
    read, point, choice = reads
    (inside,) = np.nonzero(chains.next[point] >= 0)
    writer = chains.next[point[inside]]
    return read[inside], writer, choice[inside], np.zeros(len(inside), np.int32)


def _newly_settled_pairs(polygraph: Polygraph, chains: Chains) -> tuple[Ints, Ints]:
    """Return the pairs of chains that are settled only because writers were combined into chains.

    Returns:
        The heads of the first chains, and the heads of the second chains.
    """
    native = polygraph.problem.native
    count = len(native.writer_txn)
    if (chains.next < 0).all():  # each chain has only one writer
        return chains.settled[:0, 0], chains.settled[:0, 1]
    several = chains.next >= 0
    several[chains.tail] |= chains.head[chains.tail] != chains.tail
    # If both chains have a single writer, the polygraph already has the pair, or it begins with T0.
    settled = chains.settled[(several[chains.settled]).any(axis=1)]
    tail, head = chains.tail[settled[:, 0]].astype(np.int64), settled[:, 1]
    known = polygraph.settled[:, 0].astype(np.int64) * count + polygraph.settled[:, 1]
    ends = np.zeros(count, bool)
    ends[tail] = True
    known = known[ends[polygraph.settled[:, 0]]]
    fresh = ~is_among(tail * count + head, known) & (native.writer_txn[tail] != native.n)
    return settled[fresh, 0], settled[fresh, 1]


# --- functions used by all encodings ---


def choose_sources(builder: Builder, polygraph: Polygraph) -> tuple[Ints, Ints]:
    """Create a variable for each source choice, and a clause for each read with an open source.

    The clause requires the read to have one of its candidates as its source. An indeterminate
    transaction is included if an included transaction reads from it, and its own reads need a
    source only if it is included.

    Returns:
        The literal of each source choice, and the array :attr:`PolygraphFormula.reads`.
    """
    native, names = polygraph.problem.native, _Names(polygraph)
    source = builder.new(len(polygraph.choice_read), names.source)
    optional = np.flatnonzero(polygraph.inclusion == int(InclusionStatus.OPTIONAL))
    if not polygraph.graph.uses_reads:
        optional = optional[:0]
    included = np.zeros(native.n + 1, np.int32)
    included[optional] = builder.new(
        len(optional), lambda i: f"{names.txn(int(optional[i]))} is in"
    )
    out = native.impossible[included[native.impossible] > 0]
    builder.clauses(-included[out])
    takes = included[native.writer_txn[polygraph.choice_writer]]
    builder.clauses(-source[takes > 0], takes[takes > 0])
    reads = polygraph.choosing_reads()
    if polygraph.contradiction:
        builder.raw_clauses([0])
        reads = reads[:0]
    start = np.searchsorted(polygraph.choice_read, reads, side="left").tolist()
    end = np.searchsorted(polygraph.choice_read, reads, side="right").tolist()
    listed, flat, known = source.tolist(), [], []
    first = sum(int(np.count_nonzero(part == 0)) for part in [builder.all_clauses()])
    for number, (read, a, b) in enumerate(zip(reads.tolist(), start, end, strict=True)):
        reader = int(included[native.read_txn[read]])
        flat += [*([-reader] if reader else []), *listed[a:b], 0]
        known.append((read, first + number))
    builder.raw_clauses(flat)
    return source, np.array(known, np.int32).reshape(-1, 2)


def build_formula(
    builder: Builder,
    polygraph: Polygraph,
    choice: Ints,
    reads: Ints,
    *,
    encoding: str,
    theory: Theory,
    width: int = 0,
) -> PolygraphFormula:
    """Build the formula of a polygraph from the clauses and edges collected by ``builder``."""
    return PolygraphFormula(
        encoding=encoding,
        theory=theory,
        variables=builder.variables,
        clauses=builder.all_clauses(),
        nodes=polygraph.graph.nodes,
        edges=builder.all_edges(),
        choice=choice,
        reads=reads,
        width=width,
        polygraph=polygraph,
        names=tuple(builder.names),
    )


class _Names:
    """Texts that describe variables in terms of the history's transactions and keys."""

    def __init__(self, polygraph: Polygraph) -> None:
        self._polygraph = polygraph
        self._history = polygraph.problem.history
        self._native = polygraph.problem.native

    def txn(self, txn: int) -> str:
        return "T0" if txn == self._native.n else self._history.name_of(txn)

    def writer(self, writer: int) -> str:
        return self.txn(int(self._native.writer_txn[writer]))

    def key(self, writer: int) -> str:
        key = int(np.searchsorted(self._native.key_start, writer, side="right")) - 1
        return self._history.key(key)

    def source(self, i: int) -> str:
        read, writer = self._polygraph.choice_read[i], int(self._polygraph.choice_writer[i])
        reader = self.txn(int(self._native.read_txn[read]))
        return f"{self.writer(writer)} -wr-> {reader} on {self.key(writer)}"

    def order(self, first: int, second: int) -> str:
        return f"{self.writer(first)} -ww-> {self.writer(second)} on {self.key(first)}"


def names_of(polygraph: Polygraph) -> _Names:
    """Return texts that describe the variables of a polygraph's encoding."""
    return _Names(polygraph)
