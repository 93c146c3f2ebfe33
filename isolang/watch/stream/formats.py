"""Which formats can be followed, and why the others cannot."""

from __future__ import annotations

from typing import Final

from isolang.errors import HistoryError, UnsupportedError
from isolang.history.detect import detect
from isolang.history.formats import format_named

FOLLOWED: Final = ("edn", "jepsen-json")
"""Those whose lines say by themselves what happened."""

WHY_NOT: Final = {
    "jepsen": "it is a binary file whose blocks are rewritten",
    "registers": "who wrote which part of a text depends on the whole",
    "workload": "its operations become reads and writes of all elements of the whole file",
    "dbcop": "its sessions stand one after the other",
    "dbcop-json": "its sessions stand one after the other",
    "hist": "its sessions stand one after the other",
    "cobra": "its reads name their writers by numbers that belong to the whole",
    "viper": "what is initial depends on what the whole writes",
    "plume": "a transaction may go on at any later line",
    "awdit": "its sessions stand one after the other",
    "leopard": "a transaction may go on at any later line",
}


def followed_format(data: bytes, wanted: str, name: str) -> str:
    """The format of a log that begins so.

    Args:
        data: its first complete lines.
        wanted: ``auto``, or the name of a format.
        name: of the log, for messages.

    Raises:
        HistoryError: it is in no known format.
        UnsupportedError: it is in one that cannot be followed.
    """
    if wanted != "auto":
        found = format_named(wanted).name
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
            f"{name}: {found} cannot be followed, as {WHY_NOT[found]} (expected one of "
            f"{', '.join(FOLLOWED)}); hint: isocheck convert writes edn"
        )
    if data.lstrip(b"\xef\xbb\xbf \t\r\n,")[:1] in (b"[", b"("):
        raise UnsupportedError(
            f"{name}: one enclosing list cannot be followed (expected one operation map a line); "
            "hint: isocheck check reads the file as a whole"
        )
    return found
