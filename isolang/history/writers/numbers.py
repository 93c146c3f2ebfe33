"""Keys and values as numbers, for the formats that have nothing else: bincode and text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from isolang.errors import HistoryError
from isolang.history.values import INTEGER, NATURAL
from isolang.history.writers import WriteReport
from isolang.history.writers.renaming import INITIAL, Names, name_values

if TYPE_CHECKING:
    from isolang.history.writers.outline import Outline


class Numbers(Struct, frozen=True, kw_only=True):
    """Keys and values of what is written, as numbers.

    Attributes:
        key: key number of the history to number in the file.
        value: operation to the number it wrote or read; 0 is the initial state.
        notes: what changed.
        key_numbers: for renumbered keys, name and number.
    """

    key: Callable[[int], int]
    value: Callable[[int], int]
    notes: list[str]
    key_numbers: tuple[tuple[str, int], ...]


def as_numbers(
    outline: Outline, *, target: str, bits: int, zero_writable: bool, renumber: bool
) -> Numbers:
    """Give numbers to the keys and values of what is written.

    Args:
        outline: what is written.
        target: the format's name in messages.
        bits: the size of its unsigned numbers.
        zero_writable: whether a write of 0 is a write (and not ignored).
        renumber: whether keys and values without a number may get one.

    Raises:
        HistoryError: if one has no number and may not get one.
    """
    history = outline.history
    columns = history.columns
    zero = columns.intern_value(INTEGER, 0)

    def number_of(kind_and_payload: tuple[int, object]) -> int | None:
        kind, payload = kind_and_payload
        fits = kind in (INTEGER, NATURAL) and isinstance(payload, int) and 0 <= payload < 2**bits
        return int(payload) if fits and isinstance(payload, int) else None

    names: Names = name_values(
        outline,
        target=target,
        tau=zero,
        expressible=lambda atom: number_of(columns.value(atom)) is not None,
        tau_writable=zero_writable,
        renumber=renumber,
    )
    keys = [number_of(columns.key(k)) for k in range(columns.n_keys())]
    notes = [*names.notes]
    key_numbers: tuple[tuple[str, int], ...] = ()
    used = {outline.key[op] for t in outline.transactions for op in outline.ops(t)}
    numbered: dict[int, int | None] = {}
    unfit = [k for k in sorted(used) if keys[k] is None]
    if unfit:
        if not renumber:
            msg = (
                f"{history.name}: the key {history.key(unfit[0])} cannot be expressed in {target} "
                f"(expected unsigned {bits}-bit integers); "
                "renumbering (renumber=True, --renumber) may"
            )
            raise HistoryError(msg)
        keys = list(range(columns.n_keys()))
        key_numbers = tuple((history.key(k), k) for k in sorted(used))
        notes.append("renumbered: the keys")

    def key(k: int) -> int:
        found = keys[k]
        assert found is not None  # checked above
        return found

    def value(op: int) -> int:
        if op in names.number:
            return 0 if names.number[op] == INITIAL else names.number[op]
        if op in names.initial:
            return 0
        atom = outline.value[op]
        if atom not in numbered:
            numbered[atom] = number_of(columns.value(atom))
        found = numbered[atom]
        assert found is not None  # name_values checked it
        return found

    return Numbers(key=key, value=value, notes=notes, key_numbers=key_numbers)


def report_of(name: str, part: Outline, numbers: Numbers) -> WriteReport:
    """Tell what a format of numbers took of a history, and what it changed."""
    return WriteReport(
        format=name,
        transactions=len(part.transactions),
        operations=part.count(),
        notes=(*part.notes, *numbers.notes),
        key_numbers=numbers.key_numbers,
    )
