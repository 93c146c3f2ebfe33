"""Reorders the last writers of keys in parts, as later reads require."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from isolang._native import LastValues, LooseKeys, entries_with, exchanged_order
from isolang.certify.proofs import Witness
from isolang.watch.chain import Chain, Part, PartColumns, WrittenPart, unpack_columns
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

#: For each part, by its number, the reads of a window that another order in it may explain.
Reads: TypeAlias = "dict[int, NDArray[np.int64]]"

_RECENT: Final = 16  # the largest number of parts kept in memory, to put them back faster
_RECENT_OPERATIONS: Final = 500_000  # the largest number of operations in these parts


@dataclass(slots=True)
class RecentPart:
    """A part kept in memory.

    Attributes:
        aside: the transactions that the cut removed without adding them to the part.
        columns: the members as columns whose initial values are those left by earlier parts.
        before: the last values that the part replaced, in the format of ``LastValues``.
    """

    entry: Part
    members: Rows
    aside: Rows
    columns: Columns
    witness: Witness
    before: bytes

    def packed(self) -> bytes:
        """Return the columns of the part's entry."""
        import numpy as np

        witness = self.witness
        return PartColumns(
            members=self.members.at,
            aside=self.aside.at,
            source=witness.source.astype(np.int64),
            # Keys not accessed by any member come last, and their orders are left out.
            order_start=witness.order_start[: self.members.columns.n_keys() + 1],
            order_txn=witness.order_txn.astype(np.int64),
            before=self.before,
        ).packed()


class RecentParts:
    """The last parts of a chain, kept in memory."""

    def __init__(self, chain: Chain, log: Log) -> None:
        self._chain, self._log = chain, log
        self._parts: deque[RecentPart] = deque(maxlen=_RECENT)

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, part: RecentPart) -> None:
        """Add the next part to the chain; drop the earliest parts if they take too much memory."""
        self._chain.add(part)
        self._parts.append(part)
        while sum(one.columns.operations() for one in self._parts) > _RECENT_OPERATIONS:
            self._parts.popleft()
        self._chain.write(but=len(self._parts))

    def parts_from(self, first: int) -> list[RecentPart]:
        """Return the parts in memory whose index in the chain is at least ``first``."""
        start = len(self._chain) - len(self._parts)
        return list(self._parts)[max(0, first - start) :]

    def take_back(self, part: PartColumns) -> tuple[Rows, Rows]:
        """Remove the last part. Return its members and the other transactions of its cut."""
        if self._parts:
            last = self._parts.pop()
            return last.members, last.aside
        return self._log.rows_at(part.members), self._log.rows_at(part.aside)


class Exchanges:
    """The version orders in a chain's parts that may change because of later reads."""

    def __init__(self, chain: Chain, values: Values, recent: RecentParts, log: Log) -> None:
        """Create an empty collection of version orders."""
        self._chain, self._values, self._recent, self._log = chain, values, recent, log
        self._loose = LooseKeys()

    def add(self, part: Columns, witness: Witness) -> None:
        """Record the keys in the last part whose last writer may be a different transaction."""
        self._loose.add(part, witness.order_start, len(self._chain) - 1)

    def forget(self) -> None:
        """Forget the keys of parts that are no longer in the chain."""
        self._loose.forget(len(self._chain))

    def unexplained(self, window: Columns) -> Reads:
        """Return the reads of a window that another version order in some parts may explain."""
        import numpy as np

        if not len(self._loose):
            return {}
        self._values.fetch(window)
        reads, part_of = self._loose.unexplained(window, self._values.last)
        return {part: reads[part_of == part] for part in np.unique(part_of).tolist()}

    def apply(self, window: Columns, shown: Reads, holds: _Holds) -> int:
        """Reorder the last writers of keys in the parts as required by the reads of a window.

        SOUND BECAUSE a part with changed orders must satisfy the level by itself, like every part,
        and no later part reads the keys whose orders changed, so all later parts still satisfy the
        level (docs/routes.md, *Exchanges*).
        """
        first = min(shown)
        parts = [*self._read_parts(first, shown), *self._recent.parts_from(first)]
        changed: list[int] = []
        changes = b""
        for number, reads in shown.items():
            part = parts[number - first]
            assert isinstance(part, RecentPart)
            replaced = self._exchange(part, window, reads, changes, holds)
            if replaced is not None:
                changed.append(number)
                changes += replaced
        self._values.last.replace(changes)
        if changed:
            self._chain.rewrite(changed[0], parts[changed[0] - first :])
            self._chain.write(but=len(self._recent))
        return len(changed)

    def _read_parts(self, first: int, shown: Collection[int]) -> list[RecentPart | WrittenPart]:
        """Return the parts from number ``first`` on that are not in memory.

        The transactions of a part are read from the log again only if its number is in ``shown``.
        """
        entries = self._chain.parts_from(first, len(self._chain) - len(self._recent))
        if not entries:
            return []
        written = [unpack_columns(entry, "the chain") for entry in entries]
        recent = self._recent.parts_from(first)
        if self._values.spilled:
            for part in written:
                self._values.fetch(self._log.rows_at(part.members).columns)
            for one in recent:
                self._values.fetch(one.members.columns)
        # The initial values of a part's columns are those before the part, so restore them.
        last = self._values.last
        replaced = [part.before for part in written] + [one.before for one in recent]
        again = [last.replace(before) for before in reversed(replaced)]
        found: list[RecentPart | WrittenPart] = []
        for number, (entry, part) in enumerate(zip(entries, written, strict=True), first):
            if number in shown:
                members, aside = self._log.rows_at(part.members), self._log.rows_at(part.aside)
                columns, _ = columns_after_parts(members, last)
                own = Witness.of(part.source, part.order_start, part.order_txn)
                found.append(RecentPart(entry, members, aside, columns, own, part.before))
            else:
                found.append(WrittenPart(entry))
            last.replace(again.pop())
        while again:
            last.replace(again.pop())
        return found

    def _exchange(
        self,
        part: RecentPart,
        window: Columns,
        reads: NDArray[np.int64],
        changes: bytes,
        holds: _Holds,
    ) -> bytes | None:
        """Reorder the writers in a part as required by reads.

        No other part after this one accesses a key that these reads concern. An exchange therefore
        changes only the part, the last values of these keys, and the values that the next of these
        parts replace.
        """
        before = LastValues.of_reads(part.before, window, reads)
        before.replace(changes)
        found, keys = self._order_for_reads(part, window, reads, before, holds)
        if found is None:
            if not changes:
                return None
            found = part.witness  # the lists left by earlier parts have changed
        part.witness = found
        if changes:
            part.before = entries_with(part.before, changes)
        return _last_values_of(part.columns, found, keys, before)

    def _order_for_reads(
        self,
        part: RecentPart,
        window: Columns,
        reads: NDArray[np.int64],
        before: LastValues,
        holds: _Holds,
    ) -> tuple[Witness | None, NDArray[np.int32]]:
        """Return a part's witness with the orders required by the reads, and the affected keys.

        The witness is ``None`` if no order of the part's writers explains the reads, or if the part
        violates the level under that order. The affected keys are the part's keys that the reads
        concern.
        """
        import numpy as np

        own = part.witness
        order, keys = exchanged_order(
            part.columns, own.order_start, own.order_txn, window, reads, before
        )
        if not len(order):
            return None, keys
        other = Witness.of(own.source, own.order_start, order)
        if not np.array_equal(order, own.order_txn) and not holds(
            part.members, part.columns, other
        ):
            return None, keys
        return other, keys


def _last_values_of(
    part: Columns, witness: Witness, keys: NDArray[np.int32], before: LastValues
) -> bytes:
    """Return the last values that a part leaves for some of its keys."""
    import numpy as np

    size = np.diff(witness.order_start)
    chosen = np.zeros(len(size), bool)
    chosen[keys] = True
    start = np.concatenate([[0], np.cumsum(np.where(chosen, size, 0))])
    return before.left_by(part, start, witness.order_txn[np.repeat(chosen, size)])
