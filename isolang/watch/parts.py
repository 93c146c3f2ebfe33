"""Manages the parts that the cuts of a watch removed, and the values that the parts left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from isolang._native import LastValues, LooseKeys, exchanged_order
from isolang.certify.proofs import Witness
from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.history import History
from isolang.pipeline.observed import observed
from isolang.watch.chain import NAME, Atom, Chain, Head, InitialValue, Part, Taken, taken
from isolang.watch.initial_state import InitialState, as_last_values
from isolang.watch.judging import opened
from isolang.watch.state import Saved, Values, saved_in
from isolang.watch.stream.rows import Rows, restored, saved

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns
    from isolang.watch.stream import Batch, Stream
    from isolang.watch.window import Window

#: Returns whether a witness proves that a part satisfies the level.
_Holds: TypeAlias = "Callable[[Rows, Columns, Witness], bool]"

_RECENT: Final = 16  # the largest number of parts that stay in memory, to be put back faster
_RECENT_OPERATIONS: Final = 500_000  # the largest number of operations in these parts
_NAMED: Final = 3  # the largest number of transactions whose places a report names
_SAVE_EACH: Final = 200_000  # the number of new transactions after which the state is saved
_SAVE_AFTER: Final = 10.0  # the seconds after which the state is saved


@dataclass(slots=True)
class _Recent:
    """A part that is in memory.

    Attributes:
        members: the transactions of the part, as they are in the log.
        aside: the transactions that the cut removed without adding them to the part.
        columns: the members as columns whose initial values are those that earlier parts left.
        witness: the witness that the part satisfies the level.
    """

    members: Rows
    aside: Rows
    columns: Columns
    witness: Witness


class Parts:
    """Adds parts to the chain, keeps the last values that they left, and puts parts back.

    Args:
        folder: the folder for the chain and for the values that do not fit into memory.
        head: the first entry of the chain, which states the level and the logs.
        memory: the memory that the last values may take, in bytes.
        stream: the stream, from whose log transactions are read again.
        initial: the initial state of the stream.
        window: the window into which transactions are put back.

    Raises:
        HistoryError: the chain belongs to another watch, or to a watch that has ended.

    Attributes:
        chain: the chain, which has one entry for each part.
        values: the last value of each key that the parts wrote.
        observed: whether some session read, or failed to read, a write of another session.
        abandoned_at: the places of the first few indeterminate transactions that the watch gave
            up, as ``file:line``.
        unjudged: the places of transactions whose reads were not checked, because they ended too
            late after the watch had given them up.
        read_bytes: the number of bytes of the log that were read.
    """

    def __init__(
        self,
        folder: Path,
        head: Head,
        *,
        memory: int,
        stream: Stream,
        initial: InitialState,
        window: Window,
    ) -> None:
        self.observed = False
        self.abandoned_at: list[str] = []
        self.unjudged: list[str] = []
        self.read_bytes = 0
        self._stream, self._log, self._initial, self._window = stream, stream.log, initial, window
        # The keys that the parts access; empty without --unwritten-initial.
        self._keys: set[Atom] = set()
        self._spans: list[tuple[int, int, int, str]] = []
        self._recent: deque[_Recent] = deque(maxlen=_RECENT)
        self._loose = LooseKeys()
        self._saved_at, self._saved_seen = time.monotonic(), 0
        folder.mkdir(parents=True, exist_ok=True)
        self.values = Values(folder, memory=memory)
        path = folder / NAME
        last = saved_in(folder)
        if last is None:
            self.values.forget()
            self.chain = Chain(path, head)
        else:
            self.chain = Chain(path, head, size=last.chain, parts=last.parts)
            self._resume(last)

    def _resume(self, last: Saved) -> None:
        """Restore the window, the values and the initial state that a killed watch has saved."""
        self.values.restore(last)
        self._window.seen = self._saved_seen = last.seen
        self._window.again = last.again
        self.observed = bool(last.parts)  # the saved state lacks it, so assume that it is true
        try:
            self._window.kept = restored(last.rows)
            self._window.abandoned, self._window.since = set(last.abandoned), dict(last.since)
            self.unjudged = list(last.unjudged)
            self._initial.add(last.initial)
            self._initial.known = set(last.known)
            self._keys = set(last.touched)
        except (ValueError, TypeError, IndexError, RuntimeError) as error:
            raise HistoryError(f"the state of the watch cannot be read ({error})") from None

    # --- the log and the initial state ---

    def read(self, batch: Batch) -> None:
        """Record which bytes were read for a batch, for the entry of the next part."""
        for span in batch.spans:
            digest = self._log.bytes_hash(span.file, span.start, span.end)
            self._spans.append((span.file, span.start, span.end, digest))
            self.read_bytes += span.end - span.start

    def begin_with(self, entries: Sequence[InitialValue]) -> None:
        """Set the initial values of the keys in these entries."""
        if entries:
            self.values.last.replace(as_last_values(entries))

    def learn_initial(self) -> None:
        """If --unwritten-initial was given, set the initial values that reads reveal.

        Initial values are set only for keys that no part accesses.
        """
        if not self._initial.unwritten:
            return
        columns = self._window.snapshot().rows.columns
        entries = self._initial.revealed_by(columns, self._keys)
        if entries:
            self.chain.begin_with(entries)
            self.begin_with(entries)

    # --- cutting and putting back ---

    def add(self, members: Rows, aside: Rows, part: Columns, witness: Witness) -> None:
        """Append a part to the chain, and update the last values.

        Args:
            members: the transactions of the part, as they are in the log.
            aside: the transactions that the cut removes without adding them to the part, because
                they took no effect or are given up.
            part: the members as columns whose initial values are those that earlier parts left.
            witness: a witness that the part satisfies the level.
        """
        import numpy as np

        replacement = self.values.last.left_by(part, witness.order_start, witness.order_txn)
        begins = part.txn_begin[part.txn_begin != c.UNKNOWN_BEGIN]
        abandoned = np.flatnonzero(aside.columns.txn_status == c.INDETERMINATE)
        if len(self.abandoned_at) < _NAMED:
            places = map(aside.place, abandoned[:_NAMED].tolist())
            self.abandoned_at += map(self._log.line_of, places)
        if self._initial.unwritten:
            for touched in (members.columns, aside.columns):
                self._keys.update(touched.key(k) for k in range(touched.n_keys()))
        before = self.values.last.replace(replacement)
        self.chain.add(
            Part(
                previous=self.chain.previous,
                transactions=len(members),
                abandoned=len(abandoned),
                begin=int(begins.max()) if len(begins) else None,
                spans=tuple(self._spans),
                seen=self._window.transactions,
                columns=Taken(
                    members=members.at,
                    aside=aside.at,
                    source=witness.source.astype(np.int64),
                    # The keys that no member accesses come last, and their orders are left out.
                    order_start=witness.order_start[: members.columns.n_keys() + 1],
                    order_txn=witness.order_txn.astype(np.int64),
                    before=before,
                ).packed(),
            )
        )
        self._spans = []
        self._loose.add(part, witness.order_start, len(self.chain) - 1)
        self._recent.append(_Recent(members, aside, part, witness))
        while sum(one.columns.operations() for one in self._recent) > _RECENT_OPERATIONS:
            self._recent.popleft()

    def observe(self, part: History, witness: Witness) -> None:
        """Record whether the next part has a read that shows or misses another session's write."""
        self.observed = bool(
            self.observed
            or part.columns.implicit
            or observed(part, witness)
            # An earlier part wrote the values that this part reads from its initial state.
            or (self.chain.parts and (witness.source == part.t0).any())
        )

    def may_explain(self, window: Columns) -> bool:
        """Return whether another version order in the parts may explain any read of a window."""
        if not len(self._loose):
            return False
        self.values.fetch(window)
        return bool(len(self._loose.unexplained(window, self.values.last)[0]))

    def exchange(self, window: Columns, holds: _Holds) -> int:
        """Reorder the last writers of keys in the parts as the reads of a window require.

        SOUND BECAUSE a part with changed orders must satisfy the level by itself, like every part,
        and no later part reads the keys whose orders changed, so all later parts still satisfy the
        level (docs/routes.md, *Exchanges*).

        Args:
            window: the transactions of the window, as they are in the log.
            holds: returns whether a witness proves that a part satisfies the level.

        Returns:
            The number of parts in which an order changed.
        """
        import numpy as np

        reads, part_of = self._loose.unexplained(window, self.values.last)
        shown = {part: reads[part_of == part] for part in np.unique(part_of).tolist()}
        first = min(shown)
        entries = self.chain.parts_from(first)
        registers = bool((window.op_kind[reads] == c.READ).all())
        if registers and len(entries) <= len(self._recent):
            changed = self._exchange_registers(first, entries, window, shown, holds)
        else:
            changed = self._exchange_all(first, entries, window, shown, holds)
        if changed:
            self.chain.exchange(first + changed[0], entries[changed[0] :])
        return len(changed)

    def _exchange_registers(
        self,
        first: int,
        entries: list[Part],
        window: Columns,
        shown: dict[int, NDArray[np.int64]],
        holds: _Holds,
    ) -> list[int]:
        """Reorder the writers of registers in parts in memory, and return the indices of the parts.

        No later part accesses a register that these reads concern. Therefore, an exchange changes
        only this part, and the last value of the register that is in memory now.
        """
        changed = []
        for number, reads in shown.items():
            recent = self._recent[number - len(self.chain)]
            found = self._order(
                recent.members, recent.columns, recent.witness, window, reads, holds
            )
            if found is None:
                continue
            self.values.last.replace(_moved_values(recent.columns, recent.witness, found))
            recent.witness = found
            changed.append(number - first)
            part = taken(entries[changed[-1]], "the chain")
            entries[changed[-1]] = _with_order(entries[changed[-1]], part, found)
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

        The values before each of these parts are restored first, because the order of a list in a
        part depends on them. The values that later parts replaced depend on them, too.
        """
        parts = [taken(entry, "the chain") for entry in entries]
        if self.values.spilled:
            for number, part in enumerate(parts, first):
                self.values.fetch(self._members(number, part).columns)
        last = self.values.last
        again = [last.replace(part.before) for part in reversed(parts)]
        changed = []
        for i, part in enumerate(parts):
            after = again.pop()
            found = None
            if (reads := shown.get(first + i)) is not None:
                members = self._members(first + i, part)
                columns, _ = opened(members, last)
                own = Witness.of(part.source, part.order_start, part.order_txn)
                found = self._order(members, columns, own, window, reads, holds)
            if found is None:
                last.replace(after)
                continue
            # Even if the order did not change, lists may differ, as earlier parts may have changed.
            before = last.replace(last.left_by(columns, found.order_start, found.order_txn))
            changed.append(i)
            now = msgspec.structs.replace(part, before=before)
            entries[i] = _with_order(entries[i], now, found)
            if (behind := len(self.chain) - first - i) <= len(self._recent):
                self._recent[-behind].witness = found
        return changed

    def _order(  # noqa: PLR0917 — parallel columns
        self,
        members: Rows,
        columns: Columns,
        own: Witness,
        window: Columns,
        reads: NDArray[np.int64],
        holds: _Holds,
    ) -> Witness | None:
        """Return the witness of a part with the version orders that the reads require.

        Return ``None`` if no order of the part's writers explains the reads, or if the part does
        not satisfy the level with that order.

        Args:
            members: the transactions of the part, as they are in the log.
            columns: the members as columns whose initial values are those that earlier parts left.
            own: the witness of the part.
            window: the transactions of the window, as they are in the log.
            reads: the reads of the window. If one of them reads a list, the last values in memory
                must be the values before the part.
            holds: returns whether a witness proves that a part satisfies the level.
        """
        import numpy as np

        last = self.values.last
        order = exchanged_order(columns, own.order_start, own.order_txn, window, reads, last)
        if not len(order):
            return None
        other = Witness.of(own.source, own.order_start, order)
        if not np.array_equal(order, own.order_txn) and not holds(members, columns, other):
            return None
        return other

    def _members(self, number: int, part: Taken) -> Rows:
        """Return the transactions of a part; if they are not in memory, read the log again."""
        behind = len(self.chain) - number
        if behind <= len(self._recent):
            return self._recent[-behind].members
        return self._log.rows_at(part.members)

    def put_back(self, parts: int) -> None:
        """Put the last ``parts`` parts back into the window, and restore the values before them."""
        found = Rows.none()
        for part in self.chain.undo(parts):
            self.values.last.replace(part.before)
            if self._recent:
                recent = self._recent.pop()
                members, aside = recent.members, recent.aside
            else:
                members, aside = self._log.rows_at(part.members), self._log.rows_at(part.aside)
            found.extend(members)
            found.extend(aside)
        self._loose.forget(len(self.chain))
        self._window.put_back(found)
        if not len(self.chain):
            self._keys.clear()
            self.learn_initial()

    def put_back_overlapping(self, end: int, clock_error: int) -> None:
        """Put back parts until no part has a transaction that began after a late transaction ended.

        Args:
            end: the time at which the late transaction ended.
            clock_error: nanoseconds by which the clocks of two sessions may differ.
        """
        while (begin := self.chain.begin) is not None and end < begin + 2 * clock_error:
            self.put_back(1)

    def recall(self, file: int, offset: int, *, most: int) -> bool:
        """Remove a transaction that the watch gave up, and return whether it was found.

        Parts are put back into the window until the transaction is found, until no part is left,
        or until the window has more than ``most`` transactions.

        Args:
            file: the file of the transaction's invocation.
            offset: the byte of that file at which the invocation begins.
            most: the largest number of transactions in a window.
        """
        while not self._window.remove(file, offset):
            if not len(self.chain) or len(self._window.kept) > most:
                return False
            self.put_back(1)
        return True

    # --- the saved state ---

    def save(self) -> None:
        """Save the state for a resumed watch if enough has changed since the last time.

        If the stream cannot be read again, only move values to disk when they take too much memory.
        """
        if not self._stream.can_resume:
            self.values.make_room()
            return
        now, window = time.monotonic(), self._window
        new = window.seen - self._saved_seen
        if new < _SAVE_EACH and now - self._saved_at < _SAVE_AFTER and not self.values.full:
            return
        self._saved_at, self._saved_seen = now, window.seen
        self.chain.flush()
        self.values.save(
            Saved(
                chain=self.chain.size,
                parts=list(self.chain.parts),
                rows=saved(window.kept),
                seen=window.seen,
                again=window.again,
                abandoned=list(window.abandoned),
                since=list(window.since.items()),
                unjudged=list(self.unjudged),
                position=self._stream.position(),
                initial=[(key, *value) for key, value in self._initial.entries.items()],
                known=list(self._initial.known),
                touched=list(self._keys),
            )
        )


def _with_order(entry: Part, part: Taken, witness: Witness) -> Part:
    """Return the entry of a part with the version orders of a witness.

    Args:
        entry: the entry of the part in the chain.
        part: the columns of the entry, except that ``before`` may have been replaced.
        witness: the witness with the version orders.
    """
    import numpy as np

    now = msgspec.structs.replace(part, order_txn=witness.order_txn.astype(np.int64))
    return msgspec.structs.replace(entry, columns=now.packed())


def _moved_values(part: Columns, own: Witness, other: Witness) -> bytes:
    """Return the last values in a part of the registers whose orders differ in two witnesses.

    Args:
        part: the columns of the part.
        own: a witness of the part.
        other: a witness with the same sources; its version orders determine the returned values.
    """
    import numpy as np

    start = own.order_start
    moved = np.flatnonzero(own.order_txn != other.order_txn)
    ends = np.zeros(len(start) - 1, np.int64)
    ends[np.unique(np.searchsorted(start, moved, side="right") - 1)] = 1
    kept = np.repeat(ends, np.diff(start)).astype(bool)
    ends = np.concatenate([[0], np.cumsum(ends * np.diff(start))])
    return LastValues().left_by(part, ends, other.order_txn[kept])
