"""Represents split schedules: their transactions, and how these depend on each other."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from isolang.errors import UnsupportedError
from isolang.foresee.templates import Branch, TemplateStatement

Level: TypeAlias = Literal["mvrc", "si", "ssi"]
"""The levels READ COMMITTED, REPEATABLE READ and SERIALIZABLE, as PostgreSQL implements them."""

LEVELS: Final[tuple[Level, ...]] = ("mvrc", "si", "ssi")

MOST_STEPS: Final = 200_000
"""The number of steps after which a search for split schedules gives up."""

KeyValue: TypeAlias = int | tuple[int]
"""The value of a parameter. A tuple contains a constant. An integer that is at least 0 stands for a
value of a parameter of T1. A negative integer stands for a value that no parameter of T1 has; each
transaction has its own negative integers."""

Assignment: TypeAlias = dict[str, KeyValue]
Row: TypeAlias = tuple[str, tuple[KeyValue, ...]]


class Link(Struct, frozen=True, kw_only=True):
    """A dependency of a transaction in a chain on the previous transaction.

    Attributes:
        kind: ``conflict`` if the two transactions conflict, ``session`` if the transaction follows
            in the same session.
        earlier: the conflicting statement of the previous transaction; ``None`` for ``session``.
        later: the conflicting statement of this transaction; ``None`` for ``session``.
    """

    kind: Literal["conflict", "session"]
    earlier: TemplateStatement | None = None
    later: TemplateStatement | None = None


class Instance(Struct, frozen=True, kw_only=True):
    """A transaction: a branch with values for some parameters.

    Each of its other parameters has a value that no other transaction has.
    """

    branch: Branch
    values: Assignment


class SplitSchedule(Struct, frozen=True, kw_only=True):
    """A split schedule that may be a counterexample.

    Attributes:
        split: T1, the transaction that is split.
        after: the index of the last statement that T1 executes before T2 begins.
        missed: the statement of T2 that writes what b1, a statement of T1, does not see.
        chain: the transactions T2 … Tm, in the order in which they run.
        links: how each of T3 … Tm depends on the previous transaction.
    """

    split: Instance
    after: int
    missed: TemplateStatement
    chain: tuple[Instance, ...]
    links: tuple[Link, ...]


class ChainedTransaction(Struct, frozen=True, kw_only=True):
    """A transaction in a chain: a branch, with the parameter values that its conflicts need."""

    branch: int
    values: tuple[tuple[str, KeyValue], ...]


class SearchBudget:
    """Counts the steps of a search, and ends the search after too many steps."""

    def __init__(self, most: int = MOST_STEPS) -> None:
        self._most = most
        self._done = 0

    def step(self) -> None:
        """Count one step of the search.

        Raises:
            UnsupportedError: if the search has taken more steps than allowed.
        """
        self._done += 1
        if self._done > self._most:
            raise UnsupportedError(
                f"the search for split schedules gave up after {self._most:,} steps"
            )
