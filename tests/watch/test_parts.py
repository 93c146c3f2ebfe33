"""The parts of a watch by themselves: the window, the horizon, the parts, and the conviction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.watching import lines

from isolang.history import columns as c
from isolang.history.values import Literal
from isolang.watch import Stream
from isolang.watch.accusation import accusation
from isolang.watch.chain import Head
from isolang.watch.conviction import Conviction, accused_history
from isolang.watch.cut import split_cut, witness_of
from isolang.watch.horizon import Horizon
from isolang.watch.initial_state import InitialState
from isolang.watch.judging import WindowJudge, columns_after_parts
from isolang.watch.levels import watchable_plan
from isolang.watch.parts import Parts
from isolang.watch.stream.rows import rows_of
from isolang.watch.window import Window


def operation(kind: str, process: int, value: str, time: int | None = None) -> str:
    at = "" if time is None else f", :time {time}"
    return f"{{:type :{kind}, :process {process}, :f :txn, :value [{value}]{at}}}\n"


class Kit:
    """A stream with a window, a horizon, parts and a judge, before anything is read."""

    def __init__(self, folder: Path, text: str, level: str = "ser", **window: float) -> None:
        path = folder / "log.edn"
        path.write_text(text)
        self.stream = Stream([path], follow=False, batch=70)
        self.window = Window(**({"round": 1, "grace": 10, "grace_seconds": 0.0} | window))
        self.horizon = Horizon(0)
        initial = InitialState()
        plan = watchable_plan(level)
        head = Head(
            spec_name=plan.spec.name,
            spec_texts=dict(plan.spec.texts),
            sources=("log.edn",),
            reading=initial.read_options(0),
        )
        self.parts = Parts(
            folder / "state",
            head,
            memory=1 << 20,
            stream=self.stream,
            initial=initial,
            window=self.window,
        )
        self.judge = WindowJudge(
            plan,
            values=self.parts.values,
            horizon=self.horizon,
            log=self.stream.log,
            timeout=None,
        )
        self.conviction = Conviction(
            self.judge,
            stream=self.stream,
            window=self.window,
            horizon=self.horizon,
            initial=initial,
            name="the log",
            most=100,
        )

    def read(self, batches: int = 100) -> None:
        """Take batches into the window, as the intake does."""
        while batches and not self.stream.ended:
            batch = self.stream.next(0)
            self.horizon.advance(batch)
            self.judge.begin()
            self.parts.note_read_bytes(batch)
            rows = rows_of(batch, self.window.seen)
            self.window.advance(rows, batch.in_flight)
            self.window.kept.extend(rows, np.flatnonzero(~batch.in_flight).astype(np.int32))
            batches -= 1

    def cut(self, *, ended: bool = True) -> int:
        """Cut a valid window off, or what is closed of it; returns how many transactions went."""
        window = self.window.snapshot()
        verdict, _ = self.judge.check(window)
        going, aside = split_cut(
            window,
            verdict.witness,
            self.horizon.limits(0, real_time=False),
            young_from=100,
            wait_from=0,
            ended=ended,
        )
        members = window.rows.take(going)
        columns, _ = columns_after_parts(members, self.parts.values.last)
        own = witness_of(window.columns, verdict.witness, going, columns)
        self.parts.add(members, window.rows.take(aside), columns, own)
        gone = np.zeros(len(window), bool)
        gone[going] = gone[aside] = True
        self.window.keep(window, gone=gone)
        return len(going)


# --- the window ---


def test_a_window_gives_up_what_is_in_flight_for_too_long(tmp_path):
    """After the grace it is kept as an indeterminate transaction, and no longer in flight."""
    text = operation("invoke", 9, "[:w x 1]") + lines(*(f"0 [:w y {i}]" for i in range(8)))
    kit = Kit(tmp_path, text, grace=3)
    kit.read(2)
    assert (0, 0) in kit.window.since
    assert kit.window.abandoned == set()
    kit.read()
    assert (len(kit.window.in_flight), kit.window.abandoned) == (0, {(0, 0)})
    status = kit.window.kept.columns.txn_status
    assert np.count_nonzero(status == c.INDETERMINATE) == 1
    assert kit.window.seen == len(kit.window.kept) == 9
    assert kit.window.remove(0, 0)
    assert not kit.window.remove(0, 0)
    assert len(kit.window.kept) == 8


def test_a_window_says_what_holds_it(tmp_path):
    """One in flight, with its age if the log has times; nothing, while the window is short."""
    kit = Kit(tmp_path, operation("invoke", 9, "[:w x 1]") + lines(*["0 [:w y 1]"] * 3), grace=99)
    kit.read()
    assert kit.window.holding_phrase(kit.horizon) == ""
    (tmp_path / "more").mkdir()
    text = operation("invoke", 9, "[:w x 1]") + lines(*(f"0 [:w y {i}]" for i in range(5)))
    kit = Kit(tmp_path / "more", text, grace=99)
    kit.read()
    assert kit.window.holding_phrase(kit.horizon) == "T1, open, holds 5"


def test_a_stream_is_early_for_the_grace(tmp_path):
    """What was in flight before the log may still be, until as many rounds have been seen."""
    kit = Kit(tmp_path, lines(*(f"0 [:w y {i}]" for i in range(5))), grace=3)
    early = []
    while not kit.stream.ended:
        kit.read(1)
        early.append((kit.window.seen, kit.window.is_early()))
    assert all(is_early == (seen <= 3) for seen, is_early in early)
    assert early[-1] == (5, False)


# --- the horizon ---


def test_a_horizon_is_past_what_ended_before_the_watermark(tmp_path):
    """A read that ended before it can have read from no later transaction, another one can."""
    text = operation("invoke", 0, "[:w x 1]") + operation("ok", 0, "[:w x 1]")
    kit = Kit(tmp_path, text * 2 + operation("ok", 7, "[:r x 1]"))
    kit.read()
    rows = kit.window.snapshot().rows
    assert kit.horizon.is_past(rows, [0, 1])
    kit.horizon.watermark = int(rows.columns.txn_end[1])
    assert kit.horizon.is_past(rows, [0])
    assert not kit.horizon.is_past(rows, [0, 1])
    assert str(f"{kit.horizon.watermark:,}") in kit.horizon.awaited_end()


def test_a_log_of_completions_alone_has_no_horizon(tmp_path):
    """Its order is not known, so that nothing is past."""
    kit = Kit(tmp_path, operation("ok", 0, "[:w x 1]"))
    kit.read()
    assert not kit.horizon.is_past(kit.window.snapshot().rows, [0])
    assert kit.horizon.limits(7, real_time=True).before is None
    assert kit.horizon.awaited_end().startswith("waits for the end of the log")


# --- the parts ---


@pytest.mark.parametrize("in_memory", [True, False])
def test_parts_come_back_as_they_were(tmp_path, in_memory):
    """Put back from memory or from the log: the rows in their order, and the values before."""
    kit = Kit(tmp_path, lines(*(f"{i % 2} [:w x {i}] [:append y {i}]" for i in range(6))))
    kit.read(3)
    first = kit.cut(ended=False)
    assert first
    values = kit.parts.values.last.entries(0, 100)
    kit.read()
    later = kit.window.kept
    assert len(later)
    assert kit.cut() == len(later)
    assert (len(kit.parts.chain), len(kit.window.kept)) == (2, 0)
    if not in_memory:
        kit.parts._recent._parts.clear()
    kit.parts.put_back(1)
    assert kit.parts.values.last.entries(0, 100) == values
    assert kit.window.kept.at.tolist() == later.at.tolist()
    kit.parts.put_back(1)
    assert (len(kit.parts.chain), len(kit.parts.values)) == (0, 0)
    assert kit.window.kept.numbers.tolist() == list(range(6))
    assert first + len(later) == 6
    kit.parts.values.close()


def test_a_transaction_is_recalled_from_its_part(tmp_path):
    """The parts behind it are put back, and the window has the others; a full one gives up."""
    kit = Kit(tmp_path, lines(*(f"0 [:w x {i}]" for i in range(3))))
    kit.read()
    place = tuple(kit.window.kept.at[1, 1:3].tolist())
    kit.cut()
    assert not kit.parts.remove_abandoned(*place, most=-1)
    assert kit.parts.remove_abandoned(*place, most=10)
    assert kit.window.kept.numbers.tolist() == [0, 2]
    assert not kit.parts.remove_abandoned(*place, most=10)
    kit.parts.values.close()


# --- the conviction ---

STALE = lines("0 [:w x 1]", "1 [:w x 2]", "0 [:r x 2]", "1 [:r x nil]", "0 [:w z 1]", "0 [:w z 2]")


def test_the_accused_come_with_the_writers_of_their_reads(tmp_path):
    """Their reads keep their values, those of the writers only if their writers are known."""
    kit = Kit(tmp_path, lines("0 [:w x 1] [:r z 7]", "1 [:r x 1]", "2 [:w y 1]"))
    kit.read()
    rows = kit.window.snapshot().rows
    found = accusation(rows, [1], kit.stream.log, kit.horizon.source)
    assert [len(one.ops) for one in found.transactions] == [2, 1]
    assert (found.assumed, found.unwritten) == (((Literal("x"), 1),), False)
    history = accused_history(found, "some", clock_error=0)
    assert history.counts()["committed"] == 2
    assert "7" not in str([one.ops for one in history.transactions()])


def test_the_log_alone_convicts(tmp_path):
    """A nil read after the value was there: certified, with the lines, and nothing is open."""
    kit = Kit(tmp_path, STALE, "sser")
    kit.read()
    window = kit.window.snapshot()
    verdict, stale = kit.judge.check(window)
    found = kit.conviction.confirm_alone(verdict, stale, window, ended=True, simplest=True)
    assert found.verdict.certified
    assert (found.waits, found.open_explanation) == (False, "")
    assert {place.rpartition(":")[2] for place in found.places} <= {"1", "3", "5", "7"}


def test_an_accused_in_flight_is_awaited(tmp_path):
    """Its completion may say that it has read something else."""
    kit = Kit(tmp_path, STALE, "sser")
    kit.read()
    window = kit.window.snapshot()
    verdict, stale = kit.judge.check(window)
    window.in_flight[3] = True
    assert kit.conviction.confirm_alone(verdict, stale, window, ended=False, simplest=True) is None
    assert kit.conviction.waits_for.startswith("waits for the completion of")
    assert kit.conviction.waits_for.endswith("log.edn:7")
    kit.conviction.begin_round()
    assert "completion" not in kit.conviction.waits_for


def test_a_valid_window_accuses_no_transaction(tmp_path):
    """There is nothing to confirm."""
    kit = Kit(tmp_path, lines("0 [:w x 1]"))
    kit.read()
    window = kit.window.snapshot()
    verdict, stale = kit.judge.check(window)
    assert kit.conviction.confirm_alone(verdict, stale, window, ended=True, simplest=True) is None
