"""Formats in which a history is a folder of logs, one for each session: Cobra's and Viper's.

Both hold committed transactions only. Cobra's logs are of the duplicate-value variant, in which a
write is its key and value: the variant that means what a history by value means.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

from isolang.history import columns as c
from isolang.history.writers import WriteReport
from isolang.history.writers.numbers import as_numbers, report_of
from isolang.history.writers.outline import Target, outline

if TYPE_CHECKING:
    from isolang.history.history import History

_COBRA = Target(name="Cobra logs", aborted=False, empty=True)
_VIPER = Target(name="Viper logs", aborted=False, empty=True)
_UNIVERSAL, _INITIAL = 0xABDDEFEE, 0xBEBEEBEE  # write ids: of every write, and of the initial state

Files = dict[str, bytes]


def encode_cobra(
    history: History, *, renumber: bool, drop: frozenset[str]
) -> tuple[Files, WriteReport]:
    """Encode a history as Cobra's logs, by file name.

    Raises:
        HistoryError: if they cannot express it.
    """
    part = outline(history, _COBRA, drop)
    numbers = as_numbers(part, target=_COBRA.name, bits=63, zero_writable=False, renumber=renumber)
    files: Files = {}
    ids = {txn: i for i, txn in enumerate(part.transactions, 1)}
    for session, transactions in enumerate(part.by_session()):
        out = bytearray()
        for txn in transactions:
            out += struct.pack(">cq", b"S", ids[txn])
            for op in part.ops(txn):
                key, value = numbers.key(part.key[op]), numbers.value(op)
                if part.kind[op] == c.WRITE:
                    out += struct.pack(">cqqq", b"W", _UNIVERSAL, key, value)
                else:
                    who = _UNIVERSAL if value else _INITIAL
                    out += struct.pack(">cqqqq", b"R", who, who, key, value)
            out += struct.pack(">cq", b"C", ids[txn])
        files[f"T{session:05d}.log"] = bytes(out)  # files are read in the order of their names
    return files, report_of("cobra", part, numbers)


def encode_viper(
    history: History, *, renumber: bool, drop: frozenset[str]
) -> tuple[Files, WriteReport]:
    """Encode a history as Viper's logs, by file name.

    Raises:
        HistoryError: if they cannot express it.
    """
    part = outline(history, _VIPER, drop)
    numbers = as_numbers(part, target=_VIPER.name, bits=63, zero_writable=False, renumber=renumber)

    def op_list(op: int) -> list[object]:
        key, value = numbers.key(part.key[op]), numbers.value(op)
        if part.kind[op] == c.WRITE:
            return ["w", key, value, True]
        return ["r", key, value or "nil", False]

    files = {
        f"J{session:05d}.log": "".join(
            json.dumps({"value": [op_list(op) for op in part.ops(txn)]}) + "\n"
            for txn in transactions
        ).encode()
        for session, transactions in enumerate(part.by_session())
    }
    return files, report_of("viper", part, numbers)
