"""Where a window is cut: along the order of its own witness.

Why that is sound stands in docs/routes.md, *Cuts of a stream*.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from isolang.watch.state import Change, Key, Last, last_write
from isolang.watch.window import Watched

if TYPE_CHECKING:
    from isolang.certify.proofs import Witness
    from isolang.history.history import History

#: How many of the last writers of a key are looked at for one whose order is a guess.
_GUESSED: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What must stay in a window.

    Attributes:
        before: only what ended before this time may go; ``None`` where the stream has no times.
        behind: without times, only what has a smaller number than this.
        real_time: whether real time is an edge, as the level uses it.
        clock_error: nanoseconds by which the clocks of two sessions may differ.
    """

    before: int | None
    behind: int
    real_time: bool
    clock_error: int = 0

    def closed(self, one: Watched) -> bool:
        """Whether all that can overlap a transaction has been seen."""
        if one.in_flight or one.given.status == "maybe":
            return False
        if self.before is None:
            return one.number < self.behind
        end = one.given.end
        return isinstance(end, int) and end + 2 * self.clock_error < self.before


def cut(
    window: Sequence[Watched], history: History, witness: Witness, limits: Limits
) -> tuple[list[int], Change]:
    """Find the transactions that no other one leads to, and what they leave.

    Aborted transactions are not looked at: they are the caller's to drop.

    Args:
        window: in an order that keeps each session's.
        history: made of it, transaction by transaction.
        witness: of the level for this history.
        limits: what must stay.

    Returns:
        Indices into the window, ascending, and the last value of each key that they wrote.
    """
    graph = _Graph(window, history, witness)
    open_ = {i for i, one in enumerate(window) if not limits.closed(one)}
    # An unknown outcome that a closed transaction has seen is known.
    shown = {source for i in range(graph.n) if i not in open_ for source in graph.sources[i]}
    stay = {i for i in open_ if i not in shown or window[i].in_flight}
    staying = graph.after(stay | _guessed(graph, stay, timed=limits.before is not None))
    if limits.real_time:
        _follow_real_time(graph, staying, limits)
    going = [
        i
        for i, one in enumerate(window)
        if i not in staying and one.given.status in ("committed", "maybe")
    ]
    return going, graph.left_by(set(going))


def everything(
    window: Sequence[Watched], history: History, witness: Witness
) -> tuple[list[int], Change]:
    """The last cut of a stream: all transactions but those that took no effect."""
    going = [i for i, one in enumerate(window) if one.given.status != "aborted"]
    return going, _Graph(window, history, witness).left_by(set(going))


class _Graph:
    """The edges of a witness, a node for each transaction; T0 is none."""

    def __init__(self, window: Sequence[Watched], history: History, witness: Witness) -> None:
        columns = history.columns
        self.window, self.history = window, history
        self.n = columns.transactions()
        starts, keys = columns.op_start.tolist(), columns.op_key.tolist()
        source, bounds = witness.source.tolist(), witness.order_start.tolist()
        txns = witness.order_txn.tolist()
        self.orders = [txns[a:b] for a, b in pairwise(bounds)]
        place = [{t: i for i, t in enumerate(order)} for order in self.orders]
        self.next: list[list[int]] = [[] for _ in range(self.n)]
        self.sources: list[list[int]] = [[] for _ in range(self.n)]
        self.readers: dict[tuple[int, int], list[int]] = {}
        for order in self.orders:
            for a, b in pairwise(order):
                self.next[a].append(b)
        for t, (first, end) in enumerate(pairwise(starts)):
            for op in range(first, end):
                writer, key = source[op], keys[op]
                if writer < 0:
                    continue
                order, at = self.orders[key], 0
                if writer < self.n:
                    self.next[writer].append(t)
                    self.sources[t].append(writer)
                    self.readers.setdefault((key, writer), []).append(t)
                    at = place[key][writer] + 1
                if at < len(order) and order[at] == t:
                    at += 1
                if at < len(order):
                    self.next[t].append(order[at])
        last: dict[Hashable, int] = {}
        for t, one in enumerate(window):
            if (before := last.get(one.given.session)) is not None:
                self.next[before].append(t)
            last[one.given.session] = t

    def after(self, some: Iterable[int], known: set[int] | None = None) -> set[int]:
        """All that they lead to, themselves and what was known to be reached among it."""
        found = known if known is not None else set()
        work = [t for t in some if t not in found]
        found.update(work)
        while work:
            for t in self.next[work.pop()]:
                if t not in found:
                    found.add(t)
                    work.append(t)
        return found

    def left_by(self, going: set[int]) -> Change:
        """The last of their values of each key that they wrote."""
        found: dict[Key, Last] = {}
        for key, order in enumerate(self.orders):
            writer = next((t for t in reversed(order) if t in going), None)
            if writer is not None:
                one, atom = self.window[writer], self.history.columns.key(key)
                value = last_write(one.given, atom)
                found[atom] = Last(value=value, place=one.place, number=one.number)
        return found


def _guessed(graph: _Graph, stay: set[int], *, timed: bool) -> set[int]:
    """The last writers of a key whose order nobody has observed: a later read may return either."""
    found: set[int] = set()
    for key, order in enumerate(graph.orders):
        closed = [t for t in order if t not in stay]
        if len(closed) < 2:
            continue
        last = closed[-1]
        later = [_begin(graph, t) for t in (last, *graph.readers.get((key, last), ()))]
        for t in closed[-_GUESSED:-1]:
            # It read the other one's value, of this key or of another.
            if t in graph.sources[last]:
                continue
            end = graph.window[t].given.end
            if timed and isinstance(end, int) and end < max(later):
                continue
            found |= {t, last}
    return found


def _begin(graph: _Graph, t: int) -> int:
    begin = graph.window[t].given.begin
    return begin if isinstance(begin, int) else -(1 << 62)


def _follow_real_time(graph: _Graph, staying: set[int], limits: Limits) -> None:
    """Let stay what began after the end of something that stays."""
    ends = [(t, one.given.end) for t, one in enumerate(graph.window)]
    known = [(t, end) for t, end in ends if isinstance(end, int)]
    by_begin = sorted(range(graph.n), key=lambda t: _begin(graph, t), reverse=True)
    while True:
        least = min((end for t, end in known if t in staying), default=None)
        if least is None:
            return
        more = []
        for t in by_begin:
            # By clocks that differ it may have begun later than they say.
            if _begin(graph, t) + 2 * limits.clock_error <= least:
                break
            if t not in staying:
                more.append(t)
        if not more:
            return
        graph.after(more, staying)
