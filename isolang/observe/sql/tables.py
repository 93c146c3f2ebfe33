"""Lists the tables that a statement reads, whatever its form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from isolang.observe.sql.lexer import Token
from isolang.observe.sql.plan import (
    CLAUSES,
    Reader,
    RefusedError,
    from_tables,
    is_in_catalogue,
    with_query_names,
)

_WRITES: Final = frozenset({"insert", "update", "delete", "merge"})
_OTHERS: Final = frozenset({"into", "table"})  # words by which a statement names other tables
# Not followed by a table: EXTRACT (day FROM x), x IS DISTINCT FROM y.
_OF_FUNCTIONS: Final = frozenset({"extract", "substring", "trim", "overlay", "position"})


def tables_read(part: Sequence[Token]) -> tuple[str, ...] | None:
    """Return the tables that a statement reads, and the one that it writes; ``None`` if unknown.

    Tables of the catalogue are left out.
    """
    reader = Reader(part)
    try:
        names = [*_tables(reader)]
    except (RefusedError, IndexError):
        return None
    return tuple(dict.fromkeys(name for name in names if not is_in_catalogue(name)))


def _tables(reader: Reader) -> Iterator[str]:
    end = len(reader.part)
    first = next((reader.word(n) for n in range(end) if reader.text(n) != "("), "")
    if first not in ("select", "with", "values", "insert", "update", "delete"):
        raise RefusedError(first)
    inserts = first == "insert"
    for at in range(1, end):
        word, before = reader.word(at), reader.word(at - 1)
        locks = word == "update" and before in ("for", "key")
        sets = word == "update" and before == "do"  # ON CONFLICT DO UPDATE
        if word in _WRITES and not (locks or sets):
            raise RefusedError(word)
        if word in _OTHERS and not (word == "into" and inserts and at == 1):
            raise RefusedError(word)
    if first in _WRITES:
        at = {"insert": 2, "update": 1, "delete": 2}[first]
        name, _, at = (reader.text(at), "", at + 1) if inserts else reader.table(at)
        while inserts and reader.text(at) == "." and reader.is_name(at + 1):
            name, at = f"{name}.{reader.text(at + 1)}", at + 2
        if not name:
            raise RefusedError(first)
        yield name
    queries = with_query_names(reader.part)
    for at in range(1, end):
        uses = reader.word(at) == "using" and first == "delete" and not reader.depth[at]
        if not (uses or (reader.word(at) == "from" and _begins_clause(reader, at, first))):
            continue
        depth = reader.depth[at]
        stop = at + 1
        while stop < end and reader.depth[stop] >= depth:
            ends = reader.word(stop) in CLAUSES or reader.word(stop) == "returning"
            if reader.depth[stop] == depth and ends and reader.word(stop) != "on":
                break
            stop += 1
        for name, _ in from_tables(reader, at + 1, stop).tables:
            if not any(name == query and a <= at < b for query, a, b in queries):
                yield name


def _begins_clause(reader: Reader, at: int, first: str) -> bool:
    """Return whether FROM begins a list of tables.

    SOUND BECAUSE: a statement that is not understood here is refused.
    """
    if reader.word(at - 1) == "distinct" and reader.word(at - 2) in ("is", "not"):
        return False
    depth = reader.depth[at]
    begin = at - 1
    while begin >= 0 and reader.depth[begin] >= depth:
        if reader.depth[begin] == depth and reader.word(begin) == "select":
            return True
        begin -= 1
    if depth:
        if reader.word(begin - 1) in _OF_FUNCTIONS:
            return False
        raise RefusedError("from")
    return first == "update"
