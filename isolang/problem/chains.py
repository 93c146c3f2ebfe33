"""Chains of combined writes (Cobra, OSDI 2020): writers that directly follow each other.

If S reads x from T and also writes x, and both are included, then no writer comes between T and S
in the version order of x. ``T → S`` is then a link, and a maximal path of links is a chain. Only
the order of the chains remains open, and an edge from the tail of one chain to the head of another
represents all pairs of writers from the two chains.

This is sound only if the automata allow it (:func:`chains_allowed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from isolang.arrays import np
from isolang.language.vocabulary import OVERWRITING
from isolang.problem.distinct import distinct, is_among
from isolang.problem.event_graph import Ints, reachable_states
from isolang.problem.problem import InclusionStatus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang.language.classify.automaton import Automaton
    from isolang.problem.polygraph import Polygraph


class Chains(Struct, frozen=True, kw_only=True):
    """The chains of a polygraph. The elements of all arrays are writers.

    Attributes:
        next: int32[writers]; for each writer, the next writer in its chain, or -1 for the last one.
        head: int32[writers]; for each writer, the first writer of its chain.
        tail: int32[writers]; for each writer, the last writer of its chain.
        open: int32[p, 2]; the heads of pairs of chains on one key that may come in either order.
        settled: int32[s, 2]; the heads of pairs of chains on one key in which the first chain
            precedes the second. They include pairs with T0's chain, which precedes all other chains
            on its key.
    """

    next: Ints
    head: Ints
    tail: Ints
    open: Ints
    settled: Ints


def chains_allowed(automata: Sequence[Automaton]) -> bool:
    """Return whether the automata allow chains with edges only from tails to heads.

    There are three conditions. (1) ``ww ; rw`` closes a loop, so no writer U can come between T and
    a writer S that reads from T (T ww U ww S, S rw U). (2) ``ww ; wr`` closes a loop, so S cannot
    come before T. (Under ``acyclic ww | rw``, for example, S may read from T and still come before
    T.) (3) Two ``ww`` steps make a ``ww`` step, and an ``rw`` step (or a step of a part of ``rw``)
    followed by a ``ww`` step makes an ``rw`` step, so the edge from tail to head implies the edges
    between all other writers in the two chains. PC fails (1), because its ``ww`` ends in a state
    where no ``rw`` begins.
    """
    if any(a.restricted for a in automata):
        return False
    return (
        any(_can_close_loop(a, "ww", "rw") for a in automata)
        and any(_can_close_loop(a, "ww", "wr") for a in automata)
        and all(_absorbs_ww(a, letter) for a in automata for letter in ("ww", *OVERWRITING))
    )


def _can_close_loop(a: Automaton, first: str, second: str) -> bool:
    """Return whether a ``first`` step and then a ``second`` step can lead back to the same state.

    The automaton may take silent transitions after each step.
    """
    return any(
        q2 in reachable_states(a, r1) and q1 in reachable_states(a, r2)
        for q1, r1 in a.steps.get(first, ())
        for q2, r2 in a.steps.get(second, ())
    )


def _absorbs_ww(a: Automaton, relation: str) -> bool:
    """Return whether ``relation`` followed by ``ww`` can replace every ``relation`` step.

    From the state where the step begins, the two steps must be able to reach the state where it
    ends.
    """
    steps = a.steps.get(relation, ())
    return all(
        any(
            q1 == q and q2 in reachable_states(a, r1) and r in reachable_states(a, r2)
            for q1, r1 in steps
            for q2, r2 in a.steps.get("ww", ())
        )
        for q, r in steps
    )


def build_chains(polygraph: Polygraph, *, allowed: bool) -> Chains:
    """Return the chains of a polygraph; unless ``allowed``, every chain has just one writer."""
    native = polygraph.problem.native
    count = len(native.writer_txn)
    follows = _chain_links(polygraph) if allowed else np.full(count, -1, np.int32)
    head = np.arange(count, dtype=np.int32)
    tail = np.arange(count, dtype=np.int32)
    starts = np.ones(count, bool)
    starts[follows[follows >= 0]] = False
    for first in np.flatnonzero(starts & (follows >= 0)).tolist():
        members = [first]
        while (after := int(follows[members[-1]])) >= 0:
            members.append(after)
        head[members], tail[members] = first, members[-1]
    initial = native.key_start[:-1]
    of_key = np.repeat(initial, np.diff(native.key_start))
    heads = np.flatnonzero((head == np.arange(count)) & (head != head[of_key]))
    initial_first = np.stack((head[of_key[heads]], heads), axis=1).astype(np.int32)
    open_pairs, settled = head[polygraph.open], head[polygraph.settled]
    # these pairs are settled, because T0's chain precedes all others
    of_initial = is_among(open_pairs, initial).any(axis=1)
    # A pair of single-writer chains does not change unless one of them is T0's chain.
    several = head != tail
    several[head[initial]] = True
    settled, same = _split_pairs(np.concatenate([settled, initial_first]), several)
    code = _distinct_pair_codes(settled, count)
    settled = np.concatenate([same, _decode_pairs(code, count)])
    open_pairs, same = _split_pairs(np.sort(open_pairs[~of_initial], axis=1), several)
    open_pairs = _decode_pairs(_distinct_pair_codes(open_pairs, count), count)
    taken = is_among(_encode_pairs(open_pairs, count), code) | is_among(
        _encode_pairs(open_pairs[:, ::-1], count), code
    )
    open_pairs = np.concatenate([same, open_pairs[~taken]])
    return Chains(next=follows, head=head, tail=tail, open=open_pairs, settled=settled)


def _split_pairs(pairs: Ints, several: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Split pairs into those with a writer marked in ``several`` and all others."""
    marked = several[pairs].any(axis=1)
    return pairs[marked], pairs[~marked]


def _encode_pairs(pairs: Ints, count: int) -> NDArray[np.int64]:
    return pairs[:, 0].astype(np.int64) * count + pairs[:, 1]


def _distinct_pair_codes(pairs: Ints, count: int) -> NDArray[np.int64]:
    """Encode pairs of two different writers as numbers, sorted and without duplicates."""
    return distinct(_encode_pairs(pairs[pairs[:, 0] != pairs[:, 1]], count))


def _decode_pairs(code: NDArray[np.int64], count: int) -> Ints:
    return np.stack(np.divmod(code, max(count, 1)), axis=1).astype(np.int32)


def _chain_links(polygraph: Polygraph) -> Ints:
    """Return, for each writer, the next writer in its chain, or -1 for the last writer."""
    native = polygraph.problem.native
    follows = np.full(len(native.writer_txn), -1, np.int32)
    certain = polygraph.inclusion == int(InclusionStatus.IN)
    own = own_writers(polygraph)
    reads = np.flatnonzero((polygraph.source >= 0) & (own >= 0) & certain[native.read_txn])
    seen = np.zeros(len(native.writer_txn), bool)
    for read in reads.tolist():
        before, after = int(polygraph.source[read]), int(own[read])
        # Two writers cannot both directly follow the same writer. Keep the second link out of the
        # chains; the edges will reveal the contradiction.
        if follows[before] >= 0 or seen[after]:
            continue
        here = after
        while (here := int(follows[here])) >= 0 and here != before:
            pass
        if here == before or native.writer_txn[after] == native.n:
            continue
        follows[before], seen[after] = after, True
    return follows


def own_writers(polygraph: Polygraph) -> Ints:
    """Return, for each read, the reader's own write to the same key, or -1 if there is none.

    Writes are given as indices into ``Problem.native.writer_*``.
    """
    native = polygraph.problem.native
    key = np.repeat(np.arange(native.keys), np.diff(native.key_start)).astype(np.int64)
    code = key * (native.n + 1) + native.writer_txn
    order = np.argsort(code)
    code_of_read = native.read_key.astype(np.int64) * (native.n + 1) + native.read_txn
    place = np.minimum(np.searchsorted(code[order], code_of_read), max(len(order) - 1, 0))
    if not len(order):
        return np.full(len(code_of_read), -1, np.int32)
    found = order[place]
    return np.where(code[found] == code_of_read, found, -1).astype(np.int32)
