"""Manages the parts of a watch: the transactions of its cuts, and the values that they left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from isolang._native import LooseKeys, exchanged_order
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

_RECENT: Final = 16  # how many parts stay in memory, from which they can be put back
_RECENT_OPERATIONS: Final = 500_000  # the largest number of operations of these parts
_NAMED: Final = 3  # transactions whose places a report names
_SAVE_EACH: Final = 200_000  # the state is saved after so many transactions
_SAVE_AFTER: Final = 10.0  # or after so many seconds


class Parts:
    """The chain of parts and the last values that they left; puts parts back into the window.

    Args:
        folder: the folder of the chain and of the values that do not fit into memory.
        head: the first entry of the chain, which says what is watched.
        memory: the memory that the last values may take, in bytes.
        stream: the stream; transactions are read again from its log.
        initial: the initial state of the stream.
        window: the window, to which transactions are put back.

    Raises:
        HistoryError: the chain belongs to another watch, or to a watch that has ended.

    Attributes:
        chain: the chain.
        values: the last value of each key that the parts wrote.
        observed: whether a session read or missed a write of another session.
        abandoned_at: the places of the first indeterminate transactions that the watch gave up.
        unjudged: the places of transactions that ended after they had been given up, too late to
            check their reads.
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
        # The keys that the parts access; filled only with --unwritten-initial.
        self._keys: set[Atom] = set()
        self._spans: list[tuple[int, int, int, str]] = []
        self._recent: deque[tuple[Rows, Rows]] = deque(maxlen=_RECENT)
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
        """Restore the window and the values of a watch that was killed."""
        self.values.restore(last)
        self._window.seen = self._saved_seen = last.seen
        self.observed = bool(last.parts)  # the saved state does not say, so assume that it is true
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
        """Record the bytes that a batch read, for the entry of the next part."""
        for span in batch.spans:
            digest = self._log.bytes_hash(span.file, span.start, span.end)
            self._spans.append((span.file, span.start, span.end, digest))
            self.read_bytes += span.end - span.start

    def begin_with(self, entries: Sequence[InitialValue]) -> None:
        """Set the initial values of some keys."""
        if entries:
            self.values.last.replace(as_last_values(entries))

    def learn_initial(self) -> None:
        """Set the initial values that reads reveal, with --unwritten-initial.

        Only keys that no part accesses can be set.
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
            members: the transactions of the part, as the log has them.
            aside: transactions that took no effect or are given up.
            part: the members in columns that begin with the values of earlier parts.
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
                seen=self._window.seen,
                columns=Taken(
                    members=members.at,
                    aside=aside.at,
                    source=witness.source.astype(np.int64),
                    # Keys that no member accesses follow the others and have no version order here.
                    order_start=witness.order_start[: members.columns.n_keys() + 1],
                    order_txn=witness.order_txn.astype(np.int64),
                    before=before,
                ).packed(),
            )
        )
        self._spans = []
        self._loose.add(part, witness.order_start, len(self.chain) - 1)
        self._recent.append((members, aside))
        while sum(part.columns.operations() for part, _ in self._recent) > _RECENT_OPERATIONS:
            self._recent.popleft()

    def observe(self, part: History, witness: Witness) -> None:
        """Record whether the next part shows that a session read or missed another's write."""
        self.observed = bool(
            self.observed
            or part.columns.implicit
            or observed(part, witness)
            # What a later part reads from its initial state, an earlier part wrote.
            or (self.chain.parts and (witness.source == part.t0).any())
        )

    def may_explain(self, window: Columns) -> bool:
        """Return whether another order of writers in the parts may explain reads of a window."""
        if not len(self._loose):
            return False
        self.values.fetch(window)
        return bool(len(self._loose.unexplained(window, self.values.last)[0]))

    def exchange(self, window: Columns, holds: Callable[[Rows, Columns, Witness], bool]) -> int:
        """Give the last writers of keys in the parts the order that reads of a window show.

        SOUND BECAUSE a part with other orders must satisfy the level by itself, as every part must,
        and no part after it reads their keys, so that the others hold as before (docs/routes.md,
        *Exchanges*).

        Args:
            window: the window, as the log has it.
            holds: returns whether a part satisfies the level by a witness.

        Returns:
            The number of parts with other orders.
        """
        reads, part_of = self._loose.unexplained(window, self.values.last)
        first = int(part_of.min())
        entries = self.chain.parts_from(first)
        parts = [taken(entry, "the chain") for entry in entries]
        if self.values.spilled:
            for number, part in enumerate(parts, first):
                self.values.fetch(self._members(number, part).columns)
        last = self.values.last
        again = [last.replace(part.before) for part in reversed(parts)]
        changed = []
        for i, part in enumerate(parts):
            after = again.pop()
            shown = reads[part_of == first + i]
            found = self._exchanged(first + i, part, window, shown, holds) if len(shown) else None
            before = last.replace(after if found is None else found[0])
            if found is not None:
                changed.append(i)
                now = msgspec.structs.replace(part, order_txn=found[1], before=before)
                entries[i] = msgspec.structs.replace(entries[i], columns=now.packed())
        if changed:
            self.chain.exchange(first + changed[0], entries[changed[0] :])
        return len(changed)

    def _exchanged(
        self,
        number: int,
        part: Taken,
        window: Columns,
        reads: NDArray[np.int64],
        holds: Callable[[Rows, Columns, Witness], bool],
    ) -> tuple[bytes, NDArray[np.int64]] | None:
        """Return what a part leaves with the orders that some reads show, and these orders.

        The last values must be those before the part.

        Returns:
            ``None`` if the part has no such orders, or does not satisfy the level with them.
        """
        import numpy as np

        last = self.values.last
        members = self._members(number, part)
        columns, _ = opened(members, last)
        own = Witness.of(part.source, part.order_start, part.order_txn)
        order = exchanged_order(columns, own.order_start, own.order_txn, window, reads, last)
        if not len(order):
            return None
        other = Witness.of(own.source, own.order_start, order)
        if not np.array_equal(order, own.order_txn) and not holds(members, columns, other):
            return None
        # Even with the same orders, a list is longer or begins otherwise than before.
        return last.left_by(columns, other.order_start, other.order_txn), order.astype(np.int64)

    def _members(self, number: int, part: Taken) -> Rows:
        """Return the transactions of a part, from memory or from the log."""
        behind = len(self.chain) - number
        if behind <= len(self._recent):
            return self._recent[-behind][0]
        return self._log.rows_at(part.members)

    def put_back(self, parts: int) -> None:
        """Put the last parts back into the window."""
        found = Rows.none()
        for part in self.chain.undo(parts):
            self.values.last.replace(part.before)
            if self._recent:
                members, aside = self._recent.pop()
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
        """Put back the parts with a begin after the end of a transaction that comes only now."""
        while (begin := self.chain.begin) is not None and end < begin + 2 * clock_error:
            self.put_back(1)

    def recall(self, file: int, offset: int, *, most: int) -> bool:
        """Remove a transaction that the watch gave up, and return whether it was found.

        Parts are put back into the window until the transaction is found, or until the window has
        more than ``most`` transactions.
        """
        while not self._window.remove(file, offset):
            if not len(self.chain) or len(self._window.kept) > most:
                return False
            self.put_back(1)
        return True

    # --- the saved state ---

    def save(self) -> None:
        """Save the state from which the watch can resume, if enough is new since the last time."""
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
                abandoned=list(window.abandoned),
                since=list(window.since.items()),
                unjudged=list(self.unjudged),
                position=self._stream.position(),
                initial=[(key, *value) for key, value in self._initial.entries.items()],
                known=list(self._initial.known),
                touched=list(self._keys),
            )
        )
