"""Reads which rows an INSERT … ON CONFLICT DO NOTHING has left out.

The server returns no version of a row that exists already. But if the conflict is on the primary
key, and its values are constants, the statement itself says which keys existed. For other unique
keys, queries in the same statement return the rows that have the proposed values.

SOUND BECAUSE: where such a row is visible, the INSERT leaves out the proposed one. At READ
COMMITTED it may have met a newer row. So this only may have decided the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.lexer import Token, catalogue_name
from isolang.observe.sql.plan import Reader, insert_target
from isolang.observe.sql.predicates import CannotEvaluateError, Parameters, constant_between
from isolang.observe.sql.values import INTEGERS, TEXT, UUID_OID, VARCHAR

_LONGEST: Final = 64  # the largest number of characters in a text that histories contain whole
_MOST_ROWS: Final = 20  # the largest number of proposed rows whose keys are looked up
_TYPES: Final = {
    20: "int8", 21: "int2", 23: "int4", TEXT: "text", VARCHAR: "varchar", UUID_OID: "uuid",
}  # fmt: skip

ProposedRow: TypeAlias = Mapping[str, tuple[int, int]]
"""The token range of each value, by column."""


def skipped_keys(
    part: Sequence[Token],
    table: Table,
    parameters: Parameters,
    written: Collection[tuple[Any, ...]],
) -> list[tuple[Any, ...]] | None:
    """Return the primary keys that an INSERT found to exist; ``None`` if they are not certain.

    Args:
        written: the primary keys of the rows that it has inserted.
    """
    reader = Reader(part)
    if table.triggers or not _conflicts_on_key(reader, table):
        return None
    proposed = [_key(part, row, table, parameters) for row in _proposed_rows(reader, table)]
    if not proposed:
        return None
    existing = [key for key in proposed if key is not None and key not in written]
    if len(existing) != len(proposed) - len(written) or len({*proposed}) != len(proposed):
        return None
    return existing


def queries_for_conflicts(part: Sequence[Token], text: str, table: Table, alias: str) -> list[str]:
    """Return for each row that an INSERT proposes the query for a row with one of its keys.

    Return nothing if the keys of some row are not certain, or :func:`skipped_keys` needs no query.
    """
    reader = Reader(part)
    rows = _proposed_rows(reader, table)
    if table.triggers or _conflicts_on_key(reader, table) or not 0 < len(rows) <= _MOST_ROWS:
        return []
    keys = _conflicting_keys(reader, table)
    found = [[*_comparisons(_constants(part, text, row), keys, table, alias)] for row in rows]
    if not all(found):
        return []
    return [
        f"SELECT {table.identity_sql(alias)} FROM {table.where} {alias} "
        f"WHERE {' OR '.join(equal)} LIMIT 1"
        for equal in found
    ]


def _constants(part: Sequence[Token], text: str, row: ProposedRow) -> dict[str, str]:
    """Return the texts of the values of a proposed row that are constants, by column."""
    return {
        name: text[part[begin].start : part[end - 1].end]
        for name, (begin, end) in row.items()
        if [token.kind for token in part[begin:end]] in (["text"], ["number"], ["parameter"])
    }


def _comparisons(
    constants: Mapping[str, str], keys: Collection[frozenset[str]], table: Table, alias: str
) -> Iterator[str]:
    """Yield the condition to have a key of a proposed row, for each key that is constant.

    SOUND BECAUSE: the cast gives the value that the INSERT stores, or fails as the INSERT does.
    """
    for key in keys:
        oids = [table.columns[name].oid for name in key if name in table.columns]
        if len(oids) == len(key) and constants.keys() >= key and _TYPES.keys() >= {*oids}:
            equal = [
                f"{alias}.{table.quoted[name]} = "
                f"CAST({constants[name]} AS pg_catalog.{_TYPES[table.columns[name].oid]})"
                for name in sorted(key)
            ]
            yield f"({' AND '.join(equal)})"


def _conflict(reader: Reader) -> tuple[int, int]:
    """Return the token range of what ON CONFLICT DO NOTHING names; (0, 0) for other statements."""
    end = len(reader.part)
    begin = reader.find({"conflict"}, 0, end) + 1
    behind = begin
    if reader.text(begin) == "(":
        behind = reader.close(begin)
    elif (reader.word(begin), reader.word(begin + 1)) == ("on", "constraint"):
        behind = begin + 3
    does_nothing = [reader.word(n) for n in range(behind, behind + 2)] == ["do", "nothing"]
    return (begin, behind) if does_nothing else (0, 0)


def _conflicting_keys(reader: Reader, table: Table) -> list[frozenset[str]]:
    """Return the unique keys with which a row makes ON CONFLICT DO NOTHING leave out another."""
    begin, behind = _conflict(reader)
    if not begin:
        return []
    if begin == behind:
        return [*table.unique]
    if reader.text(begin) == "(":
        names = _names(reader, begin, behind)
        return [key for key in table.unique if names is not None and key == {*names}]
    key = table.constraints.get(catalogue_name(reader.text(behind - 1)))
    return [] if key is None else [key]


def _conflicts_on_key(reader: Reader, table: Table) -> bool:
    """Return whether ON CONFLICT DO NOTHING is about the primary key alone."""
    return {*_conflicting_keys(reader, table)} == {frozenset(table.key)}


def _names(reader: Reader, begin: int, end: int) -> list[str] | None:
    """Return the column names in parentheses; ``None`` if there is anything else."""
    tokens = reader.part[begin + 1 : end - 1]
    if any(token.text != "," for token in tokens[1::2]):
        return None
    if any(token.kind not in ("word", "quoted") for token in tokens[::2]):
        return None
    return [catalogue_name(token.text) for token in tokens[::2]]


def _proposed_rows(reader: Reader, table: Table) -> list[ProposedRow]:
    """Return the rows of VALUES that an INSERT proposes; empty if it proposes others."""
    *_, at = insert_target(reader, 2)
    names: list[str] | None = [*table.names.values()]
    if reader.text(at) == "(" and reader.word(at + 1) not in ("select", "with", "values"):
        names = _names(reader, at, reader.close(at))
        at = reader.close(at)
    if names is None or reader.word(at) != "values":
        return []
    rows: list[ProposedRow] = []
    while reader.text(at) in ("values", ","):
        depth, end = reader.depth[at] + 1, reader.close(at + 1) - 1
        places = range(at + 2, end)
        commas = [n for n in places if reader.text(n) == "," and reader.depth[n] == depth]
        ranges = zip([at + 1, *commas], [*commas, end], strict=True)
        rows.append({
            name: (before + 1, behind)
            for name, (before, behind) in zip(names, ranges, strict=False)
        })  # fmt: skip
        at = end + 1
    return rows if reader.word(at) == "on" else []


def _key(
    part: Sequence[Token], row: ProposedRow, table: Table, parameters: Parameters
) -> tuple[Any, ...] | None:
    """Return the primary key of a proposed row, as the server would report it."""
    key: list[Any] = []
    for name in table.key:
        column = table.columns.get(name)
        if column is None or name not in row:
            return None
        try:
            value = constant_between(part, *row[name], column, parameters)
        except CannotEvaluateError:
            return None
        # SOUND BECAUSE: other types may store another value than the constant, or print it anew.
        is_number = column.oid in INTEGERS and isinstance(value, int)
        is_text = column.oid in (TEXT, VARCHAR, UUID_OID) and isinstance(value, str)
        if not is_number and not (is_text and len(value) <= _LONGEST and not value.endswith(" ")):
            return None
        key.append(value)
    return tuple(key)
