"""Derives what a statement read from its answer, and from what the log says that it wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from isolang.observe.history.edn import column_edn, edn, predicate_edn
from isolang.observe.history.evaluated import EvaluatedCondition, EvaluatedConditions
from isolang.observe.history.lines import NOTHING
from isolang.observe.log.replay import ReplayedChange
from isolang.observe.log.tables import LoggedTable, Row
from isolang.observe.mariadb.block_reads import BlockReads
from isolang.observe.mariadb.blocks import described_table
from isolang.observe.mariadb.compared import fixed_columns, with_truths
from isolang.observe.mariadb.contents import NamedTable, NamedTables
from isolang.observe.mariadb.evaluation import before_sql
from isolang.observe.mariadb.expressions import is_evaluable, server_condition
from isolang.observe.mariadb.limits import rows_cut_off
from isolang.observe.mariadb.plan import SourceTable, is_connected_by_and
from isolang.observe.mariadb.recording import FollowedTransaction, RecordedStatement
from isolang.observe.mariadb.statements import Statement
from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.predicates import (
    CannotEvaluateError,
    ColumnLookup,
    ParsedCondition,
    parse_condition,
    parse_known_parts,
)
from isolang.observe.unseen import (
    ALTERED,
    CONDITIONS,
    CURSORS,
    IN_NO_LOG,
    LARGE,
    LIMITED,
    NO_ROW,
    RECHECKED,
    UNCHANGED,
    Unseen,
)


class SeenOperation(Struct, frozen=True, gc=False):
    """An operation of a transaction, in EDN.

    Attributes:
        table: the label of its table.
        version: the number of the version that it writes; ``None`` for a read.
        shown: the caller of its statement, or else the text.
        statement: the name of its statement in the history.
        perhaps: whether it only may have decided the answer.
        kept: the versions that make it certain if no transaction ever replaced them.
        condition: the condition of a predicate read that the server evaluates at the end.
        rows: the rows that it found, each with its key in EDN; reads of them follow.
        caller: the ``file:line`` that assigned what it writes; empty if its statement's caller did.
    """

    text: str
    table: str
    version: int | None = None
    shown: str = ""
    statement: str = ""
    perhaps: bool = False
    kept: tuple[tuple[str, str], ...] = ()
    condition: EvaluatedCondition | None = None
    rows: tuple[str, ...] = ()
    caller: str = ""

    @property
    def writes(self) -> bool:
        """Return whether it is a write."""
        return self.version is not None


class TableRead(Struct):
    """The rows that a statement found in a table."""

    event: RecordedStatement
    transaction: FollowedTransaction
    table: NamedTable
    source: SourceTable
    rows: Sequence[Row]


class TableReads:
    """Returns the reads of a table by a statement.

    Attributes:
        doubtful: the labels of tables with contents that the log does not explain.
    """

    def __init__(self, tables: NamedTables, unseen: Unseen, most_rows: int) -> None:
        """Store where to find the contents of rows, and what to count."""
        self.tables, self._unseen, self._most_rows = tables, unseen, most_rows
        self.doubtful: set[str] = set()
        self.evaluated = EvaluatedConditions()
        self._described: dict[str, Table] = {}  # the tables with evaluated conditions

    def _read(
        self, read: TableRead, partial: str, *, depends: bool, writes: bool = False
    ) -> list[SeenOperation]:
        """Return the rows that a statement found, and that no other rows met its condition.

        Args:
            partial: why the condition does not decide which rows it found; empty if it does.
            depends: whether the statement depends on values of the rows.
            writes: whether it writes the rows.
        """
        statement, plan, table = read.event.statement, read.event.statement.plan, read.table
        rows = self.known_rows(read)
        if rows is None:
            return []
        reads = [
            self.row_read(table, key, text, read.event, read.transaction)
            for key, text in (rows.items() if depends else ())
        ]
        if read.event.is_open:
            self.note(CURSORS, statement)
            return reads
        condition = self.condition(statement, table, read.source)
        fixed = fixed_columns(condition, table.table.columns, statement.part, statement.parameters)
        if any(unique <= fixed for unique in table.table.unique) and rows:
            if partial and len(plan.sources) > 1:
                self.note(partial, statement)
            return reads
        if plan.skips:
            return reads
        if partial:
            self.note(CONDITIONS, statement)
            return reads
        cut = rows_cut_off(read.event, table.compared, len(rows))
        if cut.which == "unknown":
            self.note(LIMITED, statement)
        if cut.which in ("unknown", "any"):
            return reads
        locks = writes or bool(plan.locks)
        has_key = frozenset(table.table.key) <= fixed
        if read.transaction.level.startswith("read ") and locks and not has_key:
            self.note(RECHECKED, statement)
            return reads
        try:
            predicate = condition.predicate(table.compared, statement.part, statement.parameters)
        except CannotEvaluateError:
            evaluated = self._evaluated_read(read, rows, cut.order)
            if evaluated is None:
                self.note(CONDITIONS, statement)
            return evaluated or reads
        where, last = predicate_edn(with_truths(predicate)), set[tuple[Any, ...]]()
        if cut.order is not None:
            where, last = self._before_last(read, where, cut.order)
        listed = " ".join(
            f"{table.key_edn(key)} {text}" for key, text in rows.items() if key not in last
        )
        text = f"[:rp {{:table {edn(table.label)} :where {where}}} {{{listed}}}]"
        return [
            self.operation(text, table, read.event, read.transaction),
            *(
                self.row_read(table, key, rows[key], read.event, read.transaction)
                for key in rows if key in last
            ),
        ]  # fmt: skip

    def _evaluated_read(
        self,
        read: TableRead,
        rows: Mapping[tuple[Any, ...], str],
        order: tuple[str, bool] | None,
    ) -> list[SeenOperation] | None:
        """Return a predicate read whose condition the server evaluates; ``None`` if it cannot.

        A read of each row follows, which is part of it if the condition can be evaluated. Those
        with the rank of the last one are not, if LIMIT has left rows out.

        Args:
            order: the column by which LIMIT chose the rows, and whether its order is descending.
        """
        statement, table = read.event.statement, read.table
        column = self._column_lookup(statement, table, read.source)
        condition = server_condition(statement, table.table.columns, column)
        if condition is None:
            return None
        last: set[tuple[Any, ...]] = set()
        if order is not None:
            name, descends = order
            if not is_evaluable(table.table.columns[name]):
                return None
            end, last = _last_value(read, name, descends=descends)
            before = before_sql(table.table.columns[name], end, descends=descends)
            condition = replace(
                condition, columns=condition.columns | {name},
                text=(f"({condition.text[0]}) AND {before}",),
            )  # fmt: skip
        described = self._described.setdefault(
            table.label, described_table(table.table, table.label, table.compared)
        )
        known = self.evaluated.add(described, condition)
        if known is None:
            return None
        self.evaluated.reads += 1
        text = f"[:rp {{:table {edn(table.label)} :where {NOTHING}}} {{}}]"
        operation = self.operation(text, table, read.event, read.transaction)
        reads = {
            key: self.row_read(table, key, row, read.event, read.transaction)
            for key, row in rows.items()
        }
        numbers = tuple(
            f"{table.key_edn(key)} {row}" for key, row in rows.items() if key not in last
        )
        return [
            replace(operation, condition=known, rows=numbers),
            *(each for key, each in reads.items() if key not in last),
            *(each for key, each in reads.items() if key in last),
        ]

    @staticmethod
    def _before_last(
        read: TableRead, where: str, order: tuple[str, bool]
    ) -> tuple[str, set[tuple[Any, ...]]]:
        """Return the predicate of the rows before the last one, and the keys of the other rows.

        SOUND BECAUSE: LIMIT has left out no row before the last one in the order of a column. Of
        those with the last one's value, the server was free to choose some. NULL is the lowest.
        """
        name, descends = order
        column, compared = column_edn(name), read.table.compared[name]
        value, last = _last_value(read, name, descends=descends)
        end = compared.recorded(value)
        if end is None:
            before = f"[:not [:null {column}]]" if descends else "[:not :true]"
        elif descends:
            before = f"[:> {column} {edn(end)}]"
        else:
            before = f"[:or [:< {column} {edn(end)}] [:null {column}]]"
        if compared.required and end is not None:
            before = f"[:{'>' if descends else '<'} {column} {edn(end)}]"
        return f"[:and {where} {before}]", last

    def _rows_read(self, read: TableRead) -> list[SeenOperation]:
        """Return the reads of the rows that a statement found."""
        rows = self.known_rows(read) or {}
        return [
            self.row_read(read.table, key, text, read.event, read.transaction)
            for key, text in rows.items()
        ]

    def known_rows(self, read: TableRead) -> dict[tuple[Any, ...], str] | None:
        """Return the rows in EDN by their keys; ``None`` if the log does not have one of them."""
        return self.known_texts(read.table, read.rows, read.event, read.transaction)

    def known_texts(
        self,
        table: NamedTable,
        rows: Sequence[Row],
        event: RecordedStatement,
        transaction: FollowedTransaction,
    ) -> dict[tuple[Any, ...], str] | None:
        """Return rows in EDN by their keys; ``None`` if the log does not have one of them."""
        texts: dict[tuple[Any, ...], str] = {}
        for row in rows:
            key = table.table.key_of(row)
            text = table.find(key, row)
            if text is None:
                name = f"{table.label}/{table.key(key)}"
                shown = f"{name}: {event.statement.text}"
                self._unseen.note(IN_NO_LOG, shown, form=f"a row of {table.label}",
                                  tables=(table.label,))  # fmt: skip
                if transaction.level != "read uncommitted":
                    self.doubtful.add(table.label)
                return None
            texts[key] = text
        return texts

    def row_read(
        self,
        table: NamedTable,
        key: tuple[Any, ...],
        text: str,
        event: RecordedStatement,
        transaction: FollowedTransaction,
    ) -> SeenOperation:
        """Return the read of a row, which is in EDN."""
        return self.operation(f"[:r {table.key_edn(key)} {text}]", table, event, transaction)

    def operation(
        self,
        text: str,
        table: NamedTable,
        event: RecordedStatement,
        transaction: FollowedTransaction,
        *,
        perhaps: bool = False,
        kept: tuple[tuple[str, str], ...] = (),
    ) -> SeenOperation:
        """Return an operation of a statement on a table."""
        return SeenOperation(
            text, table.label, None, event.shown, statement_name(event, transaction), perhaps, kept
        )

    def condition(
        self, statement: Statement, table: NamedTable, source: SourceTable
    ) -> ParsedCondition:
        """Return the condition of a statement on one of its tables."""
        begin, end = statement.plan.where
        part = statement.part
        if not statement.charset and any(not token.text.isascii() for token in part[begin:end]):
            return ParsedCondition(why="a text of another character set")
        column = self._column_lookup(statement, table, source)
        if is_connected_by_and(part, begin, end):
            return parse_known_parts(part, begin, end, column)
        try:
            return parse_condition(part, begin, end, column)
        except CannotEvaluateError as error:
            return ParsedCondition(why=str(error) or "its shape")

    @staticmethod
    def _column_lookup(
        statement: Statement, table: NamedTable, source: SourceTable
    ) -> ColumnLookup:
        """Return what finds the column of a table that a name in a statement refers to."""
        alias = _bare(source.alias)

        def column(names: Sequence[str]) -> str | None:
            name = names[-1].lower()
            if len(names) > 1 and names[-2].lower() != alias:
                return None
            if len(names) == 1 and len(statement.tables) > 1:
                others = (other.columns for other in statement.tables)
                if sum(name in columns for columns in others) != 1:
                    return None
            return name if name in table.table.columns else None

        return column

    def _images(self, event: RecordedStatement, place: int) -> list[Row | None] | None:
        """Return the rows of a table in an answer; ``None`` if the server cut their list."""
        table, rows = event.statement.tables[place], list[Row | None]()
        for hidden in event.rows:
            image = hidden[place]
            if image is None:
                return None
            text = image.decode("ascii", "replace")
            if not event.statement.plan.aggregates:
                rows.append(table.row(text))
                continue
            count, _, listed = text.partition(";")
            images = listed.split(";") if listed else []
            if len(images) != int(count):
                return None
            rows += map(table.row, images)
        return rows

    def note(self, what: str, statement: Statement) -> None:
        """Count a read of a statement as unseen."""
        self._unseen.note(what, statement.text)


class StatementReads(TableReads):
    """Returns the reads of statements."""

    def __init__(self, tables: NamedTables, unseen: Unseen, most_rows: int) -> None:
        """Store where to find the contents of rows, and what to count."""
        super().__init__(tables, unseen, most_rows)
        self.blocks = BlockReads(self)

    def of_select(
        self, event: RecordedStatement, transaction: FollowedTransaction
    ) -> list[SeenOperation]:
        """Return what a SELECT read from each of its tables."""
        statement, plan = event.statement, event.statement.plan
        if statement.unseen:
            self.note(statement.unseen, statement)
            return []
        if statement.blocks is not None and not plan.sources:
            return self.blocks.of_blocks(event, transaction)
        if statement.hidden < len(plan.sources):
            return []
        named = [self.tables.read_from(table, event) for table in statement.tables]
        images = [self._images(event, place) for place in range(len(named))]
        if any(table is None for table in named):
            self.note(ALTERED, statement)
            return []
        if any(rows_found is None for rows_found in images):
            self.note(LARGE, statement)
            return []
        if any(len(rows_found or ()) > self._most_rows for rows_found in images):
            self.note(LARGE, statement)
            return []
        operations: list[SeenOperation] = []
        first = TableRead(event, transaction, named[0], plan.sources[0], _rows(images[0]))  # type: ignore[arg-type]
        if len(named) == 1:
            return self._read(first, plan.partial, depends=True)
        condition = self.condition(statement, first.table, first.source)
        fixed = fixed_columns(
            condition, first.table.table.columns, statement.part, statement.parameters
        )
        is_pinned = any(unique <= fixed for unique in first.table.table.unique)
        has_all = all(len(rows_found or ()) == event.count for rows_found in images)
        complete = is_pinned and event.count > 0 and has_all and not plan.aggregates
        partial = "" if complete or self._keeps_first(statement, images) else CONDITIONS
        if partial:
            rows_joined = [_rows(rows_found) for rows_found in images]
            joined = self.blocks.of_join(event, transaction, rows_joined)
            if joined is not None:
                return joined
        operations += self._read(first, partial, depends=True)
        for table, source, rows_found in zip(named[1:], plan.sources[1:], images[1:], strict=True):
            assert table is not None
            operations += self._rows_read(
                TableRead(event, transaction, table, source, _rows(rows_found))
            )
        return operations

    def _keeps_first(
        self, statement: Statement, images: Sequence[Sequence[Row | None] | None]
    ) -> bool:
        """Return whether joins left out no row of the first table, and found each row's partners.

        SOUND BECAUSE: LEFT JOIN keeps all rows of the first table, and a whole key has at most one
        row; if it found none, the row's own columns must say so, which only NULL does.
        """
        plan = statement.plan
        if plan.aggregates or plan.partial:
            return False
        before = [plan.sources[0]]
        for number, source in enumerate(plan.sources[1:], 1):
            pairs = _joined_columns(statement, source)
            table = statement.tables[number]
            if source.join != "left" or pairs is None:
                return False
            if not any(unique <= pairs.keys() for unique in table.unique):
                return False
            for place, row in enumerate(images[number] or ()):
                if row is None and not _has_null(pairs, before, images, place):
                    return False
            before.append(source)
        return True

    def of_write(
        self,
        event: RecordedStatement,
        transaction: FollowedTransaction,
        changes: Sequence[ReplayedChange],
    ) -> list[SeenOperation]:
        """Return what a statement found before it wrote.

        Args:
            changes: what the log says that it wrote.
        """
        statement, plan = event.statement, event.statement.plan
        if statement.unseen:
            self.note(statement.unseen, statement)
            return []
        direct = [change for change in changes if change.direct and change.kind != "unknown"]
        if plan.kind in ("update", "delete") and statement.tables:
            of_table = [c for c in direct if _is_of(c, statement.tables[0])]
            own = _rows_written_before(changes)
            if any(id(change) in own and change.before is not None for change in of_table):
                # A cascade has changed rows before the statement found them.
                self.note(CONDITIONS, statement)
                return []
            return self._found(event, transaction, of_table)
        if plan.kind == "insert" and statement.tables:
            return self._conflicts(event, transaction, direct)
        return []

    def _found(
        self,
        event: RecordedStatement,
        transaction: FollowedTransaction,
        changes: Sequence[ReplayedChange],
    ) -> list[SeenOperation]:
        """Return the rows that an UPDATE or DELETE found."""
        statement, plan = event.statement, event.statement.plan
        rows = [
            change.before
            for change in changes
            if change.before is not None and not (change.moved and change.kind == "insert")
        ]
        table = self.tables.read_from(statement.tables[0], event)
        if table is None:
            self.note(ALTERED, statement)
            return []
        if event.changed > 0 and not changes:
            self.note(IN_NO_LOG, statement)
            self.doubtful.add(table.label)
            return []
        condition = self.condition(statement, table, plan.sources[0])
        depends = (
            plan.computes or bool(condition.why)
            or not condition.columns <= frozenset(table.table.key)
        )  # fmt: skip
        if event.matched > len(rows):
            unchanged = self._unchanged_row(event, transaction, table, condition)
            if unchanged is None:
                self.note(UNCHANGED, statement)
            return [] if unchanged is None else [unchanged]
        rows_found = TableRead(event, transaction, table, plan.sources[0], rows)
        return self._read(rows_found, plan.partial, depends=depends, writes=True)

    def _unchanged_row(
        self,
        event: RecordedStatement,
        transaction: FollowedTransaction,
        table: NamedTable,
        condition: ParsedCondition,
    ) -> SeenOperation | None:
        """Return the read of the row that an UPDATE found by its key, and left as it was."""
        statement, key = event.statement, {}
        for name in table.table.key:
            if name not in condition.equal:
                return None
            alone = ParsedCondition(node=("=", name, condition.equal[name]))
            try:
                equal = alone.predicate(table.compared, statement.part, statement.parameters)
            except CannotEvaluateError:
                return None
            key[name] = equal[2]
        values = table.table.key_of(key)
        version = table.locked_version(values, transaction, event)
        return (
            None if version is None else self.row_read(table, values, version, event, transaction)
        )

    def _conflicts(
        self,
        event: RecordedStatement,
        transaction: FollowedTransaction,
        changes: Sequence[ReplayedChange],
    ) -> list[SeenOperation]:
        """Return the rows that an INSERT found to be there already."""
        statement, way = event.statement, event.statement.plan.name
        own = _rows_written_before(changes)
        if way:
            of_insert = [
                change for change in changes
                if change.after is not None and _is_of(change, statement.tables[0])
            ]  # fmt: skip
            if len(of_insert) < event.listed:
                self.note(NO_ROW, statement)
        if way != "update":
            return []
        operations = []
        for change in changes:
            if change.kind == "update" and change.before is not None and id(change) not in own:
                table = self.tables.of(change.table)
                text = table.find(change.key, change.before)
                if text is not None:
                    operations.append(self.row_read(table, change.key, text, event, transaction))
        return operations


def _last_value(read: TableRead, name: str, *, descends: bool) -> tuple[Any, set[tuple[Any, ...]]]:
    """Return the last value in the order of a column, and the keys of the rows that have it."""
    values = {read.table.table.key_of(row): row[name] for row in read.rows}
    known = [value for value in values.values() if value is not None]
    lowest = None if len(known) < len(values) else min(known)
    end = lowest if descends else max(known, default=None)
    return end, {key for key, value in values.items() if value == end}


def _rows(rows_found: Sequence[Row | None] | None) -> list[Row]:
    return [row for row in rows_found or () if row is not None]


def _rows_written_before(changes: Sequence[ReplayedChange]) -> set[int]:
    """Return the identities of the changes of rows that the same statement had changed before."""
    written: set[tuple[int, tuple[Any, ...]]] = set()
    later = set()
    for change in changes:
        if (id(change.table), change.key) in written:
            later.add(id(change))
        written.add((id(change.table), change.key))
    return later


def _is_of(change: ReplayedChange, table: LoggedTable) -> bool:
    return (change.table.schema, change.table.name) == (table.schema, table.name)


def _joined_columns(
    statement: Statement, source: SourceTable
) -> Mapping[str, tuple[str, str]] | None:
    """Return the columns of a table that ON compares with columns of tables before it.

    Return ``None`` if ON has other conditions.
    """
    begin, end = source.on
    part, pairs = statement.part, dict[str, tuple[str, str]]()
    alias = _bare(source.alias)
    for at in range(begin, end, 8):
        tokens = [token.text.strip('"').lower() for token in part[at : min(at + 7, end)]]
        kinds = [token.kind for token in part[at : min(at + 7, end)]]
        if len(tokens) != 7 or tokens[3] != "=" or {tokens[1], tokens[5]} != {"."}:
            return None
        if at + 7 < end and part[at + 7].text != "and":
            return None
        if not {kinds[0], kinds[2], kinds[4], kinds[6]} <= {"word", "quoted"}:
            return None
        left, right = (tokens[0], tokens[2]), (tokens[4], tokens[6])
        if left[0] != alias:
            left, right = right, left
        if left[0] != alias or right[0] == alias:
            return None
        pairs[left[1]] = right
    return pairs


def _bare(alias: str) -> str:
    """Return the name behind which SQL names a table's columns, without its schema and quotes."""
    return alias.replace("`", "").replace('"', "").lower().rpartition(".")[2]


def _has_null(
    pairs: Mapping[str, tuple[str, str]],
    before: Sequence[SourceTable],
    images: Sequence[Sequence[Row | None] | None],
    place: int,
) -> bool:
    """Return whether a column is NULL with which ON compares, in a row of an answer."""
    names = [_bare(source.alias) for source in before]
    for other, column in pairs.values():
        if other not in names:
            return False
        row = (images[names.index(other)] or ())[place]
        if row is None or row.get(column, 0) is None:
            return True
    return False


def statement_name(event: RecordedStatement, transaction: FollowedTransaction) -> str:
    """Return the name of a statement in the history, with the lock on what it read."""
    lock = event.statement.plan.locks
    if not lock and event.statement.plan.kind == "select":
        lock = "share" if transaction.level == "serializable" and transaction.is_explicit else ""
    return f"{event.number} for {lock}" if lock else str(event.number)
