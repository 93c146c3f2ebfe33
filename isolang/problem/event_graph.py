"""Builds event graphs with numpy: nodes, known edges, and the edges for a relation's pairs.

``native/engine/graph/event_graph.cpp`` implements the same definition independently. Therefore an
encoding that does not prune shares only the problem with the engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from isolang.arrays import np
from isolang.history.columns import NIL_ATOM, UNKNOWN_BEGIN, UNKNOWN_END
from isolang.language.vocabulary import (
    FILTERED,
    MOMENTS,
    NAMED,
    OF_READS,
    OVERWRITING,
    PARTS,
    TESTS,
    ends_of,
    relation_of,
    whole_letter,
)
from isolang.problem.distinct import distinct

if TYPE_CHECKING:
    from isolang import _native
    from isolang.language.classify.automaton import Automaton, Restriction
    from isolang.problem.problem import Problem

Ints: TypeAlias = NDArray[np.int32]
Edges: TypeAlias = tuple[Ints, Ints, NDArray[np.int64]]
"""Three arrays of equal length: each edge's first node, its second node, and the index of the pair
it comes from.
"""

Step: TypeAlias = tuple[int, int]


class EventGraph(Struct, frozen=True, kw_only=True):
    """The disjoint union of a history's products with the automata of all checks.

    Node ``(check, transaction, state)`` has the number ``base[check] + transaction · states +
    state``. Auxiliary nodes have the next numbers. If no automaton orders the versions, they are
    followed by one version node per writer.

    Attributes:
        facts: int32[m, 2]; the edges present under every choice.
        base: the number of each check's first node.
        order_node: int32[writers]; for each writer, the node that represents it in version orders:
            in any topological order of the nodes, a key's writers appear in version order.
        version_base: the number of the first version node, or -1 if version nodes are not needed.
        uses_reads: whether any step is ``wr`` or ``rw``, or a part of one of them.
        uses_orders: whether any step is ``ww`` or ``rw``, or a part of ``rw``.
    """

    problem: Problem
    automata: Sequence[Automaton]
    nodes: int
    facts: Ints
    base: tuple[int, ...]
    order_node: Ints
    version_base: int
    uses_reads: bool
    uses_orders: bool

    def wr(self, writer: Ints, read: Ints) -> Edges:
        """Return the edges for ``wr`` pairs, given as indices of writers and reads."""
        native = self.problem.native
        return self._edges_of_reads("wr", native.writer_txn[writer], native.read_txn[read], read)

    def ww(self, first: Ints, second: Ints) -> Edges:
        """Return the edges for ``ww`` pairs, given as indices of earlier and later writers."""
        writer_txn = self.problem.native.writer_txn
        u, v, origin = self._product("ww", writer_txn[first], writer_txn[second], self._key[first])
        if self.version_base < 0:
            return u, v, origin
        own = np.arange(len(first), dtype=np.int64)
        return (
            np.concatenate([u, self.order_node[first]]),
            np.concatenate([v, self.order_node[second]]),
            np.concatenate([origin, own]),
        )

    def rw(self, read: Ints, writer: Ints) -> Edges:
        r"""Return the edges for ``rw`` pairs, given as indices of reads and writers.

        An edge never leads from a transaction to itself, because ``rw = (wr^-1 ; ww) \ id``.
        """
        native = self.problem.native
        reader, overwriter = native.read_txn[read], native.writer_txn[writer]
        (other,) = np.nonzero(reader != overwriter)
        u, v, origin = self._edges_of_reads("rw", reader[other], overwriter[other], read[other])
        return u, v, other[origin]

    def _edges_of_reads(self, relation: str, a: Ints, b: Ints, read: Ints) -> Edges:
        """Return the edges for a relation's pairs (a, b), where pair i results from ``read[i]``.

        A part of the relation, such as ``prw``, has edges only for predicate reads or only for item
        reads.
        """
        key = self.problem.native.read_key[read]
        found = [self._product(relation, a, b, key)]
        by_predicate = self.problem.native.read_predicate
        for part, of_predicate in zip(PARTS[relation], (False, True), strict=True):
            predicate = by_predicate[read] != 0 if len(by_predicate) else np.zeros(len(read), bool)
            (some,) = np.nonzero(predicate == of_predicate)
            u, v, origin = self._product(part, a[some], b[some], key[some])
            found.append((u, v, some[origin]))
        u, v, origin = (np.concatenate(column) for column in zip(*found, strict=True))
        return u, v, origin

    @property
    def _key(self) -> Ints:
        """int32[writers]; the key of each writer."""
        native = self.problem.native
        return np.repeat(np.arange(native.keys, dtype=np.int32), np.diff(native.key_start))

    def _product(self, relation: str, a: Ints, b: Ints, key: Ints) -> Edges:
        u, v, origin = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for base, automaton in zip(self.base, self.automata, strict=True):
            for (q, r), restriction in steps_of(automaton, relation):
                every = np.arange(len(a), dtype=np.int64)
                if restriction is not None:
                    every = every[admitted_keys(self.problem, restriction)[key]]
                u.append((base + a[every] * automaton.states + q).astype(np.int32))
                v.append((base + b[every] * automaton.states + r).astype(np.int32))
                origin.append(every)
        return np.concatenate(u), np.concatenate(v), np.concatenate(origin)


def steps_of(automaton: Automaton, letter: str) -> Iterator[tuple[Step, Restriction | None]]:
    """Yield each step of a letter with its restriction to key or label names.

    The restriction is ``None`` if the step has none.
    """
    for own, steps in automaton.steps.items():
        if whole_letter(own) == letter:
            for step in steps:
                yield step, automaton.restricted.get(own)


def admitted_keys(problem: Problem, restriction: Restriction | None) -> NDArray[np.bool_]:
    """Return a mask of the keys admitted by a restriction such as ``["audit/*"]``.

    The restriction ``None`` admits all keys.
    """
    names = range(problem.native.keys)
    if restriction is None:
        return np.ones(len(names), bool)
    _, patterns, negated = restriction
    of_class = re.compile("|".join(map(_expression, patterns)), re.DOTALL)
    found = [of_class.fullmatch(problem.history.key_name(key)) is not None for key in names]
    kept: NDArray[np.bool_] = np.array(found, bool) != negated
    return kept


def _expression(pattern: str) -> str:
    return "".join(".*" if c == "*" else re.escape(c) for c in pattern)


def transactions_passing(
    problem: Problem, test: str, restriction: Restriction | None
) -> NDArray[np.int64]:
    """Return the numbers of the transactions that pass a test such as ``[W]`` or ``label``."""
    native = problem.native
    if test in ("W", "R"):
        keys = admitted_keys(problem, restriction)
        if test == "R":
            return distinct(native.read_txn[keys[native.read_key]]).astype(np.int64)
        of_writer = np.repeat(np.arange(native.keys), np.diff(native.key_start))
        return distinct(native.writer_txn[keys[of_writer]]).astype(np.int64)
    assert restriction is not None
    (pattern,), history = restriction[1], problem.history
    named = re.compile(_expression(pattern), re.DOTALL)

    def bears(t: int) -> bool:
        names = history.labels_of(t) if test == "label" else (history.level_of(t),)
        return any(name and named.fullmatch(name) for name in names) != restriction[2]

    present = np.flatnonzero(native.inclusion[: native.n]).tolist()
    return np.array([t for t in present if bears(t)], np.int64)


def build_event_graph(problem: Problem, automata: Sequence[Automaton]) -> EventGraph:
    """Build the event graph of a problem: its nodes, and the edges for known dependencies."""
    native = problem.native
    n = native.n
    base, total = [], 0
    for automaton in automata:
        base.append(total)
        total += (n + 1) * automaton.states
    chunks = _Chunks(total)
    for first, automaton in zip(base, automata, strict=True):
        _add_known(chunks, problem, automaton, first)
    used = {whole_letter(name) for a in automata for name, steps in a.steps.items() if steps}
    uses_orders = bool(used & {"ww", *OVERWRITING})
    ordering = next((c for c, a in enumerate(automata) if orders_versions(a)), None)
    version_base = -1
    if ordering is not None:
        order_node = (base[ordering] + native.writer_txn * automata[ordering].states).astype(
            np.int64
        )
    else:
        version_base = chunks.fresh(len(native.writer_txn))
        order_node = version_base + np.arange(len(native.writer_txn))
    graph = EventGraph(
        problem=problem,
        automata=automata,
        nodes=chunks.nodes,
        facts=np.zeros((0, 2), np.int32),
        base=tuple(base),
        order_node=order_node.astype(np.int32),
        version_base=version_base,
        uses_reads=bool(used & OF_READS),
        uses_orders=uses_orders,
    )
    initial = native.key_start[:-1]
    first_writer = np.repeat(initial, np.diff(native.key_start))
    everyone = np.arange(len(native.writer_txn), dtype=np.int32)
    later = everyone != first_writer
    for before, after in (
        (first_writer[later], everyone[later]),  # T0 precedes every writer of its keys
        (native.vo_before, native.vo_after),
    ):
        u, v, _ = graph.ww(before, after)
        chunks.add(u, v)
    return replace(graph, facts=chunks.edges())


def _add_known(chunks: _Chunks, problem: Problem, automaton: Automaton, first: int) -> None:
    """Add the edges for known dependencies to one automaton's part of the graph."""
    native, states = problem.native, automaton.states
    n = native.n
    (present,) = np.nonzero(native.inclusion[:n])
    everyone = np.append(present, n)

    def of(letter: str) -> Iterator[tuple[int, int]]:
        return ((first + q, first + r) for q, r in automaton.steps.get(letter, ()))

    def add(a: NDArray[np.int64], b: NDArray[np.int64], q: int, r: int) -> None:
        chunks.add(a * states + first + q, b * states + first + r)

    def in_time(some: NDArray[np.int64], ends: tuple[int, int]) -> None:
        _add_real_time_chain(chunks, problem, some, ends, states)
        for members in _session_members(problem, some) if len(native.slack) else ():
            _add_real_time_chain(chunks, problem, members, ends, states)

    for q, r in automaton.epsilon:
        add(everyone, everyone, q, r)
    for test in (*TESTS, *NAMED):
        for (q, r), restriction in steps_of(automaton, test):
            some = transactions_passing(problem, test, restriction)
            add(some, some, q, r)
    for q, r in automaton.steps.get("init", ()):
        add(np.full(len(present), n), present, q, r)
    for ends in of("so"):
        chained = _add_neighbour_edges if "so" in automaton.repeatable else _add_session_chain
        for members in _session_members(problem, present):
            chained(chunks, problem, members, ends, states)
    for ends in of("rt"):
        in_time(present, ends)
    for ends in of("group-rt"):
        groups = np.unique(native.group[present]) if len(native.group) else ()
        for group in (one for one in groups if one != NIL_ATOM):
            in_time(present[native.group[present] == group], ends)
    for name in MOMENTS:
        for q, r in automaton.steps.get(name, ()):
            add(*_transpose_pairs(pairs_by_commit_time(native, name)), q, r)
    for letter in FILTERED:
        for (q, r), restriction in steps_of(automaton, letter):
            keys = set(np.flatnonzero(admitted_keys(problem, restriction)).tolist())
            add(*_transpose_pairs(pairs_between_accesses(native, letter, keys)), q, r)


def _transpose_pairs(pairs: list[tuple[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and second members of pairs as two arrays."""
    a, b = np.array(pairs, np.int64).reshape(-1, 2).T
    return a, b


def certainly_precedes(native: _native.Problem, answered: int, a: int, sent: int, b: int) -> bool:
    """Return whether an answer to transaction a certainly precedes a request of transaction b.

    Two transactions in the same session are compared by that session's clock, so the clock error
    does not apply.
    """
    if answered == UNKNOWN_END or sent == UNKNOWN_BEGIN:
        return False
    if answered < sent:
        return True
    slack, session = native.slack, native.session
    return len(slack) > 0 and bool(
        session[a] == session[b] and answered - int(slack[session[a]]) < sent
    )


def pairs_by_commit_time(native: _native.Problem, name: str) -> list[tuple[int, int]]:
    """Return the pairs of ``done``, ``late`` or ``locked``, which compare commit times.

    Pairs with excluded transactions are left out.
    """
    sent = native.commit_begin.tolist()
    present = [t for t in range(native.n) if native.inclusion[t]] if sent else []
    if name == "locked":
        writers: dict[int, list[tuple[int, int]]] = {}
        start = native.key_start.tolist()
        for key, (low, high) in enumerate(pairwise(start)):
            writers[key] = [
                (int(native.writer_txn[w]), int(native.write_answer[w]))
                for w in range(low, high)
                if native.writer_txn[w] != native.n and sent
            ]
        return sorted(
            {
                (a, b)
                for members in writers.values()
                for a, answered in members
                for b, _ in members
                if a != b and certainly_precedes(native, answered, a, sent[b], b)
            }
        )
    answers = (native.commit_end if name == "done" else native.first_answer).tolist()
    return [
        (a, b)
        for a in present
        for b in present
        if a != b and certainly_precedes(native, answers[a], a, sent[b], b)
    ]


def pairs_between_accesses(
    native: _native.Problem, letter: str, keys: set[int]
) -> list[tuple[int, int]]:
    """Return the pairs for a letter such as ``rt[W,R]`` that access one of the given keys.

    Pairs with T0 are left out, because T0 is on no cycle.
    """
    relation = relation_of(letter)
    writers, readers = _accesses_by_key(native)
    first, last = ({"W": writers, "R": readers}[end] for end in ends_of(letter))
    candidates = {
        (a, b) for key in first.keys() & last.keys() & keys for a in first[key] for b in last[key]
    }
    ended = native.unfinished
    if relation == "so":
        session = native.session
        return sorted(
            (a, b) for a, b in candidates if a < b and session[a] == session[b] and not ended[a]
        )
    if relation == "rt":
        begin, end = native.begin.tolist(), native.end.tolist()
        return sorted(
            (a, b)
            for a, b in candidates
            if a != b and not ended[a] and certainly_precedes(native, end[a], a, begin[b], b)
        )
    return sorted(candidates & set(pairs_by_commit_time(native, relation)))


def _accesses_by_key(native: _native.Problem) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """Return, for each key, the transactions that write it, and those that externally read it."""
    writers: dict[int, set[int]] = {}
    for key, (low, high) in enumerate(pairwise(native.key_start.tolist())):
        writers[key] = set(native.writer_txn[low:high].tolist()) - {native.n}
    readers: dict[int, set[int]] = {}
    some = np.diff(native.candidate_start) > 0
    for key, reader in zip(
        native.read_key[some].tolist(), native.read_txn[some].tolist(), strict=True
    ):
        readers.setdefault(key, set()).add(reader)
    return writers, readers


def orders_versions(automaton: Automaton) -> bool:
    """Return whether ``ww`` leads from state 0 back to state 0.

    If so, the nodes for this state order the versions, and the graph needs no version nodes.
    """
    return any(
        q == 0 and 0 in reachable_states(automaton, r) for q, r in automaton.steps.get("ww", ())
    )


def reachable_states(automaton: Automaton, state: int) -> set[int]:
    """Return the states reachable from a state by silent transitions.

    The result includes the state itself.
    """
    found, todo = {state}, [state]
    while todo:
        here = todo.pop()
        fresh = {r for q, r in automaton.epsilon if q == here} - found
        found |= fresh
        todo += fresh
    return found


class _Chunks:
    """Collects the edges of a graph piece by piece, and numbers new nodes."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self._u: list[NDArray[np.int64]] = []
        self._v: list[NDArray[np.int64]] = []

    def fresh(self, count: int) -> int:
        self.nodes += count
        return self.nodes - count

    def add(self, u: object, v: object) -> None:
        self._u.append(np.asarray(u, np.int64))
        self._v.append(np.asarray(v, np.int64))

    def edges(self) -> Ints:
        none = np.zeros(0, np.int64)
        columns = (np.concatenate([none, *self._u]), np.concatenate([none, *self._v]))
        return np.stack(columns, axis=1).astype(np.int32)


def _session_members(problem: Problem, present: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the transactions of each session, in session order."""
    session = problem.native.session[present]
    order = np.argsort(session, kind="stable")
    (cuts,) = np.nonzero(np.diff(session[order]))
    return [part for part in np.split(present[order], cuts + 1) if len(part)]


def _last_finished(problem: Problem, members: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for each member of a session, the index of the last finished member before it.

    The value is -1, meaning T0, if there is none.
    """
    finished = problem.native.unfinished[members] == 0
    places = np.where(finished, np.arange(len(members)), -1)
    return np.concatenate([[-1], np.maximum.accumulate(places)[:-1]])


def _add_neighbour_edges(
    chunks: _Chunks, problem: Problem, members: NDArray[np.int64], step: Step, states: int
) -> None:
    """Add a ``so`` step's edges only between neighbours in a session.

    These edges suffice because the automaton can repeat the step.
    """
    q, r = step
    last = _last_finished(problem, members)
    before = np.where(last < 0, problem.native.n, members[last])
    chunks.add(before * states + q, members * states + r)


def _add_session_chain(
    chunks: _Chunks, problem: Problem, members: NDArray[np.int64], step: Step, states: int
) -> None:
    """Connect all pairs in a session for a ``so`` step, using a linear number of edges.

    The edges lead through a chain of new nodes, one per member. Each node has an edge to its
    member, and each finished member has an edge to the next member's node.
    """
    q, r = step
    entry = chunks.fresh(len(members)) + np.arange(len(members))
    chunks.add([problem.native.n * states + q], entry[:1])
    chunks.add(entry[:-1], entry[1:])
    chunks.add(entry, members * states + r)
    (finished,) = np.nonzero(problem.native.unfinished[members[:-1]] == 0)
    chunks.add(members[finished] * states + q, entry[finished + 1])


def _add_real_time_chain(
    chunks: _Chunks, problem: Problem, present: NDArray[np.int64], step: Step, states: int
) -> None:
    """Connect all ``rt`` pairs for an ``rt`` step, using a linear number of edges.

    The edges lead through a chain of new nodes, one for each time at which transactions end. Each
    transaction has an edge to the node for its own end, and an edge from the node for the last end
    before it began.
    """
    native, (q, r) = problem.native, step
    ended = present[native.unfinished[present] == 0]
    ends = native.end[ended]
    session = native.session[present]
    if len(native.slack) and len(set(session.tolist())) == 1:  # a single session has a single clock
        ends = np.where(ends == UNKNOWN_END, ends, ends - native.slack[session[0]])
    times, place = np.unique(ends, return_inverse=True)
    chain = chunks.fresh(len(times) + 1) + np.arange(len(times) + 1)  # the first node is T0's
    chunks.add(chain[:-1], chain[1:])
    chunks.add([native.n * states + q], chain[:1])
    chunks.add(ended * states + q, chain[place + 1])
    # ends strictly before the begin
    entry = np.searchsorted(times, native.begin[present], side="left")
    chunks.add(chain[entry], present * states + r)
