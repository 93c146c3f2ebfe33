"""Represents all histories of a few transactions and keys, with variables for the operations.

All transactions commit, and every value is written only once, so the value of a read determines its
source. A transaction writes a key at most once, and reads it at most ``SmallScope.reads`` times
before its own write. Keys are registers or lists. A list read shows the order of the elements
appended before it, and no element that its reader appends later. With predicates, a transaction may
also have a predicate read of a register that finds no row. Times never contradict session order.
Without overlap, each transaction of a session begins after the previous transaction ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations, pairwise, permutations, product

from msgspec import Struct

from isolang.comparison.names import example_names
from isolang.encodings.relational.circuit import FALSE, TRUE, Circuit
from isolang.encodings.relational.interpretation import T0, ReadEvent


class SmallScope(Struct, frozen=True, kw_only=True):
    """The set of histories that a search covers.

    Attributes:
        transactions: the exact number of transactions, without T0. Each has at least one operation.
        sessions: whether there is a session order. If not, each transaction is in a session of its
            own.
        operations: whether the order of operations within a transaction matters.
        one_by_one: whether to leave out histories whose reads, sessions and times contradict each
            other. A database that executes one step after another never produces such a history.
        serial: whether to search only serial histories, in which transactions run in numerical
            order.
        levels: the patterns for requested levels that a specification distinguishes.
    """

    transactions: int
    keys: int
    reads: int = 2
    lists: bool = True
    sessions: bool = True
    real_time: bool = False
    groups: bool = False
    operations: bool = False
    predicates: bool = False
    one_by_one: bool = False
    overlap: bool = False
    serial: bool = False
    labels: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    key_patterns: tuple[str, ...] = ()
    common_labels: bool = False


class HistoryVariables:
    """The variables for all histories of a scope, with clauses that exclude impossible histories.

    In the tables below, ``t`` and ``s`` are transactions, ``x`` is a key, and ``j`` numbers the
    reads of the key within a transaction.

    Attributes:
        slots: the possible values of ``j``. If there are predicate reads, the last value is theirs.
        write: for each (t, x), a literal that is true if the transaction writes the key.
        source: for each (t, x, j, s), a literal that is true if the read reads from ``s``.
        happening: for each (t, x, j), a literal that is true if the history contains the read.
        so: for each pair of transactions, a literal that is true if session order contains it.
        rt: for each pair of transactions, a literal that is true if real time contains it.
        together: for each ascending pair of transactions, a literal that is true if both are in the
            same group.
        bears: for each ("label" or "level", t, name), a literal that is true if the transaction has
            this label or requested this level.
        matching: for each ("label" or "level", name), the patterns matched by the name.
        used_keys: for each key, a literal that is true if some transaction writes or reads it.
        shown: for each key and each pair of transactions, a literal that is true if lists show the
            first transaction's element before the second's.
        elements: for each event, its transaction, and a literal that is true if the history
            contains the event.
        event_of: the event of the read (t, x, j), and the event of the write (t, x, ``None``).
        order: for each pair of events in one transaction, a literal that is true if the first
            precedes the second.
    """

    def __init__(self, scope: SmallScope) -> None:
        """Create the variables for the histories of a scope, and the clauses over them."""
        self.scope = scope
        self.circuit = Circuit()
        self.free: list[int] = []
        self.keys = range(scope.keys)
        self.txns = range(1, scope.transactions + 1)
        self._make_operations()
        self._make_sessions()
        self._make_times()
        self._make_groups()
        self._make_names()
        self._make_lists()
        self._make_events()
        if scope.one_by_one:
            self._make_one_order()
        if scope.serial:
            self._make_serial()

    def sources(self, t: int, x: int, j: int) -> dict[int, int]:
        """Return the possible sources of the read (t, x, j), each with its literal."""
        return {s: self.source[t, x, j, s] for s in (T0, *self.txns) if (t, x, j, s) in self.source}

    def _new(self) -> int:
        variable = self.circuit.new()
        self.free.append(variable)
        return variable

    def _make_operations(self) -> None:
        scope, state = self.scope, self.circuit.state
        slots = range(scope.reads)
        self.write = {(t, x): self._new() for t in self.txns for x in self.keys}
        self.source = {
            (t, x, j, s): self._new()
            for t in self.txns
            for x in self.keys
            for j in slots
            for s in (T0, *self.txns)
            if s != t
        }
        # A key's last slot is for a predicate read that finds no row.
        self.slots = range(scope.reads + scope.predicates)
        self.reads = [
            ReadEvent(op=j, reader=t, key=x, of_predicate=j == scope.reads)
            for t in self.txns
            for x in self.keys
            for j in self.slots
        ]
        for t, x in product(self.txns, self.keys) if scope.predicates else ():
            self.source[t, x, scope.reads, T0] = self._new()
        for (_, x, _, s), literal in self.source.items():
            if s != T0:
                state((-literal, self.write[s, x]))
        some = self.circuit.any_of
        self.happening = {
            (t, x, j): some(self.sources(t, x, j).values())
            for t in self.txns
            for x in self.keys
            for j in self.slots
        }
        reading = {
            (t, x): some(self.happening[t, x, j] for j in self.slots)
            for t in self.txns
            for x in self.keys
        }
        for t in self.txns:
            done = [self.write[t, x] for x in self.keys]
            done += [reading[t, x] for x in self.keys]
            state((some(done),))
            for x in self.keys:
                for j in slots:
                    for a, b in combinations(self.sources(t, x, j).values(), 2):
                        state((-a, -b))
                # A second read of a key requires a first read of it from another source.
                for (s, second), (r, earlier) in (
                    (one, other)
                    for j in slots[1:]
                    for one in self.sources(t, x, j).items()
                    for other in self.sources(t, x, j - 1).items()
                ):
                    if s == r or (s < r and not scope.operations):
                        state((-second, -earlier))
                for j in slots[1:]:
                    state((-self.happening[t, x, j], self.happening[t, x, j - 1]))
        used = [
            some(one[t, x] for one in (self.write, reading) for t in self.txns) for x in self.keys
        ]
        for x in self.keys[1:]:
            state((-used[x], used[x - 1]))
        self.used_keys = used

    def _make_sessions(self) -> None:
        """Require that session order is a total order of the transactions in each session."""
        state = self.circuit.state
        sessions = self.scope.sessions
        so = self.so = {pair: self._new() for pair in permutations(self.txns, 2) if sessions}
        for (a, b), literal in so.items():
            state((-literal, -so[b, a]))
            for c in self.txns:
                if c not in (a, b):
                    state((-literal, -so[b, c], so[a, c]))
                    # Two transactions that both precede (or both follow) c are in the same session,
                    # so session order relates them.
                    state((-literal, -so[a, c], so[b, c], so[c, b]))
                    state((-literal, -so[c, b], so[a, c], so[c, a]))

    def _make_times(self) -> None:
        """Require that real time is an interval order."""
        state = self.circuit.state
        self.rt: dict[tuple[int, int], int] = {}
        if not self.scope.real_time:
            return
        rt = self.rt = {pair: self._new() for pair in permutations(self.txns, 2)}
        for (a, b), first in rt.items():
            for (c, d), second in rt.items():
                if (a, b) != (c, d) and a != d and c != b:
                    state((-first, -second, rt[a, d], rt[c, b]))
                elif b == c:
                    state((-first, -second, rt.get((a, d), FALSE)))
        for (i, j), literal in self.so.items():
            state((-literal, -rt[j, i] if self.scope.overlap else rt[i, j]))

    def _make_groups(self) -> None:
        """Require that groups partition the transactions, and that no session spans two groups."""
        state = self.circuit.state
        pairs = combinations(self.txns, 2) if self.scope.groups else ()
        self.together = {pair: self._new() for pair in pairs}

        def both(a: int, b: int) -> int:
            return self.together[min(a, b), max(a, b)]

        for (a, b), literal in self.together.items():
            for c in self.txns:
                if c not in (a, b):
                    state((-literal, -both(b, c), both(a, c)))
                    state((-literal, -both(a, c), both(b, c)))
            for pair in ((a, b), (b, a)):
                state((-self.so[pair] if pair in self.so else TRUE, literal))

    def _make_names(self) -> None:
        """Create variables for each transaction's labels and level, and for each key's name.

        A few names suffice for each set of patterns that a name can match.
        """
        scope, state, some = self.scope, self.circuit.state, self.circuit.any_of
        labels = example_names(scope.labels, 2 if scope.common_labels else 1)
        borne = [name for names in labels.values() for name in names]
        self.bears = {
            ("label", t, name): self._new()
            for t in (self.txns if scope.labels or scope.common_labels else ())
            for name in borne
        }
        of_level = {names[0]: matched for matched, names in example_names(scope.levels, 1).items()}
        for t in self.txns if scope.levels else ():
            own = {name: self._new() for name in of_level}
            for a, b in combinations(own.values(), 2):
                state((-a, -b))
            self.bears |= {("level", t, name): literal for name, literal in own.items()}
        if scope.levels:  # a history in which no transaction requests a level cannot be checked
            state(tuple(x for (word, *_), x in self.bears.items() if word == "level"))
        self.matching = {("level", name): matched for name, matched in of_level.items()}
        self.matching |= {
            ("label", name): matched for matched, names in labels.items() for name in names
        }
        self.key_names: dict[tuple[int, str], int] = {}
        self.keys_matching: dict[str, frozenset[str]] = {}
        if not scope.key_patterns:
            return
        of_keys = example_names(scope.key_patterns, len(self.keys))
        self.keys_matching = {name: matched for matched, names in of_keys.items() for name in names}
        self.key_names = {(x, name): self._new() for x in self.keys for name in self.keys_matching}
        for x in self.keys:
            state((some(self.key_names[x, name] for name in self.keys_matching),))
            for one, other in combinations(self.keys_matching, 2):
                state((-self.key_names[x, one], -self.key_names[x, other]))
        for name in self.keys_matching:
            for x, y in combinations(self.keys, 2):
                state((-self.key_names[x, name], -self.key_names[y, name]))

    def _make_lists(self) -> None:
        lists = self.scope.lists
        self.are_lists = [self._new() if lists else FALSE for _ in self.keys]
        self.shown = [
            total_order(self.circuit, self.txns, self._new) if lists else {} for _ in self.keys
        ]
        for x, literal in enumerate(self.are_lists):
            if lists:
                self.circuit.state((-literal, self.used_keys[x]))
        for t, x in product(self.txns, self.keys) if self.scope.predicates else ():
            self.circuit.state((-self.happening[t, x, self.scope.reads], -self.are_lists[x]))
        # A list read that shows an element appended later by its reader would be an intrinsic
        # anomaly.
        for (t, x, _, s), read in self.source.items():
            if lists and s != T0:
                there = (self.are_lists[x], read, self.write[t, x])
                self.circuit.state((*(-one for one in there), self.shown[x][s, t]))

    def _make_one_order(self) -> None:
        """Require that a single transaction order contains `wr`, session order and real time."""
        before = total_order(self.circuit, self.txns, self.circuit.new)
        for pair, literal in (*self.so.items(), *self.rt.items()):
            self.circuit.state((-literal, before[pair]))
        for (t, _, _, s), literal in self.source.items():
            if s != T0:
                self.circuit.state((-literal, before[s, t]))
        for (t, x, _, s), literal in self.source.items():
            for a in self.txns if s != T0 and self.scope.lists else ():
                if a != s:  # a list read also returns the elements before its source's
                    there = (self.are_lists[x], literal, self.write[a, x], self.shown[x][a, s])
                    self.circuit.state((*(-one for one in there), before.get((a, t), FALSE)))

    def _make_serial(self) -> None:
        """Require that the transactions run one after another, in numerical order.

        Each transaction reads the last version of a key written before it.
        """
        state = self.circuit.state
        for (a, b), literal in self.so.items():
            if a > b:
                state((-literal,))
        for (a, b), literal in self.rt.items():
            state((literal if a < b else -literal,))
        for shown in self.shown:
            for (a, b), literal in shown.items():
                state((literal if a < b else -literal,))
        for (t, x, _, s), literal in self.source.items():
            if s > t:
                state((-literal,))
            for u in range(s + 1 if s != T0 else 1, t):
                state((-literal, -self.write[u, x]))

    def _make_events(self) -> None:
        """Create an event for each possible operation, and order the events in each transaction."""
        self.elements: dict[int, tuple[int, int]] = {}
        self.event_of: dict[tuple[int, int, int | None], int] = {}
        self.order: dict[tuple[int, int], int] = {}
        if not self.scope.operations:
            return

        def event(t: int, x: int, j: int | None, literal: int) -> int:
            number = self.event_of[t, x, j] = len(self.txns) + 1 + len(self.elements)
            self.elements[number] = (t, literal)
            return number

        for x in self.keys:
            event(T0, x, None, TRUE)
        for t in self.txns:
            own = []
            ordered = []
            for x in self.keys:
                reads = [event(t, x, j, self.happening[t, x, j]) for j in self.slots]
                write = event(t, x, None, self.write[t, x])
                own += [*reads, write]
                ordered += [*pairwise(reads[: self.scope.reads]), *((e, write) for e in reads)]
            before = total_order(self.circuit, own, self._new)
            self.order |= before
            for pair in ordered:
                self.circuit.state((before[pair],))


def total_order(
    circuit: Circuit, elements: Iterable[int], new: Callable[[], int]
) -> dict[tuple[int, int], int]:
    """Return, for each pair (a, b), a literal that is true if a precedes b in a total order.

    Args:
        elements: the elements of the order, in ascending order.
    """
    before: dict[tuple[int, int], int] = {}
    for a, b in combinations(elements, 2):
        before[a, b] = new()
        before[b, a] = -before[a, b]
    for a, b, c in permutations({a for a, _ in before}, 3):
        if a < b and a < c:  # adds only one clause per cycle of three elements
            circuit.state((-before[a, b], -before[b, c], -before[c, a]))
    return before
