"""Jepsen's operations, in EDN or JSON."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from isolang.caveat import Caveat
from isolang.errors import HistoryError
from isolang.history.initial import declare_initial
from isolang.history.readers.reading import Files, Reading, call_native, counted, remarks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns

_NAMES_SHOWN: Final = 5


def read(files: Files, *, timeout: float) -> Reading:
    """Read one file.

    Raises:
        HistoryError: naming file and line.
        UnsupportedError: for operations that are no transactions, naming file and line.
    """
    from isolang import _native

    ((name, data),) = files
    ignored: list[str] = []
    notes: list[str] = []
    try:
        columns, say = call_native(_native.read_edn, data, name, timeout=timeout)
    except HistoryError:
        whole = _without_torn_line(data)
        if not whole:
            raise
        columns, say = call_native(_native.read_edn, whole, name, timeout=timeout)
        line = whole.count(b"\n") + 1
        notes.append(
            Caveat(
                f"torn after line {line - 1}: line {line} has no end, and is left out, as if still "
                "to come"
            )
        )
    if say["nonclient"]:
        who = ", ".join(say["nonclient_processes"])
        ignored.append(
            f"{counted(say['nonclient'], 'operation')} of no client" + (f" ({who})" if who else "")
        )
    if say["skipped"]:
        names = ", ".join(say["skipped_functions"])
        ignored.append(
            Caveat(
                f"{counted(say['skipped'], 'operation')} that is no transaction (:f {names})"
                if say["skipped"] == 1
                else f"{say['skipped']} operations that are no transactions (:f {names})"
            )
        )
    unknown = "of unfinished or failed transactions, whose results are not known"
    strays = ("stray_completions", "completion", "without invocation or operations")
    ignored += map(Caveat, remarks(say, strays))
    ignored += remarks(say, ("unknown_reads", "read", unknown))
    if say["odd_values"]:
        values = counted(say["odd_values"], "completion")
        ignored.append(Caveat(f"the :value of {values}, no list of operations"))
    ignored += remarks(say, ("odd_times", "value", "of :time or :index that is no integer"))
    if say["timed_maps"] and not say["by_time"]:
        ignored.append(":time (the order of operations decides)")
    notes += remarks(
        say,
        ("unfinished", "invocation", "without completion: indeterminate"),
        ("resumed_after_info", "time", "a process went on after :info: as a new session"),
    )
    if say["overlapping"]:
        processes = counted(say["overlapping"], "process", "processes")
        each = "each transaction is a session of its own"
        notes.append(Caveat(f"{processes} with several open operations: {each}"))
    independent = "on independent keys [k …]: one history, whose keys are pairs"
    notes += remarks(say, ("independent", "operation", independent))
    if say["completion_differs"]:
        notes.append(
            f"{counted(say['completion_differs'], 'completion')} with other operations than "
            f"invoked, the first in line {say['completion_differs_first_line']}; "
            "the completion counts"
        )
    if say["time_goes_back"]:
        notes.append(
            f":time goes back {counted(say['time_goes_back'], 'time')}, first in line "
            f"{say['time_goes_back_first_line']}"
        )
    if say["index"] == "reorders lines":
        notes.append(":index orders the operations, and the lines stand in another order")
    elif say["index"] == "repeated":
        notes.append(":index repeats, so the order of lines counts")
    real_time = "none: the file has completions only, no :invoke"
    if columns.has_time:
        by = ":index" if say["order"] == "index" else "lines"
        real_time = f"the order of {by}, from :invoke to :ok or :fail"
        if say["by_time"]:
            real_time = ":time, from :invoke to :ok or :fail, and :times of operations by its clock"
        elif say["timed_operations"]:
            real_time += "; :times of operations by a clock of their own"
    initial = "a read of nil or of the empty list"
    if "initial" in say:
        declare_initial(columns, say["initial"], name)
        initial = "what :init wrote, and nil or the empty list"
    session = "one :process"
    if say["groups"]:
        without = (
            f"; {counted(say['groupless'], 'transaction')} in none" if say["groupless"] else ""
        )
        notes.append(f"{counted(say['groups'], 'group')} of transactions, by :group{without}")
    notes += names_borne(columns)
    if not say["has_process"]:
        session = "each transaction is its own: there is no :process"
    return Reading(
        columns=columns,
        position_unit="line",
        initial=initial,
        session=session,
        real_time=real_time,
        ignored=tuple(ignored),
        notes=tuple(notes),
        session_names=session_names(say["session_labels"]),
    )


def names_borne(columns: Columns) -> list[str]:
    """Which labels there are, and which levels were asked for: a sentence each."""
    import numpy as np

    def shares(set_of: NDArray[np.int32], sets: list[tuple[str, ...]]) -> str:
        counts: dict[str, int] = {}
        for number, count in enumerate(np.bincount(set_of, minlength=len(sets)).tolist()):
            for name in sets[number] if count else ():
                counts[name] = counts.get(name, 0) + count
        most = sorted(counts, key=lambda name: (-counts[name], name))
        shown = [f"{name} ({counts[name]})" for name in most[:_NAMES_SHOWN]]
        return ", ".join(shown + ["…"] * (len(most) > _NAMES_SHOWN))

    return [
        f"{what}: {shares(set_of, sets)}"
        for what, set_of, sets in (
            ("labels of transactions", columns.txn_labels, columns.label_sets),
            ("levels asked for", columns.txn_levels, columns.level_sets),
        )
        if len(set_of)
    ]


def _without_torn_line(data: bytes) -> bytes:
    """What stands before a last line that has no end; empty if there is none, or it is needed.

    SOUND BECAUSE: every completion has its invocation, so one that is torn leaves its transaction
    indeterminate, and one that had just begun has done nothing yet. A file of completions alone
    would lose a transaction that others may have read from.
    """
    end = data.rfind(b"\n") + 1
    torn = data[end:].strip()
    if not torn.startswith(b"{") or torn.endswith(b"}"):
        return b""
    whole = data[:end]
    completed = whole.count(b":type :ok") + whole.count(b":type :fail")
    return whole if whole.count(b":type :invoke") >= max(completed, 1) else b""


def session_names(processes: list[int]) -> tuple[str, ...]:
    """Sessions are called like their processes; the second one of process 3 is ``3.2``."""
    seen: Counter[int] = Counter()
    names = []
    for process in processes:
        seen[process] += 1
        names.append(f"{process}.{seen[process]}" if seen[process] > 1 else str(process))
    return tuple(names)
