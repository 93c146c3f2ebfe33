"""Reads and writes what the observer of a recorded application could not see.

A recording ends with a comment on what was not seen: ``;:unseen {"conditions":
["conditions that isolang cannot evaluate (2; first: SELECT …)"]}``. This JSON map has phrases by
kind; :data:`isolang.observe.unseen.KINDS` lists the kinds. A history that lacks operations may hide
a violation. Therefore no verdict on it is valid, unless each kind is harmless, or is named by the
reading option ``allow_unseen``. A violation stays one, because further operations only add
restrictions.

The first map of a recording has ``:observed true``, which says that such a comment follows at the
end, even if it names nothing. If it is missing, the observer was killed or still runs, or the file
was cut. What the observer had yet to write then counts as not seen. Predicate reads say nothing, as
only the audit at the end tells whether a writer that is not in the recording contradicts them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from isolang.errors import HistoryError
from isolang.patterns import pattern

UNSEEN_COMMENT: Final = ";:unseen"
OBSERVED_FIELD: Final = ":observed true"
"""The field of the first map of a recording that ends with a comment on what was not seen."""
NO_END: Final = "end"
"""The kind of what a recording without an end lacks."""
JOINED: Final = "joined"
"""The kind of what could not matter in one of several recordings that were joined in a file."""
_NO_END_PHRASE: Final = (
    "what the observer had yet to write, because the recording has no end (the observer was killed "
    "or still runs, or the file was cut)"
)
HARMLESS_KINDS: Final = frozenset({"decided", "unread"})
"""The kinds that cannot change a verdict on the recording, although other runs may differ there."""
LACKS_FACTS: Final = (
    "the transactions in the log satisfy the level, but the log names facts that only may have "
    "decided an answer (:perhaps), the order of versions (:versions), or operations that were not "
    "seen (;:unseen); hint: isocheck "
    "check judges the whole file"
)
"""Why a verdict is not valid that considered only the transactions in a log."""
NOT_ENDED: Final = (
    "the transactions in the log satisfy the level, but the recording has no end (the observer was "
    "killed or still runs, or the file was cut); hint: isocheck check judges the whole file"
)
"""Why a verdict on a log is not valid that is a recording without an end."""
NOT_AUDITED: Final = (
    "the recording has no end yet, and its audit there may leave tables out; hint: check the "
    "file when the observer has ended"
)
"""Why a violation is only suspected in a recording of what a server's log says."""
RecordingState: TypeAlias = Literal["", "open", "lost"]
"""Whether a recording in a text lacks its end so far, or for good, as another one has begun."""
_END: Final = pattern(rb"^;:unseen", re.MULTILINE)
_LACKING: Final = pattern(rb"^;:unseen(?! \{\}$)|:perhaps[\s,]*\[", re.MULTILINE)
_ORDERED: Final = b"{:versions :ordered}"
_VERSIONS: Final = pattern(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|, :versions \[[^"\]]*\]')
_BEGIN: Final = UNSEEN_COMMENT.encode()
_OBSERVED: Final = OBSERVED_FIELD.encode()
_FIRST_MAP: Final = pattern(
    rb"\{:index \d+, :type :invoke, :process \d+, :time \d+, %s," % _OBSERVED
)


def names_lacking(lines: bytes) -> bool:
    """Return whether lines name facts or operations that the transactions in them do not have.

    >>> names_lacking(b"{:value [[:r :x 1]], :perhaps [[0 [:r :y 1]]]}"), names_lacking(b"{}")
    (True, False)
    """
    return _LACKING.search(lines) is not None


def rests_on_log(text: bytes) -> bool:
    """Return whether a recording's writes, and their order, are those of a server's log.

    The audit at its end compares them with the tables, and may leave out tables.

    >>> rests_on_log(b"{:index 0, :type :invoke, :process 0, :time 0, :observed true, :f :txn}")
    False
    """
    return text.startswith(_ORDERED) and any(True for _ in _begins(text))


def without_versions(lines: bytes) -> bytes:
    """Return lines with blanks in the place of what they state of versions.

    >>> without_versions(b'{:value [[:w "a, :versions [1]" 1]], :versions [2], :f :txn}')
    b'{:value [[:w "a, :versions [1]" 1]]               , :f :txn}'
    """
    if b":versions" not in lines:
        return lines
    return _VERSIONS.sub(
        lambda token: token[0] if token[0][:1] == b'"' else b" " * len(token[0]), lines
    )


def unseen_line(phrases: Mapping[str, Collection[str]]) -> str:
    r"""Return the last line of a recording, which says what was not seen.

    >>> unseen_line({"limits": ["rows that LIMIT may have left out (1)"]}), unseen_line({})
    (';:unseen {"limits": ["rows that LIMIT may have left out (1)"]}\n', ';:unseen {}\n')
    """
    import json

    kinds = {kind: [*listed] for kind, listed in phrases.items()}
    return f"{UNSEEN_COMMENT} {json.dumps(kinds)}\n"


def read_unseen(text: bytes, name: str) -> dict[str, tuple[str, ...]]:
    r"""Return what was not seen of a recording, by kind; empty if its text names nothing.

    Several comments, as in recordings that were joined, count together. What could not matter in
    one of several recordings may matter in another.

    >>> read_unseen(b'{:value []}\n;:unseen {"limits": ["rows (1)"]}\n', "run.edn")
    {'limits': ('rows (1)',)}

    Raises:
        HistoryError: a comment is malformed.
    """
    phrases: dict[str, tuple[str, ...]] = {}
    comments = 0
    at = 0 if text.startswith(_BEGIN) else text.find(b"\n" + _BEGIN) + 1
    while at or text.startswith(_BEGIN, at):
        comments += 1
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
    recordings = sum(1 for _ in _begins(text)) or comments
    for kind in HARMLESS_KINDS & phrases.keys() if recordings > 1 else ():
        phrases[JOINED] = (*phrases.get(JOINED, ()), *phrases.pop(kind))
    if lacks_end(text):
        phrases[NO_END] = (*phrases.get(NO_END, ()), _NO_END_PHRASE)
    return phrases


def lacks_end(text: bytes) -> bool:
    """Return whether some recording in a text has no end before the next one begins."""
    return recording_after(text, "") != ""


def recording_after(lines: bytes, before: RecordingState) -> RecordingState:
    """Return the state of the recordings in a text after more lines of it.

    >>> first = b"{:index 0, :type :invoke, :process 0, :time 0, :observed true, :f :txn}"
    >>> recording_after(first, "")
    'open'
    >>> recording_after(b";:unseen {}", "open")
    ''
    """
    state = before
    marks = [(at, "begin") for at in _begins(lines)]
    if state or marks:
        marks += [(comment.start(), "end") for comment in _END.finditer(lines)]
    for _, mark in sorted(marks):
        if state == "lost" or (mark == "begin" and state == "open"):
            return "lost"
        state = "open" if mark == "begin" else ""
    return state


def _begins(text: bytes) -> Iterator[int]:
    """Yield where each recording in a text begins that says that it has an end."""
    at = text.find(_OBSERVED)  # far quicker than a search for the pattern
    while at >= 0:
        begin = text.rfind(b"\n", 0, at) + 1
        if _FIRST_MAP.match(text, begin):
            yield begin
        at = text.find(_OBSERVED, at + 1)


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
