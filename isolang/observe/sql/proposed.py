"""Reads which rows an INSERT … ON CONFLICT DO NOTHING has left out.

The server returns no version of a row that exists already. But if the conflict is on the primary
key, and its values are constants, the statement itself says which keys existed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.lexer import Token, catalogue_name
from isolang.observe.sql.plan import Reader, insert_target
from isolang.observe.sql.predicates import CannotEvaluateError, Parameters, constant_between
from isolang.observe.sql.values import INTEGERS, TEXT, UUID_OID, VARCHAR

_LONGEST: Final = 64  # the largest number of characters in a text that histories contain whole


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
    proposed = _proposed_keys(reader, table, parameters)
    if proposed is None:
        return None
    existing = [key for key in proposed if key is not None and key not in written]
    if len(existing) != len(proposed) - len(written) or len({*proposed}) != len(proposed):
        return None
    return existing


def _conflicts_on_key(reader: Reader, table: Table) -> bool:
    """Return whether ON CONFLICT names the primary key, and does nothing."""
    end = len(reader.part)
    at = reader.find({"conflict"}, 0, end) + 1
    if reader.text(at) != "(":
        return False
    behind = reader.close(at)
    names = _names(reader, at, behind)
    action = [reader.word(n) for n in range(behind, behind + 2)]
    return names is not None and {*names} == {*table.key} and action == ["do", "nothing"]


def _names(reader: Reader, begin: int, end: int) -> list[str] | None:
    """Return the column names in parentheses; ``None`` if there is anything else."""
    tokens = reader.part[begin + 1 : end - 1]
    if any(token.text != "," for token in tokens[1::2]):
        return None
    if any(token.kind not in ("word", "quoted") for token in tokens[::2]):
        return None
    return [catalogue_name(token.text) for token in tokens[::2]]


def _proposed_keys(
    reader: Reader, table: Table, parameters: Parameters
) -> list[tuple[Any, ...] | None] | None:
    """Return the primary key of each row that an INSERT proposes; ``None`` for an uncertain one.

    Return ``None`` if it is not certain which rows it proposes: other rows than those of VALUES.
    """
    *_, at = insert_target(reader, 2)
    names: list[str] | None = [*table.names.values()]
    if reader.text(at) == "(" and reader.word(at + 1) not in ("select", "with", "values"):
        names = _names(reader, at, reader.close(at))
        at = reader.close(at)
    if names is None or reader.word(at) != "values":
        return None
    keys: list[tuple[Any, ...] | None] = []
    while reader.text(at) in ("values", ","):
        keys.append(_key(reader, at + 1, names, table, parameters))
        at = reader.close(at + 1)
    return keys if reader.word(at) == "on" else None


def _key(
    reader: Reader, begin: int, names: Sequence[str], table: Table, parameters: Parameters
) -> tuple[Any, ...] | None:
    """Return the primary key of a proposed row, as the server would report it."""
    depth, end = reader.depth[begin] + 1, reader.close(begin) - 1
    commas = [
        n for n in range(begin + 1, end) if reader.text(n) == "," and reader.depth[n] == depth
    ]
    ranges = zip([begin, *commas], [*commas, end], strict=True)
    values = dict(zip(names, ranges, strict=False))
    key: list[Any] = []
    for name in table.key:
        column = table.columns.get(name)
        if column is None or name not in values:
            return None
        before, behind = values[name]
        try:
            value = constant_between(reader.part, before + 1, behind, column, parameters)
        except CannotEvaluateError:
            return None
        # SOUND BECAUSE: other types may store another value than the constant, or print it anew.
        is_number = column.oid in INTEGERS and isinstance(value, int)
        is_text = column.oid in (TEXT, VARCHAR, UUID_OID) and isinstance(value, str)
        if not is_number and not (is_text and len(value) <= _LONGEST and not value.endswith(" ")):
            return None
        key.append(value)
    return tuple(key)
