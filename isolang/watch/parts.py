"""Manages the parts cut off the window, and the values that the parts leave."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isolang.certify.proofs import Witness
from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.history import History
from isolang.pipeline.observed import observes_other_sessions
from isolang.watch.chain import NAME, Atom, Chain, Head, InitialValue, Part
from isolang.watch.exchange import Exchanges, RecentPart, RecentParts
from isolang.watch.initial_state import InitialState, as_last_values
from isolang.watch.state import Saved, Values, read_saved_state
from isolang.watch.stream.rows import Rows, decode_rows, encode_rows

if TYPE_CHECKING:
    from isolang._native import Columns
    from isolang.watch.stream import Batch, Stream
    from isolang.watch.window import Window

_NAMED: Final = 3  # the largest number of transactions whose places a report names
_SAVE_EACH: Final = 200_000  # the state is saved after this number of new transactions
_SAVE_AFTER: Final = 10.0  # the state is saved after this number of seconds


class Parts:
    """Adds parts to the chain, keeps the last values they left, and puts parts back.

    Args:
        memory: the memory limit for the last values, in bytes.

    Raises:
        HistoryError: the chain belongs to another watch, or to a watch that has ended.

    Attributes:
        exchanges: the version orders in the parts that later reads may change.
        observed: whether any session has read, or missed, another session's write.
        abandoned_at: the places of the first few indeterminate transactions that the watch gave up
            on, as ``file:line``.
        unjudged: the places of transactions whose reads were not checked, because they ended too
            long after the watch had given up on them.
        read_bytes: the number of bytes read from the log.
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
        # The keys accessed by the parts; empty without --unwritten-initial.
        self._keys: set[Atom] = set()
        self._spans: list[tuple[int, int, int, str]] = []
        self._saved_at, self._saved_seen = time.monotonic(), 0
        folder.mkdir(parents=True, exist_ok=True)
        self.values = Values(folder, memory=memory)
        path = folder / NAME
        last = read_saved_state(folder)
        if last is None:
            self.values.forget()
            self.chain = Chain(path, head)
        else:
            self.chain = Chain(path, head, size=last.chain, parts=last.parts)
            self._resume(last)
        self._recent = RecentParts(self.chain, self._log)
        self.exchanges = Exchanges(self.chain, self.values, self._recent, self._log)

    def _resume(self, last: Saved) -> None:
        """Restore the window, the values and the initial state saved by a killed watch."""
        self.values.restore(last)
        self._window.seen = self._saved_seen = last.seen
        self._window.again = last.again
        self.observed = bool(last.parts)  # not in the saved state, so assume that it is true
        try:
            self._window.kept = decode_rows(last.rows)
            self._window.abandoned, self._window.since = set(last.abandoned), dict(last.since)
            self.unjudged = list(last.unjudged)
            self._initial.add(last.initial)
            self._initial.known = set(last.known)
            self._keys = set(last.touched)
        except (ValueError, TypeError, IndexError, RuntimeError) as error:
            raise HistoryError(f"cannot read the state of the watch ({error})") from None

    # --- the log and the initial state ---

    @property
    def lacks_facts(self) -> bool:
        """``True`` if the logs name facts or operations that no transaction has."""
        return self._stream.lacks_facts

    @property
    def lacks_end(self) -> bool:
        """``True`` if a log is a recording of an application that has no end."""
        return self._stream.lacks_end

    @property
    def is_unaudited(self) -> bool:
        """``True`` if a log is a recording that an audit has still to confirm."""
        return self._stream.is_unaudited()

    def note_read_bytes(self, batch: Batch) -> None:
        """Record the bytes read for a batch, for the next part's entry."""
        for span in batch.spans:
            digest = self._log.bytes_hash(span.file, span.start, span.end)
            self._spans.append((span.file, span.start, span.end, digest))
            self.read_bytes += span.end - span.start

    def add_initial_values(self, entries: Sequence[InitialValue]) -> None:
        """Set the initial values of the keys in these entries."""
        if entries:
            self.values.last.replace(as_last_values(entries))

    def add_revealed_values(self) -> None:
        """If --unwritten-initial was given, set the initial values revealed by reads.

        Initial values are set only for keys that no part accesses.
        """
        if not self._initial.unwritten:
            return
        columns = self._window.snapshot().rows.columns
        entries = self._initial.values_revealed_by(columns, self._keys)
        if entries:
            self.chain.add_initial_values(entries)
            self.add_initial_values(entries)

    # --- cutting and putting back ---

    def add(self, members: Rows, aside: Rows, part: Columns, witness: Witness) -> None:
        """Append a part to the chain, and update the last values."""
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
        entry = Part(
            previous="",  # set when the entry is written
            transactions=len(members),
            abandoned=len(abandoned),
            begin=int(begins.max()) if len(begins) else None,
            spans=tuple(self._spans),
            seen=self._window.transactions,
            columns=b"",
        )
        self._spans = []
        self._recent.add(RecentPart(entry, members, aside, part, witness, before))
        self.exchanges.add(part, witness)

    def note_interaction(self, part: History, witness: Witness) -> None:
        """Record whether the next part has a read that saw or missed another session's write."""
        self.observed = bool(
            self.observed
            or part.columns.implicit
            or observes_other_sessions(part, witness)
            # An earlier part wrote the values that this part reads from its initial state.
            or (len(self.chain) and (witness.source == part.t0).any())
        )

    def put_back(self, parts: int) -> None:
        """Put the last ``parts`` parts back into the window, and restore the previous values."""
        found = Rows.empty()
        for part in self.chain.undo(parts):
            self.values.last.replace(part.before)
            for rows in self._recent.take_back(part):
                found.extend(rows)
        self.exchanges.forget()
        self._window.put_back(found)
        if not len(self.chain):
            self._keys.clear()
            self.add_revealed_values()

    def put_back_overlapping(self, end: int, clock_error: int) -> None:
        """Put back parts until no part has a transaction that began after a late transaction ended.

        Args:
            clock_error: the largest difference between two sessions' clocks, in nanoseconds.
        """
        while (begin := self.chain.begin) is not None and end < begin + 2 * clock_error:
            self.put_back(1)

    def remove_abandoned(self, file: int, offset: int, *, most: int) -> bool:
        """Remove a transaction that the watch gave up on, and return whether it was found.

        Parts are put back into the window until the transaction is found, until no part is left,
        or until the window has more than ``most`` transactions.

        Args:
            offset: the byte offset of the invocation in that file.
        """
        while not self._window.remove(file, offset):
            if not len(self.chain) or len(self._window.kept) > most:
                return False
            self.put_back(1)
        return True

    # --- the saved state ---

    def save(self) -> None:
        """Save the state for a resumed watch if enough has changed since the last save.

        If the stream cannot be read again, do no more than write the chain, and move values to disk
        when they take too much memory.
        """
        now, window = time.monotonic(), self._window
        new = window.seen - self._saved_seen
        if new < _SAVE_EACH and now - self._saved_at < _SAVE_AFTER and not self.values.full:
            return
        self._saved_at, self._saved_seen = now, window.seen
        self.chain.write()
        if not self._stream.can_resume:
            self.values.make_room()
            return
        self.chain.flush()
        self.values.save(
            Saved(
                chain=self.chain.size,
                parts=list(self.chain.parts),
                rows=encode_rows(window.kept),
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
