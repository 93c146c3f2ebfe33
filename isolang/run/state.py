"""How a run goes, and how it went."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, field

from isolang.run.outcome import Outcome
from isolang.run.prefix import Look
from isolang.run.settings import Settings
from isolang.run.target import Level


class State(Struct, kw_only=True):
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
    look: Look | None = None

    def total(self) -> int:
        """All transactions that have ended."""
        return self.committed + self.aborted + self.maybe

    def count(
        self, outcome: Outcome, seconds: float = 0.0, error: BaseException | None = None
    ) -> None:
        """Count a transaction that has ended.

        Args:
            outcome: how.
            seconds: how long it took.
            error: what its client raised.
        """
        setattr(self, outcome, getattr(self, outcome) + 1)
        if outcome == "committed":
            self.latency += seconds
        if error is not None:
            self.errors[_kind(error)] += 1

    def add_up(self, parts: Sequence[State]) -> None:
        """Count what was counted in parts, by processes."""
        for name in ("committed", "aborted", "maybe", "latency"):
            setattr(self, name, sum(getattr(one, name) for one in parts))
        self.errors = sum((one.errors for one in parts), Counter())


class Run(Struct, frozen=True, kw_only=True):
    """A run that has ended, and its history.

    Attributes:
        settings: what was asked for.
        version: the database, as it says itself.
        level: that was tested.
        claims: the specification to judge by.
        path: of the history.
        state: how it went.
        seconds: from the first transaction to the last one.
        interrupted: whether Ctrl-C ended it.
    """

    settings: Settings
    version: str
    level: Level
    claims: str
    path: Path
    state: State
    seconds: float
    interrupted: bool = False

    @property
    def throughput(self) -> float:
        """Committed transactions a second."""
        return self.state.committed / self.seconds if self.seconds else 0.0


def _kind(error: BaseException) -> str:
    """The class of an error and the beginning of what it says, without names of rows."""
    said = error.args[-1] if error.args else ""
    words = re.sub(r"[\"'][^\"']*[\"']|\d+", "…", str(said)).split()
    return f"{type(error).__name__}: {' '.join(words[:8])}"
