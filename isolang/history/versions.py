"""Makes the notes about the versions stated by a history's operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.arrays import np
from isolang.history import columns as c
from isolang.history.readers.reading import quantity

if TYPE_CHECKING:
    from isolang._native import Columns


def version_notes(columns: Columns) -> tuple[str, ...]:
    """Return notes on how many operations state a version, and on versions of limited use."""
    if not columns.has_versions:
        return ()
    stated = columns.op_version != c.NO_VERSION
    writes = stated & (columns.op_kind == c.WRITE)
    reads = stated & (columns.op_kind == c.READ) & (columns.op_value != c.UNKNOWN_VALUE)
    registers = np.isin(columns.op_kind, (c.READ, c.WRITE))
    order = "ordered" if columns.versions_ordered else "not ordered"
    notes = [
        f"versions, {order}, are stated by {quantity(int(stated.sum()), 'operation')} of "
        f"{int(registers.sum())} on registers; a history that contradicts them is invalid "
        "(--ignore-versions checks without them)"
    ]
    status = np.repeat(columns.txn_status, np.diff(columns.op_start))
    unknown = int((writes & (status == c.INDETERMINATE)).sum())
    if unknown and columns.versions_ordered:
        notes.append(
            f"{quantity(unknown, 'version')} of writes with an unknown outcome: these versions "
            "identify the write, but do not order it"
        )
    by_value = int((reads & (columns.op_source == c.SOURCE_BY_VALUE)).sum())
    if by_value:
        notes.append(
            f"{quantity(by_value, 'read')} of versions that no write states, or that several "
            "writes of unknown outcome state; for these, isocheck finds the write by its value"
        )
    return tuple(notes)
