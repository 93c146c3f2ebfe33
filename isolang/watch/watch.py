"""Watching a stream: rounds, cuts, and what is put back (docs/routes.md, *Cuts of a stream*)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from isolang.certify.proofs import Witness
from isolang.errors import HistoryError
from isolang.history.clock_error import with_clock_error
from isolang.history.history import History
from isolang.history.values import UNKNOWN, encode
from isolang.language.meaning.core import Spec
from isolang.verdict import Invalid, Unknown, Valid, Verdict
from isolang.watch.chain import (
    NAME,
    Chain,
    End,
    Head,
    Part,
    Paused,
    as_place,
    as_values,
    kept_of,
    place_of,
)
from isolang.watch.cut import Limits, cut, everything
from isolang.watch.levels import stricter, watched
from isolang.watch.state import NOTHING, Change, Key, State, as_watched
from isolang.watch.stream import Batch, Place, Stream, transactions
from isolang.watch.window import Watched, history_of, judge, satisfies

if TYPE_CHECKING:
    from isolang.language.classify.event_graph import Plan

Outcome: TypeAlias = Literal["valid", "invalid", "suspected", "unknown"]


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
        keys: of the state.
        outcome: ``valid`` so far, or what was found.
        holding: what keeps the window long, in words.
    """

    number: int
    seen: int
    judged: int
    cut: int
    kept: int
    parts: int
    put_back: int
    keys: int
    outcome: Outcome
    holding: str = ""


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
    """

    outcome: Outcome
    note: str
    seen: int
    parts: int
    verdict: Verdict | None = None
    places: tuple[str, ...] = ()
    assumed: tuple[tuple[object, object], ...] = ()


class Watch:
    """A stream that is judged round by round.

    Args:
        spec: the level.
        stream: what is fed; where the folder has a chain, resumed at the position that this has
            (:func:`isolang.watch.position_in`).
        folder: where the chain of parts is kept. A watch that was killed goes on with its chain.
        sources: names of what is read, for the chain.
        round: transactions that make a round.
        clock_error: nanoseconds by which the clocks of two sessions may differ.
        most: transactions that a window may have; where more would have to be put back, a violation
            is only suspected.
        grace: rounds after which a transaction of unknown outcome that nobody has read from is
            given up.
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
        clock_error: int = 0,
        most: int = 200_000,
        grace: int = 20,
        timeout: float | None = None,
    ) -> None:
        self.plan = watched(spec)
        self.log, self.state = stream.log, State()
        self._stream = stream
        self._sources = tuple(sources)
        self._round, self._clock_error = round, clock_error
        self._most, self._grace, self._timeout = most, grace, timeout
        self._window: list[Watched] = []
        self._flying: list[Watched] = []
        self._new = 0
        self._seen = 0
        self._watermark: int | None = None
        self._timed = False
        self._plans: list[Plan] = []
        self._strict = 0
        self._rounds = 0
        self._spans: list[tuple[int, int, int, str]] = []
        self._deleted: set[Key] = set()
        self._deleted_now: list[Key] = []
        self._report: Report | None = None
        self._recent: deque[tuple[tuple[Watched, ...], tuple[Watched, ...]]] = deque(maxlen=8)
        folder.mkdir(parents=True, exist_ok=True)
        head = Head(
            spec_name=self.plan.spec.name,
            spec_texts=dict(self.plan.spec.texts),
            sources=tuple(sources),
            reading={"clock_error": clock_error},
        )
        self.chain = Chain(folder / NAME, head)
        if self.chain.paused is not None:
            self._go_on(self.chain.paused)

    @property
    def report(self) -> Report | None:
        """What was found; ``None`` while the stream goes on and nothing was."""
        return self._report

    def feed(self, batch: Batch) -> Iterator[Round]:
        """Take a batch, and judge when enough has come.

        Raises:
            HistoryError: it has what cannot be watched.
        """
        if self._report is not None:
            return
        self._take(batch)
        if self._new >= self._round or batch.ended:
            yield self._judge(ended=batch.ended)

    def _go_on(self, paused: Paused) -> None:
        """Take up the state and the window of a watch that was killed."""
        self.state, self._deleted = paused.state, paused.deleted
        if (last := paused.last) is None:
            return
        self._seen = last.seen
        held = [*last.window]
        for part in paused.undone:
            held += [*part.members, *part.aside]
        self._window = [self._again(n, as_place(p)) for n, p in sorted(held)]

    # --- what comes ---

    def _take(self, batch: Batch) -> None:
        self._timed = batch.watermark is not None or (batch.ended and self._timed)
        self._watermark = batch.watermark
        if not self._plans:
            self._plans = list(stricter(self.plan, timed=self._timed))
        self._flying = []
        for span in batch.spans:
            digest = self.log.bytes_hash(span.file, span.start, span.end)
            self._spans.append((span.file, span.start, span.end, digest))
        flags = batch.in_flight.tolist()
        # What is in flight comes after all that is finished, in its session too.
        number, open_ = self._seen, self._seen + flags.count(False)
        for at, given in enumerate(transactions(batch.history)):
            open_, number = (open_ + 1, number) if flags[at] else (open_, number + 1)
            name = open_ if flags[at] else number
            where = f"transaction {name}"
            one = Watched(
                number=name,
                given=as_watched(given, name, where),
                place=batch.places[at],
                in_flight=flags[at],
            )
            for op in given.ops:
                if op[0] == "delete" and (key := encode(op[1], where)) not in self._deleted:
                    self._deleted.add(key)
                    self._deleted_now.append(key)
            if one.in_flight:
                self._flying.append(one)
                continue
            self._window.append(one)
            self._keep_real_time(one)
        self._new += number - self._seen
        self._seen = number

    def _keep_real_time(self, one: Watched) -> None:
        """Take back the parts that began after the end of what comes only now."""
        end = one.given.end
        if not self.plan.uses_real_time or not isinstance(end, int):
            return
        while (begin := self.chain.begin) is not None and end < begin + 2 * self._clock_error:
            self._back(1)

    # --- rounds ---

    def _judge(self, *, ended: bool) -> Round:
        self._rounds += 1
        self._new = 0
        back, put_back = 1, 0
        while True:
            window = [*self._window, *self._flying]
            history = history_of(window, self.state, clock_error=self._clock_error)
            said, self._strict = judge(history, self._plans, self._strict, timeout=self._timeout)
            if not isinstance(said, Invalid):
                break
            if self._convicts(said, window, ended=ended):
                break
            parts = min(back, len(self.chain))
            if not parts or len(window) > self._most:
                self._doubt(said, window, ended=ended)
                break
            self._back(parts)
            put_back += parts
            back *= 2
        if isinstance(said, Valid) and self._strict == len(self._plans) - 1:
            # The stricter forms may hold of the next window again.
            self._strict = 0
        gone = 0
        if isinstance(said, Valid):
            gone = self._cut(window, history, said, ended=ended)
        elif isinstance(said, Unknown) and ended:
            self._end("unknown", note=said.reason, verdict=said)
        outcome: Outcome = "valid" if isinstance(said, Valid) else "suspected"
        if isinstance(said, Unknown):
            outcome = "unknown"
        return Round(
            number=self._rounds,
            seen=self._seen,
            judged=len(window),
            cut=gone,
            kept=len(self._window),
            parts=len(self.chain),
            put_back=put_back,
            keys=len(self.state.values),
            outcome=self._report.outcome if self._report else outcome,
            holding=self._holding(),
        )

    def _cut(self, window: Sequence[Watched], history: History, said: Valid, *, ended: bool) -> int:
        witness = said.witness
        assert isinstance(witness, Witness)
        limits = Limits(
            before=self._watermark if self._timed else None,
            behind=self._seen - self._round,
            real_time=self.plan.uses_real_time,
            clock_error=self._clock_error,
        )
        # At the end nothing follows: all goes but what took no effect.
        found = (
            everything(window, history, witness) if ended else cut(window, history, witness, limits)
        )
        going, left = found
        gone, seen = set(going), set(witness.source.tolist())
        aside = {
            i
            for i, one in enumerate(window)
            if i not in gone and i not in seen and not one.in_flight and self._is_aside(one, limits)
        }
        if going:
            part_history, part_witness = self._part_of(window, history, witness, going)
            # The part must hold by itself; if it does not, nothing is lost but memory.
            if satisfies(part_history, self.plan, part_witness):
                self._add(window, going, sorted(aside), part_witness, left)
            elif ended:
                raise HistoryError(
                    "the last part is not valid by itself (got a witness of the window, expected "
                    "one of its part); please report this stream"
                )
            else:
                return 0
            taken = gone | aside
            self._window = [
                one for i, one in enumerate(window) if i not in taken and not one.in_flight
            ]
        if ended:
            self._end("valid")
        return len(going)

    def _is_aside(self, one: Watched, limits: Limits) -> bool:
        """Whether a transaction took no effect, or is no longer waited for."""
        if one.given.status == "aborted":
            return limits.before is None or (
                isinstance(one.given.end, int) and one.given.end < limits.before
            )
        old = self._seen - self._grace * self._round
        return one.given.status == "maybe" and one.number < old

    def _part_of(
        self, window: Sequence[Watched], history: History, witness: Witness, going: Sequence[int]
    ) -> tuple[History, Witness]:
        """A part as a history by itself, and what the window's witness says of it."""
        members = [window[i] for i in going]
        part = history_of(members, self.state, clock_error=self._clock_error)
        return part, restricted(history, witness, going, part)

    def _add(
        self,
        window: Sequence[Watched],
        going: Sequence[int],
        aside: Sequence[int],
        witness: Witness,
        left: Change,
    ) -> None:
        members, others = [window[i] for i in going], [window[i] for i in aside]
        taken = {*going, *aside}
        before = self.state.apply(left)
        begins = [m.given.begin for m in members if isinstance(m.given.begin, int)]
        self.chain.add(
            Part(
                previous=self.chain.previous,
                members=tuple((m.number, place_of(m.place)) for m in members),
                aside=tuple((m.number, place_of(m.place)) for m in others),
                source=tuple(witness.source.tolist()),
                order_start=tuple(witness.order_start.tolist()),
                order_txn=tuple(witness.order_txn.tolist()),
                left=kept_of(left),
                before=kept_of(before),
                begin=max(begins, default=None),
                spans=tuple(self._spans),
                window=tuple(
                    (one.number, place_of(one.place))
                    for i, one in enumerate(window)
                    if i not in taken and not one.in_flight
                ),
                deleted=tuple(self._deleted_now),
                seen=self._seen,
                position=self._stream.position(),
            )
        )
        self._spans, self._deleted_now = [], []
        self._recent.append((tuple(members), tuple(others)))

    def _back(self, parts: int) -> None:
        """Put the last cuts back into the window."""
        found: list[Watched] = []
        for part in self.chain.undo(parts):
            self.state.undo(as_values(part.before))
            if self._recent:
                members, aside = self._recent.pop()
            else:
                members = tuple(self._again(n, as_place(p)) for n, p in part.members)
                aside = tuple(self._again(n, as_place(p)) for n, p in part.aside)
            found += [*members, *aside]
        # The numbers of a session ascend in its order.
        self._window = sorted([*found, *self._window], key=lambda one: one.number)

    def _again(self, number: int, place: Place) -> Watched:
        given = self.log.transaction_at(place)
        return Watched(
            number=number,
            given=as_watched(given, number, f"transaction {number}"),
            place=place,
            in_flight=False,
        )

    # --- violations ---

    def _convicts(self, said: Invalid, window: Sequence[Watched], *, ended: bool) -> bool:
        """Whether a violation holds whatever else is in the stream; then it is the report."""
        members = _accused(said, window)
        if any(one.in_flight for one in members) or not members:
            return False
        if not ended and not self._all_closed(members):
            return False
        chosen = {one.number: one for one in members}
        for one in members:
            for op in one.given.ops:
                if op[0] != "r":
                    continue
                atom = encode(op[1], "a key")
                last = self.state.values.get(atom)
                if last is not None and last.value == op[2] and last.number not in chosen:
                    chosen[last.number] = self._again(last.number, last.place)
        alone = sorted(chosen.values(), key=lambda one: one.number)
        # As the log has them: nothing went before, so that nil is nil.
        given = [replace(self.log.transaction_at(o.place), label=o.number) for o in alone]
        history = History.from_transactions(given, name=", ".join(self._sources) or "the stream")
        if self._clock_error:
            history = with_clock_error(history, self._clock_error)
        verdict, _ = judge(history, [self.plan], timeout=self._timeout)
        if not isinstance(verdict, Invalid) or not verdict.certified:
            return False
        assumed = self._assumed(alone)
        if assumed is None:
            return False
        self._end(
            "invalid",
            verdict=verdict,
            places=tuple(self.log.line_of(one.place) for one in alone),
            assumed=assumed,
        )
        return True

    def _assumed(self, alone: Sequence[Watched]) -> tuple[tuple[object, object], ...] | None:
        """The values that some transactions read, if each has one writer, which is among them."""
        written = {
            (encode(op[1], ""), encode(op[2], "")): one
            for one in alone
            for i, op in enumerate(one.given.ops)
            if op[0] == "w" and i not in one.given.failed
        }
        wanted: dict[tuple[Key, Key], tuple[Any, Any]] = {}
        for one in alone:
            for i, op in enumerate(one.given.ops):
                if op[0] != "r" or i in one.given.failed or op[2] is UNKNOWN:
                    continue
                if op[2] == NOTHING:
                    if encode(op[1], "") in self._deleted:
                        return None
                    continue
                pair = (encode(op[1], ""), encode(op[2], ""))
                if pair not in written:
                    return None
                wanted[pair] = (op[1], op[2])
        found = self.log.writers(list(wanted.values()))
        for wrote, places in zip(wanted, found, strict=True):
            if {(p.file, p.offset) for p in places} != {
                (written[wrote].place.file, written[wrote].place.offset)
            }:
                return None
        return tuple(wanted.values())

    def _all_closed(self, members: Sequence[Watched]) -> bool:
        """Whether nothing that is still to come can have been seen by them."""
        if not self._timed or self._watermark is None:
            return False
        margin = 2 * self._clock_error
        return all(
            isinstance(one.given.end, int) and one.given.end + margin < self._watermark
            for one in members
            if one.given.status == "committed"
        )

    def _doubt(self, said: Invalid, window: Sequence[Watched], *, ended: bool) -> None:
        """All cuts are back, or more than the window may hold would have to be."""
        whole = not len(self.chain)
        if not said.certified:
            # Its certificate was not checked in the time allowed, so that it convicts nobody.
            if ended:
                self._end("unknown", note=said.certified_reason, verdict=said)
        elif whole and (ended or self._all_closed(window)):
            accused = _accused(said, window)
            # Nobody had begun to write anything else when they had their answers.
            assumed = () if ended else _values_read(accused)
            places = tuple(self.log.line_of(one.place) for one in accused)
            self._end("invalid", verdict=said, places=places, assumed=assumed)
        elif ended or not whole:
            self._end(
                "suspected",
                verdict=said,
                note=f"{len(self.chain)} parts would have to be judged again with the window; "
                "hint: a larger --memory, or isocheck check of the whole",
            )
        # Else it goes on: what is still to come may explain it.

    def _end(
        self,
        outcome: Outcome,
        *,
        note: str = "",
        verdict: Verdict | None = None,
        places: tuple[str, ...] = (),
        assumed: tuple[tuple[object, object], ...] = (),
    ) -> None:
        self._report = Report(
            outcome=outcome,
            note=note,
            seen=self._seen,
            parts=len(self.chain),
            verdict=verdict,
            places=places,
            assumed=assumed,
        )
        self.chain.end(
            End(
                previous=self.chain.previous,
                outcome=outcome,
                note=note,
            )
        )

    def _holding(self) -> str:
        """What keeps the window long."""
        if len(self._window) < 2 * self._round:
            return ""
        oldest = min((*self._flying, *self._window), key=lambda one: one.given.begin or 0)
        what = "open" if oldest.in_flight else "of unknown outcome or order"
        return f"T{oldest.number}, {what}, holds {len(self._window):,}"


def _values_read(some: Sequence[Watched]) -> tuple[tuple[object, object], ...]:
    """The keys and values that some transactions read."""
    reads = [op for one in some for op in one.given.ops if op[0] == "r" and op[2] is not UNKNOWN]
    return tuple({(encode(op[1], ""), encode(op[2], "")): (op[1], op[2]) for op in reads}.values())


def _accused(said: Invalid, window: Sequence[Watched]) -> list[Watched]:
    """The transactions that the argument of a violation is about."""
    return [
        window[view.number] for view in said.violation.transactions if view.number < len(window)
    ]


def restricted(history: History, witness: Witness, going: Sequence[int], part: History) -> Witness:
    """What a witness says of some transactions, as a history of their own.

    Args:
        history: of the window.
        witness: for it.
        going: indices of the transactions, ascending.
        part: the history of these alone, in this order.
    """
    whole, own = history.columns, part.columns
    number = np.full(whole.transactions() + 1, -1, np.int64)
    number[list(going)] = np.arange(len(going))
    number[whole.transactions()] = len(going)  # T0
    starts = whole.op_start
    spans = [np.arange(starts[t], starts[t + 1]) for t in going]
    ops = np.concatenate(spans) if spans else np.zeros(0, np.int64)
    source = witness.source[ops].astype(np.int64)
    mapped = np.where(source >= 0, number[source], -1)
    key_of = {whole.key(k): k for k in range(whole.n_keys())}
    orders = []
    for key in range(own.n_keys()):
        at = key_of[own.key(key)]
        order = witness.order_txn[witness.order_start[at] : witness.order_start[at + 1]]
        kept = number[order]
        orders.append(kept[kept >= 0])
    start = np.concatenate(([0], np.cumsum([len(order) for order in orders], dtype=np.int64)))
    return Witness.of(
        mapped, start.astype(np.int64), np.concatenate(orders) if orders else np.zeros(0, np.int64)
    )
