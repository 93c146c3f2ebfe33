"""Watching a stream: rounds, cuts, and what is put back (docs/routes.md, *Cuts of a stream*)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct, structs

from isolang._native import trim_heap
from isolang.certify.proofs import Refutation, Witness
from isolang.errors import HistoryError, UnsupportedError
from isolang.explain.part import transactions_of
from isolang.history import columns as c
from isolang.history.history import History
from isolang.history.values import key_name, show
from isolang.language.meaning.core import Spec
from isolang.pipeline.observed import observed
from isolang.verdict import NOTHING_OBSERVED, Invalid, Unknown, Valid, Verdict
from isolang.watch.alone import Accusation, accusation, told_alone
from isolang.watch.before import Before, as_left
from isolang.watch.chain import NAME, Atom, Chain, End, Head, Held, Part, Taken
from isolang.watch.cut import Limits, cut, everything, witness_of
from isolang.watch.levels import stricter, watched, why_no_predicates
from isolang.watch.state import Saved, Values, saved_in
from isolang.watch.stream import Batch, Stream
from isolang.watch.stream.rows import Rows, restored, rows_of, saved
from isolang.watch.window import history_of, initial_of, judge, opened, satisfies

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns
    from isolang.language.classify.event_graph import Plan

Outcome: TypeAlias = Literal["valid", "invalid", "suspected", "unknown"]

_RECENT: Final = 16  # parts that are kept in memory as they were, to be put back,
_RECENT_OPERATIONS: Final = 500_000  # as long as they have no more than these
_SMALL: Final = 64 << 20  # bytes of a log that is looked through at the first suspicion
_ENOUGH: Final = 8  # parts that are put back before a larger one is
_SAVE_EACH: Final = 200_000  # transactions, or
_SAVE_AFTER: Final = 10.0  # seconds, after which the state is saved
_GUESSED: Final = 1  # rounds in which later reads may show the order of two writers
_TRIMMED: Final = 64  # rounds after which free memory goes back to the system
_WAITS: Final = "waits for what is still to come, which may explain it"
_NAMED: Final = 3  # transactions that are named
_HELD: Final = 4  # rounds; a window that is longer is held by something


class Round(Struct, frozen=True, kw_only=True):
    """What one round did.

    Attributes:
        number: from 1.
        seen: transactions seen so far, those in flight left out.
        judged: how many this round judged.
        cut: how many it took away.
        kept: how many it left in the window.
        parts: how many parts there are.
        put_back: how many cuts were put back for it.
        keys: of the state, in memory.
        given_up: transactions of unknown outcome that are no longer waited for.
        outcome: ``valid`` so far, or what was found.
        holding: what keeps the window long, in words.
        violations: how many were found so far.
        note: what is waited for, in words: of one that is suspected, by its verdict.
    """

    number: int
    seen: int
    judged: int
    cut: int
    kept: int
    parts: int
    put_back: int
    keys: int
    given_up: int = 0
    outcome: Outcome
    holding: str = ""
    violations: int = 0
    note: str = ""


class Report(Struct, frozen=True, kw_only=True):
    """What was found.

    Attributes:
        outcome: ``suspected``: the level does not hold of what was seen, but what is still to come,
            or was forgotten, may explain it.
        note: what the outcome rests on, in words; empty for nothing worth saying.
        seen: transactions seen.
        parts: of the certificate.
        verdict: of an invalid stream, on a part of it; of an undecided one, on its window.
        places: of that verdict's transactions in the log, as ``file:line``.
        assumed: the values of which it is assumed that no other transaction writes them.
        given_up: how many transactions of unknown outcome were no longer waited for.
        given_up_at: the first of them, as ``file:line``.
        violations: how many were found; the verdict is on the first one.
    """

    outcome: Outcome
    note: str
    seen: int
    parts: int
    verdict: Verdict | None = None
    places: tuple[str, ...] = ()
    assumed: tuple[tuple[object, object], ...] = ()
    given_up: int = 0
    given_up_at: tuple[str, ...] = ()
    violations: int = 0


class Watch:
    """A stream that is judged round by round.

    Args:
        spec: the level.
        stream: what is fed; where the folder has a chain, resumed at the position that this has
            (:func:`isolang.watch.position_in`).
        folder: where the chain of parts is kept. A watch that was killed goes on with its chain.
        sources: names of what is read, for the chain.
        round: transactions that make a round; of a long window, an eighth of it.
        pace: seconds after which what has come is judged though it makes no round; ``None``: never.
        clock_error: nanoseconds by which the clocks of two sessions may differ.
        most: transactions that a window may have; where more would have to be put back, a violation
            is only suspected.
        grace: rounds after which a transaction of unknown outcome that nobody has read from is
            given up.
        grace_seconds: and seconds since it came.
        initial_value: what all keys (``V``), or one (``KEY=V``), held before the stream.
        unwritten_initial: what was read and nobody wrote was there before: at most one value of a
            key.
        memory: bytes that the last values of the keys may take; what is beyond is kept on disk.
        to_the_end: a violation does not end it: what its transactions have read is left out from
            then on.
        timeout: seconds that judging one window may take.

    Raises:
        SpecError: the level cannot be watched.
        HistoryError: the chain is of another watch, or of one that has ended.
    """

    def __init__(
        self,
        spec: Spec | str,
        *,
        stream: Stream,
        folder: Path,
        sources: Sequence[str] = (),
        round: int = 1000,  # noqa: A002 — the word of the field
        pace: float | None = None,
        clock_error: int = 0,
        most: int = 200_000,
        grace: int = 10,
        grace_seconds: float = 0.0,
        memory: int = 256 << 20,
        initial_value: Sequence[str] = (),
        unwritten_initial: bool = False,
        to_the_end: bool = False,
        timeout: float | None = None,
    ) -> None:
        self.plan = watched(spec)
        self.log = stream.log
        self._no_predicates = why_no_predicates(self.plan)
        self._stream = stream
        self._sources = tuple(sources)
        self._round, self._pace, self._clock_error = round, pace, clock_error
        self._most, self._grace, self._timeout = most, grace, timeout
        self._window, self._flying = Rows.none(), Rows.none()
        self._new = self._seen = self._rounds = self._strict = self._bytes = 0
        self._undecided = 0  # a window so long was not decided, and is judged again when doubled
        self._watermark: int | None = None
        self._sure: int = c.UNKNOWN_BEGIN  # what is still to come begins at this time or later
        self._idle: tuple[str, ...] = ()
        self._slowest = self._held_back = ""  # who is behind the others; and what waits for that
        self._timed = False
        self._about: History | None = None
        self._plans: list[Plan] = []
        self._spans: list[tuple[int, int, int, str]] = []
        self._report: Report | None = None
        self._recent: deque[tuple[Rows, Rows]] = deque(maxlen=_RECENT)
        self._given_up_at: list[str] = []
        self._left: set[tuple[int, int]] = set()
        self._since: dict[tuple[int, int], int] = {}
        self._unjudged: list[str] = []
        self._waits = ""  # what a violation waits for, in words
        self._observed = False  # whether a session read, or missed, what another one wrote
        self._to_the_end = to_the_end
        self._before = Before(initial_value, unwritten=unwritten_initial)
        self._touched: set[Atom] = set()  # keys of the parts
        self._first: Report | None = None  # of the violations
        self._violations = 0
        self._judged_at = self._saved_at = self._began = time.monotonic()
        self._saved_seen = 0
        self._arrived: deque[tuple[float, int]] = deque()
        self._grace_seconds = grace_seconds
        folder.mkdir(parents=True, exist_ok=True)
        head = Head(
            spec_name=self.plan.spec.name,
            spec_texts=dict(self.plan.spec.texts),
            sources=tuple(sources),
            reading=self._before.reading(clock_error),
        )
        self.state = Values(folder, memory=memory)
        path = folder / NAME
        last = saved_in(folder)
        if last is not None:
            self.chain = Chain(path, head, size=last.chain, parts=last.parts)
            self._go_on(last)
        else:
            self.state.forget()
            self.chain = Chain(path, head)

    @property
    def report(self) -> Report | None:
        """What was found; ``None`` while the stream goes on and nothing was."""
        return self._report

    @property
    def seen(self) -> int:
        """Transactions seen so far, also before the watch was resumed."""
        return self._seen

    def feed(self, batch: Batch) -> Iterator[Round]:
        """Take a batch, and judge when enough has come.

        Raises:
            HistoryError: it has what cannot be watched.
        """
        if self._report is not None:
            return
        self._take(batch)
        if self._report is not None:
            yield self._done("unknown", judged=0, cut=0, put_back=0)
            return
        enough = self._new >= max(self._round, len(self._window) // 8, self._undecided)
        if enough or batch.ended or self._waited(batch):
            yield self._judge(ended=batch.ended)

    def judge_now(self) -> Round:
        """Judge what has come, though it makes no round; the stream goes on."""
        return self._judge(ended=False)

    def close(self) -> None:
        """Close the files."""
        self.state.close()

    def _waited(self, batch: Batch) -> bool:
        if self._pace is None or not self._new or len(batch) >= self._round:
            return False
        if self._new < self._undecided:
            return False
        return time.monotonic() - self._judged_at >= self._pace

    def _go_on(self, last: Saved) -> None:
        """Take up the state and the window of a watch that was killed."""
        self.state.restore(last)
        self._seen = self._saved_seen = last.seen
        self._observed = bool(last.parts)  # for all that is known
        try:
            self._window = restored(last.rows)
            self._left, self._since = set(last.left), dict(last.since)
            self._unjudged = list(last.unjudged)
            self._before.take(last.held)
            self._before.known = set(last.known)
            self._touched = set(last.touched)
        except (ValueError, TypeError, IndexError) as error:
            raise HistoryError(f"the state of the watch cannot be read ({error})") from None

    # --- what comes ---

    def _take(self, batch: Batch) -> None:
        import numpy as np

        self._about = batch.history
        self._timed = batch.watermark is not None or (batch.ended and self._timed)
        self._watermark = batch.watermark
        self._sure, self._idle = batch.sure, batch.idle
        self._slowest, self._held_back = batch.holding, ""
        if batch.waiting and batch.clock == "index":
            self._held_back = f"waits for :index {batch.watermark:,}, which is missing so far"
        elif batch.waiting and batch.holding:
            self._held_back = f"waits for {batch.holding}, which is behind the others"
        if not self._plans:
            self._plans = list(stricter(self.plan, timed=self._timed))
        for span in batch.spans:
            digest = self.log.bytes_hash(span.file, span.start, span.end)
            self._spans.append((span.file, span.start, span.end, digest))
            self._bytes += span.end - span.start
        rows = rows_of(batch, self._seen)
        self._check_predicates(rows)
        self._begin_with(self._before.declared(batch.history))
        if (first := initial_of(rows, self.state.last)) is not None:
            self.state.last.replace(first)
        finished = ~batch.in_flight & (rows.columns.txn_status != c.INITIAL)
        new = self._finished(rows, np.flatnonzero(finished).astype(np.int32))
        self._seen += int(np.count_nonzero(~batch.in_flight))
        self._flying = self._open(rows, np.flatnonzero(batch.in_flight).astype(np.int32))
        if self._grace_seconds:
            self._arrived.append((time.monotonic(), self._seen))
        if not len(new):
            return
        self._window.extend(rows, new)
        self._new += len(new)
        if (at := self._before.written(rows.columns)) is not None:
            self._end("unknown", note=self._twice(rows, *at))
            return
        self._ask_reads()
        if self.plan.uses_real_time:
            self._keep_real_time(int(rows.columns.txn_end[new].min()))

    def _check_predicates(self, rows: Rows) -> None:
        """Whether predicate reads can be watched, if there are any.

        Raises:
            HistoryError: they cannot.
        """
        statements = rows.columns.statement_txn
        if not len(statements):
            return
        reason = self._no_predicates
        if self._before.asked:
            reason = (
                "a predicate read beside --initial-value or --unwritten-initial cannot be watched: "
                "a row that is named later may be one that it missed (expected an :init in the "
                "log); hint: isocheck check judges the whole history"
            )
        if reason:
            place = rows.place(int(statements[0]))
            raise HistoryError(f"{self.log.line_of(place)}: {reason}")

    def _begin_with(self, held: Sequence[Held]) -> None:
        """Have it that keys held something before the stream."""
        if held:
            self.state.last.replace(as_left(held))

    def _ask_reads(self) -> None:
        """Take what reads show of the keys that no part has."""
        if not self._before.unwritten:
            return
        window = _Window(self._window, self._flying).rows
        held = self._before.shown(window.columns, self._touched)
        if held:
            self.chain.begin_with(held)
            self._begin_with(held)

    def _twice(self, rows: Rows, txn: int, key: Atom) -> str:
        """A value was taken for one of before, and now it is written."""
        name, (_, values) = key_name(*key), self._before.held[key]
        some = ", ".join(show(*value) for value in values[:3])
        return (
            f"{self.log.line_of(rows.place(txn))}: writes to {name} what a read before had shown "
            f"while nobody had written it ({some}), so that it was taken for what {name} held "
            "before the stream; hint: --initial-value says what it held"
        )

    def _finished(self, rows: Rows, new: NDArray[np.int32]) -> NDArray[np.int32]:
        """What is finished now, without what was given up and is as unknown as before."""
        import numpy as np

        if not self._left:
            return new
        kept = []
        for t in new.tolist():
            file, offset = rows.at[t, 1:3].tolist()
            if (file, offset) in self._left:
                self._left.discard((file, offset))
                if rows.columns.txn_status[t] == c.INDETERMINATE:
                    continue
                if not self._take_out(file, offset):
                    self._unjudged.append(self.log.line_of(rows.place(t)))
                    continue
            kept.append(t)
        return np.array(kept, np.int32)

    def _open(self, rows: Rows, flying: NDArray[np.int32]) -> Rows:
        """What is in flight; what was so for too long is as one of unknown outcome from now on."""
        import numpy as np

        since: dict[tuple[int, int], int] = {}
        waited = []
        old = self._old()
        for t in flying.tolist():
            file, offset = rows.at[t, 1:3].tolist()
            if (file, offset) in self._left:
                continue
            since[file, offset] = self._since.get((file, offset), self._seen)
            if since[file, offset] >= old:
                waited.append(t)
                continue
            del since[file, offset]
            self._left.add((file, offset))
            self._window.extend(rows, np.array([t], np.int32))
            self._window.at[-1, 0] = self._seen
            self._seen += 1
        self._since = since
        return rows.take(np.array(waited, np.int32))

    def _take_out(self, file: int, offset: int) -> bool:
        """Take a transaction that was given up out of the window, or of the parts."""
        import numpy as np

        while True:
            at = self._window.at
            mine = (at[:, 1] == file) & (at[:, 2] == offset)
            if mine.any():
                self._window = self._window.take(np.flatnonzero(~mine))
                return True
            if not len(self.chain) or len(self._window) > self._most:
                return False
            self._back(1)

    def _old(self) -> int:
        """What has a smaller number than this is no longer waited for."""
        old = self._seen - self._grace * self._round
        if not self._grace_seconds:
            return old
        until = time.monotonic() - self._grace_seconds
        while len(self._arrived) > 1 and self._arrived[1][0] <= until:
            self._arrived.popleft()
        first, seen = self._arrived[0] if self._arrived else (until, 0)
        return min(old, seen if first <= until else 0)

    def _keep_real_time(self, end: int) -> None:
        """Take back the parts that began after the end of what comes only now."""
        while (begin := self.chain.begin) is not None and end < begin + 2 * self._clock_error:
            self._back(1)

    # --- rounds ---

    def _judge(self, *, ended: bool) -> Round:
        self._rounds += 1
        self._new = 0
        self._waits = ""
        self._judged_at = time.monotonic()
        back, put_back, looked = 1, 0, False
        while True:
            window = _Window(self._window, self._flying)
            if not len(window.rows):
                return self._nothing(ended=ended)
            said, stale = self._say(window)
            if isinstance(said, Valid | Unknown) and not len(stale):
                break
            more = min(back, len(self.chain))
            full = not more or len(window.rows) > self._most
            small = self._bytes <= _SMALL or self.plan.uses_real_time or put_back >= _ENOUGH
            if full or (small and not looked):
                looked = True
                found = self._convicts(said, stale, window, ended=ended)
                if ended and full and not found and len(self.chain):
                    # A simpler violation may convict, where the first one found did not.
                    said = self._simplest(said, window)
                    found = self._convicts(said, stale, window, ended=ended)
                if found == "waits" or self._report is not None:
                    break
                if found:
                    looked = False
                    continue
            if full:
                if self._doubt(said, window, ended=ended) and self._report is None:
                    continue
                break
            self._back(more)
            put_back += more
            back *= 2
        if isinstance(said, Valid) and self._strict == len(self._plans) - 1:
            # The stricter forms may hold of the next window again.
            self._strict = 0
        gone = 0
        if isinstance(said, Valid) and not len(stale):
            gone = self._cut(window, said, ended=ended)
        elif isinstance(said, Unknown) and (ended or len(window.rows) > self._most):
            hint = "; hint: isocheck check of the log has no limit of work"
            self._end(
                "unknown",
                note=said.reason + (hint if said.cause == "timeout" else ""),
                verdict=said,
            )
        self._undecided = len(window.rows) if isinstance(said, Unknown) else 0
        outcome: Outcome = "valid" if isinstance(said, Valid) else "suspected"
        if isinstance(said, Unknown):
            outcome = "unknown"
        return self._done(outcome, judged=len(window.rows), cut=gone, put_back=put_back)

    def _nothing(self, *, ended: bool) -> Round:
        """All is in the parts already."""
        if ended and self._seen:
            self._end_valid()
        elif ended:
            self._end("unknown", note="the stream had no transaction")
        return self._done("valid", judged=0, cut=0, put_back=0)

    def _done(self, outcome: Outcome, *, judged: int, cut: int, put_back: int) -> Round:
        if self._rounds % _TRIMMED == 0:
            trim_heap()
        return Round(
            number=self._rounds,
            seen=self._seen,
            judged=judged,
            cut=cut,
            kept=len(self._window),
            parts=len(self.chain),
            put_back=put_back,
            keys=len(self.state),
            given_up=self.chain.given_up,
            outcome=self._report.outcome if self._report else "invalid" if self._first else outcome,
            holding=self._holding(),
            violations=self._violations,
            note=self._waited_for(outcome),
        )

    def _waited_for(self, outcome: Outcome) -> str:
        if self._report is not None:
            return ""
        return (self._waits or _WAITS) if outcome == "suspected" else self._held_back

    def _say(self, window: _Window) -> tuple[Verdict, NDArray[np.int32]]:
        """The verdict on a window, and who read another beginning of a list than was left."""
        self.state.fetch(window.rows.columns)
        window.columns, stale = opened(window.rows, self.state.last, self.log)
        history = self._history(window.columns, window.rows.names)
        said, self._strict = judge(history, self._plans, self._strict, timeout=self._timeout)
        return said, stale

    def _simplest(self, said: Verdict, window: _Window) -> Verdict:
        """The verdict on a window, with the simplest violation where it is invalid."""
        if not isinstance(said, Invalid):
            return said
        assert window.columns is not None
        history = self._history(window.columns, window.rows.names)
        told, _ = judge(history, [self.plan], simplest=True, timeout=self._timeout)
        return told if isinstance(told, Invalid) else said

    def _history(self, columns: Columns, names: Sequence[str]) -> History:
        return history_of(columns, names, self._about, clock_error=self._clock_error)

    def _limits(self) -> Limits:
        return Limits(
            before=self._watermark if self._timed else None,
            behind=self._seen - self._round,
            real_time=self.plan.uses_real_time,
            clock_error=self._clock_error,
        )

    def _cut(self, window: _Window, said: Valid, *, ended: bool) -> int:
        import numpy as np

        witness, limits = said.witness, self._limits()
        assert isinstance(witness, Witness)
        columns, rows, flying = window.columns, window.rows, window.in_flight
        assert columns is not None
        if ended:
            # Nothing follows: all goes but what took no effect.
            going = everything(columns)
        else:
            closed = limits.closed(columns, rows.numbers, flying)
            young = rows.numbers > self._seen - _GUESSED * self._round
            going = cut(columns, witness, limits, closed, flying, young)
        gone = np.zeros(len(rows), bool)
        gone[going] = True
        seen = np.zeros(len(rows) + 1, bool)
        seen[witness.source] = True
        seen[-1] = False
        aside = ~gone & ~seen[:-1] & ~flying & self._is_aside(window, limits)
        if len(going):
            members = rows.take(going)
            part, _ = opened(members, self.state.last)
            own = witness_of(columns, witness, going, part)
            # The part must hold by itself; if it does not, nothing is lost but memory.
            history = self._history(part, members.names)
            if satisfies(history, self.plan, own):
                self._observed = self._observed or self._observes(history, own)
                self._add(window, members, np.flatnonzero(aside), part, own)
            elif ended:
                raise HistoryError(
                    "the last part is not valid by itself (got a witness of the window, expected "
                    "one of its part); please report this stream"
                )
            else:
                return 0
            self._window = rows.take(np.flatnonzero(~gone & ~aside & ~flying))
            self._save()
        if ended:
            self._end_valid()
        return len(going)

    def _observes(self, history: History, witness: Witness) -> bool:
        """Whether a part shows that sessions read, or missed, what others wrote."""
        if history.columns.implicit or observed(history, witness):
            return True
        # What a later part reads of the state before it, an earlier one has written.
        return bool(self.chain.parts and (witness.source == history.t0).any())

    def _end_valid(self) -> None:
        if not self._unjudged:
            said = (self._before.told(), "" if self._observed else NOTHING_OBSERVED)
            self._end("valid", note="; ".join(filter(None, said)))
            return
        places = self._unjudged
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        self._end(
            "unknown",
            note=f"{', '.join(places[:3])}{more}: ended only after they had been given up, so that "
            "what they read was not judged; hint: a longer --grace",
        )

    def _is_aside(self, window: _Window, limits: Limits) -> NDArray[np.bool_]:
        """Which transactions took no effect, or are no longer waited for."""
        columns, numbers = window.rows.columns, window.rows.numbers
        status = columns.txn_status
        aborted: NDArray[np.bool_] = status == c.ABORTED
        if limits.before is not None:
            aborted &= (columns.txn_end != c.UNKNOWN_END) & (columns.txn_end < limits.before)
        given_up: NDArray[np.bool_] = (status == c.INDETERMINATE) & (numbers < self._old())
        return aborted | given_up

    def _add(
        self,
        window: _Window,
        members: Rows,
        aside: NDArray[np.intp],
        part: Columns,
        witness: Witness,
    ) -> None:
        import numpy as np

        rows = window.rows
        left = self.state.last.left_by(part, witness.order_start, witness.order_txn)
        begins = part.txn_begin[part.txn_begin != c.UNKNOWN_BEGIN]
        given_up = aside[rows.columns.txn_status[aside] == c.INDETERMINATE]
        if len(self._given_up_at) < 3:
            self._given_up_at += [self.log.line_of(rows.place(t)) for t in given_up[:3].tolist()]
        if self._before.unwritten:
            for keys in (members.columns, rows.take(aside).columns):
                self._touched.update(keys.key(k) for k in range(keys.n_keys()))
        before = self.state.last.replace(left)
        self.chain.add(
            Part(
                previous=self.chain.previous,
                transactions=len(members),
                given_up=len(given_up),
                begin=int(begins.max()) if len(begins) else None,
                spans=tuple(self._spans),
                seen=self._seen,
                columns=Taken(
                    members=members.at,
                    aside=rows.at[aside],
                    source=witness.source.astype(np.int64),
                    # Of the rows that a cut had left and nobody touched there is nothing to say.
                    order_start=witness.order_start[: members.columns.n_keys() + 1],
                    order_txn=witness.order_txn.astype(np.int64),
                    before=before,
                ).packed(),
            )
        )
        self._spans = []
        self._recent.append((members, rows.take(aside)))
        while sum(part.columns.operations() for part, _ in self._recent) > _RECENT_OPERATIONS:
            self._recent.popleft()

    def _save(self) -> None:
        """Save from time to time where the watch is; it goes on from there when it was killed."""
        if not self._stream.can_resume:
            self.state.make_room()
            return
        now = time.monotonic()
        new = self._seen - self._saved_seen
        if new < _SAVE_EACH and now - self._saved_at < _SAVE_AFTER and not self.state.full:
            return
        self._saved_at, self._saved_seen = now, self._seen
        self.chain.flush()
        self.state.save(
            Saved(
                chain=self.chain.size,
                parts=list(self.chain.parts),
                rows=saved(self._window),
                seen=self._seen,
                left=list(self._left),
                since=list(self._since.items()),
                unjudged=list(self._unjudged),
                position=self._stream.position(),
                held=[(key, *held) for key, held in self._before.held.items()],
                known=list(self._before.known),
                touched=list(self._touched),
            )
        )

    def _back(self, parts: int) -> None:
        """Put the last cuts back into the window."""
        import numpy as np

        found = Rows.none()
        for part in self.chain.undo(parts):
            self.state.last.replace(part.before)
            if self._recent:
                members, aside = self._recent.pop()
            else:
                members, aside = self.log.rows_at(part.members), self.log.rows_at(part.aside)
            found.extend(members)
            found.extend(aside)
        found.extend(self._window)
        # The numbers of a session ascend in its order.
        self._window = found.take(np.argsort(found.numbers, kind="stable"))
        if not len(self.chain):
            self._touched.clear()
            self._ask_reads()

    # --- violations ---

    def _convicts(
        self, said: Verdict, stale: NDArray[np.int32], window: _Window, *, ended: bool
    ) -> Literal["", "waits", "found"]:
        """Whether a violation holds whatever else is in the stream; then it is the report.

        It waits while what is still to come may explain what the accused have read, and there is
        room for that.
        """
        accused = set(stale.tolist())
        if isinstance(said, Invalid):
            accused |= set(_accused(said, len(window.rows)))
        if not accused:
            return ""
        chosen = sorted(accused)
        flying = [t for t in chosen if window.in_flight[t]]
        if flying:
            some = map(self.log.line_of, map(window.rows.place, flying[:_NAMED]))
            more = f" and {len(flying) - _NAMED} more" if len(flying) > _NAMED else ""
            self._waits = f"waits for the completion of {', '.join(some)}{more}"
            return ""
        if not ended and not self._all_closed(window.rows, chosen):
            self._waits = self._open_until()
            return ""
        found = accusation(window.rows, chosen, self.log, self._about)
        if found is None:
            return ""
        try:
            history = self._alone(found)
        except UnsupportedError:
            return ""  # these alone do not tell what was there before
        doubt = self._unsure(window.rows, chosen, ended=ended, unwritten=found.unwritten)
        waits = bool(doubt) and not ended and len(window.rows) <= self._most
        told = not waits and self._first is None
        verdict, _ = judge(history, [self.plan], simplest=told, timeout=self._timeout)
        if not isinstance(verdict, Invalid) or not verdict.certified:
            return ""
        if waits:
            self._waits = doubt
            return "waits"
        places = tuple(self.log.line_of(place) for place in found.places)
        self._violated(verdict, chosen, places, found.assumed, doubt=doubt)
        return "found"

    def _violated(
        self,
        verdict: Invalid,
        accused: Sequence[int],
        places: tuple[str, ...],
        assumed: tuple[tuple[object, object], ...],
        *,
        doubt: str,
    ) -> None:
        """Report a violation; where the watch goes on, without what the accused have read."""
        if doubt:
            self._end("suspected", note=doubt, verdict=verdict, places=places, assumed=assumed)
            return
        self._violations += 1
        if self._first is None:
            self._first = self._told("invalid", "", verdict, places, assumed)
        if not self._to_the_end:
            self._end("invalid", verdict=verdict, places=places, assumed=assumed)
            return
        columns = self._window.columns
        for t in accused:
            for op in range(int(columns.op_start[t]), int(columns.op_start[t + 1])):
                if columns.op_kind[op] not in {c.WRITE, c.APPEND}:
                    columns.set_value(op, c.UNKNOWN_VALUE)
            columns.forget_statements(t)

    def _alone(self, found: Accusation) -> History:
        name = ", ".join(self._sources) or "the stream"
        alone = told_alone(found, name, clock_error=self._clock_error)
        return self._before.in_(alone)

    def _all_closed(self, rows: Rows, chosen: Sequence[int]) -> bool:
        """Whether nothing that is still to come can have been seen by them."""
        if not self._timed or self._watermark is None:
            return False
        columns = rows.columns
        until = self._watermark - 2 * self._clock_error
        return all(
            columns.txn_end[t] < until for t in chosen if columns.txn_status[t] == c.COMMITTED
        )

    def _open_until(self) -> str:
        """What has to come before nothing that is still to come can have been seen."""
        if not self._timed or self._watermark is None:
            return "waits for the end of the log, whose order is not known without any :invoke"
        who = self._slowest or "the log"
        return f"waits until {who} has come past what was read: it is at {self._watermark:,}"

    def _unsure(
        self, rows: Rows, chosen: Sequence[int], *, ended: bool, unwritten: bool = True
    ) -> str:
        """What may still come that explains what they have read, in words; empty for nothing.

        Args:
            rows: of the window.
            chosen: which of them.
            ended: whether the watch ends here.
            unwritten: whether somebody read what nobody has written.
        """
        columns = rows.columns
        ends = [int(columns.txn_end[t]) for t in chosen if columns.txn_status[t] == c.COMMITTED]
        until = max(ends, default=c.UNKNOWN_BEGIN) + 2 * self._clock_error
        if self._sure == c.UNKNOWN_END:
            return ""
        if until >= self._sure:
            who = ", ".join(self._idle)
            if not who:
                return (
                    f"invalid if all is there that was done before {until:,}: the order of the "
                    "lines does not say so, and what is still to come may have been read; hint: "
                    "isocheck check of the log, once it is complete"
                )
            return (
                f"invalid if {who} did nothing before {until:,}: silent for so long that the "
                "others no longer waited, and what is still to come of it may have been read; "
                "hint: isocheck check of the logs, once they are complete"
            )
        counts = self._stream.counts
        differs = bool(counts.get("completion_differs"))
        flying = bool((self._flying.columns.txn_begin <= until).any())
        if (flying and (differs or not ended)) or (self._left and differs):
            return (
                f"invalid if what was in flight at {until:,} wrote nothing else than it was "
                "invoked with; hint: isocheck check of the log, once it is complete"
            )
        joined = unwritten or self._before.unwritten or counts.get("completions_without_invocation")
        if joined and not self._stream.is_from_its_beginning and self._is_young():
            return (
                "invalid if nothing was in flight where the log begins: what is read so early may "
                "be of a transaction that was; hint: --grace says how long that may be"
            )
        return ""

    def _is_young(self) -> bool:
        """Whether what was in flight where the stream begins may still be so."""
        if self._grace_seconds:
            return time.monotonic() - self._began < self._grace_seconds
        return self._seen <= self._grace * self._round

    def _doubt(self, said: Verdict, window: _Window, *, ended: bool) -> bool:
        """All cuts are back, or more than the window may hold would have to be.

        Returns:
            Whether a violation was found.
        """
        whole = not len(self.chain)
        rows = window.rows
        if isinstance(said, Invalid) and not said.certified:
            # Its certificate was not checked in the time allowed, so that it convicts nobody.
            if ended:
                self._end("unknown", note=said.certified_reason, verdict=said)
        elif whole and (ended or self._all_closed(rows, range(len(rows)))):
            # Nothing was cut: these are all transactions, as the log has them.
            doubt = self._unsure(rows, range(len(rows)), ended=ended)
            if doubt and not ended and len(rows) <= self._most:
                self._waits = doubt
                return False
            columns = copy(rows.columns)
            columns.lower_predicates()
            history = self._before.in_(self._history(columns, rows.names))
            shown, _ = judge(history, [self.plan], simplest=True, timeout=self._timeout)
            if not isinstance(shown, Invalid) or not shown.certified:
                self._end("unknown", note="the violation was not found again", verdict=shown)
                return False
            accused = _accused(shown, len(rows))
            # Nobody had begun to write anything else when they had their answers.
            found = None if ended else accusation(rows, accused, self.log, self._about)
            places = tuple(self.log.line_of(rows.place(t)) for t in accused)
            self._violated(
                shown,
                accused,
                places,
                found.assumed if found else (),
                doubt=doubt,
            )
            return True
        elif ended or not whole:
            self._end(
                "suspected",
                verdict=said if ended else self._simplest(said, window),
                note=f"{len(self.chain)} parts would have to be judged again with the window; "
                "hint: a larger --most, or isocheck check of the whole",
            )
        # Else it goes on: what is still to come may explain it.
        return False

    def _end(
        self,
        outcome: Outcome,
        *,
        note: str = "",
        verdict: Verdict | None = None,
        places: tuple[str, ...] = (),
        assumed: tuple[tuple[object, object], ...] = (),
    ) -> None:
        self._report = self._told(outcome, note, verdict, places, assumed)
        if (first := self._first) is not None and self._to_the_end:
            outcome = "invalid"
            self._report = structs.replace(
                first,
                seen=self._seen,
                parts=len(self.chain),
                note=note,
                violations=self._violations,
            )
        try:
            self.chain.end(End(previous=self.chain.previous, outcome=outcome, note=note))
        except HistoryError as error:
            if outcome == "valid":
                raise  # nothing but a whole chain proves it
            parts = [self._report.note, f"the chain lacks its end: {error}"]
            self._report = structs.replace(self._report, note="; ".join(filter(None, parts)))
        self.state.close()

    def _told(
        self,
        outcome: Outcome,
        note: str,
        verdict: Verdict | None,
        places: tuple[str, ...],
        assumed: tuple[tuple[object, object], ...],
    ) -> Report:
        return Report(
            outcome=outcome,
            note=note,
            seen=self._seen,
            parts=len(self.chain),
            verdict=verdict,
            places=places,
            assumed=assumed,
            given_up=self.chain.given_up,
            given_up_at=tuple(self._given_up_at[:3]) if self.chain.given_up else (),
            violations=self._violations,
        )

    def _holding(self) -> str:
        """What keeps the window long."""
        held = len(self._window)
        if held < _HELD * self._round:
            return ""
        oldest, what = self._window, "of unknown outcome"
        open_ = self._flying
        begin, least = self._window.columns.txn_begin, open_.columns.txn_begin
        if len(open_) and least.min() <= begin.min():
            oldest, what, begin = open_, "open", least
        row = int(begin.argmin())
        status = oldest.columns.txn_status[row]
        if what != "open" and status != c.INDETERMINATE:
            return f"one knot of {held:,}"
        return (
            f"T{oldest.columns.txn_number[row]}, {what}{self._for(int(begin[row]))}, holds {held:,}"
        )

    def _for(self, begin: int) -> str:
        if self._about is None or not self._about.real_time.startswith(":time"):
            return ""
        if self._watermark is None or begin == c.UNKNOWN_BEGIN:
            return ""
        return f" for {(self._watermark - begin) / 1e9:,.0f} s"


class _Window:
    """What one round judges: what was kept, what is new, and what is in flight at the end."""

    def __init__(self, kept: Rows, flying: Rows) -> None:
        import numpy as np

        self.rows = Rows.none()
        self.rows.extend(kept)
        self.rows.extend(flying)
        self.in_flight = np.arange(len(self.rows)) >= len(kept)
        self.columns: Columns | None = None


def _accused(said: Invalid, rows: int) -> list[int]:
    """The transactions that a violation is about, also those that its argument has no room for."""
    about = {view.number for view in said.violation.transactions}
    if isinstance(said.refutation, Refutation):
        about |= transactions_of(said.refutation.steps, said.history)
    return sorted(number for number in about if number < rows)
