"""Derives a statement's reads and writes from the rows returned by the server."""

from __future__ import annotations

import json
from collections.abc import Mapping

from msgspec.structs import replace

from isolang.observe.history.seen import ReadRow, SeenTransaction, WrittenRow
from isolang.observe.observation import Observation
from isolang.observe.sql.executed import ExecutedStatement, PortalPosition
from isolang.observe.sql.rewriting import PreparedStatement, ReportedTable
from isolang.observe.unseen import ALTERED, CONDITIONS, CURSORS, RULES
from isolang.observe.versions.facts import StatementFacts
from isolang.observe.versions.hidden import count_hidden
from isolang.observe.versions.selects import SelectOperations
from isolang.observe.versions.writes import WriteOperations


def record_statement(
    observation: Observation,
    one: SeenTransaction,
    done: ExecutedStatement,
    *,
    only_rows: bool = False,
    skips: bool = False,
) -> None:
    """Record the operations of a statement, where they belong in its transaction.

    SOUND BECAUSE: a SELECT reads the snapshot of the time when it was bound, which lacks the
    transaction's later writes, even if the application requests its rows after them. A SELECT that
    locks rows may read newer versions, and leaves out rows that the transaction has written since;
    so the rows that it returned do not show which rows satisfied its condition.

    Args:
        only_rows: whether more rows may follow.
        skips: whether rows before the last one may be missing, because a cursor was moved.
    """
    position, plan, named = done.position, done.statement.plan, one.statement
    facts = StatementFacts(observation, one, done)
    operations = StatementOperations(facts)
    if position is None:
        operations.record()
        return
    is_last = position.at >= len(one.operations)
    # A lock of rows is taken when they are requested.
    now = plan.locks and (not is_last or done.statement.declares is not None)
    one.statement = one.statement_now(plan.lock) if now else position.statement
    record = operations.record_rows if only_rows else operations.record
    if skips:
        record = operations.record_some_rows
    facts.all_matched = is_last or not plan.locks
    # The operations precede a savepoint that was set since, so its rollback keeps them.
    is_before = plan.kind == "select" and position.savepoints < len(one.savepoints)
    if (is_last and not is_before) or plan.locks or plan.kind != "select":
        before = len(one.operations)
        record()
        if plan.locks:
            _drop_earlier_rows(facts, position, before)
        if is_last:
            position.at = len(one.operations)
    else:
        every, one.operations = one.operations, []
        record()
        added, one.operations = one.operations, every
        one.insert(position, added)
    one.statement = named


def _drop_earlier_rows(facts: StatementFacts, position: PortalPosition, begin: int) -> None:
    """Drop reads of rows that a locking SELECT returned on an earlier request.

    SOUND BECAUSE: such a row was read then. Its read is missing only if it was taken back with a
    savepoint, so it is counted, and must not follow what the transaction has written since.

    Args:
        begin: the number of operations before those of this request.
    """
    one, earlier = facts.transaction, position.rows
    added = one.operations[begin:]
    kept = [
        operation
        for operation in added
        if not isinstance(operation, ReadRow)
        or (operation.table.name, operation.version.number) not in earlier
    ]
    if len(kept) < len(added):
        one.operations[begin:] = kept
        facts.note_unseen(CURSORS)
    position.rows = frozenset(
        (reported.table.name, version.number)
        for reported, text in facts.done.reported
        for version in facts.versions(reported, text)
    )


class StatementOperations:
    """Adds the operations of an executed statement to its transaction."""

    def __init__(self, facts: StatementFacts) -> None:
        self._facts = facts

    def record_rows(self) -> None:
        """Record the rows received by the application so far."""
        cover, blocks = self._facts.statement.cover, self._facts.statement.blocks
        added = {id(reported) for reported in cover.tables} if cover is not None else set()
        added |= {id(block.reported) for block in blocks if block.cover is not None}
        for reported, text in self._facts.done.reported:
            if id(reported) not in added:
                self._facts.add_reads(reported.table, self._facts.versions(reported, text))

    def record_some_rows(self) -> None:
        """Record the rows that a cursor fetched, and count its condition as unseen."""
        count_hidden(self._facts)
        if self._facts.statement.plan.kind == "select":
            self.record_rows()
            self._facts.note_unseen(CONDITIONS)

    def record(self) -> None:
        """Record the statement's reads and writes, and count those that cannot be seen."""
        statement = self._facts.statement
        count_hidden(self._facts)
        if any(table.altered for table in statement.described):
            self._facts.note_unseen(ALTERED)
        elif self._facts.observation.database.roles_change and any(
            table.secured for table in statement.described
        ):
            self._facts.transaction.unclear = True
            self._facts.note_unseen(RULES)
        elif statement.plan.kind == "compound":
            self._note_queries()
        elif statement.plan.kind == "select":
            selected = SelectOperations(self._facts)
            if statement.reported:
                selected.add()
            if statement.blocks:
                selected.add_blocks()
        elif statement.reported:
            WriteOperations(self._facts).add()

    # --- statements with several queries ---

    def _note_queries(self) -> None:
        """Note the rows read and written by the queries of a statement.

        SOUND BECAUSE: all its queries read the snapshot of the statement, without its own writes.
        A row that a plain query read may have changed before the statement writes it, because only
        the query that writes it waits for it. So the read counts as that of another statement.
        """
        one, before = self._facts.transaction, self._facts.transaction.operations
        one.operations = []
        if self._facts.statement.blocks:
            SelectOperations(self._facts).add_rows_of_blocks(in_part=self._facts.done.cut)
        is_plain = [True] * len(one.operations)
        rows: dict[str, int] = {}
        for query in self._facts.statement.members:
            assert query.member is not None
            done = self._executed(query, rows)
            rows[query.member.name] = done.rows
            facts = StatementFacts(self._facts.observation, one, done)
            if query.plan.kind == "select":
                SelectOperations(facts).add()
            else:
                WriteOperations(facts).add()
            reads_only = query.plan.kind == "select" and not query.plan.locks
            is_plain += [reads_only] * (len(one.operations) - len(is_plain))
        replaced = {
            (operation.table.name, operation.old.number)
            for operation in one.operations
            if isinstance(operation, WrittenRow) and operation.old is not None
        }
        added = [
            replace(operation, statement="")
            if plain
            and isinstance(operation, ReadRow)
            and (operation.table.name, operation.version.number) in replaced
            else operation
            for operation, plain in zip(one.operations, is_plain, strict=True)
        ]
        one.operations = before
        one.operations += sorted(added, key=lambda operation: isinstance(operation, WrittenRow))

    def _executed(self, query: PreparedStatement, rows: Mapping[str, int]) -> ExecutedStatement:
        """Return the execution of one query of a statement.

        Args:
            rows: the number of rows of each query before it.
        """
        done, member = self._facts.done, query.member
        assert member is not None
        reported: list[tuple[ReportedTable, bytes]] = []
        for column in query.reported:
            texts = [text for other, text in done.reported if other is column]
            if member.name:
                texts = [row.encode() for text in texts for row in json.loads(text)]
            reported += [(column, text) for text in texts]
        chosen = rows.get(member.chooser, -1) if member.chooser else query.plan.proposed or -1
        number = len(reported) // max(len(query.reported), 1)
        proposals = {id(block.reported) for block in self._facts.statement.blocks if block.query}
        return ExecutedStatement(
            statement=query, ticket=done.ticket, parameters=done.parameters, rows=number,
            reported=reported, cut=done.cut and not member.name, chosen=chosen, mark=done.mark,
            conflicts=[one for one in done.reported if id(one[0]) in proposals],
            settings=done.settings, now=done.now, whole=self._facts.statement.part,
        )  # fmt: skip
