"""Defines histories: columns, with details of how the input was interpreted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import field
from msgspec.structs import replace

from isolang.arrays import np
from isolang.caveat import Caveat, caveats_in
from isolang.history import columns as c
from isolang.history.described import DescribedColumns
from isolang.history.not_seen import lacking_in_words, not_allowed
from isolang.history.transaction import Transaction
from isolang.history.values import Value, decode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang._native import Columns


# The maximum number of transactions, and of operations per transaction, shown in a notebook.
_SHOWN: Final = 20
_LONG: Final = 400  # the maximum number of characters in a table cell in a notebook


# The entries of ``_lazy`` that are about the file.
_OF_THE_FILE: Final = ("statements", "remarks", "units", "possible", "all facts")
_CHANGE_NOTHING: Final = (("superseded_reads", "count"),)


def _json_text(value: object) -> str:
    import json  # needed only for options

    return json.dumps(value, ensure_ascii=False)


def read_with(options: Mapping[str, Any]) -> str:
    """Describe in words the reading options that change a history; empty if there are none.

    >>> read_with({"clock_error": "2ms", "per_key": True, "initial": None})
    'read with clock_error "2ms", per_key'
    """
    phrases = [
        name if value is True else f"{name} {_json_text(value)}"
        for name, value in sorted(options.items())
        if value not in (None, False, "", ()) and (name, value) not in _CHANGE_NOTHING
    ]
    return f"read with {', '.join(phrases)}" if phrases else ""


class History(DescribedColumns, frozen=True, kw_only=True):
    """A history: transactions and operations in columns, with details of how they were read.

    Attributes:
        initial: a sentence describing what a read of the initial state looks like.
        session: a sentence explaining what counts as a session in this input.
        real_time: a sentence explaining where real time comes from, or why the history has none.
        ignored: for each kind of input that was read but has no effect on verdicts, a phrase with a
            count.
        notes: phrases about how the input was interpreted, for example which variant of the format
            was detected.
        sha256: the hash of the bytes read, with files ordered by name.
        levels: the names of the library levels that the history can be checked against; empty if it
            can be checked against all of them.
        options: the options used to read the history, except the format (``per_key``,
            ``clock_error`` …). Certificates contain these options, so that the history can be read
            again in the same way.
        set_reads: if set-reads are implicit (``columns.implicit``), those that have been made
            operations since the history was read, as pairs of a predicate read and a key.
        possible_facts: the number of recorded operations that only may have decided an answer
            (``:perhaps``). Unless the reading option ``possible_facts`` is ``count``, they are no
            operations of the history.
        unseen: what the observer of a recorded application could not see, as phrases by kind.
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
    possible_facts: int = 0
    unseen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def caveats(self) -> tuple[str, ...]:
        """The reader's remarks that affect what a verdict means, such as that clocks may be wrong.

        If the user gave reading options, one remark lists them. The part of a remark before the
        first colon is its summary.
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
        """Make a history from Python transaction objects.

        >>> from isolang.history import History, Transaction
        >>> h = History.from_transactions([
        ...     Transaction([("w", "x", 1)], session="a"),
        ...     Transaction([("r", "x", None), ("r", "y", [1, 2])], session="b"),
        ... ])
        >>> h.counts()["committed"], h.describe_op(1), h.name_of(1)
        (2, 'r(x, nil)', 'T2')

        Args:
            transactions: the transactions, in any order that preserves each session's order. The
                history has real time iff every committed transaction has both a begin and an end.
            initial: the initial value, if it is not nil: one value for all keys, or a mapping from
                keys to values.
            versions: ``"ordered"`` if the versions stated by operations are integers that increase
                with each new version of a key.
            name: the history's name in messages.

        Raises:
            HistoryError: an item is not a valid transaction; the message says which one.
        """
        from isolang.history.build import build

        transactions = list(transactions)
        built = build(transactions, initial=initial, versions=versions, name=name)
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
            _lazy={"units": {i: t.unit for i, t in enumerate(transactions, 1) if t.unit}},
        )

    # --- predicate reads whose set-reads are implicit ---

    def with_set_reads(self, missed: NDArray[np.int32]) -> History:
        """Return the history with more of its implicit set-reads turned into operations.

        Operations are numbered as if all set-reads turned into operations so far had been added
        together.

        Args:
            missed: int32[n, 2]; pairs of a predicate read and a key that it did not return, in
                ascending order.

        Raises:
            ValueError: a set-read is already an operation, or no version of its key matches the
                predicate.
        """
        before = np.array(self.set_reads, np.int32).reshape(-1, 2)
        made = np.unique(np.concatenate([before, missed]), axis=0)
        pairs = tuple((int(s), int(key)) for s, key in made.tolist())
        as_read: History = self._lazy.get("as read", self)
        columns = as_read.columns.with_set_reads(missed if as_read is self else made)
        return replace(self, columns=columns, set_reads=pairs, _lazy={"as read": as_read})

    def written_out(self) -> History:
        """Return the history with all its implicit set-reads turned into operations."""
        if not self.columns.implicit:
            return self
        if "as read" in self._lazy:
            as_read: History = self._lazy["as read"]
            return as_read.written_out()
        whole: History | None = self._lazy.get("written out")
        if whole is None:
            whole = replace(
                self,
                columns=self.columns.written_out(),
                set_reads="all",
                _lazy=self.about_the_file(),
            )
            self._lazy["written out"] = whole
        return whole

    def about_the_file(self) -> dict[str, Any]:
        """Return what is known of the file's lines, as ``_lazy`` of a copy with other columns."""
        return {name: self._lazy[name] for name in _OF_THE_FILE if name in self._lazy}

    def harmful_unseen(self) -> dict[str, tuple[str, ...]]:
        """Return what was not seen and makes a valid verdict unknown, as phrases by kind."""
        return not_allowed(self.unseen, self.options.get("allow_unseen", ()))

    def with_all_facts(self) -> History | None:
        """Return the history that also has the operations that only may have decided an answer.

        Return ``None`` if there are none, or if a reading option says what to do with them.

        Raises:
            HistoryError: the operations cannot be read.
        """
        read: Callable[[], History] | None = self._lazy.get("all facts")
        return None if read is None else read()

    def lacking(self) -> str:
        """Return in words what happened, or may have, besides the operations; empty if nothing.

        Kinds that cannot change a verdict count, because they matter in other runs.
        """
        is_open = "possible_facts" not in self.options
        allowed = self.options.get("allow_unseen", ())
        return lacking_in_words(self.possible_facts if is_open else 0, self.unseen, allowed)

    @property
    def lacks_facts(self) -> bool:
        """``True`` if the facts that only may have decided an answer are neither here nor known."""
        open_ = self.possible_facts > 0 and "possible_facts" not in self.options
        return open_ and "all facts" not in self._lazy

    def is_possible_fact(self, op: int) -> bool:
        """Return whether an operation only may have decided an answer (``:perhaps``)."""
        from isolang.history.objects import operation_indices

        places: Mapping[int, frozenset[int]] = self._lazy.get("possible", {})
        txn = self.transaction_of(op)
        of_line = places.get(int(self.columns.txn_position[txn]))
        if not of_line:
            return False
        index = operation_indices(self, txn)[op - self.operations_of(txn).start]
        carried = () if self.carrying is None else self.carrying.reads
        return index - sum(read.reader == txn for read in carried) in of_line

    # --- sizes ---

    def counts(self) -> dict[str, int]:
        """Return the number of transactions, operations, sessions and keys.

        Transactions are counted in total and by status. The counts ``transactions`` and
        ``sessions`` do not include T0 or a declared initial transaction.
        """
        by_status = bytes(self.columns.txn_status)
        counts = {name: by_status.count(code) for code, name in enumerate(c.STATUS_NAMES)}
        sessions = self.columns.txn_session.tolist()
        if counts["initial"]:
            sessions = [s for s, code in zip(sessions, by_status, strict=True) if code != c.INITIAL]
        return {
            "transactions": self.columns.transactions() - counts["initial"],
            **counts,
            "operations": self.columns.operations(),
            "sessions": len(set(sessions)),
            "keys": self.columns.n_keys(),
        }

    @property
    def initial_transaction(self) -> int | None:
        """The transaction declared to be T0, or ``None`` if there is none."""
        number = bytes(self.columns.txn_status).find(c.INITIAL)
        return number if number >= 0 else None

    def __repr__(self) -> str:
        counts = self.counts()
        many = ", ".join(
            f"{counts[what]:,} {what if counts[what] != 1 else what[:-1]}"
            for what in ("transactions", "operations", "sessions", "keys")
        )
        return f"<History {self.name} ({self.format}): {many}>"

    def _repr_html_(self) -> str:
        """Return a table of the first transactions and their operations, for notebooks."""
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
        """Return the initial values other than nil, by key."""
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
        """Return the version stated by an operation, or ``None`` if it states none."""
        columns = self.columns
        if not columns.has_versions or columns.op_version[op] == c.NO_VERSION:
            return None
        return decode(*columns.version(int(columns.op_version[op])))

    def without_versions(self) -> History:
        """Return a copy of the history without the versions stated by operations."""
        if not self.columns.has_versions:
            return self
        from isolang.history.versions import version_notes

        phrases = version_notes(self.columns)
        notes = tuple(note for note in self.notes if note not in phrases)
        return replace(
            self, columns=self.columns.without_versions(), notes=notes, _lazy=self.about_the_file()
        )


def _digest(columns: Columns) -> str:
    """Return the SHA-256 digest of all columns, for a history not read from a file."""
    import hashlib

    digest = hashlib.sha256()

    def add(part: object) -> None:
        parts = part if isinstance(part, tuple | list) else ()
        encoded = part if isinstance(part, bytes) else repr(part).encode() if not parts else b""
        digest.update(f"{len(parts)} {len(encoded)} ".encode() + encoded)
        for one in parts:
            add(one)

    add(columns.__getstate__())
    return digest.hexdigest()
