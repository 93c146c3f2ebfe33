"""The words of the language, in a table with one row per relation or set.

A row contains all properties of a word that do not depend on a history: the word's sort, what it
compares, how it is drawn, and its meaning in one sentence. All word lists are derived from this
table. Each interpreter implements the words' meanings in its own domain. To add a word, add a row;
any interpreter that does not know the new word then fails immediately.
``native/core/relations.def`` contains the names for C++.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, Literal, get_args

from msgspec import Struct

Name = Literal[
    "T", "W", "R", "label", "level", "id", "init", "so", "rt", "group-rt", "same-group",
    "same-label", "done", "late", "locked", "committed-before", "committed-after",
    "answered-before", "statement", "po", "tx", "cand", "vo", "pred", "last-write", "rf", "wr",
    "ww", "rw", "iwr", "pwr", "irw", "prw", "co", "ar", "vis", "conflict",
]  # fmt: skip

Element = Literal["transaction", "event", "any"]
Level = Literal["transaction", "statement", "operation"]
Compared = Literal["times", "moments", "sessions", "groups", "labels", "levels"]
Walk = Literal["statements", "operations"]
Colour = Literal["reads", "versions", "overwrites", "order", "time"]
Place = Literal["begin", "end", "first", "read", "write"]


class Sort(Struct, frozen=True):
    """The sort of an expression.

    A set contains elements of kind ``left``, and a relation leads from ``left`` to ``right``. The
    kind ``any`` stands for both.
    """

    kind: Literal["set", "relation", "any"]
    left: Element = "any"
    right: Element = "any"

    def __str__(self) -> str:
        if self.kind == "any":
            return "a set or relation"
        if self.kind == "set":
            return "a set" if self.left == "any" else f"a set of {self.left}s"
        if self.left == self.right:
            return "a relation" if self.left == "any" else f"a relation on {self.left}s"
        return f"a relation from {self.left}s to {self.right}s"


_TXN: Final = Sort("relation", "transaction", "transaction")
_TXNS: Final = Sort("set", "transaction")
_EVENT: Final = Sort("relation", "event", "event")
_EVENTS: Final = Sort("set", "event")
_TO_EVENT: Final = Sort("relation", "transaction", "event")
_TO_TXN: Final = Sort("relation", "event", "transaction")


class Word(Struct, frozen=True, kw_only=True):
    """A word of the language.

    Attributes:
        meaning: the condition under which a relation relates ``{a}`` to ``{b}``, or a set contains
            ``{a}``.
        keyed: whether users may write ``name[x]`` for the part of the relation on one key.
        named: whether a quoted name follows the word, as in ``label "audit"``.
        fragment: the library file that defines the word; empty for a builtin word.
        transitive: whether r ; r ⊆ r for the relation r over all keys. Used in simplifications.
        contains_init: whether the relation relates the initial transaction to all others.
        level: whether the word is about whole transactions, statements that read, or single
            operations.
        compares: the data that the word needs from a history: transaction times, operation and
            COMMIT times, sessions, session groups, transaction labels, or requested levels.
        follows: the chosen relations that the relation depends on, such as ``rf`` and ``ww`` for
            ``rw``.
        part_of: the relation that this relation is a part of, with only its pairs from item reads
            (``i…``) or only those from predicate reads (``p…``).
        letter: whether the word can label edges in event graphs and refutations.
        filtered: whether there is a separate letter for the relation's steps between accesses to
            one key, such as ``rt[W,R]``.
        between_commits: the kinds of walks (over statements or operations) where the letter may
            lead from one COMMIT to another.
        colour: the colour of the relation's edges; several words may share a colour.
        dash: the alternating lengths of dashes and gaps in the relation's edges; empty for solid
            lines.
        joins: the points on drawn transactions (such as begin and end) at which edges leave the
            first transaction and enter the second.
    """

    name: Name
    sort: Sort
    meaning: str
    keyed: bool = False
    named: bool = False
    fragment: str = ""
    transitive: bool = False
    contains_init: bool = False
    level: Level = "transaction"
    compares: tuple[Compared, ...] = ()
    follows: tuple[Name, ...] = ()
    part_of: Name | None = None
    letter: bool = False
    filtered: bool = False
    between_commits: tuple[Walk, ...] = ()
    colour: Colour = "order"
    dash: tuple[float, ...] = ()
    joins: tuple[Place, Place] = ("end", "begin")

    @property
    def sentence(self) -> str:
        """The word's meaning as a phrase such as ``relates a to b if …``."""
        verb = "contains a" if self.sort.kind == "set" else "relates a to b"
        return f"{verb} if {self.between('a', 'b')}"

    def between(self, a: str, b: str) -> str:
        """Return the word's meaning with the names of two transactions or operations filled in."""
        return self.meaning.format(a=a, b=b)


VOCABULARY: Final[tuple[Word, ...]] = (
    Word(name="T", sort=_TXNS, meaning="{a} is a transaction that counts"),
    Word(name="W", sort=_TXNS, keyed=True, meaning="{a} wrote a version (of the key)"),
    Word(name="R", sort=_TXNS, keyed=True,
         meaning="{a} read (the key) before writing it, if it wrote it"),
    Word(name="label", sort=_TXNS, named=True, compares=("labels",),
         meaning="{a} has the label, a name or a pattern with `*`"),
    Word(name="level", sort=_TXNS, named=True, compares=("levels",),
         meaning="{a} was asked to run at the level, a name or a pattern with `*`"),
    Word(name="id", sort=Sort("relation"), meaning="{a} is {b}"),
    Word(name="init", sort=_TXN, transitive=True, contains_init=True, letter=True,
         between_commits=("statements", "operations"), dash=(1.5, 5),
         meaning="{a} is the initial state, which comes before {b}"),
    Word(name="so", sort=_TXN, transitive=True, contains_init=True, compares=("sessions",),
         letter=True, filtered=True, between_commits=("statements", "operations"), dash=(1.5, 3),
         meaning="{a} comes before {b} in session order"),
    Word(name="rt", sort=_TXN, transitive=True, contains_init=True, compares=("times",),
         letter=True, filtered=True, between_commits=("statements", "operations"),
         colour="time", dash=(8, 3, 1.5, 3), meaning="{a} had ended before {b} began"),
    Word(name="group-rt", sort=_TXN, transitive=True, compares=("times", "groups"),
         letter=True, between_commits=("statements",), colour="time", dash=(8, 3, 3, 3),
         meaning="{a}, of the same group, had ended before {b} began"),
    Word(name="same-group", sort=_TXN, compares=("groups",),
         meaning="{a} and {b} are different transactions of one group"),
    Word(name="same-label", sort=_TXN, compares=("labels",),
         meaning="{a} and {b} are different transactions that share a label"),
    Word(name="done", sort=_TXN, compares=("times", "moments"), letter=True, filtered=True,
         between_commits=("statements", "operations"), colour="time", dash=(8, 3, 1.5, 3, 1.5, 3),
         joins=("end", "end"), meaning="{a} had committed before {b} sent its COMMIT"),
    Word(name="late", sort=_TXN, compares=("times", "moments"), letter=True, filtered=True,
         colour="time", dash=(3, 3, 8, 3, 3, 3), joins=("first", "end"),
         meaning="the first statement of {a} was answered before {b} sent its COMMIT"),
    Word(name="locked", sort=_TXN, compares=("times", "moments"), letter=True,
         between_commits=("statements", "operations"), colour="time", dash=(12, 3, 3, 3),
         joins=("write", "end"),
         meaning="{a}'s write of a key that {b} wrote too was answered before {b} sent its COMMIT"),
    Word(name="committed-before", sort=_TO_EVENT, level="statement", compares=("times", "moments"),
         letter=True, colour="time", dash=(10, 3, 2, 3), joins=("end", "read"),
         meaning="{a} had committed before the read {b} was sent"),
    Word(name="committed-after", sort=_TO_TXN, level="statement", compares=("times", "moments"),
         letter=True, colour="time", dash=(6, 3, 10, 3), joins=("read", "end"),
         meaning="the read {a} was answered before {b} sent its COMMIT"),
    Word(name="answered-before", sort=_EVENT, level="statement", compares=("times", "moments"),
         letter=True, colour="time", dash=(2, 3, 6, 3), joins=("end", "read"),
         meaning="the read {a} was answered before the read {b} was sent"),
    Word(name="statement", sort=_EVENT, level="statement",
         meaning="{a} and {b} are reads of one statement"),
    Word(name="po", sort=_EVENT, level="operation", letter=True, dash=(3, 3),
         meaning="{a} comes before {b} in their transaction"),
    Word(name="tx", sort=_TO_TXN, level="operation", letter=True, dash=(1.5, 2),
         joins=("end", "end"), meaning="{a} is an operation of {b}"),
    Word(name="cand", sort=_EVENT, keyed=True, level="operation",
         meaning="{a} is a write that the read {b} may have read"),
    Word(name="vo", sort=_TXN, keyed=True,
         meaning="list reads, or stated versions, show that {a}'s (of the key) comes before {b}'s"),
    Word(name="pred", sort=_EVENTS, level="operation",
         meaning="{a} is a read by which a predicate read says that no matching row was there"),
    Word(name="last-write", sort=_EVENTS, keyed=True, level="operation",
         meaning="{a} is the last write (of the key) in its transaction"),
    Word(name="rf", sort=_EVENT, keyed=True, fragment="prelude.iso", level="operation",
         meaning="{a} is the write that the read {b} read"),
    Word(name="wr", sort=_TXN, keyed=True, fragment="prelude.iso", follows=("rf",), letter=True,
         colour="reads", joins=("write", "read"), meaning="{b} read what {a} wrote"),
    Word(name="ww", sort=_TXN, keyed=True, fragment="adya.iso", contains_init=True, letter=True,
         between_commits=("statements", "operations"), colour="versions", dash=(9, 3),
         joins=("write", "write"), meaning="{b} wrote a later version than {a}"),
    Word(name="rw", sort=_TXN, keyed=True, fragment="adya.iso", follows=("rf", "ww"), letter=True,
         colour="overwrites", dash=(4, 3), joins=("read", "write"),
         meaning="{b} overwrote what {a} had read"),
    Word(name="iwr", sort=_TXN, keyed=True, fragment="prelude.iso", follows=("rf",), part_of="wr",
         letter=True, colour="reads", dash=(14, 2), joins=("write", "read"),
         meaning="{b} read a row that {a} wrote"),
    Word(name="pwr", sort=_TXN, keyed=True, fragment="prelude.iso", follows=("rf",), part_of="wr",
         letter=True, colour="reads", dash=(2, 2), joins=("write", "read"),
         meaning="a predicate of {b} passed over what {a} wrote"),
    Word(name="irw", sort=_TXN, keyed=True, fragment="adya.iso", follows=("rf", "ww"), part_of="rw",
         letter=True, colour="overwrites", dash=(6, 2, 2, 2), joins=("read", "write"),
         meaning="{b} overwrote a row that {a} had read"),
    Word(name="prw", sort=_TXN, keyed=True, fragment="adya.iso", follows=("rf", "ww"), part_of="rw",
         letter=True, colour="overwrites", dash=(2, 4), joins=("read", "write"),
         meaning="{b} overwrote what a predicate of {a} had passed over"),
    Word(name="co", sort=_TXN, fragment="commit-order.iso", contains_init=True,
         meaning="{a} comes before {b} in the commit order"),
    Word(name="ar", sort=_TXN, fragment="visibility.iso", contains_init=True,
         meaning="{a} comes before {b} in the arbitration"),
    Word(name="vis", sort=_TXN, fragment="visibility.iso", contains_init=True,
         meaning="{a} is visible to {b}"),
    Word(name="conflict", sort=_TXN, fragment="visibility.iso",
         meaning="{a} and {b} are different writers of one key"),
)  # fmt: skip

ROWS: Final[Mapping[str, Word]] = {word.name: word for word in VOCABULARY}
assert tuple(ROWS) == get_args(Name)

# --- lists derived from the table, in row order ---

BUILTIN_WORDS: Final = tuple(word for word in VOCABULARY if not word.fragment)
"""The words defined for every history, without a definition in any text."""

BUILTIN_UNKEYED: Final = frozenset(word.name for word in BUILTIN_WORDS if not word.keyed)
"""The builtin words without a separate part for each key."""

FRAGMENTS: Final[Mapping[str, str]] = {
    **{word.name: word.fragment for word in VOCABULARY if word.fragment},
    "obs": "prelude.iso",
}
"""For each name defined by a library fragment, the fragment's file. All names are relations, except
``obs``, which is a function from relations to relations.
"""

SETS: Final = frozenset(word.name for word in VOCABULARY if word.sort.kind == "set")
"""The words that are sets."""

TESTS: Final = tuple(w.name for w in VOCABULARY if w.sort == _TXNS and w.keyed)
"""The letters ``[W]`` and ``[R]`` in walks. They are tests: their steps stay at a transaction that
writes, or that has an external read, respectively.
"""

NAMED: Final = tuple(word.name for word in VOCABULARY if word.named)
"""The words ``label`` and ``level``: tests that select a set by a quoted name."""

OF_EVENTS: Final = frozenset(w.name for w in VOCABULARY if "event" in (w.sort.left, w.sort.right))
"""The words about single operations."""

TRANSITIVE: Final = frozenset(word.name for word in VOCABULARY if word.transitive)
"""The relations r with r ; r ⊆ r. ``so`` and ``rt`` are strict orders that contain ``init``. In
them, unfinished transactions have no outgoing pairs. ``init ; init`` is empty.
"""

BUILTIN_ORDERS: Final = tuple(
    w.name for w in BUILTIN_WORDS if w.transitive and w.letter and w.compares
)
"""The builtin strict orders of transactions: ``so``, ``rt`` and ``group-rt``."""

NO_ORDERS: Final = tuple(
    w.name for w in BUILTIN_WORDS if w.letter and w.level == "transaction" and not w.transitive
)
"""The builtin letters between transactions that are not orders. A walk that stays on one key cannot
use such letters: two steps may pass through a transaction that does not access the key, and unlike
an order, the relation need not have a direct pair to replace both steps.
"""

FROM_T0: Final = tuple(w.name for w in BUILTIN_WORDS if w.contains_init)
"""The builtin relations that contain ``init``: ``init``, ``so`` and ``rt``."""

DEPENDENCIES: Final = tuple(
    w.name for w in VOCABULARY if w.letter and w.fragment and w.part_of is None
)
"""Adya's dependencies ``wr``, ``ww`` and ``rw``, for item reads and predicate reads together."""

BEGIN_WITH_T0: Final = frozenset(w.name for w in VOCABULARY if w.fragment and w.contains_init)
"""The chosen relations that contain ``init``, even if their declarations do not require it."""

OF_READS: Final = frozenset(word.name for word in VOCABULARY if "rf" in word.follows)
"""The relations whose pairs depend on ``rf``."""

OVERWRITING: Final = frozenset(word.name for word in VOCABULARY if "ww" in word.follows)
"""The relations whose pairs depend on ``ww``."""

PARTS: Final[Mapping[str, tuple[str, str]]] = {
    whole: (item.name, predicate.name)
    for whole in dict.fromkeys(word.part_of for word in VOCABULARY)
    if whole is not None
    for item, predicate in [[word for word in VOCABULARY if word.part_of == whole]]
}
"""For each relation that depends on reads, its part from item reads, and its part from predicate
reads.
"""

SPLIT: Final = OF_READS - PARTS.keys()
"""The relations that distinguish item reads from predicate reads."""

COMPARING_TIMES: Final = frozenset(word.name for word in VOCABULARY if "times" in word.compares)
"""All relations that compare times."""

MOMENTS: Final = tuple(
    w.name for w in VOCABULARY if "moments" in w.compares and w.level == "transaction"
)
"""The relations that compare a moment in a transaction with the time when COMMIT is sent."""

OF_STATEMENTS: Final = tuple(
    w.name for w in VOCABULARY if "moments" in w.compares and w.level == "statement"
)
"""The relations that compare a statement's time with the time of COMMIT or of another statement."""

OF_BEGIN_AND_END: Final = tuple(
    w.name for w in VOCABULARY if "times" in w.compares and "moments" not in w.compares
)
"""The relations that compare the end of one transaction with the begin of another."""

COMPARING_SESSIONS: Final = frozenset(w.name for w in VOCABULARY if "sessions" in w.compares)
"""All relations that compare sessions."""

COMPARING_GROUPS: Final = frozenset(w.name for w in VOCABULARY if "groups" in w.compares)
"""All relations that compare session groups."""

COMPARING_NAMES: Final[Mapping[str, frozenset[str]]] = {
    what: frozenset(w.name for w in VOCABULARY if what in w.compares)
    for what in ("labels", "levels")
}
"""The words that compare transaction labels, and the words that compare requested levels."""

FILTERED_RELATIONS: Final[tuple[str, ...]] = tuple(
    word.name for word in VOCABULARY if word.filtered
)

FILTERED: Final = tuple(
    f"{name}[{a},{b}]" for name in FILTERED_RELATIONS for a in "WR" for b in "WR"
)
"""The letters for a builtin relation's steps between transactions that access the same key. For
example, ``rt[W,R]`` is ``for x: [W[x]] ; rt ; [R[x]]``.
"""

RELATIONS: Final = (
    *(word.name for word in VOCABULARY if word.letter and word.sort == _TXN),
    *FILTERED,
)
"""The letters that lead from one transaction to another."""

STATEMENT_LETTERS: Final[tuple[str, ...]] = tuple(
    w.name for w in VOCABULARY if w.letter and w.name in OF_EVENTS
)
"""The letters that lead to or from a statement, including from a statement to its own COMMIT."""

BETWEEN_COMMITS_BY_STATEMENT: Final = tuple(
    w.name for w in VOCABULARY if "statements" in w.between_commits
)
BETWEEN_COMMITS_BY_OPERATION: Final = tuple(
    w.name for w in VOCABULARY if "operations" in w.between_commits
)
"""The letters that lead from one COMMIT to another in walks over operations."""


def word_of(name: str) -> Name:
    """Return a name typed as a word of the language.

    With this type, a type checker reports words that an interpreter does not handle.

    Raises:
        KeyError: if the name is not a word of the language.
    """
    return ROWS[name].name


@cache
def relation_of(letter: str) -> str:
    """Return a letter's relation, such as ``rt`` for ``rt[W,R]`` or ``wr`` for ``wr["a/*"]``."""
    return letter.partition("[")[0].partition(" ")[0]


@cache
def whole_letter(letter: str) -> str:
    """Return a letter without its quoted names.

    >>> whole_letter('rt[W,R][not "a/*"]'), whole_letter('label "a"'), whole_letter("wr")
    ('rt[W,R]', 'label', 'wr')
    """
    whole = letter.partition('"')[0].removesuffix("not ")
    return whole[:-1] if whole != letter else letter


def is_test(letter: str) -> bool:
    """Return whether a letter is a test, so that its steps stay at the same transaction."""
    return whole_letter(letter) in (*TESTS, *NAMED)


def ends_of(letter: str) -> tuple[str, ...]:
    """Return the tests at both ends of a letter, such as ``W`` and ``R`` for ``rt[W,R]``.

    The result is empty if the letter has no tests.
    """
    ends = whole_letter(letter).rstrip("]").partition("[")[2]
    return tuple(ends.split(",")) if ends else ()
