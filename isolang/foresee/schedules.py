"""Represents split schedules: their transactions, and the dependencies between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from isolang.errors import UnsupportedError
from isolang.foresee.templates import Branch, TemplateStatement

Level: TypeAlias = Literal[
    "mvrc",
    "si",
    "ssi",
    "innodb-read-committed",
    "innodb-repeatable-read",
    "innodb-snapshot",
    "innodb-serializable",
]
"""A level of PostgreSQL or InnoDB. With ``innodb_snapshot_isolation``, which ``innodb-snapshot``
stands for, REPEATABLE READ refuses to lock a row that has changed since the snapshot."""

LEVELS: Final[tuple[Level, ...]] = ("mvrc", "si", "ssi")
"""PostgreSQL's levels READ COMMITTED, REPEATABLE READ and SERIALIZABLE."""

KEEPS_LOCKED: Final = frozenset[Level](("innodb-repeatable-read", "innodb-snapshot"))
"""The levels at which plain reads see a snapshot, which the first of them takes, and all other
statements see the newest rows. What these read does not change until their transaction ends,
because they lock it, with the gaps between the rows."""

_READS_NEWEST: Final = frozenset[Level](("mvrc", "innodb-read-committed"))
_FIRST_UPDATER_WINS: Final = frozenset[Level](("si", "ssi", "innodb-snapshot"))


def levels_of(level: Level) -> tuple[Level, ...]:
    """Return the levels of the database that a level belongs to, the lowest first.

    >>> levels_of("innodb-snapshot")
    ('innodb-read-committed', 'innodb-snapshot', 'innodb-serializable')
    """
    if not is_innodb(level):
        return LEVELS
    repeatable: Level = level if level in KEEPS_LOCKED else "innodb-repeatable-read"
    return "innodb-read-committed", repeatable, "innodb-serializable"


def is_innodb(level: Level) -> bool:
    """Return whether a level is one of InnoDB."""
    return level.startswith("innodb-")


def reads_newest(level: Level) -> bool:
    """Return whether each statement sees what was committed before it."""
    return level in _READS_NEWEST


def first_updater_wins(level: Level) -> bool:
    """Return whether a row cannot be written that has changed since the snapshot."""
    return level in _FIRST_UPDATER_WINS


def opens_snapshot(level: Level, statement: TemplateStatement) -> bool:
    """Return whether a statement takes the snapshot if no earlier one of its transaction has."""
    return statement.is_plain if level in KEEPS_LOCKED else not reads_newest(level)


def snapshot_place(level: Level, statements: Sequence[TemplateStatement]) -> int:
    """Return the index of the statement that takes the snapshot; their number if none does."""
    places = (at for at, one in enumerate(statements) if opens_snapshot(level, one))
    return next(places, len(statements))


MOST_STEPS: Final = 200_000
"""The largest number of steps in a search for split schedules, after which it gives up."""

KeyValue: TypeAlias = int | tuple[int]
"""The value of a parameter. A tuple contains a constant. An integer of at least 0 represents the
value of a parameter of T1. A negative integer represents a value that no parameter of T1 has; each
transaction has its own negative integers."""

Assignment: TypeAlias = dict[str, KeyValue]
Row: TypeAlias = tuple[str, tuple[KeyValue, ...]]


class Link(Struct, frozen=True, kw_only=True):
    """A dependency of a transaction in a chain on the previous one.

    Attributes:
        kind: ``conflict`` if the two transactions conflict; ``session`` if the transaction follows
            the previous one in the same session.
        earlier: the conflicting statement of the previous transaction; ``None`` for ``session``.
        later: the conflicting statement of this transaction; ``None`` for ``session``.
    """

    kind: Literal["conflict", "session"]
    earlier: TemplateStatement | None = None
    later: TemplateStatement | None = None


class Instance(Struct, frozen=True, kw_only=True):
    """A transaction: a branch with values for some parameters.

    Each other parameter has a value that no other transaction has.
    """

    branch: Branch
    values: Assignment


class SplitSchedule(Struct, frozen=True, kw_only=True):
    """A split schedule that may be a counterexample.

    Attributes:
        after: the index of the last statement executed by T1 before T2 begins.
        overlooking: the statement b1 of T1, which does not see a write of T2.
        missed: the statement of T2 that makes this write.
        chain: the transactions T2 … Tm, in execution order.
        links: how each of T3 … Tm depends on the previous transaction.
    """

    split: Instance
    after: int
    overlooking: TemplateStatement
    missed: TemplateStatement
    chain: tuple[Instance, ...]
    links: tuple[Link, ...]


class ChainedTransaction(Struct, frozen=True, kw_only=True):
    """A transaction in a chain: a branch with the parameter values needed for its conflicts."""

    branch: int
    values: tuple[tuple[str, KeyValue], ...]


class SearchBudget:
    """Counts the steps of a search, and stops the search after too many."""

    def __init__(self, most: int = MOST_STEPS) -> None:
        self._most = most
        self._done = 0

    def step(self) -> None:
        """Count one step of the search.

        Raises:
            UnsupportedError: the search has taken more steps than allowed.
        """
        self._done += 1
        if self._done > self._most:
            raise UnsupportedError(
                f"the search for split schedules gave up after {self._most:,} steps"
            )
