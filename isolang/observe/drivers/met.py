"""Keeps the conditions that statements of an application met, until it is known what they missed.

A condition becomes a predicate read if all versions of its table turn out to be known
(:mod:`isolang.observe.closed`). If not, it is counted as unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from isolang.observe import predicates
from isolang.observe.catalogue import exact_json
from isolang.observe.closed import KnownVersion, MetCondition, Trace, close
from isolang.observe.drivers import rows
from isolang.observe.drivers.callers import caller
from isolang.observe.drivers.hooks import Steps
from isolang.observe.drivers.library import Sent
from isolang.observe.drivers.observed import FIRST, HALF, ObservedTransaction
from isolang.observe.drivers.statements import Statement, shown_text
from isolang.observe.plan import named
from isolang.observe.predicates import CannotEvaluateError, Parameters, ParsedCondition
from isolang.observe.unseen import CONDITIONS, NOT_FOUND, Unseen
from isolang.observe.values import CAST_NAMES, TEXT

if TYPE_CHECKING:
    from pathlib import Path

_MOST: Final = 100_000  # rows of a table whose versions are compared


class ConditionRecorder:
    """Records the conditions of one watch.

    Attributes:
        possible: whether conditions may become predicate reads.
        unresolved: the conditions that :meth:`close` left out.
    """

    def __init__(self, unseen: Unseen, connect: Callable[[], Any]) -> None:
        """Begin without conditions.

        Args:
            unseen: the counts of the watch.
            connect: a function that returns a connection of the watch's own.
        """
        self.possible = False
        self.unresolved = Unseen()
        self._unseen, self._connect = unseen, connect
        self._traces: list[Trace] = []
        self._tables: dict[str, rows.WatchedTable] = {}
        self._altered: set[str] = set()

    def ended(self, trace: Trace) -> None:
        """Note a transaction that has ended."""
        if self.possible:
            self._traces.append(trace)

    def meet(self, table: rows.WatchedTable) -> None:
        """Note a table of a statement."""
        before = self._tables.setdefault(table.name, table)
        if before.cells != table.cells:
            self._altered.add(table.name)

    def note(  # noqa: PLR0917 - all that is known of a statement
        self,
        one: ObservedTransaction,
        sent: Sent,
        statement: Statement,
        table: rows.WatchedTable,
        found: int,
        met: list[tuple[str, int]] | None,
        *,
        locks: bool,
        covers: int | None = None,
    ) -> Steps:
        """Keep or count a condition that may have missed rows; a key that was found misses none.

        Args:
            one: the transaction.
            sent: the statement.
            statement: its parts.
            table: its table.
            found: the number of the rows that it found.
            met: the key and version of each row that met the condition; ``None`` if not all are
                known.
            locks: whether it locks or writes the rows.
            covers: how many of the transaction's last steps are reads of these rows; by default
                all rows.
        """
        expected = statement.looked_up(table.keys)
        if statement.skips:
            return  # the result does not reveal the rows that were skipped
        if expected is not None and found >= expected:
            return
        kind = CONDITIONS if expected is None else NOT_FOUND
        predicate = None
        if self.possible and met is not None:
            predicate = yield from self._predicate(sent, statement, table)
        if predicate is not None and locks and (expected != 1 or found):
            (((level,),)) = yield from sent.ask("SELECT current_setting('transaction_isolation')")
            if level not in ("repeatable read", "serializable"):
                predicate = None
        if predicate is None or met is None:
            self._unseen.note(kind, sent.text)
            return
        one.steps.append(
            MetCondition(
                table=table.name,
                predicate=predicate,
                rows=tuple(met),
                covers=len(met) if covers is None else covers,
                kind=kind,
                text=sent.text,
                shown=shown_text(sent.literal()),
                caller=caller(),
                statement=one.statement,
            )
        )

    def _predicate(self, sent: Sent, statement: Statement, table: rows.WatchedTable) -> Steps:
        """Return the predicate of a statement's condition; ``None`` if isolang has none for it."""
        alias = named(statement.alias)

        def column(names: Sequence[str]) -> str | None:
            own = list(names[:-1])
            return names[-1] if own == alias[len(alias) - len(own) :] else None

        try:
            found = predicates.parse(statement.where, 0, len(statement.where), column)
            values = yield from self._values(sent, found, table)
            return found.predicate(table.cells, statement.where, values)
        except CannotEvaluateError:
            return None

    def _values(self, sent: Sent, found: ParsedCondition, table: rows.WatchedTable) -> Steps:
        """Return the values that only the database knows, as the server reads them.

        Raises:
            CannotEvaluateError: a value has a type that is not compared.
        """
        types = {}
        for number, (name, cast) in found.parameters().items():
            column = table.cells.get(name)
            if column is None:
                raise CannotEvaluateError(f"the column {name}, whose values are not recorded")
            types[number] = cast or (TEXT if column.enum else column.oid)
        if not types:
            return Parameters()
        listed = ", ".join(f"'isolang:parameter:{n}'::{CAST_NAMES[types[n]]}" for n in types)
        ((answer,),) = yield from sent.ask(f"SELECT json_build_array({listed})::text")
        most = max(types)
        values: list[str | None] = [None] * most
        for number, value in zip(types, exact_json(answer), strict=True):
            values[number - 1] = None if value is None else _plain(value)
        return Parameters(values, [types.get(n, 0) for n in range(1, most + 1)])

    def close(self, path: Path, into: Path | None, before: int) -> Path:
        """Write the history recorded so far with predicate reads, and return its file.

        The conditions that cannot be recorded are counted as unseen from then on.

        Args:
            path: the file of the recorded history.
            into: the file to write if there is a predicate read; ``None`` if another watch
                records, too, so that there can be none.
            before: the oldest transaction that ran when the recording began.
        """

        def is_initial(number: int) -> bool:
            return number < FIRST or 0 < (before - number) % 2**32 < HALF

        last = self._last if into is not None else _unknown
        into = into or path
        closed = close(path, self._traces, last, is_initial=is_initial, into=into)
        self.unresolved = Unseen()
        for one in closed.unseen:
            self.unresolved.note(one.kind, one.text, one.caller)
        return closed.path or path

    def _last(self, name: str) -> dict[str, KnownVersion] | None:
        """Return the last versions of a table by key; ``None`` if they are not known."""
        if name in self._altered:
            # SOUND BECAUSE: versions that were recorded before have other columns, or other types.
            return None
        table = self._tables[name]
        query = (
            f"SELECT {table.selected(table.qualified, row=True)} FROM {table.qualified} "
            f"LIMIT {_MOST + 1}"
        )
        import psycopg

        try:
            with self._connect() as connection:
                answer = connection.execute(query).fetchall()
        except psycopg.Error:  # the server has stopped, or the table is gone
            return None
        found = rows.versions(answer, table)
        if len(answer) > _MOST or None in found.values():
            return None
        return {
            key: KnownVersion(key, one.number, one.cells)
            for key, one in found.items()
            if one is not None
        }


def _unknown(table: str) -> None:
    """Return no versions of a table."""


def _plain(value: Any) -> str:
    """Return the text of a value in JSON, as PostgreSQL reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
