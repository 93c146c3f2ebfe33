"""How soon ``auto`` finds each planted bug, and whether it accuses the right database.

    python benchmarks/planted.py --seeds 3                 # every bug, 30 s for each run
    python benchmarks/planted.py missed-rw stale-index
    python benchmarks/planted.py --swarm --seconds 300
    python benchmarks/planted.py right --seconds 1800      # the database without a bug

The bugs are in ``planted_database.py``. A run ends with the first certified violation; the table
says after how many seconds it was certified, which part of the run found it (the workload of the
round, or ``auto`` for the workloads before the rounds), and which anomaly it was. The exit code is
1 if the right database was accused, or if fewer than nine of ten runs found their bug.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from planted_database import BUGS, Right
from report import table

from isolang.run.judge.judge import judge_run
from isolang.run.play.player import Player
from isolang.run.play.state import Run
from isolang.run.settings import Settings
from isolang.run.survey.swarm import Swarm, play_rounds, play_with_rounds
from isolang.run.targets import target_named

DATABASE = Path(__file__).with_name("planted_database.py")
RIGHT = "right"
_ENOUGH = 0.9  # at least this share of the runs must find their bug


class Trial(Struct, frozen=True, kw_only=True):
    """A run on the database with one bug.

    Attributes:
        bug: the name of the bug, or ``right``.
        seed: the seed of the run, and of the bug's own draws.
        found: whether a violation was certified.
        seconds: the seconds until the violation was certified; if none was found, those of the
            whole run.
        part: the workload that found the violation, with the settings of its round.
        anomaly: the name of the anomaly; empty if none was found.
    """

    bug: str
    seed: int
    found: bool
    seconds: float
    part: str = ""
    anomaly: str = ""


def trial(bug: str, seed: int, *, seconds: float, whole: bool, folder: str) -> Trial:
    """Play ``auto``, or a swarm, on the database with a bug.

    Args:
        bug: the name of the bug, or ``right``.
        seed: the seed of the run.
        seconds: the length of the run.
        whole: whether to play a swarm instead of ``auto``.
        folder: where the histories are saved.
    """
    kind = BUGS.get(bug, Right)
    named = f"{DATABASE}:Planted://?draw={seed}" + (f"&bug={bug}" if bug in BUGS else "")
    settings = Settings(
        target=named,
        seed=seed,
        level="" if whole else kind.level,
        seconds=seconds,
        folder=folder,
        trusted=True,
    )
    target, player = target_named(named), Player(named, settings.prefix)
    began = time.monotonic()
    try:
        if whole:
            swarm = Swarm(settings, target, whole=True)
            recorded = play_rounds(swarm, player, target, seconds).violated
        else:
            recorded = play_with_rounds(settings, player, target, lambda state: None)
        anomaly = "" if recorded is None else _anomaly(recorded, folder)
    finally:
        player.close()
    return Trial(
        bug=bug,
        seed=seed,
        found=bool(anomaly),
        seconds=time.monotonic() - began,
        part=_part(recorded) if recorded is not None and anomaly else "",
        anomaly=anomaly,
    )


def _anomaly(recorded: Run, folder: str) -> str:
    """Return the certified anomaly of a run; an empty string if there is none."""
    if recorded.watched is not None and recorded.watched.outcome == "valid":
        return ""
    target = target_named(recorded.settings.target)
    found = judge_run(recorded, target, levels=False, smallest=False, little=False)
    return found.anomaly if found.verdict.certified else ""


def _part(recorded: Run) -> str:
    settings = recorded.settings
    drawn = [settings.workload, f"{settings.sessions} sessions"]
    drawn += [f"savepoints {settings.savepoints}"] if settings.savepoints else []
    drawn += [f"pauses {settings.pauses}"] if settings.pauses else []
    drawn += [settings.access] if settings.access != "index" else []
    return ", ".join([*drawn, *settings.faults])


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the trials, print their table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("bugs", nargs="*", help=f"names of bugs, or {RIGHT}; by default all")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each run")
    parser.add_argument("--seeds", type=int, default=1, help="how many runs of each bug")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--swarm", action="store_true", help="play a swarm instead of auto")
    options = parser.parse_args(arguments)
    names = options.bugs or [*BUGS, RIGHT]
    unknown = [name for name in names if name not in BUGS and name != RIGHT]
    if unknown:
        parser.error(f"no such bug (got {unknown[0]}, expected one of {', '.join(BUGS)}, {RIGHT})")
    trials: list[Trial] = []
    for name in names:
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            with tempfile.TemporaryDirectory() as folder:
                one = trial(name, seed, seconds=options.seconds, whole=options.swarm, folder=folder)
            trials.append(one)
            said = f"{one.anomaly}, by {one.part}" if one.found else "nothing"
            print(f"{name}, seed {seed}: {one.seconds:.1f} s, {said}", flush=True)
    rows = []
    for name in names:
        own = [one for one in trials if one.bug == name]
        hits = [one for one in own if one.found]
        times = ", ".join(f"{one.seconds:.0f}" if one.found else "–" for one in own)
        parts = "; ".join(dict.fromkeys(one.part.partition(",")[0] for one in hits))
        rows.append([name, f"{len(hits)} of {len(own)}", times, parts])
    print(table(["bug", "found", "seconds", "by"], rows))
    planted = [one for one in trials if one.bug != RIGHT]
    accused = any(one.found for one in trials if one.bug == RIGHT)
    share = sum(one.found for one in planted) / max(1, len(planted))
    print(f"found {share:.0%} of {len(planted)} runs; the right database was "
          + ("ACCUSED" if accused else "not accused"))  # fmt: skip
    return 1 if accused or (planted and share < _ENOUGH) else 0


if __name__ == "__main__":
    sys.exit(main())
