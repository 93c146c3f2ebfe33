"""Follows the transactions of one session, and records what each statement read and wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from isolang.observe.catalogue import Table, Tables, described, exact_json
from isolang.observe.edn import predicate_edn
from isolang.observe.executed import (
    ExecutedStatement,
    joined_by_key,
    limit_reached,
    predicate_of,
    predicate_of_block,
)
from isolang.observe.history import (
    ObservedHistory,
    Outcome,
    RowVersion,
    ScannedRows,
    SeenTransaction,
    WrittenRow,
)
from isolang.observe.plan import JOINS, named
from isolang.observe.predicates import Predicate
from isolang.observe.rewriting import (
    DatabaseFacts,
    Prepared,
    PreparedStatement,
    ReportedTable,
    Rewriter,
    keeps_key,
)
from isolang.observe.unseen import (
    ALTERED,
    BROKEN,
    CONDITIONS,
    DEFINITIONS,
    ERRORS,
    KEY_TYPE,
    LARGE,
    LIMITED,
    NO_ANSWER,
    NO_BEGIN,
    NO_END,
    NO_KEY,
    NO_ROW,
    OLD_SERVER,
    OTHER_TABLE,
    PARTITIONED,
    PRIVILEGE,
    TRUNCATED,
)

# The kinds of unseen writes that depend on the table into which an INSERT inserts.
_OF_TABLES: Final = frozenset({NO_KEY, KEY_TYPE, PRIVILEGE, PARTITIONED})
_SHOWN: Final = 100  # the largest number of characters of a statement in the history
_COMMENT: Final = re.compile(r"^\s*/\*\s*([\w./ :-]{1,80}?)\s*\*/")
_LEVEL: Final = re.compile(r"(serializable|repeatable read|read committed|read uncommitted)")
_RETURNS_TO_SESSION: Final = re.compile(r"set\s+session\b", re.IGNORECASE)


class Observation(Struct, kw_only=True):
    """An observation of one database, which all sessions share.

    Attributes:
        database: the known facts about the database.
        history: the history to which sessions are written.
        tables: the tables that sessions have used.
        most_rows: the largest number of rows in a predicate read.
        epoch: how often a definition in the database has changed.
        refreshed: the epoch in which the names of functions were last read.
        audit: a function that audits before a definition changes, and then calls its argument;
            ``None`` if no audit is possible.
    """

    database: DatabaseFacts
    history: ObservedHistory
    tables: Tables
    most_rows: int
    epoch: int = 0
    refreshed: int = 0
    audit: Callable[[Callable[[], None]], None] | None = None


class Session:
    """One connection of the application, and its current transaction.

    Attributes:
        observation: the observation of the session's database.
        transaction: the current transaction; ``None`` if no transaction is open.
        label: the application's name, which labels its transactions.
    """

    def __init__(self, observation: Observation) -> None:
        self.observation = self._all = observation
        self._history = observation.history
        self.rewriter = Rewriter(observation.database)
        self.transaction: SeenTransaction | None = None
        self.label = ""
        self.default_level = "read committed"
        self._process = self._history.process()
        self._last_end = -1
        self._epoch = observation.epoch

    # --- texts ---

    def prepare(self, text: str, *, may_ask: bool) -> Prepared:
        """Return a statement's text in the form in which it is sent to the server."""
        if self._epoch != self._all.epoch:
            self._epoch = self._all.epoch
            self.rewriter.forget()
        return self.rewriter.prepare(text, may_ask=may_ask)

    def describe(self, rows: Sequence[bytes], names: Sequence[str]) -> None:
        """Store the catalogue's descriptions of tables, one text for each table."""
        for name in names:
            self.rewriter.tables.setdefault(name, None)
        for text in rows:
            level, default, table = json.loads(text)
            self.default_level = default
            if self.transaction is not None:
                self.transaction.level = level
            name, found = described(table)
            self.rewriter.tables[name] = found and self._all.tables.meet(found)

    def begun(self) -> int | None:
        """Return the position of the current transaction's first event; ``None`` outside of one."""
        return None if self.transaction is None else self.transaction.begin

    # --- answers ---

    def complete(self, done: ExecutedStatement, tag: str) -> None:
        """Note that a statement has been executed."""
        try:
            self._complete(done, tag)
        except Exception as error:  # an application must not notice errors of the observer
            self._history.unseen.note(ERRORS, f"{error!r}: {done.statement.text}")

    def _complete(self, done: ExecutedStatement, tag: str) -> None:
        made, one = done.statement.plan, self.transaction
        kind = made.kind
        if kind == "quiet":
            for what in done.statement.unseen:
                self._history.unseen.note(what, done.statement.text)
            if one is not None and done.statement.unseen:
                one.unclear = True
            return
        if kind == "level":
            if made.name and one is not None and not _RETURNS_TO_SESSION.match(done.statement.text):
                one.level = made.name
            elif made.name:
                self.default_level = made.name
            return
        if kind == "forget":
            self._forget(done.statement.text)
            return
        if kind == "begin":
            one = self._begin(done, implicit=False)
            one.level = made.name or one.level
            return
        if kind in ("commit", "rollback"):
            if one is not None:
                self._finish("ok" if tag == "COMMIT" and not one.failed else "fail")
            if made.name == "chain":
                begun = ExecutedStatement(statement=done.statement, ticket=self._history.ticket())
                level = one.level if one is not None else self.default_level
                self._begin(begun, implicit=False).level = level
            return
        one = self._begin(done, implicit=True)
        one.execute(made.lock)
        one.cut.pop(id(done.reported), None)
        one.unclear |= bool(done.statement.unseen) or kind in ("other", "truncate")
        if kind == "savepoint":
            one.savepoints.append((made.name, len(one.operations)))
        elif kind == "release":
            one.release(made.name)
        elif kind == "back":
            one.roll_back_to(made.name)
        elif kind == "ddl":
            one.altered = True
            self._all.epoch += 1
            for what in (DEFINITIONS, *done.statement.unseen):
                self._history.unseen.note(what, done.statement.text)
        elif kind == "truncate":
            self._truncate(one, done)
        else:
            self._count(done.statement)
            if kind == "other":
                self.rewriter.forget()
            self._operations(one, done)

    def _count(self, statement: PreparedStatement) -> None:
        """Count the reads and writes of a statement that cannot be seen."""
        unseen, made = self._history.unseen, statement.plan
        tables = [named(one)[-1] for one in made.tables]
        if made.kind != "insert":
            unseen.read.update(tables)
        for what in statement.unseen:
            adds = made.kind == "insert" and what in _OF_TABLES
            unseen.note(what, statement.text, table=tables[0] if adds else "")

    def _forget(self, text: str) -> None:
        """Note a statement that may change the meaning of names, or the isolation level."""
        self.rewriter.forget()
        lower = text.lower()
        level = _LEVEL.search(lower)
        if level and "default_transaction_isolation" in lower:
            self.default_level = level[1]
        elif level and "transaction_isolation" in lower and self.transaction is not None:
            self.transaction.level = level[1]

    def _truncate(self, one: SeenTransaction, done: ExecutedStatement) -> None:
        one.altered = True
        for name in done.statement.plan.tables:
            table = self.rewriter.tables.get(name)
            if table is not None:
                self._all.tables.emptied(table)
        self._history.unseen.note(TRUNCATED, done.statement.text)
        self._all.epoch += 1

    def _begin(self, done: ExecutedStatement, *, implicit: bool) -> SeenTransaction:
        """Return the current transaction; if there is none, begin a new transaction."""
        one = self.transaction
        if one is None:
            if done.ticket[0] < self._last_end:
                # SOUND BECAUSE: the statement was sent before the last transaction had ended, so
                # the two transactions overlap. The transactions of one session must not overlap, so
                # a new session begins.
                self._process = self._history.process()
            one = self._history.begin(self._process, done.ticket, implicit=implicit)
            one.level = self.default_level
            comment = _COMMENT.match(done.statement.text)
            one.labels = tuple(n for n in (self.label, comment[1] if comment else "") if n)
            self.transaction = one
        elif not implicit:
            one.implicit = False
        return one

    def _finish(self, outcome: Outcome, error: str = "") -> None:
        one = self.transaction
        if one is None:
            return
        for done in one.cut.values():
            done.cut = True
            self._count(done.statement)
            self._operations(one, done)
        self.transaction = None
        if one.altered:
            self._all.epoch += 1
        self._history.end(one, outcome, error or one.error)
        self._last_end = one.end
        if outcome == "info":
            self._process = self._history.process()

    def ready(self, status: str) -> None:
        """Note that the server waits for statements, inside a transaction (T, E) or outside (I)."""
        one = self.transaction
        if one is None:
            if status != "I":
                self._history.unseen.note(NO_BEGIN)
                made = self._history.begin(self._process, self._history.ticket())
                made.level = self.default_level
                self.transaction = made
        elif status == "I":
            if one.implicit or one.failed:
                self._finish("fail" if one.failed else "ok")
            else:
                self._history.unseen.note(NO_END)
                self._finish("info")
        elif status == "T":
            one.implicit = False

    def failed(
        self, done: ExecutedStatement | None, state: str, message: str, *, fatal: bool
    ) -> None:
        """Note an error that the server reported."""
        if self.transaction is None:
            if done is None or done.statement.plan.kind in ("quiet", "begin", "level"):
                return
            self._begin(done, implicit=True)
        one = self.transaction
        if one is None:
            return
        one.failed = True
        one.error = f"{state} {message}".strip()
        if done is not None and done.statement.plan.kind == "commit":
            self._finish("info" if fatal else "fail")

    def lost(self, waiting: Sequence[ExecutedStatement]) -> None:
        """Note that the connection has ended before the ``waiting`` statements were answered."""
        one = self.transaction
        harmless = ("quiet", "begin", "select", "level", "forget")
        if one is not None:
            one.unclear |= any(w.statement.plan.kind not in harmless for w in waiting)
            commits = any(w.statement.plan.kind == "commit" for w in waiting) or one.implicit
            self._finish("info" if commits and not one.failed else "fail", "connection lost")
            if one.outcome == "fail":
                return
        for done in waiting:
            if done.statement.plan.kind not in (*harmless, "commit", "rollback"):
                self._history.unseen.note(NO_ANSWER, done.statement.text)
                break

    def broken(self) -> None:
        """Note that further messages on the connection cannot be understood."""
        self._history.unclear = True
        self._history.unseen.note(BROKEN)
        self._finish("info", "the connection broke the protocol")

    # --- operations ---

    def partly(self, done: ExecutedStatement) -> None:
        """Note that the application has received a part of the rows of a SELECT.

        If the application does not request the remaining rows before the transaction ends, these
        rows are treated as if a LIMIT had left them out.
        """
        one = self._begin(done, implicit=True)
        one.statement = ""
        one.cut[id(done.reported)] = done
        shown = _shown(done.statement.text)
        for reported, text in done.reported:
            for version in self._versions(reported, text):
                one.read(reported.table, version, shown)

    def _operations(self, one: SeenTransaction, done: ExecutedStatement) -> None:
        """Note what a statement read and wrote."""
        shown = _shown(done.statement.text)
        tables = [reported.table for reported in done.statement.reported]
        tables += [block.reported.table for block in done.statement.blocks]
        if any(table.altered for table in tables):
            self._history.unseen.note(ALTERED, done.statement.text)
            return
        if done.statement.plan.kind == "select":
            self._selected(one, done, shown)
            if done.statement.blocks:
                self._blocks(one, done, shown)
        elif done.statement.reported:
            self._written(one, done, shown)

    def _selected(self, one: SeenTransaction, done: ExecutedStatement, shown: str) -> None:
        sources = [one.source for one in done.statement.reported]
        found: dict[str, list[RowVersion]] = {one.alias: [] for one in sources}
        if not sources:
            return
        for reported, text in done.reported:
            if any(reported is other for other in done.statement.reported):
                found[reported.source.alias] += self._versions(reported, text)
        whole = len(sources) == len(done.statement.plan.sources)
        first = done.statement.reported[0].table
        if whole and len(sources) == 1:
            self._concluded(one, done, first, _distinct(found[sources[0].alias]), shown)
            return
        # SOUND BECAUSE: if there are subqueries, functions, HAVING or DISTINCT ON, the joins are
        # not the only reason why rows are not returned.
        only = done.statement.plan.partial == JOINS
        joined = (
            whole
            and only
            and all(
                joined_by_key(done.statement.part, other.source, other.table)
                for other in done.statement.reported[1:]
            )
        )
        for reported in done.statement.reported[joined:]:
            versions = found[reported.source.alias]
            if len(versions) > self._all.most_rows:
                self._history.unseen.note(LARGE, done.statement.text)
                continue
            for version in _distinct(versions):
                one.read(reported.table, version, shown)
        if not joined or any(len(rows) != done.rows for rows in found.values()):
            # If LEFT JOIN finds no row, the statement has read that a row is missing.
            self._history.unseen.note(CONDITIONS, done.statement.text)
        if joined:
            outer = all(source.join == "left" for source in sources[1:])
            self._concluded(
                one, done, first, _distinct(found[sources[0].alias]), shown,
                partial="" if outer else JOINS,
            )  # fmt: skip

    def _blocks(self, one: SeenTransaction, done: ExecutedStatement, shown: str) -> None:
        """Note which rows the query blocks of a SELECT found, and which rows they did not find."""
        text = done.statement.text
        if limit_reached(done):  # the statement itself may have read fewer rows
            self._history.unseen.note(LIMITED, text)
            return
        by_block = {id(reported): found for reported, found in done.reported}
        for block in done.statement.blocks:
            reported = block.reported
            rows = self._versions(reported, by_block.get(id(reported), b"null"))
            if len(rows) > self._all.most_rows:
                self._history.unseen.note(LARGE, text)
                continue
            kind, predicate = predicate_of_block(done, block, len(rows))
            if kind:
                self._history.unseen.note(kind, text)
            self._found(one, reported.table, rows, predicate, shown)

    def _found(  # noqa: PLR0917 - what was found, and how
        self,
        one: SeenTransaction,
        table: Table,
        rows: Sequence[RowVersion],
        predicate: Predicate,
        shown: str,
        order: tuple[str, bool] | None = None,
    ) -> None:
        """Note the rows that were found; a predicate also states that no other rows matched."""
        if not predicate:
            for version in rows:
                one.read(table, version, shown)
            return
        one.operations.append(
            ScannedRows(table, predicate_edn(predicate), tuple(rows), shown, order, one.statement)
        )
        for version in rows:
            one.seen.add((table.name, version.number))

    def _versions(self, reported: ReportedTable, text: bytes) -> list[RowVersion]:
        """Return the versions of rows in a column that a SELECT reports."""
        if reported.source.how == "all":
            members = json.loads(text) or ()
            return [v for member in members if (v := self._version(reported, member)) is not None]
        version = self._version(reported, text.decode())
        return [] if version is None else [version]

    def _version(self, reported: ReportedTable, text: str) -> RowVersion | None:
        oid, _, rest = text.partition(" ")
        if not oid.isdigit():
            return None  # an outer join found no row of the table
        xmin, ctid, key = rest.split(" ", 2)
        return self._named(reported.table, oid, xmin, ctid, exact_json(key))

    def _named(
        self, table: Table, oid: str, xmin: str, ctid: str, key: Sequence[Any]
    ) -> RowVersion | None:
        number = f"{xmin}{ctid}"
        if table.partitioned:
            number += f"@{oid}"
        elif int(oid) != table.oid:
            self._history.unseen.note(OTHER_TABLE, table.name)
            self._all.epoch += 1
            return None
        return RowVersion(table.key_text(key), number, tuple(key))

    def _written(self, one: SeenTransaction, done: ExecutedStatement, shown: str) -> None:
        made = done.statement.plan
        (reported,) = done.statement.reported
        table = reported.table
        modern, lost = self._all.database.modern, False
        writes: list[WrittenRow] = []
        olds: list[RowVersion] = []
        for _, text in done.reported:
            (number, old_oid, old_xmin, old_ctid, old_key,
             new_oid, new_xmin, new_ctid, new_key, whole, *before) = exact_json(text)  # fmt: skip
            one.number = int(number) % 2**32
            old = new = None
            if before and before[0] and len(before[0]) == 1:
                old = self._named(table, *before[0][0])
            if old_oid is not None:
                old = self._named(table, old_oid, old_xmin, old_ctid, old_key)
            if new_oid is not None:
                new = self._named(table, new_oid, new_xmin, new_ctid, new_key)
            if old is None and new is None:
                continue
            if old is not None:
                olds.append(old)
            row = None if whole is None else table.row(whole)
            unknown = old is None and not modern and (made.kind == "update" or made.upserts)
            lost = lost or unknown
            writes.append(
                WrittenRow(
                    table, new, row, old, shown, inserts=old is None and not unknown,
                    statement=one.statement, same_key=unknown and keeps_key(made, table),
                )
            )  # fmt: skip
        if lost:
            self._lost_order(one, done, table, writes)
        if made.kind == "insert":
            if made.proposed >= 0 and len(writes) != made.proposed:
                self._history.unseen.note(NO_ROW, done.statement.text)
            for old in olds:  # ON CONFLICT DO UPDATE
                one.read(table, old, shown)
        elif not lost:
            self._concluded(one, done, table, olds, shown)
        for write in writes:
            one.write(write)

    def _lost_order(
        self,
        one: SeenTransaction,
        done: ExecutedStatement,
        table: Table,
        writes: Sequence[WrittenRow],
    ) -> None:
        """Note a write of rows whose replaced versions an old server does not return."""
        history, made, condition = self._history, done.statement.plan, done.statement.condition
        history.doubtful.setdefault(table.name, table.name)
        history.unordered.add(table.name)
        kind = ""
        predicate: Predicate = ""
        if made.kind == "update":
            kind, predicate, _ = predicate_of(
                done, table, len(writes), made.partial, committed=_is_committed(one)
            )
        if kind:
            history.unseen.note(kind, done.statement.text)
        key_only = not condition.why and condition.columns <= set(table.key)
        moves = any(not write.same_key for write in writes)
        if predicate or made.computes or made.upserts or moves or not key_only:
            history.unseen.note(OLD_SERVER, done.statement.text)

    def _concluded(
        self,
        one: SeenTransaction,
        done: ExecutedStatement,
        table: Table,
        rows: Sequence[RowVersion],
        shown: str,
        *,
        partial: str | None = None,
    ) -> None:
        """Note which rows a statement on one table found, and which its condition did not find."""
        statement, history = done.statement, self._history
        made, condition = statement.plan, statement.condition
        writes = made.kind != "select"
        if len(rows) > self._all.most_rows:
            history.unseen.note(LARGE, statement.text)
            return
        why = statement.plan.partial if partial is None else partial
        kind, predicate, order = predicate_of(
            done,
            table,
            len(rows),
            why,
            committed=_is_committed(one),
        )
        if predicate:
            self._found(one, table, rows, predicate, shown, order)
            return
        if kind:
            history.unseen.note(kind, statement.text)
        # SOUND BECAUSE: the old version of a row counts as read only if the statement's effect
        # depends on more than the key of that version. Otherwise, a lost update would be reported
        # as a fractured read.
        key_only = not condition.why and condition.columns <= set(table.key)
        if not writes or made.computes or not key_only:
            for version in rows:
                one.read(table, version, shown)


def _is_committed(one: SeenTransaction) -> bool:
    """Return whether each statement of a transaction has a separate snapshot."""
    return one.level in ("read committed", "read uncommitted")


def _distinct(versions: Sequence[RowVersion]) -> list[RowVersion]:
    """Return the versions without repetitions, because a join may return a row several times."""
    return list({version.number: version for version in versions}.values())


def _shown(text: str) -> str:
    """Return a statement as the history shows it."""
    shown = " ".join(text.split())
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"
