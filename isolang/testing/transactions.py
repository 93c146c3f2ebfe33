"""Statements that an application sends itself to begin, end or take back a transaction."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

Kind: TypeAlias = Literal["begin", "commit", "rollback", "savepoint", "release", "back"]
"""What a statement does to the transaction; ``back`` is ROLLBACK TO."""

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
    """A statement about the transaction.

    Attributes:
        kind: what it does.
        name: of the savepoint, if there is one.
    """

    kind: Kind
    name: str = ""


def control(text: str) -> Control | None:
    """Recognise one; ``None`` for all other statements, and for several in one text."""
    found = _WORDS.fullmatch(_COMMENT.sub(" ", text))
    if found is None:
        return None
    parts = found.groupdict()
    name = parts["to"] or parts["at"] or parts["of"] or ""
    name = name[1:-1] if name.startswith('"') else name.lower()
    return Control(next(kind for kind in get_args(Kind) if parts[kind]), name)
