"""Represents split schedules: their transactions, and the dependencies between them."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from isolang.errors import UnsupportedError
from isolang.foresee.templates import Branch, TemplateStatement

Level: TypeAlias = Literal["mvrc", "si", "ssi"]
"""PostgreSQL's levels READ COMMITTED, REPEATABLE READ and SERIALIZABLE."""

LEVELS: Final[tuple[Level, ...]] = ("mvrc", "si", "ssi")

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
