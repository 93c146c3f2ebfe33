"""Collects the conditions of a history that the server must evaluate on row versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.evaluated import ServerCondition

_MOST: Final = 20_000  # the largest number of distinct conditions
_MOST_READS: Final = 1_000_000  # the largest number of predicate reads with such conditions


class EvaluatedCondition(Struct, kw_only=True):
    """A condition, and which versions satisfy it.

    Attributes:
        plain: with a LIMIT that was reached, the same condition without it.
        evaluated: the number of the table's versions that it has been evaluated on.
        matches: the versions that satisfy it; with a LIMIT, those before the last returned row.
        ties: with a LIMIT, the versions that satisfy it and have the rank of the last returned row.
        why: why the versions that satisfy it are not known; empty if they are.
        is_wrong: whether the server's answers contradict each other, so this is a defect.
        met: how many statements met it.
        settled: how many of these met it before it was evaluated.
    """

    table: Table
    condition: ServerCondition
    plain: EvaluatedCondition | None = None
    evaluated: int = 0
    matches: set[str] = field(default_factory=set)
    ties: set[str] = field(default_factory=set)
    why: str = ""
    is_wrong: bool = False
    met: int = 1
    settled: int = 0

    @property
    def is_new(self) -> bool:
        """Return whether a statement met it since it was evaluated."""
        return self.met > self.settled

    @property
    def is_defect(self) -> bool:
        """Return whether the server's answers contradict each other."""
        return self.is_wrong or (self.plain is not None and self.plain.is_wrong)

    @property
    def reason(self) -> str:
        """Return why the versions that satisfy it are not known; empty if they are."""
        return self.why or (self.plain.why if self.plain is not None else "")


class EvaluatedConditions:
    """The distinct conditions of a history, by table.

    Attributes:
        work: how many pairs of a condition and a version the server has evaluated.
        reads: how many predicate reads have such conditions.
        evaluated: the conditions that the server has evaluated, by identity.
        evaluated_reads: how many predicate reads in the history have one of these.
    """

    def __init__(self) -> None:
        self._tables: dict[str, dict[ServerCondition, EvaluatedCondition]] = {}
        self._count = 0
        self.work = self.reads = self.evaluated_reads = 0
        self.evaluated: set[int] = set()

    def add(self, table: Table, condition: ServerCondition) -> EvaluatedCondition | None:
        """Return the shared object for a condition; ``None`` if there are too many."""
        conditions = self._tables.setdefault(table.name, {})
        known = conditions.get(condition)
        if known is not None:
            known.met += 1
            if known.plain is not None:
                known.plain.met += 1
            return known
        if self._count >= _MOST or self.reads >= _MOST_READS:
            return None
        plain = None
        if condition.order:
            plain = self.add(table, replace(condition, order=(), last=""))
        self._count += 1
        added = EvaluatedCondition(table=table, condition=condition, plain=plain)
        conditions[condition] = added
        return added

    def __iter__(self) -> Iterator[tuple[Table, list[EvaluatedCondition]]]:
        """Yield each table with its conditions."""
        for conditions in self._tables.values():
            listed = [*conditions.values()]
            yield listed[0].table, listed

    @property
    def are_new(self) -> bool:
        """Return whether a statement met a condition since it was evaluated."""
        return any(c.is_new and not c.why for _, of_table in self for c in of_table)

    def refuse_new(self) -> None:
        """Refuse the conditions whose meaning may have changed before they were evaluated."""
        for _, of_table in self:
            for condition in of_table:
                if condition.is_new and not condition.why:
                    condition.why = "a definition changed before it could be evaluated"
