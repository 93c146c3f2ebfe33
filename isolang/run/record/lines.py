"""Encodes the lines of a recorder's file: events in EDN, in Jepsen's format.

The native core writes most lines (``recorded_line``), because a client waits for each line. Only
rare values are encoded here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from isolang.history.values import Keyword, Literal, encode, show

_ERROR: Final = 300  # the most characters of an error message

ORDERED: Final = b"{:versions :ordered}\n"
"""The line that declares the versions of a history to be integers in version order."""

UNKNOWN_START: Final = -1  # the time at which an operation was sent, if it is unknown


def note(index: int, when: int, what: str, value: str) -> bytes:
    """Return a line of the process ``:nemesis``, such as that of a fault."""
    shown = show(*encode(value, "a note"))
    return (
        f"{{:index {index}, :type :info, :process :nemesis, "
        f":time {when}, :f :{what}, :value {shown}}}\n"
    ).encode()


def with_error(line: bytes, error: BaseException) -> bytes:
    """Return the line of a completion with an error, whose message is shortened to one line."""
    message = " ".join(str(error).split())
    text = f"{type(error).__name__}: {message}".rstrip(": ")[:_ERROR]
    # Text that UTF-8 cannot encode must not keep the outcome out of the file.
    text = text.encode(errors="backslashreplace").decode()
    return line.removesuffix(b"}\n") + f", :error {show(*encode(text, 'an error'))}}}\n".encode()


def with_remarks(
    line: bytes,
    callers: Sequence[str],
    rows: Sequence[str],
    operations: int,
    statements: Sequence[str] = (),
) -> bytes:
    """Return the line of a completion with each operation's caller, row and statement."""
    for name, texts in (("callers", callers), ("rows", rows), ("statements", statements)):
        if any(texts):
            known = [*texts, *[""] * (operations - len(texts))]
            shown = " ".join(show(*encode(one, name)) for one in known)
            line = line.removesuffix(b"}\n") + f", :{name} [{shown}]}}\n".encode()
    return line


def with_versions(line: bytes, versions: Sequence[Any], transaction: Any = None) -> bytes:
    """Return the line of a completion with the versions that its operations read or wrote.

    Args:
        line: the line without versions.
        versions: the version of each operation; ``None`` if it is unknown.
        transaction: the database's name of the transaction; ``None`` if it is not recorded.
    """
    shown = " ".join([str(v) if type(v) is int else spell(v) for v in versions])
    named = "" if transaction is None else f", :xid {spell(transaction)}"
    return line.removesuffix(b"}\n") + f", :versions [{shown}]{named}}}\n".encode()


def with_names(line: bytes, labels: Sequence[str], level: str | None) -> bytes:
    """Return the line of an invocation with the transaction's labels and level."""
    added = ""
    if labels:
        names = [show(*encode(name, "a label")) for name in labels]
        added += f", :label {names[0] if len(names) == 1 else '[' + ' '.join(names) + ']'}"
    if level is not None:
        added += f", :level {show(*encode(level, 'a level'))}"
    return line.removesuffix(b"}\n") + f"{added}}}\n".encode() if added else line


def spell(value: Any) -> str:
    """Return the EDN of a value, or of a part of a value, that ``recorded_line`` does not write."""
    if value is None:
        return "nil"
    kind = type(value)
    if kind is list or kind is tuple:
        return "[" + " ".join([spell(one) for one in value]) + "]"
    if kind is dict:
        return "{" + " ".join([f"{spell(key)} {spell(one)}" for key, one in value.items()]) + "}"
    if kind is Keyword:
        return f":{value.name}"
    if kind is Literal:
        return str(value.text)
    return show(*encode(value, "recorder"))
