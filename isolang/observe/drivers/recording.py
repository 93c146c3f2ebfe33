"""Records what each statement of an application read and wrote, by queries around it.

The ``xmin`` of a row's version names the transaction that wrote the version. The watch makes a
write that returns nothing return the keys and ``xmin`` of its rows, which the application does not
see. For a SELECT, it selects the keys and ``xmin`` of the rows that match its condition, before and
after the SELECT.

SOUND BECAUSE: the versions of a row that a transaction can see only go forward. A version that is
present before a statement and after it was therefore in the statement's snapshot. If the two
versions differ, the row is unseen. Rows that a statement has locked do not change after it.

A condition that finds no row leaves no version to record. Unless it names a key that was found, it
is kept with the rows that met it, and becomes a predicate read if all versions of its table turn
out to be known (:mod:`isolang.observe.closed`). If not, it is counted as unseen.

SOUND BECAUSE: the queries of the watch are statements of the transaction, too, and each of them has
one snapshot. At READ COMMITTED, UPDATE, DELETE and a SELECT that locks check the newest version of
each row again, so they see no snapshot: only if they look up one key, they see one version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from isolang.history.values import Keyword
from isolang.observe.catalogue import FUNCTIONS, VOLATILE, Table, lookup
from isolang.observe.closed import KnownVersion, Wrote
from isolang.observe.drivers import rows
from isolang.observe.drivers.hooks import Steps
from isolang.observe.drivers.library import Sent
from isolang.observe.drivers.met import ConditionRecorder
from isolang.observe.drivers.observed import WrittenVersions
from isolang.observe.drivers.statements import Body, Planner, Statement
from isolang.observe.drivers.transactions import Lost, OpenTransaction, Transactions
from isolang.observe.executed import joined_by_key
from isolang.observe.lexer import raw
from isolang.observe.plan import JOINS, named
from isolang.observe.predicates import Parameters
from isolang.observe.rewriting import limit_value
from isolang.observe.unseen import (
    CALLED,
    CASCADES,
    CATALOGUE,
    CHANGED,
    CONDITIONS,
    FOREIGN,
    LIMITED,
    NO_ROW,
    SHAPES,
    TRIGGERS,
    TRUNCATED,
    TWO_PHASES,
    TWO_ROWS,
    Unseen,
    added_to,
    kind_of,
)

GONE: Final = Keyword("deleted")
_ATTEMPTS: Final = 5  # how often a SELECT is executed whose rows change meanwhile
_TOUCHES_NO_ROW: Final = frozenset({"quiet", "forget", "level", "begin"})
_MAY_WRITE: Final = frozenset({kind_of(CALLED), kind_of(TRIGGERS)})
_MAY_CALL: Final = frozenset({"select", "insert", "update", "delete", "quiet", "other"})


class Matched(Struct):
    """The rows of a SELECT that a query of the watch found.

    Attributes:
        tables: for each table of each body, its versions.
        size: the number of rows of the answer.
        lacks: whether an outer join did not find a row.
    """

    tables: list[rows.Versions] = field(default_factory=list)
    size: int = 0
    lacks: bool = False

    @property
    def first(self) -> rows.Versions:
        """The versions of the first table."""
        return self.tables[0]


class StatementRecorder:
    """Records the statements of one watch, within their transactions."""

    def __init__(  # noqa: PLR0917 - the parts of one watch
        self,
        planner: Planner,
        transactions: Transactions,
        versions: WrittenVersions,
        conditions: ConditionRecorder,
        unseen: Unseen,
        names: Mapping[str, str],
    ) -> None:
        """Begin to record.

        Args:
            planner: what parses the statements.
            transactions: the transactions of the watch.
            versions: the versions that watched transactions have written.
            conditions: what records conditions.
            unseen: the counts of the watch.
            names: the names of tables in the history, if they differ from those in the database.
        """
        self.planner = planner
        self._transactions = transactions
        self._versions = versions
        self._conditions = conditions
        self._unseen = unseen
        self._names = names
        self._facts_known = True

    def is_quiet(self, statement: Statement) -> bool:
        """Return whether a statement reads and writes no row of a table of the application."""
        plan = statement.plan
        creates = plan.kind == "ddl" and statement.part[0].text == "create" and not plan.unseen
        return creates or (plan.kind in _TOUCHES_NO_ROW and not self._calls(statement))

    def _calls(self, statement: Statement) -> bool:
        """Return whether a statement calls a function of the database, which may read and write."""
        plan = statement.plan
        return plan.kind in _MAY_CALL and bool(plan.names & self.planner.database.functions)

    def record(self, one: OpenTransaction, sent: Sent, statement: Statement) -> Steps:
        """Send a statement, and record what it read and wrote."""
        plan = statement.plan
        one.sent(plan.lock)
        if plan.sources or (plan.names and plan.kind == "quiet"):
            yield from self._ask_for_facts(sent)
        if not plan.sources:
            return (yield from self._other(one, sent, statement))
        tables = yield from self.tables(one, sent, statement)
        if plan.kind == "select":
            bodies = statement.bodies(tables)
            if any(body.calls & self.planner.database.changing for body in bodies):
                self._unseen.note(SHAPES, sent.text)  # a query of the watch would call it again
                bodies = []
            if not bodies:
                return (yield sent.send)
            return (yield from self._select(one, sent, statement, tables, bodies))
        (table,) = tables
        if table is None:
            one.unclear = True
            return (yield sent.send)
        if not plan.silent:
            return (yield from self._returning(one, sent, statement, table))
        result, found = yield from sent.hidden(self.selected(statement, table))
        yield from self.hidden(one, sent, statement, table, found)
        return result

    def _ask_for_facts(self, sent: Sent) -> Steps:
        """Ask which functions the database has, if a statement may have defined some."""
        if self._facts_known:
            return
        self._facts_known = True
        facts = self.planner.database
        facts.functions = frozenset(row[0] for row in (yield from sent.ask(FUNCTIONS)))
        facts.volatile = frozenset(row[0] for row in (yield from sent.ask(VOLATILE)))

    def _other(self, one: OpenTransaction, sent: Sent, statement: Statement) -> Steps:
        """Send a statement whose rows cannot be identified, and count what is unseen."""
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
            adds = "" if kind == kind_of(CALLED) else added_to(sent.text)
            self._unseen.note(kind, sent.text, table=adds)
        ends = plan.kind in ("commit", "rollback") or TWO_PHASES in plan.unseen
        if ends or not statement.whole:
            # SOUND BECAUSE: it is unknown which of the transaction's changes remain, so all its
            # operations are removed. No client can have read its versions, because its end is not
            # sent yet.
            self._versions.forget(one.clear())
            self._transactions.end(sent.connection, Lost())
        result = yield sent.send
        self._transactions.current(sent.connection)
        return result

    def tables(self, one: OpenTransaction, sent: Sent, statement: Statement) -> Steps:
        """Return the table of each source, ``None`` if its rows cannot be identified.

        What is unseen of the statement is counted, whatever its rows are.
        """
        plan = statement.plan
        if plan.kind != "insert":
            self._unseen.read.update(named(name)[-1] for name in plan.tables)
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
                if found.cascades and (plan.kind == "delete" or plan.computes):
                    unseen.append(kind_of(CASCADES))
            tables.append(None if isinstance(found, str) else found)
        for kind in dict.fromkeys(unseen):
            one.unclear = one.unclear or kind in _MAY_WRITE
            if kind != CATALOGUE:
                self._unseen.note(kind, sent.text, table=added_to(sent.text))
        return tables

    def _table(self, one: OpenTransaction, sent: Sent, name: str) -> Steps:
        """Return a table by its name in a statement, or why its rows cannot be identified."""
        if name not in one.tables:
            found = rows.table_of((yield from sent.ask(lookup([name]))), self._names)
            one.tables[name] = found
            if not isinstance(found, str):
                self._conditions.meet(found)
        return one.tables[name]

    # --- reads ---

    def _matching(
        self, one: OpenTransaction, sent: Sent, bodies: Sequence[Body], *, row: bool = False
    ) -> Steps:
        """Return the rows that match the condition of a SELECT, as a query of the watch sees it."""
        found = Matched()
        for body in bodies:
            answer = yield from sent.ask(rows.matching(body, row=row))
            one.number = rows.transaction_of(answer) or one.number
            found.tables += rows.versions(answer, [table for _, table in body.tables], row=row)
            found.size += len(answer)
            found.lacks = found.lacks or rows.lacks(answer, body, row=row)
        return found

    def _select(
        self,
        one: OpenTransaction,
        sent: Sent,
        statement: Statement,
        tables: Sequence[Table | None],
        bodies: Sequence[Body],
    ) -> Steps:
        plan = statement.plan
        # A function that is volatile may have another result, or change something, next time.
        pure = not plan.names & self.planner.database.changing
        locks = bool(plan.lock) and not one.alone  # in autocommit, its locks end with it
        alone = len(plan.sources) == 1 and all(tables)
        sums = plan.sources[0].how == "all"
        single = bool(plan.limit) and limit_value(statement.part, plan.limit, Parameters()) == 1
        for attempt in range(1, _ATTEMPTS + 1):
            before = Matched()
            if not locks:
                before = yield from self._matching(one, sent, bodies)
            result = yield sent.send
            count = sent.count(result)
            names, returned = sent.output_rows(result, len(statement.output()))
            limited = bool(plan.limit or plan.offset or plan.skips)
            first = sent.first_only and not sums and not single
            query = None
            if returned and alone and not sums and (limited or first or plan.lock):
                query = rows.returned_keys(statement, bodies[0].tables[0][1], returned, names)
            if query is None:
                after = yield from self._matching(one, sent, bodies, row=True)
            else:
                answer = yield from sent.ask(query)
                one.number = rows.transaction_of(answer) or one.number
                after = Matched(rows.versions(answer, [bodies[0].tables[0][1]]), len(answer))
            if locks:
                # SOUND BECAUSE: the returned rows are locked, so they do not change. If their keys
                # are unknown: they still match, and if the number of matching rows is the same,
                # they are the same rows.
                before = after
            every = len(before.first)
            if not locks and query is not None:
                before.tables = [{k: v for k, v in before.first.items() if k in after.first}]
                before.size = len(before.first)
            # SOUND BECAUSE: a SELECT without volatile functions changes nothing. Executed again,
            # it is as if the application had sent it later.
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
            every_table = [table for body in bodies for _, table in body.tables]
            found = 0
            for table, earlier, later in zip(every_table, before.tables, after.tables, strict=True):
                found = max(found, self._read(one, sent.text, table, earlier, later))
            if (count or 0) > max(found, most) and not sums:
                self._unseen.note(CHANGED, sent.text)
                found = count or 0
        read = one.steps[steps:]
        complete = len(read) == sum(map(len, after.tables))
        if statement.counts() and returned and returned[0][0] is not None:
            complete = complete and int(returned[0][0]) == after.size
        elif not sums:
            complete = complete and count in (None, after.size) and not (first and every > 1)
        if alone:
            met = after.first if complete else None
            yield from self._conditions.note(
                one, sent, statement, bodies[0].tables[0][1], found, met, covers=len(read)
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
        """Record the condition of a SELECT of several tables, if keys join all but the first."""
        sources = statement.plan.sources
        # SOUND BECAUSE: with subqueries, functions, HAVING or DISTINCT ON, more than the joins
        # decides which rows are returned.
        joined = statement.plan.partial == JOINS and all(
            table is not None and (not n or joined_by_key(statement.part, sources[n], table))
            for n, table in enumerate(tables)
        )
        if not (joined and complete) or after.lacks:
            # A row that LEFT JOIN did not find is the absence of a key.
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
        """Record the rows that a SELECT did not see change; return the number of all its rows."""
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

    # --- writes ---

    def selected(self, statement: Statement, table: Table) -> str:
        """Return the columns by which a write tells the watch its rows."""
        ((source,)) = statement.plan.sources
        return rows.selected([(source.alias, table)], row=True, old=self._returns_old(statement))

    def _returns_old(self, statement: Statement) -> bool:
        aliases = {raw(source.alias) for source in statement.plan.sources}
        return self._conditions.possible and not aliases & {"old", "new"}

    def hidden(
        self,
        one: OpenTransaction,
        sent: Sent,
        statement: Statement,
        table: Table,
        found: Sequence[Sequence[Any]],
    ) -> Steps:
        """Record a write by the columns of :meth:`selected`."""
        one.number = rows.transaction_of(found) or one.number
        old = self._returns_old(statement)
        (versions,) = rows.versions(found, [table], old=old)
        yield from self._wrote(one, sent, statement, table, versions, old=old)

    def _returning(
        self, one: OpenTransaction, sent: Sent, statement: Statement, table: Table
    ) -> Steps:
        """Send a write that returns rows to the application, and query their versions after it.

        In autocommit both statements need a transaction, so that no other version is between them.
        """
        if one.alone:
            yield from sent.ask("BEGIN")
        try:
            result, found = yield from sent.returning()
            yield from self._returned(one, sent, statement, table, found)
        except Exception:
            state = self._transactions.library.state(sent.connection)
            if one.alone and state in ("open", "failed"):
                yield from sent.ask("ROLLBACK")
            raise
        if one.alone:
            yield from sent.ask("COMMIT")
        return result

    def _returned(
        self,
        one: OpenTransaction,
        sent: Sent,
        statement: Statement,
        table: Table,
        found: list[list[Any]] | None,
    ) -> Steps:
        query = None
        if found is not None and statement.plan.kind != "delete":
            if not found:
                yield from self._wrote(one, sent, statement, table, {}, old=False)
                return
            query = rows.returned_keys(statement, table, found)
        if query is None:
            one.unclear = True
            self._unseen.note("returning", sent.text)
            return
        answer = yield from sent.ask(query)
        one.number = rows.transaction_of(answer) or one.number
        (versions,) = rows.versions(answer, [table])
        yield from self._wrote(one, sent, statement, table, versions, old=False)

    def _wrote(
        self,
        one: OpenTransaction,
        sent: Sent,
        statement: Statement,
        table: Table,
        versions: rows.Versions,
        *,
        old: bool,
    ) -> Steps:
        """Record the rows that a statement wrote.

        Args:
            one: the transaction.
            sent: the statement as it was sent.
            statement: the statement.
            table: its table.
            versions: the new version of each row; the last one of a deleted row.
            old: whether the versions name those that they replaced.
        """
        kind, assigned = statement.plan.kind, statement.plan.assigned
        moved = bool(assigned & set(table.key))
        if kind != "insert":
            replaced: rows.Versions = {
                key: rows.Version(number=one.old, seen=one.seen, cells=one.old_cells)
                for key, one in versions.items()
                if one is not None and one.old is not None
            }
            known = (old or not versions) and len(replaced) == len(versions) and not moved
            yield from self._conditions.note(
                one, sent, statement, table, len(versions), replaced if known else None
            )
        for key, version in versions.items():
            step = _step(statement, table, key, version, old=old and not moved)
            if kind == "delete":
                one.write(key, GONE, step=step)
            elif version is None:
                one.unclear = True
                self._unseen.note("deleted", key)
            else:
                self._versions.wrote(key, version.number)
                sets = [column for column in table.others if raw(column) in assigned]
                seen = replace(version.seen, named=sets)
                one.write(key, version.number, seen, step=step)
        proposed = statement.plan.proposed
        if proposed >= 0 and len(versions) != proposed:
            self._unseen.note(NO_ROW, sent.text)
        if versions and moved:
            self._unseen.note("keys", sent.text)


def _changed(before: Matched, after: Matched, count: int | None) -> bool:
    """Return whether rows changed between the two queries of the watch.

    Args:
        before: the rows before the statement.
        after: the rows after it.
        count: the number of rows that the application received; ``None`` if it need not be equal.
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


def _step(
    statement: Statement, table: Table, key: str, version: rows.Version | None, *, old: bool
) -> Wrote:
    """Return a write of a row in detail; ``old`` says whether the version names its old one."""
    plain = statement.plan.kind == "insert" and not statement.plan.upserts
    replaced = None
    if version is not None and version.old is not None:
        replaced = KnownVersion(key, version.old, version.old_cells)
    gone = statement.plan.kind == "delete" or version is None
    return Wrote(
        table=table.name,
        key=key,
        number=None if gone or version is None else version.number,
        cells={} if gone or version is None else version.cells,
        old=replaced,
        old_known=version is not None and (old or plain),
    )
