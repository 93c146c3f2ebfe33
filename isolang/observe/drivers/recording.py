"""Records each statement's reads and writes, using queries before and after the statement.

The ``xmin`` of a row's version names the transaction that wrote the version. If a write returns
nothing, the watch makes it return the keys and ``xmin`` of its rows, without the application seeing
them. For a SELECT, the watch selects the keys and ``xmin`` of the rows matching the condition,
before and after the SELECT.

Rows not found by a condition leave no version to record. Therefore, a condition is kept together
with the rows that satisfied it, unless it names a key that was found. It becomes a predicate read
if all versions of its table turn out to be known (:mod:`isolang.observe.closed`). If not, it is
counted as unseen.

SOUND BECAUSE: the watch's queries are also statements of the transaction, and each of them has one
snapshot. At READ COMMITTED, an UPDATE, a DELETE or a locking SELECT rechecks the newest version of
each row, so it does not see one snapshot. It sees a single version only if it looks up one key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isolang.observe.drivers import rows
from isolang.observe.drivers.hooks import Steps
from isolang.observe.drivers.library import Sent
from isolang.observe.drivers.met import ConditionRecorder
from isolang.observe.drivers.observed import WrittenVersions
from isolang.observe.drivers.reads import ReadRecorder
from isolang.observe.drivers.statements import Planner, Statement
from isolang.observe.drivers.transactions import Lost, OpenTransaction, Transactions
from isolang.observe.drivers.writes import WriteRecorder
from isolang.observe.sql.catalogue import FUNCTIONS, VOLATILE, Table, lookup_query
from isolang.observe.sql.plan import name_parts
from isolang.observe.unseen import (
    CALLED,
    CASCADES,
    CATALOGUE,
    SHAPES,
    TRIGGERS,
    TRUNCATED,
    TWO_PHASES,
    Unseen,
    kind_of,
    table_added_to,
)

_TOUCHES_NO_ROW: Final = frozenset({"quiet", "forget", "level", "begin"})
_MAY_WRITE: Final = frozenset({kind_of(CALLED), kind_of(TRIGGERS)})
_MAY_CALL: Final = frozenset({"select", "insert", "update", "delete", "quiet", "other"})


class StatementRecorder:
    """Records the statements of one watch in their transactions.

    Attributes:
        planner: the planner that parses the statements.
        writes: the recorder of writes.
    """

    def __init__(  # noqa: PLR0917 - the parts of one watch
        self,
        planner: Planner,
        transactions: Transactions,
        versions: WrittenVersions,
        conditions: ConditionRecorder,
        unseen: Unseen,
        names: Mapping[str, str],
    ) -> None:
        """Create a recorder for a watch.

        Args:
            planner: the planner that parses the statements.
            transactions: the transactions of the watch.
            versions: the versions written by watched transactions.
            conditions: the recorder of conditions.
            unseen: the watch's counts of unseen activity.
            names: the names of tables in the history, where they differ from those in the database.
        """
        self.planner = planner
        self._transactions = transactions
        self._versions = versions
        self._conditions = conditions
        self._unseen = unseen
        self._names = names
        self._facts_known = True
        self._reads = ReadRecorder(planner, versions, conditions, unseen)
        self.writes = WriteRecorder(transactions, versions, conditions, unseen)

    def is_quiet(self, statement: Statement) -> bool:
        """Return whether a statement neither reads nor writes rows of the application's tables."""
        plan = statement.plan
        creates = plan.kind == "ddl" and statement.part[0].text == "create" and not plan.unseen
        return creates or (plan.kind in _TOUCHES_NO_ROW and not self._calls(statement))

    def _calls(self, statement: Statement) -> bool:
        """Return whether a statement calls a function of the database that may read and write."""
        plan = statement.plan
        return plan.kind in _MAY_CALL and bool(plan.names & self.planner.database.functions)

    def record(self, one: OpenTransaction, sent: Sent, statement: Statement) -> Steps:
        """Send a statement, and record its reads and writes."""
        plan = statement.plan
        one.sent(plan.lock)
        if plan.sources or (plan.names and plan.kind == "quiet"):
            yield from self._ask_for_facts(sent)
        if not plan.sources:
            return (yield from self._other(one, sent, statement))
        tables = yield from self.tables(one, sent, statement)
        if plan.kind == "select":
            return (yield from self._reads.record(one, sent, statement, tables))
        (table,) = tables
        if table is None:
            one.unclear = True
            return (yield sent.send)
        return (yield from self.writes.record(one, sent, statement, table))

    def _ask_for_facts(self, sent: Sent) -> Steps:
        """Query the names of the database's functions if a statement may have defined one."""
        if self._facts_known:
            return
        self._facts_known = True
        facts = self.planner.database
        facts.functions = frozenset(row[0] for row in (yield from sent.ask(FUNCTIONS)))
        facts.volatile = frozenset(row[0] for row in (yield from sent.ask(VOLATILE)))

    def _other(self, one: OpenTransaction, sent: Sent, statement: Statement) -> Steps:
        """Send a statement whose rows cannot be identified, and count them as unseen."""
        plan = statement.plan
        one.tables.clear()  # the statement may have changed how names are resolved
        kinds = [kind_of(what) for what in plan.unseen]
        if self._calls(statement):
            kinds.append(kind_of(CALLED))
        if plan.kind == "truncate":
            kinds.append(TRUNCATED)
        if plan.kind == "ddl":
            self._facts_known = False
            if statement.part and statement.part[0].text != "create":
                kinds.append(SHAPES)
        for kind in dict.fromkeys(kinds):
            one.unclear = True
            adds = "" if kind == kind_of(CALLED) else table_added_to(sent.text)
            self._unseen.note(kind, sent.text, table=adds)
        ends = plan.kind in ("commit", "rollback") or TWO_PHASES in plan.unseen
        if ends or not statement.whole:
            # SOUND BECAUSE: it is unknown which of the transaction's changes remain, so all its
            # operations are removed. No client can have read its versions, because its end has not
            # been sent yet.
            self._versions.forget(one.clear())
            self._transactions.end(sent.connection, Lost())
        result = yield sent.send
        self._transactions.current(sent.connection)
        return result

    def tables(self, one: OpenTransaction, sent: Sent, statement: Statement) -> Steps:
        """Return the table of each source; ``None`` if the table's rows cannot be identified.

        The statement's unseen reads and writes are also counted.
        """
        plan = statement.plan
        if plan.kind != "insert":
            self._unseen.read.update(name_parts(name)[-1] for name in plan.tables)
        unseen = [kind_of(what) for what in plan.unseen]
        if self._calls(statement):
            unseen.append(kind_of(CALLED))
        tables: list[Table | None] = []
        for source in plan.sources:
            found = yield from self._table(one, sent, source.name)
            if isinstance(found, str):
                unseen.append(kind_of(found))
            elif plan.kind != "select":
                if found.triggers:
                    unseen.append(kind_of(TRIGGERS))
                if found.may_change_other_tables(plan.kind, plan.assigned):
                    unseen.append(kind_of(CASCADES))
            tables.append(None if isinstance(found, str) else found)
        for kind in dict.fromkeys(unseen):
            one.unclear = one.unclear or kind in _MAY_WRITE
            if kind != CATALOGUE:
                self._unseen.note(kind, sent.text, table=table_added_to(sent.text))
        return tables

    def _table(self, one: OpenTransaction, sent: Sent, name: str) -> Steps:
        """Look up a table by name. If its rows cannot be identified, return the reason."""
        if name not in one.tables:
            found = rows.table_of((yield from sent.ask(lookup_query([name]))), self._names)
            one.tables[name] = found
            if not isinstance(found, str):
                self._conditions.meet(found)
        return one.tables[name]
