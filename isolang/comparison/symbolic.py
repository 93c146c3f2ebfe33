"""Represents all histories of a few transactions and keys, with variables for the operations.

Every value is written once, so a read determines its source; all transactions commit. A transaction
writes a key at most once, and reads it at most ``SmallScope.reads`` times before. Keys are
registers or lists. A read of a list shows the order of the elements that were appended before, and
no element that its reader appends later. With predicates, a transaction may also read all rows of a
register, and find none. Times do not contradict session order; without overlap, each transaction of
a session begins after the previous one ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations, pairwise, permutations, product

import numpy as np
from msgspec import Struct

from isolang._native import AcyclicSolver
from isolang.comparison.effort import Effort
from isolang.comparison.names import examples
from isolang.comparison.small import List, Miss, Operation, Small, SmallRead, SmallWrite
from isolang.encodings.relational.circuit import FALSE, TRUE, Circuit
from isolang.encodings.relational.interpretation import T0, Interpretation, Moment, Pair, ReadEvent
from isolang.encodings.relational.relation import Relation, relation_of
from isolang.language.meaning.core import Named
from isolang.language.syntax.ast import KeyClass


class SmallScope(Struct, frozen=True, kw_only=True):
    """The histories that a search covers.

    Attributes:
        transactions: the exact number of transactions, without T0; each has an operation.
        keys: the greatest number of keys.
        reads: the greatest number of reads of one key by one transaction: 1 or 2.
        lists: whether keys may be lists.
        sessions: whether there is a session order; otherwise each transaction has its own session.
        real_time: whether transactions have times.
        groups: whether sessions have groups.
        operations: whether the order of the operations of a transaction matters.
        predicates: whether there are predicate reads.
        one_by_one: whether to leave out histories whose reads, sessions and times contradict each
            other. A database that runs one step after the other never shows such a history.
        overlap: whether transactions of a session may overlap in time.
        serial: whether to search only serial histories, in the order of the transaction numbers.
        labels: the patterns of labels that a specification distinguishes.
        levels: the patterns of levels.
        key_patterns: the patterns of key names.
        common_labels: whether it matters which transactions share a label.
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


class SymbolicInterpretation(Interpretation[int]):
    """Interprets the relations on every history of a scope at once, by literals.

    Attributes:
        scope: the histories.
        free: the variables whose values determine a history.
        used_keys: per key a literal that is true if the key is written or read.
        are_lists: per key a literal that is true if the key is a list.
    """

    def __init__(self, scope: SmallScope) -> None:
        """Create the variables and the clauses that restrict them to histories."""
        self.scope = scope
        self.circuit = Circuit()
        self.free: list[int] = []
        self.events = scope.operations
        self.included = [TRUE] * (scope.transactions + 1)
        self.keys = range(scope.keys)
        self._txns = range(1, scope.transactions + 1)
        self._solver = AcyclicSolver(0, 0)
        self._known_variables = self._known_literals = 0
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

    # --- variables ---

    def _new(self) -> int:
        variable = self.circuit.new()
        self.free.append(variable)
        return variable

    def _make_operations(self) -> None:
        scope, state = self.scope, self.circuit.state
        slots = range(scope.reads)
        self._write = {(t, x): self._new() for t in self._txns for x in self.keys}
        self._read = {
            (t, x, j, s): self._new()
            for t in self._txns
            for x in self.keys
            for j in slots
            for s in (T0, *self._txns)
            if s != t
        }
        # The last slot of a key is a predicate read of it, which finds no row.
        self._slots = range(scope.reads + scope.predicates)
        self.reads = [
            ReadEvent(op=j, reader=t, key=x, of_predicate=j == scope.reads)
            for t in self._txns
            for x in self.keys
            for j in self._slots
        ]
        for t, x in product(self._txns, self.keys) if scope.predicates else ():
            self._read[t, x, scope.reads, T0] = self._new()
        for (_, x, _, s), literal in self._read.items():
            if s != T0:
                state((-literal, self._write[s, x]))
        some = self.circuit.any_of
        self._reads = {
            (t, x, j): some(self._sources(t, x, j).values())
            for t in self._txns
            for x in self.keys
            for j in self._slots
        }
        self._reading = {
            (t, x): some(self._reads[t, x, j] for j in self._slots)
            for t in self._txns
            for x in self.keys
        }
        for t in self._txns:
            done = [self._write[t, x] for x in self.keys]
            done += [self._reading[t, x] for x in self.keys]
            state((some(done),))
            for x in self.keys:
                for j in slots:
                    for a, b in combinations(self._sources(t, x, j).values(), 2):
                        state((-a, -b))
                # A second read of a key requires a first one, from another source.
                for (s, second), (r, earlier) in (
                    (one, other)
                    for j in slots[1:]
                    for one in self._sources(t, x, j).items()
                    for other in self._sources(t, x, j - 1).items()
                ):
                    if s == r or (s < r and not scope.operations):
                        state((-second, -earlier))
                for j in slots[1:]:
                    state((-self._reads[t, x, j], self._reads[t, x, j - 1]))
        used = [
            some(one[t, x] for one in (self._write, self._reading) for t in self._txns)
            for x in self.keys
        ]
        for x in self.keys[1:]:
            state((-used[x], used[x - 1]))
        self.used_keys = used

    def _sources(self, t: int, x: int, j: int) -> dict[int, int]:
        return {s: self._read[t, x, j, s] for s in (T0, *self._txns) if (t, x, j, s) in self._read}

    def _make_sessions(self) -> None:
        """Require that session order is a total order of the transactions in each session."""
        state = self.circuit.state
        sessions = self.scope.sessions
        so = self._so = {pair: self._new() for pair in permutations(self._txns, 2) if sessions}
        for (a, b), literal in so.items():
            state((-literal, -so[b, a]))
            for c in self._txns:
                if c not in (a, b):
                    state((-literal, -so[b, c], so[a, c]))
                    # Two transactions that share a neighbour in session order are in one session.
                    state((-literal, -so[a, c], so[b, c], so[c, b]))
                    state((-literal, -so[c, b], so[a, c], so[c, a]))

    def _make_times(self) -> None:
        """Require that real time is an interval order."""
        state = self.circuit.state
        self._rt: dict[tuple[int, int], int] = {}
        if not self.scope.real_time:
            return
        rt = self._rt = {pair: self._new() for pair in permutations(self._txns, 2)}
        for (a, b), first in rt.items():
            for (c, d), second in rt.items():
                if (a, b) != (c, d) and a != d and c != b:
                    state((-first, -second, rt[a, d], rt[c, b]))
                elif b == c:
                    state((-first, -second, rt.get((a, d), FALSE)))
        for (i, j), literal in self._so.items():
            state((-literal, -rt[j, i] if self.scope.overlap else rt[i, j]))

    def _make_groups(self) -> None:
        """Require that the groups are a partition of the sessions."""
        state = self.circuit.state
        pairs = combinations(self._txns, 2) if self.scope.groups else ()
        self._together = {pair: self._new() for pair in pairs}

        def both(a: int, b: int) -> int:
            return self._together[min(a, b), max(a, b)]

        for (a, b), literal in self._together.items():
            for c in self._txns:
                if c not in (a, b):
                    state((-literal, -both(b, c), both(a, c)))
                    state((-literal, -both(a, c), both(b, c)))
            for pair in ((a, b), (b, a)):
                state((-self._so[pair] if pair in self._so else TRUE, literal))

    def _make_names(self) -> None:
        """Give each transaction labels and at most one level, and each key one name.

        A few names represent all names that match the same patterns.
        """
        scope, state, some = self.scope, self.circuit.state, self.circuit.any_of
        labels = examples(scope.labels, 2 if scope.common_labels else 1)
        borne = [name for names in labels.values() for name in names]
        self._bears = {
            ("label", t, name): self._new()
            for t in (self._txns if scope.labels or scope.common_labels else ())
            for name in borne
        }
        of_level = {names[0]: matched for matched, names in examples(scope.levels, 1).items()}
        for t in self._txns if scope.levels else ():
            own = {name: self._new() for name in of_level}
            for a, b in combinations(own.values(), 2):
                state((-a, -b))
            self._bears |= {("level", t, name): literal for name, literal in own.items()}
        if scope.levels:  # without a level the history cannot be judged
            state(tuple(x for (word, *_), x in self._bears.items() if word == "level"))
        self._matching = {("level", name): matched for name, matched in of_level.items()}
        self._matching |= {
            ("label", name): matched for matched, names in labels.items() for name in names
        }
        self._key_names: dict[tuple[int, str], int] = {}
        self._keys_matching: dict[str, frozenset[str]] = {}
        if not scope.key_patterns:
            return
        of_keys = examples(scope.key_patterns, len(self.keys))
        self._keys_matching = {
            name: matched for matched, names in of_keys.items() for name in names
        }
        self._key_names = {
            (x, name): self._new() for x in self.keys for name in self._keys_matching
        }
        for x in self.keys:
            state((some(self._key_names[x, name] for name in self._keys_matching),))
            for one, other in combinations(self._keys_matching, 2):
                state((-self._key_names[x, one], -self._key_names[x, other]))
        for name in self._keys_matching:
            for x, y in combinations(self.keys, 2):
                state((-self._key_names[x, name], -self._key_names[y, name]))

    def _make_lists(self) -> None:
        lists = self.scope.lists
        self.are_lists = [self._new() if lists else FALSE for _ in self.keys]
        self._shown = [self.total_order(self._txns, self._new) if lists else {} for _ in self.keys]
        for x, literal in enumerate(self.are_lists):
            if lists:
                self.circuit.state((-literal, self.used_keys[x]))
        for t, x in product(self._txns, self.keys) if self.scope.predicates else ():
            self.circuit.state((-self._reads[t, x, self.scope.reads], -self.are_lists[x]))
        # A list read that shows an element that its reader appends later would be an intrinsic
        # anomaly.
        for (t, x, _, s), read in self._read.items():
            if lists and s != T0:
                there = (self.are_lists[x], read, self._write[t, x])
                self.circuit.state((*(-one for one in there), self._shown[x][s, t]))

    def _make_one_order(self) -> None:
        """Require that one order of the transactions contains reads, sessions and times."""
        before = self.total_order(self._txns, self.circuit.new)
        for pair, literal in (*self._so.items(), *self._rt.items()):
            self.circuit.state((-literal, before[pair]))
        for (t, _, _, s), literal in self._read.items():
            if s != T0:
                self.circuit.state((-literal, before[s, t]))
        for (t, x, _, s), literal in self._read.items():
            for a in self._txns if s != T0 and self.scope.lists else ():
                if a != s:  # the read also returns earlier elements
                    there = (self.are_lists[x], literal, self._write[a, x], self._shown[x][a, s])
                    self.circuit.state((*(-one for one in there), before.get((a, t), FALSE)))

    def _make_serial(self) -> None:
        """Require that each transaction reads the last version before it, and that none overlap."""
        state = self.circuit.state
        for (a, b), literal in self._so.items():
            if a > b:
                state((-literal,))
        for (a, b), literal in self._rt.items():
            state((literal if a < b else -literal,))
        for shown in self._shown:
            for (a, b), literal in shown.items():
                state((literal if a < b else -literal,))
        for (t, x, _, s), literal in self._read.items():
            if s > t:
                state((-literal,))
            for u in range(s + 1 if s != T0 else 1, t):
                state((-literal, -self._write[u, x]))

    def total_order(
        self, elements: Iterable[int], new: Callable[[], int]
    ) -> dict[tuple[int, int], int]:
        """Return literals for ``a`` before ``b`` in a total order of some elements."""
        state = self.circuit.state
        before: dict[tuple[int, int], int] = {}
        for a, b in combinations(elements, 2):
            before[a, b] = new()
            before[b, a] = -before[a, b]
        for a, b, c in permutations({a for a, _ in before}, 3):
            if a < b and a < c:  # each cycle of three only once
                state((-before[a, b], -before[b, c], -before[c, a]))
        return before

    # --- primitives ---

    def in_session(self) -> list[Pair]:
        """Return the pairs of session order with their variables."""
        return [(a, b, literal) for (a, b), literal in self._so.items()]

    def finished(self, t: int) -> bool:
        """Return true, because every transaction is committed."""
        return True

    def in_group(self, a: int, b: int) -> int:
        """Return the variable for two transactions in one group."""
        return self._together.get((min(a, b), max(a, b)), FALSE)

    def bears(self, of: Named, t: int) -> int:
        """Return a literal that is true if the transaction has a matching name."""
        return self.circuit.any_of(
            literal
            for (word, u, name), literal in self._bears.items()
            if (word, u) == (of.word, t) and of.name in self._matching[word, name]
        )

    def share_label(self, a: int, b: int) -> int:
        """Return a literal that is true if two transactions share a label."""
        both, labels = self.circuit.both, self._bears
        return self.circuit.any_of(
            both(literal, labels[word, b, name])
            for (word, t, name), literal in labels.items()
            if word == "label" and t == a
        )

    def key_in(self, within: KeyClass, key: int) -> int:
        """Return a literal that is true if the name of the key matches."""
        found = self.circuit.any_of(
            self._key_names[key, name]
            for name, matched in self._keys_matching.items()
            if matched & set(within.patterns)
        )
        return -found if within.negated else found

    def moment(self, what: Moment, t: int, of: ReadEvent | int | None = None) -> int | None:
        """Return the transaction, because single operations have no times."""
        return t if self.scope.real_time else None

    def precedes(self, a: int, b: int) -> int:
        """Return the variable for ``a`` ending before ``b`` begins."""
        return self._rt.get((a, b), FALSE)

    def writers(self, key: int) -> list[tuple[int, int]]:
        """Return the writers of a key with the variables of their writes."""
        return [(T0, TRUE), *((t, self._write[t, key]) for t in self._txns)]

    def happens(self, read: ReadEvent) -> int:
        """Return a literal that is true if the read has a source."""
        return self._reads[read.reader, read.key, read.op]

    def sources(self, read: ReadEvent) -> list[tuple[int, int]]:
        """Return the sources of a read with their variables."""
        return list(self._sources(read.reader, read.key, read.op).items())

    def candidates(self, read: ReadEvent) -> list[tuple[int, int]]:
        """Return the sources; a read determines its source, as every value is written once."""
        return self.sources(read)

    def shown(self, key: int) -> Relation:
        """Return the pairs that list reads show: a transaction read the first of both elements."""
        return relation_of(self._vo(key))

    def all_events(self) -> list[Pair]:
        """Return the events; T0's writes, one for each key, come first."""
        return [(e, t, literal) for e, (t, literal) in self._events.items()]

    def program_order(self) -> list[Pair]:
        """Return the order of events in each transaction, which reads no key after writing it."""
        there = {e: literal for e, (_, literal) in self._events.items()}
        all_of = self.circuit.all_of
        return [(a, b, all_of((x, there[a], there[b]))) for (a, b), x in self._order.items()]

    def one_statement(self, a: ReadEvent, b: ReadEvent) -> bool:
        """Return false, because each read is a statement of its own."""
        return False

    def read_event(self, read: ReadEvent) -> int:
        """Return the event number of a read."""
        return self._event_of[read.reader, read.key, read.op]

    def write_event(self, key: int, t: int) -> int:
        """Return the event of a write; T0 has one for each key."""
        return self._event_of[t, key, None]

    @property
    def size(self) -> int:
        """The number of elements of the interpretation."""
        return len(self.included) + len(self._events)

    def __str__(self) -> str:
        return "a small history"

    def _vo(self, x: int) -> Iterator[tuple[int, int, int]]:
        if not self.scope.lists:
            return
        both, all_of, some = self.circuit.both, self.circuit.all_of, self.circuit.any_of
        before = self._shown[x]
        read_from = {
            s: some(literal for (_, y, _, r), literal in self._read.items() if (y, r) == (x, s))
            for s in self._txns
        }
        for a in self._txns:
            upto = [read_from[a]]
            upto += [both(before[a, s], read_from[s]) for s in self._txns if s != a]
            seen = some(upto)
            for b in self._txns:
                if a != b:
                    there = (self._write[a, x], self._write[b, x], before[a, b])
                    yield a, b, all_of((self.are_lists[x], seen, *there))

    def _make_events(self) -> None:
        """Create an element for each operation, and an order within each transaction."""
        self._events: dict[int, tuple[int, int]] = {}
        self._event_of: dict[tuple[int, int, int | None], int] = {}
        self._order: dict[tuple[int, int], int] = {}
        if not self.events:
            return

        def event(t: int, x: int, j: int | None, literal: int) -> int:
            number = self._event_of[t, x, j] = len(self.included) + len(self._events)
            self._events[number] = (t, literal)
            return number

        for x in self.keys:
            event(T0, x, None, TRUE)
        for t in self._txns:
            own = []
            ordered = []
            for x in self.keys:
                reads = [event(t, x, j, self._reads[t, x, j]) for j in self._slots]
                write = event(t, x, None, self._write[t, x])
                own += [*reads, write]
                ordered += [*pairwise(reads[: self.scope.reads]), *((e, write) for e in reads)]
            before = self.total_order(own, self._new)
            self._order |= before
            for pair in ordered:
                self.circuit.state((before[pair],))

    # --- counting ---

    @cached_property
    def operations(self) -> list[int]:
        """The literals of all operations."""
        return [*self._write.values(), *self._reads.values()]

    @cached_property
    def written_twice(self) -> int:
        """A literal that is true if two transactions write the same key."""
        both, pairs = self.circuit.both, list(combinations(self._txns, 2))
        written = [both(self._write[a, x], self._write[b, x]) for x in self.keys for a, b in pairs]
        return self.circuit.named(self.circuit.any_of(written))

    @cached_property
    def extras(self) -> list[int]:
        """The literals that a smallest history makes false where possible, in this order.

        First come the literals of lists, then those of reads of other transactions' writes, which
        may lie in the future, and then those of sessions, times and groups.
        """
        wrote = (literal for (_, _, _, s), literal in self._read.items() if s != T0)
        return [
            *self.are_lists,
            *wrote,
            *self._so.values(),
            *self._rt.values(),
            *self._together.values(),
            *self._bears.values(),
            *(x for (_, name), x in self._key_names.items() if self._keys_matching[name]),
        ]

    # --- solving ---

    def solve(self, assumptions: Sequence[int], effort: Effort) -> Sequence[int] | None:
        """Return a model in which the given literals are true, or ``None`` if there is none.

        Raises:
            TimeoutError: if the search reached its limit.
        """
        more = self.circuit.variables - self._known_variables
        if more:
            self._solver.new_variables(more)
            self._known_variables += more
        clauses = self.circuit.clauses
        built = len(clauses) - self._known_literals
        if built:
            self._solver.add_clauses(np.array(clauses[self._known_literals :], np.int32))
            self._known_literals = len(clauses)
        open_literals = [literal for literal in assumptions if literal != TRUE]
        if FALSE in open_literals or not effort.solve(self._solver, open_literals, built=built):
            return None
        values: list[int] = self._solver.model().tolist()
        return values

    def fixed(self, model: Sequence[int]) -> list[int]:
        """Return literals that are all true only in the history of the given model."""
        return [v if model[v] else -v for v in self.free]

    def history(self, model: Sequence[int]) -> Small:
        """Return the history of a model."""

        def true(literal: int) -> bool:
            return self.circuit.value(literal, model)

        lists: list[List | None] = []
        for x in self.keys:
            writers = [t for t in self._txns if true(self._write[t, x])]
            if not true(self.are_lists[x]):
                lists.append(None)
                continue
            before = self._shown[x]
            place = {t: sum(true(before[s, t]) for s in writers if s != t) for t in writers}
            lists.append(tuple(sorted(writers, key=place.__getitem__)))
        txns = [self._operations_of(t, true) for t in self._txns]
        so = {pair for pair, literal in self._so.items() if true(literal)}
        sessions = {
            tuple(sorted(own, key=lambda t: sum((s, t) in so for s in own)))
            for own in (_related_to(t, so) for t in self._txns)
        }
        together = {pair for pair, literal in self._together.items() if true(literal)}
        groups = {_related_to(t, together) for t in self._txns} if self.scope.groups else ()
        return Small(
            transactions=tuple(tuple(ops) for ops in txns),
            sessions=tuple(sorted(sessions)),
            lists=tuple(lists),
            before=tuple(pair for pair, literal in self._rt.items() if true(literal)),
            timed=self.scope.real_time,
            groups=tuple(sorted(tuple(sorted(own)) for own in groups)),
            labels=tuple(self._names("label", t, true) for t in self._txns),
            levels=tuple("".join(self._names("level", t, true)) for t in self._txns),
            key_names=tuple(
                next(
                    (n for (y, n), literal in self._key_names.items() if y == x and true(literal)),
                    "",
                )
                for x in self.keys
            ),
        ).tidied()

    def _names(self, kind: str, t: int, true: Callable[[int], bool]) -> tuple[str, ...]:
        return tuple(
            name for (word, u, name), x in self._bears.items() if (word, u) == (kind, t) and true(x)
        )

    def _operations_of(self, t: int, true: Callable[[int], bool]) -> list[Operation]:
        reads = [
            (x, j, s) for (u, x, j, s), literal in self._read.items() if u == t and true(literal)
        ]
        writes = [x for x in self.keys if true(self._write[t, x])]
        if not self.scope.operations:
            found: list[Operation] = [self._one_read(x, j, s) for x, j, s in sorted(reads)]
            found.sort(
                key=lambda op: isinstance(op, SmallRead)
            )  # a row is missed before it is read
            return [*found, *map(SmallWrite, writes)]
        done: dict[int, Operation] = {self._event_of[t, x, None]: SmallWrite(x) for x in writes}
        done |= {self._event_of[t, x, j]: self._one_read(x, j, s) for x, j, s in reads}
        order = self._order
        return [
            done[e]
            for e in sorted(done, key=lambda e: sum(true(order[d, e]) for d in done if d != e))
        ]

    def _one_read(self, x: int, j: int, s: int) -> Operation:
        return Miss(x) if j == self.scope.reads else SmallRead(x, s)


def _related_to(t: int, pairs: set[tuple[int, int]]) -> frozenset[int]:
    """Return a transaction with all transactions that pairs relate to it in either direction."""
    return frozenset((t, *(b for a, b in pairs if a == t), *(a for a, b in pairs if b == t)))
