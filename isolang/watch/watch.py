"""Watches a stream: takes batches, and checks a window of transactions round by round.

docs/routes.md, *Cuts of a stream*, explains the method, and why valid parts prove that the whole
stream is valid. These modules do the work:

* :mod:`isolang.watch.intake` adds new transactions to the window;
* :mod:`isolang.watch.window` keeps the transactions, and gives up on those that never end;
* :mod:`isolang.watch.rounds` checks the window, as a state machine;
* :mod:`isolang.watch.parts` keeps the parts removed by cuts, and puts them back;
* :mod:`isolang.watch.conviction` confirms violations using transactions of the log;
* :mod:`isolang.watch.ending` writes the report.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from isolang.language.meaning.core import Spec
from isolang.watch.chain import Chain, Head
from isolang.watch.conviction import Conviction
from isolang.watch.ending import Ending
from isolang.watch.horizon import Horizon
from isolang.watch.initial_state import InitialState
from isolang.watch.intake import Intake
from isolang.watch.judging import WindowJudge
from isolang.watch.levels import watchable_plan
from isolang.watch.parts import Parts
from isolang.watch.report import Round, WatchReport
from isolang.watch.rounds import Rounds
from isolang.watch.state import Values
from isolang.watch.stream import Batch, Stream
from isolang.watch.window import Window


class Watch:
    """Checks a growing stream against a level, round by round.

    Args:
        spec: the level, as a specification or its name.
        stream: the stream whose batches are passed to :meth:`feed`. If the folder has a chain, the
            stream must resume at the position returned by :func:`isolang.watch.position_in`.
        folder: the folder of the chain. If an earlier watch was killed, its chain is continued.
        sources: the names of the logs, to be written into the chain.
        round: the number of new transactions after which a round begins. If the last cut left more
            transactions than that in the window, a round begins after that many new transactions
            instead.
        pace: the number of seconds after which a round begins even if fewer transactions have
            arrived; ``None`` to wait for that number of transactions.
        clock_error: the largest difference between two sessions' clocks, in nanoseconds.
        most: the largest number of transactions in a window. If putting back parts would exceed
            this number, a violation is only suspected.
        grace: the number of rounds after which the watch gives up on an indeterminate transaction
            that no transaction has read from.
        grace_seconds: the number of seconds that must also have passed since that transaction was
            first read.
        initial_value: the initial value of all keys (``V``), or of one key (``KEY=V``).
        unwritten_initial: whether a value that was read although no transaction wrote it is the
            initial value of its key. Each key may have at most one such value.
        memory: the memory limit for the last values of keys, in bytes; if they take more, they are
            moved to disk.
        to_the_end: whether to continue after a violation. If so, the values read by the
            transactions of the violation become unknown.
        timeout: the time limit for the check of one window, in seconds; ``None`` means no limit.

    Raises:
        SpecError: the level cannot be watched.
        HistoryError: the chain belongs to another watch, or to a watch that has ended.

    Attributes:
        plan: the compiled level.
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
        self.plan = watchable_plan(spec)
        self._round, self._pace, self._most = round, pace, most
        horizon = Horizon(clock_error)
        initial = InitialState(initial_value, unwritten=unwritten_initial)
        self._window = Window(round=round, grace=grace, grace_seconds=grace_seconds)
        head = Head(
            spec_name=self.plan.spec.name,
            spec_texts=dict(self.plan.spec.texts),
            sources=tuple(sources),
            reading=initial.read_options(clock_error),
        )
        self._parts = Parts(
            folder, head, memory=memory, stream=stream, initial=initial, window=self._window
        )
        judge = WindowJudge(
            self.plan, values=self.values, horizon=horizon, log=stream.log, timeout=timeout
        )
        self._intake = Intake(
            judge, stream=stream, window=self._window, horizon=horizon, initial=initial,
            parts=self._parts, most=most,
        )  # fmt: skip
        self._ending = Ending(
            self._parts, window=self._window, initial=initial, to_the_end=to_the_end
        )
        conviction = Conviction(
            judge, stream=stream, window=self._window, horizon=horizon, initial=initial,
            name=", ".join(sources) or "the stream", most=most,
        )  # fmt: skip
        self._rounds = Rounds(
            judge, window=self._window, horizon=horizon, parts=self._parts, conviction=conviction,
            ending=self._ending, size=round, most=most,
        )  # fmt: skip
        self._new = 0  # the number of transactions that no round has checked yet
        self._checked_at = time.monotonic()

    @property
    def report(self) -> WatchReport | None:
        """The report; ``None`` until the watch ends."""
        return self._ending.report

    @property
    def seen(self) -> int:
        """The number of finished transactions so far, including those of a resumed watch."""
        return self._window.transactions

    @property
    def chain(self) -> Chain:
        """The chain that the watch appends its parts to."""
        return self._parts.chain

    @property
    def values(self) -> Values:
        """The last value of each key that the parts wrote."""
        return self._parts.values

    def feed(self, batch: Batch) -> Iterator[Round]:
        """Take a batch, and run a round if enough transactions have arrived.

        Yields:
            The record of the round, if a round was run.

        Raises:
            HistoryError: the batch contains something that cannot be watched.
        """
        if self.report is not None:
            return
        new, contradiction = self._intake.take(batch)
        self._new += new
        if contradiction:
            self._ending.end("unknown", note=contradiction)
            yield self._rounds.record_of("stop")
            return
        enough = self._new >= max(self._round, self._size_of_next_round(), self._rounds.undecided)
        if enough or batch.ended or self._is_due(batch):
            yield self._run_round(ended=batch.ended)

    def judge_now(self) -> Round:
        """Run a round now, even if fewer transactions than usual have arrived."""
        return self._run_round(ended=False)

    def close(self) -> None:
        """Close the state file."""
        self.values.close()

    def _run_round(self, *, ended: bool) -> Round:
        self._new = 0
        self._checked_at = time.monotonic()
        return self._rounds.run(ended=ended)

    def _size_of_next_round(self) -> int:
        """Return the number of new transactions that the next round waits for.

        This is the number of transactions that the last cut left in the window. The total work of
        all rounds thus stays proportional to the log, even if an open transaction keeps many others
        in the window. The number is capped, because cuts cannot be put back into a window of more
        than ``most`` transactions.
        """
        stayed = len(self._window.kept) - self._new
        return min(stayed, max(0, self._most - stayed))

    def _is_due(self, batch: Batch) -> bool:
        """Return whether enough time has passed to run a round with fewer transactions."""
        if self._pace is None or not self._new or len(batch) >= self._round:
            return False
        if self._new < self._rounds.undecided:
            return False
        return time.monotonic() - self._checked_at >= self._pace
