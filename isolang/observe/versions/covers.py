"""Derives what a join read of each table from the rows of its cover and of its answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from isolang.observe.history.seen import RowVersion
from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.covers import MOST_ROWS, Cover, CoveredTable
from isolang.observe.sql.executed import ExecutedStatement
from isolang.observe.sql.predicates import CannotEvaluateError, Predicate

_MOST_KEPT: Final = 50
"""The largest number of rows of a table for each of which a read may become certain."""


class CoverFact(Struct, frozen=True):
    """The rows of one table that a read found; it found no others.

    Attributes:
        perhaps: whether the read only may have decided the answer.
        kept: the versions that, if nobody ever replaced them, make the read certain, each with the
            name of its table. Otherwise, the read says nothing.
    """

    table: Table
    predicate: Predicate
    rows: tuple[RowVersion, ...]
    perhaps: bool
    kept: tuple[tuple[str, str], ...] = ()


class JoinedRows(Struct, frozen=True):
    """The rows of a table in the answer of a join, or in its cover.

    Attributes:
        values: for each version, by number, the values of the table's key, and of the columns that
            other tables are compared with.
    """

    names: tuple[str, ...]
    rows: tuple[RowVersion, ...]
    values: Mapping[str, Sequence[Any]]

    @classmethod
    def of(cls, table: Table, names: tuple[str, ...], versions: Sequence[RowVersion]) -> JoinedRows:
        """Return the rows of a table, given versions whose keys have these columns."""
        size = len(table.key)
        rows = {
            version.number: RowVersion(
                table.key_text(version.values[:size]), version.number, version.values[:size]
            )
            for version in versions
        }  # fmt: skip
        return cls(
            names, tuple(rows.values()), {version.number: version.values for version in versions}
        )

    def value(self, name: str, row: RowVersion) -> Any:
        """Return the value that a row has in a column, as the server wrote it."""
        return self.values[row.number][self.names.index(name)]

    def column(self, table: Table, name: str, rows: Sequence[RowVersion]) -> list[Any]:
        """Return the values that some rows have in a column, as the history records them."""
        values = dict.fromkeys(self.value(name, row) for row in rows)
        return [table.columns[name].recorded(value) for value in values if value is not None]


def cover_facts(
    cover: Cover,
    done: ExecutedStatement,
    tables: Sequence[Table],
    covered: Sequence[JoinedRows],
    answered: Sequence[Sequence[RowVersion]],
    *,
    is_whole: bool,
) -> list[CoverFact] | None:
    """Return what a join read of each table; ``None`` if that is too much, or has no predicate.

    Args:
        covered: the rows that the cover reads, by the number of the table in FROM.
        answered: the rows in the answer.
        is_whole: whether the answer has all rows of the join.
    """
    if any(len(joined.rows) > MOST_ROWS for joined in covered):
        return None
    try:
        reads = [(read, [rows.rows for rows in covered]) for read in cover.reads]
        facts = [*_facts(reads, done, tables, covered, perhaps=not (cover.exact and is_whole))]
        if is_whole and not cover.exact:
            certain = [(read, answered) for read in cover.leaves]
            facts += _facts(certain, done, tables, covered, perhaps=False)
            for read in cover.steady:
                if len(covered[read.other].rows) <= _MOST_KEPT:
                    facts += _steady_facts(cover, read, done, tables, covered)
    except CannotEvaluateError:
        return None
    return facts


def _facts(
    reads: Sequence[tuple[CoveredTable, Sequence[Sequence[RowVersion]]]],
    done: ExecutedStatement,
    tables: Sequence[Table],
    covered: Sequence[JoinedRows],
    *,
    perhaps: bool,
) -> Iterator[CoverFact]:
    """Yield the facts of reads, each with the rows by which the tables are compared."""
    for read, rows in reads:
        table = tables[read.number]
        parts: list[Predicate] = []
        if read.parts:
            named = read.condition.predicate(table.columns, done.statement.part, done.parameters)
            parts += named[1:]  # it is ("and", …)
        if read.other >= 0:
            others = covered[read.other].column(tables[read.other], read.of, rows[read.other])
            if not others:
                continue  # no row has a partner
            parts.append(("in", read.column, tuple(others)))
        predicate = parts[0] if len(parts) == 1 else ("and", *parts) if parts else "true"
        yield CoverFact(table, predicate, tuple(rows[read.number]), perhaps)


def _steady_facts(
    cover: Cover,
    read: CoveredTable,
    done: ExecutedStatement,
    tables: Sequence[Table],
    covered: Sequence[JoinedRows],
) -> Iterator[CoverFact]:
    """Yield what is certain if the rows from which a read's values come were never replaced.

    SOUND BECAUSE: these rows are visible in every order of the transactions, in these versions. So
    is each row that they are joined with in them, and no other table leaves out a joined row.
    """
    by_number = {read.number: read for read in cover.reads}
    rows = [list(joined.rows) for joined in covered]
    for start in covered[read.other].rows:
        kept, at, row = [(tables[read.other].name, start.number)], by_number[read.other], start
        while at.other >= 0:
            value = covered[at.number].value(at.column, row)
            others = covered[at.other]
            row = next(
                candidate for candidate in others.rows if others.value(at.of, candidate) == value
            )
            at = by_number[at.other]
            kept.append((tables[at.number].name, row.number))
        value = covered[read.other].value(read.of, start)
        joined = covered[read.number]
        only = list(rows)
        only[read.other] = [start]
        only[read.number] = [
            candidate for candidate in joined.rows if joined.value(read.column, candidate) == value
        ]
        for fact in _facts([(read, only)], done, tables, covered, perhaps=True):
            yield replace(fact, kept=tuple(kept))
