"""Plans statements that write, and read in other queries than the one that writes.

These are INSERT, UPDATE, DELETE and MERGE with queries in WITH, and those with subqueries. A query
of WITH returns the versions of its rows in one more column, and then gets another name:

    isolang_next AS (SELECT id, VERSION AS isolang_0 FROM job … FOR UPDATE SKIP LOCKED),
    next AS (SELECT id FROM isolang_next)

The statement itself becomes such a query, too, since its RETURNING could not return what the others
have found: it has no row if it writes none. The rows of all queries are columns of the first row of
a SELECT behind them. The server executes each query of WITH that writes as a whole, and as often as
the statement itself: once. Subqueries are query blocks (:mod:`isolang.observe.sql.blocks`).

SOUND BECAUSE: all queries of a statement read its snapshot, and none of them sees what another one
writes. So all reads precede all writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from isolang.history.statements import GUARDS
from isolang.observe.sql import predicates
from isolang.observe.sql.blocks import block_at, is_complete
from isolang.observe.sql.evaluated import server_expression
from isolang.observe.sql.lexer import Token, called_functions, catalogue_name
from isolang.observe.sql.plan import (
    Reader,
    RefusedError,
    StatementPlan,
    StatementTable,
    chosen_columns,
    from_tables,
    name_parts,
    plan,
)
from isolang.observe.sql.predicates import ParsedCondition
from isolang.observe.sql.queries import (
    FROM_SUBQUERIES,
    WRITES,
    StatementQueries,
    StatementQuery,
)
from isolang.observe.unseen import SUBQUERIES

_OTHER_TABLES: Final = "other tables of UPDATE and DELETE"
_READS: Final = frozenset({SUBQUERIES, FROM_SUBQUERIES, _OTHER_TABLES, "MERGE"})


class Member(Struct, frozen=True, kw_only=True):
    """A query whose rows are reported: one of WITH, or the statement itself.

    Attributes:
        name: the name of a query of WITH; empty for the statement itself.
        named_at: the position of the name's token.
        tokens: the token range of the query.
        plan: the query's plan, whose positions are relative to the range.
        condition: its condition, whose positions are relative to the range.
        output: the columns of a query of WITH that other queries read, as they are written; ``*``
            stands for those of the table.
        chooser: the member whose rows choose those of a write; empty if none does.
    """

    name: str
    named_at: int
    tokens: tuple[int, int]
    plan: StatementPlan
    condition: ParsedCondition
    output: tuple[str, ...] = ()
    chooser: str = ""


class CompoundPlan(Struct, frozen=True, kw_only=True):
    """The queries of a statement.

    Attributes:
        plan: the plan of the whole statement, with what is not seen.
        members: the queries that report the rows they read or write.
        main: the token position of the statement itself, behind the queries of WITH.
        writes: the word that the statement itself begins with; empty for SELECT.
        blocks: the tables of query blocks, each with the block's condition.
        tables: the names of all tables that the statement reads or writes.
        hidden: the names of the tables that it reads without this being seen.
    """

    plan: StatementPlan
    members: tuple[Member, ...]
    main: int
    writes: str
    blocks: tuple[tuple[StatementTable, ParsedCondition], ...]
    tables: tuple[str, ...]
    hidden: tuple[str, ...]


def compound_plan(
    part: Sequence[Token],
    whole: StatementPlan,
    aggregates: Collection[str],
    row_sets: Collection[str],
) -> CompoundPlan | None:
    """Return the plan of a statement with several queries; ``None`` if there is none.

    Args:
        whole: the plan of the statement without regard to its queries.
        row_sets: the names of functions that return a set.
    """
    words = {token.text for token in part if token.kind == "word"}
    if not part or part[0].text not in WRITES | {"with"} or not words & WRITES:
        return None
    if part[0].text not in ("with", "merge") and not {*whole.unseen} & _READS:
        return None
    try:
        return _CompoundReader(part, aggregates, row_sets).plan()
    except RefusedError:
        return None


def insert_plan(part: Sequence[Token], whole: StatementPlan) -> CompoundPlan:
    """Return the plan of an INSERT of VALUES that is executed with other queries."""
    condition = ParsedCondition(why="no condition")
    return CompoundPlan(
        plan=StatementPlan(
            kind="compound", place=len(part), silent=whole.silent, names=whole.names
        ),
        members=(
            Member(name="", named_at=0, tokens=(0, len(part)), plan=whole, condition=condition),
        ),
        main=0,
        writes="insert",
        blocks=(),
        tables=whole.tables,
        hidden=(),
    )  # fmt: skip


class _CompoundReader(StatementQueries):
    """Plans the queries of one statement."""

    def __init__(
        self, part: Sequence[Token], aggregates: Collection[str], row_sets: Collection[str]
    ) -> None:
        super().__init__(part, aggregates, row_sets)
        self._unseen: list[str] = []
        self._hidden: dict[str, None] = {}

    def plan(self) -> CompoundPlan:
        """Return the plan.

        Raises:
            RefusedError: there is none.
        """
        part = self._part
        star = part[-1].text == "*" and part[-2].text in ("returning", ".", ",")
        if not is_complete(part[:-2] if star else part):
            raise RefusedError(SUBQUERIES)
        main = self._read_queries()
        queries = [*self._queries.values(), main]
        self._check_words({query.begin for query in queries})
        for query in queries:
            self._note_items(query)
        selects = [*self._selects(queries)]
        for begin, end in selects:
            self._note_tables(begin, end)
        members: dict[str, Member] = {}
        for query in queries:
            if (member := self._member(query, members)) is not None:
                members[query.name] = member
        handled = {m.tokens[0] for m in members.values() if m.plan.kind == "select"}
        claims = [m.tokens for m in members.values() if m.plan.claims]
        blocks = [
            block
            for begin, end in selects
            if begin not in handled and not any(a < begin < b for a, b in claims)
            for block in self._block(begin, end)
        ]
        word = self._reader.word(main.begin)
        silent = main.name in members and members[main.name].plan.silent
        return CompoundPlan(
            plan=StatementPlan(
                kind="compound",
                place=len(part),
                silent=silent,
                unseen=tuple(dict.fromkeys(self._unseen)),
                tables=tuple(self._read),
                names=called_functions(part),
            ),
            members=tuple(members.values()),
            main=main.begin,
            writes=word if word in WRITES else "",
            blocks=tuple(blocks),
            tables=tuple(self._tables),
            hidden=tuple(self._hidden),
        )

    # --- SELECT ---

    def _block(self, begin: int, end: int) -> Iterator[tuple[StatementTable, ParsedCondition]]:
        """Yield the tables of a query block, or note why its rows are not seen."""
        reader = self._reader
        place, stop = self._from(begin, end)
        items = from_tables(reader, place + 1, stop).tables if place < end else []
        if all(self._reads_query(name) for name, _ in items):
            return
        ranges = {query.name: (query.begin, query.end + 1) for query in self._queries.values()}
        try:
            if reader.find({"for", "fetch"}, begin, end, reader.depth[begin]) < end:
                raise RefusedError(SUBQUERIES)
            tables = block_at(reader, begin, end, ranges)
        except RefusedError:
            self._hide(SUBQUERIES, items)
            return
        condition = ParsedCondition(why="several tables")
        if len(tables) == 1:
            condition = _condition(self._part, [tables[0].where], tables[0].alias)
        cut_off = [self._queries[name] for name in self._queries_cut_off()]
        if any(query.begin <= begin < query.end for query in cut_off):
            tables = tuple(replace(table, cut=-1) for table in tables)
        yield from ((table, condition) for table in tables)

    def _hide(self, what: str, items: Sequence[tuple[str, str]]) -> None:
        """Note that it is not seen which rows of some tables are read."""
        self._unseen.append(what)
        self._hidden |= dict.fromkeys(name for name, _ in items if not self._reads_query(name))

    # --- members ---

    def _member(self, query: StatementQuery, members: dict[str, Member]) -> Member | None:
        """Return the query as a member; ``None`` if it reports no rows itself."""
        word = self._reader.word(query.begin)
        if query.name and word == "select" and query.name not in self._used:
            raise RefusedError("WITH")  # the server does not run it
        if word == "values" or (word == "select" and not query.name):
            return None
        made = plan(self._part[query.begin : query.end], self._aggregates)
        if word == "select":
            return self._select_member(query, made)
        if made.kind != word:
            raise RefusedError(word)
        output: tuple[str, ...] = ()
        if query.name in self._used:
            output = self._output(query, query.begin + made.place - 1, made)
            if made.silent or not output:
                raise RefusedError("WITH")
        return self._write_member(query, made, output, members)

    def _select_member(self, query: StatementQuery, made: StatementPlan) -> Member | None:
        sources = tuple(one for one in made.sources if not self._reads_query(one.name))
        in_part = self._used_in_part | self._queries_cut_off()
        if made.kind != "select" or not sources or query.name in in_part:
            return None
        others = {*made.unseen} - {SUBQUERIES, FROM_SUBQUERIES}
        if others or any(one.how != "row" for one in sources):
            return None
        output = self._output(query, query.begin, made)
        if not output:
            return None
        partial = made.partial
        if len(sources) < len(made.sources):
            partial = "other queries"
        elif not made.names.isdisjoint(self._row_sets):
            partial = partial or "functions"
        elif partial == "subqueries" and made.skips and len(sources) == 1:
            partial = ""
        tokens = query.begin, query.end
        where = [sources[0].where] if sources[0].where[1] else []
        condition = _condition(
            self._part[slice(*tokens)],
            where,
            sources[0].alias,
            others=() if len(made.sources) == 1 else None,
        )
        return Member(
            name=query.name,
            named_at=query.named_at,
            tokens=tokens,
            plan=replace(made, sources=sources, partial=partial, unseen=()),
            condition=condition,
            output=output,
        )

    def _write_member(
        self,
        query: StatementQuery,
        made: StatementPlan,
        output: tuple[str, ...],
        members: dict[str, Member],
    ) -> Member:
        part = self._part[query.begin : query.end]
        reader = Reader(part)
        (target,) = made.sources
        others = {alias: catalogue_name(name) for name, alias in query.items}
        queries = {alias: name for alias, name in others.items() if name in self._queries}
        chosen, partial = made.chosen, made.partial
        condition = ParsedCondition()
        choosers = set(queries.values())
        if made.kind == "merge":
            if len(queries) < len(others):
                self._hide("MERGE", query.items)
        elif made.kind != "insert" and not made.claims:
            chosen, rest = chosen_columns(reader, target.where, target.alias, queries)
            rest, more = self._without_lists(reader, rest, target.alias)
            chosen = frozenset({*chosen, *more})
            choosers = set(more.values()) | (choosers if choosers else set())
            columns = self._columns_of(others.values())
            condition = _condition(part, rest, target.alias, others=columns)
            condition = replace(condition, columns=condition.columns | chosen)
            if len(queries) < len(others):
                self._hide(_OTHER_TABLES, query.items)
                chosen, partial = frozenset(), "other tables"
            elif not chosen and others:
                partial = "other tables"
            else:
                partial = "subqueries" if condition.why and condition.expression is None else ""
        elif made.claims:
            condition = _condition(part, [target.where], target.alias)
        elif made.may_skip and (proposer := self._only_query(query)):
            choosers = {proposer}
        self._unseen += {*made.unseen} - _READS
        chooser = self._origin(choosers.pop(), members) if len(choosers) == 1 else ""
        chosen_by = members[chooser].plan if chooser else None
        return Member(
            name=query.name,
            named_at=query.named_at,
            tokens=(query.begin, query.end),
            plan=replace(
                made,
                partial=partial,
                unseen=(),
                chosen=chosen,
                keeps_chosen=chosen_by is not None
                and chosen_by.lock in GUARDS
                and [one.name for one in chosen_by.sources] == [target.name],
            ),
            condition=condition,
            output=output,
            chooser=chooser,
        )

    def _origin(self, name: str, members: dict[str, Member]) -> str:
        """Return the member whose rows a query has passed on; empty if there is none."""
        while name not in members:
            query = self._queries[name]
            begin, end = query.begin, query.end
            place, stop = self._from(begin, end)
            if self._reader.word(begin) != "select" or place == end:
                return ""
            found = from_tables(self._reader, place + 1, stop)
            if len(found.tables) != 1 or found.joined or found.unseen:
                return ""
            name = catalogue_name(found.tables[0][0])
            if name not in self._queries:
                return ""
        return name

    def _without_lists(
        self, reader: Reader, rest: Sequence[tuple[int, int]], alias: str
    ) -> tuple[list[tuple[int, int]], dict[str, str]]:
        """Split off comparisons such as ``id IN (SELECT id FROM next)``.

        Return the other parts of a condition, and for each column that is compared the query.
        """
        kept, chosen = [], {}
        for begin, end in rest:
            at = begin
            if reader.text(at + 1) == "." and [reader.text(at)] == [name_parts(alias)[-1]]:
                at += 2
            column = catalogue_name(reader.text(at)) if reader.is_name(at) else ""
            sign = reader.text(at + 1)
            opened = at + 2 + (sign == "=" and reader.word(at + 2) in ("any", "some"))
            inner = [reader.text(n) for n in range(opened + 2, end - 1)]
            inner = inner[2:] if inner[1:2] == ["."] else inner
            name = catalogue_name(inner[2]) if len(inner) > 2 else ""
            is_list = (
                sign in ("in", "=")
                and (reader.text(opened), reader.word(opened + 1)) == ("(", "select")
                and reader.text(end - 1) == ")"
                and inner[1:2] == ["from"]
                and len(inner) - ("as" in inner[3:4]) <= 4
            )
            if column and is_list and name in self._queries:
                chosen[column] = name
            else:
                kept.append((begin, end))
        return kept, chosen


def _condition(
    part: Sequence[Token],
    ranges: Sequence[tuple[int, int]],
    alias: str,
    *,
    others: Collection[str] | None = (),
) -> ParsedCondition:
    """Return the condition on a table that parts connected by AND make up.

    Args:
        others: the columns that a name without alias may be; ``None`` if these are unknown.
    """
    aliases = name_parts(alias)

    def column(names: Sequence[str]) -> str | None:
        own = tuple(names[:-1])
        if not own:
            return None if others is None or names[-1] in others else names[-1]
        return names[-1] if own == aliases[-len(own) :] else None

    parsed = [predicates.parse_known_parts(part, *one, column) for one in ranges if one[1]]
    expression = server_expression(part, ranges, column)
    if len(parsed) == 1:
        return replace(parsed[0], expression=expression)
    nodes = [one.node for one in parsed if not one.why]
    return ParsedCondition(
        node=("and", *nodes) if nodes else ("true",),
        columns=frozenset().union(*(one.columns for one in parsed)),
        equal={name: value for one in parsed for name, value in one.equal.items()},
        among={name: value for one in parsed for name, value in one.among.items()},
        why=next((one.why for one in parsed if one.why), ""),
        expression=expression,
    )
