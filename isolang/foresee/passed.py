"""Reads a run from a certified witness: the source of each read, and the version orders."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from isolang.certify.proofs import Witness
from isolang.errors import HistoryError, UnsupportedError
from isolang.foresee.row_facts import PRESENT, RowFacts, row_facts
from isolang.foresee.run import (
    INITIAL,
    READS,
    UPDATES,
    Access,
    Arrangement,
    ExecutedProgram,
    PassedRun,
    ProgramScan,
)
from isolang.history import columns as c
from isolang.history.objects import operation_statements
from isolang.history.values import Keyword

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.history.statements import SentStatement
    from isolang.verdict import Valid


def run_of(verdict: Valid, *, serial: bool, predicates: bool = True) -> PassedRun:
    """Return the run with the sources and version orders stated by a witness.

    Args:
        serial: whether the level has a serial order. If so, the transactions are numbered in this
            order; otherwise, in an order that follows ``so``, ``wr`` and ``ww``.
        predicates: whether the run may have predicate reads. If not, it lacks all transactions with
            predicate reads, and those that depend on them.

    Raises:
        UnsupportedError: the witness does not consist of sources and version orders, or no order of
            the transactions follows ``so``, ``wr`` and ``ww``.
        HistoryError: the history has no committed transaction.
    """
    history, witness = verdict.history, verdict.witness
    where = history.name
    if not isinstance(witness, Witness):
        raise UnsupportedError(
            f"{where}: {verdict.spec.name} leaves more open than sources and "
            "version orders, so a witness does not determine the sources of "
            "reads; hint: predict against ser, si or another level over so, "
            "wr, ww and rw"
        )
    included = _included(history, witness)
    if not included:
        raise HistoryError(f"{where}: no transaction committed (expected a run with transactions)")
    facts = None
    if predicates:
        facts, unclear = _evaluated(history, included)
    else:
        unclear = _with_predicates(history) | _with_possible_facts(history)
    reader = _ProgramReader(history, witness, facts)
    programs = {txn: reader.program(txn) for txn in included}
    starts, ordered = witness.order_start.tolist(), witness.order_txn.tolist()
    versions = {key: ordered[starts[key] : starts[key + 1]] for key in range(len(starts) - 1)}
    if facts is not None and facts.keyed:
        _mark_inserts(programs, versions, facts)
    place = {(key, txn): at for key, txns in versions.items() for at, txn in enumerate(txns)}
    steps = {txn: program.steps for txn, program in programs.items()}
    numbers = _dependency_order(history, included, steps, versions, place, serial=serial)
    sessions = history.columns.txn_session.tolist()
    new: dict[int | None, int] = {txn: number for number, txn in enumerate(numbers)}
    new[history.t0] = INITIAL
    order = Arrangement(
        [programs[txn].with_sources(lambda step: new[step.source]) for txn in numbers],
        [sessions[txn] for txn in numbers],
        facts,
    )
    run = PassedRun(history, order, tuple(numbers), {})
    gone = 0
    for i, txn in enumerate(numbers):
        if txn in unclear:
            gone |= order.descendants[i]
    why = (
        "read by a predicate that says nothing about other rows"
        if predicates
        else "read by a predicate, or have facts that only may have decided an answer"
        if history.possible_facts
        else "read by a predicate"
    )
    return _without_transactions(run, gone, why) if gone else run


def _evaluated(history: History, included: Sequence[int]) -> tuple[RowFacts, frozenset[int]]:
    """Return the facts about rows, and the transactions whose predicate reads remain unclear.

    A read is unclear if no predicate says which versions match: if the recorder evaluated it, or a
    row that it concerns cannot be compared.
    """
    columns, members = history.columns, set(included)
    predicate_of = columns.statement_predicate.tolist()
    txn_of, known = columns.statement_txn.tolist(), columns.statement_known.tolist()
    unclear, used = set(), set()
    for s, txn in enumerate(txn_of):
        if txn not in members or not known[s]:
            continue
        if predicate_of[s] < 0 or known[s] == c.PARTLY_KNOWN:
            unclear.add(txn)
        else:
            used.add(predicate_of[s])
    facts, failed = row_facts(history, included, used)
    unclear |= {txn for s, txn in enumerate(txn_of) if predicate_of[s] in failed}
    for op in _set_reads(history):
        if history.statement_of(op) < 0:
            unclear.add(history.transaction_of(op))
    return facts, frozenset(unclear)


class _ProgramReader:
    """Reads what each transaction executed."""

    def __init__(self, history: History, witness: Witness, facts: RowFacts | None) -> None:
        columns = history.columns
        self._history, self._facts = history, facts
        self._sources: list[int] = witness.source.tolist()
        self._kinds, self._keys = columns.op_kind.tolist(), columns.op_key.tolist()
        self._values, self._fine = columns.op_value.tolist(), columns.op_ok.tolist()
        written = witness.order_start[1:] > witness.order_start[:-1]
        self._written: list[bool] = written.tolist()
        self._scans: dict[int, list[tuple[int, int, int]]] = {}
        if facts is not None:
            begins, ends = columns.statement_start.tolist(), columns.statement_end.tolist()
            for s, txn in enumerate(columns.statement_txn.tolist()):
                self._scans.setdefault(txn, []).append((begins[s], ends[s], s))

    def program(self, txn: int) -> ExecutedProgram:
        """Return the operations of a transaction; sources are transactions of the history."""
        steps: list[Access] = []
        scans: list[ProgramScan] = []
        written: set[int] = set()
        ops = self._history.operations_of(txn)
        sent: Sequence[Any] = operation_statements(self._history, txn) or [None] * len(ops)
        at = ops.start
        for begin, end, s in (*self._scans.get(txn, ()), (ops.stop, ops.stop, -1)):
            steps += self._plain(range(at, begin), sent[at - ops.start :], written)
            if s >= 0 and self._history.columns.statement_known[s]:
                first = len(steps)
                steps += self._rows(s, range(begin, end), sent[begin - ops.start :], written)
                scans.append(
                    ProgramScan(s, first, len(steps), begin < end and self._is_possible(begin))
                )
            at = end
        return ExecutedProgram.of(steps, scans)

    def _plain(self, ops: range, sent: Sequence[Any], written: set[int]) -> Iterator[Access]:
        for op, statement in zip(ops, sent, strict=False):
            kind, key = self._kinds[op], self._keys[op]
            if not self._fine[op] or kind not in (*READS, *UPDATES):
                continue
            possible = self._is_possible(op)
            if possible and not self._is_row(key):  # it orders transactions, and is about no row
                continue
            external = kind == c.READ_LIST or (kind == c.READ and key not in written)
            known = external and self._values[op] != c.UNKNOWN_VALUE and self._sources[op] >= 0
            source = self._sources[op] if known else None
            test = None
            if kind == c.READ and self._may_find_no_row(key, statement):
                test = PRESENT
            value = self._values[op] if kind in UPDATES else c.NO_ATOM
            yield Access(
                op,
                kind,
                key,
                source,
                statement,
                test if known else None,
                value=value,
                possible=possible,
            )
            if kind in UPDATES:
                written.add(key)

    def _may_find_no_row(self, key: int, statement: SentStatement | None) -> bool:
        """Return whether a read of a row may find no row, and this makes a difference.

        A row that is not found is not locked, and may have been deleted.
        """
        facts = self._facts
        if facts is None or (PRESENT, key) not in facts.shown:
            return False
        return key in facts.deleted or (statement is not None and statement.guards)

    def _rows(self, s: int, ops: range, sent: Sequence[Any], written: set[int]) -> Iterator[Access]:
        """Yield the rows of a predicate read that it locks, or that another transaction wrote."""
        predicate = int(self._history.columns.statement_predicate[s])
        for op, statement in zip(ops, sent, strict=False):
            key = self._keys[op]
            locked = statement is not None and statement.guards
            if self._fine[op] and key not in written and (self._written[key] or locked):
                source = self._sources[op]
                yield Access(
                    op,
                    c.READ,
                    key,
                    source,
                    statement,
                    test=predicate,
                    scan=s,
                    possible=self._is_possible(op),
                )

    def _is_row(self, key: int) -> bool:
        name = self._history.key_object(key)
        return not (isinstance(name, tuple) and name and isinstance(name[0], Keyword))

    def _is_possible(self, op: int) -> bool:
        return self._history.possible_facts > 0 and self._history.is_possible_fact(op)


def _mark_inserts(
    programs: dict[int, ExecutedProgram], versions: Mapping[int, Sequence[int]], facts: RowFacts
) -> None:
    """Mark the first write of each row that did not exist, in tables with a known primary key."""
    inserted: dict[int, set[int]] = {}
    for key in facts.keyed:
        present = facts.shown[PRESENT, key]
        before = facts.initial.get(key, c.NO_ATOM)
        for txn in versions[key]:
            if before not in present:
                inserted.setdefault(txn, set()).add(key)
            before = programs[txn].values[key]
    for txn, keys in inserted.items():
        steps = []
        for step in programs[txn].steps:
            first = step.kind in UPDATES and step.key in keys
            inserts = first and step.value in facts.shown[PRESENT, step.key]
            steps.append(replace(step, inserts=True) if inserts else step)
            if first:
                keys.discard(step.key)
        programs[txn] = replace(programs[txn], steps=tuple(steps))


def _without_transactions(run: PassedRun, gone: int, why: str) -> PassedRun:
    """Return the run without the transactions in ``gone``; no others may depend on them."""
    kept = [i for i in range(len(run.order)) if not gone >> i & 1]
    new = {i: at for at, i in enumerate(kept)} | {INITIAL: INITIAL}

    def source_of(step: Access) -> int:
        assert step.source is not None
        if step.source in new:
            return new[step.source]
        # A read that does not show a row may have seen a version that is gone. Then an older one,
        # which is not shown either, takes its place.
        older = run.order.writers[step.key] & (1 << step.source) - 1 & ~gone
        return new[older.bit_length() - 1]

    order = Arrangement(
        [run.order.programs[i].with_sources(source_of) for i in kept],
        [run.order.sessions[i] for i in kept],
        run.order.facts,
    )
    numbers = tuple(run.numbers[i] for i in kept)
    omitted = {f"{why}, or depend on one that did": gone.bit_count()}
    return PassedRun(run.history, order, numbers, omitted)


def _included(history: History, witness: Witness) -> list[int]:
    """Return the committed transactions and the indeterminate transactions in the witness."""
    import numpy as np

    status = history.columns.txn_status
    needed = np.zeros(len(status) + 1, bool)
    needed[witness.order_txn] = True
    needed[witness.source[witness.source >= 0]] = True
    maybe = (status == c.INDETERMINATE) & needed[:-1]
    transactions: list[int] = np.flatnonzero((status == c.COMMITTED) | maybe).tolist()
    return transactions


def _with_predicates(history: History) -> frozenset[int]:
    """Return the transactions with predicate reads or set-reads."""
    columns = history.columns
    readers: set[int] = set(columns.statement_txn.tolist()) if len(columns.statement_txn) else set()
    return frozenset(readers | {history.transaction_of(op) for op in _set_reads(history)})


def _with_possible_facts(history: History) -> frozenset[int]:
    """Return the transactions with operations that only may have decided an answer."""
    if not history.possible_facts:
        return frozenset()
    ops = range(history.columns.operations())
    return frozenset(history.transaction_of(op) for op in ops if history.is_possible_fact(op))


def _set_reads(history: History) -> list[int]:
    import numpy as np

    operations: list[int] = np.flatnonzero(np.isin(history.columns.op_kind, c.SET_READS)).tolist()
    return operations


def _dependency_order(
    history: History,
    included: Sequence[int],
    steps: Mapping[int, Sequence[Access]],
    versions: Mapping[int, Sequence[int]],
    place: Mapping[tuple[int, int], int],
    *,
    serial: bool,
) -> list[int]:
    """Sort transactions in an order that follows ``so``, ``wr`` and ``ww``.

    If ``serial`` is true, the order also follows ``rw``. Where the order leaves a choice,
    transactions that ended earlier come first.
    """
    columns, t0 = history.columns, history.t0
    follows: dict[int, set[int]] = {txn: set() for txn in included}
    last: dict[int, int] = {}
    for txn in included:
        session = int(columns.txn_session[txn])
        if session in last:
            follows[last[session]].add(txn)
        last[session] = txn
    for txns in versions.values():
        for a, b in pairwise(txns):
            follows[a].add(b)
    for txn in included:
        for step in steps[txn]:
            if step.source is None:
                continue
            if step.source not in (t0, txn):
                follows[step.source].add(txn)
            if serial:
                at = -1 if step.source == t0 else place[step.key, step.source]
                later = [x for x in versions[step.key][at + 1 : at + 3] if x != txn]
                if later:
                    follows[txn].add(later[0])
    degree = dict.fromkeys(included, 0)
    for txn in included:
        for other in follows[txn]:
            degree[other] += 1
    ends = columns.txn_end.tolist()
    todo = [(ends[txn], txn) for txn in included if not degree[txn]]
    heapq.heapify(todo)
    ordered = []
    while todo:
        _, txn = heapq.heappop(todo)
        ordered.append(txn)
        for other in follows[txn]:
            degree[other] -= 1
            if not degree[other]:
                heapq.heappush(todo, (ends[other], other))
    if len(ordered) < len(included):
        raise UnsupportedError(
            f"{history.name}: predictions need a witness that orders all "
            "transactions, but in this one so, wr and ww have a cycle; hint: "
            "predict against a level that forbids such cycles, such as ser"
        )
    return ordered
