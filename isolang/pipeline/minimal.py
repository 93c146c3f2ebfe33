"""Finds a small part of an invalid history that still violates the level."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.arrays import np
from isolang.certify.proofs import Exhaustion
from isolang.certify.steps import AnomalyStep
from isolang.errors import IsolangError
from isolang.explain.part import (
    HistoryPart,
    Sources,
    keys_of,
    operations_of,
    part_of,
    reads_of,
    whole_part,
)
from isolang.explain.shrink import shrink
from isolang.explain.versions import impossible_versions
from isolang.history.columns import (
    APPEND,
    COMMITTED,
    INITIAL,
    READ,
    READ_NONE_OF,
    SOURCE_INITIAL,
    UNKNOWN_VALUE,
    WRITE,
    initial_alone,
)
from isolang.limits import Deadline, Work
from isolang.options import Options
from isolang.pipeline.decision import decide
from isolang.problem import build_problem
from isolang.problem.anomalies import Anomaly, AnomalyKind
from isolang.verdict import Invalid

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.classify.route import Route

# The work limit for a search, about ten seconds, and what judging a part costs besides the work of
# the engine: for each part, and for each of its operations.
_ALL_WORK, _PER_PART, _PER_OPERATION = 40_000_000, 10_000, 5
# The work limit for judging or explaining one part.
_WORK = 10_000_000
# The maximum number of operations in a restriction to some rows.
_RESTRICTED = 100_000


def minimise(
    verdict: Invalid,
    route: Route,
    *,
    seconds: float | None = None,
    seed: int = 0,
    work: Work | None = None,
) -> History:
    """Find a small part of a history that violates the level.

    The part may show a simpler violation than the one reported by the verdict.

    Args:
        work: the work limit for the search; ``None`` for the usual one, about ten seconds.

    Returns:
        A part from which no transaction and no operation can be removed without losing the
        violation or a possible source of a read. A predicate read counts as one operation, and
        covers only the keys in the part. If a read has too many possible sources, those that the
        refutation excludes, each with a separate cycle, are removed too. If the search reached a
        limit, the part may be larger. Transactions keep their names and positions from the whole
        history.
    """
    work = work or Work(_ALL_WORK)
    if not len(verdict.history.columns.statement_start):
        return _Minimiser(verdict, route, seconds, seed, work).found()
    with work.part(1 / 2) as share:
        part = _Minimiser(verdict, route, seconds, seed, share, stated=True).of_what_is_shown()
    if part is not None and (stated := _as_file_states(part, route, seed, work)) is not None:
        return stated
    restricted = _restrict(verdict, route, seed, work)
    if restricted is not None:
        with work.part(1 / 2) as share:
            part = _Minimiser(restricted, route, seconds, seed, share, stated=True).found()
        if (stated := _as_file_states(part, route, seed, work)) is not None:
            return stated
    return _Minimiser(verdict, route, seconds, seed, work).found()


def anomaly_of(part: History, route: Route, *, seed: int = 0, work: Work | None = None) -> str:
    """Return the name of a part's anomaly, which may differ from that of the whole history.

    If the part cannot be shown to be invalid within the work limit, return an empty string.
    """
    options = Options(certify=False, seed=seed, threads=1)
    with _for_one_part(work or Work(_WORK), part.columns.operations()) as allowed:
        found = decide(part, route, Deadline(), options, work=allowed)
    return found.violation.anomaly if isinstance(found, Invalid) else ""


@contextmanager
def _for_one_part(work: Work, operations: int) -> Iterator[Work]:
    """Yield the work limit for judging a part, and subtract all that judging it costs."""
    work.spend(_PER_PART + _PER_OPERATION * operations)
    allowed = Work(min(_WORK, work.left))
    before = allowed.left
    try:
        yield allowed
    finally:
        work.spend(before - allowed.left)


def _restrict(verdict: Invalid, route: Route, seed: int, work: Work) -> Invalid | None:
    """Return the verdict on the history restricted to the rows that its refutation is about.

    The history is restricted to some keys, and to the reads by some transactions. A predicate read,
    restricted to these keys, is a predicate read of the smaller history.

    SOUND BECAUSE a violation of the restriction is also one of the whole history. Take any model of
    the whole history. Its sources and version orders for the remaining reads and keys are a model
    of the restriction, because the restriction has all writes of these keys and thus all
    candidates. Each edge of the restriction is an edge of the whole history, so each cycle of these
    edges is also a cycle of the whole history. The restriction is not assumed to be invalid: it is
    judged again.
    """
    history, proof = verdict.history, verdict.refutation
    if isinstance(proof, Exhaustion):
        return None
    sources = Sources(build_problem(history))
    columns = history.columns
    steps = list(proof.steps)
    reads = reads_of(steps) | {step.op for step in steps if isinstance(step, AnomalyStep)}
    keys = keys_of(steps) | {int(columns.op_key[op]) for op in reads}
    readers = np.zeros(columns.transactions(), np.bool_)
    readers[sorted(sources.closed(steps))] = True
    of_txn = np.repeat(readers, np.diff(columns.op_start))
    writes = np.isin(columns.op_kind, (APPEND, WRITE))
    ops = np.flatnonzero(np.isin(columns.op_key, sorted(keys)) & (writes | of_txn))
    if len(ops) > _RESTRICTED:
        return None
    part = part_of(history, ops.tolist()).history
    return _judged(_limited_to_keys(part), route, seed, work)


def _limited_to_keys(part: History) -> History:
    """Return a part with each predicate read restricted to the keys of the part."""
    lazy = part.about_the_file()
    return replace(part, columns=part.columns.of_its_keys(), set_reads=(), _lazy=lazy)


def _as_file_states(part: History, route: Route, seed: int, work: Work) -> History | None:
    """Return a part with whole predicate reads, as they would be written in a file.

    A file does not list the set-reads of a predicate read, because they follow from its predicate
    and the rows in the file. All set-reads that follow must be in the part, because only these are
    known to have all their candidates in it.
    """
    stated = _limited_to_keys(part)
    if not _is_stated(part):
        return None
    return stated if _judged(stated, route, seed, work) is not None else None


def _is_stated(part: History) -> bool:
    """Return whether a file with the rows of a part implies only set-reads that the part has."""
    return _set_reads(_limited_to_keys(part)) <= _set_reads(part)


def _set_reads(history: History) -> set[tuple[int, int, str]]:
    """Return the set-reads of missed rows, as transaction, position of the read, and key."""
    columns = history.columns
    return {
        (history.transaction_of(op), int(columns.op_position[op]), history.key(key))
        for op, key in enumerate(columns.op_key.tolist())
        if columns.op_kind[op] == READ_NONE_OF and history.of_predicate(op)
    }


def _judged(history: History, route: Route, seed: int, work: Work) -> Invalid | None:
    """Return the verdict on a history; ``None`` unless it is invalid within the work limit."""
    options = Options(certify=True, seed=seed, threads=1)
    try:
        with _for_one_part(work, history.columns.operations()) as allowed:
            found = decide(history, route, Deadline(), options, work=allowed)
    except IsolangError:
        return None
    return found if isinstance(found, Invalid) and found.certified else None


class _Minimiser:
    """Searches for a small part that violates the level.

    With ``stated``, the result must be a part that a file can express: its predicate reads must not
    miss more rows than in the whole history. A part that lacks a write may break this condition,
    because a predicate read after the write would then see the version before it.
    """

    def __init__(
        self,
        verdict: Invalid,
        route: Route,
        seconds: float | None,
        seed: int,
        work: Work,
        *,
        stated: bool = False,
    ) -> None:
        self._stated = stated
        self._verdict = verdict
        self._route = route
        self._end = None if seconds is None else time.perf_counter() + seconds
        self._options = Options(certify=False, seed=seed, threads=1)
        problem = build_problem(verdict.history)
        self._sources = Sources(problem)
        self._wrong = {_anomaly_key(one, one.op) for one in problem.anomalies()}
        self._initial_writes = _initial_writes(verdict.history)
        self._initial_reads = _initial_reads(verdict.history)
        self._work = work
        proof = verdict.refutation
        self._impossible = (
            {} if isinstance(proof, Exhaustion) else impossible_versions(problem, proof.steps)
        )

    def found(self) -> History:
        """Return the smallest part found by the search."""
        beginnings = (part for part in self._beginnings() if self._violates(part))
        return self._smallest(next(beginnings, None) or whole_part(self._verdict.history))

    def of_what_is_shown(self) -> History | None:
        """Return the smallest part found among the operations shown by the explanation.

        The search starts with the keys of the reported operations, their predicate reads and all
        possible sources. If these do not violate the level by themselves, return ``None``.
        """
        history, shown = self._verdict.history, self._verdict.violation.transactions
        columns, t0 = history.columns, self._verdict.history.t0
        ops = {op.number for txn in shown for op in txn.operations}
        keys = {int(columns.op_key[op]) for op in ops}
        for s in {history.statement_of(op) for op in ops} - {-1}:
            of_statement = range(int(columns.statement_start[s]), int(columns.statement_end[s]))
            ops.update(op for op in of_statement if int(columns.op_key[op]) in keys)
        txns = {txn.number for txn in shown}
        for op in ops:
            possible = set(self._sources.candidates(op)) - self._impossible.get(op, set())
            txns |= possible - {t0}
        for op in operations_of(history, txns):
            if int(columns.op_kind[op]) in (APPEND, WRITE) and int(columns.op_key[op]) in keys:
                ops.add(op)
        part = part_of(history, ops, txns)
        return self._smallest(part) if self._violates(part) else None

    def _smallest(self, part: HistoryPart) -> History:
        part = shrink(part, self._violates, by_transaction=True, enough=self._enough)
        return shrink(part, self._violates, by_transaction=False, enough=self._enough).history

    def _beginnings(self) -> Iterator[HistoryPart]:
        """Yield the parts that the search may start with, smallest first.

        The parts consist of the transactions mentioned by the proof, and of possible sources.
        """
        history, proof = self._verdict.history, self._verdict.refutation
        if isinstance(proof, Exhaustion):
            txns = set(proof.transactions)
        else:
            if not len(history.columns.statement_start):  # else it would split predicate reads
                yield self._sources.relevant_part(proof.steps)
            txns = self._sources.closed(proof.steps)
        txns |= self._showing_initial(txns)
        yield part_of(history, operations_of(history, txns), txns)
        txns = self._with_writers(txns)
        yield part_of(history, operations_of(history, txns), txns)

    def _showing_initial(self, txns: set[int]) -> set[int]:
        """Return transactions that show the initial value of a key whose other values are read."""
        history, ops = self._verdict.history, set(operations_of(self._verdict.history, txns))
        return {
            history.transaction_of(min(same_value))
            for same_value, other in self._initial_reads
            if not other.isdisjoint(ops) and same_value.isdisjoint(ops)
        }

    def _with_writers(self, txns: set[int]) -> set[int]:
        """Return the transactions and, transitively, all possible sources of their reads."""
        t0 = self._verdict.history.t0
        found, new = set(txns), set(txns)
        while new:
            ops = operations_of(self._verdict.history, new)
            new = {txn for op in ops for txn in self._sources.candidates(op) if txn < t0} - found
            found |= new
        return found

    def _enough(self) -> bool:
        late = self._end is not None and time.perf_counter() > self._end
        return late or not self._work.left

    def _violates(self, part: HistoryPart) -> bool:
        with _for_one_part(self._work, len(part.ops)) as allowed:
            return self._violates_within(part, allowed)

    def _violates_within(self, part: HistoryPart, work: Work) -> bool:
        kept = self._sources.keeps_candidates(part, impossible=self._impossible)
        if not kept or self._makes_wrong(part) or self._cuts_initial(part):
            return False
        remaining = None if self._end is None else max(0.1, self._end - time.perf_counter())
        try:
            found = decide(
                part.history,
                self._route,
                Deadline(remaining),
                self._options,
                simplest=False,
                work=work,
            )
        except IsolangError:
            return False  # the part cannot be judged; for example, it lacks times
        return isinstance(found, Invalid) and not (self._stated and not _is_stated(part.history))

    def _makes_wrong(self, part: HistoryPart) -> bool:
        """Return whether a part shows an intrinsic anomaly that the whole history does not."""
        found = build_problem(part.history).anomalies()
        return any(_anomaly_key(one, part.ops[one.op]) not in self._wrong for one in found)

    def _cuts_initial(self, part: HistoryPart) -> bool:
        """Return whether a part has some but not all of the operations that show an initial value.

        The last initial write of a key is its initial value, even if a part lacks earlier initial
        writes. If reads show an initial value that replaces nil, a read of another value is wrong
        only together with one of these reads.
        """
        ops = set(part.ops)
        return any(0 < len(of_key & ops) < len(of_key) for of_key in self._initial_writes) or any(
            not other.isdisjoint(ops) and same_value.isdisjoint(ops)
            for same_value, other in self._initial_reads
        )


def _initial_writes(history: History) -> list[set[int]]:
    """Return the initial transaction's writes for each key that it writes several times."""
    columns = history.columns
    found: defaultdict[int, set[int]] = defaultdict(set)
    for txn in (columns.txn_status == INITIAL).nonzero()[0].tolist():
        for op in history.operations_of(txn):
            if int(columns.op_kind[op]) in (APPEND, WRITE):
                found[int(columns.op_key[op])].add(op)
    return [ops for ops in found.values() if len(ops) > 1]


def _initial_reads(history: History) -> list[tuple[set[int], set[int]]]:
    """Return, by key, the reads of a non-nil initial value, and the reads of other values.

    Keys that do not have both kinds of reads are omitted.
    """
    columns = history.columns
    key, value, kind = columns.op_key, columns.op_value, columns.op_kind
    reads = (kind == READ) & initial_alone(columns)[key] & (value != UNKNOWN_VALUE)
    same = value == columns.initial_value[key]
    other = reads & ~same & (columns.op_source == SOURCE_INITIAL)
    committed = np.repeat(columns.txn_status == COMMITTED, np.diff(columns.op_start))
    both = (
        (reads & same & committed & (key == one), other & (key == one))
        for one in np.unique(key[other]).tolist()
    )
    return [
        (set(np.flatnonzero(same_value).tolist()), set(np.flatnonzero(others).tolist()))
        for same_value, others in both
        if same_value.any()
    ]


def _anomaly_key(anomaly: Anomaly, op: int) -> tuple[AnomalyKind, int, bool]:
    """Return a key that is equal for similar anomalies.

    The key is the kind, the operation, and whether another operation shows the anomaly. Reading a
    version that another transaction wrote with another value is not similar to reading a version
    that no transaction wrote, although the first becomes the second in a part without that write.
    """
    return anomaly.kind, op, anomaly.other_op is not None
