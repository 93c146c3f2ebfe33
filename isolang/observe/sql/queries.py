"""Reads which queries a statement has: those of WITH, the statement itself, and its subqueries."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from msgspec import Struct

from isolang.observe.sql.blocks import limit_around
from isolang.observe.sql.lexer import Token, catalogue_name
from isolang.observe.sql.plan import (
    CLAUSES,
    Reader,
    RefusedError,
    StatementPlan,
    from_tables,
    is_in_catalogue,
    name_parts,
    plan,
)

WRITES: Final = frozenset({"insert", "update", "delete", "merge"})
FROM_SUBQUERIES: Final = "subqueries in FROM"
_BODIES: Final = WRITES | {"select", "values"}
_REFUSED: Final = frozenset({"recursive", "table", "tablesample", "old", "new"})
CUTS: Final = ("limit", "offset", "fetch", "for")
"""The words of clauses that leave rows out, or lock them."""
_LONGEST_NAME: Final = 50  # the largest number of characters in the name of a WITH query


class StatementQuery(Struct):
    """A query of WITH, or the statement itself, while the statement is read."""

    name: str
    named_at: int
    begin: int
    end: int
    columns: tuple[str, ...] = ()  # the list of columns after the name
    items: tuple[tuple[str, str], ...] = ()  # the tables and queries in its own FROM or USING


class StatementQueries:
    """The queries of one statement, and the tables that they name."""

    def __init__(
        self, part: Sequence[Token], aggregates: Collection[str], row_sets: Collection[str]
    ) -> None:
        self._part, self._aggregates, self._row_sets = part, aggregates, row_sets
        self._reader = Reader(part)
        self._queries: dict[str, StatementQuery] = {}  # the queries of WITH, by name
        self._used: set[str] = set()
        self._used_in_part: set[str] = set()  # queries whose rows may not all be requested
        # For each query in a SELECT's FROM: where, its name, and whether a LIMIT may cut it off.
        self._uses: list[tuple[int, str, bool]] = []
        self._tables: dict[str, None] = {}
        self._read: dict[str, None] = {}

    def _read_queries(self) -> StatementQuery:
        """Read the queries of WITH, and return the statement itself."""
        reader, end = self._reader, len(self._part)
        at = 0
        while reader.word(0) == "with":
            at += 1
            name, named_at = catalogue_name(reader.text(at)), at
            if not reader.is_name(at) or len(name) > _LONGEST_NAME or name in self._queries:
                raise RefusedError("WITH")
            at += 1
            columns: tuple[str, ...] = ()
            if reader.text(at) == "(":
                columns = tuple(reader.text(n) for n in range(at + 1, reader.close(at) - 1, 2))
                at = reader.close(at)
            materialized = reader.word(at + 1) == "materialized"
            if reader.word(at) != "as" or reader.text(at + 1 + materialized) != "(":
                raise RefusedError("WITH")
            at += 1 + materialized
            behind = reader.close(at)
            self._queries[name] = StatementQuery(name, named_at, at + 1, behind - 1, columns)
            at = behind
            if reader.text(at) != ",":
                break
        main = StatementQuery("", at, at, end)
        if any(reader.word(q.begin) not in _BODIES for q in (*self._queries.values(), main)):
            raise RefusedError("WITH")
        return main

    def _check_words(self, begins: Collection[int]) -> None:
        """Refuse statements with words that begin queries of other kinds."""
        reader = self._reader
        for at in range(len(self._part)):
            word, before = reader.word(at), reader.word(at - 1) if at else ""
            acts = before == "then" or (word == "update" and before in ("for", "key", "do"))
            if word in WRITES and at not in begins and not acts:
                raise RefusedError(word)
            is_target = before in ("insert", "merge")
            qualifies = word in ("old", "new") and reader.text(at + 1) == "."
            if (word in _REFUSED and not qualifies) or (word == "into" and not is_target):
                raise RefusedError(word)
            if word == "with" and at and reader.text(at - 1) == "(":
                raise RefusedError("WITH")

    def _note_items(self, query: StatementQuery) -> None:
        """Note the tables that a write changes, and those in its own FROM or USING."""
        reader = self._reader
        word, depth = reader.word(query.begin), reader.depth[query.begin]
        if word not in WRITES:
            return
        at = query.begin + (1 if word == "update" else 2)
        name = reader.name(at) if word == "insert" else reader.table(at)[0]
        if not name or catalogue_name(name) in self._queries:
            raise RefusedError(word)
        self._tables[name] = None
        if word == "insert":
            return
        self._read[name] = None
        begin = (
            reader.find_from(at, query.end, depth)
            if word == "update"
            else reader.find({"using"}, at, query.end, depth)
        )
        if begin < query.end:
            stops = {"on"} if word == "merge" else CLAUSES - {"on"}
            stop = reader.find(stops, begin + 1, query.end, depth)
            query.items = self._items(begin, stop)

    def _items(self, begin: int, stop: int) -> tuple[tuple[str, str], ...]:
        """Return the names and aliases in a list of tables, and note these."""
        items = from_tables(self._reader, begin + 1, stop).tables
        for name, alias in items:
            if {*name_parts(alias)} & {"old", "new"}:
                raise RefusedError("FROM of another shape")
            query = self._queries.get(catalogue_name(name))
            if query is None:
                if not is_in_catalogue(name):
                    self._tables[name] = self._read[name] = None
            elif begin < query.end:  # a table with the name of a query behind it
                raise RefusedError("WITH")
            else:
                self._used.add(query.name)
        return tuple(items)

    def _reads_query(self, name: str) -> bool:
        return catalogue_name(name) in self._queries

    def _selects(self, queries: Sequence[StatementQuery]) -> Iterator[tuple[int, int]]:
        """Yield the token range of each SELECT, at any depth."""
        reader = self._reader
        for query in queries:
            depth, stop = reader.depth[query.begin], query.end
            if reader.word(query.begin) == "insert":  # ON CONFLICT and RETURNING are its own
                stop = reader.find({"returning"}, query.begin, stop, depth)
                conflict = reader.find({"conflict"}, query.begin, stop, depth)
                stop = conflict - 1 if conflict < stop else stop
            for at in range(query.begin, query.end):
                if reader.word(at) == "select":
                    end = at + 1
                    last = stop if at < stop else query.end
                    while end < last and reader.depth[end] >= reader.depth[at]:
                        is_same = reader.depth[end] == reader.depth[at]
                        if is_same and reader.word(end) in ("union", "intersect", "except"):
                            break
                        end += 1
                    yield at, end

    def _from(self, begin: int, end: int) -> tuple[int, int]:
        """Return the token range from a SELECT's FROM to the clause behind; empty without FROM."""
        reader, depth = self._reader, self._reader.depth[begin]
        place = reader.find_from(begin, end, depth)
        return place, reader.find(CLAUSES - {"on"}, place + 1, end, depth) if place < end else end

    def _note_tables(self, begin: int, end: int) -> None:
        """Note the tables and queries in a SELECT's FROM."""
        place, stop = self._from(begin, end)
        if place == end:
            return
        items = self._items(place, stop)
        exists = self._reader.word(begin - 2) == "exists" if begin > 1 else False
        cut = self._reader.find(CUTS, begin, end, self._reader.depth[begin]) < end
        names = {catalogue_name(name) for name, _ in items}
        if exists or cut:
            self._used_in_part |= names
        cuts_off = bool(limit_around(self._reader, begin, 0))
        self._uses += [(begin, name, cuts_off) for name in sorted(names & self._queries.keys())]

    def _queries_cut_off(self) -> set[str]:
        """Return the queries of WITH whose rows a LIMIT behind them may leave out."""
        cut: set[str] = set()
        for query in reversed(self._queries.values()):  # a query is used behind its body only
            ranges = [self._queries[name] for name in cut]
            if any(
                cuts_off or any(one.begin <= at < one.end for one in ranges)
                for at, name, cuts_off in self._uses
                if name == query.name
            ):
                cut.add(query.name)
        return cut

    def _columns_of(self, names: Collection[str]) -> set[str] | None:
        """Return the columns of queries, as the catalogue stores them; ``None`` if unknown."""
        columns: set[str] = set()
        for name in names:
            query = self._queries.get(name)
            if query is None:
                return None
            made = plan(self._part[query.begin : query.end], self._aggregates)
            is_select = made.kind == "select"
            begin = query.begin if is_select else query.begin + made.place - 1
            output = self._output(query, begin, made) if is_select or made.kind in WRITES else ()
            if not output or "*" in output:
                return None
            columns |= {*map(catalogue_name, output)}
        return columns

    def _only_query(self, query: StatementQuery) -> str:
        """Return the query whose rows an INSERT proposes, all of them; empty if there is none."""
        reader, depth = self._reader, self._reader.depth[query.begin]
        begin = reader.find({"select"}, query.begin, query.end, depth)
        end = reader.find({"conflict"}, begin, query.end, depth) - 1
        place, stop = self._from(begin, end) if begin < end else (0, 0)
        if place >= end or stop < end or reader.word(begin + 1) == "distinct":
            return ""
        found = from_tables(reader, place + 1, stop)
        name = catalogue_name(found.tables[0][0]) if len(found.tables) == 1 else ""
        made = plan(self._part[begin:end], self._aggregates)
        sets = not made.names.isdisjoint(self._row_sets)
        if sets or any(source.how != "row" for source in made.sources):
            return ""
        return "" if found.joined or found.unseen or name not in self._queries else name

    def _output(self, query: StatementQuery, begin: int, made: StatementPlan) -> tuple[str, ...]:
        """Return the names of a query's columns; empty if they are not known."""
        reader, depth = self._reader, self._reader.depth[query.begin]
        if made.kind == "select":
            at, end = begin + 1, query.begin + made.place
            if reader.word(at) == "distinct":
                at = reader.close(at + 2)
            at += reader.word(at) == "all"
            others = len(made.sources) > 1 or FROM_SUBQUERIES in made.unseen
            others = others or made.partial == "functions"
        else:
            at = reader.find({"returning"}, query.begin, query.end, depth) + 1
            end, others = query.end, bool(query.items)
        names = []
        while at < end:
            comma = at
            while comma < end and not (reader.text(comma) == "," and reader.depth[comma] == depth):
                comma += 1
            name = _result_name(reader, at, comma)
            if not name or (name == "*" and (others or len(name_parts(made.tables[0])) == 0)):
                return ()
            names.append(name)
            at = comma + 1
        if query.columns:
            return query.columns if len(query.columns) == len(names) and "*" not in names else ()
        return tuple(names) if len({*map(catalogue_name, names)}) == len(names) else ()


def _result_name(reader: Reader, begin: int, end: int) -> str:
    """Return the name of an expression in a list of results, as it is written; empty if unknown.

    It is ``*`` for all columns of the only table.
    """
    texts = [reader.text(n) for n in range(begin, end)]
    if texts[-1:] == ["*"]:
        return "*" if len(texts) in (1, 3) and texts[-2:-1] in ([], ["."]) else ""
    if not texts or not reader.is_name(end - 1):
        return ""
    is_label = len(texts) > 1 and reader.word(end - 2) == "as"
    is_column = all(
        reader.text(n) == "." if (n - begin) % 2 else reader.is_name(n) for n in range(begin, end)
    )
    return texts[-1] if is_label or (is_column and len(texts) % 2) else ""
