"""The lines of a recorder's file: events in EDN, in the form of Jepsen's.

A client waits for each line, so the native core makes them (``recorded_line``): all but the values
that are seldom.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from isolang.history.values import Keyword, Literal, encode, show

_ERROR: Final = 300  # characters of what was raised

ORDERED: Final = b"{:versions :ordered}\n"
"""Says that the versions of the history are integers, and ascend in their order."""

UNKNOWN_START: Final = -1  # in place of the time at which an operation was sent


def note(index: int, when: int, what: str, value: str) -> bytes:
    """A line of the process ``:nemesis``."""
    said = show(*encode(value, "a note"))
    return (
        f"{{:index {index}, :type :info, :process :nemesis, "
        f":time {when}, :f :{what}, :value {said}}}\n"
    ).encode()


def with_error(line: bytes, error: BaseException) -> bytes:
    """The line of a completion that also says what was raised, in one short line of text."""
    said = " ".join(str(error).split())
    text = f"{type(error).__name__}: {said}".rstrip(": ")[:_ERROR]
    # What UTF-8 cannot hold must not keep the outcome out of the file.
    text = text.encode(errors="backslashreplace").decode()
    return line.removesuffix(b"}\n") + f", :error {show(*encode(text, 'an error'))}}}\n".encode()


def with_remarks(
    line: bytes, callers: Sequence[str], rows: Sequence[str], operations: int
) -> bytes:
    """The line of a completion that also says where each operation comes from, and its row."""
    for name, texts in (("callers", callers), ("rows", rows)):
        if any(texts):
            known = [*texts, *[""] * (operations - len(texts))]
            shown = " ".join(show(*encode(one, name)) for one in known)
            line = line.removesuffix(b"}\n") + f", :{name} [{shown}]}}\n".encode()
    return line


def with_versions(line: bytes, versions: Sequence[Any], transaction: Any = None) -> bytes:
    """The line of a completion that also says which versions its operations read or wrote.

    Args:
        line: of the completion.
        versions: of each operation; ``None`` where it is not known.
        transaction: what the database calls the transaction; ``None`` where it does not matter.
    """
    shown = " ".join([str(v) if type(v) is int else spell(v) for v in versions])
    named = "" if transaction is None else f", :xid {spell(transaction)}"
    return line.removesuffix(b"}\n") + f", :versions [{shown}]{named}}}\n".encode()


def with_names(line: bytes, labels: Sequence[str], level: str | None) -> bytes:
    """The line of an invocation that also says the transaction's labels, and its level."""
    said = ""
    if labels:
        names = [show(*encode(name, "a label")) for name in labels]
        said += f", :label {names[0] if len(names) == 1 else '[' + ' '.join(names) + ']'}"
    if level is not None:
        said += f", :level {show(*encode(level, 'a level'))}"
    return line.removesuffix(b"}\n") + f"{said}}}\n".encode() if said else line


def spell(value: Any) -> str:
    """A value that ``recorded_line`` does not spell itself, or part of one."""
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
