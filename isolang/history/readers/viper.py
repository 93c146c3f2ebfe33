"""Reads the JSON logs of Viper and IsoVista: one file per session, one line per transaction."""

from __future__ import annotations

from isolang.arrays import np
from isolang.history import columns as c
from isolang.history.initial import declare_initial
from isolang.history.readers.reading import (
    Files,
    Reading,
    call_native,
    count_remarks,
    quantity,
    sessions_named_by_files,
    unknown_fields,
)
from isolang.history.sources import plain_name


def read(files: Files, *, timeout: float) -> Reading:
    """Read the logs of one history.

    Raises:
        HistoryError: the input is malformed; the message names the file, line and operation.
    """
    from isolang import _native

    columns, report = call_native(_native.read_viper, list(files), timeout=timeout)
    initial = "any read of a value that no transaction wrote, as in Viper"
    if "initial" in report:
        declare_initial(columns, report["initial"], files[0][0])
        initial = 'what the "isInitial" transaction wrote, nil, or a 0 that no transaction wrote'
    notes = []
    if report["outcomes"]:
        notes.append(
            "the fourth slot of an operation holds its transaction's outcome, as IsoVista writes it"
        )
    aborted = int(np.count_nonzero(columns.txn_status == c.ABORTED))
    if aborted:
        notes.append(f"{quantity(aborted, 'transaction')} with the outcome false, which aborted")
    initial_reads = "of a value that no transaction wrote, which is the initial state"
    notes += count_remarks(report, ("initial_reads", "read", initial_reads))
    if report["ranges"]:
        what = "showed no version, not even a deleted row, for the other keys in the range"
        notes.append(f"{quantity(report['ranges'], 'range')} {what}")
    ignored = []
    failed = int(np.count_nonzero(columns.op_ok == 0))
    if failed:
        ignored.append(quantity(failed, "failed operation"))
    ignored += unknown_fields(report)
    used = set(columns.txn_file.tolist())
    empty = [plain_name(name) for i, (name, _) in enumerate(files) if i not in used]
    if empty:
        ignored.append(f"{quantity(len(empty), 'log')} without transactions: {', '.join(empty)}")
    return Reading(
        columns=columns,
        position_unit="line",
        initial=initial,
        session="one log file",
        real_time="none, because the format has no times",
        ignored=tuple(ignored),
        notes=tuple(notes),
        session_names=sessions_named_by_files(columns, files),
    )
