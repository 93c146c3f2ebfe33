"""Determines the initial values of a stream's keys, given by the user or revealed by reads.

Reads reveal initial values by the same rule as in whole histories (``native/readers/before.hpp``):
if a value of a key was read although no transaction wrote it, it is the initial value of the key
and the first in the version order. Each key has at most one such value. In a stream, the value can
be found only while all transactions that access the key are still in the window. If a later
transaction writes that value, the watch ends as *unknown*.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from isolang import _native
from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.before import list_and_register_keys, parse_initial_value, with_initial
from isolang.history.values import encode, key_name, preview
from isolang.watch.chain import Atom, InitialValue, LogOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns
    from isolang.history.history import History


class InitialState:
    """The initial values of a stream's keys.

    Raises:
        HistoryError: both arguments are given, or a text is not a value.

    Attributes:
        entries: for each key with a known initial value, whether the key holds a list, and the
            value or the elements of the list.
        known: the keys whose stated initial values have been applied; these are all keys of earlier
            batches.
    """

    def __init__(self, values: Sequence[str] = (), *, unwritten: bool = False) -> None:
        if values and unwritten:
            raise HistoryError(
                "--initial-value and --unwritten-initial cannot be combined (got both, expected "
                "one)"
            )
        self.unwritten = unwritten
        self.entries: dict[Atom, tuple[bool, tuple[Atom, ...]]] = {}
        self._texts = tuple(values)
        self._everywhere: list[Any] = []
        self._named: dict[str, Any] = {}
        self.known: set[Atom] = set()
        for key, value in map(parse_initial_value, values):
            if key is None:
                self._everywhere.append(value)
            else:
                self._named[key] = value
        if len(self._everywhere) > 1:
            raise HistoryError(
                f"--initial-value: {len(self._everywhere)} values for all keys (expected one; use "
                "KEY=VALUE for a key with another initial value)"
            )

    @property
    def is_stated(self) -> bool:
        """``True`` if the user requested an initial state."""
        return self.unwritten or bool(self._texts)

    def read_options(self, clock_error: int) -> LogOptions:
        """Return the options of this state as stored in the head of a chain.

        Args:
            clock_error: the largest difference between two sessions' clocks, in nanoseconds.
        """
        return LogOptions(
            clock_error=clock_error, initial_value=self._texts, unwritten_initial=self.unwritten
        )

    @classmethod
    def from_options(cls, reading: LogOptions) -> InitialState:
        """Return the initial state for the options stored in the head of a chain."""
        return cls(reading.initial_value, unwritten=reading.unwritten_initial)

    def summary(self) -> str:
        """Return a sentence about the initial state that the verdict assumes.

        Return an empty string if the user requested no initial state.
        """
        if self._texts:
            text = f"the keys held {', '.join(self._texts)} before the stream, as requested"
            came = {name for kind, payload in self.known for name in _key_names(kind, payload)}
            if missing := [name for name in self._named if name not in came]:
                text += f"; the stream contained no key {', '.join(map(repr, missing))}"
            return text
        if not self.unwritten:
            return ""
        keys = "1 key" if len(self.entries) == 1 else f"{len(self.entries):,} keys"
        return (
            "a value that was read but that no transaction wrote is taken as the initial "
            f"value, at most one for each key: {keys} had such a value"
        )

    # --- stated by the user ---

    def stated_values(self, history: History) -> list[InitialValue]:
        """Return the initial values stated by the user for the new keys of a batch.

        Raises:
            HistoryError: a key cannot hold its value.
        """
        if not self._texts:
            return []
        columns = history.columns
        new = [k for k in range(columns.n_keys()) if columns.key(k) not in self.known]
        if not new:
            return []
        lists, singles = list_and_register_keys(columns)
        found: list[InitialValue] = []
        for k in new:
            self.known.add(columns.key(k))
            names = _key_names(*columns.key(k))
            name = next((name for name in names if name in self._named), names[0])
            if name not in self._named and not self._everywhere:
                continue
            value = self._named.get(name, self._everywhere[0] if self._everywhere else None)
            is_list = isinstance(value, tuple)
            if value is None:
                continue
            if k in (singles if is_list else lists):
                if name in self._named:
                    kind = "a single value" if is_list else "a list"
                    raise HistoryError(
                        f"--initial-value {name}: {name} holds {kind} (got {preview(value)})"
                    )
                continue
            elements = value if is_list else (value,)
            atoms = tuple(encode(one, "--initial-value") for one in elements)
            found.append((columns.key(k), is_list, atoms))
        self.add(found)
        return found

    # --- revealed by reads ---

    def values_revealed_by(self, columns: Columns, touched: set[Atom]) -> list[InitialValue]:
        """Return the initial values revealed by the reads of a window.

        Raises:
            HistoryError: the initial value of a key is ambiguous, because only indeterminate
                transactions read it and they read different values.
        """
        import numpy as np

        if not self.unwritten:
            return []
        made = copy(columns)
        _, _, open_ = made.take_unwritten_for_initial()
        if open_:
            key = key_name(*columns.key(int(columns.op_key[open_[0]])))
            raise HistoryError(
                f"the initial value of {key} is ambiguous: only transactions of unknown outcome "
                "read it, and they read different values (expected --initial-value)"
            )
        found: list[InitialValue] = []
        changed = made.initial_value != columns.initial_value
        for k in np.flatnonzero(changed).tolist():
            found.append((columns.key(k), False, (made.value(int(made.initial_value[k])),)))
        lists = np.flatnonzero((made.op_value != columns.op_value) & (made.op_kind == c.READ_LIST))
        begun: set[int] = set()
        for op in lists.tolist():
            k = int(columns.op_key[op])
            old, new = _elements(columns, op), _elements(made, op)
            if k in begun or len(new) > len(old):
                continue
            begun.add(k)
            atoms = tuple(columns.value(a) for a in old[: len(old) - len(new)])
            found.append((columns.key(k), True, atoms))
        found = [one for one in found if one[0] not in self.entries and one[0] not in touched]
        self.add(found)
        return found

    def contradiction(self, columns: Columns) -> tuple[int, Atom] | None:
        """Return the row of a transaction that writes a revealed initial value, and the key.

        Return ``None`` if no transaction writes a revealed initial value.
        """
        import numpy as np

        if not self.unwritten or not self.entries:
            return None
        initial = []
        for k in range(columns.n_keys()):
            if (entry := self.entries.get(columns.key(k))) is not None:
                initial += [k << 32 | columns.intern_value(*atom) for atom in entry[1]]
        if not initial:
            return None
        writes = np.isin(columns.op_kind, (c.WRITE, c.APPEND)) & (columns.op_value >= 0)
        pairs = columns.op_key.astype(np.int64) << 32 | columns.op_value
        ops = np.flatnonzero(writes & np.isin(pairs, initial))
        if not len(ops):
            return None
        txn = int(np.searchsorted(columns.op_start, ops[0], side="right")) - 1
        return txn, columns.key(int(columns.op_key[ops[0]]))

    def add(self, entries: Sequence[InitialValue]) -> None:
        """Add initial values of keys.

        Raises:
            HistoryError: a key already has a different initial value.
        """
        for key, is_list, atoms in entries:
            if self.entries.setdefault(key, (is_list, atoms)) != (is_list, atoms):
                raise HistoryError(f"{key_name(*key)} held two values before the stream")

    def with_initial_values(self, history: History) -> History:
        """Return the history with the initial values of this state."""
        if not self.is_stated:
            return history
        columns = copy(history.columns)
        for k in range(columns.n_keys()):
            if (entry := self.entries.get(columns.key(k))) is None:
                continue
            atoms = [columns.intern_value(*atom) for atom in entry[1]]
            if entry[0]:
                columns.begin_list_with(k, atoms)
            else:
                columns.set_initial_value(k, atoms[0], alone=True)
        begun = replace(history, columns=columns, _lazy={})
        if self.unwritten:
            begun = with_initial(begun, unwritten=True)
        return replace(begun, initial=self.summary())


def _key_names(kind: int, payload: Any) -> tuple[str, str]:
    """Return a key's name for messages, and the same name without a keyword's colon."""
    name = key_name(kind, payload)
    return name, name.removeprefix(":")


def as_last_values(entries: Sequence[InitialValue]) -> bytes:
    """Return initial values in the format of ``LastValues``."""
    import numpy as np

    made = _native.Columns()
    made.begin_transaction(0, c.COMMITTED, 0, 0)
    for key, is_list, atoms in entries:
        k = made.intern_key(*key)
        for atom in atoms:
            made.add_op(c.APPEND if is_list else c.WRITE, k, made.intern_value(*atom), 0)
    order: NDArray[np.int64] = np.arange(len(entries) + 1, dtype=np.int64)
    return _native.LastValues().left_by(made, order, np.zeros(len(entries), dtype=np.int32))


def _elements(columns: Columns, op: int) -> list[int]:
    if columns.op_kind[op] != c.READ_LIST:
        return []
    value = int(columns.op_value[op])
    start = columns.list_start
    return columns.list_values[int(start[value]) : int(start[value + 1])].tolist()  # type: ignore[no-any-return]
