"""Writes a page with the results of all databases at all their levels.

    python benchmarks/standings.py play --folder runs [TARGET …]   # save a survey of each as JSON
    python benchmarks/standings.py page --folder runs > docs/standings.md

A level is violated if one workload violates it. A mark is about the runs that were played, and
proves nothing about others.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from isolang.run.survey.comparison import load_survey
from isolang.run.survey.survey import Cell, Survey

TARGETS = (
    "postgres", "mariadb", "sqlite", "duckdb", "redis", "etcd", "slatedb", "turso", "zodb", "lmdb",
    "lance", "deltalake", "pyiceberg", "h2", "hsqldb", "derby", "firebird", "seekdb",
)  # fmt: skip
# Anomalies by severity: first lost or invented data, then results that no order explains.
SEVERITY = (
    "aborted read", "dirty write", "intermediate read", "thin-air read", "lost update",
    "fractured read", "long fork", "write skew",
)  # fmt: skip
ABOUT = """\
Each level of each database, compared with its claim: ✗ violated, certified; ✓ the run found no
violation, which is not a proof; ? the run was too small. Violated levels come first, in the order
of severity. [Engines](engines.md) and [Testing a database](run.md) quote the promises.
[Findings](findings/README.md) have violations with scripts, some of which need a statement or a
load that these runs do not play. `benchmarks/standings.py` made this page, with the workloads
`scripted`, `pairs` and `rmw`, one after the other, for 6 to 15 seconds each, and twice for
Firebird."""
MARKS = {"invalid": "✗", "valid": "✓", "unknown": "?"}


def play(targets: list[str], folder: Path, seconds: float, workloads: str) -> None:
    """Make a survey of each target; a target that cannot be reached is named and left out."""
    folder.mkdir(parents=True, exist_ok=True)
    for target in targets:
        command = [
            sys.executable, "-m", "isolang.cli.main", "run", target, "--survey", "-w", workloads,
            "--seconds", str(seconds), "--sessions", "6", "-o", "json",
            "--save", str(folder / target),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.stdout.startswith("{"):
            (folder / f"{target}.json").write_text(done.stdout)
        print(target, done.returncode, done.stderr.strip()[-200:], file=sys.stderr)


def page(folder: Path) -> str:
    """Return the page with all surveys in a folder."""
    rows = [
        row
        for file in sorted(folder.glob("*.json"))
        for row in _rows(load_survey(str(file)), _day(file))
    ]
    lines = [
        "# Standings of databases",
        "",
        *ABOUT.splitlines(),
        "",
        "| | database | level | claims | seen | strongest that held | day |",
        "|---|---|---|---|---|---|---|",
        *(text for _, text in sorted(rows)),
        "",
    ]
    return "\n".join(lines)


def _day(file: Path) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(file.stat().st_mtime))


def _rows(survey: Survey, day: str) -> list[tuple[tuple[int, int, str, str], str]]:
    found = []
    for level in dict.fromkeys(cell.level for cell in survey.cells):
        cells = [c for c in survey.cells if c.level == level and c.outcome in MARKS]
        if cells:
            found.append(_row(survey.database, level, cells, day))
    return found


def _row(
    database: str, level: str, cells: list[Cell], day: str
) -> tuple[tuple[int, int, str, str], str]:
    bad = [c for c in cells if c.outcome == "invalid" and c.certified]
    good = [c for c in cells if c.outcome == "valid" and not c.grave]
    unsure = any(c.outcome == "invalid" for c in cells) or not good
    outcome = "invalid" if bad else "unknown" if unsure else "valid"
    names = {name for cell in bad or cells for name in cell.anomalies}
    worst = [name for name in SEVERITY if name in names] + sorted(names - set(SEVERITY))
    rank = min((SEVERITY.index(n) for n in names if n in SEVERITY), default=len(SEVERITY))
    held = max(bad or good or cells, key=lambda c: len(c.anomalies)).strongest
    shown = ", ".join(worst[:3]) + (", …" if len(worst) > 3 else "")
    text = (
        f"| {MARKS[outcome]} | {database} | {level} | `{cells[0].claims}` | {shown} "
        f"| {', '.join(f'`{one}`' for one in held)} | {day} |"
    )
    order = {"invalid": 0, "unknown": 1, "valid": 2}[outcome]
    return (order, rank if outcome == "invalid" else 0, database.lower(), level), text


def main() -> None:
    """Run the command that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("play", "page"))
    parser.add_argument("targets", nargs="*", default=list(TARGETS))
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--workloads", default="scripted,pairs,rmw")
    asked = parser.parse_args()
    if asked.what == "play":
        play(asked.targets, asked.folder, asked.seconds, asked.workloads)
    else:
        print(page(asked.folder))


if __name__ == "__main__":
    main()
