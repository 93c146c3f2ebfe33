"""What is given with every history, as relations: elements, so, rt, W, R, vo, po, tx, cand.

Elements are numbered densely: T0 is 0, then the transactions that may be included, then (if the
specification speaks of events) T0's write events, one for each key, and the operations. A
transaction of unknown outcome has a literal for being included, and so has all that depends on it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from isolang.encodings.relational.circuit import FALSE, TRUE, Circuit
from isolang.encodings.relational.reads import Read, external_reads
from isolang.encodings.relational.relation import Relation, closure, relation_of
from isolang.encodings.relational.uncertain_lists import UncertainLists
from isolang.history.columns import APPEND, NIL_ATOM, UNKNOWN_END, WRITE
from isolang.problem import Inclusion, Problem
from isolang.problem.event_graph import before_commit, precedes
from isolang.rows import bits

if TYPE_CHECKING:
    from isolang.history.history import History

T0 = 0


class Universe:
    """The elements and the given relations of a problem, or of some of its transactions.

    Attributes:
        problem: the problem.
        circuit: where the literals are made.
        txns: the history's number of each transaction element; T0's is its number there, too.
        included: per transaction element, the literal of its being included.
        keys: the keys that somebody writes or reads.
        events: whether there are events.
    """

    def __init__(
        self,
        problem: Problem,
        circuit: Circuit,
        *,
        events: bool,
        only: Iterable[int] | None = None,
    ) -> None:
        """Number the elements.

        Args:
            problem: the problem.
            circuit: makes the literals.
            events: whether operations are elements, too.
            only: the transactions to keep (numbers of the history); ``None`` for all.
        """
        self.problem = problem
        self.circuit = circuit
        self.events = events
        self._native = native = problem.native
        inclusion = native.inclusion.tolist()
        kept = range(native.n) if only is None else sorted(only)
        self.txns = [native.n, *(t for t in kept if inclusion[t] != Inclusion.OUT)]
        self._element = {t: i for i, t in enumerate(self.txns)}
        self.included = [TRUE if inclusion[t] == Inclusion.IN else circuit.new() for t in self.txns]
        self._impossible = set(native.impossible.tolist())
        self._event: dict[int, int] = {}
        self._initial_event: dict[int, int] = {}
        self._owner: list[int] = []
        self._ops: list[list[int]] = []
        self._number_events()
        self.reads = external_reads(problem, self.txns, self._element, self._ops)
        self._reads_of: dict[int, list[Read]] = defaultdict(list)
        for read in self.reads:
            self._reads_of[read.key].append(read)

    @property
    def history(self) -> History:
        """The history."""
        return self.problem.history

    @property
    def size(self) -> int:
        """The number of elements."""
        return len(self.txns) + len(self._owner)

    def element(self, txn: int) -> int | None:
        """The element of a transaction of the history."""
        return self._element.get(txn)

    def number(self, element: int) -> int:
        """What an element is called outside.

        Transactions are 0 … n, T0 is n; the event of operation i is n + 1 + i, T0's write event of
        key k is n + 1 + operations + k.
        """
        if element < len(self.txns):
            return self.txns[element]
        return self._event_numbers[element - len(self.txns)]

    def label(self, element: int) -> str:
        """An element in the words of the history."""
        if element == T0:
            return "T0"
        if element < len(self.txns):
            return self.history.label(self.txns[element])
        number = self.number(element) - self._native.n - 1
        operations = self.history.columns.operations()
        if number < operations:
            return f"operation {number}"
        return f"T0's write of {self.history.key(number - operations)}"

    def is_event(self, element: int) -> bool:
        """Whether an element is an event."""
        return element >= len(self.txns)

    # --- events ---

    @cached_property
    def keys(self) -> list[int]:
        """The keys of the problem."""
        return list(range(self._native.keys))

    def _number_events(self) -> None:
        columns = self.history.columns
        self._start = columns.op_start.tolist()
        self._kind = columns.op_kind.tolist()
        self._key = columns.op_key.tolist()
        self._ok = columns.op_ok.tolist()
        self._event_numbers: list[int] = []
        for t in self.txns[1:]:
            ops = range(self._start[t], self._start[t + 1])
            self._ops.append([op for op in ops if self._ok[op]])
        if not self.events:
            return
        native, base = self._native, len(self.txns)
        for key in self.keys:
            self._initial_event[key] = base + len(self._owner)
            self._event_numbers.append(native.n + 1 + len(self._kind) + key)
            self._owner.append(T0)
        for element, ops_of in enumerate(self._ops, 1):
            for op in ops_of:
                self._event[op] = base + len(self._owner)
                self._event_numbers.append(native.n + 1 + op)
                self._owner.append(element)

    # --- reads ---

    def reads_of(self, key: int) -> list[Read]:
        """The external reads of a key."""
        return self._reads_of.get(key, [])

    @cached_property
    def lists(self) -> UncertainLists:
        """What list reads show if their transactions are included."""
        return UncertainLists(self.history, self._ops, self.included)

    def read_event(self, op: int) -> int:
        """The event of an operation."""
        return self._event[op]

    def write_event(self, key: int, element: int) -> int:
        """The event of an element's last write of a key."""
        if element == T0:
            return self._initial_event[key]
        return self._event[self._last_write[key, element]]

    @cached_property
    def _last_write(self) -> dict[tuple[int, int], int]:
        return {
            (self._key[op], element): op
            for element, ops in enumerate(self._ops, 1)
            for op in ops
            if self._kind[op] in (WRITE, APPEND)
        }

    # --- sets ---

    def both(self, a: int, b: int) -> int:
        """The literal of two transaction elements being included."""
        return self.circuit.both(self.included[a], self.included[b])

    @cached_property
    def everything(self) -> Relation:
        """All elements that are there."""
        base = len(self.txns)
        events = ((0, base + i, self.included[t]) for i, t in enumerate(self._owner))
        return relation_of([*self.transactions.pairs(), *events])

    @cached_property
    def transactions(self) -> Relation:
        """``T``."""
        return relation_of((0, i, literal) for i, literal in enumerate(self.included))

    @cached_property
    def writers(self) -> dict[int, list[int]]:
        """Per key, the elements that write it, T0 first."""
        native = self._native
        start, txn = native.key_start.tolist(), native.writer_txn.tolist()
        found = {}
        for key in self.keys:
            # The problem has no writers that cannot be included; one of T0 comes first.
            rows = txn[start[key] : start[key + 1]]
            found[key] = [self._element[t] for t in rows if t in self._element]
        return found

    def written(self, key: int) -> Relation:
        """``W[x]``."""
        return relation_of((0, i, self.included[i]) for i in self.writers[key])

    def read(self, key: int) -> Relation:
        """``R[x]``."""
        readers = {r.reader for r in self.reads_of(key)}
        return relation_of((0, i, self.included[i]) for i in sorted(readers))

    # --- relations ---

    def _between(self, pairs: Iterable[tuple[int, int]]) -> Relation:
        """Pairs of transaction elements that hold if both are included."""
        return relation_of((a, b, self.both(a, b)) for a, b in pairs)

    @cached_property
    def init(self) -> Relation:
        """``init``."""
        return self._between((T0, i) for i in range(1, len(self.txns)))

    @cached_property
    def so(self) -> Relation:
        """``so``."""
        session = self._native.session.tolist()
        unfinished = self._native.unfinished.tolist()
        pairs = [(T0, i) for i in range(1, len(self.txns))]
        before: dict[int, list[int]] = defaultdict(list)
        for i, t in enumerate(self.txns[1:], 1):
            pairs += [(a, i) for a in before[session[t]]]
            if not unfinished[t]:
                before[session[t]].append(i)
        return self._between(pairs)

    @cached_property
    def rt(self) -> Relation:
        """``rt``."""
        begin, end = self._native.begin.tolist(), self._native.end.tolist()
        unfinished = self._native.unfinished.tolist()
        pairs = [(T0, i) for i in range(1, len(self.txns))]
        ended = [
            (end[t], i)
            for i, t in enumerate(self.txns)
            if i != T0 and not unfinished[t] and end[t] != UNKNOWN_END
        ]
        for i, t in enumerate(self.txns[1:], 1):
            pairs += [
                (a, i)
                for when, a in ended
                if a != i and precedes(self._native, when, self.txns[a], begin[t], t)
            ]
        return self._between(pairs)

    @cached_property
    def group_rt(self) -> Relation:
        """``group-rt``."""
        group = self._native.group.tolist()
        return relation_of(
            (i, j, literal)
            for i, j, literal in self.rt.pairs()
            if i != T0 and group and group[self.txns[i]] == group[self.txns[j]] != NIL_ATOM
        )

    def before_commit(self, name: str) -> Relation:
        """``done``, ``late`` or ``locked``."""
        pairs = before_commit(self._native, name)
        place = {t: i for i, t in enumerate(self.txns) if i != T0}
        return self._between([(place[a], place[b]) for a, b in pairs if a in place and b in place])

    def of_statements(self, name: str) -> Relation:
        """``committed-before``, ``answered-before``, ``committed-after`` or ``statement``."""
        native, columns = self._native, self.history.columns
        timed = columns.has_operation_times
        begin, end = (columns.op_begin, columns.op_end) if timed else (native.begin, native.end)
        committed, sent = native.commit_end.tolist(), native.commit_begin.tolist()
        places = [(r, self.txns[r.reader], self._event[r.op]) for r in self.reads]

        def asked(read: Read, t: int) -> int:
            return int(begin[read.op if timed else t])

        def told(read: Read, t: int) -> int:
            return UNKNOWN_END if native.unfinished[t] else int(end[read.op if timed else t])

        def pairs() -> Iterable[tuple[int, int]]:
            for read, owner, event in places:
                if name == "statement":
                    yield from (
                        (event, other)
                        for r, _, other in places
                        if event == other or self._one_statement(read.op, r.op)
                    )
                elif name == "answered-before":
                    known = told(read, owner)
                    yield from (
                        (event, other)
                        for r, t, other in places
                        if precedes(native, known, owner, asked(r, t), t)
                    )
                elif sent:
                    for i, t in enumerate(self.txns[1:], 1):
                        if t == owner:
                            continue
                        if name == "committed-before":
                            if precedes(native, committed[t], t, asked(read, owner), owner):
                                yield i, event
                        elif precedes(native, told(read, owner), owner, sent[t], t):
                            yield event, i

        def included(element: int) -> int:
            inside = element < len(self.txns)
            return self.included[element if inside else self._owner[element - len(self.txns)]]

        return relation_of((a, b, self.circuit.both(included(a), included(b))) for a, b in pairs())

    @cached_property
    def _vo(self) -> dict[int, Relation]:
        native = self._native
        txn = native.writer_txn.tolist()
        key_of = {}
        start = native.key_start.tolist()
        for key in self.keys:
            for i in range(start[key], start[key + 1]):
                key_of[i] = key
        steps: dict[int, dict[int, int]] = defaultdict(dict)
        for before, after in zip(native.vo_before.tolist(), native.vo_after.tolist(), strict=True):
            row = steps[key_of[before]]
            row[txn[before]] = row.get(txn[before], 0) | 1 << txn[after]
        found = {}
        for key, rows in steps.items():
            pairs = [
                (self._element[a], self._element[b])
                for a, row in closure(rows).items()
                if a in self._element and a != native.n
                for b in bits(row)
                if b in self._element and b != native.n
            ]
            found[key] = self._between(pairs)
        for reader, key, pairs in self.lists.orders():
            more = {
                pair: self.circuit.both(self.included[reader], self.both(*pair)) for pair in pairs
            }
            for i, j, literal in found.get(key, Relation()).pairs():
                more[i, j] = self.circuit.any_of([literal, more.get((i, j), FALSE)])
            found[key] = relation_of((i, j, more[i, j]) for i, j in sorted(more))
        return found

    def vo(self, key: int) -> Relation:
        """``vo[x]``."""
        return self._vo.get(key, Relation())

    @cached_property
    def po(self) -> Relation:
        """``po``."""
        return relation_of(
            (self._event[a], self._event[b], self.included[element])
            for element, ops in enumerate(self._ops, 1)
            for j, b in enumerate(ops)
            for a in ops[:j]
            if not self._one_statement(a, b)
        )

    def _one_statement(self, a: int, b: int) -> bool:
        """Whether two operations are of one predicate read, inside which nothing is ordered."""
        history = self.history
        statement = history.statement_of(a) if len(history.columns.statement_start) else -1
        return statement >= 0 and statement == history.statement_of(b)

    @cached_property
    def tx(self) -> Relation:
        """``tx``."""
        base = len(self.txns)
        return relation_of((base + i, t, self.included[t]) for i, t in enumerate(self._owner))

    @cached_property
    def pred(self) -> Relation:
        """``pred``."""
        return relation_of(
            (0, self.read_event(read.op), self.included[read.reader])
            for read in self.reads
            if read.of_predicate
        )

    def last_writes(self, key: int) -> Relation:
        """``last-write[x]``."""
        return relation_of(
            (0, self.write_event(key, i), self.included[i]) for i in self.writers[key]
        )

    def cand(self, key: int) -> Relation:
        """``cand[x]``."""
        return relation_of(
            (self.write_event(key, s), self.read_event(r.op), self.both(s, r.reader))
            for r in self.reads_of(key)
            for s in r.sources
        )

    def impossible(self) -> list[int]:
        """The elements of transactions that contradict themselves, if their reads are judged."""
        return [self._element[t] for t in self._impossible if t in self._element]
