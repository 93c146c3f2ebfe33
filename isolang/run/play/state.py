"""How a run goes, and how it went."""

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

SHORT: Final = 1.0  # seconds of silence where connections were refused besides
LONG: Final = 5.0  # and where not


class RunState(Struct, kw_only=True):
    """How a run goes.

    Attributes:
        began: ``time.monotonic()`` at the first transaction.
        ended: likewise, when its clients were told to end; 0 before.
        committed: this many transactions did.
        aborted: this many certainly did not.
        maybe: this many have an unknown outcome.
        latency: seconds of all committed ones together.
        level: of the database.
        workload: what is played now.
        errors: the kinds of errors, by their first words.
        faults: how often each was done.
        look: what the last check of a prefix found.
        played: committed transactions by workload.
        ran_at: committed transactions by the level of the database.
        bad: the kinds of answers that no history can hold, as ``errors``.
        answered: ``time.monotonic()`` when anything was last answered.
        refused: likewise, when a connection was last refused; 0 if none was.
        refusal: what was then said.
        silent: the longest time in which nothing was answered, without a fault of ours; seconds.
        silent_from: seconds from ``began`` until that began.
        hung: the calls that had not ended when the clients were to end.
        unplayed: the scripts for which there was no time.
        problem: why the run ended before its time; empty if it did not.
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
        """All transactions that have ended."""
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
        """Count a transaction that has ended.

        Args:
            outcome: how.
            seconds: how long it took.
            error: what its client raised.
            level: of the database, at which it ran.
            workload: that it is of; by default what is played now.
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
        """Note how long nothing was answered, and give it.

        Args:
            now: ``time.monotonic()``.
            excused: a fault of ours keeps the server from answering.
        """
        if excused:
            self.answered = now
        silent = now - max(self.answered, self.began)
        if silent > self.silent:
            self.silent, self.silent_from = silent, now - silent - self.began
        return silent

    def unreachable(self) -> bool:
        """Whether the server could not be reached for a time that no fault of ours explains."""
        gone = self.refused > max(self.answered, self.began)
        return gone or self.silent >= (SHORT if self.refused else LONG)

    def add_up(self, parts: Sequence[RunState]) -> None:
        """Count what was counted in parts, by processes."""
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
    """A run that has ended, and its history.

    Attributes:
        settings: what was asked for.
        version: the database, as it says itself.
        mix: the level, or those that were beside each other.
        claims: the specification to judge by.
        path: of the history.
        state: how it went.
        seconds: from the first transaction to the last one.
        interrupted: whether Ctrl-C ended it.
        planned: the workloads that were to be played by many clients.
        left: why tables may be left behind; empty if none are.
        notes: what the self-test of the adapter found doubtful.
        watched: the verdict of its watch; ``None`` where the whole file is to be judged.
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
    left: str = ""
    notes: tuple[str, ...] = ()
    watched: LiveVerdict | None = None

    @property
    def level(self) -> Level:
        """What was tested; of a mix, all of its levels under one name."""
        return self.mix.level

    @property
    def may_lose_commits(self) -> bool:
        """Whether a server was killed, or a standby promoted."""
        return any(self.state.faults.get(fault) for fault in ("kill", "promote"))

    @property
    def throughput(self) -> float:
        """Committed transactions a second."""
        return self.state.committed / self.seconds if self.seconds else 0.0


def nothing_committed(run: Run) -> str:
    """Why there is nothing to judge."""
    state = run.state
    said = "".join(f"; most often: {error}" for error, _ in state.errors.most_common(1))
    if state.refused and not said:
        said = f"; {state.refusal}"
    if state.hung:
        said += f"; hanging in {state.hung[0]}"
    return (
        f"{run.settings.workload}: no transaction has committed ({state.aborted:,} aborted, "
        f"{state.maybe:,} of unknown outcome{said}); what was recorded is in {run.path}"
    )


def _kind(error: BaseException) -> str:
    """The class of an error and the beginning of what it says, without names of rows."""
    said = error.args[-1] if error.args else ""
    words = re.sub(r"[\"'][^\"']*[\"']|\d+", "…", str(said)).split()
    return f"{type(error).__name__}: {' '.join(words[:8])}"
