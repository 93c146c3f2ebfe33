"""Plays short rounds with drawn options, each on new tables, and judges each round separately.

No single workload finds every defect. A round therefore draws a few of the choices that a user
could make: the workload, its keys, the sessions, how rows are found and written, savepoints,
pauses, maintenance, and, in a whole swarm, the level or a mix of levels. If a round shows something
new (an error that no earlier round had, a kind of plan, an anomaly that the level allows), later
rounds vary it: they repeat it with a few other choices.

A round is an ordinary run, so its command line repeats it. The drawn choices depend on the seed and
on the results of earlier rounds.
"""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from isolang.declared import command_line
from isolang.errors import IsolangError
from isolang.run.play.faults import maintenance_names
from isolang.run.play.level_mix import level_mix_of
from isolang.run.play.player import Player
from isolang.run.play.state import Run, RunState, SwarmRound
from isolang.run.settings import Settings, Shape
from isolang.run.sql import SqlTarget
from isolang.run.target import Target
from isolang.run.workloads import NAMES, workload_named

WORKLOADS_SHARE: Final = 0.3
"""The share of the time that ``auto`` spends on its workloads, before the rounds."""

ROUNDS_FROM_S: Final = 10.0
"""The shortest run in seconds in which ``auto`` plays rounds."""

_ROUND_S: Final = 3.0  # the length of a round in seconds
_MAX_TRANSACTIONS: Final = 4000  # the most transactions in a round, for a verdict in about a second
_VARIED_SHARE: Final = 0.3  # the share of rounds that vary an earlier round with news
_ONE_ROW_SHARE: Final = 1 / 6  # the share of rounds in which all sessions compete for one row
_AUTO_WORKLOADS: Final = (
    *["queries"] * 5,
    "orders",
    "orders",
    "insert-delete",
    "rmw",
    "register",
    "blindw-pred",
)
_FIRST_WORKLOADS: Final = ("queries", "orders")  # the most effective workloads are first
# Workloads that delete rows and reinsert them.
_DELETING_WORKLOADS: Final = frozenset({"queries", "orders", "insert-delete", "insert-delete-pred"})
# Workloads for rounds in which all sessions compete for one row, with one-statement transactions.
_ONE_ROW_WORKLOADS: Final = ("register", "register", "rmw", "append")
# Workloads that need many keys.
_MANY_KEYS_WORKLOADS: Final = frozenset({"pairs", "twitter", "rubis", "tpcc", "cas"})


def play_with_rounds(
    settings: Settings, player: Player, target: Target, show: Callable[[RunState], None]
) -> Run:
    """Play a run; after the workloads of ``auto``, also play rounds with drawn options.

    Args:
        show: a function called with the progress a few times a second.
    """
    if not _plays_rounds(settings):
        return player.play(settings, show)
    first = replace(settings, rounds=False, seconds=WORKLOADS_SHARE * settings.length)
    recorded = player.play(first, show)
    look = recorded.state.look
    refuted = look is not None and look.outcome == "invalid"
    if refuted or recorded.interrupted or not recorded.state.committed:
        return recorded
    if _is_refuted(recorded, target):
        return recorded
    swarm = Swarm(settings, target, whole=False)
    found = play_rounds(swarm, player, target, settings.length - recorded.seconds, show=show)
    return replace(found.violated or recorded, rounds=tuple(found.rounds))


def _is_refuted(recorded: Run, target: Target) -> bool:
    """Return whether a run violates its level; the check includes its last transactions."""
    from isolang.run.judge.judge import judge_run

    if recorded.watched is not None:
        return recorded.watched.outcome == "invalid"
    found = judge_run(recorded, target, levels=False, smallest=False, little=False)
    return found.verdict.outcome == "invalid" and found.verdict.certified


def _plays_rounds(settings: Settings) -> bool:
    """Return whether a run plays rounds after the workloads of ``auto``."""
    return (
        settings.rounds
        and settings.workload == "auto"
        and settings.length >= ROUNDS_FROM_S
        and settings.transactions is None
        and not (settings.to_the_end or settings.versions or settings.faults or settings.standby)
    )


class Swarm:
    """Draws the options of one round after another.

    Attributes:
        whole: whether rounds draw from all workloads and levels; otherwise from a few workloads, at
            the level of the settings.
    """

    def __init__(self, settings: Settings, target: Target, *, whole: bool) -> None:
        """Prepare the random choices, seeded from the settings."""
        self.whole = whole
        self._settings, self._target = settings, target
        self._random = Random(f"{settings.seed}/swarm")
        self._number = 0
        self._seen: set[str] = set()
        self._promising: list[Settings] = []
        names = NAMES if whole else tuple(dict.fromkeys(_AUTO_WORKLOADS))
        self._able = {one for one in names if not workload_named(one).needs & target.lacks}

    def next(self) -> Settings:
        """Return the options of the next round."""
        self._number += 1
        random, base, draws = self._random, self._settings, self._draws()
        if self._number <= len(_FIRST_WORKLOADS):
            workload = _FIRST_WORKLOADS[self._number - 1]
            if workload in self._able:
                draws[:2] = {"workload": workload, "shape": Shape()}, {"sessions": base.sessions}
        elif self._promising and random.random() < _VARIED_SHARE:
            base = random.choice(self._promising[-8:])
            draws = random.sample(draws, k=min(2, len(draws)))
        drawn = {name: value for draw in draws for name, value in draw.items()}
        made = replace(
            base,
            **drawn,
            rounds=False,
            seed=(self._settings.seed + self._number) % (1 << 62),
            seconds=min(_ROUND_S, self._settings.length),
            transactions=min(_MAX_TRANSACTIONS, self._settings.transactions or _MAX_TRANSACTIONS),
        )
        if not any(part.inserts_over_deleted for part in level_mix_of(made, self._target).parts):
            return made
        workload = "blindw-pred" if made.workload in _DELETING_WORKLOADS else made.workload
        update = made.update if made.update == "row" else "update"
        return replace(made, workload=workload, update=update)

    def _draws(self) -> list[dict[str, Any]]:
        """Draw all options, and return them in groups of options that belong together."""
        random, target = self._random, self._target
        names = [one for one in (NAMES if self.whole else _AUTO_WORKLOADS) if one in self._able]
        if self.whole and "queries" in self._able:
            names += ["queries"] * (len(names) // 3) + ["orders"] * (len(names) // 6)
        workload = random.choice(names)
        sessions = self._settings.sessions
        keys = None if workload in _MANY_KEYS_WORKLOADS else random.choice((None, None, 2, 6, 20))
        shape = Shape(keys=keys, operations=random.choice((None, None, 3, 8)))
        pauses = random.choice((0.0, 0.1, 0.4))
        if random.random() < _ONE_ROW_SHARE and (
            hot := [one for one in _ONE_ROW_WORKLOADS if one in self._able]
        ):
            workload, shape, pauses = random.choice(hot), Shape(keys=1, operations=1), 0.0
        drawn: list[dict[str, Any]] = [
            {"workload": workload, "shape": shape},
            {"sessions": random.choice((max(2, sessions // 3), sessions, sessions, 2 * sessions))},
            {"pauses": pauses},
            {"retries": random.choice((0, 0, 3))},
        ]
        if "savepoints" not in target.lacks:
            drawn.append({"savepoints": random.choice((0.0, 0.0, 0.3))})
        if isinstance(target, SqlTarget):
            drawn.append({"access": random.choice(("index", "any", "any", "scan"))})
            upsert = "upsert" if target.dialect.upsert else "insert"
            forms = ("update", "row", upsert, "insert", "any", "any")
            drawn.append({"update": random.choice(forms)})
        if maintenance_names(target) and not self._settings.faults:
            every = random.choice((None, 0.1, 0.4))
            faults = () if every is None else ("maintenance",)
            drawn.append({"faults": faults, "fault_every": every})
        if self.whole and not (self._settings.level or self._settings.level_mix):
            drawn.append(self._level())
        return drawn

    def _level(self) -> dict[str, Any]:
        """Draw a level, or a mix of two levels that can be judged together."""
        random, levels = self._random, self._target.levels
        level = random.choice(levels[:1] + levels).name
        if self._settings.claims or len(levels) < 2 or random.random() < 0.7:
            return {"level": level, "level_mix": ""}
        one, other = random.sample(levels, 2)
        mix = f"{one.name}:0.5,{other.name}:0.5"
        try:
            level_mix_of(replace(self._settings, level="", level_mix=mix), self._target)
        except IsolangError:  # transactions cannot choose their levels, or no level judges the mix
            return {"level": level, "level_mix": ""}
        return {"level": "", "level_mix": mix}

    def learn(self, settings: Settings, brought: Sequence[str]) -> tuple[str, ...]:
        """Store the findings of a round, and return those that no earlier round had."""
        news = tuple(one for one in dict.fromkeys(brought) if one not in self._seen)
        self._seen.update(news)
        if news:
            self._promising.append(settings)
        return news


class PlayedRounds(Struct, kw_only=True):
    """The rounds that were played.

    Attributes:
        violated: the run of the round that violated its level; ``None`` if no round did.
        database: the database's version; empty before the first round.
    """

    rounds: list[SwarmRound]
    violated: Run | None = None
    interrupted: bool = False
    database: str = ""


class SwarmReport(Struct, frozen=True, kw_only=True):
    """The rounds of a swarm.

    Attributes:
        schema: the version, which changes when a field changes its meaning or goes.
        target: the target as the user wrote it, without secrets.
        database: the database's version; empty if no round could be judged.
        seconds: the time for all rounds.
        seed: the seed of the draws.
        rounds: the rounds, in the order in which they were played.
        interrupted: whether Ctrl-C ended the swarm.
    """

    schema: Literal[1] = 1
    target: str
    database: str
    seconds: float
    seed: int
    rounds: tuple[SwarmRound, ...]
    interrupted: bool = False


def report_of(found: PlayedRounds, settings: Settings, target: Target) -> SwarmReport:
    """Return the report on a swarm played with these settings."""
    return SwarmReport(
        target=str(target.address),
        database=found.database,
        seconds=settings.length,
        seed=settings.seed,
        rounds=tuple(found.rounds),
        interrupted=found.interrupted,
    )


def markdown(report: SwarmReport) -> str:
    """Return the rounds as a Markdown table."""
    lines = [
        f"**{report.database or report.target}**, {len(report.rounds)} rounds in "
        f"{report.seconds:g} s, seed {report.seed}.",
        "",
        "| level | workload | verdict | committed | command |",
        "|---|---|---|---|---|",
    ]
    for one in report.rounds:
        verdict = ": ".join(filter(None, (one.verdict, one.anomaly or one.reason)))
        lines.append(
            f"| {one.level} | `{one.workload}` | {verdict} | {one.committed:,} | `{one.command}` |"
        )
    return "\n".join([*lines, ""])


def play_rounds(
    swarm: Swarm,
    player: Player,
    target: Target,
    seconds: float,
    *,
    to_the_end: bool = False,
    show: Callable[[RunState], None] = lambda state: None,
    done: Callable[[SwarmRound], None] = lambda one: None,
) -> PlayedRounds:
    """Play rounds until the time is up or a round violates its level, and return the rounds.

    Args:
        show: a function called with the progress of a round a few times a second.

    Raises:
        IsolangError: the first round could not be played; the message says what to do.
    """
    found = PlayedRounds(rounds=[])
    errors: Counter[str] = Counter()  # the errors of the previous round
    began = time.monotonic()
    while (remaining := seconds - (time.monotonic() - began)) > 0.5 and not found.interrupted:
        settings = swarm.next()
        settings = replace(settings, seconds=round(min(settings.length, remaining), 1))
        recorded: Run | None = None
        try:
            recorded = player.play(settings, show)
            found.database = recorded.version
            one = _judged(swarm, settings, recorded, target)
            errors = recorded.state.errors
        except IsolangError as error:
            if not found.rounds:
                raise
            one = _unplayed(settings, error, errors)
            player.close()  # the next round restarts the database
        one = replace(one, seconds=round(time.monotonic() - began, 1))
        found.rounds.append(one)
        found.interrupted = recorded is not None and recorded.interrupted
        done(one)
        if one.verdict == "invalid" and found.violated is None:
            found.violated = recorded
        if found.violated is not None and not to_the_end:
            break
    return found


def _judged(swarm: Swarm, settings: Settings, recorded: Run, target: Target) -> SwarmRound:
    """Judge a round, and let the swarm learn from it."""
    from isolang.run.judge.judge import judge_run, judge_watched_run
    from isolang.verdict import Invalid, Unknown

    state, reason, anomaly = recorded.state, "", ""
    brought = [f"error {name}" for name in state.errors]
    brought += [f"maintenance {name}" for name in state.faults if state.faults[name]]
    if not state.committed:
        verdict, reason = "unknown", "no transaction committed"
    elif recorded.watched is not None:
        _, judged = judge_watched_run(recorded, recorded.watched)
        verdict = "valid" if judged is None else "invalid"
        anomaly = "" if judged is None else judged.anomaly
    else:
        judged = judge_run(recorded, target, levels=False, smallest=False, little=False)
        verdict, anomaly = judged.verdict.outcome, judged.anomaly
        if isinstance(judged.verdict, Unknown):
            reason = str(judged.verdict.reason)
        if isinstance(judged.verdict, Invalid) and not judged.verdict.certified:
            verdict, reason = "unknown", "the counterexample was not certified"
    if state.problem:
        reason = "; ".join(filter(None, (reason, f"the round ended early: {state.problem}")))
    return SwarmRound(
        command=_command(settings),
        workload=settings.workload,
        level=recorded.level.name,
        history=str(recorded.path),
        committed=state.committed,
        verdict=verdict,
        anomaly=anomaly,
        reason=reason,
        news=swarm.learn(settings, brought),
    )


def _unplayed(settings: Settings, error: IsolangError, before: Counter[str]) -> SwarmRound:
    """Return a round that could not be played, with the errors of the previous round.

    The database may have failed in the previous round.
    """
    had = ", ".join(f"{name} ×{n:,}" for name, n in before.most_common(2))
    more = f"; the round before had these errors: {had}" if had else ""
    return SwarmRound(
        command=_command(settings),
        workload=settings.workload,
        level=settings.level or settings.level_mix,
        verdict="not played",
        reason=f"{error}{more}",
    )


def _command(settings: Settings) -> str:
    return shlex.join(["isocheck", "run", *command_line(settings)])
