"""Counts what an observer of an application could not record, by kind.

A history with fewer operations accuses no database wrongly, but it may hide a violation. So a
verdict on such a history is unknown instead of valid, unless the user accepts the kind, or the kind
is harmless. :data:`KINDS` is the only list of the kinds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from isolang.errors import IsolangError

if TYPE_CHECKING:
    from isolang.verdict import Unknown, Valid


class Kind(Struct, frozen=True):
    """A kind of things that are not recorded.

    Attributes:
        meaning: the things, as a plural.
        harmless: whether a verdict may be valid in spite of them.
    """

    meaning: str
    harmless: bool = False


CONDITIONS: Final = "conditions"
NOT_FOUND: Final = "absences"
TWO_ROWS: Final = "twins"
AUTOCOMMIT: Final = "autocommit"
OUTSIDE: Final = "outside"
FOREIGN: Final = "writers"
FUNCTIONS: Final = "functions"
SHAPES: Final = "shapes"
LIMITED: Final = "limits"
CHANGED: Final = "changes"
NO_ROW: Final = "conflicts"
BULK: Final = "bulk"
UNREAD: Final = "unread"

KINDS: Final[Mapping[str, Kind]] = {
    CONDITIONS: Kind("conditions that isolang cannot evaluate, of which only the rows are seen"),
    NOT_FOUND: Kind("keys that were looked up and not found"),
    TWO_ROWS: Kind("rows next to one of the same key that others have deleted"),
    FOREIGN: Kind("rows of writers that are not watched"),
    FUNCTIONS: Kind("calls of functions, which may read and write"),
    SHAPES: Kind("statements of a shape that is not recognised"),
    LIMITED: Kind("rows that LIMIT may have left out"),
    CHANGED: Kind("rows that changed while they were read"),
    NO_ROW: Kind("inserts that a row was in the way of"),
    BULK: Kind("bulk statements of an ORM"),
    "executemany": Kind("statements that were sent for many rows at once"),
    "copy": Kind("rows that were copied (COPY)"),
    "cursors": Kind("cursors of the server, and streams"),
    "pipelines": Kind("transactions with a pipeline"),
    "returning": Kind("writes that return something else than the key"),
    "deleted": Kind("writes of rows that others have deleted"),
    "keys": Kind("former keys of rows whose primary key was set"),
    "columns": Kind("columns that were read without their objects"),
    "versions": Kind("rows that were read without xmin"),
    OUTSIDE: Kind("statements of transactions whose begin was not watched"),
    "databases": Kind("connections to other databases"),
    AUTOCOMMIT: Kind("statements outside a transaction, each recorded as its own", harmless=True),
    UNREAD: Kind("writes to tables that no recorded statement reads", harmless=True),
}
"""All kinds, by the name that ``allow_unseen`` takes."""

LOUD: Final = frozenset(name for name, kind in KINDS.items() if not kind.harmless)
"""The names of the kinds that are not harmless."""

_LONGEST: Final = 120  # the most characters of an example
_LISTED: Final = re.compile(r"\bselect\b.{10,}?\bfrom\b", re.IGNORECASE)
# SOUND BECAUSE: an INSERT of values, and a COPY into a table, read no row. With a conflict clause
# or a subquery they may.
_ADDS: Final = re.compile(
    r'\s*(?:insert\s+into|copy)\s+((?:(?:\w+|"[^"]+")\s*\.\s*)?(?:\w+|"[^"]+"))(.*)', re.I | re.S
)
_READS: Final = re.compile(r"\b(?:select|conflict|with|table|to)\b", re.IGNORECASE)


def added_to(text: str) -> str:
    """Return the table to which a statement adds rows without reading any; empty for others.

    >>> added_to("INSERT INTO public.log VALUES (1)"), added_to("COPY log FROM STDIN")
    ('log', 'log')
    >>> added_to("INSERT INTO log SELECT * FROM account")
    ''
    """
    found = _ADDS.match(text)
    return "" if found is None or _READS.search(found[2]) else base_name(found[1])


def base_name(table: str) -> str:
    """Return a table's name without its schema and quotes, as the catalogue has it.

    >>> base_name('public."Log"'), base_name("Log")
    ('Log', 'log')
    """
    last = table.rpartition(".")[2].strip()
    return last[1:-1] if last.startswith('"') else last.lower()


def shortened(text: str) -> str:
    """Return the text of a statement in one line, without its columns if it is long."""
    shown = " ".join(text.split())
    if len(shown) > _LONGEST:  # the condition matters more than the columns
        shown = _LISTED.sub("SELECT … FROM", shown, count=1)
    return shown[:_LONGEST]


class Unseen(Counter[str]):
    """The counts of things that were not recorded, by the names of their kinds.

    Attributes:
        examples: the first example of each kind: the statement or row, and the caller's
            ``file:line``.
        read: the tables that recorded statements read.
    """

    def __init__(self, caller: Callable[[], str] = str) -> None:
        """Create the counts.

        Args:
            caller: a function that returns the ``file:line`` of the application, or nothing.
        """
        super().__init__()
        self.examples: dict[str, str] = {}
        self.read: set[str] = set()
        self._caller = caller
        self._added: Counter[tuple[str, str]] = Counter()  # by kind and table

    def note(self, kind: str, example: str = "", where: str = "") -> None:
        """Count one thing of a kind; keep the first example, with the caller's position.

        Args:
            kind: the name of the kind.
            example: the statement or row.
            where: the ``file:line`` of the application, if it is not that of the current call.
        """
        assert kind in KINDS, kind
        self[kind] += 1
        table = added_to(example)
        if table:
            self._added[kind, table] += 1
        if kind not in self.examples:
            shown = shortened(example)
            self.examples[kind] = ", ".join(filter(None, (shown, where or self._caller())))

    def add(self, other: Unseen) -> None:
        """Add the counts of another observer."""
        self.update(other)
        self.examples = other.examples | self.examples
        self.read |= other.read
        self._added.update(other._added)

    def settled(self) -> Unseen:
        """Return the counts in which writes to tables that nothing reads are of that kind."""
        found = Unseen()
        found.update(self)
        found.examples = dict(self.examples)
        for (kind, table), number in self._added.items():
            if table not in self.read and kind in LOUD:
                found[kind] -= number
                found[UNREAD] += number
                found.examples.setdefault(UNREAD, self.examples[kind])
        for kind in [one for one, number in found.items() if number <= 0]:
            del found[kind]
        return found

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield each kind with its count and example: ``2; first: account/a, app.py:12``."""
        for kind, number in sorted(self.items()):
            example = self.examples.get(kind, "")
            yield kind, f"{number}; first: {example}" if example else str(number)


def accepted_kinds(allow_unseen: bool | Collection[str]) -> frozenset[str]:
    """Return the kinds in spite of which a verdict may be valid.

    Args:
        allow_unseen: the names of kinds to accept; ``True`` for all of them.

    Raises:
        IsolangError: a name is not one of a kind.
    """
    if isinstance(allow_unseen, bool):
        return frozenset(KINDS) if allow_unseen else frozenset(KINDS) - LOUD
    named = {allow_unseen} if isinstance(allow_unseen, str) else set(allow_unseen)
    for name in sorted(map(str, named - KINDS.keys())):
        raise IsolangError(
            f"allow_unseen: no such kind (got {name!r}, expected {', '.join(sorted(LOUD))})"
        )
    return frozenset(KINDS) - LOUD | named


def loud(verdict: Valid, unseen: Unseen, accepted: Collection[str]) -> Valid | Unknown:
    """Return a valid verdict, or unknown if something was unseen that is not accepted."""
    from msgspec.structs import asdict

    from isolang.verdict import Unknown

    missed = {kind: detail for kind, detail in unseen.settled().lines() if kind not in accepted}
    if not missed:
        return verdict
    what = "; ".join(f"{KINDS[kind].meaning} ({detail})" for kind, detail in missed.items())
    names = ", ".join(f'"{kind}"' for kind in missed)
    proof = ("witness", "certified", "certified_reason")
    fields = {name: value for name, value in asdict(verdict).items() if name not in proof}
    reason = (
        f"what was recorded satisfies the level, but not everything was seen: {what}; "
        f"hint: allow_unseen={{{names}}} accepts that"
    )
    return Unknown(**fields, reason=reason, cause="unseen")
