"""Checks the parts of a chain by the definition of the level, in plain Python.

This checker and the native checker (``native/watch/``) share only the code that reads the log. This
checker stores each list in full, whereas the native checker stores a hash of it. If a part has
predicate reads, the history to check begins with the rows of all keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.proofs import Witness, check_proof
from isolang.history import columns as c
from isolang.history.clock_error import with_clock_error
from isolang.history.history import History
from isolang.history.transaction import Op, Transaction
from isolang.history.values import UNKNOWN, decode, encode
from isolang.watch.chain import InitialValue
from isolang.watch.stream import Rows, transactions

if TYPE_CHECKING:
    from isolang._native import Columns
    from isolang.language.classify.event_graph import Plan

_Key = tuple[int, Any]
_WRITES: Final = frozenset({"w", "insert", "append", "delete"})


class ByDefinition:
    """Checks the parts of a chain in order, and keeps the values they leave.

    Args:
        clock_error: the largest difference between two sessions' clocks, in nanoseconds.
    """

    def __init__(self, plan: Plan, clock_error: int) -> None:
        self._plan, self._clock_error = plan, clock_error
        self._values: dict[_Key, Any] = {}
        self._lists: dict[_Key, list[Any]] = {}

    def begin(self, rows: Rows) -> None:
        """Apply the writes of the initial transaction if the rows contain that transaction."""
        for one in _transactions(rows):
            if one.status == "initial":
                for op in one.ops:
                    if op[0] in _WRITES:
                        self._write(op)

    def add_initial_values(self, entries: Sequence[InitialValue]) -> None:
        """Set the initial values of the keys in these entries."""
        for key, is_list, atoms in entries:
            values = [decode(*atom) for atom in atoms]
            if is_list:
                self._lists[key] = values
            else:
                self._values[key] = values[0]

    def check(self, members: Rows, opened: Columns, witness: Witness, where: str) -> None:
        """Check the next part of the chain, and apply its writes.

        Args:
            members: the transactions of the part, as recorded in the log.
            opened: the same transactions, as the columns whose operation numbers the witness uses.
            witness: the witness of the part in the chain.
            where: the name of the part, for messages.

        Raises:
            CertificateRejected: the part does not satisfy the level.
        """
        records = _transactions(members)
        history = self._history(records)
        try:
            check_proof(history, self._plan.spec, _renumbered(witness, opened, history))
        except (CertificateRejected, NotCertifiedError) as error:
            raise CertificateRejected(f"by definition: {error}") from None
        atoms = [opened.key(k) for k in range(opened.n_keys())]
        starts, order = witness.order_start.tolist(), witness.order_txn.tolist()
        for atom, (first, end) in zip(atoms, pairwise(starts), strict=True):
            for writer in order[first:end]:
                one = records[writer]
                for i, op in enumerate(one.ops):
                    written = op[0] in _WRITES and i not in one.failed
                    if written and encode(op[1], where) == atom:
                        self._write(op)

    def _write(self, op: Op) -> None:
        key = encode(op[1], "a key")
        if op[0] == "append":
            self._lists.setdefault(key, []).append(op[2])
        elif op[0] == "delete" or op[2] is None:
            self._values.pop(key, None)
        elif op[0] == "w":
            self._values[key] = op[2]

    def _history(self, records: Sequence[Transaction]) -> History:
        """Return the part as a history whose initial values are those left by earlier parts."""
        ops = [op for one in records for op in one.ops]
        scans = any(op[0] == "scan" for op in ops)
        lists = {
            encode(op[1], "a key")
            for op in ops
            if op[0] == "append" or (op[0] == "r" and isinstance(op[2], list))
        } | set(self._lists)
        made = [
            replace(
                one,
                ops=[self._without_earlier_elements(op, lists) for op in one.ops],
                times=None,
                commit=None,
                group=None,
            )
            for one in records
        ]
        history = History.from_transactions(made, name="a part")
        columns = history.columns
        touched = {columns.key(k) for k in range(columns.n_keys())}
        for atom, value in self._values.items():
            if scans or atom in touched:
                row = columns.intern_value(*encode(value, "a value"))
                columns.set_initial_value(columns.intern_key(*atom), row, alone=True)
        if scans:
            columns.lower_predicates()
        if columns.implicit:
            history = replace(history, columns=columns.written_out(), _lazy={})
        return with_clock_error(history, self._clock_error) if self._clock_error else history

    def _without_earlier_elements(self, op: Op, lists: set[_Key]) -> Op:
        """Return an operation without the list elements appended by earlier parts."""
        kind, key = op[0], op[1]
        if kind in {"delete", "append", "scan"} or op[2] is UNKNOWN:
            return op
        atom = encode(key, "a key")
        if atom not in lists:
            return op
        if kind != "r":
            raise CertificateRejected(f"{kind} of a list")
        read, before = op[2] or [], self._lists.get(atom, [])
        if [encode(v, "") for v in read[: len(before)]] != [encode(v, "") for v in before]:
            raise CertificateRejected(
                f"a read of {key!r} does not begin with the elements that earlier parts appended"
            )
        return ("r", key, list(read[len(before) :]))


def _transactions(rows: Rows) -> list[Transaction]:
    return transactions(
        History(
            columns=rows.columns, name="a part", format="memory", session_names=tuple(rows.names)
        )
    )


def _renumbered(witness: Witness, opened: Columns, history: History) -> Witness:
    """Return the witness with operations and keys renumbered from ``opened`` to ``history``."""
    columns = history.columns
    names, stated = _operations(opened), witness.source.tolist()
    if len(names) != len(stated):
        raise CertificateRejected(
            f"the witness is of other operations (got {len(stated)}, expected {len(names)})"
        )
    sources = dict(zip(names, stated, strict=True))
    operations = _operations(columns)
    if len(operations) != len(sources) or any(op not in sources for op in operations):
        raise CertificateRejected("the predicate reads missed other rows")
    at = {opened.key(k): k for k in range(opened.n_keys())}
    starts, order = witness.order_start.tolist(), witness.order_txn.tolist()
    begin, found = [0], []
    for key in range(columns.n_keys()):
        k = at.get(columns.key(key))
        if k is not None:
            found += order[starts[k] : starts[k + 1]]
        begin.append(len(found))
    return Witness.of([sources[op] for op in operations], begin, found)


def _operations(columns: Columns) -> list[tuple[Any, ...]]:
    """Return a name for each operation that is the same in every numbering of the operations.

    If a predicate read missed a row, the operation is named by the predicate read and the key. All
    other operations are numbered in order.
    """
    missed = {
        op: s
        for s, (start, end, predicate, known) in enumerate(
            zip(
                columns.statement_start.tolist(),
                columns.statement_end.tolist(),
                columns.statement_predicate.tolist(),
                columns.statement_known.tolist(),
                strict=True,
            )
        )
        for op in range(start, end)
        if predicate >= 0 and known == 1 and columns.op_kind[op] == c.READ_NONE_OF
    }
    found: list[tuple[Any, ...]] = []
    count = 0
    for op, key in enumerate(columns.op_key.tolist()):
        if op in missed:
            found.append((missed[op], columns.key(key)))
        else:
            found.append((count,))
            count += 1
    return found
