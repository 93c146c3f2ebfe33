"""Extracts parts of a history, and maps numbers between a part and the whole history."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from isolang.arrays import np
from isolang.certify.steps import (
    AnomalyStep,
    Before,
    ChoiceStep,
    CycleStep,
    Edge,
    ExhaustionStep,
    In,
    Literal,
    OrderStep,
    RupStep,
    Source,
    Step,
)
from isolang.history.columns import APPEND, READ_LIST, READ_NONE_OF, UNKNOWN_VALUE, WRITE
from isolang.language.vocabulary import FILTERED, ends_of
from isolang.problem import Problem, build_problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang._native import Columns
    from isolang._native import Problem as NativeProblem
    from isolang.history.history import History

# The number of a session's last reads of a key to use in finding the versions it knew.
_SESSION_READS = 8


class HistoryPart(Struct, frozen=True):
    """A sub-history, with maps from its numbers to those of the whole history.

    Attributes:
        txns: the number in the whole history of each transaction in the part; the last entry is for
            T0.
    """

    whole: History
    history: History
    ops: tuple[int, ...]
    txns: tuple[int, ...]

    def to_whole(self, steps: Iterable[Step]) -> list[Step]:
        """Return steps about the part, renumbered for the whole history."""
        ops, txns, keys = dict(enumerate(self.ops)), dict(enumerate(self.txns)), self._keys()
        return [_renumbered(step, ops, txns, keys) for step in steps]

    def to_part(self, steps: Iterable[Step]) -> list[Step]:
        """Return steps about the whole history, renumbered for the part.

        The part must contain everything mentioned in the steps.
        """
        ops = {old: new for new, old in enumerate(self.ops)}
        txns = {old: new for new, old in enumerate(self.txns)}
        keys = {old: new for new, old in self._keys().items()}
        return [_renumbered(step, ops, txns, keys) for step in steps]

    def _keys(self) -> dict[int, int]:
        old, new = self.whole.columns.op_key, self.history.columns.op_key
        return {int(new[i]): int(old[op]) for i, op in enumerate(self.ops)}

    def narrowed(self, kept: Sequence[int], txns: Iterable[int] = ()) -> HistoryPart:
        """Return a smaller part that keeps only the given operations of this part.

        Args:
            kept: the numbers in this part of the operations to keep, in ascending order.
        """
        from isolang.history import sub_history

        txns = list(txns)
        smaller = sub_history(self.history, kept, txns)
        return _part(self.whole, smaller, [self.ops[i] for i in kept], [self.txns[t] for t in txns])

    def without_operations(self) -> list[int]:
        """Return the transactions without operations; they may still matter for orders."""
        starts = self.history.columns.op_start.tolist()
        return [txn for txn, (start, end) in enumerate(pairwise(starts)) if start == end]


def part_of(history: History, ops: Iterable[int], txns: Iterable[int] = ()) -> HistoryPart:
    """Return the part of a history consisting of the given operations."""
    from isolang.history import sub_history

    kept, txns = sorted(set(ops)), list(txns)
    return _part(history, sub_history(history, kept, txns), kept, txns)


def whole_part(history: History) -> HistoryPart:
    """Return the whole history as a part of itself."""
    return part_of(history, range(history.columns.operations()), range(history.t0))


def part_with_same_transactions(whole: History, history: History) -> HistoryPart:
    """Return a history as a part of another with the same transactions and more set-reads.

    Args:
        whole: the history to use as the whole. Its operations include all predicate reads'
            set-reads that are operations in ``history``.
    """

    def split_by_set_reads(
        columns: Columns,
    ) -> tuple[NDArray[np.int64], dict[tuple[int, int], int]]:
        """Separate set-reads of missed rows from the other operations.

        Return the other operations, and the set-reads by predicate read and key.
        """
        ops = np.arange(columns.operations())
        statement = np.searchsorted(columns.statement_start, ops, side="right") - 1
        inside = np.append(columns.statement_end, -1)[statement] > ops
        missed = inside & (columns.op_kind == READ_NONE_OF)
        of = zip(statement[missed].tolist(), columns.op_key[missed].tolist(), strict=True)
        return ops[~missed], dict(zip(of, ops[missed].tolist(), strict=True))

    kept, missed = split_by_set_reads(history.columns)
    kept_there, missed_there = split_by_set_reads(whole.columns)
    place = np.empty(history.columns.operations(), np.int64)
    place[kept] = kept_there
    for which, op in missed.items():
        place[op] = missed_there[which]
    return HistoryPart(whole, history, tuple(place.tolist()), tuple(range(whole.t0 + 1)))


def _part(whole: History, history: History, ops: list[int], kept: list[int]) -> HistoryPart:
    op_start: Any = whole.columns.op_start
    starts, txns, i = memoryview(op_start), set(kept), 0  # bisecting it is fastest
    while i < len(ops):
        txn = bisect_right(starts, ops[i]) - 1
        txns.add(txn)
        i = bisect_left(ops, starts[txn + 1], i)  # the first operation of another transaction
    return HistoryPart(whole, history, tuple(ops), (*sorted(txns), whole.columns.transactions()))


def operations_of(history: History, txns: Iterable[int]) -> list[int]:
    """Return all operations of the given transactions; T0 has no operations."""
    return [op for txn in set(txns) for op in history.operations_of(txn)]


class Mentioned:
    """The transactions, reads and keys that steps mention, found in one pass over them.

    Attributes:
        reads: the reads.
        keys: the keys whose version orders are mentioned.
        filtered: the edges that exist only if their transactions access a common key.
    """

    __slots__ = ("_choices", "_txns", "filtered", "keys", "reads")

    def __init__(self, steps: Iterable[Step]) -> None:
        """Collect what the steps mention."""
        self.keys: set[int] = set()
        self.filtered: list[Edge] = []
        self._txns: set[int] = set()
        self._choices: set[int] = set()  # reads whose transactions are mentioned through them
        of_edges: set[int] = set()
        for step in steps:
            match step:
                case CycleStep():
                    for edge in step.edges:
                        self._txns |= {edge.a, edge.b, edge.writer}
                        of_edges.add(edge.op)
                        self.keys.add(edge.key)
                        if edge.relation in FILTERED:
                            self.filtered.append(edge)
                case RupStep():
                    for _, literal in step.literals:
                        match literal:
                            case Before(key, a, b):
                                self.keys.add(key)
                                self._txns |= {a, b}
                            case Source(op, txn):
                                self._choices.add(op)
                                self._txns.add(txn)
                            case In(txn):
                                self._txns.add(txn)
                case ChoiceStep():
                    self._choices.add(step.op)
                case OrderStep():
                    self.keys.add(step.key)
                    self._txns.update(step.txns)
                case AnomalyStep():
                    other = step.txn if step.other_txn is None else step.other_txn
                    self._txns |= {step.txn, other}
        self.keys.discard(-1)
        self.reads = (self._choices | of_edges) - {-1}

    def transactions(self, history: History) -> set[int]:
        """Return the transactions, without T0."""
        found = self._txns.union(map(history.transaction_of, self._choices))
        return found - {-1, history.t0}


def transactions_of(steps: Iterable[Step], history: History) -> set[int]:
    """Return the transactions mentioned in steps, without T0."""
    return Mentioned(steps).transactions(history)


def reads_of(steps: Iterable[Step]) -> set[int]:
    """Return the reads mentioned in steps."""
    return Mentioned(steps).reads


class Sources:
    """Finds a problem's candidates for reads, and the list reads that show version orders."""

    def __init__(self, problem: Problem) -> None:
        """Prepare to answer questions about the problem of the whole history."""
        self._native = problem.native
        self._history = problem.history
        self._candidates: dict[int, list[int]] = {}

    def candidates(self, op: int) -> list[int]:
        """Return the transactions that a read may read from, possibly including T0."""
        known = self._candidates.get(op)
        if known is None:
            native, i, known = self._native, self._row(op), []
            if i >= 0:
                start, writer_txn = native.candidate_start, native.writer_txn
                known = [int(writer_txn[w]) for w in native.candidate[start[i] : start[i + 1]]]
            self._candidates[op] = known
        return known

    def _row(self, op: int) -> int:
        """Return the index of the problem's read for an operation, or -1 if there is none."""
        reads, columns = self._native.read_op, self._history.columns
        i = bisect_right(reads, op) - 1
        txn = self._history.transaction_of(op)
        while i >= 0 and int(self._native.read_txn[i]) == txn:
            first = int(reads[i])
            if first == op or (
                columns.op_kind[first] == columns.op_kind[op]
                and columns.op_key[first] == columns.op_key[op]
                and columns.op_value[first] == columns.op_value[op]
            ):
                return i
            i -= 1
        return -1

    def keeps_candidates(
        self,
        part: HistoryPart,
        reads: Iterable[int] | None = None,
        problem: Problem | None = None,
        *,
        impossible: Mapping[int, Set[int]] = {},
    ) -> bool:
        """Return whether reads of a part keep the candidates they have in the whole history.

        If a read has fewer candidates in the part, the part may be contradictory even though the
        whole history is not.

        Args:
            impossible: for reads, by their numbers in the whole history, the candidates excluded by
                a refutation, each by a cycle of its own. The part may lack these candidates,
                because these cycles and the refutation of the part together refute the whole
                history.
        """
        inner = Sources(problem or build_problem(part.history))
        if reads is None:
            reads = _reads_to_compare(self._native, inner._native, part)
        for read in reads:
            known, op = inner.candidates(read), part.ops[read]
            lost = len(self.candidates(op)) - len(known)
            if lost and op in impossible:
                dropped = set(self.candidates(op)).difference(part.txns[txn] for txn in known)
                lost = len(dropped - impossible[op])
            if lost:
                return False
        return True

    def reads_from(self, reader: int, writer: int) -> tuple[int, int]:
        """Return a read by ``reader`` whose only candidate is ``writer``, and its key.

        If there is no such read, return (-1, -1).
        """
        native = self._native
        reads = native.read_txn  # in ascending order
        for i in range(bisect_left(reads, reader), bisect_right(reads, reader)):
            start, end = native.candidate_start[i : i + 2].tolist()
            if end - start == 1 and int(native.writer_txn[native.candidate[start]]) == writer:
                return int(native.read_op[i]), int(native.read_key[i])
        return -1, -1

    def around(self, op: int, *, every_write: bool = True) -> HistoryPart:
        """Return the part with a read, its candidates, and the versions known to its session.

        A session knows a version of the key if it recently read from the version's writer, or if it
        wrote the version itself.
        """
        native, read = self._native, self._row(op)
        reader, key = int(native.read_txn[read]), int(native.read_key[read])
        first, last = native.key_start[key : key + 2].tolist()
        session = native.session[reader]
        before = (native.session[native.read_txn] == session) & (native.read_txn <= reader)
        known = np.flatnonzero(before & (np.diff(native.candidate_start) == 1))
        seen = native.writer_txn[native.candidate[native.candidate_start[known]]]
        writers = native.writer_txn[first + 1 : last]  # skip T0, the first writer of each key
        shown = native.read_op[known[np.isin(seen, writers)]]
        own = native.writer_op[first + 1 : last][
            (native.session[writers] == session) & (writers < reader)
        ]
        reads = {op, *shown[-_SESSION_READS:].tolist()}
        steps = [ChoiceStep(r) for r in sorted(reads)]
        ops = self.relevant(steps, every_write=every_write)
        return part_of(self._history, ops.union(own[-1:].tolist()))

    def _filtering(self, edges: Iterable[Edge]) -> set[int]:
        """Return the reads that justify edges such as ``rt[W,R]``.

        Such an edge exists only if its two transactions access a common key.
        """
        native = self._native

        def accesses(txn: int, test: str) -> dict[int, int]:
            """Return the keys that a transaction accesses in the way required by ``test``.

            The value for each key is a read of the key, or -1 for a write.
            """
            if test == "W":
                (written,) = np.nonzero(native.writer_txn == txn)
                after = np.asarray(np.searchsorted(native.key_start, written, side="right"))
                return dict.fromkeys((after - 1).tolist(), -1)
            (some,) = np.nonzero((native.read_txn == txn) & (np.diff(native.candidate_start) > 0))
            return dict(
                zip(native.read_key[some].tolist(), native.read_op[some].tolist(), strict=True)
            )

        found: set[int] = set()
        for edge in edges:
            tests = ends_of(edge.relation)
            first, last = accesses(edge.a, tests[0]), accesses(edge.b, tests[1])
            key = min(first.keys() & last.keys())
            found |= {first[key], last[key]}
        return found - {-1}

    def show_orders(self) -> bool:
        """Return whether list reads or stated versions show any version order."""
        return bool(len(self._native.vo_op))

    def showing(self, keys: Iterable[int]) -> set[int]:
        """Return the list reads that show version orders of these keys."""
        native = self._native
        if not self.show_orders():
            return set()
        key_of = np.searchsorted(native.key_start, native.vo_before, side="right") - 1
        return set(native.vo_op[np.isin(key_of, list(keys))].tolist()) - {-1}

    def appenders(self, op: int) -> set[int]:
        """Return the transactions that appended the elements of a list read."""
        columns = self._history.columns
        number = int(columns.op_value[op])
        if int(columns.op_kind[op]) != READ_LIST or number == UNKNOWN_VALUE:
            return set()
        shown, values = set(self._history.list_values(number)), columns.op_value
        appends = columns.appends(int(columns.op_key[op]))
        return {self._history.transaction_of(i) for i in appends if values[i] in shown}

    def relevant(self, steps: Sequence[Step], *, every_write: bool = True) -> set[int]:
        """Return the operations on which steps depend: reads, and their transactions' writes.

        Other reads of these transactions are omitted, because they would be thin-air reads in the
        part.

        Args:
            every_write: whether to include writes of keys not mentioned in the steps. The part has
                no reads of these keys, so any version order is possible for them, and no cycle
                needs them. But a check may test whether a transaction writes.
        """
        mentioned = Mentioned(steps)
        return self._relevant(steps, mentioned, self._closed(mentioned), every_write)

    def _relevant(
        self, steps: Sequence[Step], mentioned: Mentioned, closed: set[int], every_write: bool
    ) -> set[int]:
        history, columns = self._history, self._history.columns
        reads = mentioned.reads | self._filtering(mentioned.filtered) | self.showing(mentioned.keys)
        txns = closed.union(*(self.appenders(op) for op in reads))
        found = set(reads)
        kinds, key_of = columns.op_kind, columns.op_key
        writes = [op for op in operations_of(history, txns) if kinds[op] in (WRITE, APPEND)]
        if every_write:
            found.update(writes)
        else:
            keys = mentioned.keys | {int(key_of[op]) for op in reads}
            found.update(op for op in writes if key_of[op] in keys)
        for step in steps:
            if isinstance(step, AnomalyStep):
                # An anomaly needs all accesses to the key by these transactions, and the writes of
                # the elements that they read: a list without one would be another anomaly.
                key = columns.op_key[step.op]
                of_both = operations_of(history, transactions_of([step], history))
                accesses = [op for op in of_both if columns.op_key[op] == key]
                found.update(accesses)
                writers = set().union(*(self.appenders(op) for op in accesses))
                found.update(
                    op
                    for op in operations_of(history, writers)
                    if columns.op_key[op] == key and columns.op_kind[op] in (WRITE, APPEND)
                )
        return found

    def relevant_part(self, steps: Sequence[Step], *, every_write: bool = True) -> HistoryPart:
        """Return the part with the operations on which steps depend, as in `relevant`."""
        mentioned = Mentioned(steps)
        txns = self._closed(mentioned)
        empty = [t for t in txns if not self._history.operations_of(t)]
        return part_of(self._history, self._relevant(steps, mentioned, txns, every_write), empty)

    def closed(self, steps: Iterable[Step]) -> set[int]:
        """Return the transactions mentioned in steps, and all transactions on which these depend.

        A transaction depends on the candidates of its reads, and on the transactions whose list
        reads show its version orders.
        """
        return self._closed(Mentioned(steps))

    def _closed(self, mentioned: Mentioned) -> set[int]:
        txns = mentioned.transactions(self._history)
        for op in mentioned.reads | self._filtering(mentioned.filtered):
            txns.update(self.candidates(op))
        shown = self.showing(mentioned.keys)
        txns.update(self._history.transaction_of(op) for op in shown)
        txns.discard(self._history.t0)
        return txns


def _reads_to_compare(whole: NativeProblem, native: NativeProblem, part: HistoryPart) -> list[int]:
    """Return the reads of a part that may have other candidates, by their numbers in the part.

    All others have as many candidates as in the whole history. Most reads of large parts do, and
    comparing two columns is much faster than asking for the candidates of each read.
    """
    reads = native.read_op
    if not len(whole.read_op):
        return list(reads.tolist())
    ops = np.asarray(part.ops, np.int64)[reads]
    row = np.minimum(np.searchsorted(whole.read_op, ops), len(whole.read_op) - 1)
    counts, own = np.diff(whole.candidate_start)[row], np.diff(native.candidate_start)
    return list(reads[(whole.read_op[row] != ops) | (counts != own)].tolist())


def keys_of(steps: Iterable[Step]) -> set[int]:
    """Return the keys whose version orders are mentioned in steps."""
    return Mentioned(steps).keys


def _renumbered(
    step: Step, ops: dict[int, int], txns: dict[int, int], keys: dict[int, int]
) -> Step:
    def op(i: int) -> int:
        return i if i < 0 else ops[i]

    def txn(i: int) -> int:
        return i if i < 0 else txns[i]

    def literal(x: Literal) -> Literal:
        match x:
            case Before(k, a, b):
                return Before(keys[k], txn(a), txn(b))
            case Source(o, t):
                return Source(op(o), txn(t))
            case In(t):
                return In(txn(t))

    match step:
        case AnomalyStep():
            return replace(
                step,
                txn=txn(step.txn),
                op=op(step.op),
                other_txn=None if step.other_txn is None else txn(step.other_txn),
                other_op=None if step.other_op is None else op(step.other_op),
            )
        case ChoiceStep():
            return ChoiceStep(op(step.op))
        case CycleStep():
            edges = tuple(
                Edge(
                    e.relation,
                    txn(e.a),
                    txn(e.b),
                    e.key if e.key < 0 else keys[e.key],
                    op(e.op),
                    txn(e.writer),
                )
                for e in step.edges
            )
            return CycleStep(step.check, edges)
        case OrderStep():
            return OrderStep(keys[step.key], tuple(txn(t) for t in step.txns))
        case RupStep():
            return RupStep(tuple((positive, literal(x)) for positive, x in step.literals))
        case ExhaustionStep():
            return step
