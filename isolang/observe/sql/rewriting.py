"""Rewrites a session's statements, using the catalogue's descriptions of their tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from operator import is_
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from isolang.history.statement_text import one_line
from isolang.observe.sql import predicates
from isolang.observe.sql.blocks import is_complete, plan_with_blocks
from isolang.observe.sql.catalogue import (
    AGGREGATES,
    CALLED_BY_WORDS,
    DEFERRED_TRIGGERS,
    FUNCTIONS,
    ROW_SETS,
    Table,
    quoted_name,
)
from isolang.observe.sql.compound import CompoundPlan, Member, compound_plan, insert_plan
from isolang.observe.sql.covers import MOST_ROWS, Cover, CoveredStatement, cover_of
from isolang.observe.sql.cursors import CursorRequest, Declaration, cursor_request, declaration
from isolang.observe.sql.evaluated import ServerExpression, server_expression
from isolang.observe.sql.joins import KeyJoin, key_join
from isolang.observe.sql.lexer import (
    Token,
    UnclearTextError,
    catalogue_name,
    shape,
    statements,
    tokens,
)
from isolang.observe.sql.locks import LockCall, lock_calls
from isolang.observe.sql.loose_blocks import (
    LooseCondition,
    acts_once,
    loose_condition,
    loose_query,
)
from isolang.observe.sql.plan import JOINS, StatementPlan, StatementTable, name_parts, plan
from isolang.observe.sql.predicates import ParsedCondition
from isolang.observe.sql.proposed import queries_for_conflicts
from isolang.observe.sql.tables import tables_read
from isolang.observe.unseen import (
    ALTERED,
    CALLED,
    CASCADES,
    CURSORS,
    NAMED_OLD,
    PARTITIONED,
    PROCEDURES,
    SHAPES,
    SUBQUERIES,
    TOO_LONG,
    TRIGGERS,
    UNKNOWN_TABLES,
)

_READ_COMMITTED: Final = (
    "pg_catalog.current_setting('transaction_isolation') IN ('read committed', 'read uncommitted')"
)
_FIRST_WITH_OLD: Final = 180000  # the first server version with RETURNING old
_HIDES_WRITES: Final = frozenset({CALLED, CASCADES, CURSORS, PROCEDURES, TRIGGERS})
_LONGEST_CACHED: Final = 4096  # the largest number of characters in a cached text
_LONGEST_SHOWN: Final = 100  # the largest number of a statement's characters in the history
_MOST_CACHED: Final = 5000  # the largest number of cached texts
_WRITES: Final = frozenset({"insert", "update", "delete", "merge"})
_OTHER_JOINS: Final = frozenset({"right", "full", "natural", "using"})
_LONGEST_SHAPE: Final = 20_000  # the largest number of characters in a cached shape
# The largest number of tokens in a text that is examined, which takes about half a second.
_MOST_TOKENS: Final = 300_000


class ReportedTable(Struct, frozen=True):
    """A table whose row versions are returned by a rewritten statement."""

    source: StatementTable
    table: Table


class BlockCover(Struct, frozen=True):
    """The cover of a query block.

    Attributes:
        sources: the tables in FROM.
        tables: their descriptions.
        number: the number of the one whose rows are reported.
    """

    cover: Cover
    sources: tuple[StatementTable, ...]
    tables: tuple[Table, ...]
    number: int


class ReportedBlock(Struct, frozen=True):
    """A table of a query block; its row versions are returned by an enclosing statement.

    Attributes:
        condition: the block's condition; in a join, that on the root.
        join: the block's join; ``None`` if the block reads one table.
        is_parent: whether the table is one of a join that is not its root.
        cover: what decides the block's rows, if its condition has no predicate.
        loose: what the returned rows satisfy if only the server can evaluate the condition.
        query: for a row that an INSERT proposes, the query for a row with one of its keys; empty
            for query blocks.
    """

    reported: ReportedTable
    condition: ParsedCondition
    join: KeyJoin | None = None
    is_parent: bool = False
    cover: BlockCover | None = None
    loose: LooseCondition | None = None
    query: str = ""


class ReportedCover(Struct, frozen=True):
    """A join's cover.

    Attributes:
        tables: for each table in FROM, what reports the rows that the cover reads of it, in a
            column like those of query blocks. Its key also has the columns that other tables are
            compared with. Empty if the join's own rows are all that the cover reads.
    """

    cover: Cover
    tables: tuple[ReportedTable, ...] = ()


class PreparedStatement(Struct, kw_only=True):
    """An application's statement, as sent to the server.

    Attributes:
        shown: the text as the history shows it.
        reported: the tables whose row versions are returned by the statement, each in a column
            after the application's columns.
        hidden: whether the server returns rows that the application must not receive.
        condition: the condition on the statement's only table, or on the first of the joined
            tables.
        blocks: the query blocks, each in a column after a column that states whether there is a
            row. If the statement returns no rows, the enclosing statement returns one row that must
            not reach the application.
        columns: the table of each column after the application's columns; ``None`` for the column
            that states whether there is a row.
        join: the join of a SELECT's tables, if its rows are exactly those of one table.
        functions: the functions that the statement may call, each with its schema and language.
        triggered: the tables whose triggers the statement may run.
        logged: whether the statement may write rows that only the server's log shows.
        snapshot: for a join that locks rows at READ COMMITTED, the root with the rows that the
            join finds without the locks, in a column like those of query blocks.
        cover: what decides the rows of a join, if they need not be exactly those of one table.
        names: the names of the tables that it reads or writes, whatever its form; ``None`` if
            unknown.
        tables: these tables; ``None`` for each one that was not found.
        declares: the cursor that the statement declares. If there is one, everything else is about
            its query, and ``part`` are the query's tokens.
        requests: what the statement requests of a cursor.
        locks: the advisory locks and locks of tables that it takes or releases.
        members: the queries of the statement that report rows, if it has several.
        member: the query that the statement is, if it is one of several.
        tag: the words of the tag to send for that of a SELECT; empty to send that.
    """

    plan: StatementPlan
    text: str
    part: Sequence[Token]
    shown: str = ""
    reported: tuple[ReportedTable, ...] = ()
    hidden: bool = False
    condition: ParsedCondition = ParsedCondition(why="no table")
    unseen: tuple[str, ...] = ()
    blocks: tuple[ReportedBlock, ...] = ()
    columns: tuple[ReportedTable | None, ...] = ()
    join: KeyJoin | None = None
    functions: tuple[str, ...] = ()
    triggered: tuple[Table, ...] = ()
    logged: bool = False
    snapshot: ReportedTable | None = None
    cover: ReportedCover | None = None
    names: tuple[str, ...] | None = None
    tables: tuple[Table | None, ...] = ()
    declares: Declaration | None = None
    requests: CursorRequest | None = None
    locks: tuple[LockCall, ...] = ()
    members: tuple[PreparedStatement, ...] = ()
    member: Member | None = None
    tag: str = ""

    def __post_init__(self) -> None:
        self.shown = self.shown or one_line(self.text, _LONGEST_SHOWN)
        if self.columns:
            return
        self.columns = self.reported
        added = [one.reported for one in self.blocks]
        if self.snapshot is not None:
            added.append(self.snapshot)
        if self.cover is not None:
            added += self.cover.tables
        if added:
            self.columns += (None, *added)

    @property
    def described(self) -> Iterator[Table]:
        """Yield the tables whose row versions are returned, as all sessions share them.

        Those in the columns of covers are copies, which do not say that a table was altered since.
        """
        yield from (one.table for one in self.columns if one is not None)
        for block in self.blocks:
            yield from block.cover.tables if block.cover is not None else ()

    @property
    def adds_to_partitions(self) -> bool:
        """Return whether the statement may insert rows into partitions, and returns them."""
        kinds = [one.plan.kind for one in self.members] or [self.plan.kind]
        inserts = not {"insert", "merge"}.isdisjoint(kinds)
        return inserts and any(one.table.partitioned for one in self.reported)


class Prepared(Struct, kw_only=True):
    """A text from the application, prepared for sending.

    Attributes:
        shifts: the position and length of each added text, in the text to send.
        asks: the names of tables to look up in the catalogue first. If there are any, the other
            attributes are not set.
    """

    sent: str
    statements: list[PreparedStatement] = field(default_factory=list)
    shifts: list[tuple[int, int]] = field(default_factory=list)
    asks: tuple[str, ...] = ()


class DatabaseFacts(Struct, kw_only=True):
    """The facts about a database that are shared by all sessions.

    Attributes:
        shapes: the plans of statements by shape; they depend on the aggregate functions.
        keys_hold: whether no session was seen that does not enforce foreign keys.
        roles_change: whether a session was seen whose role, and so whose policies, may change.
        key_changes: how many times foreign keys may have changed.
        keys_changed: the position in the history at which they last may have changed.
        row_sets: the names of functions that return a set, which removes a row if it is empty.
        called_by_words: the functions behind operators, casts and domains, by a word or operator of
            the statements that may call them; by an empty text if any statement may.
        defers: whether there was a trigger that may run at the end of a transaction.
        defined: the names of functions that sessions have defined, perhaps in transactions that are
            not committed yet, so that ``functions`` lacks them.
    """

    version: int
    aggregates: frozenset[str] = frozenset()
    functions: dict[str, list[str]] = {}
    called_by_words: dict[str, list[str]] = {}
    shapes: dict[str, StatementShape] = field(default_factory=dict)
    keys_hold: bool = True
    roles_change: bool = False
    key_changes: int = 0
    keys_changed: int = -1
    row_sets: frozenset[str] = frozenset()
    defers: bool = False
    defined: set[str] = field(default_factory=set)

    def ask(self, answer: Callable[[str], Iterable[Sequence[Any]]]) -> None:
        """Query the names of functions in the database; ``answer`` returns the rows of a query."""
        self.aggregates = frozenset(row[0] for row in answer(AGGREGATES))
        self.functions = _listed(answer(FUNCTIONS))
        self.called_by_words = _listed(answer(CALLED_BY_WORDS))
        self.row_sets = frozenset(row[0] for row in answer(ROW_SETS))
        self.defers |= any(True for _ in answer(DEFERRED_TRIGGERS))
        self.shapes.clear()

    def functions_behind_words(self, part: Sequence[Token]) -> tuple[str, ...]:
        """Return the functions that a statement may call without naming them."""
        called = self.called_by_words
        if not called:
            return ()
        words = called.keys() & {"", *map(catalogue_name, {one.text for one in part})}
        return tuple(one for word in sorted(words) for one in sorted(called[word]))

    def functions_named(self, names: AbstractSet[str]) -> Iterator[str]:
        """Yield the functions of the database with names that a parenthesis follows."""
        for name in sorted(names & (self.functions.keys() | self.defined)):
            yield from sorted(self.functions.get(name, [name]))

    @property
    def returns_old_rows(self) -> bool:
        """Return whether the server supports ``old`` and ``new`` in RETURNING."""
        return self.version >= _FIRST_WITH_OLD


def _listed(rows: Iterable[Sequence[Any]]) -> dict[str, list[str]]:
    """Return the second columns of rows by the first."""
    listed: dict[str, list[str]] = {}
    for name, function in rows:
        listed.setdefault(name, []).append(function)
    return listed


class StatementShape(Struct, frozen=True):
    """The meaning of a statement's tokens, apart from the values of constants.

    Attributes:
        condition: the condition on the statement's only table, or why it cannot be evaluated.
        wrapped: the plan that also returns the row versions of query blocks; ``None`` if there is
            no such plan.
        names: as for :class:`PreparedStatement`.
        called: the functions behind its operators, casts and domains.
        compound: the plan with several queries; ``None`` if there is no such plan.
    """

    plan: StatementPlan
    condition: ParsedCondition
    wrapped: StatementPlan | None = None
    conditions: tuple[ParsedCondition, ...] = ()
    names: tuple[str, ...] | None = None
    called: tuple[str, ...] = ()
    compound: CompoundPlan | None = None


class Rewriter:
    """Rewrites the statements of a session.

    Attributes:
        tables: the tables used by the session, by name; ``None`` for a table that does not exist.
    """

    def __init__(self, database: DatabaseFacts) -> None:
        self._database = database
        self.tables: dict[str, Table | None] = {}
        self._texts: dict[str, Prepared] = {}
        self._joins: dict[int, tuple[StatementTable, KeyJoin | None]] = {}
        self._covers: dict[int, tuple[StatementTable, Sequence[Table], Cover | None]] = {}

    def forget(self) -> None:
        """Clear the caches of tables and rewritten statements, in case a name has a new meaning."""
        self.tables.clear()
        self._texts.clear()
        self._joins.clear()
        self._covers.clear()

    def prepare(self, text: str, *, may_ask: bool) -> Prepared:
        """Return a text in the form to send to the server."""
        cached = self._texts.get(text)
        if cached is not None:
            return cached
        try:
            cut = list(islice(tokens(text), _MOST_TOKENS + 1))
        except UnclearTextError:
            return _unexamined(text, SHAPES)
        if len(cut) > _MOST_TOKENS:
            return _unexamined(text, TOO_LONG)
        parts = list(statements(cut))
        declared = [declaration(part) for part in parts]
        shapes = [
            (query, self.shape_of(query))
            for part, cursor in zip(parts, declared, strict=True)
            for query in [part if cursor is None else part[cursor.query :]]
        ]
        defined = {one.plan.name for _, one in shapes if one.plan.kind == "routine"} - {""}
        if not defined <= self._database.defined:
            self._database.defined |= defined
            self._texts.clear()
        if may_ask:
            unknown = dict.fromkeys(
                one.name for _, found in shapes
                for one in (*found.plan.sources, *(found.wrapped.wrapped if found.wrapped else ()))
                if one.name not in self.tables
            ) | dict.fromkeys(
                name for _, found in shapes
                for name in (found.plan.tables if found.plan.kind == "truncate"
                             else found.names or ())
                if name not in self.tables
            )  # fmt: skip
            if unknown:
                return Prepared(sent=text, asks=tuple(unknown))
        made = Prepared(sent=text)
        edited = _EditedText(text, made.shifts)
        redefined = False  # whether names may have another meaning than before the text
        for (part, found), whole, cursor in zip(shapes, parts, declared, strict=True):
            whole_text = text if len(parts) == 1 else text[whole[0].start : whole[-1].end]
            compound = None
            if not redefined and cursor is None:
                compound = _compound(self, found, part, text, whole_text)
            if compound is not None:
                statement, additions = compound
                made.statements.append(statement)
                edited.insert(additions)
                continue
            encloses = not redefined and (cursor is None or _may_enclose(cursor))
            seen = self._blocks(found, part) if encloses else ()
            planned = found.wrapped if seen and found.wrapped else found.plan
            functions = (*self._database.functions_named(planned.names), *found.called)
            reported, addition, unseen = self._edit_of(planned, functions)
            if redefined and planned.sources:
                reported, addition, unseen = (), "", (*unseen, ALTERED)
            redefined = redefined or _may_redefine(part, planned)
            joins = len(reported) > 1 and planned.kind == "select"
            join = self._key_join(part, planned.sources) if joins else None
            repeats = encloses and _may_repeat(planned, join, functions)
            snapshot = _snapshot_of(planned, join, reported) if repeats else None
            cover = None
            if seen:
                is_covered = bool(reported) and planned.partial == "subqueries"
            else:
                misses = join is None or any(not edge.key for edge in join.edges)
                is_covered = joins and encloses and misses and planned.partial == JOINS
            if is_covered:
                cover = self._cover(part, planned, reported)
            made.statements.append(
                PreparedStatement(
                    plan=planned,
                    text=whole_text,
                    part=part,
                    reported=reported,
                    hidden=bool(reported) and planned.silent,
                    condition=found.condition,
                    unseen=unseen,
                    blocks=seen,
                    join=join,
                    snapshot=snapshot,
                    cover=cover,
                    names=None if ALTERED in unseen else found.names,
                    tables=tuple(map(self.tables.get, found.names or ())),
                    functions=functions,
                    triggered=_triggered(planned, self.tables),
                    logged=cursor is None and may_write_unseen(part, unseen, reported),
                    declares=cursor,
                    requests=cursor_request(whole),
                    locks=lock_calls(whole),
                )
            )
            place = planned.place
            where = part[place].start if place < len(part) else part[-1].end
            if addition and reported[0].source.text[1]:
                addition = addition.format(*(_text_of(one, part, text) for one in reported))
            additions = [(where, addition)]
            if seen or snapshot is not None or (cover is not None and cover.tables):
                only_if = _READ_COMMITTED if snapshot is not None else ""
                queries = [_block_query(block, part, text) for block in seen]
                if snapshot is not None:
                    queries.append(_query_of(snapshot, part, text))
                if cover is not None:
                    queries += _cover_queries(cover, planned, part, text)
                front, behind = _enclosing(queries, only_if=only_if)
                additions = [(part[0].start, front), *additions, (part[-1].end, behind)]
            edited.insert(additions)
        made.sent = edited.text()
        if len(text) < _LONGEST_CACHED and len(self._texts) < _MOST_CACHED and may_ask:
            self._texts[text] = made
        return made

    def shape_of(self, part: Sequence[Token]) -> StatementShape:
        """Return a statement's plan and condition, which depend only on its shape."""
        name = shape(part)
        shapes = self._database.shapes
        found = shapes.get(name)
        if found is None:
            facts = self._database
            made = _planned(part, facts)
            compound = compound_plan(part, made, facts.aggregates, facts.row_sets)
            found = StatementShape(
                made,
                _condition(part, made),
                *_plan_with_blocks(part, made, facts.aggregates),
                names=tables_read(part) if compound is None else compound.tables,
                called=facts.functions_behind_words(part),
                compound=compound,
            )
            if len(shapes) < 4 * _MOST_CACHED and len(name) < _LONGEST_SHAPE:
                shapes[name] = found
        return found

    def _blocks(self, found: StatementShape, part: Sequence[Token]) -> tuple[ReportedBlock, ...]:
        """Return a statement's query blocks; empty if the rows of any block cannot be seen."""
        if found.wrapped is None:
            return ()
        sources = found.wrapped.wrapped
        blocks: list[ReportedBlock] = []
        for one, condition in zip(sources, found.conditions, strict=True):
            block = self._block(one, condition, sources, part)
            block = block or self._covered_block(one, sources, part)
            if block is None:
                return ()
            blocks.append(block)
        return tuple(blocks)

    def _block(
        self,
        one: StatementTable,
        condition: ParsedCondition,
        sources: Sequence[StatementTable],
        part: Sequence[Token],
    ) -> ReportedBlock | None:
        """Return a table of a query block, one of ``sources``; ``None`` if it cannot be seen."""
        table = self.tables.get(one.name)
        # Any other name may refer to a column of the enclosing statement.
        if table is None or table.why or not condition.columns <= table.columns.keys():
            return None
        if one.cut and not table.rows_known:
            return None  # a LIMIT may read few rows of a large table
        reported = ReportedTable(one, table)
        if not condition.why:
            return ReportedBlock(reported, condition)
        if condition.expression is not None:
            return _loose_block(reported, condition, condition.expression, part)
        joined = [other for other in sources if other.text == one.text]
        join = self._key_join(part, joined)
        if join is None or join.condition.why or not all(edge.key for edge in join.edges):
            return None
        is_root = joined[join.root] is one
        return ReportedBlock(reported, join.condition, join, is_parent=not is_root)

    def _key_join(self, part: Sequence[Token], sources: Sequence[StatementTable]) -> KeyJoin | None:
        """Return the join of several tables, if its rows are exactly those of one of them."""
        first = sources[0]
        cached = self._joins.get(id(first))
        if cached is not None and cached[0] is first:
            return cached[1]
        tables = [self.tables.get(source.name) for source in sources]
        known = [table for table in tables if table is not None and not table.why]
        join = None
        if len(known) == len(sources):
            join = key_join(part, sources, known, self._database.key_changes)
        if len(self._joins) < _MOST_CACHED:
            self._joins[id(first)] = first, join
        return join

    def _covered_block(
        self, source: StatementTable, sources: Sequence[StatementTable], part: Sequence[Token]
    ) -> ReportedBlock | None:
        """Return a table of a query block that has a cover, one of ``sources``."""
        joined = tuple(other for other in sources if other.text == source.text)
        tables = [self.tables.get(other.name) for other in joined]
        known = tuple(table for table in tables if table is not None and not table.why)
        cover = self._cover_of(part, joined, known) if len(known) == len(joined) else None
        if cover is None:
            return None
        number = next(n for n, other in enumerate(joined) if other is source)
        table = _with_columns(known[number], cover.columns[number])
        return ReportedBlock(
            ReportedTable(source, table),
            ParsedCondition(why="a cover"),
            cover=BlockCover(cover, joined, known, number),
        )

    def _cover_of(
        self, part: Sequence[Token], sources: Sequence[StatementTable], tables: Sequence[Table]
    ) -> Cover | None:
        """Return reads that decide the rows of a join, which depend only on the join's shape."""
        first = sources[0]
        source, described, cover = self._covers.get(id(first), (None, (), None))
        if source is first and all(map(is_, described, tables)):
            return cover
        cover = None if _joins_otherwise(part) else cover_of(part, sources, tables)
        if len(self._covers) < _MOST_CACHED:
            self._covers[id(first)] = first, tables, cover
        return cover

    def _cover(
        self, part: Sequence[Token], planned: StatementPlan, reported: Sequence[ReportedTable]
    ) -> ReportedCover | None:
        """Return the cover of a join, and what reports its rows if the join does not."""
        if planned.partial not in (JOINS, "subqueries") or planned.locks:
            return None
        if len(reported) < len(planned.sources) or planned.kind != "select":
            return None
        tables = [one.table for one in reported]
        cover = self._cover_of(part, planned.sources, tables)
        if cover is None or not is_complete(part):
            return None
        only = planned.partial == JOINS
        if (
            only
            and cover.exact
            and cover.is_in_keys(tables)
            and not (planned.limit or planned.offset)
        ):
            return ReportedCover(cover)
        return ReportedCover(
            cover,
            tuple(
                ReportedTable(replace(source, how="all"), _with_columns(table, columns))
                for source, table, columns in zip(
                    planned.sources, tables, cover.columns, strict=True
                )
            ),
        )

    def _edit_of(
        self, planned: StatementPlan, functions: Collection[str] = ()
    ) -> tuple[tuple[ReportedTable, ...], str, tuple[str, ...]]:
        """Return the reported tables, the text to add, and the unseen kinds.

        Args:
            functions: the functions that the statement may call.
        """
        unseen = [*planned.unseen, *([CALLED] if functions else ())]
        reported: list[ReportedTable] = []
        texts: list[str] = []
        for one in planned.sources:
            table = self.tables.get(one.name)
            why = UNKNOWN_TABLES if table is None else table.why
            if not why and table is not None:
                why = _reason_unseen(one, table, planned, modern=self._database.returns_old_rows)
            if why or table is None:
                unseen.append(why)
                continue
            writes = one.how in ("write", "delete")
            if writes and (table.triggers or table.readers):
                unseen.append(TRIGGERS)
            if writes and table.may_change_other_tables(planned.kind, planned.assigned):
                unseen.append(CASCADES)
            reported.append(ReportedTable(one, table))
            old = self._database.returns_old_rows
            texts.append(_column_sql(one, table, len(texts), planned, old=old))
        return tuple(reported), "".join(texts), tuple(dict.fromkeys(unseen))


def _column_sql(
    one: StatementTable, table: Table, number: int, planned: StatementPlan, *, old: bool
) -> str:
    """Return the SQL expression for the column with a table's row versions.

    Args:
        old: whether the server returns old rows.
    """
    name = f"isolang_{number}"
    if one.how == "row":
        return f", {table.identity_sql(one.alias)} AS {name} "
    if one.how == "all":
        rows = f"pg_catalog.json_agg({table.identity_sql(one.alias)})::text"
        if one.text[1]:
            rows = f"(SELECT {_braced(rows)} {{{number}}})"
        return f", {rows} AS {name} "
    same_key = planned.kind == "update" and keeps_key(planned, table)
    reported = table.returned_versions_sql(one.alias, one.how, old=old, same_key=same_key)
    return f"{' RETURNING ' if planned.silent else ', '}{reported}::text AS {name}"


def _triggered(planned: StatementPlan, known: Mapping[str, Table | None]) -> tuple[Table, ...]:
    """Return the tables whose triggers, defaults and CHECK a statement may run."""
    written = [one.name for one in planned.sources if one.how in ("write", "delete")]
    tables = [known.get(name) for name in written]
    return tuple(
        table for table in tables if table is not None and (table.triggers or table.readers)
    )


def _reason_unseen(
    one: StatementTable, table: Table, planned: StatementPlan, *, modern: bool
) -> str:
    """Return why the versions that a write returns are not those of its rows; empty if they are."""
    if one.how in ("row", "all"):
        return ""
    if planned.kind == "merge" and not modern:
        return "MERGE"
    # RETURNING names no version of a row that moves to another partition, or that is upserted.
    moves = not table.moving.isdisjoint(planned.assigned) or table.triggers
    if table.partitioned and (moves or planned.upserts or not modern):
        return PARTITIONED
    if modern and catalogue_name(one.alias) in ("old", "new"):
        return NAMED_OLD
    return ""


def _compound(
    rewriter: Rewriter, found: StatementShape, part: Sequence[Token], text: str, whole_text: str
) -> tuple[PreparedStatement, list[tuple[int, str]]] | None:
    """Return a statement with several queries, and the texts to insert; ``None`` for others."""
    known = rewriter.tables
    conflicts = _conflicts(found.plan, part, text, known)
    compound = insert_plan(part, found.plan) if conflicts else found.compound
    if compound is None:
        return None
    whole = compound.plan
    shown = one_line(whole_text, _LONGEST_SHOWN)
    unseen = [*whole.unseen]
    members: list[PreparedStatement] = []
    additions: list[str] = []
    for one in compound.members:
        own = part[slice(*one.tokens)]
        reported, addition, kinds = rewriter._edit_of(one.plan)
        if len(reported) < len(one.plan.sources) or _output(one, reported) is None:
            return None
        unseen += kinds
        additions.append(addition)
        members.append(
            PreparedStatement(
                plan=one.plan, text=whole_text, shown=shown, part=own, reported=reported,
                condition=one.condition, member=one,
                names=tuple(source.name for source in one.plan.sources),
                tables=tuple(column.table for column in reported),
            )
        )  # fmt: skip
    sources = [source for source, _ in compound.blocks]
    hidden = {*compound.hidden}
    blocks = [*conflicts]
    for source, condition in compound.blocks:
        block = rewriter._block(source, condition, sources, part)
        block = block or rewriter._covered_block(source, sources, part)
        blocks += [block] if block is not None else []
    if len(blocks) < len(sources) + len(conflicts):
        if not blocks and len(members) == 1 and not compound.members[0].name:
            return None
        unseen.append(SUBQUERIES)
        hidden |= {source.name for source in sources}
    # What is found to be unseen later may be any block.
    read = dict.fromkeys((*hidden, *(source.name for source in sources)))
    functions = (*rewriter._database.functions_named(whole.names), *found.called)
    unseen += [CALLED] if functions else []
    unseen = list(dict.fromkeys(unseen))
    queries = [one for one in members if one.member is not None and one.member.name]
    main = next((one for one in members if one not in queries), None)
    columns: tuple[ReportedTable | None, ...] = () if main is None else main.reported
    encloses = bool(blocks or queries)
    if encloses:
        columns += (None, *(block.reported for block in blocks))
        columns += tuple(reported for one in queries for reported in one.reported)
    tag = "INSERT 0" if compound.writes == "insert" else compound.writes.upper()
    statement = PreparedStatement(
        plan=whole, text=whole_text, shown=shown, part=part,
        reported=tuple(reported for one in members for reported in one.reported),
        hidden=whole.silent, unseen=tuple(unseen), blocks=tuple(blocks), columns=columns,
        names=tuple(read), tables=tuple(map(known.get, read)), members=tuple(members),
        functions=functions,
        triggered=tuple(table for one in members for table in _triggered(one.plan, known)),
        logged=not _HIDES_WRITES.isdisjoint(unseen), tag=tag if encloses else "",
    )  # fmt: skip
    texts = _texts_of_queries(queries, additions, part)
    selected = [_block_query(block, part, text) for block in blocks]
    selected += [
        f"SELECT isolang_{number} FROM {_hidden_name(query.member)}"
        for query in queries
        if query.member is not None
        for number in range(len(query.reported))
    ]
    addition = "" if main is None else additions[-1]
    begin, end = part[compound.main].start, part[-1].end
    if encloses:
        front, behind = _enclosing(selected, complete=True)
        if main is not None:
            word = "," if compound.main else "WITH"
            behind = f"{addition}) {front}SELECT * FROM isolang_main{behind}"
            front = f"{word} isolang_main AS ("
        texts += [(begin, front), (end, behind)]
    else:
        texts.append((end, addition))
    return statement, texts


def _conflicts(
    planned: StatementPlan, part: Sequence[Token], text: str, known: Mapping[str, Table | None]
) -> tuple[ReportedBlock, ...]:
    """Return for each row that an INSERT may leave out what reports a row with one of its keys."""
    if planned.kind != "insert" or planned.upserts or planned.unseen or not planned.may_skip:
        return ()
    table = known.get(planned.sources[0].name)
    if table is None or table.why or table.partitioned or not planned.proposed:
        return ()
    source = StatementTable(name=planned.sources[0].name, alias="isolang_conflict", how="all")
    return tuple(
        ReportedBlock(ReportedTable(source, table), ParsedCondition(why="a key"), query=query)
        for query in queries_for_conflicts(part, text, table, source.alias)
    )


def _unexamined(text: str, kind: str) -> Prepared:
    """Return a text to send unchanged, which counts as one unseen statement."""
    plan = StatementPlan(kind="other", unseen=(kind,))
    whole = PreparedStatement(plan=plan, text=text, part=(), unseen=(kind,))
    return Prepared(sent=text, statements=[whole])


def keeps_key(planned: StatementPlan, table: Table) -> bool:
    """Return whether a write leaves the primary keys of the updated rows unchanged."""
    return not (planned.assigned & set(table.key) or table.triggers)


def may_write_unseen(
    part: Sequence[Token], unseen: Collection[str], reported: Collection[ReportedTable]
) -> bool:
    """Return whether a statement may write rows whose versions it does not return."""
    words = [one.text for one in part if one.kind == "word"]
    first = words[0] if part and part[0].kind == "word" else ""
    if first in _WRITES:
        return bool(unseen) or not reported
    if first == "copy":
        return "from" in words
    if first in ("with", "explain") and not _WRITES.isdisjoint(words):
        return True
    return first in ("execute", "call", "do") or CALLED in unseen


def _may_redefine(part: Sequence[Token], planned: StatementPlan) -> bool:
    """Return whether a statement may change which tables later names stand for, or their columns.

    SOUND BECAUSE: the catalogue was asked before the whole text is executed.
    """
    words = {one.text for one in part if one.kind == "word"}
    return (
        planned.kind == "ddl"
        or (planned.kind == "other" and PROCEDURES in planned.unseen)
        or (planned.kind == "forget" and not words.isdisjoint({"search_path", "role", "session"}))
    )


def _may_enclose(cursor: Declaration) -> bool:
    """Return whether another statement may enclose a cursor's query.

    The enclosing query cannot be read backwards or named in WHERE CURRENT OF, where its own could.
    """
    return cursor.holds and cursor.only_forward


def _braced(text: str) -> str:
    """Escape the braces in a text so that ``format`` returns the text itself."""
    return text.replace("{", "{{").replace("}", "}}")


def _text_of(one: ReportedTable, part: Sequence[Token], text: str) -> str:
    """Return the text of a query block's FROM and WHERE."""
    begin, end = one.source.text
    return text[part[begin].start : part[end - 1].end]


def _may_repeat(planned: StatementPlan, join: KeyJoin | None, functions: Collection[str]) -> bool:
    """Return whether a join's condition may be repeated.

    SOUND BECAUSE: one that may fail is repeated only if the statement itself evaluates it on all
    rows, and only without functions that may act.

    Args:
        functions: the functions of the database that the statement may call.
    """
    if join is None or not join.condition.why:
        return join is not None
    expression = join.condition.expression
    return expression is not None and not (planned.limit or functions) and acts_once(expression)


def _snapshot_of(
    planned: StatementPlan, join: KeyJoin | None, reported: Sequence[ReportedTable]
) -> ReportedTable | None:
    """Return what also reports the rows that a locking join finds in its statement's snapshot."""
    if join is None or planned.locked is None or planned.skips:
        return None
    if len(reported) < len(planned.sources) or planned.partial != JOINS:
        return None
    root = reported[join.root]
    return ReportedTable(replace(root.source, how="all", text=planned.body), root.table)


def _with_columns(table: Table, columns: Sequence[str]) -> Table:
    """Return a table whose key also has other columns, so that they are reported."""
    return replace(table, key=(*table.key, *(name for name in columns if name not in table.key)))


def _joins_otherwise(part: Sequence[Token]) -> bool:
    """Return whether a statement has a join of whose tables WHERE may hold without their rows."""
    return any(token.kind == "word" and token.text in _OTHER_JOINS for token in part)


def _loose_block(
    reported: ReportedTable,
    condition: ParsedCondition,
    expression: ServerExpression,
    part: Sequence[Token],
) -> ReportedBlock | None:
    """Return a query block whose condition the server evaluates; ``None`` if it cannot."""
    table = reported.table
    if not table.has_images or not expression.columns <= {*table.names.values()}:
        return None
    loose = loose_condition(part, reported.source, table.columns)
    return ReportedBlock(reported, condition, loose=loose)


def _block_query(block: ReportedBlock, part: Sequence[Token], text: str) -> str:
    """Return the query for the rows that a query block, or its cover, reads of a table."""
    cover, reported = block.cover, block.reported
    if block.loose is not None:
        identity = reported.table.identity_sql(reported.source.alias)
        return loose_query(reported.source, block.loose, identity, part, text)
    if block.query:
        return block.query
    if cover is None:
        limit = f" LIMIT {MOST_ROWS + 1}" if reported.source.cut else ""
        return _query_of(reported, part, text) + limit
    whole = CoveredStatement(cover.cover, text, part, cover.sources, cover.tables)
    return whole.query(cover.number, reported.table.identity_sql(reported.source.alias))


def _query_of(one: ReportedTable, part: Sequence[Token], text: str) -> str:
    """Return the query for the rows of a query block."""
    return f"SELECT {one.table.identity_sql(one.source.alias)} {_text_of(one, part, text)}"


def _cover_queries(
    cover: ReportedCover, planned: StatementPlan, part: Sequence[Token], text: str
) -> list[str]:
    """Return the queries for the rows that a cover reads of each table."""
    tables = [one.table for one in cover.tables]
    whole = CoveredStatement(cover.cover, text, part, planned.sources, tables)
    return [
        whole.query(number, one.table.identity_sql(one.source.alias))
        for number, one in enumerate(cover.tables)
    ]


def _enclosing(
    selected: Sequence[str], *, only_if: str = "", complete: bool = False
) -> tuple[str, str]:
    """Return the texts to put before and after a query to enclose it in another query.

    The enclosing query returns the same rows in the same order, or one row if the inner query
    returns no rows. Its first row also contains what ``selected`` returns.

    Args:
        only_if: if not empty, the column is an empty list if that condition holds and a selected
            query has no rows.
        complete: whether the inner query is executed as a whole before the selected ones.
    """
    columns = []
    for number, rows in enumerate(selected):
        total = "pg_catalog.json_agg(isolang_row)"
        if only_if:
            total = f"COALESCE({total}, '[]')"
        first = f"pg_catalog.row_number() OVER () = 1{only_if and f' AND {only_if}'}"
        if complete:
            first += " AND pg_catalog.count(*) OVER () > 0"
        columns.append(
            f"CASE WHEN {first} THEN "
            f"(SELECT {total}::text FROM ({rows}) isolang_rows(isolang_row)) END "
            f"AS isolang_block_{number}"
        )
    front = f"SELECT isolang_all.*, {', '.join(columns)} FROM (SELECT isolang_own.*, true FROM ("
    return front, ") isolang_own) isolang_all RIGHT JOIN (SELECT 1) isolang_one ON true"


def _hidden_name(one: Member) -> str:
    """Return the name of the query of WITH that also returns row versions."""
    return quoted_name(f"isolang_{one.name}" if one.output else one.name)


def _output(one: Member, reported: Sequence[ReportedTable]) -> tuple[str, ...] | None:
    """Return the columns of a query of WITH, quoted for SQL; ``None`` if these are not distinct."""
    names: list[str] = []
    for name in one.output:
        names += [name] if name != "*" else map(quoted_name, reported[0].table.names.values())
    return tuple(names) if len({*map(catalogue_name, names)}) == len(names) else None


def _texts_of_queries(
    queries: Sequence[PreparedStatement], additions: Sequence[str], part: Sequence[Token]
) -> list[tuple[int, str]]:
    """Return the texts to insert into the queries of WITH, with their positions."""
    texts: list[tuple[int, str]] = []
    for query, addition in zip(queries, additions, strict=False):
        one = query.member
        assert one is not None
        begin, end = one.tokens
        place = begin + one.plan.place
        behind = part[end].end  # the closing parenthesis
        name = part[one.named_at]
        output = _output(one, query.reported)
        if output:
            texts.append((name.start + (name.kind == "quoted"), "isolang_"))
        texts.append((part[place].start if place < end else part[end - 1].end, addition))
        if output:
            columns = ", ".join(output)
            texts.append((behind, f", {name.text} AS (SELECT {columns} FROM {_hidden_name(one)})"))
    return texts


class _EditedText:
    """A text while other texts are inserted into it, from the front to the back."""

    def __init__(self, text: str, shifts: list[tuple[int, int]]) -> None:
        """Create a text whose insertions are added to ``shifts``."""
        self._text, self._shifts = text, shifts
        self._pieces: list[str] = []
        self._at = self._added = 0

    def insert(self, additions: Iterable[tuple[int, str]]) -> None:
        """Insert texts at positions of the original text."""
        for where, more in additions:
            if more:
                self._pieces += [self._text[self._at : where], more]
                self._shifts.append((where + self._added, len(more)))
                self._added += len(more)
                self._at = where

    def text(self) -> str:
        """Return the text with all insertions."""
        return "".join([*self._pieces, self._text[self._at :]])


def _plan_with_blocks(
    part: Sequence[Token], made: StatementPlan, aggregates: Collection[str]
) -> tuple[StatementPlan | None, tuple[ParsedCondition, ...]]:
    """Return the plan that also returns the rows of query blocks, and the blocks' conditions."""
    found = plan_with_blocks(part, made, aggregates)
    conditions: list[ParsedCondition] = []
    texts = Counter(one.text for one in found.wrapped) if found else Counter()
    for one in found.wrapped if found else ():
        condition = ParsedCondition(why="several tables")
        if texts[one.text] == 1:
            condition = _condition(part, StatementPlan(kind="select", sources=(one,)))
        conditions.append(condition)
    return (found, tuple(conditions)) if conditions else (None, ())


def _planned(part: Sequence[Token], facts: DatabaseFacts) -> StatementPlan:
    """Return the plan of a statement in a database."""
    made = plan(part, facts.aggregates)
    if made.names & facts.row_sets and made.partial in ("", JOINS):
        made = replace(made, partial="functions")
    if _repeats_condition(made) and _condition(part, made).why:
        made = replace(made, kind="other", sources=(), single=False, unseen=(SUBQUERIES,))
    return made


def _repeats_condition(made: StatementPlan) -> bool:
    """Return whether a SELECT would repeat the condition of its only subquery."""
    return made.kind == "select" and any(source.text[1] for source in made.sources)


def _condition(part: Sequence[Token], made: StatementPlan) -> ParsedCondition:
    """Return a plan's condition on its first table."""
    if not made.sources:
        return ParsedCondition(why="no table")
    one, *others = made.sources
    if others and (one.how != "row" or one.join):
        return ParsedCondition(why="several tables")
    aliases = name_parts(one.alias)

    def column(names: Sequence[str]) -> str | None:
        own = tuple(names[:-1])
        if not own:
            return None if others else names[-1]
        return names[-1] if own == aliases[-len(own) :] else None

    parsed = predicates.parse_known_parts(part, *one.where, column)
    return replace(parsed, expression=server_expression(part, [one.where], column))


def limit_value(part: Sequence[Token], at: int, parameters: predicates.Parameters) -> int | None:
    """Return the number in LIMIT, OFFSET or FETCH; ``None`` if it is uncertain."""
    place = at + 1
    if part[at].text == "fetch":
        place += 1
        if place < len(part) and part[place].text in ("row", "rows"):
            return 1
    if place >= len(part):
        return None
    one = part[place]
    if place + 1 < len(part) and part[place + 1].kind == "operator":
        return None
    if one.kind == "number" and one.text.isdigit():
        return int(one.text)
    if one.kind == "parameter":
        value = parameters.text(int(one.text[1:]))
        return int(value) if value is not None and value.isdigit() else None
    return None
