"""Records the rows read by an application's SELECT, using queries before and after it.

SOUND BECAUSE: the versions of a row that a transaction can see only move forward. A version that is
present both before and after a statement was therefore in the statement's snapshot. If the two
versions differ, the row is unseen. Rows locked by a statement do not change after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from isolang.observe.drivers import rows
from isolang.observe.drivers.hooks import Steps
from isolang.observe.drivers.library import Sent
from isolang.observe.drivers.met import ConditionRecorder
from isolang.observe.drivers.observed import WrittenVersions
from isolang.observe.drivers.statements import FromClause, Planner, Statement
from isolang.observe.drivers.transactions import OpenTransaction
from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.executed import is_joined_by_key
from isolang.observe.sql.plan import JOINS
from isolang.observe.sql.predicates import Parameters
from isolang.observe.sql.rewriting import limit_value
from isolang.observe.unseen import (
    CHANGED,
    CONDITIONS,
    FOREIGN,
    LIMITED,
    SHAPES,
    TWO_ROWS,
    Unseen,
)

_ATTEMPTS: Final = 5  # the largest number of executions of a SELECT whose rows keep changing


class Matched(Struct):
    """The rows of a SELECT that were found by a query of the watch.

    Attributes:
        tables: for each table of each FROM clause, the versions of its rows.
        size: the number of rows in the query's result.
        lacks: whether an outer join found no row in some table.
    """

    tables: list[rows.Versions] = field(default_factory=list)
    size: int = 0
    lacks: bool = False

    @property
    def first(self) -> rows.Versions:
        """The versions of the first table."""
        return self.tables[0]


class ReadRecorder:
    """Records the SELECTs of one watch."""

    def __init__(
        self,
        planner: Planner,
        versions: WrittenVersions,
        conditions: ConditionRecorder,
        unseen: Unseen,
    ) -> None:
        """Create a recorder for a watch.

        Args:
            planner: the planner that parses the statements.
            versions: the versions written by watched transactions.
            conditions: the recorder of conditions.
            unseen: the watch's counts of unseen activity.
        """
        self._database = planner.database
        self._versions, self._conditions, self._unseen = versions, conditions, unseen

    def record(
        self,
        one: OpenTransaction,
        sent: Sent,
        statement: Statement,
        tables: Sequence[Table | None],
    ) -> Steps:
        """Send a SELECT, and record its reads.

        Args:
            one: the transaction.
            sent: the statement as it was sent.
            statement: the statement.
            tables: the statement's tables; ``None`` for a table whose rows cannot be identified.
        """
        clauses = statement.from_clauses(tables)
        if any(clause.calls & self._database.unrepeatable_functions for clause in clauses):
            # A query of the watch would call the function again.
            self._unseen.note(SHAPES, sent.text)
            clauses = []
        if not clauses:
            return (yield sent.send)
        return (yield from self._select(one, sent, statement, tables, clauses))

    def _matching(
        self, one: OpenTransaction, sent: Sent, clauses: Sequence[FromClause], *, row: bool = False
    ) -> Steps:
        """Return the rows matching the condition of a SELECT, found by queries of the watch."""
        found = Matched()
        for clause in clauses:
            answer = yield from sent.ask(rows.matching_rows_query(clause, row=row))
            one.number = rows.transaction_of(answer) or one.number
            found.tables += rows.versions(answer, [table for _, table in clause.tables], row=row)
            found.size += len(answer)
            found.lacks = found.lacks or rows.lacks_row(answer, clause, row=row)
        return found

    def _select(
        self,
        one: OpenTransaction,
        sent: Sent,
        statement: Statement,
        tables: Sequence[Table | None],
        clauses: Sequence[FromClause],
    ) -> Steps:
        plan = statement.plan
        # A volatile function may return a different result, or change something, when called again.
        pure = not plan.names & self._database.unrepeatable_functions
        locks = bool(plan.lock) and not one.alone  # in autocommit, the locks end with the statement
        alone = len(plan.sources) == 1 and all(tables)
        sums = plan.sources[0].how == "all"
        single = bool(plan.limit) and limit_value(statement.part, plan.limit, Parameters()) == 1
        for attempt in range(1, _ATTEMPTS + 1):
            before = Matched()
            if not locks:
                before = yield from self._matching(one, sent, clauses)
            result = yield sent.send
            count = sent.count(result)
            names, returned = sent.output_rows(result, len(statement.output_expressions()))
            limited = bool(plan.limit or plan.offset or plan.skips)
            first = sent.wants_first_only and not sums and not single
            query = None
            if returned and alone and not sums and (limited or first or plan.lock):
                query = rows.returned_rows_query(
                    statement, clauses[0].tables[0][1], returned, names
                )
            if query is None:
                after = yield from self._matching(one, sent, clauses, row=True)
            else:
                answer = yield from sent.ask(query)
                one.number = rows.transaction_of(answer) or one.number
                after = Matched(rows.versions(answer, [clauses[0].tables[0][1]]), len(answer))
            if locks:
                # SOUND BECAUSE: the returned rows are locked, so they do not change. If their keys
                # are unknown: they still match, and if the number of matching rows is the same,
                # they are the same rows.
                before = after
            every = len(before.first)
            if not locks and query is not None:
                before.tables = [{k: v for k, v in before.first.items() if k in after.first}]
                before.size = len(before.first)
            # SOUND BECAUSE: a SELECT without volatile functions changes nothing. If it is executed
            # again, the result is the same as if the application had sent it later.
            known = None if sums or (query is None and (limited or first)) else count
            if not pure or attempt == _ATTEMPTS or not _changed(before, after, known):
                break
        most = max(before.size, after.size)
        partly = limited or bool(plan.lock) or (first and most > 1)
        steps = len(one.steps)
        if query is None and partly and not sums and most > (count or 0):
            if count != 0:
                self._unseen.note(LIMITED, sent.text)
            found = count or 0
        else:
            every_table = [table for clause in clauses for _, table in clause.tables]
            found = 0
            for table, earlier, later in zip(every_table, before.tables, after.tables, strict=True):
                found = max(found, self._read(one, sent.text, table, earlier, later))
            if (count or 0) > max(found, most) and not sums:
                self._unseen.note(CHANGED, sent.text)
                found = count or 0
        read = one.steps[steps:]
        complete = len(read) == sum(map(len, after.tables))
        if statement.returns_count() and returned and returned[0][0] is not None:
            complete = complete and int(returned[0][0]) == after.size
        elif not sums:
            complete = complete and count in (None, after.size) and not (first and every > 1)
        if alone:
            met = after.first if complete else None
            yield from self._conditions.note(
                one, sent, statement, clauses[0].tables[0][1], found, met, covers=len(read)
            )
        else:
            yield from self._joined(one, sent, statement, tables, after, count, complete=complete)
        return result

    def _joined(  # noqa: PLR0917 - all that is known of a statement
        self,
        one: OpenTransaction,
        sent: Sent,
        statement: Statement,
        tables: Sequence[Table | None],
        after: Matched,
        count: int | None,
        *,
        complete: bool,
    ) -> Steps:
        """Record the condition of a SELECT on several tables if keys join all but the first."""
        sources = statement.plan.sources
        # SOUND BECAUSE: if there are subqueries, functions, HAVING or DISTINCT ON, the joins are
        # not the only reason why rows are not returned.
        joined = statement.plan.partial == JOINS and all(
            table is not None and (not n or is_joined_by_key(statement.part, sources[n], table))
            for n, table in enumerate(tables)
        )
        if not (joined and complete) or after.lacks:
            # If a LEFT JOIN finds no row, the statement has observed that a row is missing.
            self._unseen.note(CONDITIONS, sent.text)
        if joined and tables[0] is not None and complete:
            outer = all(source.join == "left" for source in sources[1:])
            yield from self._conditions.note(
                one, sent, statement, tables[0], len(after.first), after.first,
                partial="" if outer else JOINS,
            )  # fmt: skip

    def _read(
        self,
        one: OpenTransaction,
        text: str,
        table: Table,
        before: rows.Versions,
        after: rows.Versions,
    ) -> int:
        """Record the rows that did not change during a SELECT. Return the number of all rows."""
        keys = sorted(before.keys() | after.keys())
        twice = {key for key in keys if None in (before.get(key, 0), after.get(key, 0))}
        for key in keys:
            version, earlier = after.get(key), before.get(key)
            if version is None or earlier is None or earlier.number != version.number:
                self._unseen.note(TWO_ROWS if key in twice else CHANGED, f"{key}: {text}")
                continue
            after_own = one.number if one.unclear else None
            value = self._versions.value(key, version.number, after=after_own)
            if not value:
                self._unseen.note(FOREIGN, key)
            elif not one.read(key, value[0], version.seen, table=table.name, number=version.number):
                self._unseen.note(TWO_ROWS, f"{key}: {text}")
        return len(keys) + len(twice)


def _changed(before: Matched, after: Matched, count: int | None) -> bool:
    """Return whether rows changed between the watch's two queries.

    Args:
        before: the rows before the statement.
        after: the rows after the statement.
        count: the number of rows received by the application; ``None`` if this number need not
            agree.
    """
    if before.size != after.size or count not in (None, after.size):
        return True
    return any(
        earlier.keys() != later.keys()
        or any(
            one is not None and other is not None and one.number != other.number
            for one, other in zip(earlier.values(), (later[key] for key in earlier), strict=True)
        )
        for earlier, later in zip(before.tables, after.tables, strict=True)
    )
