"""Describes the progress of a run, and a run that has ended."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from isolang.run.outcome import BadAnswer, Outcome
from isolang.run.play.level_mix import Mix
from isolang.run.play.live import LiveVerdict
from isolang.run.settings import Settings
from isolang.run.target import Level

SHORT: Final = 1.0  # seconds of silence that are too long if connections were also refused
LONG: Final = 5.0  # seconds of silence that are too long if no connection was refused


class RunState(Struct, kw_only=True):
    """The progress of a run.

    Attributes:
        began: ``time.monotonic()`` at the first transaction.
        ended: ``time.monotonic()`` when the clients had to end; 0 before.
        committed: the number of committed transactions.
        aborted: the number of transactions that certainly aborted.
        maybe: the number of transactions with an unknown outcome.
        latency: the total duration of all committed transactions, in seconds.
        level: the level of the database.
        workload: the workload that is played now.
        errors: the number of errors, by their class and first words.
        faults: the number of times that each fault was injected.
        look: the last verdict on a prefix; ``None`` before the first check.
        played: the number of committed transactions of each workload.
        ran_at: the number of committed transactions at each level of the database.
        bad: the number of responses that no history can contain, by their messages.
        answered: ``time.monotonic()`` at the last response.
        refused: ``time.monotonic()`` at the last refused connection; 0 if none was refused.
        refusal: the error message of the last refused connection.
        silent: the longest time without a response in seconds, except during injected faults.
        silent_from: the seconds from ``began`` until the longest such time began.
        hung: the calls that did not end when the clients had to end.
        unplayed: the scripts that the run had no time for.
        problem: the reason why the run ended early; empty if it did not.
    """

    began: float = 0.0
    ended: float = 0.0
    committed: int = 0
    aborted: int = 0
    maybe: int = 0
    latency: float = 0.0
    level: str = ""
    workload: str = ""
    errors: Counter[str] = field(default_factory=Counter)
    faults: dict[str, int] = field(default_factory=dict)
    look: LiveVerdict | None = None
    played: Counter[str] = field(default_factory=Counter)
    ran_at: Counter[str] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    answered: float = 0.0
    refused: float = 0.0
    refusal: str = ""
    silent: float = 0.0
    silent_from: float = 0.0
    hung: tuple[str, ...] = ()
    unplayed: tuple[str, ...] = ()
    problem: str = ""

    def total(self) -> int:
        """Return the number of transactions that have ended."""
        return self.committed + self.aborted + self.maybe

    def count(
        self,
        outcome: Outcome,
        seconds: float = 0.0,
        error: BaseException | None = None,
        *,
        level: str = "",
        workload: str = "",
    ) -> None:
        """Count an ended transaction.

        Args:
            outcome: the outcome of the transaction.
            seconds: the duration of the transaction.
            error: the error that the client raised; ``None`` if it raised none.
            level: the database's name of the transaction's level.
            workload: the workload of the transaction; by default the current one.
        """
        setattr(self, outcome, getattr(self, outcome) + 1)
        if outcome == "committed":
            self.latency += seconds
            self.played[workload or self.workload] += 1
            self.ran_at[level] += 1
        if error is not None:
            self.errors[_kind(error)] += 1
        if isinstance(error, BadAnswer):
            self.bad[str(error)[:200]] += 1

    def hear(self, now: float, *, excused: bool = False) -> float:
        """Return the seconds since the last response; keep the longest such time in the state.

        Args:
            now: the current ``time.monotonic()``.
            excused: whether an injected fault keeps the server from responding.
        """
        if excused:
            self.answered = now
        silent = now - max(self.answered, self.began)
        if silent > self.silent:
            self.silent, self.silent_from = silent, now - silent - self.began
        return silent

    def unreachable(self) -> bool:
        """Return whether the server was silent for longer than injected faults explain."""
        gone = self.refused > max(self.answered, self.began)
        return gone or self.silent >= (SHORT if self.refused else LONG)

    def add_up(self, parts: Sequence[RunState]) -> None:
        """Set the counts to the sums of the counts of several processes."""
        for name in ("committed", "aborted", "maybe", "latency"):
            setattr(self, name, sum(getattr(one, name) for one in parts))
        for name in ("errors", "played", "ran_at", "bad"):
            setattr(self, name, sum((getattr(one, name) for one in parts), Counter()))
        for name in ("answered", "refused", "refusal"):
            setattr(
                self,
                name,
                max((getattr(one, name) for one in parts), default=type(getattr(self, name))()),
            )
        self.hung = tuple(call for one in parts for call in one.hung)


class Run(Struct, frozen=True, kw_only=True):
    """A run that has ended, with its history.

    Attributes:
        settings: the options of the run.
        version: the database's name and version, as it reports them.
        mix: the level of the run, or its mix of levels.
        claims: the specification by which to judge the history.
        path: the file of the history.
        state: the progress of the run at its end.
        seconds: the time from the first transaction to the last one.
        interrupted: whether Ctrl-C ended the run.
        planned: the workloads that the clients were to play.
        leftover: the reason why tables may remain; empty if none do.
        notes: doubts that the adapter's self-test raised, and other remarks.
        watched: the verdict of the watch; ``None`` if the whole file must be judged.
    """

    settings: Settings
    version: str
    mix: Mix
    claims: str
    path: Path
    state: RunState
    seconds: float
    interrupted: bool = False
    planned: tuple[str, ...] = ()
    leftover: str = ""
    notes: tuple[str, ...] = ()
    watched: LiveVerdict | None = None

    @property
    def level(self) -> Level:
        """Return the level of the run; for a mix, all levels under one name."""
        return self.mix.level

    @property
    def may_lose_commits(self) -> bool:
        """Return whether commits may be lost: a server was killed, or a standby was promoted."""
        return any(self.state.faults.get(fault) for fault in ("kill", "promote"))

    @property
    def throughput(self) -> float:
        """Return the number of committed transactions per second."""
        return self.state.committed / self.seconds if self.seconds else 0.0


def nothing_committed(run: Run) -> str:
    """Return the message that no transaction has committed, with the most likely reason."""
    state = run.state
    reason = "".join(f"; most often: {error}" for error, _ in state.errors.most_common(1))
    if state.refused and not reason:
        reason = f"; {state.refusal}"
    if state.hung:
        reason += f"; hanging in {state.hung[0]}"
    return (
        f"{run.settings.workload}: no transaction has committed ({state.aborted:,} aborted, "
        f"{state.maybe:,} of unknown outcome{reason}); what was recorded is in {run.path}"
    )


def _kind(error: BaseException) -> str:
    """Return the class of an error and the first words of its message, without names of rows."""
    reason = error.args[-1] if error.args else ""
    words = re.sub(r"[\"'][^\"']*[\"']|\d+", "…", str(reason)).split()
    return f"{type(error).__name__}: {' '.join(words[:8])}"
