"""Replaces keys and values by numbers, for formats that can express only numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from isolang.arrays import np
from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.values import INTEGER, NATURAL
from isolang.history.writers.naming import FIRST_NUMBER, INITIAL, name_values
from isolang.history.writers.outline import FormatFeatures, Outline, outline
from isolang.history.writers.report import WriteReport

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang.history.history import History


class Numbered(Struct, frozen=True, kw_only=True):
    """The part of a history to write, with numbers for keys and values.

    Attributes:
        values: the number of the value written or read by each operation; 0 is the initial state.
    """

    part: Outline
    keys: NDArray[np.uint64]
    values: NDArray[np.uint64]
    notes: tuple[str, ...]
    key_numbers: tuple[tuple[str, int], ...]

    def writes(self) -> list[bool]:
        """Return, for each operation, whether it is a write."""
        writes: list[bool] = (self.part.history.columns.op_kind[self.part.ops] == c.WRITE).tolist()
        return writes

    def sessions(self) -> Iterator[Iterator[NumberedTransaction]]:
        """Yield the sessions, each as an iterator over its transactions in session order."""
        part, columns = self.part, self.part.history.columns
        start, committed = part.start.tolist(), columns.txn_status[part.txns] == c.COMMITTED
        ops = list(zip(self.writes(), self.keys.tolist(), self.values.tolist(), strict=True))
        for session in part.sessions():
            yield (
                NumberedTransaction(
                    ordinal=i + 1,
                    committed=bool(committed[i]),
                    ops=ops[start[i] : start[i + 1]],
                )
                for i in session.tolist()
            )

    def report(self, name: str, *notes: str) -> WriteReport:
        """Return a report on the transactions and operations written, and on all changes."""
        return WriteReport(
            format=name,
            transactions=len(self.part.txns),
            operations=len(self.part.ops),
            notes=(*self.part.notes, *self.notes, *notes),
            key_numbers=self.key_numbers,
        )


class NumberedTransaction(Struct, frozen=True, kw_only=True):
    """One transaction to write.

    Attributes:
        ordinal: the transaction's number among all written transactions, counted from 1.
        ops: for each operation, whether it is a write, its key's number, and its value.
    """

    ordinal: int
    committed: bool
    ops: list[tuple[bool, int, int]]


def number_history(
    history: History,
    target: FormatFeatures,
    *,
    bits: int,
    zero_writable: bool,
    renumber: bool,
    drop: frozenset[str],
) -> Numbered:
    """Select the part of a history to write, and number its keys and values.

    Args:
        bits: the number of bits in the format's unsigned numbers.

    Raises:
        HistoryError: a key or value is not a number and may not be numbered, or the format cannot
            express the history.
    """
    part = outline(history, target, drop)
    columns = history.columns

    def fit(kinds: NDArray[np.uint8], numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        fits: NDArray[np.bool_] = (kinds == INTEGER) & (numbers >= 0)
        if bits == 64:
            fits |= kinds == NATURAL
        return fits

    kinds, values = columns.value_kinds(), columns.value_numbers()
    zero = np.flatnonzero((kinds == INTEGER) & (values == 0))
    names = name_values(
        part,
        tau=int(zero[0]) if len(zero) else INITIAL,
        expressible=lambda atoms: fit(kinds[atoms], values[atoms]),
        tau_writable=zero_writable,
        renumber=renumber,
    )
    key = columns.op_key[part.ops]
    key_atom = columns.key_atom
    key_numbers = columns.key_numbers()[key_atom]
    fits = fit(columns.key_kinds()[key_atom], key_numbers)
    used = np.unique(key)
    renamed: tuple[tuple[str, int], ...] = ()
    notes = list(names.notes)
    unfit = used[~fits[used]].tolist()
    if unfit:
        if not renumber:
            msg = (
                f"{history.name}: the key {history.key(unfit[0])} cannot be expressed in "
                f"{target.name} (expected unsigned {bits}-bit integers); renumbering "
                "(renumber=True, --renumber) may help"
            )
            raise HistoryError(msg)
        key_numbers = np.arange(columns.n_keys())
        renamed = tuple((history.key(k), k) for k in used.tolist())
        notes.append("renumbered: the keys")
    atom = names.of >= 0
    number_of = np.where(names.of <= FIRST_NUMBER, FIRST_NUMBER - names.of, 0)
    number_of[atom] = values[names.of[atom]]
    return Numbered(
        part=part,
        keys=key_numbers[key].astype(np.uint64),
        values=number_of.astype(np.uint64),
        notes=tuple(notes),
        key_numbers=renamed,
    )
