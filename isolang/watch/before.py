"""What was there before a stream: S0, as the user says it or as the reads show it.

The rule by which reads show it is that of whole histories (``native/readers/before.hpp``): a key
holds at most one value that nobody wrote, and it is the first in its order. In a stream it is found
while all that touches the key is still in the window. A later write of the same value takes it
back: then nothing is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from isolang import _native
from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.before import kinds_of_keys, parsed, with_initial
from isolang.history.values import encode, key_name, shown
from isolang.watch.chain import Atom, Held, HowRead

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns
    from isolang.history.history import History


class Before:
    """What the keys of a stream held at first.

    Args:
        values: ``V`` for all keys, or ``KEY=V``, as ``--initial-value`` takes them.
        unwritten: whether reads show it.

    Raises:
        HistoryError: both are asked for, or something is no value.

    Attributes:
        held: of each key, so far: whether it is a list, and its value or the elements.
    """

    def __init__(self, values: Sequence[str] = (), *, unwritten: bool = False) -> None:
        if values and unwritten:
            raise HistoryError(
                "initial values that are given, and those that nobody wrote (expected one of "
                "--initial-value and --unwritten-initial)"
            )
        self.unwritten = unwritten
        self.held: dict[Atom, tuple[bool, tuple[Atom, ...]]] = {}
        self._texts = tuple(values)
        self._everywhere: list[Any] = []
        self._named: dict[str, Any] = {}
        self.known: set[Atom] = set()  # keys that have come, or that a part or an old window has
        for key, value in map(parsed, values):
            if key is None:
                self._everywhere.append(value)
            else:
                self._named[key] = value
        if len(self._everywhere) > 1:
            raise HistoryError(
                f"--initial-value: {len(self._everywhere)} values of all keys (expected one, and "
                "KEY=VALUE for keys that held another one)"
            )

    @property
    def asked(self) -> bool:
        """Whether there is anything to say."""
        return self.unwritten or bool(self._texts)

    def reading(self, clock_error: int) -> HowRead:
        """As the head of a chain has it, with the nanoseconds by which clocks may differ."""
        return HowRead(
            clock_error=clock_error, initial_value=self._texts, unwritten_initial=self.unwritten
        )

    @classmethod
    def read(cls, reading: HowRead) -> Before:
        """The inverse of :meth:`reading`."""
        return cls(reading.initial_value, unwritten=reading.unwritten_initial)

    def told(self) -> str:
        """What the verdict rests on, in words; empty for nothing."""
        if self._texts:
            said = f"the keys held {', '.join(self._texts)} before the stream, as asked for"
            came = {name for kind, payload in self.known for name in _names(kind, payload)}
            if missing := [name for name in self._named if name not in came]:
                said += f"; no key {', '.join(map(repr, missing))} came"
            return said
        if not self.unwritten:
            return ""
        keys = "1 key" if len(self.held) == 1 else f"{len(self.held):,} keys"
        return (
            "what was read and nobody wrote was there before the stream, at most one value of a "
            f"key: {keys} held one"
        )

    # --- what is said ---

    def declared(self, history: History) -> list[Held]:
        """What was said of the keys of a batch that are new.

        Raises:
            HistoryError: a key cannot hold it.
        """
        if not self._texts:
            return []
        columns = history.columns
        new = [k for k in range(columns.n_keys()) if columns.key(k) not in self.known]
        if not new:
            return []
        lists, singles = kinds_of_keys(columns)
        found: list[Held] = []
        for k in new:
            self.known.add(columns.key(k))
            names = _names(*columns.key(k))
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
                        f"--initial-value {name}: {name} holds {kind} (got {shown(value)})"
                    )
                continue
            given = value if is_list else (value,)
            atoms = tuple(encode(one, "--initial-value") for one in given)
            found.append((columns.key(k), is_list, atoms))
        self.take(found)
        return found

    # --- what reads show ---

    def shown(self, columns: Columns, touched: set[Atom]) -> list[Held]:
        """What the reads of a window show, of keys that are in it alone.

        Args:
            columns: all that is not cut away, what is in flight, too; as the log has it.
            touched: keys of what is cut away.

        Raises:
            HistoryError: only unknown outcomes show it, and they differ.
        """
        import numpy as np

        if not self.unwritten:
            return []
        made = copy(columns)
        _, _, open_ = made.take_unwritten_for_initial()
        if open_:
            key = key_name(*columns.key(int(columns.op_key[open_[0]])))
            raise HistoryError(
                f"what {key} held before the stream cannot be told: only transactions of unknown "
                "outcome show it, and they differ (expected --initial-value)"
            )
        found: list[Held] = []
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
        found = [one for one in found if one[0] not in self.held and one[0] not in touched]
        self.take(found)
        return found

    def written(self, columns: Columns) -> tuple[int, Atom] | None:
        """A transaction that writes what was taken for the value of before, and the key."""
        import numpy as np

        if not self.unwritten or not self.held:
            return None
        wanted = []
        for k in range(columns.n_keys()):
            if (held := self.held.get(columns.key(k))) is not None:
                wanted += [k << 32 | columns.intern_value(*atom) for atom in held[1]]
        if not wanted:
            return None
        writes = np.isin(columns.op_kind, (c.WRITE, c.APPEND)) & (columns.op_value >= 0)
        pairs = columns.op_key.astype(np.int64) << 32 | columns.op_value
        ops = np.flatnonzero(writes & np.isin(pairs, wanted))
        if not len(ops):
            return None
        txn = int(np.searchsorted(columns.op_start, ops[0], side="right")) - 1
        return txn, columns.key(int(columns.op_key[ops[0]]))

    def take(self, some: Sequence[Held]) -> None:
        """Take over what keys held.

        Raises:
            HistoryError: a key held two.
        """
        for key, is_list, atoms in some:
            if self.held.setdefault(key, (is_list, atoms)) != (is_list, atoms):
                raise HistoryError(f"{key_name(*key)} held two values before the stream")

    # --- for those who judge ---

    def in_(self, history: History) -> History:
        """A few transactions of the log as a history that began so."""
        if not self.asked:
            return history
        columns = copy(history.columns)
        for k in range(columns.n_keys()):
            if (held := self.held.get(columns.key(k))) is None:
                continue
            atoms = [columns.intern_value(*atom) for atom in held[1]]
            if held[0]:
                columns.begin_list_with(k, atoms)
            else:
                columns.set_initial_value(k, atoms[0], alone=True)
        begun = replace(history, columns=columns, _lazy={})
        if self.unwritten:
            begun = with_initial(begun, unwritten=True)
        return replace(begun, initial=self.told())


def _names(kind: int, payload: Any) -> tuple[str, str]:
    """What a key may be called: as messages call it, and without the colon of a keyword."""
    name = key_name(kind, payload)
    return name, name.removeprefix(":")


def as_left(some: Sequence[Held]) -> bytes:
    """What keys held, as ``LastValues`` has it."""
    import numpy as np

    made = _native.Columns()
    made.begin_transaction(0, c.COMMITTED, 0, 0)
    for key, is_list, atoms in some:
        k = made.intern_key(*key)
        for atom in atoms:
            made.add_op(c.APPEND if is_list else c.WRITE, k, made.intern_value(*atom), 0)
    order: NDArray[np.int64] = np.arange(len(some) + 1, dtype=np.int64)
    return _native.LastValues().left_by(made, order, np.zeros(len(some), dtype=np.int32))


def _elements(columns: Columns, op: int) -> list[int]:
    if columns.op_kind[op] != c.READ_LIST:
        return []
    value = int(columns.op_value[op])
    start = columns.list_start
    return columns.list_values[int(start[value]) : int(start[value + 1])].tolist()  # type: ignore[no-any-return]
