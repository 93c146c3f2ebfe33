"""Says which versions of rows a read shows, and which versions cannot exist together.

A predicate read is a read of every row that its predicate may match: of each such row, it shows the
version, or that no version matches. Which versions match is computed from the rows themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.history import History
from isolang.history.transaction import Transaction
from isolang.history.values import row_columns, value_text

PRESENT: Final = -1
"""The test of a read by key, which shows a version unless it is a delete."""

Version: TypeAlias = tuple[int, int]
"""A version of a row: the key, and the value as an atom of the history's columns."""


class RowFacts(Struct, frozen=True, eq=False):
    """Facts about the rows of a run.

    Attributes:
        shown: for a predicate (its number in the columns, or ``PRESENT``) and a key, the versions
            that match, as atoms.
        deleted: the keys of the rows that a transaction deleted.
        initial: the atom of each key's initial version; keys without one are left out.
        clashes: pairs of versions of different keys that hold the same value of a unique index, for
            each version.
        keyed: the keys in tables whose primary key and unique indexes are known.
    """

    shown: Mapping[tuple[int, int], frozenset[int]]
    deleted: frozenset[int]
    initial: Mapping[int, int]
    clashes: Mapping[Version, frozenset[Version]]
    keyed: frozenset[int] = frozenset()


def row_facts(
    history: History, transactions: Iterable[int], predicates: Iterable[int]
) -> tuple[RowFacts, frozenset[int]]:
    """Return the facts about the rows that some transactions wrote, or that were there before.

    Args:
        predicates: the predicates to evaluate, by their numbers in the columns.

    Returns:
        The facts, and the predicates that cannot be evaluated on all rows.
    """
    columns = history.columns
    atoms = columns.initial_value.tolist()
    initial = {key: atom for key, atom in enumerate(atoms) if atom != c.NIL_ATOM}
    versions: dict[int, list[int]] = {key: [atom] for key, atom in initial.items()}
    kinds, keys, values = (
        column.tolist() for column in (columns.op_kind, columns.op_key, columns.op_value)
    )
    deleted_keys = set()
    for txn in transactions:
        for op in history.operations_of(txn):
            if kinds[op] != c.WRITE or values[op] == c.UNKNOWN_VALUE:
                continue
            if values[op] == columns.deleted:
                deleted_keys.add(keys[op])
            else:
                versions.setdefault(keys[op], []).append(values[op])
    matches, unclear = _matching_versions(history, versions, sorted(set(predicates)))
    has_rows = deleted_keys or len(columns.statement_txn) or _are_rows(history, versions)
    matches |= {
        (PRESENT, key): frozenset(versions.get(key, ()))
        for key in (range(columns.n_keys()) if has_rows else ())
    }
    clashes, keyed = _unique_clashes(history, versions)
    return RowFacts(matches, frozenset(deleted_keys), initial, clashes, keyed), unclear


def _are_rows(history: History, versions: Mapping[int, Sequence[int]]) -> bool:
    """Return whether values have columns, so that nil is the absence of a row."""
    some = next(iter(versions.values()), ())
    return bool(some) and value_text(history.value_object(some[0]), "").startswith("{")


def _matching_versions(
    history: History, versions: Mapping[int, Sequence[int]], predicates: Sequence[int]
) -> tuple[dict[tuple[int, int], frozenset[int]], frozenset[int]]:
    """Evaluate predicates on versions; return what matches, and the predicates that cannot be.

    The reader of histories evaluates them: it derives, from a read that returns no row, which
    versions do not explain the read.
    """
    if not predicates:
        return {}, frozenset()
    columns = history.columns
    objects = {key: history.key_object(key) for key in versions}
    writes: list[Transaction] = []
    for n in range(max(map(len, versions.values()), default=0)):
        ops = [
            ("w", objects[key], history.value_object(some[n]))
            for key, some in versions.items()
            if n < len(some)
        ]
        writes.append(Transaction(ops, session=f"w{n}"))
    texts = columns.predicates
    numbers = {columns.key(key): key for key in versions}
    atoms = {columns.value(atom): atom for some in versions.values() for atom in some}

    def evaluated(some: Sequence[int]) -> dict[tuple[int, int], frozenset[int]]:
        reads = [
            Transaction([("scan", texts[number], {})], session=f"r{number}") for number in some
        ]
        lowered = History.from_transactions([*writes, *reads]).written_out()
        matching: dict[tuple[int, int], frozenset[int]] = {}
        evaluation = lowered.columns
        for number, txn in zip(some, range(len(writes), len(writes) + len(reads)), strict=True):
            for op in lowered.operations_of(txn):
                key = numbers[evaluation.key(int(evaluation.op_key[op]))]
                listed = lowered.list_values(int(evaluation.op_value[op]))
                matching[number, key] = frozenset(atoms[evaluation.value(atom)] for atom in listed)
        return matching

    try:
        return evaluated(predicates), frozenset()
    except HistoryError:
        pass
    matching: dict[tuple[int, int], frozenset[int]] = {}
    unclear = set()
    for number in predicates:
        try:
            matching |= evaluated([number])
        except HistoryError:
            unclear.add(number)
    return matching, frozenset(unclear)


def _unique_clashes(
    history: History, versions: Mapping[int, Sequence[int]]
) -> tuple[dict[Version, frozenset[Version]], frozenset[int]]:
    """Return the pairs of versions of rows that a unique index forbids, as the recording names it.

    Args:
        versions: the atoms of each key's versions.

    Returns:
        For each version, those of other keys that hold the same value of a unique index; and the
        keys of the tables whose indexes are known.
    """
    indexes = history.unique_indexes()
    clashes: dict[Version, set[Version]] = {}
    holders: dict[tuple[Any, ...], list[Version]] = {}
    keyed = set()
    for key, atoms in versions.items() if indexes else ():
        table = _table_of(history, key)
        if table not in indexes:
            continue
        keyed.add(key)
        for atom in atoms:
            row = row_columns(str(history.columns.value(atom)[1]))
            for columns in indexes[table]:
                if all(row.get(column) is not None for column in columns):
                    values = tuple(row[column] for column in columns)
                    holders.setdefault((table, *columns, *values), []).append((key, atom))
    for rows in holders.values():
        if len({key for key, _ in rows}) > 1:
            for version in rows:
                others = {other for other in rows if other[0] != version[0]}
                clashes.setdefault(version, set()).update(others)
    return {version: frozenset(others) for version, others in clashes.items()}, frozenset(keyed)


def _table_of(history: History, key: int) -> str:
    value = history.key_object(key)
    return str(value[0]) if isinstance(value, tuple) and value else ""
