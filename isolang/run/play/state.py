"""Describes the progress of a run, and the result of a finished run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from isolang.run.outcome import BadAnswer, Outcome
from isolang.run.play.level_mix import LevelMix
from isolang.run.play.live import LiveVerdict
from isolang.run.settings import Settings
from isolang.run.target import Level

COPY_LABEL: Final = "backup by "
"""The label prefix of transactions that represent a copy of the tables."""

SHORT_SILENCE_S: Final = 1.0  # the longest normal silence in seconds if connections were refused
LONG_SILENCE_S: Final = 5.0  # the longest normal silence in seconds otherwise


class RunState(Struct, kw_only=True):
    """The progress of a run.

    Attributes:
        began: the value of ``time.monotonic()`` at the first transaction.
        ended: the value of ``time.monotonic()`` when the clients were told to stop; 0 until then.
        latency: the total duration of all committed transactions, in seconds.
        errors: the number of errors, by class and by the first words of the message.
        look: the latest verdict on a prefix of the history; ``None`` before the first check.
        bad_responses: the number of responses that cannot be recorded in a history, by the message
            that describes them.
        answered: the value of ``time.monotonic()`` at the last response.
        refused: the value of ``time.monotonic()`` when a connection was last refused; 0 if every
            connection was accepted.
        refusal: the error message when a connection was last refused.
        silent: the longest time without a response, in seconds, not counting silences caused by
            injected faults.
        silent_from: the number of seconds from ``began`` to the start of this longest silence.
        hung: the calls still hanging after the clients should have ended.
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
    committed_by_level: Counter[str] = field(default_factory=Counter)
    bad_responses: Counter[str] = field(default_factory=Counter)
    answered: float = 0.0
    refused: float = 0.0
    refusal: str = ""
    silent: float = 0.0
    silent_from: float = 0.0
    hung: tuple[str, ...] = ()
    unplayed_scripts: tuple[str, ...] = ()
    problem: str = ""

    def total(self) -> int:
        """Return the number of transactions that have ended, with any outcome."""
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
        """Count a transaction that has ended."""
        setattr(self, outcome, getattr(self, outcome) + 1)
        if outcome == "committed":
            self.latency += seconds
            self.played[workload or self.workload] += 1
            self.committed_by_level[level] += 1
        if error is not None:
            self.errors[_kind(error)] += 1
        if isinstance(error, BadAnswer):
            self.bad_responses[str(error)[:200]] += 1

    def note_silence(self, now: float, *, excused: bool = False) -> float:
        """Return the seconds since the last response, and update the longest silence."""
        if excused:
            self.answered = now
        silent = now - max(self.answered, self.began)
        if silent > self.silent:
            self.silent, self.silent_from = silent, now - silent - self.began
        return silent

    def unreachable(self) -> bool:
        """Return whether the server was silent for longer than injected faults can explain."""
        gone = self.refused > max(self.answered, self.began)
        return gone or self.silent >= (SHORT_SILENCE_S if self.refused else LONG_SILENCE_S)

    def add_up(self, parts: Sequence[RunState]) -> None:
        """Replace the counts in this state with their sums over the states of several processes."""
        for name in ("committed", "aborted", "maybe", "latency"):
            setattr(self, name, sum(getattr(one, name) for one in parts))
        for name in ("errors", "played", "committed_by_level", "bad_responses"):
            setattr(self, name, sum((getattr(one, name) for one in parts), Counter()))
        for name in ("answered", "refused", "refusal"):
            setattr(
                self,
                name,
                max((getattr(one, name) for one in parts), default=type(getattr(self, name))()),
            )
        self.hung = tuple(call for one in parts for call in one.hung)


class SwarmRound(Struct, frozen=True, kw_only=True):
    """A round and its verdict.

    Attributes:
        command: the command that repeats it.
        workload: the workload that it played.
        level: the level of the database, or the mix of levels.
        history: the file of its history.
        committed: how many transactions committed.
        verdict: ``valid``, ``invalid`` or ``unknown``; or ``not played``, with the reason.
        anomaly: the name of the anomaly; empty without a violation.
        reason: why the history could not be judged; empty if it was.
        news: what no earlier round had brought.
        seconds: the seconds from the first round's beginning to its verdict.
    """

    command: str
    workload: str
    level: str
    history: str = ""
    committed: int = 0
    verdict: str
    anomaly: str = ""
    reason: str = ""
    news: tuple[str, ...] = ()
    seconds: float = 0.0


class Run(Struct, frozen=True, kw_only=True):
    """A run that has ended, with its recorded history.

    Attributes:
        seconds: the time in seconds from the first transaction to the end of the last one.
        planned: the workloads that the clients were supposed to play.
        leftover: why some tables may remain in the database; empty if none do.
        notes: the doubts raised by the adapter's self-test, and other remarks.
        watched: the final verdict of the watch; ``None`` if a check must judge the whole file.
        rounds: the rounds played by ``auto`` after its workloads; if a round violated its level,
            the rounds up to and including it.
    """

    settings: Settings
    version: str
    mix: LevelMix
    claims: str
    path: Path
    state: RunState
    seconds: float
    interrupted: bool = False
    planned: tuple[str, ...] = ()
    leftover: str = ""
    notes: tuple[str, ...] = ()
    watched: LiveVerdict | None = None
    rounds: tuple[SwarmRound, ...] = ()

    @property
    def level(self) -> Level:
        """Return the level of the run; for a mix, an artificial level that combines all names."""
        return self.mix.level

    @property
    def may_lose_commits(self) -> bool:
        """Return whether a fault killed a server or promoted a standby, so commits may be lost."""
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
        reason += f"; calls hang in {state.hung[0]}"
    return (
        f"{run.settings.workload}: no transaction committed ({state.aborted:,} "
        f"aborted, {state.maybe:,} of unknown outcome{reason}); the recording is in "
        f"{run.path}"
    )


def _kind(error: BaseException) -> str:
    """Return the class of an error and the first words of its message, without quoted names."""
    reason = error.args[-1] if error.args else ""
    words = re.sub(r"[\"'][^\"']*[\"']|\d+", "…", str(reason)).split()
    return f"{type(error).__name__}: {' '.join(words[:8])}"
