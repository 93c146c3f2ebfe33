"""Writes the log formats of Cobra and Viper: a folder with one file per session.

Both formats can express only committed transactions. Cobra's logs are written in the
duplicate-value variant, in which a read names only the key and value of its source, not the write
itself.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

from isolang.history.writers.numbers import NumberedTransaction, number_history
from isolang.history.writers.outline import FormatFeatures
from isolang.history.writers.report import Contents, WriteReport

if TYPE_CHECKING:
    from isolang.history.history import History

_COBRA = FormatFeatures(name="Cobra logs", aborted=False, empty=True)
_VIPER = FormatFeatures(name="Viper logs", aborted=False, empty=True)
# In this variant, all writes have the same write id; the initial state has a different one.
_UNIVERSAL, _INITIAL = 0xABDDEFEE, 0xBEBEEBEE


def cobra(
    history: History, *, renumber: bool, drop: frozenset[str]
) -> tuple[Contents, WriteReport]:
    """Encode a history as Cobra logs, and return the contents of each log by file name.

    Raises:
        HistoryError: the format cannot express the history.
    """
    found = number_history(
        history, _COBRA, bits=63, zero_writable=False, renumber=renumber, drop=drop
    )

    def records(row: NumberedTransaction) -> bytes:
        out = [struct.pack(">cq", b"S", row.ordinal)]
        for write, key, value in row.ops:
            who = _UNIVERSAL if value else _INITIAL
            out.append(
                struct.pack(">cqqq", b"W", _UNIVERSAL, key, value)
                if write
                else struct.pack(">cqqqq", b"R", who, who, key, value)
            )
        return b"".join([*out, struct.pack(">cq", b"C", row.ordinal)])

    files = {  # names are padded because readers process the files in name order
        f"T{i:05d}.log": b"".join(map(records, rows)) for i, rows in enumerate(found.sessions())
    }
    return files, found.report("cobra")


def viper(
    history: History, *, renumber: bool, drop: frozenset[str]
) -> tuple[Contents, WriteReport]:
    """Encode a history as Viper logs, and return the contents of each log by file name.

    Readers of these logs treat a value that no transaction writes as an initial value, unless the
    logs declare an initial transaction. Therefore, if some read has no source, the first log begins
    with such a declaration.

    Raises:
        HistoryError: the format cannot express the history.
    """
    found = number_history(
        history, _VIPER, bits=63, zero_writable=False, renumber=renumber, drop=drop
    )

    def line(row: NumberedTransaction) -> str:
        ops = [
            ["w", key, value, True] if write else ["r", key, value or "nil", False]
            for write, key, value in row.ops
        ]
        return json.dumps({"value": ops}) + "\n"

    files = {
        f"J{i:05d}.log": "".join(map(line, rows)).encode()
        for i, rows in enumerate(found.sessions())
    }
    accesses = zip(found.keys.tolist(), found.values.tolist(), found.writes(), strict=True)
    every = [((key, value), write) for key, value, write in accesses if value]
    written = {version for version, write in every if write}
    if any(version not in written for version, _ in every):
        files["J00000.log"] = b'{"isInitial": true, "value": []}\n' + files["J00000.log"]
    return files, found.report("viper")
