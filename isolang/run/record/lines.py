"""Encodes the lines of a recorder's file: one event per line, in Jepsen's EDN.

Because a client waits until its line is written, the native core encodes most lines
(``recorded_line``). This module encodes only rare values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from isolang.history.values import Keyword, Literal, atom_text, encode

_MAX_ERROR: Final = 300  # the maximum length of an error message in characters

ORDERED_LINE: Final = b"{:versions :ordered}\n"
"""The line that declares the history's versions to be integers that grow in version order."""

UNKNOWN_START: Final = -1  # represents an unknown time at which an operation was sent


def nemesis_line(index: int, when: int, what: str, value: str) -> bytes:
    """Return the line that records an event of the process ``:nemesis``, such as a fault."""
    shown = atom_text(*encode(value, "a note"))
    return (
        f"{{:index {index}, :type :info, :process :nemesis, "
        f":time {when}, :f :{what}, :value {shown}}}\n"
    ).encode()


def with_error(line: bytes, error: BaseException) -> bytes:
    """Add an error to the line of a completion, and shorten its message if necessary."""
    message = " ".join(str(error).split())
    text = f"{type(error).__name__}: {message}".rstrip(": ")[:_MAX_ERROR]
    # Replace characters that UTF-8 cannot encode, because the outcome must be written anyway.
    text = text.encode(errors="backslashreplace").decode()
    return (
        line.removesuffix(b"}\n") + f", :error {atom_text(*encode(text, 'an error'))}}}\n".encode()
    )


def with_remarks(
    line: bytes,
    callers: Sequence[str],
    operations: int,
    statements: Sequence[str] = (),
) -> bytes:
    """Add the caller and the statement of each operation to the line of a completion."""
    for name, texts in (("callers", callers), ("statements", statements)):
        if any(texts):
            known = [*texts, *[""] * (operations - len(texts))]
            shown = " ".join(atom_text(*encode(one, name)) for one in known)
            line = line.removesuffix(b"}\n") + f", :{name} [{shown}]}}\n".encode()
    return line


def with_versions(line: bytes, versions: Sequence[Any], transaction: Any = None) -> bytes:
    """Add to a completion's line the versions that its operations read or wrote."""
    shown = " ".join([str(v) if type(v) is int else to_edn(v) for v in versions])
    named = "" if transaction is None else f", :xid {to_edn(transaction)}"
    return line.removesuffix(b"}\n") + f", :versions [{shown}]{named}}}\n".encode()


def with_unit(line: bytes, unit: str) -> bytes:
    """Add the unit that a transaction belongs to, if any, to one of its lines."""
    if not unit:
        return line
    return line.removesuffix(b"}\n") + f", :unit {atom_text(*encode(unit, 'a unit'))}}}\n".encode()


def with_names(line: bytes, labels: Sequence[str], level: str | None) -> bytes:
    """Add the transaction's labels and level to the line of an invocation."""
    added = ""
    if labels:
        names = [atom_text(*encode(name, "a label")) for name in labels]
        added += f", :label {names[0] if len(names) == 1 else '[' + ' '.join(names) + ']'}"
    if level is not None:
        added += f", :level {atom_text(*encode(level, 'a level'))}"
    return line.removesuffix(b"}\n") + f"{added}}}\n".encode() if added else line


def to_edn(value: Any) -> str:
    """Return the EDN for a value (or a part of a value) that ``recorded_line`` does not encode."""
    if value is None:
        return "nil"
    kind = type(value)
    if kind is list or kind is tuple:
        return "[" + " ".join([to_edn(one) for one in value]) + "]"
    if kind is dict:
        return "{" + " ".join([f"{to_edn(key)} {to_edn(one)}" for key, one in value.items()]) + "}"
    if kind is Keyword:
        return f":{value.name}"
    if kind is Literal:
        return str(value.text)
    return atom_text(*encode(value, "recorder"))
