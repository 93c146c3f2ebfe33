"""The native readers, and what their remarks mean in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolang.errors import HistoryError, UnsupportedError
from isolang.history.readers.reading import Reading, counted
from isolang.history.sources import plain_name

if TYPE_CHECKING:
    from isolang._native import Columns

Files = tuple[tuple[str, bytes], ...]


def _call(
    read: Callable[..., tuple[Columns, Mapping[str, Any]] | None], *args: Any, **options: Any
) -> Any:
    from isolang import _native

    try:
        return read(*(_utf8(arg) for arg in args), **options)
    except _native.UnsupportedInput as e:
        raise UnsupportedError(str(e)) from None
    except _native.ReadError as e:
        raise HistoryError(str(e)) from None
    except RuntimeError as e:  # OutOfTime in native/core/budget.hpp
        if str(e) == "timeout":
            raise TimeoutError(str(e)) from None
        raise


def _utf8(arg: Any) -> Any:
    """Give the native core only text that has an encoding: file names may hold half characters."""
    if isinstance(arg, str):
        return arg.encode("utf-8", "backslashreplace").decode()
    if isinstance(arg, tuple):
        return tuple(_utf8(part) for part in arg)
    return arg


def read_jepsen(name: str, data: bytes, timeout: float) -> Reading:
    """Read Jepsen operations, in EDN or JSON.

    Raises:
        HistoryError: naming file and line.
        UnsupportedError: for operations that are no transactions, naming file and line.
    """
    from isolang import _native

    columns, say = _call(_native.read_edn, data, name, timeout=timeout)
    ignored, notes = [], []
    if say.get("nonclient"):
        who = ", ".join(str(p) for p in say.get("nonclient_processes", ()))
        ignored.append(
            f"{counted(say['nonclient'], 'operation')} of no client" + (f" ({who})" if who else "")
        )
    if say.get("orphans"):
        ignored.append(f"{counted(say['orphans'], 'completion')} without invocation or operations")
    if say.get("unknown_reads"):
        ignored.append(
            f"{counted(say['unknown_reads'], 'read')} of unfinished or failed transactions, "
            "whose results are not known"
        )
    if say.get("odd_values"):
        ignored.append(
            f"the :value of {counted(say['odd_values'], 'completion')}, no list of operations"
        )
    if say.get("odd_times"):
        odd = "of :time or :index that is no integer"
        ignored.append(f"{counted(say['odd_times'], 'value')} {odd}")
    if say.get("timed_maps"):
        ignored.append(":time (the order of operations decides)")
    if say.get("unfinished"):
        notes.append(f"{counted(say['unfinished'], 'invocation')} without completion: maybe")
    if say.get("resumed_after_info"):
        notes.append(
            f"{counted(say['resumed_after_info'], 'process', 'processes')} went on after :info; "
            "the session goes on too"
        )
    if say.get("completion_differs"):
        notes.append(
            f"{counted(say['completion_differs'], 'completion')} with other operations than "
            f"invoked, the first in line {say.get('completion_differs_first_line')}; "
            "the completion counts"
        )
    if say.get("time_goes_back"):
        notes.append(
            f":time goes back {counted(say['time_goes_back'], 'time')}, first in line "
            f"{say.get('time_goes_back_first_line')}"
        )
    order = say.get("order", "line")
    if say.get("index") == "reorders lines":
        notes.append(":index orders the operations, and not as the lines stand")
    elif say.get("index") == "repeated":
        notes.append(":index repeats, so the order of lines counts")
    real_time = "none: the file has completions only, no :invoke"
    if columns.has_time:
        by = ":index" if order == "index" else "lines"
        real_time = f"the order of {by}, from :invoke to :ok or :fail"
    session = "one :process"
    if not say.get("has_process", True):
        session = "each transaction is its own: there is no :process"
    return Reading(
        columns=columns,
        position_unit="line",
        initial="a read of nil or of the empty list",
        session=session,
        real_time=real_time,
        ignored=tuple(ignored),
        notes=tuple(notes),
        session_names=tuple(str(p) for p in say.get("session_labels", ())),
    )


def read_bincode(name: str, data: bytes, timeout: float) -> Reading:
    """Read dbcop's bincode.

    Raises:
        HistoryError: naming file and byte.
    """
    from isolang import _native

    columns, say = _call(_native.read_bincode, data, name, timeout=timeout)
    ignored, notes = [], []
    if say.get("failed_events"):
        ignored.append(counted(say["failed_events"], "failed operation"))
    if say.get("empty_sessions"):
        ignored.append(f"{counted(say['empty_sessions'], 'session')} without transactions")
    if say.get("info"):
        notes.append(f"recorded from {say['info']}")
    if say.get("plan"):
        notes.append("nothing in it succeeded: this is a plan that was never run")
    return Reading(
        columns=columns,
        position_unit="byte",
        initial="a read of 0",
        session="the order of transactions in a session of the file",
        real_time="none: the format has no times",
        ignored=tuple(ignored),
        notes=tuple(notes),
    )


def read_cobra(files: Files, timestamps: bool, timeout: float) -> Reading:
    """Read Cobra's client logs.

    Raises:
        HistoryError: naming file and byte.
        UnsupportedError: for reads of deleted keys, naming file and byte.
    """
    from isolang import _native

    columns, say = _call(_native.read_cobra, list(files), timestamps, timeout=timeout)
    ignored, notes = [], []
    if say.get("empty_files"):
        ignored.append(f"{counted(say['empty_files'], 'log')} without transactions")
    if say.get("duplicate_values"):
        notes.append("every write id is 0xabddefee: a write is identified by key and value")
    else:
        notes.append("a read names its write by id: values play no part")
    if say.get("missing_sources"):
        notes.append(f"{counted(say['missing_sources'], 'read')} of a write that is in no log")
    if say.get("contradicting_sources"):
        notes.append(
            f"{counted(say['contradicting_sources'], 'read')} of a write that has another "
            "transaction, key or value"
        )
    if say.get("unfinished"):
        notes.append(f"{counted(say['unfinished'], 'log')} cut inside a transaction: maybe")
    real_time = "none: the logs are read without timestamps"
    if columns.has_time:
        real_time = "the timestamps of start and commit"
    return Reading(
        columns=columns,
        position_unit="byte",
        initial="a read from the reserved ids 0xbebeebee (loaded before) or 0xdeadbeef (absent)",
        session="one log file",
        real_time=real_time,
        ignored=tuple(ignored),
        notes=tuple(notes),
        session_names=_file_sessions(columns, files),
    )


def read_plume(name: str, data: bytes, timeout: float) -> Reading:
    """Read the text of Plume, PolySI and IsoVista.

    Raises:
        HistoryError: naming file and line.
    """
    from isolang import _native

    columns, say = _call(_native.read_text, data, "plume", name, timeout=timeout)
    notes = []
    if say.get("zero_writes"):
        writes = counted(say["zero_writes"], "write")
        notes.append(f"{writes} of 0: a read of 0 may come from there, too")
    if say.get("aborted_transactions"):
        notes.append(
            f"{counted(say['aborted_lines'], 'line')} of aborted transactions without names: "
            f"{counted(say['aborted_transactions'], 'run')} of lines"
        )
    if say.get("interleaved_lines"):
        notes.append(
            f"{counted(say['interleaved_lines'], 'line')} apart from the others of the transaction"
        )
    return Reading(
        columns=columns,
        position_unit="line",
        initial="a read of 0",
        session="the third number of a line",
        real_time="none: the format has no times",
        notes=tuple(notes),
        session_names=tuple(str(s) for s in say.get("session_labels", ())),
    )


def read_awdit(name: str, data: bytes, timeout: float) -> Reading:
    """Read AWDIT's text.

    Raises:
        HistoryError: naming file and line.
    """
    from isolang import _native

    columns, _ = _call(_native.read_text, data, "awdit", name, timeout=timeout)
    return Reading(
        columns=columns,
        position_unit="line",
        initial="none: a read of a number that nobody wrote comes from nowhere",
        session="what stands between two lines of =",
        real_time="none: the format has no times",
    )


def read_regular(kind: str, files: Files, timeout: float) -> tuple[Columns, dict[str, Any]] | None:
    """Read a regular file of a format that has its reader in Python.

    Args:
        kind: ``viper``, ``dbcop-json`` or ``hist``.
        files: name and contents; one, but for ``viper``.
        timeout: seconds; 0 for no limit.

    Returns:
        The columns, and remarks; ``None`` if it is for the reader in Python: it is wrong, or not of
        the shape in which programs write the format.
    """
    from isolang import _native

    if kind == "viper":
        found = _call(_native.read_regular_viper, list(files), timeout=timeout)
    else:
        ((name, data),) = files
        found = _call(_native.read_regular_text, data, kind, name, timeout=timeout)
    regular: tuple[Columns, dict[str, Any]] | None = found
    return regular


def _file_sessions(columns: Columns, files: Files) -> tuple[str, ...]:
    """Sessions are files: each is called like its file."""
    import numpy as np

    newest = np.maximum.accumulate(columns.txn_session)  # they are numbered as they appear
    first = np.flatnonzero(np.diff(newest, prepend=-1))
    return tuple(Path(plain_name(files[int(f)][0])).stem for f in columns.txn_file[first])
