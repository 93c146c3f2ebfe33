"""Stores a stream's transactions as rows, together with their places in the log."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isolang import _native
from isolang.watch.stream.batch import Batch, LogPlace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns

#: The number of columns of :attr:`Rows.at`: the number in the stream, and the fields of
#: :class:`LogPlace`.
PLACE_COLUMNS = 5


@dataclass(slots=True)
class Rows:
    """Transactions as recorded in the log, one per row.

    Attributes:
        names: for each session of the columns, its name in the whole stream.
        at: int64[n, 5]: for each transaction, its number in the stream, from 0, the file and offset
            of its invocation, and the file and offset of its completion.
    """

    columns: Columns
    names: list[str]
    at: NDArray[np.int64]

    @classmethod
    def empty(cls) -> Rows:
        """Return rows without transactions."""
        import numpy as np

        return cls(columns=_native.Columns(), names=[], at=np.zeros((0, PLACE_COLUMNS), np.int64))

    def __len__(self) -> int:
        return len(self.at)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The number of each transaction in the stream."""
        return self.at[:, 0]

    def place(self, row: int) -> LogPlace:
        """Return the place of a transaction in the log."""
        return place_of(self.at[row].tolist())

    def take(self, rows: NDArray[np.integer[Any]]) -> Rows:
        """Return the transactions with these row numbers, in this order."""
        import numpy as np

        found = Rows.empty()
        found.extend(self, np.ascontiguousarray(rows, np.int32))
        return found

    def extend(self, other: Rows, rows: NDArray[np.int32] | None = None) -> None:
        """Append transactions."""
        import numpy as np

        if rows is None:
            if not len(self):
                self.columns, self.names, self.at = copy(other.columns), [*other.names], other.at
                return
            rows = np.arange(len(other), dtype=np.int32)
        if not len(rows):
            return
        append(self.columns, self.names, other.columns, other.names, rows)
        self.at = np.concatenate([self.at, other.at[rows]])


def append(
    columns: Columns,
    names: list[str],
    other: Columns,
    others: Sequence[str],
    rows: NDArray[np.int32],
) -> None:
    """Append transactions of other columns, and merge sessions that have the same name."""
    import numpy as np

    used, first = np.unique(other.txn_session[rows], return_index=True)
    known = {name: number for number, name in enumerate(names)}
    local = np.zeros(other.sessions, np.int32)
    for session in used[np.argsort(first)].tolist():
        name = others[session]
        number = known.get(name)
        if number is None:
            number = known[name] = len(names)
            names.append(name)
        local[session] = number
    columns.append(other, rows, local)


def rows_of(batch: Batch, first: int) -> Rows:
    """Return the transactions of a batch as rows.

    Finished transactions are numbered from ``first`` on, and transactions in flight after them.
    """
    import numpy as np

    columns, places = batch.history.columns, batch.places
    open_ = batch.in_flight
    number = np.empty(len(open_), np.int64)
    finished = int(np.count_nonzero(~open_))
    number[~open_] = np.arange(first, first + finished)
    number[open_] = np.arange(first + finished, first + len(open_))
    names = batch.history.session_names or [str(s) for s in range(columns.sessions)]
    return Rows(
        columns=columns,
        names=list(names),
        at=np.stack(
            [number, places.file, places.offset, places.done_file, places.done], axis=1
        ).astype(np.int64),
    )


def place_of(row: Sequence[int]) -> LogPlace:
    """Return the place stored in a row of :attr:`Rows.at`."""
    _, file, offset, done_file, done = row
    return LogPlace(file=file, offset=offset, done_file=done_file, done=done)


def encode_rows(rows: Rows) -> tuple[Any, ...]:
    """Return rows as a tuple of lists, numbers and bytes that can be written to a file."""
    state: Any = rows.columns
    return (
        state.__getstate__(),
        rows.names,
        rows.at.astype("<i8").tobytes(),
    )


def decode_rows(parts: Sequence[Any]) -> Rows:
    """Decode the rows from a result of :func:`encode_rows`.

    Raises:
        ValueError: the argument is not a result of :func:`encode_rows`.
    """
    import numpy as np

    state, names, at = parts
    columns: Any = _native.Columns.__new__(_native.Columns)
    columns.__setstate__(_tuples(state))
    return Rows(
        columns=columns,
        names=list(names),
        at=np.frombuffer(at, "<i8").reshape(-1, PLACE_COLUMNS).astype(np.int64),
    )


def _tuples(state: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(tuple(part) if isinstance(part, list) else part for part in state)
