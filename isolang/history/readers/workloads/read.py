"""Detects the kind of workload in a file, and reads the file as a history."""

from __future__ import annotations

from collections import Counter
from typing import Final

from msgspec import Struct

from isolang.caveat import Caveat
from isolang.errors import UnsupportedError
from isolang.history.readers.reading import Files, Reading, counted
from isolang.history.readers.workloads.bank import KEEP_THE_TOTAL, Totals
from isolang.history.readers.workloads.counter import Sums
from isolang.history.readers.workloads.inserts import InsertedRows, are_inserts
from isolang.history.readers.workloads.operations import Operations, Sink, operations
from isolang.history.readers.workloads.sets import Members

_KNOWN: Final = {
    "bank": {"transfer", "read"},
    "added": {"add", "read"},
    "written": {"write", "read"},
}


class _Translated(Struct, frozen=True, kw_only=True):
    """Sentences for ``Reading`` about a translated workload, and the levels that can judge it."""

    what: str
    initial: str
    notes: list[str]
    levels: tuple[str, ...] = ()


def read(files: Files, *, timeout: float, model: str = "") -> Reading:
    """Read the history in one file.

    Args:
        files: the name and the contents of the file.
        timeout: the limit in seconds; 0 for no limit.
        model: the kind of workload: ``bank``, ``counter`` or ``set``. If it is empty, the kind is
            detected from the operations.

    Raises:
        HistoryError: the file is malformed; the message names file and line.
        UnsupportedError: the workload is unknown, or its values do not determine a history.
        TimeoutError: reading took longer than ``timeout`` seconds.
    """
    ((name, data),) = files
    ops = operations(data, name, timeout=timeout)
    sink = Sink(name)
    kind, skipped = _kind(ops, model)
    found = _translate(kind, ops, sink, model)
    sink.columns.has_time = ops.timed
    sink.columns.validate()
    order = "index" if ops.by_index else "lines"
    real_time = "none: the file has completions only, no :invoke"
    if ops.timed:
        of = ":index" if order == "index" else "lines"
        real_time = f"the order of {of}, from :invoke to :ok or :fail"
    return Reading(
        columns=sink.columns,
        position_unit="line",
        initial=found.initial,
        session="one :process"
        if ops.processes
        else "each operation is its own: there is no :process",
        real_time=real_time,
        ignored=(*ops.ignored, *skipped),
        notes=(found.what, *ops.notes, *found.notes),
        session_names=ops.session_names,
        levels=found.levels,
    )


def _kind(ops: Operations, model: str) -> tuple[str, list[str]]:
    """Detect the kind of workload, and remove the operations that do not belong to this kind.

    Returns:
        The kind, and remarks about removed operations.
    """
    functions = Counter(d.function for d in ops.done)
    kind = next((k for k, needs in _KNOWN.items() if (needs - {"read"}) & functions.keys()), None)
    if model and not (model == "set" and kind == "written"):
        requested = "bank" if model == "bank" else "added"
        kind = requested if _KNOWN[requested] & functions.keys() else None  # reads alone suffice
    if kind is None:
        names = ", ".join(f":{name}" for name in list(functions)[:8])
        msg = (
            f"{ops.name}: operations of an unknown workload (got :f {names}, expected "
            ":transfer and :read, :add and :read, or :write and :read)"
        )
        raise UnsupportedError(msg)
    others = {f: n for f, n in functions.items() if f not in _KNOWN[kind]}
    if not others:
        return kind, []
    ops.done[:] = [d for d in ops.done if d.function in _KNOWN[kind]]  # type: ignore[index]
    named = ", ".join(f":{name}" for name in list(others)[:8])
    return kind, [
        Caveat(f"{counted(sum(others.values()), 'operation')} of another kind (:f {named})")
    ]


def _translate(kind: str, ops: Operations, sink: Sink, model: str) -> _Translated:
    if kind == "bank":
        totals = Totals(ops, sink)
        totals.fill()
        return _Translated(
            what="a bank: transfers, and reads of all balances",
            initial="a read of the total",
            notes=totals.notes,
            levels=KEEP_THE_TOTAL,
        )
    if not model and are_inserts(ops):
        rows = InsertedRows(ops, sink)
        rows.fill()
        return _Translated(
            what="rows inserted in order, and read from the last one on",
            initial="a read without the row",
            notes=rows.notes,
        )
    if model == "counter" or (not model and kind == "added" and _counts(ops)):
        sums = Sums(ops, sink)
        sums.fill()
        return _Translated(
            what="a counter: equal adds, and reads of their sum",
            initial="a read of 0",
            notes=sums.notes,
            levels=sums.levels,
        )
    members = Members(ops, sink, adds="add" if kind == "added" else "write")
    members.fill()
    return _Translated(
        what="a set: each element is its own key, like an inserted row",
        initial="a read without the element",
        notes=members.notes,
    )


def _counts(ops: Operations) -> bool:
    """Return whether reads returned numbers; false for collections, and if no read has a result."""
    reads = [d.value for d in ops.done if d.function == "read" and d.answered]
    adds = [d.invoked for d in ops.done if d.function == "add"]
    if all(isinstance(v, tuple) and len(v) == 2 for v in (*reads, *adds)):  # independent keys
        reads, adds = [v[1] for v in reads], [v[1] for v in adds]
        return bool(reads) and all(map(_is_count, (*reads, *adds)))
    return bool(reads) and all(map(_is_count, reads))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
