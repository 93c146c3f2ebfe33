"""The progress of a run, and the run that has ended."""

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

SHORT: Final = 1.0  # seconds of silence, if connections were also refused
LONG: Final = 5.0  # if none were


class RunState(Struct, kw_only=True):
    """The progress of a run.

    Attributes:
        began: ``time.monotonic()`` at the first transaction.
        ended: ``time.monotonic()`` when its clients had to end; 0 before.
        committed: the number of committed transactions.
        aborted: the number of transactions that certainly aborted.
        maybe: the number of transactions with an unknown outcome.
        latency: the seconds of all committed transactions together.
        level: the level of the database.
        workload: the workload that is played now.
        errors: the counts of errors, by their first words.
        faults: the count of each injected fault.
        look: the last verdict on a prefix.
        played: committed transactions by workload.
        ran_at: committed transactions by the level of the database.
        bad: the counts of responses that no history can hold, as ``errors``.
        answered: ``time.monotonic()`` at the last response.
        refused: ``time.monotonic()`` at the last refused connection; 0 if none was refused.
        refusal: the message of that refusal.
        silent: the longest time without a response, except during injected faults, in seconds.
        silent_from: the seconds from ``began`` until that time began.
        hung: the calls that did not end when the clients had to.
        unplayed: the scripts that had no time.
        problem: why the run ended early; empty if it did not.
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
            outcome: its outcome.
            seconds: its duration.
            error: the error that its client raised.
            level: its level, by the database's name.
            workload: its workload; by default the current one.
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
        """Return how long there has been no response, and keep the longest such time.

        Args:
            now: ``time.monotonic()``.
            excused: whether an injected fault keeps the server from responding.
        """
        if excused:
            self.answered = now
        silent = now - max(self.answered, self.began)
        if silent > self.silent:
            self.silent, self.silent_from = silent, now - silent - self.began
        return silent

    def unreachable(self) -> bool:
        """Return whether the server was unreachable for longer than injected faults explain."""
        gone = self.refused > max(self.answered, self.began)
        return gone or self.silent >= (SHORT if self.refused else LONG)

    def add_up(self, parts: Sequence[RunState]) -> None:
        """Add up the counts of several processes."""
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
    """An ended run, and its history.

    Attributes:
        settings: the options of the run.
        version: the database's name and version, as it reports them.
        mix: its level, or levels.
        claims: the specification to judge by.
        path: the file of the history.
        state: its progress up to the end.
        seconds: the time from the first transaction to the last one.
        interrupted: whether Ctrl-C ended it.
        planned: the workloads that the plan had for its clients.
        leftover: why tables may remain; empty if none do.
        notes: doubts of the adapter's self-test, and other remarks.
        watched: the verdict of the watch; ``None`` if the whole file is to be judged.
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
        """Return the level of the run; of a mix, all levels under one name."""
        return self.mix.level

    @property
    def may_lose_commits(self) -> bool:
        """Return whether a server was killed or a standby promoted, so that commits may be lost."""
        return any(self.state.faults.get(fault) for fault in ("kill", "promote"))

    @property
    def throughput(self) -> float:
        """Return the committed transactions per second."""
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
