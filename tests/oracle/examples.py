"""The levels of ``examples/levels``, each as its paper defines it: executions, views, registers.

Every function takes one ``Execution``: which transactions have run, and where each read took its
value from. It tries every order, and takes nothing from the specification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, permutations, product

from .history import UNKNOWN, History, is_list_key, is_write, keys
from .moments import follows
from .semantics import T0, facts
from .visible import inclusions

Order = tuple[int, ...]


@dataclass(frozen=True)
class Execution:
    """A history, the transactions that ran, and their external reads with a source for each."""

    history: History
    ran: tuple[int, ...]
    #: (reader, operation, key, source)
    reads: tuple[tuple[int, int, str, int], ...]

    def so(self, a: int, b: int) -> bool:
        """Session order; nothing follows what is indeterminate."""
        if a == T0 or b == T0:
            return a == T0 != b
        one, other = self.history[a], self.history[b]
        return one.session == other.session and a < b and one.status != "maybe"

    def rt(self, a: int, b: int) -> bool:
        """Real time."""
        if a == T0 or b == T0:
            return a == T0 != b
        return follows(self.history[a], self.history[b])

    def writes(self, t: int) -> set[str]:
        """The keys that it writes; T0 writes all."""
        return {op[1] for op in self.history[t].ops if is_write(op)} if t != T0 else {*self.keys}

    @property
    def keys(self) -> list[str]:
        """All of the history."""
        return keys(self.history)

    def reads_of(self, t: int) -> list[tuple[int, str, int]]:
        """Operation, key and source of each."""
        return [(j, key, source) for reader, j, key, source in self.reads if reader == t]

    def writers(self, key: str) -> list[int]:
        """Those that ran, without T0."""
        return [t for t in self.ran if key in self.writes(t)]

    def before(self) -> set[tuple[int, int]]:
        """Happens-before: sessions and reads, closed."""
        pairs = {(a, b) for a in (T0, *self.ran) for b in self.ran if self.so(a, b)}
        pairs |= {(source, reader) for reader, _, _, source in self.reads}
        while more := {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs:
            pairs |= more
        return pairs

    def last(self, order: Iterable[int], key: str) -> int:
        """The last writer of a key among these, in their order."""
        return next((t for t in reversed(tuple(order)) if key in self.writes(t)), T0)


def executions(history: History) -> Iterator[Execution]:
    """Every choice of what ran and of sources; none where a read has none."""
    fact = facts(history)
    for ran in inclusions(history):
        if any(fact[t].anomalies for t in ran):
            continue
        reads = [(t, j, key) for t in ran for key, _, j in fact[t].reads]
        choices = [
            [s for s in sources if s == T0 or s in ran]
            for t in ran
            for _, sources, _ in fact[t].reads
        ]
        for sources in product(*choices):
            chosen = tuple((*read, s) for read, s in zip(reads, sources, strict=True))
            yield Execution(history, tuple(ran), chosen)


def judged(history: History) -> bool:
    """Whether these definitions speak of it: registers, whose reads are known."""
    return not any(
        op[0] not in ("r", "w") or op[2] == UNKNOWN or is_list_key(history, op[1])
        for t in history
        for op in t.ops
    )


def satisfied(history: History, level: str) -> bool:
    """Whether some execution is one of the level."""
    return any(map(DEFINITIONS[level], executions(history)))


def _orders(
    x: Execution, must: Callable[[int, int], bool], of: Iterable[int] | None = None
) -> Iterator[Order]:
    """All orders of these transactions in which nobody comes before who must come first."""
    for order in permutations(x.ran if of is None else of):
        if not any(must(b, a) for a, b in combinations(order, 2)):
            yield order


def _prefixes(x: Execution, order: Order, old: Callable[[int, int], bool]) -> Iterator[Order]:
    """For each transaction, how much of the order its snapshot has: what it reads is the last
    version there, and what is older for it is in it.
    """
    fitting = []
    for place, t in enumerate(order):
        fitting.append(
            [
                cut
                for cut in range(place + 1)
                if not any(old(u, t) for u in order[cut:])
                and all(x.last(order[:cut], key) == s for _, key, s in x.reads_of(t))
            ]
        )
    yield from product(*fitting)


def strong_prefix(x: Execution) -> bool:
    """A commit order, and for each transaction a prefix of it, fresh in real time."""

    def old(a: int, b: int) -> bool:
        return x.so(a, b) or x.rt(a, b)

    return any(True for order in _orders(x, old) for _ in _prefixes(x, order, old))


def strong_mav(x: Execution) -> bool:
    """What was read from stays seen by later reads, in an order that agrees with real time."""
    wr = {(s, t) for t, _, _, s in x.reads}

    def fits(order: Order) -> bool:
        place = {t: i for i, t in enumerate((T0, *order))}
        return all(
            place[earlier] <= place[source]
            for t in x.ran
            for (i, _, earlier), (j, key, source) in product(x.reads_of(t), repeat=2)
            if i < j and key in x.writes(earlier)
        )

    return any(map(fits, _orders(x, lambda a, b: x.so(a, b) or x.rt(a, b) or (a, b) in wr)))


def _causal_reads(x: Execution, order: Order, before: set[tuple[int, int]]) -> bool:
    place = {t: i for i, t in enumerate((T0, *order))}
    return all(
        place[u] <= place[source]
        for t, _, key, source in x.reads
        for u in x.writers(key)
        if (u, t) in before
    )


def real_time_causal(x: Execution) -> bool:
    """An arbitration that agrees with causality and real time; a read returns of what its past has
    written the version that wins.
    """
    before = x.before()
    orders = _orders(x, lambda a, b: (a, b) in before or x.rt(a, b))
    return not any(a == b for a, b in before) and any(
        _causal_reads(x, order, before) for order in orders
    )


def bounded_staleness_2(x: Execution) -> bool:
    """k-atomicity for k = 2, of each key; who writes it reads its newest version."""

    def of(key: str) -> bool:
        reads = [(t, s) for t, _, k, s in x.reads if k == key]
        there = sorted({*x.writers(key), *(t for t, _ in reads)})

        def fits(order: Order) -> bool:
            place = {t: i for i, t in enumerate((T0, *order))}
            for t, s in reads:
                newer = [w for w in x.writers(key) if place[s] < place[w] < place[t]]
                if place[s] > place[t] or len(newer) > (0 if key in x.writes(t) else 1):
                    return False
            return True

        return any(map(fits, _orders(x, x.rt, there)))

    return all(map(of, x.keys))


def regular_strong(x: Execution) -> bool:
    """Each key has an order of its writes; a read returns the last that ended before it began, or a
    later one that did not begin after its end.
    """

    def of(key: str) -> bool:
        reads = [(t, s) for t, _, k, s in x.reads if k == key]

        def fits(order: Order) -> bool:
            place = {t: i for i, t in enumerate((T0, *order))}
            return not any(
                x.rt(t, s) or any(x.rt(w, t) and place[w] > place[s] for w in order)
                for t, s in reads
            )

        return any(map(fits, _orders(x, x.rt, x.writers(key))))

    return all(map(of, x.keys))


def regular_weak(x: Execution) -> bool:
    """Each read has an order of the writes of its key and itself that agrees with real time, in
    which it returns the last write.
    """

    def explains(t: int, key: str, source: int) -> bool:
        there = [w for w in x.writers(key) if w != t]
        return any(
            x.last(order[: order.index(t)], key) == source
            for order in _orders(x, x.rt, (*there, t))
        )

    return all(explains(t, key, source) for t, _, key, source in x.reads)


def write_si(x: Execution) -> bool:
    """Snapshots that are prefixes of the commit order; who writes commits only if nobody has
    written since what it read.
    """
    for order in _orders(x, x.so):
        for cuts in _prefixes(x, order, x.so):
            if not any(
                x.writes(t) and x.writes(u) & {key for _, key, _ in x.reads_of(t)}
                for place, (t, cut) in enumerate(zip(order, cuts, strict=True))
                for u in order[cut:place]
            ):
                return True
    return False


def weak_causal(x: Execution) -> bool:
    """For each read there is an order of its causal past in which it returns the last write."""
    before = x.before()
    return not any(a == b for a, b in before) and all(
        any(
            x.last(order, key) == source
            for order in _orders(
                x, lambda a, b: (a, b) in before, [u for u in x.ran if (u, t) in before]
            )
        )
        for t, _, key, source in x.reads
    )


def causal_memory(x: Execution) -> bool:
    """Each process has a serialization of its operations and all writes that agrees with causality:
    each of its reads returns the last write there.
    """
    before = x.before()

    def has_view(session: int) -> bool:
        own = {t for t in x.ran if x.history[t].session == session}
        there = [t for t in x.ran if t in own or x.writes(t)]
        return any(
            all(
                x.last(order[: order.index(t)], key) == source
                for t, _, key, source in x.reads
                if t in own
            )
            for order in _orders(x, lambda a, b: (a, b) in before, there)
        )

    sessions = {x.history[t].session for t in x.ran}
    return not any(a == b for a, b in before) and all(map(has_view, sessions))


def ssi_pivot(x: Execution) -> bool:
    """First committer wins, and nobody has anti-dependencies from and to concurrent ones."""
    for order in _orders(x, x.so):
        for cuts in _prefixes(x, order, x.so):
            seen = {t: order[:cut] for t, cut in zip(order, cuts, strict=True)}
            if any(
                x.writes(t) & x.writes(u)
                for place, t in enumerate(order)
                for u in order[len(seen[t]) : place]
            ):
                continue
            place = {t: i for i, t in enumerate((T0, *order))}
            rw = [
                (t, u)
                for t, _, key, source in x.reads
                for u in x.writers(key)
                if u != t and place[u] > place[source] and t not in seen[u] and u not in seen[t]
            ]
            if not {u for _, u in rw} & {t for t, _ in rw}:
                return True
    return False


def slow_memory(x: Execution) -> bool:
    """Each write has a number in its session; what a session reads of a key from one session has
    numbers that do not fall, and from itself none older than its last write.
    """
    if any(a == b for a, b in x.before()):
        return False
    for t, _, key, source in x.reads:
        for u in (u for u in x.ran if x.so(u, t)):
            known = [s for _, k, s in x.reads_of(u) if k == key]
            known += [u] if key in x.writes(u) else []
            if any(x.so(source, one) for one in known):
                return False
    return True


def fork(x: Execution) -> bool:
    """Each session has a view, with all of its own: legal, in real time, and two views that share a
    transaction are the same up to it.
    """
    sessions = sorted({x.history[t].session for t in x.ran})
    views = []
    for session in sessions:
        own = {t for t in x.ran if x.history[t].session == session}
        others = [t for t in x.ran if t not in own]
        views.append(
            [
                view
                for size in range(len(others) + 1)
                for more in combinations(others, size)
                for view in _orders(x, lambda a, b: x.so(a, b) or x.rt(a, b), (*own, *more))
                if all(
                    x.last(view[:place], key) == source
                    for place, t in enumerate(view)
                    for _, key, source in x.reads_of(t)
                )
            ]
        )
    return any(
        all(
            one[: one.index(t)] == other[: other.index(t)]
            for one, other in combinations(chosen, 2)
            for t in one
            if t in other
        )
        for chosen in product(*views)
    )


def group_read_your_writes(x: Execution) -> bool:
    """A transaction that reads sees what it reads from, and what its group had written before it
    began; of that the version that wins.
    """

    def own(u: int, t: int) -> bool:
        group = x.history[u].group
        together = group is not None and group == x.history[t].group
        return together and x.rt(u, t) and bool(x.writes(u) and x.reads_of(t))

    wr = {(s, t) for t, _, _, s in x.reads}
    before = wr | {(u, t) for u in x.ran for t in x.ran if own(u, t)}
    orders = _orders(x, lambda a, b: (a, b) in before)
    return any(_causal_reads(x, order, before) for order in orders)


def update_and_read_only(x: Execution) -> bool:
    """One order, in which who writes reads the last version; the others are causal in it."""
    before = x.before()
    for order in _orders(x, lambda a, b: (a, b) in before):
        serial = all(
            x.last(order[: order.index(t)], key) == source
            for t, _, key, source in x.reads
            if x.writes(t)
        )
        if serial and _causal_reads(x, order, before):
            return not any(a == b for a, b in before)
    return False


def red_blue(x: Execution) -> bool:
    """A partial order with sessions and reads, in which any two red transactions are ordered, and
    timestamps that extend it; a read returns of what precedes it the version with the last one.
    """
    red = [t for t in x.ran if "red" in x.history[t].labels]
    wr = {(s, t) for t, _, _, s in x.reads if s != T0}

    def is_partial_order(pairs: set[tuple[int, int]]) -> bool:
        return (
            wr <= pairs
            and all((a, b) in pairs for a in x.ran for b in x.ran if x.so(a, b))
            and all((a, b) in pairs or (b, a) in pairs for a, b in combinations(red, 2))
            and all((a, d) in pairs for a, b in pairs for c, d in pairs if b == c)
        )

    return any(
        is_partial_order(before) and _causal_reads(x, order, before)
        for order in permutations(x.ran)
        for before in map(set, _subsets(list(combinations(order, 2))))
    )


def _subsets(pairs: list[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], ...]]:
    for size in range(len(pairs) + 1):
        yield from combinations(pairs, size)


DEFINITIONS: dict[str, Callable[[Execution], bool]] = {
    "strong-prefix": strong_prefix,
    "strong-mav": strong_mav,
    "real-time-causal": real_time_causal,
    "bounded-staleness-2": bounded_staleness_2,
    "regular-strong": regular_strong,
    "regular-weak": regular_weak,
    "write-si": write_si,
    "weak-causal": weak_causal,
    "causal-memory": causal_memory,
    "ssi-pivot": ssi_pivot,
    "slow-memory": slow_memory,
    "fork": fork,
    "group-read-your-writes": group_read_your_writes,
    "update-and-read-only": update_and_read_only,
    "red-blue": red_blue,
}
