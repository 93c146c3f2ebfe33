"""Finds the tables that a statement names, without knowing which of them exist."""

from __future__ import annotations

from collections.abc import Iterator

from isolang.observe.sql.lexer import UnclearTextError, statements, tokens
from isolang.observe.sql.plan import (
    CLAUSES,
    Reader,
    RefusedError,
    end_of_block,
    from_tables,
    is_clause,
    name_parts,
    with_query_names,
)
from isolang.observe.unseen import Unseen


def tables_of(unseen: Unseen, form: str) -> tuple[str, ...]:
    """Return the tables that an unseen statement reads or writes, as far as they are known."""
    return tuple(sorted(unseen.tables[form])) if form in unseen.tables else tables_named(form)


def tables_named(text: str) -> tuple[str, ...]:
    """Return the names of the tables in a text of statements, in their order, without quotes.

    >>> tables_named('SELECT a FROM t, "my".u JOIN v ON t.b = v.b WHERE EXISTS (SELECT 1 FROM w)')
    ('t', 'my.u', 'v', 'w')
    >>> tables_named("WITH x AS (DELETE FROM t) INSERT INTO u SELECT extract(day FROM a) FROM x")
    ('t', 'u')
    """
    names: dict[str, None] = {}
    try:
        for part in statements(list(tokens(text))):
            reader = Reader(part)
            queries = {name for name, *_ in with_query_names(part)}
            for name in _names(reader):
                if name and name not in queries:
                    names[".".join(name_parts(name))] = None
    except UnclearTextError:
        pass
    return tuple(names)


def _names(reader: Reader) -> Iterator[str]:
    """Yield the names that follow FROM, JOIN, INTO, UPDATE and USING."""
    for at in range(len(reader.part)):
        word = reader.word(at)
        try:
            if (word == "from" and is_clause(reader, at)) or (word == "using" and at == 3):
                end = reader.find(
                    CLAUSES - {"on"}, at + 1, end_of_block(reader, at), reader.depth[at]
                )
                yield from (name for name, _ in from_tables(reader, at + 1, end).tables)
            elif word == "into" or (word == "update" and _begins(reader, at)):
                yield reader.table(at + 1)[0] if word == "update" else reader.name(at + 1)
        except RefusedError:
            yield reader.name(at + 1)


def _begins(reader: Reader, at: int) -> bool:
    """Return whether a statement or a query of WITH begins at a position."""
    return at == 0 or reader.text(at - 1) in ("(", ")")
