"""Derives the predicate read of an executed statement, which also covers rows not found."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct, field

from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.evaluated import (
    ServerCondition,
    ServerExpression,
    SessionSettings,
    bound_condition,
    is_name_of_another,
    order_expression,
)
from isolang.observe.sql.joins import KeyJoin
from isolang.observe.sql.lexer import Token, catalogue_name
from isolang.observe.sql.notes import CallNote
from isolang.observe.sql.plan import StatementTable, name_parts
from isolang.observe.sql.predicates import (
    CannotEvaluateError,
    FoundBy,
    Parameters,
    ParsedCondition,
)
from isolang.observe.sql.rewriting import (
    PreparedStatement,
    ReportedBlock,
    ReportedTable,
    limit_value,
)
from isolang.observe.unseen import CONDITIONS, LARGE_TABLES, LIMITED, RECHECKED


class PortalPosition(Struct, gc=False):
    """The place of a bound statement's operations in its transaction.

    Attributes:
        at: the number of operations before them.
        savepoints: the number of savepoints that were set when the statement was bound.
        statement: the statement, as named in the history; empty before its first execution.
        rows: for a statement that locks rows, the table and version of each row returned so far.
    """

    at: int = 0
    savepoints: int = 0
    statement: str = ""
    rows: frozenset[tuple[str, str]] = frozenset()


class ExecutedStatement(Struct, kw_only=True, gc=False):
    """An execution of a prepared statement.

    Attributes:
        reported: for each reported table, the row versions returned by the server.
        empty: whether the only returned row just carries the rows of query blocks, because the
            application's statement returned no rows.
        cut: whether the application stopped requesting rows although there may be more.
        position: where the statement's operations belong in its transaction; ``None`` for the
            current end.
        note: what the statement's caller noted in the same process; ``None`` if nothing is known.
        prepared_with: the session's settings when the statement was prepared; ``None`` if they were
            unknown.
        epoch: how often definitions had changed when it was sent.
        settings: the settings, if they are still the same; ``None`` if that is not certain.
        now: the beginning of the transaction, in UTC; empty if it is unknown.
        mark: the number in the server's log in front of the statement's changes; 0 if none.
        refused: whether a function of an advisory lock returned false.
        answered: a position after the statement took its snapshot; -1 for the current one.
        chosen: the number of rows of another query that choose those of a write; -1 if unknown.
        whole: for one query of a statement, the tokens of the statement.
        conflicts: for each row that an INSERT proposed, a row with one of its keys in the
            statement's snapshot.
    """

    statement: PreparedStatement
    ticket: tuple[int, int]
    parameters: Parameters = Parameters()
    rows: int = 0
    reported: list[tuple[ReportedTable, bytes]] = field(default_factory=list)
    empty: bool = False
    cut: bool = False
    position: PortalPosition | None = None
    note: CallNote | None = None
    prepared_with: SessionSettings | None = None
    epoch: int = -1
    settings: SessionSettings | None = None
    now: str = ""
    mark: int = 0
    answered: int = -1
    refused: bool = False
    chosen: int = -1
    whole: Sequence[Token] = ()
    conflicts: list[tuple[ReportedTable, bytes]] = field(default_factory=list)


def predicate_of(
    done: ExecutedStatement,
    table: Table,
    found: int,
    partial: str,
    *,
    read_committed: bool,
    join: KeyJoin | None = None,
) -> tuple[str, FoundBy, tuple[str, bool] | None]:
    """Return the predicate of a statement's predicate read, or why there is none.

    Args:
        join: the join whose root is the table; ``None`` if it is the statement's first table.

    Returns:
        The kind of unseen activity (empty if nothing is unseen); the predicate (empty if there is
        none or none is needed); and the column by which LIMIT chose the rows, with whether its
        order is descending (``None`` without such a LIMIT).
    """
    statement = done.statement
    made = statement.plan
    condition = statement.condition if join is None else join.condition
    writes = made.kind != "select"
    looked = looked_up_key_count(condition, table, done)
    if made.chosen:
        return ("" if finds_chosen(done, table, found) else CONDITIONS), "", None
    if made.claims and {made.claims} != set(table.key):
        return CONDITIONS, "", None
    if looked is not None and found >= looked:
        return "", "", None
    if made.skips and not partial:
        return "", "", None  # the statement skips locked rows regardless of its condition
    if partial or (condition.why and condition.expression is None):
        return CONDITIONS, "", None
    if made.skips:
        return "", "", None
    if writes and table.may_keep_rows:  # a trigger may have kept a matching row unchanged
        return CONDITIONS, "", None
    source = made.sources[0 if join is None else join.root]
    kind, order, ranks = _kind_beyond_limit(done, source, table, found)
    if kind is not None:
        return kind, "", None
    # SOUND BECAUSE: each row was judged in one version: the one of the statement's snapshot, or, if
    # it matched there and was replaced since, the newest one. A row that is not in the answer
    # does not match in that version. But LIMIT chose rows in the order of the snapshot's versions.
    if read_committed and made.locks and (order is not None or ranks is not None):
        return RECHECKED, "", None
    if ranks is not None:
        server = _server_condition(condition, table, done, ranks)
        return ("", server, None) if server is not None else (LIMITED, "", None)
    used = condition.columns | ({order[0]} if order else set())
    kind, predicate = _predicate(condition, table, used, done)
    if order is not None and isinstance(predicate, ServerCondition):
        server = _server_condition(condition, table, done, _ranks(statement, source))
        if server is None or not server.order:
            return LIMITED, "", None
        return "", server, None
    return kind, predicate, order


def finds_chosen(done: ExecutedStatement, table: Table, found: int) -> bool:
    """Return whether a write has seen no other rows than those that it has written, or chosen.

    SOUND BECAUSE: each row of the other query chooses at most one row, by a whole key. If that
    query has locked rows of this table, those that the write leaves out are among its rows.
    """
    made = done.statement.plan
    fixed = made.chosen | done.statement.condition.equal.keys()
    by_key = any(key <= fixed for key in table.unique)
    return by_key and (made.keeps_chosen or 0 <= done.chosen <= found)


def predicate_of_block(
    done: ExecutedStatement, block: ReportedBlock, found: int
) -> tuple[str, FoundBy]:
    """Return the unseen kind and the predicate of a query block, as in :func:`predicate_of`."""
    table, condition = block.reported.table, block.condition
    looked = looked_up_key_count(condition, table, done)
    if looked is not None and found >= looked:
        return "", ""
    return _predicate(condition, table, condition.columns, done)


def condition_of_block(done: ExecutedStatement, block: ReportedBlock) -> ServerCondition | None:
    """Return the condition of a query block that the server evaluates; ``None`` if it cannot."""
    return _server_condition(block.condition, block.reported.table, done)


def has_reached_limit(done: ExecutedStatement) -> bool:
    """Return whether a SELECT's LIMIT may have left out rows.

    SOUND BECAUSE: a condition that names a whole key finds at most one row, or one for each value.
    """
    statement = done.statement
    made = statement.plan
    if done.cut:
        return True
    most = limit_value(statement.part, made.limit, done.parameters) if made.limit else None
    if made.limit and most is not None and len(statement.reported) == len(made.sources) == 1:
        looked = looked_up_key_count(statement.condition, statement.reported[0].table, done)
        if looked is not None and looked <= most and not made.offset:
            return False
    return bool(made.limit) and (most is None or done.rows >= most)


def is_cut_off(done: ExecutedStatement, block: ReportedBlock, rows: int) -> bool:
    """Return whether a LIMIT inside the statement may have left out rows of a query block.

    SOUND BECAUSE: a LIMIT that was just reached may not have looked for more rows.
    """
    cut = block.reported.source.cut
    if not cut:
        return False
    most = limit_value(done.statement.part, cut, done.parameters) if cut > 0 else None
    if most is None or block.join is not None:
        return True
    looked = looked_up_key_count(block.condition, block.reported.table, done)
    return rows >= most and (looked is None or looked > most)


def _predicate(
    condition: ParsedCondition,
    table: Table,
    used: Collection[str],
    done: ExecutedStatement,
) -> tuple[str, FoundBy]:
    """Return the kind of unseen activity (empty if nothing is unseen), and the predicate."""
    if not table.rows_known and not (used and set(used) <= set(table.key)):
        return LARGE_TABLES, ""
    try:
        predicate = condition.predicate(table.columns, done.statement.part, done.parameters)
    except CannotEvaluateError:
        server = _server_condition(condition, table, done)
        return (CONDITIONS, "") if server is None else ("", server)
    return "", predicate


def _server_condition(
    condition: ParsedCondition,
    table: Table,
    done: ExecutedStatement,
    order: ServerExpression | None = None,
) -> ServerCondition | None:
    """Return the condition that the server evaluates; ``None`` if it cannot."""
    expression = condition.expression
    if expression is None or not (table.rows_known and table.has_images):
        return None
    return bound_condition(
        expression,
        done.statement.part,
        done.parameters.values,
        done.parameters.oids,
        settings=done.settings,
        now=done.now,
        order=order,
        whole=done.whole,
    )


def _kind_beyond_limit(
    done: ExecutedStatement, source: StatementTable, table: Table, found: int
) -> tuple[str | None, tuple[str, bool] | None, ServerExpression | None]:
    """Return the kind of unseen activity that the rows left out by LIMIT and OFFSET count as.

    Returns:
        The kind, and the column or the expressions by which LIMIT ordered the rows. The kind is
        empty if no predicate is needed. It is ``None`` if nothing is unseen: all rows were
        returned, or, if there is an order, all rows before the last one in this order.
    """
    statement = done.statement
    made = statement.plan
    if made.offset and limit_value(statement.part, made.offset, done.parameters) != 0:
        return LIMITED, None, None
    if not (made.limit or done.cut):
        return None, None, None
    most = done.rows if done.cut else limit_value(statement.part, made.limit, done.parameters)
    if most is None:
        return LIMITED, None, None
    if max(found, done.rows) < most:
        return None, None, None
    if _combines_rows(statement):
        return LIMITED, None, None
    if not (made.order[1] and found):
        return "", None, None
    order = _first_order_column(statement, source, table)
    if order is not None:
        return None, order, None
    ranks = _ranks(statement, source)
    return (LIMITED if ranks is None else None), None, ranks


def _combines_rows(statement: PreparedStatement) -> bool:
    """Return whether a row of the answer may depend on other rows than its own: groups, windows."""
    if any(source.how == "all" for source in statement.plan.sources):
        return True
    return any(token.text == "over" for token in statement.part)


def _ranks(statement: PreparedStatement, source: StatementTable) -> ServerExpression | None:
    """Return the expressions of ORDER BY on one table; ``None`` if they are not certain."""
    alias, alone = name_parts(source.alias), len(statement.plan.sources) == 1

    def column(names: Sequence[str]) -> str | None:
        qualifiers = tuple(names[:-1])
        if not qualifiers:
            return names[-1] if alone else None
        return names[-1] if qualifiers == alias[-len(qualifiers) :] else None

    return order_expression(statement.part, *statement.plan.order, statement.plan.place, column)


def looked_up_key_count(
    condition: ParsedCondition, table: Table, done: ExecutedStatement
) -> int | None:
    """Return how many rows a condition looks up by whole keys; ``None`` for other conditions."""
    if any(key <= condition.equal.keys() for key in table.unique):
        return 1
    fixed = condition.equal.keys()
    for name, node in condition.among.items():
        by_key = any(name in key and key <= {name, *fixed} for key in table.unique)
        if by_key and name in table.columns:
            alone = ParsedCondition(node=node, columns=frozenset({name}))
            try:
                found = alone.predicate(table.columns, done.statement.part, done.parameters)
            except CannotEvaluateError:
                continue
            return len(set(found[2]))
    return None


def _first_order_column(
    statement: PreparedStatement, source: StatementTable, table: Table
) -> tuple[str, bool] | None:
    """Return a table's column that ORDER BY names first, and whether its order is descending."""
    begin, end = statement.plan.order
    words = [t.text for t in statement.part[begin:end]]
    first = words[: words.index(",")] if "," in words else words
    descends = first[-1:] == ["desc"]
    if first[-1:] in (["asc"], ["desc"]):
        first.pop()
    # SOUND BECAUSE: in a join, an unqualified name may be a column of another table.
    is_qualified = len(first) == 3 and first[1] == "." and first[0] == source.alias
    alone = is_qualified or (len(first) == 1 and len(statement.plan.sources) == 1)
    column = table.columns.get(catalogue_name(first[-1])) if alone else None
    if column is None or not (column.ordered and column.required):
        return None
    # SOUND BECAUSE: an unqualified name first refers to a column of the result, so it must not
    # occur in the result as the name of another expression. A qualified name refers to the table.
    listed = statement.part[: statement.plan.place]
    if not is_qualified and is_name_of_another(listed, column.name):
        return None
    return column.name, descends


def is_joined_by_key(part: Sequence[Token], source: StatementTable, table: Table) -> bool:
    """Return whether a JOIN adds at most one row, because it fixes a whole key of its table."""
    if source.join not in ("left", "inner"):
        return False
    condition = part[source.on[0] : source.on[1]]
    words = [t.text for t in condition if t.text not in ("(", ")")]
    alias = name_parts(source.alias)[-1]
    columns = set()
    while words:
        piece, words = words[:7], words[8:]
        if len(piece) != 7 or [piece[1], piece[3], piece[5]] != [".", "=", "."]:
            return False
        sides = [
            (catalogue_name(piece[0]), catalogue_name(piece[2])),
            (catalogue_name(piece[4]), catalogue_name(piece[6])),
        ]
        own = [column for name, column in sides if name == alias]
        if len(own) != 1:
            return False
        columns.add(own[0])
    connected = [t.text for t in condition if t.kind == "word" and t.text in ("and", "or", "not")]
    return set(connected) <= {"and"} and any(key <= columns for key in table.unique)
