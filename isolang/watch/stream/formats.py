"""Defines which log formats can be followed while the log grows, and why others cannot."""

from __future__ import annotations

from typing import Final

from isolang.errors import HistoryError, UnsupportedError
from isolang.history.detect import detect
from isolang.history.formats import find_format

FOLLOWED: Final = ("edn", "jepsen-json")
"""The formats in which each line can be read without the following lines."""

WHY_NOT_FOLLOWED: Final = {
    "jepsen": "it is a binary file whose blocks are rewritten",
    "registers": "the whole file determines which write a part of a text belongs to",
    "workload": "its operations become reads and writes of all elements of the whole file",
    "dbcop": "its sessions come one after the other",
    "dbcop-json": "its sessions come one after the other",
    "hist": "its sessions come one after the other",
    "cobra": "its reads name their writers by numbers of the whole file",
    "viper": "the initial state depends on the writes of the whole file",
    "plume": "a transaction may go on at any later line",
    "awdit": "its sessions come one after the other",
    "leopard": "a transaction may go on at any later line",
}


def followed_format(data: bytes, format: str, name: str) -> str:  # noqa: A002 — as in Stream
    """Return the format of a log, and check that the format can be followed.

    Raises:
        HistoryError: the format of the log cannot be detected.
        UnsupportedError: the format of the log cannot be followed.
    """
    if format != "auto":
        found = find_format(format).name
    else:
        guess = detect(data)
        if len(guess.formats) != 1:
            raise HistoryError(
                f"{name}: not a log that can be followed (got {guess.looks_like}, expected one of "
                f"{', '.join(FOLLOWED)})"
            )
        (found,) = guess.formats
    if found not in FOLLOWED:
        raise UnsupportedError(
            f"{name}: {found} cannot be followed, because {WHY_NOT_FOLLOWED[found]} "
            f"(expected one of {', '.join(FOLLOWED)}); hint: convert it to edn with isocheck "
            "convert"
        )
    if data.lstrip(b"\xef\xbb\xbf \t\r\n,")[:1] in (b"[", b"("):
        raise UnsupportedError(
            f"{name}: a file with an enclosing list cannot be followed (expected one "
            "operation map per line); hint: isocheck check reads the whole file"
        )
    return found
