"""Says which versions of rows a read shows, and which versions cannot exist together.

A predicate read is a read of every row that its predicate may match: of each such row, it shows the
version, or that no version matches. Which versions match is computed from the rows themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.history import History
from isolang.history.transaction import Transaction

if TYPE_CHECKING:
    from isolang.history.values import Value

PRESENT: Final = -1
"""The test of a read by key, which shows a version unless it is a delete."""

Version: TypeAlias = tuple[int, int]
"""A version of a row: the key, and the value as an atom of the history's columns."""


class RowFacts(Struct, frozen=True, eq=False):
    """What is known of a run's rows.

    Attributes:
        shown: for a predicate (its number in the columns, or ``PRESENT``) and a key, the versions
            that match, as atoms.
        initial: the atom of each key's initial version; keys without one are left out.
        clashes: pairs of versions of different keys that hold the same value of a unique index, for
            each version.
    """

    shown: Mapping[tuple[int, int], frozenset[int]]
    initial: Mapping[int, int]
    clashes: Mapping[Version, frozenset[Version]]


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
    matches |= {(PRESENT, key): frozenset(versions.get(key, ())) for key in deleted_keys}
    return RowFacts(matches, initial, {}), unclear


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
        found: dict[tuple[int, int], frozenset[int]] = {}
        own = lowered.columns
        for number, txn in zip(some, range(len(writes), len(writes) + len(reads)), strict=True):
            for op in lowered.operations_of(txn):
                key = numbers[own.key(int(own.op_key[op]))]
                listed = lowered.list_values(int(own.op_value[op]))
                found[number, key] = frozenset(atoms[own.value(atom)] for atom in listed)
        return found

    try:
        return evaluated(predicates), frozenset()
    except HistoryError:
        pass
    found: dict[tuple[int, int], frozenset[int]] = {}
    unclear = set()
    for number in predicates:
        try:
            found |= evaluated([number])
        except HistoryError:
            unclear.add(number)
    return found, frozenset(unclear)


def unique_clashes(
    rows: Mapping[Version, Mapping[str, Value]], indexes: Iterable[Sequence[str]]
) -> dict[Version, set[Version]]:
    """Return the pairs of versions of different keys that one of a table's unique indexes forbids.

    Args:
        rows: the columns of each version of the table's rows.
        indexes: the columns of each unique index.
    """
    found: dict[Version, set[Version]] = {}
    for columns in indexes:
        holders: dict[tuple[Any, ...], list[Version]] = {}
        for version, row in rows.items():
            if all(row.get(column) is not None for column in columns):
                holders.setdefault(tuple(row[column] for column in columns), []).append(version)
        for some in holders.values():
            for one in some:
                for other in some:
                    if one[0] != other[0]:
                        found.setdefault(one, set()).add(other)
    return found
