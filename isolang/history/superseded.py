"""Finds the reads that a later read under a lock supersedes, and leaves them out of a history.

Programs read a row, and then read it again under a lock, because another transaction may have
changed it in between: Rails' ``find`` and ``lock!``, or a refresh under ``FOR UPDATE``. If the row
did change, the two reads differ, and no serial order has both. Whether the program is right depends
on the value it goes on with, which no database knows: Rails' ``lock!`` reloads the object, and
SQLAlchemy's ``with_for_update()`` keeps the stale attributes of an object that is already loaded
and loses the update. Both send the same statements.

A read is *superseded* if its transaction read the row again under a lock, with another result, and
wrote nothing in between. What it wrote in between may depend on the first read. If the transaction
requested one snapshot or a serial order, no read is superseded: the database broke its promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from isolang.arrays import np
from isolang.history import columns as c
from isolang.history.objects import operation_statements

if TYPE_CHECKING:
    from isolang.history.history import History

_WRITES: Final = frozenset({c.WRITE, c.APPEND})
_WITH_SNAPSHOTS: Final = frozenset({"si", "ser"})  # levels whose reads cannot differ


class SupersededRead(Struct, frozen=True, kw_only=True):
    """A read whose transaction read the row again under a lock, with another result."""

    op: int
    again: int


def superseded_reads(history: History) -> list[SupersededRead]:
    """Return the superseded reads of committed transactions, in the order of the operations.

    The recording states the locks (``:statements``). Without it, no read is superseded.

    Raises:
        HistoryError: the recorded statements are malformed.
    """
    if not history.has_statements():
        return []
    committed = np.flatnonzero(history.columns.txn_status == c.COMMITTED)
    return [read for txn in committed.tolist() for read in _superseded_in(history, txn)]


def _superseded_in(history: History, txn: int) -> list[SupersededRead]:
    statements = operation_statements(history, txn)
    if not any(statement is not None and statement.guards for statement in statements):
        return []
    if history.level_of(txn) in _WITH_SNAPSHOTS:
        return []
    columns = history.columns
    superseded: dict[int, SupersededRead] = {}
    earlier: dict[int, list[int]] = {}  # by key, the reads since the transaction's last write
    for op, statement in zip(history.operations_of(txn), statements, strict=True):
        key, kind = int(columns.op_key[op]), int(columns.op_kind[op])
        if not columns.op_ok[op]:
            continue
        if kind in _WRITES:
            earlier.clear()
        elif (result := _result_of(history, op)) is not None:
            before = earlier.setdefault(key, [])
            if statement is not None and statement.guards:
                for other in before:
                    if _result_of(history, other) != result:
                        superseded.setdefault(other, SupersededRead(op=other, again=op))
            before.append(op)
    return [superseded[op] for op in sorted(superseded)]


def _result_of(history: History, op: int) -> tuple[object, ...] | None:
    """Return what a read says about its row; ``None`` if it names no version."""
    columns, value = history.columns, int(history.columns.op_value[op])
    kind = int(columns.op_kind[op])
    if value == c.UNKNOWN_VALUE or kind == c.READ_NONE_OF:
        return None
    values = history.list_values(value) if kind in c.LISTS else [value]
    if kind == c.READ_ONE_OF and len(values) != 1:
        return None
    return (*values, int(columns.op_version[op]) if columns.has_versions else c.NO_VERSION)


def without_superseded_reads(history: History) -> History:
    """Return the history as it is read with ``--superseded-reads ignore``.

    Superseded reads become operations that failed, which say nothing. A predicate read still says
    of all other rows what it said. ``ignored`` counts the superseded reads.

    Raises:
        HistoryError: the recorded statements are malformed.
    """
    options = {**history.options, "superseded_reads": "ignore"}
    if history.carrying is not None:
        from isolang.history.carried import with_carried_reads

        plain = without_superseded_reads(history.carrying.plain)
        everything = options.get("carry") == "all"
        return replace(with_carried_reads(plain, everything=everything), options=options)
    reads = superseded_reads(history)
    if any(history.statement_of(read.op) >= 0 for read in reads):
        # Leaving out a row of a predicate read would take its implicit set-reads with it.
        history = history.written_out()
        reads = superseded_reads(history)
    if not reads:
        return replace(history, options=options)
    columns = history.columns.without_reads(np.array([read.op for read in reads], np.int64))
    phrase = (
        f"{counted_reads(history, reads)}, each superseded by a read of the row under a lock: "
        f"{in_words(history, reads[0])}"
    )
    return replace(
        history,
        columns=columns,
        options=options,
        ignored=(*history.ignored, phrase),
        _lazy=history.about_the_file(),
    )


def counted_reads(history: History, reads: Sequence[SupersededRead]) -> str:
    """Return how many reads of how many transactions are superseded, in words."""
    transactions = len([*groupby(reads, lambda read: history.transaction_of(read.op))])
    many = f"{len(reads):,} read{'' if len(reads) == 1 else 's'}"
    return f"{many} of {transactions:,} transaction{'' if transactions == 1 else 's'}"


def in_words(history: History, read: SupersededRead) -> str:
    """Return a sentence about a superseded read and the read under a lock."""
    first, again = _place(history, read.op), _place(history, read.again)
    key = history.key(int(history.columns.op_key[read.op]))
    name = history.name_of(history.transaction_of(read.op))
    return f"{name} read {key} at {first}, and read it again under a lock at {again}"


def _place(history: History, op: int) -> str:
    """Return the ``file:line`` or the statement that executed a read, or its place in the file."""
    columns, statement = history.columns, history.statement_of(op)
    ops = [op]
    if statement >= 0:  # the remark about a predicate read belongs to the rows that it missed
        ops += range(int(columns.statement_start[statement]), int(columns.statement_end[statement]))
    callers = (history.remark(one).caller for one in ops)
    return next(filter(None, callers), "") or history.where_op(op)
