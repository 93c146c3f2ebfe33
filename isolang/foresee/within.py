"""Decides which transactions may run within T1, the transaction split by a split schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from isolang.foresee.schedules import (
    KEEPS_LOCKED,
    ChainedTransaction,
    Instance,
    KeyValue,
    Level,
    Row,
    first_updater_wins,
    reads_newest,
    snapshot_place,
)
from isolang.foresee.templates import Templates, TemplateStatement, have_common_column


class SplitTransaction:
    """T1 with its parameter values, and its statements b1 and a1, which close the cycle.

    Attributes:
        after: the index of the last statement executed by T1 before T2 begins.
        b1: the statement that does not see the write of T2.
    """

    def __init__(
        self, templates: Templates, level: Level, instance: Instance, places: tuple[int, int]
    ) -> None:
        """Prepare T1: find its rows, and the statement that it is split after."""
        self.templates, self.level, self.instance = templates, level, instance
        statements = instance.branch.statements
        after, self._closing = places
        self.b1, self.a1 = statements[after], statements[self._closing]
        # Once a statement has taken the snapshot, all others may run after T2 … Tm.
        self.after = after if reads_newest(level) else snapshot_place(level, statements)
        self._keeps_locked = level in KEEPS_LOCKED
        self._first_updater_wins = first_updater_wins(level)
        self._rows: dict[Row, list[tuple[int, TemplateStatement]]] = {}
        for number, one in enumerate(statements):
            if one.keyed:
                row = (one.relation, values_of(one, instance.values))
                self._rows.setdefault(row, []).append((number, one))

    def can_reach_a1(self, bm: TemplateStatement) -> bool:
        """Return whether an edge may lead from a statement of Tm to a1."""
        a1 = self.a1
        if have_common_column(bm.reads, a1.writes):
            return True
        if self._closing <= self.after:
            return False
        if self._keeps_locked and a1.is_plain:
            return False  # it reads the snapshot
        if self._first_updater_wins and not self.may_insert_again(a1):
            return False  # T1 neither sees nor overwrites writes after its snapshot
        return self.conflict_on_row(bm, a1)

    def may_insert_again(self, own: TemplateStatement) -> bool:
        """Return whether a statement may insert a row deleted by another transaction.

        PostgreSQL allows this at every level, even if the row was deleted after the snapshot.
        """
        return own.kind == "insert" and own.relation in self.templates.deleted

    def conflict_on_row(self, one: TemplateStatement, other: TemplateStatement) -> bool:
        """Return whether two statements conflict when they access the same row."""
        if one.kind == other.kind == "insert" and one.relation not in self.templates.deleted:
            return False  # a row that is never deleted can be inserted only once
        return (
            have_common_column(one.writes, other.writes)
            or have_common_column(one.writes, other.reads)
            or have_common_column(one.reads, other.writes)
        )

    def pairs_on_same_row(
        self, chained: ChainedTransaction
    ) -> Iterator[tuple[int, TemplateStatement, TemplateStatement]]:
        """Yield pairs of statements of T1 and another transaction that access the same row.

        Each pair comes with the index of T1's statement, and its statements certainly access the
        same row.
        """
        values = dict(chained.values)
        for own in self.templates.branches[chained.branch].statements:
            if own.keyed:
                row = (own.relation, values_of(own, values))
                for number, one in self._rows.get(row, ()):
                    yield number, one, own

    def allows(self, chained: ChainedTransaction) -> bool:
        """Return whether a transaction may run within T1 despite the rows written by T1."""
        return not any(self.prevents(*shared) for shared in self.pairs_on_same_row(chained))

    def prevents(self, number: int, of_split: TemplateStatement, own: TemplateStatement) -> bool:
        """Return whether a statement of T1 prevents a statement in a transaction within T1.

        SOUND BECAUSE: at SI and SSI, a lock without a write prevents only writes. T1 may have taken
        its snapshot before it waited for a lock that the other transaction took and released. In
        InnoDB, a statement that locks takes no snapshot, so T1 holds the locks of those before it.
        """
        if of_split.waits_for_lock_of(own):
            compares = self._keeps_locked and of_split.is_plain  # with what the snapshot has
            holds = self._keeps_locked or not self._first_updater_wins
            if holds and (number <= self.after or compares):
                return True
            # T1 would wait for it, or find a newer version, and abort.
            return self._first_updater_wins and bool(own.writes)
        if not have_common_column(of_split.writes, own.writes):
            return False
        if number <= self.after:
            return True  # T1 holds the row's lock
        if of_split.kind == "insert":  # the row must not exist when T1 inserts it
            return not self.may_insert_again(of_split)
        return self._first_updater_wins  # T1 would find a newer version than its snapshot

    def prevents_by_condition(self, found: TemplateStatement, of_split: TemplateStatement) -> bool:
        """Return whether T1 prevents a statement with a condition from writing one of T1's rows."""
        if not of_split.keyed:
            return False
        row = (of_split.relation, values_of(of_split, self.instance.values))
        return any(self.prevents(number, one, found) for number, one in self._rows[row])

    def insert_same_row(self, one: ChainedTransaction, other: ChainedTransaction) -> bool:
        """Return whether two transactions insert the same row, and no transaction deletes it."""
        return not self._inserted_for_good(one).isdisjoint(self._inserted_for_good(other))

    def _inserted_for_good(self, one: ChainedTransaction) -> set[Row]:
        """Return the rows that a transaction inserts and that no transaction deletes.

        Rows with the transaction's own values are left out, because no other transaction inserts
        them.
        """
        values, found = dict(one.values), set[Row]()
        for own in self.templates.branches[one.branch].statements:
            if own.kind == "insert" and own.keyed:
                row = values_of(own, values)
                if not any(isinstance(value, int) and value < 0 for value in row):
                    found.add((own.relation, row))
        return {row for row in found if row[0] not in self.templates.deleted}


class SsiRules:
    """The rules under which SSI aborts T1 because of the transactions that run within it."""

    def __init__(self, split: SplitTransaction, levels: Mapping[str, Level]) -> None:
        self._split, self._levels = split, levels

    def allows_commit(self, chain: list[ChainedTransaction]) -> bool:
        """Return whether SSI allows T1 to commit after the transactions of a chain.

        SSI aborts T1 if a transaction T at SSI does not see a write by T1, and T1 does not see a
        write by T or by a transaction at SSI before T in the chain.
        """
        if self._split.level != "ssi":
            return True
        # Tm reads a row that T1 writes, unless T1 inserts a row that Tm deleted.
        overlooks = not any(
            map(self._split.may_insert_again, self._split.instance.branch.statements)
        )
        missed = False
        for place, one in enumerate(chain):
            if not self._is_ssi(one):
                continue
            missed = missed or place == 0 or self._is_overlooked_by_split(one)
            if missed and ((overlooks and place == len(chain) - 1) or self._overlooks_split(one)):
                return False
        return True

    def must_be_continued(self, one: ChainedTransaction, *, first: bool) -> bool:
        """Return whether a search at SSI must continue a path after a transaction.

        SOUND BECAUSE: consider a transaction between T2 and Tm. If it reads a row that T1 writes,
        either it can replace Tm, which gives a shorter candidate, or SSI aborts T1. If T1 reads a
        row that it writes, either it can replace T2, or SSI aborts T1.
        """
        if self._split.level != "ssi" or not self._is_ssi(one):
            return True
        return not self._overlooks_split(one) and (first or not self._is_overlooked_by_split(one))

    def _is_ssi(self, one: ChainedTransaction) -> bool:
        return self._levels[self._split.templates.branches[one.branch].program] == "ssi"

    def _is_overlooked_by_split(self, one: ChainedTransaction) -> bool:
        """Return whether T1 certainly reads a row written by the transaction."""
        return any(
            have_common_column(of_split.reads, own.writes)
            for of_split, own in self._certain_pairs(one)
        )

    def _overlooks_split(self, one: ChainedTransaction) -> bool:
        """Return whether the transaction certainly reads a row written by T1."""
        return any(
            have_common_column(of_split.writes, own.reads)
            for of_split, own in self._certain_pairs(one)
        )

    def _certain_pairs(
        self, one: ChainedTransaction
    ) -> Iterator[tuple[TemplateStatement, TemplateStatement]]:
        """Yield pairs of statements of T1 and a transaction that certainly access the same row.

        Relations with deletes are left out. Without them, two transactions that write the same row
        never run within each other, so no statement of a pair reads a write of its own transaction.
        """
        for _, of_split, own in self._split.pairs_on_same_row(one):
            if of_split.relation not in self._split.templates.deleted:
                yield of_split, own


def values_of(statement: TemplateStatement, values: Mapping[str, KeyValue]) -> tuple[KeyValue, ...]:
    """Return the values of a statement's keys, or -1 for a parameter without a value."""
    return tuple(
        values.get(key, -1) if isinstance(key, str) else (key or 0,) for key in statement.keys
    )
