"""Parses an application's statements, using the same plans as the proxy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.lexer import Token, UnclearTextError, called_functions, statements, tokens
from isolang.observe.sql.plan import StatementPlan, StatementTable
from isolang.observe.sql.predicates import ParsedCondition
from isolang.observe.sql.rewriting import DatabaseFacts, Rewriter
from isolang.observe.unseen import SHAPES


class Statement(Struct, frozen=True, kw_only=True):
    """A statement of the application.

    Attributes:
        text: the text, in which values are literals or parameters.
        part: the tokens of the statement.
        plan: the plan of the statement.
        condition: the condition on the statement's only table, or on the first of the joined
            tables.
        whole: whether the text contains only this statement.
    """

    text: str
    part: Sequence[Token]
    plan: StatementPlan
    condition: ParsedCondition
    whole: bool = True

    def text_between(self, begin: int, end: int) -> str:
        """Return the text of a range of tokens."""
        return self.text[self.part[begin].start : self.part[end - 1].end]

    def output_expressions(self) -> tuple[str, ...]:
        """Return the output expressions of the statement, as written."""
        begin, end = 1, self.plan.place
        if self.plan.kind != "select":
            begin = self._find("returning") + 1
        return tuple(self.text_between(first, last) for first, last in self._listed(begin, end))

    def returns_count(self) -> bool:
        """Return whether the result is just the number of matching rows."""
        listed = [one.text for one in self.part[1 : self.plan.place]]
        named = len(listed) == 4 or (len(listed) == 6 and listed[4] == "as")
        grouped = self._find("group") < len(self.part)
        return named and listed[:4] == ["count", "(", "*", ")"] and not grouped

    def from_clauses(self, tables: Sequence[Table | None]) -> list[FromClause]:
        """Return each FROM clause of a SELECT, with the tables whose rows can be identified.

        Args:
            tables: the table of each source; ``None`` if its rows cannot be identified.
        """
        known = [
            (source, table)
            for source, table in zip(self.plan.sources, tables, strict=True)
            if table is not None
        ]
        if self.plan.body[1]:
            return [self._from_clause(self.plan.body, known)] if known else []
        return [self._from_clause(source.text, [(source, table)]) for source, table in known]

    def _from_clause(
        self, place: tuple[int, int], tables: Sequence[tuple[StatementTable, Table]]
    ) -> FromClause:
        names = called_functions(self.part[slice(*place)])
        return FromClause(text=self.text_between(*place), tables=tables, calls=names)

    def _find(self, word: str) -> int:
        depth = 0
        for n, one in enumerate(self.part):
            depth += (one.text == "(") - (one.text == ")")
            if not depth and one.kind == "word" and one.text == word:
                return n
        return len(self.part)

    def _listed(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the begin and end of each element of a comma-separated list."""
        depth = 0
        for n in range(begin, end):
            text = self.part[n].text
            depth += (text == "(") - (text == ")")
            if text == "," and not depth:
                yield begin, n
                begin = n + 1
        if begin < end:
            yield begin, end


class FromClause(Struct, frozen=True, kw_only=True):
    """A FROM clause with its WHERE clause; the watch can query its rows.

    Attributes:
        text: the SQL text of the FROM and the WHERE.
        tables: the tables whose rows can be identified.
        calls: the names of the functions called in the text.
    """

    text: str
    calls: frozenset[str]
    tables: Sequence[tuple[StatementTable, Table]]


class Planner:
    """Parses the statements of one database.

    Attributes:
        database: the known facts about the database.
    """

    def __init__(self, database: DatabaseFacts) -> None:
        self.database = database
        self._rewriter = Rewriter(database)

    def parse(self, text: str) -> Statement:
        """Parse a statement of the application whose values are literals or parameters."""
        try:
            parts = list(statements(list(tokens(text))))
        except UnclearTextError:
            parts = [[], []]
        if len(parts) != 1:
            plan = StatementPlan(kind="other", unseen=(SHAPES,))
            condition = ParsedCondition(why="several statements")
            return Statement(
                text=text,
                part=(),
                plan=plan if parts else StatementPlan(kind="quiet"),
                condition=condition,
                whole=not parts,
            )
        found = self._rewriter.shape_of(parts[0])
        return Statement(text=text, part=parts[0], plan=found.plan, condition=found.condition)


def with_returning(text: str, selected: str) -> str:
    """Add a RETURNING clause to a write, and remove comments at its end.

    >>> with_returning("DELETE FROM t; -- all of them", "id")
    'DELETE FROM t RETURNING id'
    """
    if "--" in text or "/*" in text:
        last = [one for one in tokens(text) if one.text != ";"][-1]
        text = text[: last.end]
    return f"{text.strip().removesuffix(';').rstrip()} RETURNING {selected}"
