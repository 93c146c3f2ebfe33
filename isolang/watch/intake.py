"""Takes the batches of a stream: adds their transactions to the window and updates the parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.values import atom_text, key_name
from isolang.watch.chain import Atom
from isolang.watch.judging import WindowJudge, initial_writes_of
from isolang.watch.levels import why_no_predicates
from isolang.watch.stream.rows import Rows, rows_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang.watch.horizon import Horizon
    from isolang.watch.initial_state import InitialState
    from isolang.watch.parts import Parts
    from isolang.watch.stream import Batch, Stream
    from isolang.watch.window import Window

_NAMED: Final = 3  # the largest number of values named in a note


class Intake:
    """Adds the transactions of each batch to the window, and updates the horizon and the parts."""

    def __init__(
        self,
        judge: WindowJudge,
        *,
        stream: Stream,
        window: Window,
        horizon: Horizon,
        initial: InitialState,
        parts: Parts,
        most: int,
    ) -> None:
        self._judge, self._stream, self._log = judge, stream, stream.log
        self._window, self._horizon = window, horizon
        self._initial, self._parts, self._most = initial, parts, most
        self._no_predicates = why_no_predicates(judge.plan)

    def take(self, batch: Batch) -> tuple[int, str]:
        """Add the finished transactions of a batch to the window.

        Returns:
            The number of transactions added, and a message. The message is empty unless a
            transaction writes a value that the watch took to be an initial value.

        Raises:
            HistoryError: the batch contains something that cannot be watched.
        """
        import numpy as np

        self._horizon.advance(batch)
        self._judge.begin()
        self._parts.note_read_bytes(batch)
        rows = rows_of(batch, self._window.seen)
        self._silence(rows)
        self._check_predicates(rows)
        self._parts.add_initial_values(self._initial.stated_values(batch.history))
        last = self._parts.values.last
        if (first := initial_writes_of(rows, last)) is not None:
            last.replace(first)
        finished = ~batch.in_flight & (rows.columns.txn_status != c.INITIAL)
        new = self._rows_to_add(rows, np.flatnonzero(finished).astype(np.int32))
        if places := self._window.advance(rows, batch.in_flight):
            self._stream.set_aside(places)
        if not len(new):
            return 0, ""
        self._window.kept.extend(rows, new)
        if (at := self._initial.contradiction(rows.columns)) is not None:
            return len(new), self._contradiction(rows, *at)
        self._parts.add_revealed_values()
        if self._judge.plan.uses_real_time:
            end = int(rows.columns.txn_end[new].min())
            self._parts.put_back_overlapping(end, self._horizon.clock_error)
        return len(new), ""

    def _silence(self, rows: Rows) -> None:
        """Let predicate reads say nothing if they are in a recording without an end.

        SOUND BECAUSE: only the audit at the end of a recording tells whether a writer that is not
        in the recording contradicts its predicate reads.
        """
        import numpy as np

        missing = np.flatnonzero(rows.columns.op_kind == c.READ_NONE_OF).astype(np.int64)
        if not (len(rows.columns.statement_txn) or len(missing)) or not self._stream.note_lacking():
            return
        for t in set(rows.columns.statement_txn.tolist()):
            rows.columns.forget_statements(t)
        if len(missing):
            rows.columns = rows.columns.without_reads(missing)

    def _check_predicates(self, rows: Rows) -> None:
        """Check that the predicate reads of a batch can be watched."""
        statements = rows.columns.statement_txn
        if not len(statements):
            return
        reason = self._no_predicates
        if self._initial.is_stated:
            reason = (
                "a predicate read cannot be watched together with --initial-value or "
                "--unwritten-initial, because it may have missed a row that only a later "
                "transaction names (expected an :init in the log); hint: check the whole history "
                "with isocheck check"
            )
        if reason:
            place = rows.place(int(statements[0]))
            raise HistoryError(f"{self._log.line_of(place)}: {reason}")

    def _rows_to_add(self, rows: Rows, finished: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the row numbers of the finished transactions to add to the window.

        A transaction that the watch gave up on is in the window or in a part as an indeterminate
        transaction. If it finishes in this batch, the finished transaction replaces the
        indeterminate one. If that would require putting back too many parts, the finished
        transaction is not added and its reads are not checked.
        """
        import numpy as np

        abandoned = self._window.abandoned
        if not abandoned:
            return finished
        kept = np.ones(len(finished), bool)
        for i, (file, offset) in enumerate(rows.at[finished, 1:3].tolist()):
            if (file, offset) not in abandoned:
                continue
            t = int(finished[i])
            abandoned.discard((file, offset))
            self._window.again += 1
            if rows.columns.txn_status[t] == c.INDETERMINATE:
                kept[i] = False
            elif not self._parts.remove_abandoned(file, offset, most=self._most):
                self._parts.unjudged.append(self._log.line_of(rows.place(t)))
                kept[i] = False
        return finished[kept]

    def _contradiction(self, rows: Rows, txn: int, key: Atom) -> str:
        """Return a message about a transaction that writes a value taken to be an initial value."""
        name, (_, values) = key_name(*key), self._initial.entries[key]
        some = ", ".join(atom_text(*value) for value in values[:_NAMED])
        return (
            f"{self._log.line_of(rows.place(txn))}: writes to {name} a value ({some}) that an "
            f"earlier read returned before any transaction wrote it, so the watch took it for "
            f"the initial value of {name}; hint: --initial-value declares the initial value"
        )
