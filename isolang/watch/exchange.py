"""Reorders the last writers of keys in parts, as later reads require."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from isolang._native import LastValues, LooseKeys, exchanged_order
from isolang.certify.proofs import Witness
from isolang.watch.chain import Chain, Part, PartColumns, unpack_columns
from isolang.watch.judging import columns_after_parts
from isolang.watch.state import Values
from isolang.watch.stream.rows import Rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns
    from isolang.watch.stream.log import Log

#: Returns whether a witness proves that a part satisfies the level.
_Holds: TypeAlias = "Callable[[Rows, Columns, Witness], bool]"

_RECENT: Final = 16  # the largest number of parts kept in memory, to put them back faster
_RECENT_OPERATIONS: Final = 500_000  # the largest number of operations in these parts


@dataclass(slots=True)
class RecentPart:
    """A part kept in memory.

    Attributes:
        members: the transactions of the part, as recorded in the log.
        aside: the transactions that the cut removed without adding them to the part.
        columns: the members as columns whose initial values are those left by earlier parts.
        witness: the witness that the part satisfies the level.
    """

    members: Rows
    aside: Rows
    columns: Columns
    witness: Witness


class RecentParts:
    """The last parts of a chain, kept in memory."""

    def __init__(self, chain: Chain, log: Log) -> None:
        self._chain, self._log = chain, log
        self._parts: deque[RecentPart] = deque(maxlen=_RECENT)

    def add(self, part: RecentPart) -> None:
        """Add the last part of the chain; drop the earliest parts if they take too much memory."""
        self._parts.append(part)
        while sum(one.columns.operations() for one in self._parts) > _RECENT_OPERATIONS:
            self._parts.popleft()

    def find(self, number: int) -> RecentPart | None:
        """Return a part by its index in the chain; ``None`` if it is not in memory."""
        behind = len(self._chain) - number
        return self._parts[-behind] if behind <= len(self._parts) else None

    def members(self, number: int, part: PartColumns) -> Rows:
        """Return the transactions of a part; read the log again if they are not in memory."""
        found = self.find(number)
        return self._log.rows_at(part.members) if found is None else found.members

    def take_back(self, part: PartColumns) -> tuple[Rows, Rows]:
        """Remove the last part. Return its members and the other transactions of its cut."""
        if self._parts:
            last = self._parts.pop()
            return last.members, last.aside
        return self._log.rows_at(part.members), self._log.rows_at(part.aside)


class Exchanges:
    """The version orders in a chain's parts that may change because of later reads."""

    def __init__(self, chain: Chain, values: Values, recent: RecentParts) -> None:
        """Create an empty collection of version orders.

        Args:
            chain: the chain.
            values: the last value of each key that the parts wrote.
            recent: the parts in memory.
        """
        self._chain, self._values, self._recent = chain, values, recent
        self._loose = LooseKeys()

    def add(self, part: Columns, witness: Witness) -> None:
        """Record the keys in the last part whose last writer may be a different transaction."""
        self._loose.add(part, witness.order_start, len(self._chain) - 1)

    def forget(self) -> None:
        """Forget the keys of parts that are no longer in the chain."""
        self._loose.forget(len(self._chain))

    def may_explain(self, window: Columns) -> bool:
        """Return whether another version order in the parts may explain some read in a window."""
        if not len(self._loose):
            return False
        self._values.fetch(window)
        return bool(len(self._loose.unexplained(window, self._values.last)[0]))

    def apply(self, window: Columns, holds: _Holds) -> int:
        """Reorder the last writers of keys in the parts as required by the reads of a window.

        SOUND BECAUSE a part with changed orders must satisfy the level by itself, like every part,
        and no later part reads the keys whose orders changed, so all later parts still satisfy the
        level (docs/routes.md, *Exchanges*).

        Args:
            window: the transactions of the window, as recorded in the log.
            holds: returns whether a witness proves that a part satisfies the level.

        Returns:
            The number of parts with a changed order.
        """
        import numpy as np

        reads, part_of = self._loose.unexplained(window, self._values.last)
        shown = {part: reads[part_of == part] for part in np.unique(part_of).tolist()}
        first = min(shown)
        entries = self._chain.parts_from(first)
        if all(self._recent.find(number) is not None for number in shown):
            changed = self._exchange_recent(first, entries, window, shown, holds)
        else:
            changed = self._exchange_all(first, entries, window, shown, holds)
        if changed:
            self._chain.exchange(first + changed[0], entries[changed[0] :])
        return len(changed)

    def _exchange_recent(
        self,
        first: int,
        entries: list[Part],
        window: Columns,
        shown: dict[int, NDArray[np.int64]],
        holds: _Holds,
    ) -> list[int]:
        """Reorder the writers in parts kept in memory, and return the indices of the changed parts.

        No other part after them accesses a key that these reads concern. An exchange therefore
        changes only these parts and the last values of these keys: the current values, and the
        values before each of these parts after the first.
        """
        changed: list[int] = []
        moved: list[bytes] = []
        for number, reads in shown.items():
            recent = self._recent.find(number)
            assert recent is not None
            entry = entries[number - first]
            part = unpack_columns(entry, "the chain")
            before = LastValues()
            for values in (part.before, *moved):
                before.replace(values)
            found, keys = self._order_for_reads(
                recent.members, recent.columns, recent.witness, window, reads, before, holds
            )
            if found is None:
                if not moved:
                    continue
                found = recent.witness  # the lists left by earlier parts have changed
            new_values = _last_values_of(recent.columns, found, keys, before)
            if moved:
                all_values = before.left_by(recent.columns, found.order_start, found.order_txn)
                part = msgspec.structs.replace(part, before=before.replace(all_values))
            moved.append(new_values)
            recent.witness = found
            changed.append(number - first)
            entries[changed[-1]] = _with_order(entry, part, found)
        for values in moved:
            self._values.last.replace(values)
        return changed

    def _exchange_all(
        self,
        first: int,
        entries: list[Part],
        window: Columns,
        shown: dict[int, NDArray[np.int64]],
        holds: _Holds,
    ) -> list[int]:
        """Reorder the writers in the entries of parts, and return the indices of the changed parts.

        The values before each of these parts are restored first, because a list's order in a part
        depends on them, and so do the values that later parts replaced.
        """
        parts = [unpack_columns(entry, "the chain") for entry in entries]
        if self._values.spilled:
            for number, part in enumerate(parts, first):
                self._values.fetch(self._recent.members(number, part).columns)
        last = self._values.last
        again = [last.replace(part.before) for part in reversed(parts)]
        changed = []
        for i, part in enumerate(parts):
            after = again.pop()
            found = None
            if (reads := shown.get(first + i)) is not None:
                members = self._recent.members(first + i, part)
                columns, _ = columns_after_parts(members, last)
                own = Witness.of(part.source, part.order_start, part.order_txn)
                found, _ = self._order_for_reads(members, columns, own, window, reads, last, holds)
            if found is None:
                last.replace(after)
                continue
            # Even if the order is unchanged, lists may differ, because earlier parts may have
            # changed.
            before = last.replace(last.left_by(columns, found.order_start, found.order_txn))
            changed.append(i)
            now = msgspec.structs.replace(part, before=before)
            entries[i] = _with_order(entries[i], now, found)
            if (recent := self._recent.find(first + i)) is not None:
                recent.witness = found
        return changed

    def _order_for_reads(  # noqa: PLR0917 — parallel columns
        self,
        members: Rows,
        columns: Columns,
        own: Witness,
        window: Columns,
        reads: NDArray[np.int64],
        before: LastValues,
        holds: _Holds,
    ) -> tuple[Witness | None, NDArray[np.int32]]:
        """Return a part's witness with the orders required by the reads, and the affected keys.

        The witness is ``None`` if no order of the part's writers explains the reads, or if the part
        violates the level under that order. The affected keys are the part's keys that the reads
        concern.

        Args:
            members: the transactions of the part, as recorded in the log.
            columns: the members as columns whose initial values are those left by earlier parts.
            own: the witness of the part.
            window: the transactions of the window, as recorded in the log.
            reads: the reads of the window.
            before: the values that the keys of these reads had before the part.
            holds: returns whether a witness proves that a part satisfies the level.
        """
        import numpy as np

        order, keys = exchanged_order(
            columns, own.order_start, own.order_txn, window, reads, before
        )
        if not len(order):
            return None, keys
        other = Witness.of(own.source, own.order_start, order)
        if not np.array_equal(order, own.order_txn) and not holds(members, columns, other):
            return None, keys
        return other, keys


def _with_order(entry: Part, part: PartColumns, witness: Witness) -> Part:
    """Return a part's entry with the version orders of a witness.

    Args:
        entry: the entry of the part in the chain.
        part: the columns of the entry, except that ``before`` may have been replaced.
        witness: the witness with the version orders.
    """
    import numpy as np

    now = msgspec.structs.replace(part, order_txn=witness.order_txn.astype(np.int64))
    return msgspec.structs.replace(entry, columns=now.packed())


def _last_values_of(
    part: Columns, witness: Witness, keys: NDArray[np.int32], before: LastValues
) -> bytes:
    """Return the last values that a part leaves for some of its keys.

    Args:
        part: the columns of the part.
        witness: the witness of the part.
        keys: the keys.
        before: the values of these keys before the part.
    """
    import numpy as np

    size = np.diff(witness.order_start)
    chosen = np.zeros(len(size), bool)
    chosen[keys] = True
    start = np.concatenate([[0], np.cumsum(np.where(chosen, size, 0))])
    return before.left_by(part, start, witness.order_txn[np.repeat(chosen, size)])
