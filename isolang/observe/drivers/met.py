"""Stores the conditions of statements until it is clear whether all versions are known.

A condition becomes a predicate read if all versions of its table turn out to be known
(:mod:`isolang.observe.closed`). If not, it is counted as unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from isolang.observe.closed import KnownVersion, Trace, TracedCondition, close
from isolang.observe.drivers import rows
from isolang.observe.drivers.hooks import Steps
from isolang.observe.drivers.library import Sent
from isolang.observe.drivers.observed import FIRST_NUMBER, HALF_OF_NUMBERS
from isolang.observe.drivers.statements import Statement
from isolang.observe.drivers.transactions import OpenTransaction
from isolang.observe.sql.catalogue import Table, exact_json
from isolang.observe.sql.executed import ExecutedStatement, looked_up_key_count, predicate_of
from isolang.observe.sql.plan import StatementPlan
from isolang.observe.sql.predicates import (
    CannotEvaluateError,
    Parameters,
    Predicate,
)
from isolang.observe.sql.rewriting import PreparedStatement
from isolang.observe.sql.values import CAST_NAMES, INT8, TEXT, USER_TYPE
from isolang.observe.unseen import CONDITIONS, NOT_FOUND, Unseen, kind_of

if TYPE_CHECKING:
    from pathlib import Path

_LEVEL_QUERY: Final = "SELECT current_setting('transaction_isolation')"
_MOST_ROWS: Final = 100_000  # the largest number of rows in a table whose versions are compared


class ConditionRecorder:
    """Records the conditions of one watch.

    Attributes:
        possible: whether conditions may become predicate reads.
        unresolved: the conditions left out by :meth:`close`.
    """

    def __init__(self, unseen: Unseen, connect: Callable[[], Any]) -> None:
        """Create a recorder without conditions.

        Args:
            unseen: the watch's counts of unseen activity.
            connect: a function that opens a separate connection for the watch.
        """
        self.possible = False
        self.unresolved = Unseen()
        self._unseen, self._connect = unseen, connect
        self._traces: list[Trace] = []
        self._tables: dict[str, Table] = {}
        self._altered: set[str] = set()

    @property
    def readers(self) -> int:
        """The number of transactions that did not abort and have conditions."""
        return sum(
            trace.outcome != "aborted"
            and any(isinstance(step, TracedCondition) for step in trace.steps)
            for trace in self._traces
        )

    def ended(self, trace: Trace) -> None:
        """Store the trace of an ended transaction."""
        if self.possible:
            self._traces.append(trace)

    def meet(self, table: Table) -> None:
        """Remember a table that a statement accesses."""
        before = self._tables.setdefault(table.name, table)
        if before.oid != table.oid or not before.has_same_form(table):
            self._altered.add(table.name)

    def note(  # noqa: PLR0917 - all that is known of a statement
        self,
        one: OpenTransaction,
        sent: Sent,
        statement: Statement,
        table: Table,
        found: int,
        met: rows.Versions | None,
        *,
        partial: str | None = None,
        covers: int = 0,
    ) -> Steps:
        """Keep a condition or count it as unseen, unless it looked up a key that was found.

        Args:
            one: the transaction.
            sent: the statement as it was sent.
            statement: the statement.
            table: the table of the statement's condition.
            found: the number of rows found by the condition.
            met: the version of each row that satisfied the condition; ``None`` if not all are
                known.
            partial: why the condition alone does not determine the rows found; empty if it does.
                The default is the plan's ``partial``.
            covers: the number of the transaction's last steps that are reads of these rows.
        """
        plan, condition = statement.plan, statement.condition
        if plan.skips and not plan.claims:
            return  # the result does not reveal which rows were skipped
        if found and any(key <= condition.equal.keys() for key in table.unique):
            return
        done = ExecutedStatement(
            statement=PreparedStatement(
                plan=plan, text=statement.text, part=statement.part, condition=condition
            ),
            ticket=(0, 0),
            rows=found,
        )
        if self.possible and not condition.why:
            with suppress(CannotEvaluateError):
                done.parameters = yield from self._values(sent, statement, table)
        kind, predicate, order = predicate_of(
            done,
            table,
            found,
            plan.partial if partial is None else partial,
            read_committed=(yield from self._committed(one, sent, plan)),
        )
        if not (kind or predicate):
            return
        pinned = looked_up_key_count(condition, table, done) is not None
        versions = [(key, v) for key, v in (met or {}).items() if v is not None]
        whole = self.possible and met is not None and len(versions) == len(met)
        if kind or not whole or (order is not None and len(versions) != found):
            self._unseen.note(NOT_FOUND if pinned else kind_of(kind or CONDITIONS), sent.text)
            return
        if order is not None:
            predicate, versions = _predicate_before_last(predicate, versions, *order)
            covers = 0
        one.steps.append(
            TracedCondition(
                table=table.name,
                predicate=predicate,
                rows=tuple((key, version.number) for key, version in versions),
                covers=covers,
                kind=NOT_FOUND if pinned else CONDITIONS,
                text=sent.text,
                shown=statement.text,
                caller=one.where,
                statement=one.statement,
            )
        )

    def _committed(self, one: OpenTransaction, sent: Sent, plan: StatementPlan) -> Steps:
        """Return whether a locking or writing statement rechecks the newest versions."""
        if not self.possible or not (plan.locks or plan.kind != "select"):
            return False
        if not one.level:
            ((one.level,),) = yield from sent.ask(_LEVEL_QUERY)
        return one.level not in ("repeatable read", "serializable")

    def _values(self, sent: Sent, statement: Statement, table: Table) -> Steps:
        """Return the parameters of a condition and of LIMIT and OFFSET as read by the server.

        The server evaluates the parameters, because only it knows how it converts a value to the
        type of the column.

        Raises:
            CannotEvaluateError: the values of a compared column are not recorded, or the watch
                cannot compare the type that a parameter is cast to.
        """
        types = {}
        for number, (name, cast) in statement.condition.parameters().items():
            column = table.columns.get(name)
            if column is None:
                raise CannotEvaluateError(f"the column {name}, whose values are not recorded")
            if cast == USER_TYPE and not column.enum:
                raise CannotEvaluateError(f"a cast, compared with {name}")
            types[number] = TEXT if column.enum else cast or column.oid
        for place in filter(None, (statement.plan.limit, statement.plan.offset)):
            following = statement.part[place + 1 : place + 2]
            types |= {int(t.text[1:]): INT8 for t in following if t.kind == "parameter"}
        if not types:
            return Parameters()
        listed = ", ".join(f"${n}::{CAST_NAMES[types[n]]}" for n in types)
        ((answer,),) = yield from sent.ask(f"SELECT json_build_array({listed})::text")
        most = max(types)
        values: list[str | None] = [None] * most
        for number, value in zip(types, exact_json(answer), strict=True):
            values[number - 1] = None if value is None else _postgres_text(value)
        return Parameters(values, [types.get(n, 0) for n in range(1, most + 1)])

    def close(self, path: Path, into: Path | None, before: int) -> Path:
        """Write the history recorded so far, with predicate reads, and return its file.

        Conditions that cannot be recorded are counted as unseen from then on.

        Args:
            path: the file of the recorded history.
            into: the file to write if there are predicate reads; ``None`` if another watch also
                records, because predicate reads are then impossible.
            before: the oldest transaction that was running when the recording began.
        """

        def is_initial(number: int) -> bool:
            return number < FIRST_NUMBER or 0 < (before - number) % 2**32 < HALF_OF_NUMBERS

        last = self._last if into is not None else lambda table: None  # not known
        into = into or path
        closed = close(path, self._traces, last, is_initial=is_initial, into=into)
        self.unresolved = Unseen()
        for one in closed.unseen:
            self.unresolved.note(one.kind, one.text, one.caller)
        return closed.path or path

    def _last(self, name: str) -> dict[str, KnownVersion] | None:
        """Return the last versions in a table by key; ``None`` if they are unknown."""
        if name in self._altered:
            # SOUND BECAUSE: versions recorded before the change have other columns or types.
            return None
        table = self._tables[name]
        query = (
            f"SELECT {rows.selected([(table.where, table)], row=True)} FROM {table.where} "
            f"LIMIT {_MOST_ROWS + 1}"
        )
        import psycopg

        try:
            with self._connect() as connection:
                answer = connection.execute(query).fetchall()
        except psycopg.Error:  # the server has stopped, or the table no longer exists
            return None
        (found,) = rows.versions(answer, [table])
        if len(answer) > _MOST_ROWS or None in found.values():
            return None
        return {
            key: KnownVersion(key, one.number, one.cells)
            for key, one in found.items()
            if one is not None
        }


def _predicate_before_last(
    predicate: Predicate, found: list[tuple[str, rows.Version]], column: str, descends: bool
) -> tuple[Predicate, list[tuple[str, rows.Version]]]:
    """Return a predicate for the rows before the last one in a column's order, and these rows."""
    values = [version.cells[column] for _, version in found]
    end = min(values) if descends else max(values)
    order = (">" if descends else "<", column, end)
    before = [one for one in found if one[1].cells[column] != end]
    return order if predicate == "true" else ("and", predicate, order), before


def _postgres_text(value: Any) -> str:
    """Return a JSON value as text that PostgreSQL can read."""
    return str(value).lower() if isinstance(value, bool) else str(value)
