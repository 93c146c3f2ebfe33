"""Histories: columns with a record of how the input was interpreted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from isolang.caveat import Caveat, caveats_in
from isolang.history import columns as c
from isolang.history.transaction import Op, StatusName, Transaction, one_or_several
from isolang.history.values import UNKNOWN, Value, decode, key_name, show

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns
    from isolang.history.remarks import Named, Remark


_SHOWN: Final = 20  # transactions in a notebook, and operations of each
_LONG: Final = 400  # characters of a notebook cell


def read_with(options: Mapping[str, Any]) -> str:
    """Return the reading options other than the defaults, in words; empty if there are none.

    >>> read_with({"clock_error": "2ms", "per_key": True, "initial": None})
    'read with clock_error "2ms", per_key'
    """
    phrases = [
        name if value is True else f"{name} {json.dumps(value, ensure_ascii=False)}"
        for name, value in sorted(options.items())
        if value not in (None, False, "", ())
    ]
    return f"read with {', '.join(phrases)}" if phrases else ""


class History(Struct, frozen=True, kw_only=True):
    """A history: the input in columns, with a record of how it was read.

    The methods return single transactions and operations as Python objects, for messages and small
    histories; no hot path calls them.

    Attributes:
        columns: the native columns (``native/core/history.hpp`` describes each of them).
            Transactions have the numbers 0 … n-1, and T0, the initial transaction, has number n.
        name: the history's name in messages (a path, or ``<memory>``).
        format: the name of the format, as ``--from`` takes it.
        files: the files from which the history was read; ``columns.txn_file`` indexes them.
        position_unit: the unit of ``txn_position`` and ``op_position``.
        initial: a sentence that says what a read of the initial state looks like.
        session: a sentence that says what a session is in this input.
        real_time: a sentence that says where real time comes from, or why there is none.
        ignored: a phrase, with a count, for each kind of input that was read but has no influence.
        notes: a phrase for each remark on how the input was interpreted (a normalisation, a
            detected variant).
        sha256: the hash of the bytes that were read (files in name order).
        session_names: the names of sessions in the input; empty if they have none.
        levels: the levels of the library that can judge the history; empty if all can.
        options: reading options other than the format (``per_key``, ``clock_error`` …).
            Certificates repeat them, because the history must be read in the same way again.
        set_reads: if set-reads are implicit (``columns.implicit``), the set-reads that have become
            operations since the history was read, as pairs of a predicate read and a key.
    """

    columns: Columns
    name: str
    format: str
    files: tuple[str, ...] = ()
    position_unit: Literal["line", "byte", "record"] = "record"
    initial: str = ""
    session: str = ""
    real_time: str = ""
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    sha256: str = ""
    session_names: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    set_reads: tuple[tuple[int, int], ...] | Literal["all"] = ()
    _lazy: dict[str, Any] = field(default_factory=dict)

    @property
    def caveats(self) -> tuple[str, ...]:
        """The remarks of the reader that change what a verdict means, and the reading options.

        Examples are skipped operations, a torn end, and clocks that may be wrong. Each remark is a
        sentence, and its part before the first colon is a summary.
        """
        reading = read_with(self.options)
        return caveats_in((*self.ignored, *self.notes, *([Caveat(reading)] if reading else ())))

    @classmethod
    def from_transactions(
        cls,
        transactions: Iterable[Transaction],
        *,
        initial: object = None,
        versions: Literal["ordered"] | None = None,
        name: str = "<memory>",
    ) -> History:
        """Return a history of Python transactions.

        >>> from isolang.history import History, Transaction
        >>> h = History.from_transactions([
        ...     Transaction([("w", "x", 1)], session="a"),
        ...     Transaction([("r", "x", None), ("r", "y", [1, 2])], session="b"),
        ... ])
        >>> h.counts()["committed"], h.describe_op(1), h.name_of(1)
        (2, 'r(x, nil)', 'T2')

        Args:
            transactions: the transactions, in any order that keeps the order of each session. Real
                time is used iff every committed transaction has both a begin and an end.
            initial: the value that T0 wrote, besides nil: one value for all keys, or a mapping from
                keys to values.
            versions: ``"ordered"`` if the versions that operations state are integers, and the
                versions of a key ascend in the order in which they were installed.
            name: the name of the history in messages.

        Raises:
            HistoryError: an item is not a valid transaction; the message names its place.
        """
        from isolang.history.build import build

        built = build(list(transactions), initial=initial, versions=versions, name=name)
        return cls(
            columns=built.columns,
            name=name,
            format="memory",
            position_unit=built.position_unit,
            initial=built.initial,
            session=built.session,
            real_time=built.real_time,
            ignored=built.ignored,
            sha256=_digest(built.columns),
            session_names=built.session_names,
        )

    # --- predicate reads whose set-reads are implicit ---

    def with_set_reads(self, missed: NDArray[np.int32]) -> History:
        """Return the history with some more of its implicit set-reads as operations.

        Operations are numbered as if all set-reads that became operations had been added at once.

        Args:
            missed: int32[n, 2], pairs of a predicate read and a key that it did not return,
                ascending.

        Raises:
            ValueError: a set-read is an operation already, or no version of its key matches.
        """
        import numpy as np

        before = np.array(self.set_reads, np.int32).reshape(-1, 2)
        made = np.unique(np.concatenate([before, missed]), axis=0)
        pairs = tuple((int(s), int(key)) for s, key in made.tolist())
        as_read: History = self._lazy.get("as read", self)
        columns = as_read.columns.with_set_reads(missed if as_read is self else made)
        return replace(self, columns=columns, set_reads=pairs, _lazy={"as read": as_read})

    def written_out(self) -> History:
        """Return the history with all set-reads of its predicate reads as operations."""
        if not self.columns.implicit:
            return self
        whole: History | None = self._lazy.get("written out")
        if whole is None:
            whole = replace(self, columns=self.columns.written_out(), set_reads="all", _lazy={})
            self._lazy["written out"] = whole
        return whole

    # --- sizes ---

    def counts(self) -> dict[str, int]:
        """Return the numbers of transactions, by status, and of operations, sessions and keys.

        ``transactions`` and ``sessions`` do not include T0 or a declared initial transaction.
        """
        import numpy as np

        ordinary = self.columns.txn_status != c.INITIAL
        by_status = np.bincount(self.columns.txn_status, minlength=4)
        counts = {name: int(by_status[code]) for code, name in enumerate(c.STATUS_NAMES)}
        return {
            "transactions": self.columns.transactions() - counts["initial"],
            **counts,
            "operations": self.columns.operations(),
            "sessions": int(np.count_nonzero(np.bincount(self.columns.txn_session[ordinary]))),
            "keys": self.columns.n_keys(),
        }

    @property
    def t0(self) -> int:
        """The number of T0, the initial transaction."""
        return self.columns.transactions()

    @property
    def initial_transaction(self) -> int | None:
        """The transaction that the input or the user declared to be T0, if there is one."""
        import numpy as np

        found = np.flatnonzero(self.columns.txn_status == c.INITIAL)
        return int(found[0]) if len(found) else None

    def __repr__(self) -> str:
        counts = self.counts()
        many = ", ".join(
            f"{counts[what]:,} {what if counts[what] != 1 else what[:-1]}"
            for what in ("transactions", "operations", "sessions", "keys")
        )
        return f"<History {self.name} ({self.format}): {many}>"

    def _repr_html_(self) -> str:
        """Return a table of the first transactions with their operations, for notebooks."""
        from html import escape

        shown = range(min(_SHOWN, self.columns.transactions()))
        rows = [
            (
                self.name_of(txn),
                self.session_of(txn),
                self.status(txn),
                "  ".join(self.describe_op(op) for op in self.operations_of(txn)[:_SHOWN]),
            )
            for txn in shown
        ]
        more = self.columns.transactions() - len(shown)
        head = "".join(f"<th>{name}</th>" for name in ("", "session", "outcome", "operations"))
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(cell[:_LONG])}</td>' for cell in row)}</tr>"
            for row in rows
        )
        rest = f"<p>and {more:,} more</p>" if more else ""
        return f"<p>{escape(repr(self))}</p><table><tr>{head}</tr>{body}</table>{rest}"

    # --- names, for messages ---

    def name_of(self, txn: int) -> str:
        """Return the name of a transaction, which is unique in the history, such as ``T914``.

        The initial transaction is ``T0``. If the input uses a number twice, the session follows the
        number (``T7@client 3``). If that name is not unique either, the index follows the session
        (``T7@client 3#12``).
        """
        if self._is_initial(txn):
            return "T0"
        number = int(self.columns.txn_number[txn])
        rank = int(self._numbers()[txn])
        if rank == 0:
            return f"T{number}"
        session = self.session_name(int(self.columns.txn_session[txn]))
        return f"T{number}@{session}" + (f"#{txn}" if rank > 1 else "")

    def _is_t0(self, txn: int) -> bool:
        return _number(txn) == self.t0

    def _is_initial(self, txn: int) -> bool:
        return self._is_t0(txn) or int(self.columns.txn_status[txn]) == c.INITIAL

    def _numbers(self) -> Any:
        """Return 0 for a transaction with a unique number, 1 if unique in its session, else 2."""
        import numpy as np

        if "numbers" not in self._lazy:
            numbers = self.columns.txn_number
            rank = (_repeated(numbers) | (numbers == 0)).astype(np.int8)
            if rank.any():
                rank += (rank > 0) & _repeated(numbers, self.columns.txn_session)
            self._lazy["numbers"] = rank
        return self._lazy["numbers"]

    def session_name(self, session: int) -> str:
        """Return the name of a session in the input; without a name, its number from 1."""
        if session < len(self.session_names):
            return self.session_names[session]
        return str(session + 1)

    def session_of(self, txn: int) -> str:
        """Return the name of a transaction's session; T0 has none."""
        if self._is_initial(txn):
            return ""
        return self.session_name(int(self.columns.txn_session[txn]))

    def group_of(self, txn: int) -> str:
        """Return the group of a transaction as text; empty if it has none."""
        if not self.columns.has_groups or self._is_t0(txn) or not self.columns.txn_group[txn]:
            return ""
        return show(*self.columns.group(int(self.columns.txn_group[txn])))

    def key_name(self, key: int) -> str:
        """Return the name of a key in specifications: its text, or its number."""
        payload = self.columns.key(key)[1]
        return "nil" if payload is None else str(payload)

    def labels_of(self, txn: int) -> tuple[str, ...]:
        """Return the labels of a transaction."""
        return self._names("label", self.columns.txn_labels, txn)

    def level_of(self, txn: int) -> str:
        """Return the level that a transaction requested; empty if unknown."""
        return "".join(self._names("level", self.columns.txn_levels, txn))

    def _names(self, kind: str, set_of: Any, txn: int) -> tuple[str, ...]:
        if self._is_t0(txn) or txn >= len(set_of):
            return ()
        if kind not in self._lazy:
            columns = self.columns
            self._lazy[kind] = columns.label_sets if kind == "label" else columns.level_sets
        return tuple(self._lazy[kind][int(set_of[txn])])

    def status(self, txn: int) -> StatusName:
        """Return the status of a transaction, in words."""
        return c.STATUS_NAMES[c.INITIAL if self._is_t0(txn) else int(self.columns.txn_status[txn])]

    def where(self, txn: int) -> str:
        """Return the place of a transaction in the input: ``a.edn:12``, ``a.bincode byte 234``."""
        if self._is_t0(txn):
            return "the initial state"
        return self._place(self.columns.txn_file[txn], int(self.columns.txn_position[txn]))

    def where_op(self, op: int) -> str:
        """Return the place of an operation in the input."""
        txn = self.transaction_of(op)
        position = int(self.columns.op_position[op])
        if self.position_unit == "record":
            return f"{self.where(txn)}, operation {position}"
        return self._place(self.columns.txn_file[txn], position)

    def _place(self, file: int, position: int) -> str:
        name = self.files[file] if 0 <= file < len(self.files) else self.name
        if self.position_unit == "line":
            return f"{name}:{position}"
        if self.position_unit == "byte":
            return f"{name} byte {position}"
        return f"{name} transaction {position}"

    def key(self, key: int) -> str:
        """Return a key as text; a string that reads as a name or row has no quotes: ``user/7``."""
        return key_name(*self.columns.key(key))

    def value(self, atom: int) -> str:
        """Return a value (an atom, or the unknown result) as text."""
        return "?" if atom == c.UNKNOWN_VALUE else show(*self.columns.value(atom))

    def op_value(self, op: int) -> str:
        """Return the value that an operation wrote or read, as text: ``5``, ``[1 2]``, ``?``.

        ``?`` means an unknown result. A row of a recorded application is shown by its columns:
        ``{age: 4 → 5}``.
        """
        value = int(self.columns.op_value[_number(op)])
        if row := self.remark(op).row:
            return row
        kind = int(self.columns.op_kind[op])
        if kind not in c.LISTS or value == c.UNKNOWN_VALUE:
            return self.value(value)
        values = " ".join(self.value(v) for v in self._list(value))
        if kind == c.READ_LIST:
            return f"[{values}]"
        return f"in {{{values}}}" if kind == c.READ_ONE_OF else f"not in {{{values}}}"

    def remark(self, op: int) -> Remark:
        """Return the remark of the recording on an operation: its caller, and its row."""
        from isolang.history.remarks import NOTHING

        if not (remarks := self.remarks()):
            return NOTHING
        columns = self.columns
        of_line = remarks.get(int(columns.op_position[op]), {})
        key = show(*columns.key(int(columns.op_key[op])))
        if self.is_delete(op):
            return of_line.get(("delete", key, ""), NOTHING)
        kind, value = int(columns.op_kind[op]), int(columns.op_value[op])
        listed = kind in c.LISTS and value != c.UNKNOWN_VALUE
        values = self._list(value) if listed else [value]
        text = " ".join(map(self.value, values))
        named = (c.KIND_NAMES[kind], key, f"[{text}]" if listed else text)
        return of_line.get(named, NOTHING)

    def remarks(self) -> Mapping[int, Mapping[Named, Remark]]:
        """Return all remarks, by line and operation; most histories have none.

        A window of a growing log has none either, because its places are not lines, and its file
        may be larger than memory.
        """
        if "remarks" not in self._lazy:
            from isolang.history.remarks import remarks_of

            events = self.format == "edn" and self.position_unit == "line"
            one = events and len(self.files) == 1
            self._lazy["remarks"] = remarks_of(self.files[0]) if one else {}
        found: Mapping[int, Mapping[Named, Remark]] = self._lazy["remarks"]
        return found

    def describe_op(self, op: int) -> str:
        """Return an operation as text: ``r(x, 5)``, ``w(user/7 {age: 4 → 5})``."""
        kind = int(self.columns.op_kind[op])
        if self.is_delete(op):
            text = f"delete({self.key(int(self.columns.op_key[op]))})"
            return text if self.columns.op_ok[op] else f"{text} failed"
        name = "r" if kind in c.SET_READS else c.KIND_NAMES[kind]
        between = " " if self.remark(op).row else ", "
        text = f"{name}({self.key(int(self.columns.op_key[op]))}{between}{self.op_value(op)})"
        return text if self.columns.op_ok[op] else f"{text} failed"

    def is_delete(self, op: int) -> bool:
        """Return whether an operation deletes the row of its key."""
        columns = self.columns
        return bool(columns.op_kind[op] == c.WRITE and columns.op_value[op] == columns.deleted)

    def statement_of(self, op: int) -> int:
        """Return the number of the predicate read that an operation is part of, or -1."""
        import numpy as np

        s = int(np.searchsorted(self.columns.statement_start, _number(op), side="right")) - 1
        return s if s >= 0 and op < self.columns.statement_end[s] else -1

    def of_predicate(self, op: int) -> bool:
        """Return whether an operation is a set-read of a predicate read."""
        columns = self.columns
        if not len(columns.statement_start) or int(columns.op_kind[op]) not in c.SET_READS:
            return False
        return self.statement_of(op) >= 0

    def reads_first(self, op: int, later: int) -> bool:
        """Return whether an operation precedes another; one predicate read's have no order."""
        if not len(self.columns.statement_start) or (statement := self.statement_of(op)) < 0:
            return op < later
        return op < later and statement != self.statement_of(later)

    def transaction_of(self, op: int) -> int:
        """Return the transaction that an operation belongs to."""
        import numpy as np

        return int(np.searchsorted(self.columns.op_start, _number(op), side="right")) - 1

    def operations_of(self, txn: int) -> range:
        """Return the numbers of a transaction's operations; T0 has none."""
        if self._is_t0(txn):
            return range(0)
        start = self.columns.op_start
        return range(int(start[txn]), int(start[txn + 1]))

    def _list(self, number: int) -> list[int]:
        start = self.columns.list_start
        values: list[int] = self.columns.list_values[start[number] : start[number + 1]].tolist()
        return values

    # --- back to Python objects ---

    def key_object(self, key: int) -> Value:
        """Return a key as a Python object."""
        return decode(*self.columns.key(key))

    def value_object(self, atom: int) -> Value:
        """Return a value as a Python object."""
        return decode(*self.columns.value(atom))

    def initial_values(self) -> dict[Value, Value]:
        """Return the initial values other than nil, by key."""
        import numpy as np

        atoms = self.columns.initial_value
        return {
            self.key_object(k): self.value_object(int(atoms[k]))
            for k in np.flatnonzero(atoms != c.NIL_ATOM).tolist()
        }

    def op_object(self, op: int) -> Op:
        """Return an operation as the tuple that :class:`Transaction` takes."""
        columns = self.columns
        kind, key = int(columns.op_kind[op]), self.key_object(int(columns.op_key[op]))
        atom, source = int(columns.op_value[op]), int(columns.op_source[op])
        result: Any
        if self.is_delete(op):
            return ("delete", key)
        if atom == c.UNKNOWN_VALUE:
            result = UNKNOWN
        elif kind in c.LISTS:
            result = [self.value_object(v) for v in self._list(atom)]
        else:
            result = self.value_object(atom)
        by_version = columns.has_versions and columns.op_version[op] != c.NO_VERSION
        if source == c.SOURCE_BY_VALUE or by_version:
            return (c.KIND_NAMES[kind], key, result)
        where: Any = {c.SOURCE_INITIAL: "initial", c.SOURCE_MISSING: "missing"}.get(source)
        if where is None:
            txn = self.transaction_of(source)
            where = (txn, self._places(txn)[source - int(columns.op_start[txn])])
        return (c.KIND_NAMES[kind], key, result, where)

    def transaction(self, txn: int) -> Transaction:
        """Return one transaction as a Python object."""
        columns = self.columns
        places = self._places(txn)
        begin, end = int(columns.txn_begin[txn]), int(columns.txn_end[txn])
        session, ops = int(columns.txn_session[txn]), self.operations_of(txn)
        return Transaction(
            ops=self._op_objects(txn),
            session=self.session_names[session] if self.session_names else session,
            status=self.status(txn),
            begin=None if begin == c.UNKNOWN_BEGIN else begin,
            end=None if end == c.UNKNOWN_END else end,
            number=int(columns.txn_number[txn]),
            failed=tuple(
                sorted({i for i, op in zip(places, ops, strict=True) if not columns.op_ok[op]})
            ),
            times=self._times(txn),
            commit=self._commit(txn),
            group=self._group(txn),
            versions=self._versions(txn),
            label=one_or_several(self.labels_of(txn)),
            level=self.level_of(txn) or None,
        )

    def _versions(self, txn: int) -> list[Value] | None:
        """Return the version that each operation of :meth:`_op_objects` states."""
        if not self.columns.has_versions:
            return None
        stated = [None if scan else self.version(i) for scan, i in self._objects(txn)]
        return None if all(version is None for version in stated) else stated

    def version(self, op: int) -> Value:
        """Return the version that an operation states for its read or write, or ``None``."""
        columns = self.columns
        if not columns.has_versions or columns.op_version[op] == c.NO_VERSION:
            return None
        return decode(*columns.version(int(columns.op_version[op])))

    def without_versions(self) -> History:
        """Return the history as if no operation had stated a version."""
        if not self.columns.has_versions:
            return self
        from isolang.history.versions import version_notes

        phrases = version_notes(self.columns)
        notes = tuple(note for note in self.notes if note not in phrases)
        return replace(self, columns=self.columns.without_versions(), notes=notes, _lazy={})

    def _group(self, txn: int) -> Value:
        groups = self.columns.txn_group
        return decode(*self.columns.group(int(groups[txn]))) if len(groups) else None

    def _times(self, txn: int) -> list[tuple[int | None, int | None] | None] | None:
        """Return when each operation of :meth:`_op_objects` was sent and answered, if known.

        The times are by the clock of the begins of transactions.
        """
        columns = self.columns
        if not columns.has_operation_times or columns.two_clocks:
            return None
        known: list[tuple[int | None, int | None] | None] = []
        for scan, i in self._objects(txn):
            sent = int((columns.statement_sent if scan else columns.op_begin)[i])
            answered = int((columns.statement_answered if scan else columns.op_end)[i])
            one = None if sent == c.UNKNOWN_BEGIN else sent
            other = None if answered == c.UNKNOWN_END else answered
            known.append(None if one is None and other is None else (one, other))
        return known if any(known) else None

    def _commit(self, txn: int) -> int | None:
        if not self.columns.has_operation_times or self.columns.two_clocks:
            return None
        sent = int(self.columns.commit_begin[txn])
        return None if sent == c.UNKNOWN_BEGIN else sent

    def _statements_of(self, txn: int) -> range:
        import numpy as np

        first, end = np.searchsorted(self.columns.statement_txn, [txn, txn + 1]).tolist()
        return range(first, end)

    def _objects(self, txn: int) -> Iterator[tuple[bool, int]]:
        """Yield for each object of a transaction whether it is a predicate read, and its number."""
        columns, ops = self.columns, self.operations_of(txn)
        at = ops.start
        for s in self._statements_of(txn):
            yield from ((False, op) for op in range(at, int(columns.statement_start[s])))
            yield True, s
            at = int(columns.statement_end[s])
        yield from ((False, op) for op in range(at, ops.stop))

    def _op_objects(self, txn: int) -> list[Op]:
        """Return the operations of a transaction; each predicate read is one operation."""
        return [
            self._scan_object(i) if scan else self.op_object(i) for scan, i in self._objects(txn)
        ]

    def _places(self, txn: int) -> list[int]:
        """Return the index of each operation of a transaction in :meth:`_op_objects`."""
        columns, ops = self.columns, self.operations_of(txn)
        places: list[int] = []
        before = 0  # the number of earlier objects
        at = ops.start
        for s in self._statements_of(txn):
            start, end = int(columns.statement_start[s]), int(columns.statement_end[s])
            places += range(before, before + start - at)
            before += start - at
            places += [before] * (end - start)
            before += 1
            at = end
        return [*places, *range(before, before + ops.stop - at)]

    def _scan_object(self, s: int) -> Op:
        columns = self.columns
        number = int(columns.statement_predicate[s])
        judged = number < 0 or columns.statement_known[s] == c.PART
        predicate = None if judged else columns.predicates[number]
        if not columns.statement_known[s]:
            return ("scan", predicate, UNKNOWN)
        rows: dict[Any, Any] = {}
        missed: dict[Any, Any] = {}
        for op in range(int(columns.statement_start[s]), int(columns.statement_end[s])):
            kind, atom = int(columns.op_kind[op]), int(columns.op_value[op])
            key = self.key_object(int(columns.op_key[op]))
            if kind == c.READ:
                rows[key] = self.value_object(atom)
                continue
            values = [self.value_object(v) for v in self._list(atom)]
            if kind == c.READ_ONE_OF:
                (rows[key],) = values
            else:
                missed[key] = values
        return ("scan", predicate, rows) if predicate else ("scan", None, rows, missed)

    def transactions(self) -> Iterator[Transaction]:
        """Yield all transactions as Python objects, in the history's order."""
        for txn in range(self.columns.transactions()):
            yield self.transaction(txn)


def _number(i: int) -> int:
    """Return the number of a transaction or an operation unchanged.

    Raises:
        IndexError: the number is negative; -1 must not mean the last transaction or operation.
    """
    if i < 0:
        raise IndexError(f"no transaction or operation has the number {i}")
    return i


def _repeated(*columns: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Return for each row of the columns whether it occurs more than once."""
    import numpy as np  # not np.unique: its import of masked arrays takes as long as a small check

    order = np.lexsort(columns)
    same = np.ones(max(len(order) - 1, 0), dtype=bool)
    for column in columns:
        same &= column[order[1:]] == column[order[:-1]]
    found = np.zeros(len(order), dtype=bool)
    found[order[1:]] |= same
    found[order[:-1]] |= same
    return found


def _digest(columns: Columns) -> str:
    """Return the SHA-256 of all columns, for a history without a file."""
    digest = hashlib.sha256()

    def add(part: object) -> None:
        parts = part if isinstance(part, tuple | list) else ()
        encoded = part if isinstance(part, bytes) else repr(part).encode() if not parts else b""
        digest.update(f"{len(parts)} {len(encoded)} ".encode() + encoded)
        for one in parts:
            add(one)

    add(columns.__getstate__())
    return digest.hexdigest()
