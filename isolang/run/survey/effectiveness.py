"""Measures how often and how fast workloads find violations, by repeated trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from isolang.run.judge.judge import judge_run
from isolang.run.play.level_mix import level_mix_of
from isolang.run.play.player import Player
from isolang.run.play.state import RunState
from isolang.run.settings import Settings
from isolang.run.target import Target
from isolang.run.targets import target_named

TRANSACTIONS: Final = 2000  # the default number of transactions in a trial


class Row(Struct, frozen=True, kw_only=True):
    """The results of one workload.

    Attributes:
        workload: its name.
        trials: the number of runs, each on new tables with a new seed.
        violations: the number of runs with a certified violation of the level's claim.
        per_hour: violations per hour of playing and judging.
        first: the position of the counterexample's first transaction in the history, from 1; the
            median of all violations, null without one.
        anomalies: the counts of the violations' anomalies.
        committed: committed transactions of all trials.
        abort_rate: aborted transactions as a share of all.
        playing: seconds of all runs.
        judging: seconds of all checks.
    """

    workload: str
    trials: int
    violations: int
    per_hour: float
    first: float | None
    anomalies: Mapping[str, int]
    committed: int
    abort_rate: float
    playing: float
    judging: float


class Effectiveness(Struct, frozen=True, kw_only=True):
    """The effectiveness of workloads at finding violations of one level.

    Attributes:
        schema: the version, which changes when a field changes its meaning or goes.
        target: the target as the user wrote it, without secrets.
        database: the database's version.
        level: the level of the database.
        claims: the specification to judge by.
        seconds: the time for all workloads together.
        transactions: the most transactions of a trial.
        sessions: the number of clients.
        seed: the seed of the first trial.
        rows: one for each workload, the best first.
    """

    schema: Literal[1] = 1
    target: str
    database: str
    level: str
    claims: str
    seconds: float
    transactions: int
    sessions: int
    seed: int
    rows: tuple[Row, ...]


def effectiveness(
    settings: Settings,
    workloads: Sequence[str],
    seconds: float,
    *,
    show: Callable[[RunState], None] = lambda state: None,
) -> Effectiveness:
    """Play trials of each workload, and measure how often it finds violations.

    Args:
        seconds: the time for all workloads together, in seconds.
        show: a function called with the progress of the trial a few times a second.

    Raises:
        IsolangError: the database cannot be tested; the message says what to do.
    """
    target = target_named(settings.target, prefix=settings.prefix)
    level = level_mix_of(settings, target).level
    most = settings.transactions or TRANSACTIONS
    player = Player(settings.target, settings.prefix)
    try:
        found = [
            _trials(
                replace(settings, workload=name, transactions=most),
                player,
                target,
                seconds / len(workloads),
                show,
            )
            for name in workloads
        ]
    finally:
        player.close()
    rows = [row for row, _ in found]
    return Effectiveness(
        target=str(target.address),
        database=found[0][1],
        level=level.name,
        claims=settings.claims or level.claims,
        seconds=seconds,
        transactions=most,
        sessions=settings.sessions,
        seed=settings.seed,
        rows=tuple(sorted(rows, key=lambda row: -row.per_hour)),
    )


def _trials(
    settings: Settings,
    player: Player,
    target: Target,
    seconds: float,
    show: Callable[[RunState], None],
) -> tuple[Row, str]:
    trials, committed, total, aborted = 0, 0, 0, 0
    playing = judging = 0.0
    first: list[int] = []
    anomalies: Counter[str] = Counter()
    interrupted, version = False, ""
    while (remaining := seconds - playing - judging) > 0 and not interrupted:
        began = perf_counter()
        longest = min(settings.length, max(remaining, 0.5))
        one = replace(settings, seed=settings.seed + trials, seconds=longest)
        recorded = player.play(one, show)
        played = perf_counter()
        judged = judge_run(recorded, target, levels=False, smallest=False, little=False)
        trials += 1
        playing, judging = playing + played - began, judging + perf_counter() - played
        committed += recorded.state.committed
        aborted += recorded.state.aborted
        total += recorded.state.total()
        interrupted, version = recorded.interrupted, recorded.version
        if judged.first and judged.verdict.certified:
            first.append(judged.first)
            anomalies[judged.anomaly] += 1
    row = Row(
        workload=settings.workload,
        trials=trials,
        violations=len(first),
        per_hour=round(3600 * len(first) / max(playing + judging, 1e-9), 1),
        first=median(first) if first else None,
        anomalies=dict(anomalies.most_common()),
        committed=committed,
        abort_rate=round(aborted / max(1, total), 4),
        playing=round(playing, 3),
        judging=round(judging, 3),
    )
    return row, version


def markdown(found: Effectiveness) -> str:
    """Return the results as a Markdown table, with a row per workload."""
    lines = [
        f"**{found.database}**, {found.level} (claims `{found.claims}`), "
        f"{found.sessions} sessions, "
        f"trials of {found.transactions:,} transactions, {found.seconds:g} s in all, "
        f"seed {found.seed}.",
        "",
        "| workload | violations an hour | trials | with one | first transaction | anomalies | "
        "aborted | playing, judging |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in found.rows:
        first = "–" if row.first is None else f"{row.first:,.0f}"
        named = ", ".join(f"{name} ×{count}" for name, count in row.anomalies.items()) or "–"
        lines.append(
            f"| `{row.workload}` | {row.per_hour:,.0f} | {row.trials} | {row.violations} | "
            f"{first} | {named} | {100 * row.abort_rate:.1f} % | "
            f"{row.playing:.1f} s, {row.judging:.1f} s |"
        )
    return "\n".join([*lines, ""])
