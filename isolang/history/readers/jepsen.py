"""Reads Jepsen histories in EDN or JSON whose operations are transactions."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from isolang.arrays import np
from isolang.caveat import Caveat
from isolang.errors import HistoryError
from isolang.history.initial import declare_initial
from isolang.history.readers.reading import (
    Files,
    Reading,
    call_native,
    count_remarks,
    describe_event_times,
    quantity,
)
from isolang.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from isolang._native import Columns

_NAMES_SHOWN: Final = 5
_NAME: Final = pattern(rb':[\w-]+|"[\w-]+"(?=\s*:)')
_START: Final = 4096  # bytes in which the fields of the first operations are
_LIKENESS: Final = 0.85  # between 0 and 1, of a field and the field meant
_TYPE: Final = pattern(rb":type\s+:(\w+)(?=[\s,}])")
_PROCESS: Final = pattern(rb":process\s+([^\s,}]+)(?=[\s,}])")


def read(files: Files, *, timeout: float) -> Reading:
    """Read the history in one file.

    Raises:
        HistoryError: the input is malformed; the message names the file and line.
        UnsupportedError: an operation is not a transaction; the message names the file and line.
    """
    from isolang import _native

    ((name, data),) = files
    torn: list[str] = []
    try:
        columns, report = call_native(_native.read_edn, data, name, timeout=timeout)
    except HistoryError:
        whole = _without_torn_line(data)
        if not whole:
            raise
        columns, report = call_native(_native.read_edn, whole, name, timeout=timeout)
        line = whole.count(b"\n") + 1
        what = f"the log is torn after line {line - 1}: line {line} is incomplete and is ignored"
        torn.append(Caveat(what))
    return _reading(columns, report, name, data[:_START], torn)


def read_in_pieces(
    file: int, name: str, take: Callable[[memoryview], object], *, timeout: float
) -> Reading | None:
    """Read a history in EDN from an open file without holding its text.

    Args:
        take: a function called with each piece of the file, in their order.

    Returns:
        The reading, or ``None`` if the text has to be read as a whole: to describe an error, or
        because it is a recording, whose text others read, too.

    Raises:
        HistoryError: the initial state contradicts the transactions.
    """
    from isolang import _native

    start: list[bytes] = []

    def see(piece: memoryview) -> None:
        if not start:
            start.append(bytes(piece[:_START]))
        take(piece)

    shown_name = name.encode("utf-8", "backslashreplace").decode()
    size = os.fstat(file).st_size
    found = _native.read_edn_in_pieces(file, size, shown_name, see, timeout=timeout)
    return None if found is None else _reading(*found, name, start[0] if start else b"", [])


def _reading(
    columns: Columns, report: Mapping[str, Any], name: str, start: bytes, notes: Sequence[str]
) -> Reading:
    initial = "a read of nil or of the empty list"
    if "initial" in report:
        declare_initial(columns, report["initial"], name, rows=True)
        initial = "what :init wrote; for other keys, nil or the empty list"
    own = "each transaction is a session of its own, because there is no :process"
    no_process = () if report["has_process"] else misspelt_process_notes(start)
    return Reading(
        columns=columns,
        position_unit="line",
        initial=initial,
        session="one :process" if report["has_process"] else own,
        real_time=_real_time(report, timed=columns.has_time),
        ignored=tuple(_ignored(report)),
        notes=(*notes, *no_process, *_notes(report), *label_and_level_notes(columns)),
        session_names=session_names(report["session_labels"]),
    )


def misspelt_process_notes(data: bytes) -> Sequence[Caveat]:
    """Return a note if a field at the start of a file without ``:process`` looks like it."""
    from difflib import SequenceMatcher

    for name in _NAME.findall(data[:_START]):
        field = name.strip(b':"').decode()
        likeness = SequenceMatcher(None, field.lower(), "process").ratio()
        if likeness > _LIKENESS:
            shown = name.decode()
            meant = shown.replace(field, "process")
            what = f"no operation has {meant}, but some have {shown}; did you mean {meant}?"
            return (Caveat(f"perhaps a misspelt field: {what}"),)
    return ()


def _ignored(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield a phrase with a count for each kind of ignored input."""
    if report["nonclient"]:
        who = ", ".join(report["nonclient_processes"])
        yield f"{quantity(report['nonclient'], 'operation')} that no client sent" + (
            f" ({who})" if who else ""
        )
    if report["skipped"]:
        names = ", ".join(report["skipped_functions"])
        yield Caveat(
            f"{quantity(report['skipped'], 'operation')} that is not a transaction (:f {names})"
            if report["skipped"] == 1
            else f"{report['skipped']} operations that are not transactions (:f {names})"
        )
    strays = ("stray_completions", "completion", "without invocation or operations")
    yield from map(Caveat, count_remarks(report, strays))
    unknown = "of unfinished or failed transactions, whose results are unknown"
    yield from count_remarks(report, ("unknown_reads", "read", unknown))
    if report["odd_values"]:
        values = quantity(report["odd_values"], "completion")
        yield Caveat(f"the :value of {values}, which is not a list of operations")
    yield from count_remarks(
        report, ("odd_times", "value", "of :time or :index that is not an integer")
    )
    if report["timed_maps"] and not report["by_time"]:
        yield ":time (the order of operations decides)"


def _notes(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield remarks on how the reader interpreted the input, such as repeated indices."""
    yield from count_remarks(
        report,
        ("unfinished", "invocation", "without a completion, so the outcome is unknown"),
        ("resumed_after_info", "time", "a process went on after :info, as a new session"),
    )
    if report["overlapping"]:
        processes = quantity(report["overlapping"], "process", "processes")
        each = "each transaction is a session of its own"
        yield Caveat(f"{processes} with several open operations: {each}")
    independent = "on independent keys [k …]: one history, whose keys are pairs"
    yield from count_remarks(report, ("independent", "operation", independent))
    if report["completion_differs"]:
        yield (
            f"{quantity(report['completion_differs'], 'completion')} that report "
            "other operations than were invoked, first in line "
            f"{report['completion_differs_first_line']}; the operations of the "
            "completion count"
        )
    if report["time_goes_back"]:
        yield (
            f":time goes back {quantity(report['time_goes_back'], 'time')}, first in line "
            f"{report['time_goes_back_first_line']}"
        )
    if report["index"] == "reorders lines" and not report["by_time"]:
        yield ":index orders the operations, although the lines have another order"
    elif report["index"] == "repeated":
        yield ":index repeats, so the order of the lines decides"
    if report["groups"]:
        none = report["groupless"]
        without = f"; {quantity(none, 'transaction')} in none" if none else ""
        yield f"{quantity(report['groups'], 'group')} of transactions, by :group{without}"


def _real_time(report: Mapping[str, Any], *, timed: bool) -> str:
    """Return a sentence explaining where real time comes from, or why there is none."""
    if timed and report["by_time"]:
        return ":time, from :invoke to :ok or :fail, and :times of operations by its clock"
    own = timed and report["timed_operations"]
    return describe_event_times(timed=timed, by_index=report["order"] == "index") + (
        "; the :times of operations come from a clock of their own" if own else ""
    )


def label_and_level_notes(columns: Columns) -> list[str]:
    """Return notes on the transactions' labels and requested levels."""

    def shares(set_of: NDArray[np.int32], sets: list[tuple[str, ...]]) -> str:
        counts: dict[str, int] = {}
        for number, count in Counter(set_of.tolist()).items():
            for name in sets[number]:
                counts[name] = counts.get(name, 0) + count
        most = sorted(counts, key=lambda name: (-counts[name], name))
        shown = [f"{name} ({counts[name]})" for name in most[:_NAMES_SHOWN]]
        return ", ".join(shown + ["…"] * (len(most) > _NAMES_SHOWN))

    return [
        f"{what}: {shares(set_of, sets)}"
        for what, set_of, sets in (
            ("labels of transactions", columns.txn_labels, columns.label_sets),
            ("requested levels", columns.txn_levels, columns.level_sets),
        )
        if len(set_of)
    ]


def _without_torn_line(data: bytes) -> bytes:
    """Return the log without its last line if that line is torn and can be dropped.

    Return empty bytes if the last line is not torn, or if dropping it could lose a transaction.

    SOUND BECAUSE: if a torn completion is dropped, its transaction is indeterminate, because its
    invocation is still in the log. If an invocation is torn, its transaction has not sent anything
    yet. But if some completion of the log has no invocation, other transactions may have read from
    the transaction that would be dropped.
    """
    end = data.rfind(b"\n") + 1
    torn = data[end:].strip()
    if not torn.startswith(b"{") or torn.endswith(b"}"):
        return b""
    whole = data[:end]
    pending: Counter[bytes] = Counter()  # a process may have several operations open
    for kind, process in _invocations_and_completions(data):
        if kind == b"invoke":
            pending[process] += 1
        elif pending[process]:
            pending[process] -= 1
        elif kind != b"info":  # a nemesis logs :info with no invocation
            return b""
    return whole if b":type :invoke" in whole else b""


def _invocations_and_completions(log: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the type and process of each log line that contains both."""
    for line in log.splitlines():
        kind, process = _TYPE.search(line), _PROCESS.search(line)
        if kind and process:
            yield kind[1], process[1]


def session_names(processes: list[int]) -> tuple[str, ...]:
    """Return the session names, such as ``3.2`` for the second session of process 3."""
    seen: Counter[int] = Counter()
    names = []
    for process in processes:
        seen[process] += 1
        names.append(f"{process}.{seen[process]}" if seen[process] > 1 else str(process))
    return tuple(names)
