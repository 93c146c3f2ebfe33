"""Defines histories: columns with a record of how the input was interpreted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import field
from msgspec.structs import replace

from isolang.caveat import Caveat, caveats_in
from isolang.history import columns as c
from isolang.history.described import DescribedColumns
from isolang.history.transaction import Transaction
from isolang.history.values import Value, decode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns


# The largest number of transactions that a notebook shows, and of operations in each.
_SHOWN: Final = 20
_LONG: Final = 400  # the largest number of characters in a cell of a notebook's table


def read_with(options: Mapping[str, Any]) -> str:
    """Describe in words the reading options that differ from their defaults; empty if none does.

    >>> read_with({"clock_error": "2ms", "per_key": True, "initial": None})
    'read with clock_error "2ms", per_key'
    """
    phrases = [
        name if value is True else f"{name} {json.dumps(value, ensure_ascii=False)}"
        for name, value in sorted(options.items())
        if value not in (None, False, "", ())
    ]
    return f"read with {', '.join(phrases)}" if phrases else ""


class History(DescribedColumns, frozen=True, kw_only=True):
    """A history: transactions and operations in columns, with a record of how they were read.

    Attributes:
        initial: a sentence that says what a read of the initial state looks like.
        session: a sentence that says what a session is in this input.
        real_time: a sentence that says where real time comes from, or why the history has none.
        ignored: for each kind of input that was read but has no influence, a phrase with a count.
        notes: a phrase for each remark on how the input was interpreted, such as a detected variant
            of the format.
        sha256: the hash of the bytes that were read, with files in the order of their names.
        levels: the names of the library's levels that can judge the history; empty if all levels
            can.
        options: the options with which the history was read, without the format (``per_key``,
            ``clock_error`` …). Certificates contain these options, because the history must be read
            again in the same way.
        set_reads: if set-reads are implicit (``columns.implicit``), the set-reads that have become
            operations since the history was read, as pairs of a predicate read and a key.
    """

    initial: str = ""
    session: str = ""
    real_time: str = ""
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    sha256: str = ""
    levels: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    set_reads: tuple[tuple[int, int], ...] | Literal["all"] = ()

    @property
    def caveats(self) -> tuple[str, ...]:
        """The reader's remarks that change what a verdict means, such as that clocks may be wrong.

        If the user gave options for reading, one remark lists them. The part of a remark before
        its first colon is a summary.
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
        """Make a history from transactions as Python objects.

        >>> from isolang.history import History, Transaction
        >>> h = History.from_transactions([
        ...     Transaction([("w", "x", 1)], session="a"),
        ...     Transaction([("r", "x", None), ("r", "y", [1, 2])], session="b"),
        ... ])
        >>> h.counts()["committed"], h.describe_op(1), h.name_of(1)
        (2, 'r(x, nil)', 'T2')

        Args:
            transactions: the transactions, in any order that keeps the order of each session. The
                history has real time iff every committed transaction has both a begin and an end.
            initial: the initial value, if it is not nil: one value for all keys, or a mapping from
                keys to values.
            versions: ``"ordered"`` if the versions that operations state are integers, and later
                versions of a key have larger integers.
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
            missed: pairs of a predicate read and a key that the read did not return, in ascending
                order; an array of the shape int32[n, 2].

        Raises:
            ValueError: a set-read is an operation already, or no version of its key matches the
                predicate.
        """
        import numpy as np

        before = np.array(self.set_reads, np.int32).reshape(-1, 2)
        made = np.unique(np.concatenate([before, missed]), axis=0)
        pairs = tuple((int(s), int(key)) for s, key in made.tolist())
        as_read: History = self._lazy.get("as read", self)
        columns = as_read.columns.with_set_reads(missed if as_read is self else made)
        return replace(self, columns=columns, set_reads=pairs, _lazy={"as read": as_read})

    def written_out(self) -> History:
        """Return the history with all its implicit set-reads as operations."""
        if not self.columns.implicit:
            return self
        whole: History | None = self._lazy.get("written out")
        if whole is None:
            whole = replace(self, columns=self.columns.written_out(), set_reads="all", _lazy={})
            self._lazy["written out"] = whole
        return whole

    # --- sizes ---

    def counts(self) -> dict[str, int]:
        """Return the numbers of transactions, operations, sessions and keys.

        Transactions are counted in total and by status. The counts ``transactions`` and
        ``sessions`` do not include T0 or a declared initial transaction.
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
    def initial_transaction(self) -> int | None:
        """The transaction that was declared to be T0; ``None`` if there is none."""
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

    # --- back to Python objects ---

    def key_object(self, key: int) -> Value:
        """Return a key as a Python object."""
        return decode(*self.columns.key(key))

    def value_object(self, atom: int) -> Value:
        """Return a value as a Python object."""
        return decode(*self.columns.value(atom))

    def initial_values(self) -> dict[Value, Value]:
        """Return, by key, the initial values that are not nil."""
        import numpy as np

        atoms = self.columns.initial_value
        return {
            self.key_object(k): self.value_object(int(atoms[k]))
            for k in np.flatnonzero(atoms != c.NIL_ATOM).tolist()
        }

    def transaction(self, txn: int) -> Transaction:
        """Return the transaction with this number as a Python object."""
        from isolang.history.objects import transaction_object

        return transaction_object(self, txn)

    def transactions(self) -> Iterator[Transaction]:
        """Yield all transactions as Python objects, in the history's order."""
        for txn in range(self.columns.transactions()):
            yield self.transaction(txn)

    def version(self, op: int) -> Value:
        """Return the version that an operation states; ``None`` if it states no version."""
        columns = self.columns
        if not columns.has_versions or columns.op_version[op] == c.NO_VERSION:
            return None
        return decode(*columns.version(int(columns.op_version[op])))

    def without_versions(self) -> History:
        """Return a copy of the history without the versions that operations state."""
        if not self.columns.has_versions:
            return self
        from isolang.history.versions import version_notes

        phrases = version_notes(self.columns)
        notes = tuple(note for note in self.notes if note not in phrases)
        return replace(self, columns=self.columns.without_versions(), notes=notes, _lazy={})


def _digest(columns: Columns) -> str:
    """Return the SHA-256 of all columns, for a history that was not read from a file."""
    digest = hashlib.sha256()

    def add(part: object) -> None:
        parts = part if isinstance(part, tuple | list) else ()
        encoded = part if isinstance(part, bytes) else repr(part).encode() if not parts else b""
        digest.update(f"{len(parts)} {len(encoded)} ".encode() + encoded)
        for one in parts:
            add(one)

    add(columns.__getstate__())
    return digest.hexdigest()
