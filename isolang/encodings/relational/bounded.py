"""The interpretation of a problem: known facts are constants, and open facts are literals.

The elements have consecutive numbers. T0 is 0, and the transactions that may be included follow. If
the specification mentions events, the write events of T0 (one for each key) and the operations come
next. An indeterminate transaction has a literal for its inclusion, and every fact about it depends
on that literal.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from isolang.encodings.relational.circuit import FALSE, TRUE, Circuit
from isolang.encodings.relational.interpretation import T0, Interpretation, Moment, Pair, ReadEvent
from isolang.encodings.relational.problem_times import At, ProblemTimes
from isolang.encodings.relational.reads import ExternalRead, external_reads
from isolang.encodings.relational.relation import EMPTY, Relation, relation_of, transitive_closure
from isolang.encodings.relational.uncertain_lists import UncertainLists
from isolang.history.columns import APPEND, NIL_ATOM, WRITE
from isolang.language.meaning.core import Named
from isolang.language.syntax.ast import KeyClass
from isolang.problem import InclusionStatus, Problem
from isolang.problem.order import find_order_contradiction
from isolang.rows import bits

if TYPE_CHECKING:
    from isolang.history.history import History


def name_matches(pattern: str, name: str) -> bool:
    """Return whether a name matches a pattern, where ``*`` matches any text."""
    parts = map(re.escape, pattern.split("*"))
    return re.fullmatch(".*".join(parts), name, re.DOTALL) is not None


class Bounded(Interpretation[At]):
    """The elements and the given relations of a problem, or of a subset of its transactions.

    Attributes:
        txns: the number in the history of each transaction element, including T0.
    """

    reads: list[ExternalRead]

    def __init__(
        self,
        problem: Problem,
        circuit: Circuit,
        *,
        events: bool,
        only: Iterable[int] | None = None,
        reads: bool = True,
    ) -> None:
        """Number the elements, and create a literal for each possible source of a read.

        Args:
            reads: whether to include reads. Without reads, no literals are created for sources; the
                relations about times, sessions and names of transactions are unaffected.
        """
        self.problem = problem
        self.circuit = circuit
        self.events = events
        self._native = native = problem.native
        self.keys = range(native.keys)
        inclusion = native.inclusion.tolist()
        kept = range(native.n) if only is None else sorted(only)
        self.txns = [native.n, *(t for t in kept if inclusion[t] != InclusionStatus.OUT)]
        self._element = {t: i for i, t in enumerate(self.txns)}
        self.included = [
            TRUE if inclusion[t] == InclusionStatus.IN else circuit.new() for t in self.txns
        ]
        self._number_events()
        self.reads = external_reads(problem, self.txns, self._element, self._ops) if reads else []
        self._sources = {read.op: self._choose_source(read) for read in self.reads}

    @property
    def history(self) -> History:
        """The history of the problem."""
        return self.problem.history

    @property
    def size(self) -> int:
        """The number of elements: transactions and events."""
        return len(self.txns) + len(self._owner)

    def number(self, element: int) -> int:
        """Return an element's number outside this encoding, in models and proofs.

        Transactions have numbers 0 … n, where n is T0. The event of operation i has number n + 1 +
        i, and T0's write event for key k has number n + 1 + operations + k.
        """
        if element < len(self.txns):
            return self.txns[element]
        return self._event_numbers[element - len(self.txns)]

    def label(self, element: int) -> str:
        """Return the name of a transaction, or a description of an event, for messages."""
        if element == T0:
            return "T0"
        if element < len(self.txns):
            return self.history.name_of(self.txns[element])
        number = self.number(element) - self._native.n - 1
        operations = self.history.columns.operations()
        if number < operations:
            return f"operation {number}"
        return f"T0's write of {self.history.key(number - operations)}"

    def impossible(self) -> list[int]:
        """Return the optional transactions whose reads contradict each other.

        These transactions cannot be included.
        """
        return [self._element[t] for t in self._native.impossible.tolist() if t in self._element]

    @cached_property
    def lists(self) -> UncertainLists:
        """The version orders shown by list reads of optional transactions, if they are included."""
        return UncertainLists(self.history, self._ops, self.included)

    # --- sessions, groups and times ---

    def in_session(self) -> Iterator[Pair]:
        """Yield the pairs (a, b) of transactions in one session in which a comes before b."""
        session = self._native.session.tolist()
        before: dict[int, list[int]] = defaultdict(list)
        for i, t in enumerate(self.txns[1:], 1):
            yield from ((a, i, TRUE) for a in before[session[t]])
            before[session[t]].append(i)

    def finished(self, t: int) -> bool:
        """Return whether a transaction certainly ended; false if it is indeterminate."""
        return not self._unfinished[self.txns[t]]

    def in_group(self, a: int, b: int) -> int:
        """Return ``TRUE`` if both transactions belong to the same group, otherwise ``FALSE``."""
        group = self._group
        same = group and group[self.txns[a]] == group[self.txns[b]] != NIL_ATOM
        return TRUE if same else FALSE

    def bears(self, of: Named, t: int) -> int:
        """Return ``TRUE`` if a quoted name matches a transaction's level or one of its labels."""
        history, txn = self.history, self.txns[t]
        names = history.labels_of(txn) if of.word == "label" else (history.level_of(txn),)
        return TRUE if any(name and name_matches(of.name, name) for name in names) else FALSE

    def share_label(self, a: int, b: int) -> int:
        """Return ``TRUE`` if two transactions have a label in common, otherwise ``FALSE``."""
        one, other = (self.history.labels_of(self.txns[t]) for t in (a, b))
        return FALSE if set(one).isdisjoint(other) else TRUE

    def key_in(self, within: KeyClass, key: int) -> int:
        """Return ``TRUE`` if the class of keys contains the key, otherwise ``FALSE``."""
        name = self.history.key_name(key)
        found = any(name_matches(pattern, name) for pattern in within.patterns)
        return TRUE if found != within.negated else FALSE

    def moment(self, what: Moment, t: int, of: ReadEvent | int | None = None) -> At | None:
        """Return the history's bound on the time of a moment, or ``None`` if it is unknown."""
        op = (
            of.op if isinstance(of, ReadEvent) else None if of is None else self._first_write[of, t]
        )
        return self._times.moment(what, self.txns[t], op)

    def precedes(self, a: At, b: At) -> int:
        """Return ``TRUE`` if moment a precedes moment b, whatever the clock errors."""
        return TRUE if self._times.precedes(a, b) else FALSE

    @cached_property
    def _times(self) -> ProblemTimes:
        return ProblemTimes(self.problem)

    @cached_property
    def _group(self) -> list[int]:
        found: list[int] = self._native.group.tolist()
        return found

    @cached_property
    def _unfinished(self) -> list[int]:
        found: list[int] = self._native.unfinished.tolist()
        return found

    # --- writes and reads ---

    def writers(self, key: int) -> list[tuple[int, int]]:
        """Return the writers of a key, each with its inclusion literal."""
        return [(t, self.included[t]) for t in self._rows[key]]

    def happens(self, read: ReadEvent) -> int:
        """Return the inclusion literal of a read's transaction."""
        return self.included[read.reader]

    def sources(self, read: ReadEvent) -> list[tuple[int, int]]:
        """Return a read's candidates, each with the literal for being the source."""
        return self._sources[read.op]

    def candidates(self, read: ReadEvent) -> list[tuple[int, int]]:
        """Return a read's candidates, each with the literal for both being included."""
        both, included = self.circuit.both, self.included
        return [(s, both(included[s], included[read.reader])) for s, _ in self._sources[read.op]]

    def _choose_source(self, read: ExternalRead) -> list[tuple[int, int]]:
        """Create a literal for each candidate, and allow the read only one source.

        A read by an included transaction must also have a source, unless it may read from a
        transaction outside the interpretation.
        """
        circuit, reader = self.circuit, self.included[read.reader]
        alone = len(read.sources) == 1 and not read.elsewhere
        options = [reader if alone else circuit.new() for _ in read.sources]
        for source, literal in zip(read.sources, options, strict=True):
            circuit.state((-literal, self.included[source]))
            circuit.state((-literal, reader))
        if not read.elsewhere:
            circuit.state((-reader, *options))
        circuit.at_most_one(options)
        return list(zip(read.sources, options, strict=True))

    @cached_property
    def _rows(self) -> list[dict[int, int]]:
        """The writers of each key (as elements, T0 first), with their rows in the problem."""
        start, txn = self._native.key_start.tolist(), self._native.writer_txn.tolist()
        return [
            {self._element[txn[row]]: row for row in range(*bounds) if txn[row] in self._element}
            for bounds in pairwise(start)
        ]

    def shown(self, key: int) -> Relation:
        """Return the version order shown by list reads, including reads that may be excluded."""
        return self._shown.get(key, EMPTY)

    @cached_property
    def _shown(self) -> dict[int, Relation]:
        native, element = self._native, self._element
        found = {}
        for key, rows in _known_steps(self.problem).items():
            pairs = (
                (element[a], element[b], TRUE)
                for a, row in transitive_closure(rows).items()
                if a in element and a != native.n
                for b in bits(row)
                if b in element and b != native.n
            )
            found[key] = relation_of(self._between(pairs))
        uncertain = [
            (key, shown, self.included[reader]) for reader, key, shown in self.lists.orders()
        ]
        if find_order_contradiction(self.problem) is not None:
            # The problem has what one of the lists shows, and the others contradict it.
            certain = (
                self._operations[t]
                for t, inclusion in enumerate(native.inclusion.tolist()[: native.n])
                if inclusion == InclusionStatus.IN
            )
            uncertain += [(key, shown, TRUE) for key, shown in self.lists.shown_in(certain)]
        for key, shown, included in uncertain:
            there = ((a, b, included) for a, b in shown)
            more = {(a, b): literal for a, b, literal in self._between(there)}
            for i, j, literal in found.get(key, EMPTY).pairs():
                more[i, j] = self.circuit.any_of([literal, more.get((i, j), FALSE)])
            found[key] = relation_of((i, j, more[i, j]) for i, j in sorted(more))
        return found

    # --- events ---

    def all_events(self) -> Iterator[Pair]:
        """Return the events, starting with T0's writes, one for each key."""
        base = len(self.txns)
        return ((base + i, t, self.included[t]) for i, t in enumerate(self._owner))

    def program_order(self) -> Iterator[Pair]:
        """Return the pairs of program order; the set-reads of a predicate read are unordered."""
        return (
            (self._event[a], self._event[b], self.included[element])
            for element, ops in enumerate(self._ops, 1)
            for j, b in enumerate(ops)
            for a in ops[:j]
            if not self._one_statement(a, b)
        )

    def one_statement(self, a: ReadEvent, b: ReadEvent) -> bool:
        """Return whether two reads belong to the same predicate read."""
        return self._one_statement(a.op, b.op)

    def _one_statement(self, a: int, b: int) -> bool:
        history = self.history
        statement = history.statement_of(a) if len(history.columns.statement_start) else -1
        return statement >= 0 and statement == history.statement_of(b)

    def read_event(self, read: ReadEvent) -> int:
        """Return the event of a read's operation."""
        return self._event[read.op]

    def write_event(self, key: int, t: int) -> int:
        """Return the event of the last write to a key by a transaction, which may be T0."""
        return len(self.txns) + key if t == T0 else self._event[self._last_write[key, t]]

    @cached_property
    def _last_write(self) -> dict[tuple[int, int], int]:
        return dict(self._writes())

    @cached_property
    def _first_write(self) -> dict[tuple[int, int], int]:
        return dict(reversed(list(self._writes())))

    def _writes(self) -> Iterator[tuple[tuple[int, int], int]]:
        """Yield ((key, transaction), operation) for each write, in program order."""
        columns = self.history.columns
        kind, key = columns.op_kind.tolist(), columns.op_key.tolist()
        for element, ops in enumerate(self._ops, 1):
            for op in ops:
                if kind[op] in (WRITE, APPEND):
                    yield (key[op], element), op

    def _number_events(self) -> None:
        columns = self.history.columns
        start, ok = columns.op_start.tolist(), columns.op_ok.tolist()
        self._operations = [[op for op in range(*at) if ok[op]] for at in pairwise(start)]
        self._ops = [self._operations[t] for t in self.txns[1:]]
        self._event: dict[int, int] = {}
        self._event_numbers: list[int] = []
        self._owner: list[int] = []
        if not self.events:
            return
        first = self._native.n + 1
        self._event_numbers += [first + columns.operations() + key for key in self.keys]
        self._owner += [T0] * len(self.keys)
        for element, ops_of in enumerate(self._ops, 1):
            for op in ops_of:
                self._event[op] = len(self.txns) + len(self._owner)
                self._event_numbers.append(first + op)
                self._owner.append(element)


def _known_steps(problem: Problem) -> dict[int, dict[int, int]]:
    """Return, for each key, pairs of transactions whose closure is the version order in a problem.

    The second elements are the bits of an integer.
    """
    native = problem.native
    txn, start = native.writer_txn.tolist(), native.key_start.tolist()
    steps: dict[int, dict[int, int]] = defaultdict(dict)
    for before, after in zip(native.vo_before.tolist(), native.vo_after.tolist(), strict=True):
        row = steps[bisect_right(start, before) - 1]
        row[txn[before]] = row.get(txn[before], 0) | 1 << txn[after]
    return steps
