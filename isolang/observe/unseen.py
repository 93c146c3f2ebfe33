"""Counts, by kind, the activity that an observer of an application could not record.

A history that lacks operations never accuses a database wrongly, but it may hide a violation. The
verdict on such a history is therefore unknown instead of valid, unless the user accepts the kind,
or the kind is harmless. :data:`KINDS` is the only list of the kinds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from isolang.errors import IsolangError
from isolang.history.not_seen import HARMLESS_KINDS, not_allowed, unseen_reason
from isolang.history.statement_text import one_line, shape_of_text

if TYPE_CHECKING:
    from isolang.verdict import Unknown, Valid


class Kind(Struct, frozen=True):
    """A kind of activity that an observer could not record.

    Attributes:
        meaning: a plural noun phrase that names the things.
        details: the things counted separately within the kind, in the words of the output.
        harmless: whether a verdict may be valid despite these things.
    """

    meaning: str
    details: tuple[str, ...] = ()
    harmless: bool = False


CONDITIONS: Final = "conditions"
AUTOCOMMIT: Final = "autocommit"
OUTSIDE: Final = "outside"
FOREIGN: Final = "writers"
FUNCTIONS: Final = "functions"
SHAPES: Final = "shapes"
TABLES: Final = "tables"
LIMITED: Final = "limits"
LARGE: Final = "large"
NO_ROW: Final = "conflicts"
COPY: Final = "copy"
CURSORS: Final = "cursors"
TRUNCATED: Final = "truncate"
NO_ANSWER: Final = "unanswered"
ERRORS: Final = "errors"
UNREAD: Final = "unread"
DECIDED: Final = "decided"
CATALOGUE: Final = "catalogue"
DEFINITIONS: Final = "definitions"
TEMPORARY: Final = "temporary"

# Details of the kinds.
RECHECKED: Final = "conditions that READ COMMITTED checks again"
OLD_SERVER: Final = "conditions, before PostgreSQL 18"
CONDITIONS_ON_UNSEEN_WRITES: Final = "conditions on tables with writes that were not seen"
LARGE_TABLES: Final = "conditions on tables with more rows than --most-rows"
TOO_LONG: Final = "statements too long to examine"
CALLED: Final = "functions of the database"
CALLED_BY_PROTOCOL: Final = "function calls of the protocol"
PROCEDURES: Final = "procedures"
TRIGGERS: Final = "effects of triggers"
CASCADES: Final = "rows that foreign keys change"
UNKNOWN_TABLES: Final = "tables that were not found"
VIEWS: Final = "views"
FOREIGN_TABLES: Final = "foreign tables"
RULES: Final = "tables with row security or rules"
NO_KEY: Final = "tables without a primary key"
KEY_TYPE: Final = "tables whose primary key has a type that is not supported"
CHILDREN: Final = "tables that inherit from others, and partitions that a statement names"
PRIVILEGE: Final = "tables that the role may not read"
PARTITIONED: Final = "writes of partitioned tables"
NAMED_OLD: Final = "tables named old or new"
OTHER_TABLE: Final = "rows of another table with the same name"
ALTERED: Final = "statements prepared before their table was altered"
COPIED: Final = "rows of CREATE TABLE AS"
SUBQUERIES: Final = "subqueries"
TWO_PHASES: Final = "two-phase commit"
NO_BEGIN: Final = "transactions whose begin was not recognised"
NO_END: Final = "transactions whose end was not recognised"
PREPARED_EARLIER: Final = "statements that were prepared before the observation"
NOT_OBSERVED: Final = "connections that cannot be observed"
BROKEN: Final = "connections that broke the protocol"
# Of MariaDB, whose writes come from the server's log.
LOADED: Final = "rows of LOAD DATA"
UNCLEAR: Final = "texts whose statements are not certain"
REFUSED: Final = "statements that the server refused with added columns"
UNCHANGED: Final = "rows that an UPDATE found and left as they were"
UNPLACED: Final = "reads after writes whose position is unknown"
IN_NO_LOG: Final = "rows that the server's log does not contain"
CONTRADICTED: Final = "rows that contradict the server's log"
SETTINGS: Final = "sessions with standard_conforming_strings = off"

KINDS: Final[Mapping[str, Kind]] = {
    CONDITIONS: Kind(
        "conditions that isolang cannot evaluate; only the rows that they returned are seen",
        (RECHECKED, OLD_SERVER, CONDITIONS_ON_UNSEEN_WRITES, UNCHANGED),
    ),
    FOREIGN: Kind("rows of writers that are not watched", (IN_NO_LOG, CONTRADICTED)),
    FUNCTIONS: Kind(
        "function calls, which may read and write",
        (CALLED, CALLED_BY_PROTOCOL, PROCEDURES, UNPLACED),
    ),
    "triggers": Kind("changes by triggers and foreign keys", (TRIGGERS, CASCADES)),
    SHAPES: Kind(
        "statements of an unrecognised form",
        (
            COPIED, SUBQUERIES, UNCLEAR, REFUSED, "EXPLAIN ANALYZE", "FROM of another shape",
            "GROUPING SETS", "MERGE", "PREPARE and EXECUTE in SQL", "SELECT DISTINCT",
            "SELECT of no column", "TABLE", "TABLESAMPLE", "UNION, INTERSECT and EXCEPT", "WITH",
            "columns that are renamed", "joins in parentheses",
            "other tables of UPDATE and DELETE", "subqueries in FROM",
        ),
    ),
    TABLES: Kind(
        "tables whose rows cannot be identified",
        (
            UNKNOWN_TABLES, VIEWS, FOREIGN_TABLES, RULES, NO_KEY, KEY_TYPE, CHILDREN, PRIVILEGE,
            PARTITIONED, NAMED_OLD, OTHER_TABLE, ALTERED,
        ),
    ),
    TRUNCATED: Kind("rows that TRUNCATE removed"),
    LIMITED: Kind("rows that LIMIT may have left out"),
    LARGE: Kind("reads of more rows than --most-rows", (LARGE_TABLES, TOO_LONG)),
    NO_ROW: Kind("inserts that conflicted with an existing row"),
    COPY: Kind("rows that were copied (COPY)", (LOADED,)),
    CURSORS: Kind("server-side cursors and streams"),
    OUTSIDE: Kind(
        "statements of transactions whose begin was not watched",
        (NO_BEGIN, NO_END, PREPARED_EARLIER, TWO_PHASES),
    ),
    NO_ANSWER: Kind("statements that were not answered"),
    "databases": Kind("connections to other databases", (NOT_OBSERVED, SETTINGS, BROKEN)),
    ERRORS: Kind("internal errors of the observer"),
    AUTOCOMMIT: Kind("statements outside a transaction, each recorded as a transaction of its "
    "own", harmless=True),
    UNREAD: Kind("writes to tables that no recorded statement reads", harmless=True),
    DECIDED: Kind("reads that cannot matter: each other writer of their tables had committed "
    "before them, or committed after them", harmless=True),
    CATALOGUE: Kind("reads of the catalogue", harmless=True),
    DEFINITIONS: Kind("definitions of tables", harmless=True),
    TEMPORARY: Kind("temporary tables, which no other session sees", harmless=True),
}  # fmt: skip
"""All kinds, by the name used in ``allow_unseen`` and ``--allow-unseen``.

Temporary tables are harmless because other sessions do not see them. Definitions are harmless
because the rows of an altered table are rows of another table in the history.
"""

RETIRED: Final = frozenset({
    "absences", "changes", "deleted", "executemany", "keys", "pipelines", "returning",
    "twins",
})  # fmt: skip
"""Kinds of earlier versions, which are seen now; tests may still name them."""

HARMFUL_KINDS: Final = frozenset(name for name, kind in KINDS.items() if not kind.harmless)
"""The names of the kinds that are not harmless."""

_OF_RECORDINGS: Final = HARMFUL_KINDS | HARMLESS_KINDS  # what recordings lack
_KIND_OF: Final = {one: name for name, kind in KINDS.items() for one in (name, *kind.details)}


def kind_of(what: str) -> str:
    """Return the name of the kind that a thing belongs to: a kind, or one of a kind's details.

    >>> kind_of("views"), kind_of("tables")
    ('tables', 'tables')
    """
    return _KIND_OF[what]


def output_wording(what: str) -> str:
    """Return the output's words for a kind (its meaning) or for a detail (the detail itself)."""
    return KINDS[what].meaning if what in KINDS else what


_LONGEST: Final = 120  # the largest number of characters in an example
_LONGEST_FORM: Final = 4000  # the largest number of characters in a statement without values
_LONGEST_SHOWN_FORM: Final = 400
_MOST_FORMS: Final = 2000  # the largest number of forms to count separately
_MOST_SHOWN: Final = 3  # the largest number of forms in a sentence
OTHER_FORMS: Final = "other statements"
"""Stands for the statements after the first ``_MOST_FORMS`` forms of a kind."""
# SOUND BECAUSE: an INSERT of values, and a COPY into a table, read no rows. With a conflict clause
# or a subquery, they may read rows.
_ADDS: Final = re.compile(
    r'\s*(?:insert\s+into|copy)\s+((?:(?:\w+|"[^"]+")\s*\.\s*)?(?:\w+|"[^"]+"))(.*)', re.I | re.S
)
_READS: Final = re.compile(r"\b(?:select|conflict|with|table|to)\b", re.IGNORECASE)


def table_added_to(text: str) -> str:
    """Return the table of a statement that only adds rows; empty if it may read rows.

    >>> table_added_to("INSERT INTO public.log VALUES (1)"), table_added_to("COPY log FROM STDIN")
    ('log', 'log')
    >>> table_added_to("INSERT INTO log SELECT * FROM account")
    ''
    """
    found = _ADDS.match(text)
    return "" if found is None or _READS.search(found[2]) else base_name(found[1])


def base_name(table: str) -> str:
    """Return a table's name without its schema and quotes, as the catalogue stores it.

    >>> base_name('public."Log"'), base_name("Log")
    ('Log', 'log')
    """
    last = table.rpartition(".")[2].strip()
    return last[1:-1] if last.startswith('"') else last.lower()


def shortened(text: str) -> str:
    """Return a statement's text on one line, without its columns if it is long."""
    return one_line(text, _LONGEST)


def form_of(text: str) -> str:
    """Return a statement without values, on one line."""
    return _form(text[:_LONGEST_FORM])


@lru_cache(maxsize=512)
def _form(text: str) -> str:
    return one_line(shape_of_text(text), _LONGEST_FORM)


def _form_to_show(form: str) -> str:
    """Return a statement without values, shortened for a line of the output."""
    return one_line(form, _LONGEST_SHOWN_FORM)


class Unseen(Counter[str]):
    """The counts of unrecorded activity, by kind name or detail.

    Attributes:
        examples: the first example of each, which is a statement or row with the caller's
            ``file:line``.
        forms: for each kind or detail, how often each statement occurred, without its values.
        tables: for each statement without its values, the tables that it reads or writes; missing
            if these are only those that it names
            (:func:`isolang.observe.sql.named_tables.tables_of`).
        read: the tables read by statements, without their schemas.
        reads_unknown: whether a statement that was not recorded may read any table.
    """

    def __init__(self, caller: Callable[[], str] = str) -> None:
        """Create the counts."""
        super().__init__()
        self.examples: dict[str, str] = {}
        self.forms: dict[str, Counter[str]] = {}
        self.tables: dict[str, set[str]] = {}
        self.read: set[str] = set()
        self.reads_unknown = False
        self._caller = caller
        # The counts by kind and table, and by kind, table and form.
        self._added: Counter[tuple[str, str]] = Counter()
        self._forms: dict[tuple[str, str], Counter[str]] = {}
        self._first: dict[tuple[str, str], str] = {}  # the first example for each kind and table

    def note(
        self,
        what: str,
        example: str = "",
        where: str = "",
        *,
        number: int = 1,
        table: str = "",
        form: str = "",
        tables: Collection[str] = (),
    ) -> None:
        """Count something unseen, and keep the first example with the caller's position.

        Args:
            table: the table that the statement adds rows to, if it does nothing else.
            form: what to count the example with, if not with those that differ from it in values.
            tables: the tables that the statement reads or writes, if it does not name them all.
        """
        assert what in _KIND_OF, what
        self[what] += number
        self._added[what, table] += number
        form = form_of(form or example)
        if tables:
            self.tables.setdefault(form, set()).update(tables)
        for forms in (
            self.forms.setdefault(what, Counter()),
            self._forms.setdefault((what, table), Counter()),
        ):
            forms[form if form in forms or len(forms) < _MOST_FORMS else OTHER_FORMS] += number
        if (what, table) not in self._first:
            shown = shortened(example)
            shown = ", ".join(filter(None, (shown, where or self._caller())))
            self._first[what, table] = shown
            self.examples.setdefault(what, shown)

    def note_read(self, names: Collection[str] | None) -> None:
        """Note the tables that an unrecorded statement may read; ``None`` if that is unknown."""
        self.read.update(map(base_name, names or ()))
        self.reads_unknown |= names is None

    def __bool__(self) -> bool:
        """Return whether something unseen may hide a violation; harmless kinds hide none."""
        return any(number and kind_of(what) in HARMFUL_KINDS for what, number in self.items())

    def __deepcopy__(self, memo: object) -> Unseen:
        """Return a copy; that of a Counter would have its numbers alone."""
        made = Unseen(self._caller)
        made.add(self)
        return made

    def add(self, other: Unseen) -> None:
        """Add the counts of another observer."""
        for what, number in other.items():  # Counter.update relies on the truth of a counter
            self[what] += number
        self.examples = other.examples | self.examples
        self.tables = other.tables | self.tables
        self.read |= other.read
        self.reads_unknown |= other.reads_unknown
        self._added.update(other._added)
        for what, forms in other.forms.items():
            self.forms.setdefault(what, Counter()).update(forms)
        for of_table, forms in other._forms.items():
            self._forms.setdefault(of_table, Counter()).update(forms)
        self._first = other._first | self._first

    def note_decided(self, what: str, form: str, caller: str) -> None:
        """Count one of the unseen reads of a kind as one that cannot matter."""
        self[what] -= 1
        self._added[what, ""] -= 1
        for forms in (self.forms[what], self._forms[what, ""]):
            forms[form if form in forms else OTHER_FORMS] -= 1
        self.note(DECIDED, form, caller)

    def settled(self) -> Unseen:
        """Return the counts, with a separate kind for writes to tables that no statement reads."""
        found = Unseen()
        found.update(self)
        found.read, found.reads_unknown = set(self.read), self.reads_unknown
        found.tables = dict(self.tables)
        for (what, table), number in self._added.items():
            unread = bool(table) and table not in self.read and not self.reads_unknown
            unread = unread and kind_of(what) in HARMFUL_KINDS
            name, example = UNREAD if unread else what, self._first[what, table]
            found[what] -= number
            found[name] += number
            found._added[name, ""] += number
            found._first.setdefault((name, ""), example)
            forms = self._forms[what, table]
            found.forms.setdefault(name, Counter()).update(forms)
            found._forms.setdefault((name, ""), Counter()).update(forms)
            found.examples.setdefault(name, example)
        for what in [one for one, number in found.items() if number <= 0]:
            del found[what]
        return found

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield each kind with its count and example: ``2; first: account/a, app.py:12``.

        If the statements differ in more than values, yield the most frequent ones instead.
        """
        for kind, number in sorted(self.items()):
            example, forms = self.examples.get(kind, ""), self.most_frequent(kind)
            if len(forms) > 1:
                shown = [f"{count} × {_form_to_show(form)}" for form, count in forms[:_MOST_SHOWN]]
                more = [f"{len(forms) - _MOST_SHOWN} more forms"] * (len(forms) > _MOST_SHOWN)
                yield kind, f"{number}: {'; '.join([*shown, *more])}"
            else:
                yield kind, f"{number}; first: {example}" if example else str(number)

    def most_frequent(self, what: str) -> list[tuple[str, int]]:
        """Return the forms of the statements of a kind or detail, with their counts."""
        forms = self.forms.get(what, Counter())
        named = [(form, number) for form, number in forms.items() if form and number > 0]
        return sorted(named, key=lambda form: (-form[1], form[0]))


def accepted_kinds(allow_unseen: bool | Collection[str]) -> frozenset[str]:
    """Return the kinds of unseen activity that do not prevent a valid verdict.

    Raises:
        IsolangError: a name is not a kind's name.
    """
    if isinstance(allow_unseen, bool):
        return frozenset(KINDS) if allow_unseen else frozenset(KINDS) - HARMFUL_KINDS
    named = {allow_unseen} if isinstance(allow_unseen, str) else set(allow_unseen)
    for name in sorted(map(str, named - KINDS.keys() - RETIRED)):
        expected = ", ".join(sorted(HARMFUL_KINDS))
        raise IsolangError(f"allow_unseen: unknown kind (got {name!r}, expected {expected})")
    return frozenset(KINDS) - HARMFUL_KINDS | (named - RETIRED)


def reason_for_unknown(unseen: Unseen, accepted: Collection[str]) -> tuple[str, list[str]]:
    """Return the reason why a valid verdict becomes unknown, and the unaccepted kinds.

    Both are empty if nothing was unseen, or only activity of accepted kinds.
    """
    phrases = not_allowed(unseen_phrases(unseen), accepted)
    return (unseen_reason(phrases), [*phrases]) if phrases else ("", [])


def unseen_phrases(unseen: Unseen) -> dict[str, tuple[str, ...]]:
    """Return what a recording lacks: by kind, the things counted in words.

    >>> unseen = Unseen()
    >>> unseen.note(LIMITED, "SELECT 1")
    >>> unseen_phrases(unseen)
    {'limits': ('rows that LIMIT may have left out (1; first: SELECT 1)',)}
    """
    phrases: dict[str, tuple[str, ...]] = {}
    for what, detail in unseen.settled().lines():
        if (kind := kind_of(what)) in _OF_RECORDINGS:
            phrases[kind] = (*phrases.get(kind, ()), f"{output_wording(what)} ({detail})")
    return phrases


def unknown_if_unseen(verdict: Valid, unseen: Unseen, accepted: Collection[str]) -> Valid | Unknown:
    """Return the verdict, or *unknown* if there is unseen activity of an unaccepted kind."""
    from isolang.verdict import unknown_instead

    reason, kinds = reason_for_unknown(unseen, accepted)
    if not kinds:
        return verdict
    names = ", ".join(f'"{kind}"' for kind in kinds)
    hint = f"hint: allow_unseen={{{names}}} accepts this"
    return unknown_instead(verdict, f"{reason}; {hint}", "unseen")
