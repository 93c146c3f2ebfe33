"""Finds what a SELECT reads that its own rows do not show: query blocks, and the rows of joins.

The rows are taken by the readers that PostgreSQL's statements have (:mod:`.sql.blocks` and
:mod:`.sql.covers`), which see the same tokens. One more column of the answer has a list of the rows
of each table: that of a query block whose condition compares columns with constants, or that of a
cover.

SOUND BECAUSE: a subquery in a statement reads what the statement reads: its snapshot, or the newest
rows, which it locks as the statement does. A list is repeated in few rows: those of an answer with
LIMIT, or with DISTINCT, of which it must be the same; otherwise only the first row has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from msgspec import Struct

from isolang.observe.log.tables import LoggedTable
from isolang.observe.mariadb.compared import ComparedColumn
from isolang.observe.mariadb.plan import AGGREGATES, SentPlan, is_connected_by_and
from isolang.observe.mariadb.semijoins import BlockSource, SemiJoin, semi_joins
from isolang.observe.sql.blocks import plan_with_blocks
from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.covers import MOST_ROWS, Cover, CoveredTable, cover_of
from isolang.observe.sql.lexer import Token
from isolang.observe.sql.plan import (
    CLAUSES,
    Reader,
    StatementPlan,
    StatementTable,
    aggregates_all,
    name_parts,
)
from isolang.observe.sql.predicates import ParsedCondition, parse_known_parts

MOST_REPEATED: Final = 100
"""The most rows of an answer in each of which a list is repeated, and of a list in others."""

# What PostgreSQL's readers do not know, and what changes or locks rows.
_REFUSED: Final = frozenset({
    "use", "force", "ignore", "straight_join", "partition", "lock", "procedure", "into", "natural",
    "using", "rollup", "sql_calc_found_rows", "for", "over", "group_concat", "json_arrayagg",
    "dual",
    "system_time", "minus", "next", "previous", "nextval", "lastval", "setval", "sql_no_cache",
    "sql_cache", "sleep", "get_lock", "release_lock", "benchmark", "rand", "found_rows",
})  # fmt: skip
_WRAPPED: Final = frozenset({"WITH", "subqueries", "SELECT DISTINCT", "FROM of another shape",
                             "shapes"})  # fmt: skip
_SET_OPERATORS: Final = frozenset({"union", "intersect", "except"})
_PART: Final = re.compile(r'"(?:[^"]|"")+"|[^.]+')


class FoundTable(Struct, frozen=True):
    """A table of a query block.

    Attributes:
        alias: how SQL names its columns, as the statement writes it.
        source: the table as the readers of statements name it.
    """

    table: LoggedTable
    alias: str
    source: StatementTable

    @property
    def sql(self) -> str:
        """Return the table with its alias in SQL."""
        named = f"{_quoted(self.table.schema)}.{_quoted(self.table.name)}"
        return named if "." in self.alias else f"{named} AS {self.alias}"


class QueryBlock(Struct, frozen=True):
    """Tables that a statement reads together, whose rows are in the list of each.

    Attributes:
        condition: the condition on its only table; ``None`` if it has a cover.
        cover: what decides the rows of several tables, or under other conditions.
        is_join: whether the tables are those of the statement itself.
    """

    tables: tuple[FoundTable, ...]
    condition: ParsedCondition | None = None
    cover: Cover | None = None
    is_join: bool = False

    @property
    def cut(self) -> int:
        """Return where the LIMIT is that may leave out its rows, as for PostgreSQL."""
        return self.tables[0].source.cut


class BlockPlan(Struct, frozen=True):
    """The query blocks of a SELECT.

    Attributes:
        place: the number of the token in front of which the statement takes the lists; -1 if only
            another statement can return them.
        limit: the position of the statement's LIMIT; 0 if there is none.
        repeats: whether each row of the answer must have the lists.
        longest: the most rows of a list.
        has_lists: whether the rows in the answer are not enough.
        semi_joins: the comparisons of blocks by IN and EXISTS.
    """

    blocks: tuple[QueryBlock, ...]
    place: int
    limit: int
    repeats: bool
    longest: int
    has_lists: bool = True
    semi_joins: tuple[SemiJoin, ...] = ()

    @property
    def is_in_answer(self) -> bool:
        """Return whether the statement itself can return the lists."""
        return self.has_lists and self.place >= 0

    def lists_sql(self, part: Sequence[Token], text: str) -> tuple[str, list[int]]:
        """Return the SQL expression for the lists of all tables, and the parameters in it."""
        writer = _ListWriter(part, text, self.longest)
        lists = [
            writer.list_sql(block, number)
            for block in self.blocks
            for number in range(len(block.tables))
        ]
        return f"CONCAT_WS('|',{','.join(lists)})", writer.parameters

    def column_sql(self, part: Sequence[Token], text: str) -> tuple[str, list[int]]:
        """Return the column for the lists in the answer, and the parameters in it.

        SOUND BECAUSE: NOW() is the same in all rows of an answer, and the variable keeps it. If the
        variable has it already, all lists are NULL, and the statement counts as unseen.
        """
        lists, parameters = self.lists_sql(part, text)
        if not self.repeats:
            lists = f"IF(@isolang<=>NOW(6),NULL,CONCAT({lists},IF(@isolang:=NOW(6),'','')))"
        return f"CAST({lists} AS BINARY)", parameters


def block_plan(
    part: Sequence[Token],
    text: str,
    plan: SentPlan,
    find: Callable[[str, str], LoggedTable | None],
) -> BlockPlan | None:
    """Return the query blocks of a statement; ``None`` if it has none, or others.

    Args:
        find: returns the table with a schema, which may be empty, and a name.
    """
    if any(token.kind == "word" and token.text in _REFUSED for token in part) or plan.locks:
        return None
    if any(token.text in (":=", "||") or token.text.startswith("@") for token in part):
        return None
    if plan.kind == "select" and not plan.unseen and not plan.partial and len(plan.sources) > 1:
        return _plan_of_join(part, plan, find)
    if plan.unseen not in _WRAPPED and not plan.partial:
        return None
    kind = "select" if plan.kind == "select" else "other"
    shape = StatementPlan(kind=kind, unseen=("subqueries",))  # type: ignore[arg-type]
    planned = plan_with_blocks(part, shape, AGGREGATES)
    if planned is None or not planned.wrapped:
        return None
    blocks = _blocks(part, text, planned.wrapped, find)
    if blocks is None:
        return None
    single = {
        number: BlockSource(each.tables[0].source, each.tables[0].table.columns)
        for number, each in enumerate(blocks) if len(each.tables) == 1 and not each.cut
    }  # fmt: skip
    joined = tuple(semi_joins(part, single))
    reader = Reader(part)
    end = len(part)
    outer = [n for n in range(end) if reader.word(n) == "select" and not reader.depth[n]]
    if len(outer) != 1 or reader.find(_SET_OPERATORS, 0, end) < end:
        return BlockPlan(
            blocks, -1, planned.limit, repeats=False, longest=MOST_ROWS, semi_joins=joined
        )
    begin = outer[0]
    place = reader.find_from(begin, end)
    if place == end:
        place = reader.find(CLAUSES, begin, end)
    limit = reader.find({"limit"}, begin, end)
    is_short = limit < end and part[limit + 1].text.isdigit()
    is_short = is_short and int(part[limit + 1].text) <= MOST_REPEATED and limit + 2 == end
    distinct = reader.word(begin + 1) in ("distinct", "distinctrow")
    is_one = aggregates_all(reader, begin, AGGREGATES) and not distinct
    is_short |= is_one
    repeats = distinct or is_one or limit < end or reader.find({"having"}, begin, end) < end
    longest = MOST_REPEATED if repeats and not is_short else MOST_ROWS
    return BlockPlan(
        blocks, place, planned.limit, repeats=repeats, longest=longest, semi_joins=joined
    )


def _plan_of_join(
    part: Sequence[Token], plan: SentPlan, find: Callable[[str, str], LoggedTable | None]
) -> BlockPlan | None:
    """Return the cover of a join's tables, whose rows in the answer are known."""
    tables = []
    for source in plan.sources:
        table = find(source.schema, source.name)
        if table is None:
            return None
        join = source.join
        if join in ("inner", "comma"):
            join = "inner" if source.on[1] else "comma"
        name = ".".join(map(_token_name, filter(None, (source.schema, source.name))))
        alias = ".".join(map(_token_name, _parts(source.alias)))
        shown = StatementTable(
            name=name, alias=alias, how="row", join=join,
            on=source.on, where=plan.where,
        )  # fmt: skip
        tables.append(FoundTable(table, source.alias, shown))
    cover = _cover_of(part, tables)
    if cover is None or (plan.limit is not None and not plan.limit.count):
        return None
    limit = 0 if plan.limit is None else plan.limit.count - 1
    block = QueryBlock(tuple(tables), cover=cover, is_join=True)
    is_one = plan.aggregates and not plan.groups
    repeats = is_one or plan.limit is not None
    is_short = is_one or (limit > 0 and part[limit + 1].text.isdigit())
    is_short = is_one or (is_short and int(part[limit + 1].text) <= MOST_REPEATED)
    longest = MOST_REPEATED if repeats and not is_short else MOST_ROWS
    has_lists = not cover.exact or limit > 0
    return BlockPlan(
        (block,), plan.place, limit, repeats=repeats, longest=longest, has_lists=has_lists
    )


def _blocks(
    part: Sequence[Token],
    text: str,
    wrapped: Sequence[StatementTable],
    find: Callable[[str, str], LoggedTable | None],
) -> tuple[QueryBlock, ...] | None:
    """Return the blocks with some tables; ``None`` if the rows of any cannot be seen."""
    by_block: dict[tuple[int, int], list[FoundTable]] = {}
    for source in wrapped:
        spelled = _spellings(part, text, *source.text)
        names = [spelled.get(name) for name in _PART.findall(source.name)]
        alias = [spelled.get(name) for name in _PART.findall(source.alias)]
        if None in names or None in alias or not 0 < len(names) < 3:
            return None
        *schema, name = (_unquoted(each or "") for each in names)
        table = find("".join(schema), name)
        if table is None or table.why:
            return None
        shown = ".".join(_quoted(_unquoted(each or "")) for each in alias)
        by_block.setdefault(source.text, []).append(FoundTable(table, shown, source))
    blocks = []
    for tables in by_block.values():
        condition = _condition(part, tables)
        if condition is not None:
            blocks.append(QueryBlock(tuple(tables), condition))
            continue
        cover = _cover_of(part, tables)
        if cover is None:
            return None
        blocks.append(QueryBlock(tuple(tables), cover=cover))
    return tuple(blocks)


def _condition(part: Sequence[Token], tables: Sequence[FoundTable]) -> ParsedCondition | None:
    """Return the condition on a block's only table; ``None`` for others."""
    ((first, *others),) = (tables,)
    begin, end = first.source.where
    if others or not is_connected_by_and(part, begin, end):
        return None
    columns = first.table.columns
    alias = name_parts(first.source.alias)

    def column(names: Sequence[str]) -> str | None:
        qualifiers = tuple(each.lower() for each in names[:-1])
        name = names[-1].lower()
        is_its = not qualifiers or qualifiers == alias[-len(qualifiers) :]
        return name if is_its and name in columns else None

    condition = parse_known_parts(part, begin, end, column)
    return None if condition.why else condition


def _cover_of(part: Sequence[Token], tables: Sequence[FoundTable]) -> Cover | None:
    """Return the cover of tables; ``None`` if two texts are compared by different collations."""
    if len({each.source.alias for each in tables}) < len(tables):
        return None
    ranges = [each.source.on for each in tables] + [tables[0].source.where]
    if not all(is_connected_by_and(part, *each) for each in ranges):
        return None
    cover = cover_of(part, [each.source for each in tables], _described(tables))
    for read in () if cover is None else (*cover.reads, *cover.leaves, *cover.steady):
        if read.other >= 0:
            left = tables[read.number].table.columns[read.column]
            right = tables[read.other].table.columns[read.of]
            if left.collation != right.collation:
                return None
    return cover


def _described(tables: Sequence[FoundTable]) -> list[Table]:
    return [
        described_table(each.table, "", {c.name: ComparedColumn(c) for c in each.table.logged})
        for each in tables
    ]


def described_table(table: LoggedTable, label: str, columns: Mapping[str, ComparedColumn]) -> Table:
    """Return a table in the form in which the readers of covers know tables."""
    return Table(
        oid=id(table), name=label, columns=cast("dict[str, Any]", columns),
        quoted={name: _quoted(name) for name in columns}, key=tuple(table.key),
        unique=tuple(table.unique), names=dict(enumerate(table.columns)),
    )  # fmt: skip


class _ListWriter:
    """Writes the SQL expressions for the lists of a statement's tables.

    Attributes:
        parameters: the numbers of the parameters in what was written, in their order.
    """

    def __init__(self, part: Sequence[Token], text: str, longest: int) -> None:
        self._part, self._text, self._longest = part, text, longest
        self.parameters: list[int] = []

    def list_sql(self, block: QueryBlock, number: int) -> str:
        """Return the expression for the list of a table's rows, with their number in front."""
        of_block = block.tables[number]
        image = f"{of_block.table.image_sql(of_block.alias)} AS isolang_i"
        if block.cover is not None:
            rows = self._cover_sql(block, block.cover, number, image)
        else:
            begin, end = of_block.source.where
            where = f" WHERE {self._written(begin, end)}" if begin < end else ""
            rows = f"SELECT {image} FROM {of_block.sql}{where} LIMIT {self._longest + 1}"
        return (
            "(SELECT CONCAT(COUNT(*),';',IFNULL(GROUP_CONCAT(isolang_i SEPARATOR ';'),'')) "
            f"FROM ({rows}) AS isolang_t)"
        )

    def _cover_sql(self, block: QueryBlock, cover: Cover, number: int, columns: str) -> str:
        """Return the query for columns of the rows that a cover reads of a table."""
        read: CoveredTable = next(read for read in cover.reads if read.number == number)
        of_block = block.tables[number]
        conditions = [f"({self._written(*each)})" for each in read.parts]
        if read.other >= 0:
            of = f"{block.tables[read.other].alias}.{_quoted(read.of)} AS isolang_v"
            values = self._cover_sql(block, cover, read.other, of)
            conditions.append(
                f"{of_block.alias}.{_quoted(read.column)} IN (SELECT isolang_v FROM ({values}) AS "
                "isolang_w)"
            )
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {columns} FROM {of_block.sql}{where} LIMIT {self._longest + 1}"

    def _written(self, begin: int, end: int) -> str:
        """Return a part of the statement, and note its parameters."""
        tokens = self._part[begin:end]
        self.parameters += [int(t.text[1:]) for t in tokens if t.kind == "parameter"]
        return self._text[tokens[0].start : tokens[-1].end]


def _spellings(part: Sequence[Token], text: str, begin: int, end: int) -> dict[str, str]:
    """Return how a statement writes the names between two positions, if it does so in one way."""
    spelled: dict[str, set[str]] = {}
    for token in part[begin:end]:
        if token.kind in ("word", "quoted"):
            spelled.setdefault(token.text, set()).add(text[token.start : token.end])
    return {name: min(ways) for name, ways in spelled.items() if len(ways) == 1}


def _unquoted(raw: str) -> str:
    if raw[:1] in ("`", '"'):
        return raw[1:-1].replace(raw[0] * 2, raw[0])
    return raw


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _parts(alias: str) -> list[str]:
    """Return the names in an alias in SQL, without quotes."""
    return [_unquoted(each) for each in re.findall(r'`(?:[^`]|``)+`|"(?:[^"]|"")+"|[^.]+', alias)]


def _token_name(name: str) -> str:
    """Return a name as a token has it in quotes."""
    return '"' + name.lower().replace('"', '""') + '"'
