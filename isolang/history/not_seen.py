"""Reads and writes what the observer of a recorded application could not see.

A recording ends with a comment if something was not seen: ``;:unseen {"conditions":
["conditions that isolang cannot evaluate (2; first: SELECT …)"]}``. This JSON map has phrases by
kind; :data:`isolang.observe.unseen.KINDS` lists the kinds. A history that lacks operations may hide
a violation. Therefore no verdict on it is valid, unless each kind is harmless, or is named by the
reading option ``allow_unseen``. A violation stays one, because further operations only add
restrictions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from isolang.errors import HistoryError

UNSEEN_COMMENT: Final = ";:unseen"
HARMLESS_KINDS: Final = frozenset({"decided", "unread"})
"""The kinds that cannot change a verdict on the recording, although other runs may differ there."""
LACKS_FACTS: Final = (
    "the transactions in the log satisfy the level, but the log names facts that only may have "
    "decided an answer (:perhaps), or operations that were not seen (;:unseen); hint: isocheck "
    "check judges the whole file"
)
"""Why a verdict is not valid that considered only the transactions in a log."""
_LACKING: Final = re.compile(rb"^;:unseen|:perhaps[\s,]*\[", re.MULTILINE)
_BEGIN: Final = UNSEEN_COMMENT.encode()


def names_lacking(lines: bytes) -> bool:
    """Return whether lines name facts or operations that the transactions in them do not have.

    >>> names_lacking(b"{:value [[:r :x 1]], :perhaps [[0 [:r :y 1]]]}"), names_lacking(b"{}")
    (True, False)
    """
    return _LACKING.search(lines) is not None


def unseen_line(phrases: Mapping[str, Collection[str]]) -> str:
    r"""Return the line of a recording for what was not seen; empty if everything was seen.

    >>> unseen_line({"limits": ["rows that LIMIT may have left out (1)"]})
    ';:unseen {"limits": ["rows that LIMIT may have left out (1)"]}\n'
    """
    if not phrases:
        return ""
    kinds = {kind: [*listed] for kind, listed in phrases.items()}
    return f"{UNSEEN_COMMENT} {json.dumps(kinds)}\n"


def read_unseen(text: bytes, name: str) -> dict[str, tuple[str, ...]]:
    r"""Return what was not seen of a recording, by kind; empty if its text has no such comment.

    Several comments, as in recordings that were joined, count together.

    >>> read_unseen(b'{:value []}\n;:unseen {"limits": ["rows (1)"]}\n', "run.edn")
    {'limits': ('rows (1)',)}

    Raises:
        HistoryError: a comment is malformed.
    """
    phrases: dict[str, tuple[str, ...]] = {}
    at = 0 if text.startswith(_BEGIN) else text.find(b"\n" + _BEGIN) + 1
    while at or text.startswith(_BEGIN, at):
        end = text.find(b"\n", at)
        comment = text[at + len(_BEGIN) : end if end >= 0 else len(text)]
        try:
            listed = msgspec.json.decode(comment, type=dict[str, tuple[str, ...]])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            line = text.count(b"\n", 0, at) + 1
            raise HistoryError(
                f"{name}:{line}: not what a recording did not see ({error}; got "
                f"{comment[:40].decode(errors='replace')}, expected a map from kinds to phrases)"
            ) from None
        for kind, more in listed.items():
            phrases[kind] = (*phrases.get(kind, ()), *more)
        at = text.find(b"\n" + _BEGIN, at) + 1
        if not at:
            break
    return phrases


def not_allowed(
    unseen: Mapping[str, tuple[str, ...]], allowed: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Return what was not seen and may change a verdict, without the allowed kinds."""
    harmless = HARMLESS_KINDS.union(allowed)
    return {kind: phrases for kind, phrases in unseen.items() if kind not in harmless}


def lacking_in_words(
    possible_facts: int, unseen: Mapping[str, tuple[str, ...]], allowed: Collection[str]
) -> str:
    """Return in words what a history lacks; empty if nothing. Harmless kinds count, too.

    >>> lacking_in_words(1, {"limits": ("rows (2)",), "copy": ("rows (1)",)}, ["copy"])
    '1 fact that only may have decided an answer (:perhaps); not seen: rows (2)'
    """
    facts = f"{possible_facts:,} fact{'' if possible_facts == 1 else 's'}"
    kinds = [phrases for kind, phrases in unseen.items() if kind not in allowed]
    return "; ".join(
        [
            *(
                [f"{facts} that only may have decided an answer (:perhaps)"]
                if possible_facts
                else []
            ),
            *(f"not seen: {phrase}" for phrases in kinds for phrase in phrases),
        ]
    )


def unseen_reason(unseen: Mapping[str, Collection[str]]) -> str:
    """Return why a verdict is not valid although the recorded operations satisfy the level."""
    listed = "; ".join(phrase for phrases in unseen.values() for phrase in phrases)
    return f"the recorded history satisfies the level, but some operations were not seen: {listed}"


def allowing_hint(kinds: Collection[str]) -> str:
    """Return the hint that names the options with which a verdict may be valid nevertheless."""
    flags = " ".join(f"--allow-unseen {kind}" for kind in kinds)
    return f"hint: {flags} accepts this (allow_unseen in Python)"
