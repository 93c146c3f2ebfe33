"""Defines a history's columns with the fields of its file that no column holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from isolang._native import Columns
from isolang.history.carrying import Carrying

if TYPE_CHECKING:
    from isolang.history.remarks import Named, RecordedForeignKey, Remark
    from isolang.history.statements import Statements


class RecordedFields(Struct, frozen=True, kw_only=True):
    """A history's columns, and the remarks, statements and units of its file.

    Attributes:
        columns: the native columns, described in ``native/core/history.hpp``. Transactions are
            numbered 0 … n-1, and T0, the initial transaction, has number n.
        name: the history's name in messages: a path, or ``<memory>``.
        files: the files that the history was read from; ``columns.txn_file`` holds indices into
            this tuple.
        session_names: the names of the sessions in the input; empty if they have no names.
        carrying: the reads carried between the transactions of a request, if the history was read
            with ``unit="request"``.
    """

    columns: Columns
    name: str
    format: str
    files: tuple[str, ...] = ()
    position_unit: Literal["line", "byte", "record"] = "record"
    session_names: tuple[str, ...] = ()
    carrying: Carrying | None = None
    _lazy: dict[str, Any] = field(default_factory=dict)

    @property
    def t0(self) -> int:
        """The number of T0, the initial transaction."""
        return self.columns.transactions()

    def _is_t0(self, txn: int) -> bool:
        return checked_number(txn) == self.t0

    def remarks(self) -> Mapping[int, Mapping[Named, Remark]]:
        """Return all remarks in the recording, keyed by line and operation.

        Most histories have no remarks. A history built from a window of a growing log has none
        either, because its positions are not lines and the file may not fit in memory.
        """
        if "remarks" not in self._lazy:
            from isolang.history.remarks import read_remarks

            self._lazy["remarks"] = read_remarks(self.files[0]) if self.is_recording() else {}
        remarks: Mapping[int, Mapping[Named, Remark]] = self._lazy["remarks"]
        return remarks

    def is_recording(self) -> bool:
        """Return whether the history is a file of events, which may contain remarks."""
        return self.format == "edn" and self.position_unit == "line" and len(self.files) == 1

    def unique_indexes(self) -> Mapping[str, Sequence[Sequence[str]]]:
        """Return the columns of each unique index that the recording names, by table."""
        if "unique" not in self._lazy:
            from isolang.history.remarks import read_unique_indexes

            self._lazy["unique"] = read_unique_indexes(self.files[0]) if self.is_recording() else {}
        indexes: Mapping[str, Sequence[Sequence[str]]] = self._lazy["unique"]
        return indexes

    def foreign_keys(self) -> Mapping[str, Sequence[RecordedForeignKey]]:
        """Return the foreign keys that the recording names, by table."""
        if "references" not in self._lazy:
            from isolang.history.remarks import read_foreign_keys

            self._lazy["references"] = (
                read_foreign_keys(self.files[0]) if self.is_recording() else {}
            )
        keys: Mapping[str, Sequence[RecordedForeignKey]] = self._lazy["references"]
        return keys

    def database(self) -> Mapping[str, object]:
        """Return what the recording says of its database; empty if it does not."""
        from isolang.history.remarks import read_database

        return read_database(self.files[0]) if self.is_recording() else {}

    def has_statements(self) -> bool:
        """Return whether the recording contains a statement for any operation."""
        return bool(self.statements_by_position())

    def statements_by_position(self) -> Mapping[int, Statements]:
        """Return the recorded statements of transactions, keyed by the transaction's position."""
        if "statements" not in self._lazy:
            from isolang.history.statements import read_statements

            lines = self.position_unit == "line" and self.format in ("edn", "jepsen-json")
            is_file = lines and len(self.files) == 1
            self._lazy["statements"] = read_statements(self.files[0]) if is_file else {}
        statements: Mapping[int, Statements] = self._lazy["statements"]
        return statements

    def unit_of(self, txn: int) -> str:
        """Return the name of a transaction's unit; empty if it belongs to none.

        Raises:
            HistoryError: the recorded units are malformed.
        """
        if self._is_t0(txn) or not (units := self.units()):
            return ""
        return units.get(int(self.columns.txn_position[txn]), "")

    def units(self) -> Mapping[int, str]:
        """Return the units of transactions, keyed by the transaction's position.

        Raises:
            HistoryError: the recorded units are malformed.
        """
        if "units" not in self._lazy:
            from isolang.history.units import read_units

            lines = self.position_unit == "line" and self.format in ("edn", "jepsen-json")
            is_file = lines and len(self.files) == 1
            self._lazy["units"] = read_units(self.files[0]) if is_file else {}
        units: Mapping[int, str] = self._lazy["units"]
        return units


def checked_number(i: int) -> int:
    """Check that a transaction or operation number is not negative, and return it unchanged."""
    if i < 0:
        raise IndexError(f"no transaction or operation has the number {i}")
    return i
