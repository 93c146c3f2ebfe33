"""Adds the names, places and texts used in messages to the columns of a history."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from isolang._native import Columns
from isolang.arrays import np
from isolang.history import columns as c
from isolang.history.recorded_fields import RecordedFields, checked_number
from isolang.history.transaction import StatusName
from isolang.history.values import atom_text, key_name
from isolang.patterns import pattern

if TYPE_CHECKING:
    from isolang.history.remarks import Remark
    from isolang.history.row_text import RowTexts
    from isolang.history.statements import Statements


# The column that the application recorder adds to each row to tell its versions apart.
_VERSION: Final = pattern(r' ?"xmin" (?:"\d+\(\d+,\d+\)"|\d+)(?: "xmin class" \d+)?(?=[ }])')


# For each position unit, the text that follows the file name.
_PLACES = {"line": ":{}", "byte": " byte {}"}


class DescribedColumns(RecordedFields, frozen=True, kw_only=True):
    """A history's columns, with names, places and texts for its transactions and operations.

    The methods are meant for messages and small histories. Performance-critical code reads the
    columns directly.
    """

    def name_of(self, txn: int) -> str:
        """Return the name of a transaction, such as ``T914``. Names are unique within the history.

        The initial transaction has the name ``T0``. If several transactions have the same number,
        their names include the session (``T7@client 3``). If that is not unique either, the name
        also includes the transaction's index (``T7@client 3#12``).
        """
        if self._is_initial(txn):
            return "T0"
        number = int(self.columns.txn_number[txn])
        rank = int(self._numbers()[txn])
        if rank == 0:
            return f"T{number}"
        session = self.session_name(int(self.columns.txn_session[txn]))
        return f"T{number}@{session}" + (f"#{txn}" if rank > 1 else "")

    def _is_initial(self, txn: int) -> bool:
        return self._is_t0(txn) or int(self.columns.txn_status[txn]) == c.INITIAL

    def _numbers(self) -> Any:
        if "numbers" not in self._lazy:
            self._lazy["numbers"] = _details_in_names(self.columns)
        return self._lazy["numbers"]

    def session_name(self, session: int) -> str:
        """Return a session's name, or its number (counted from 1) if the input does not name it."""
        if session < len(self.session_names):
            return self.session_names[session]
        return str(session + 1)

    def session_of(self, txn: int) -> str:
        """Return the name of a transaction's session, or an empty string for T0."""
        if self._is_initial(txn):
            return ""
        return self.session_name(int(self.columns.txn_session[txn]))

    def group_of(self, txn: int) -> str:
        """Return a transaction's group as text, or an empty string if it belongs to no group."""
        if not self.columns.has_groups or self._is_t0(txn) or not self.columns.txn_group[txn]:
            return ""
        return atom_text(*self.columns.group(int(self.columns.txn_group[txn])))

    def key_name(self, key: int) -> str:
        """Return the name of a key in specifications: its value as text."""
        payload = self.columns.key(key)[1]
        return "nil" if payload is None else str(payload)

    def labels_of(self, txn: int) -> tuple[str, ...]:
        """Return the labels of a transaction."""
        return self._names("label", self.columns.txn_labels, txn)

    def level_of(self, txn: int) -> str:
        """Return the name of the level requested by a transaction; empty if unknown."""
        return "".join(self._names("level", self.columns.txn_levels, txn))

    def _names(self, kind: str, set_of: Any, txn: int) -> tuple[str, ...]:
        if self._is_t0(txn) or txn >= len(set_of):
            return ()
        if kind not in self._lazy:
            columns = self.columns
            self._lazy[kind] = columns.label_sets if kind == "label" else columns.level_sets
        return tuple(self._lazy[kind][int(set_of[txn])])

    def status(self, txn: int) -> StatusName:
        """Return the status of a transaction as a word, such as ``committed``."""
        return c.STATUS_NAMES[c.INITIAL if self._is_t0(txn) else int(self.columns.txn_status[txn])]

    def where(self, txn: int) -> str:
        """Return the place in the input where a transaction is, such as ``a.edn:12``."""
        if self._is_t0(txn):
            return "the initial state"
        return self._place(self.columns.txn_file[txn], int(self.columns.txn_position[txn]))

    def carried_from(self, op: int) -> tuple[str, bool]:
        """Return the name of the transaction that a read was carried from; empty if it was not.

        The second value is whether the transaction that has the read writes other rows only.
        """
        if self.carrying is None:
            return "", False
        columns = self.columns
        place = int(columns.txn_position[self.transaction_of(op)]), int(columns.op_position[op])
        return self.carrying.names.get(place, ("", False))

    def where_op(self, op: int) -> str:
        """Return the place in the input where an operation is, such as ``a.bincode byte 234``."""
        txn = self.transaction_of(op)
        position = int(self.columns.op_position[op])
        if position < 0:
            return f"the reads of {self.carried_from(op)[0]}"
        if self.position_unit == "record":
            return f"{self.where(txn)}, operation {position}"
        return self._place(self.columns.txn_file[txn], position)

    def _place(self, file: int, position: int) -> str:
        name = self.files[file] if 0 <= file < len(self.files) else self.name
        return name + _PLACES.get(self.position_unit, " transaction {}").format(position)

    def key(self, key: int) -> str:
        """Return a key as text, such as ``user/7``; most strings are not quoted."""
        return key_name(*self.columns.key(key))

    def value(self, atom: int) -> str:
        """Return the value with this atom number as text, or ``?`` for an unknown result.

        If an application recording has a column that identifies the version of each row, the text
        omits this column, unless two values of the key differ only in that column.
        """
        text = value_with_version(self.columns, atom)
        if '"xmin" ' not in text or (short := _VERSION.sub("", text)) in (text, "{}"):
            return text
        if "alike" not in self._lazy:
            self._lazy["alike"] = _values_differing_in_version(self.columns)
        return text if atom in self._lazy["alike"] else short.replace("{ ", "{", 1)

    def op_value(self, op: int) -> str:
        """Return the value written or read by an operation as text, such as ``5`` or ``[1 2]``.

        An unknown result is shown as ``?``. If an application recording lists the columns of the
        row, the text shows them: ``{age: 4 → 5}``. If a predicate read did not return the row, the
        text is ``not found``, no matter which versions of the row would match.
        """
        value = int(self.columns.op_value[checked_number(op)])
        if row := self.recorded_row(op):
            return row
        kind = int(self.columns.op_kind[op])
        if kind not in c.LISTS or value == c.UNKNOWN_VALUE:
            return self.value(value)
        if kind == c.READ_NONE_OF and self.of_predicate(op):
            return "not found"
        values = " ".join(self.value(v) for v in self.list_values(value))
        if kind == c.READ_LIST:
            return f"[{values}]"
        return f"in {{{values}}}" if kind == c.READ_ONE_OF else f"not in {{{values}}}"

    def remark(self, op: int) -> Remark:
        """Return the recording's remark about an operation, with its caller and its row.

        A row returned by a predicate read has the remark about the predicate read.
        """
        from isolang.history.remarks import NO_REMARK, named

        if not (remarks := self.remarks()):
            return NO_REMARK
        of_line = remarks.get(int(self.columns.op_position[op]), {})
        return of_line.get(named(self, op), NO_REMARK)

    def predicate_remark(self, number: int) -> Remark:
        """Return the recording's remark about a predicate read, which may have no operations."""
        from isolang.history.remarks import NO_REMARK, named_predicate_read

        of_line = self.remarks().get(int(self.columns.statement_position[number]), {})
        return of_line.get(named_predicate_read(self, number), NO_REMARK)

    def recorded_row(self, op: int) -> str:
        """Return the columns that matter of an application's row; empty for another operation."""
        from isolang.history.remarks import ROW_NOT_FOUND

        row = self.remark(op).row
        missed = int(self.columns.op_kind[op]) == c.READ_NONE_OF
        if row and (missed or not row.startswith(ROW_NOT_FOUND)):
            return row
        return self.row_texts().of(op)

    def row_texts(self) -> RowTexts:
        """Return the texts of the rows that the recording has as values."""
        if "rows" not in self._lazy:
            from isolang.history.row_text import RowTexts

            self._lazy["rows"] = RowTexts(self)
        texts: RowTexts = self._lazy["rows"]
        return texts

    def statements_of(self, txn: int) -> Statements:
        """Return the recorded statement of each operation in a transaction.

        Returns:
            One entry for each operation in :meth:`History.transaction`; empty if the recording does
            not contain statements, or only others than those of a transaction that did not commit.

        Raises:
            HistoryError: the recorded statements are malformed, or their number differs from the
                number of operations.
        """
        statements = self.statements_by_position().get(int(self.columns.txn_position[txn]), ())
        if not statements:
            return ()
        from isolang.history.objects import statements_of_operations

        return statements_of_operations(self, txn, statements)

    def describe_op(self, op: int) -> str:
        """Return an operation as text, such as ``r(x, 5)`` or ``w(user/7 {age: 4 → 5})``.

        A set-read for a row that a predicate read did not return is shown as ``x not found``.
        """
        kind = int(self.columns.op_kind[op])
        if kind == c.READ_NONE_OF and self.of_predicate(op):
            key = self.key(int(self.columns.op_key[op]))
            source = self.carried_from(op)[0]
            carried = f" carried from {source}" if source else ""
            return (
                f"{'key ' if key[:1].isdigit() or key[:1] == '-' else ''}{key} not found{carried}"
            )
        if self.is_delete(op):
            text = f"delete({self.key(int(self.columns.op_key[op]))})"
            return text if self.columns.op_ok[op] else f"{text} {_failed(self.format)}"
        name = "r" if kind in c.SET_READS else c.KIND_NAMES[kind]
        between = " " if self.recorded_row(op) else ", "
        text = f"{name}({self.key(int(self.columns.op_key[op]))}{between}{self.op_value(op)})"
        if source := self.carried_from(op)[0]:
            text = f"{text} carried from {source}"
        return text if self.columns.op_ok[op] else f"{text} {_failed(self.format)}"

    def is_delete(self, op: int) -> bool:
        """Return whether an operation deletes the row of its key."""
        columns = self.columns
        return bool(columns.op_kind[op] == c.WRITE and columns.op_value[op] == columns.deleted)

    def statement_of(self, op: int) -> int:
        """Return the number of the predicate read that an operation belongs to, or -1 if none."""
        s = bisect_right(self.columns.statement_start, checked_number(op)) - 1
        return s if s >= 0 and op < self.columns.statement_end[s] else -1

    def of_predicate(self, op: int) -> bool:
        """Return whether an operation is one of the set-reads that make up a predicate read."""
        columns = self.columns
        if not len(columns.statement_start) or int(columns.op_kind[op]) not in c.SET_READS:
            return False
        return self.statement_of(op) >= 0

    def reads_first(self, op: int, later: int) -> bool:
        """Return whether ``op`` precedes ``later``, but not within the same predicate read."""
        if not len(self.columns.statement_start) or (statement := self.statement_of(op)) < 0:
            return op < later
        return op < later and statement != self.statement_of(later)

    def transaction_of(self, op: int) -> int:
        """Return the number of the transaction that an operation belongs to."""
        return bisect_right(self.columns.op_start, checked_number(op)) - 1

    def operations_of(self, txn: int) -> range:
        """Return the range of a transaction's operation numbers; empty for T0."""
        if self._is_t0(txn):
            return range(0)
        start = self.columns.op_start
        return range(int(start[txn]), int(start[txn + 1]))

    def list_values(self, number: int) -> list[int]:
        """Return the elements, as atoms, of the list with this number."""
        start, values = self.columns.list_start, self.columns.list_values
        return list(values[start[number] : start[number + 1]].tolist())


def _failed(form: str) -> str:
    """Return what happened to an operation that failed: EDN and JSON have only reads left out."""
    return "left out" if form in ("edn", "jepsen-json") else "failed"


def _details_in_names(columns: Columns) -> bytes:
    """Return, for each transaction, the number of details needed to make its name unique."""
    numbers = columns.txn_number.tolist()
    count = Counter(numbers)
    if len(count) == len(numbers) and 0 not in count:
        return bytes(len(numbers))
    named = list(zip(numbers, columns.txn_session.tolist(), strict=True))
    count_in_session = Counter(named)
    return bytes(
        0 if number and count[number] == 1 else 1 if count_in_session[number, session] == 1 else 2
        for number, session in named
    )


def value_with_version(columns: Columns, atom: int) -> str:
    """Return a value as text, including the column that identifies the row's version."""
    return "?" if atom == c.UNKNOWN_VALUE else atom_text(*columns.value(atom))


def _values_differing_in_version(columns: Columns) -> frozenset[int]:
    """Return the values (as atoms) that would be ambiguous without the row's version.

    Each of them differs from another value of its key only in the row's version.
    """
    pairs = set(enumerate(columns.initial_value.tolist()))
    plain = ~np.isin(columns.op_kind, c.LISTS) & (columns.op_value != c.UNKNOWN_VALUE)
    keys, values = columns.op_key[plain].tolist(), columns.op_value[plain].tolist()
    pairs.update(zip(keys, values, strict=True))
    same: dict[tuple[int, str], list[int]] = {}
    for key, atom in pairs:
        text = _VERSION.sub("", value_with_version(columns, atom))
        same.setdefault((key, text), []).append(atom)
    return frozenset(atom for atoms in same.values() if len(atoms) > 1 for atom in atoms)
