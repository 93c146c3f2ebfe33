"""Detects the kind of workload in a file and reads the file as a history."""

from __future__ import annotations

from collections import Counter
from typing import Final

from isolang.caveat import Caveat
from isolang.errors import UnsupportedError
from isolang.history.readers.jepsen import misspelt_process_notes
from isolang.history.readers.reading import Files, Reading, describe_event_times, quantity
from isolang.history.readers.workloads.bank import Totals
from isolang.history.readers.workloads.counter import Sums
from isolang.history.readers.workloads.inserts import InsertedRows, are_inserts
from isolang.history.readers.workloads.operations import (
    Operations,
    Sink,
    Translation,
    pair_operations,
)
from isolang.history.readers.workloads.sets import Members

_KNOWN: Final = {
    "bank": {"transfer", "read"},
    "added": {"add", "read"},
    "written": {"write", "read"},
}


def read(files: Files, *, timeout: float, model: str = "") -> Reading:
    """Read the history in one file.

    Args:
        timeout: the time limit in seconds; 0 for no limit.

    Raises:
        HistoryError: the file is malformed; the message names the file and line.
        UnsupportedError: the workload is unknown, or its values do not determine a history.
        TimeoutError: reading took longer than ``timeout`` seconds.
    """
    ((name, data),) = files
    ops = pair_operations(data, name, timeout=timeout)
    sink = Sink(name)
    kind, skipped = _detect_kind(ops, model)
    found = _translation(kind, ops, model)(ops, sink)
    found.fill()
    sink.columns.has_time = ops.timed
    sink.columns.validate()
    no_process = () if ops.processes else misspelt_process_notes(data)
    return Reading(
        columns=sink.columns,
        position_unit="line",
        initial=found.initial,
        session="one :process"
        if ops.processes
        else "each operation is a session of its own, because there is no :process",
        real_time=describe_event_times(timed=ops.timed, by_index=ops.by_index),
        ignored=(*ops.ignored, *skipped),
        notes=(found.what, *no_process, *ops.notes, *found.notes),
        session_names=ops.session_names,
        levels=found.levels,
    )


def _detect_kind(ops: Operations, model: str) -> tuple[str, list[str]]:
    """Detect the kind of workload and remove the operations that do not belong to it."""
    functions = Counter(d.function for d in ops.done)
    kind = next((k for k, needs in _KNOWN.items() if (needs - {"read"}) & functions.keys()), None)
    if model and not (model == "set" and kind == "written"):
        requested = "bank" if model == "bank" else "added"
        # the user named the kind, so even reads without adds are enough
        kind = requested if _KNOWN[requested] & functions.keys() else None
    if kind is None:
        names = ", ".join(f":{name}" for name in list(functions)[:8])
        msg = (
            f"{ops.name}: unknown workload (got :f {names}, expected :transfer and :read, "
            ":add and :read, or :write and :read); hint: `isocheck linearize --model` judges "
            "queues, stacks, locks and models of your own"
        )
        raise UnsupportedError(msg)
    others = {f: n for f, n in functions.items() if f not in _KNOWN[kind]}
    if not others:
        return kind, []
    ops.done[:] = [d for d in ops.done if d.function in _KNOWN[kind]]  # type: ignore[index]
    named = ", ".join(f":{name}" for name in list(others)[:8])
    return kind, [
        Caveat(f"{quantity(sum(others.values()), 'operation')} of an unknown kind (:f {named})")
    ]


def _translation(kind: str, ops: Operations, model: str) -> type[Translation]:
    if kind == "bank":
        return Totals
    if not model and are_inserts(ops):
        return InsertedRows
    is_counter = model == "counter" or (not model and kind == "added" and _reads_numbers(ops))
    return Sums if is_counter else Members


def _reads_numbers(ops: Operations) -> bool:
    """Return whether reads returned numbers; false for collections, or if no read has a result."""
    reads = [d.value for d in ops.done if d.function == "read" and d.answered]
    adds = [d.invoked for d in ops.done if d.function == "add"]
    if all(isinstance(v, tuple) and len(v) == 2 for v in (*reads, *adds)):  # independent keys
        reads, adds = [v[1] for v in reads], [v[1] for v in adds]
        return bool(reads) and all(map(_is_count, (*reads, *adds)))
    return bool(reads) and all(map(_is_count, reads))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
