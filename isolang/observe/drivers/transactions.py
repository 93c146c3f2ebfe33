"""Recognises SQL statements that begin or end a transaction, or that use savepoints."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

Kind: TypeAlias = Literal["begin", "commit", "rollback", "savepoint", "release", "back"]
"""The effect of a statement on the transaction; ``back`` means ROLLBACK TO a savepoint."""

_WORDS: Final = re.compile(
    r"""\s*(?:
    (?P<begin>begin|start\s+transaction)\b[^;]*
    |(?P<back>(?:rollback|abort)(?:\s+(?:work|transaction))?\s+to(?:\s+savepoint)?)\s+(?P<to>\w+|"[^"]+")
    |(?P<commit>commit|end)(?:\s+(?:work|transaction))?
    |(?P<rollback>rollback|abort)(?:\s+(?:work|transaction))?
    |(?P<savepoint>savepoint)\s+(?P<at>\w+|"[^"]+")
    |(?P<release>release(?:\s+savepoint)?)\s+(?P<of>\w+|"[^"]+")
    )\s*;?\s*""",
    re.IGNORECASE | re.VERBOSE,
)
_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


class Control(Struct, frozen=True):
    """A statement that begins or ends a transaction, or that uses a savepoint.

    Attributes:
        kind: the effect of the statement on the transaction.
        name: the name of the savepoint; empty if the statement names none.
    """

    kind: Kind
    name: str = ""


def control(text: str) -> Control | None:
    """Return the effect of a statement on the transaction; ``None`` if it has no such effect."""
    found = _WORDS.fullmatch(_COMMENT.sub(" ", text))
    if found is None:
        return None
    parts = found.groupdict()
    name = parts["to"] or parts["at"] or parts["of"] or ""
    name = name[1:-1] if name.startswith('"') else name.lower()
    return Control(next(kind for kind in get_args(Kind) if parts[kind]), name)
