"""Builds two revisions, runs both in turn, and reports the ratios of their times.

    python benchmarks/compare_revisions.py main HEAD
    python benchmarks/compare_revisions.py v0.1.0 . --only simulated --filter '100k' --runs 7

A revision is any name that git knows, or ``.`` for the working tree. Each revision has its own
worktree and virtual environment in a temporary folder. The runs have the order A B B A A B …, so
changes in the speed of the machine affect both revisions alike. Before each run, the same command
runs on a history of two lines, and the time of this run is subtracted. The ratio is the quotient of
the medians, B over A. The *noise* is the greater of the two interquartile ranges, each divided by
its median. A ratio within the noise is not significant; if the noise exceeds the median, no ratio
is shown.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cases import PARTS, Case
from measuring import KEEP_BYTE_CODE, Bench, Run, Tool
from report import seconds, table
from run import machine, select
from run import parse as parse_suite

ROOT = Path(__file__).resolve().parent.parent


class Revision:
    """One revision, installed in a virtual environment."""

    def __init__(self, name: str, folder: Path) -> None:
        """Check out and install a revision.

        If this fails, ``CalledProcessError`` is raised.
        """
        self.name = name
        self.tree = folder / "tree"
        self._worktree = name != "."
        if self._worktree:
            _git("worktree", "add", "--detach", str(self.tree), name)
        else:
            skip = shutil.ignore_patterns(".git", "build", "*.so", "__pycache__", ".*cache*")
            shutil.copytree(ROOT, self.tree, ignore=skip)
        venv.create(folder / "venv", with_pip=True)
        self.python = folder / "venv" / "bin" / "python"
        install = [str(self.python), "-m", "pip", "install", "-q", str(self.tree)]
        subprocess.run(install, check=True, capture_output=True)

    def tool(self, options: str) -> Tool:
        """Return the command of this revision."""
        return Tool(
            name=self.name,
            command=(
                str(self.python), "-P", "-m", "isolang.cli.main", "check", "--spec", "{level}",
                "-o", "json", *options.split(), "{history}",
            ),
            reports=True,
            environment={"PYTHONPATH": "", **KEEP_BYTE_CODE},
        )  # fmt: skip

    def close(self) -> None:
        """Remove the worktree."""
        if self._worktree:
            _git("worktree", "remove", "--force", str(self.tree))


def _git(*arguments: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True)


LOST = 1000.0  # the noise if the median is not positive
Paired = tuple[Run, Run]  # a run on two lines, and the next run on the history


def alternate(
    tools: tuple[Tool, Tool], bench: Bench, paths: tuple[Path, Path], level: str, runs: int
) -> tuple[list[Paired], list[Paired]]:
    """Run both tools in turn, at most ``runs`` times each, and fewer times if a run is long.

    The two paths are a history of two lines and the history to measure.
    """
    found: tuple[list[Paired], list[Paired]] = ([], [])
    for i in range(runs):
        for which in ((0, 1), (1, 0))[i % 2]:
            idle, run = (bench.once(tools[which], path, level) for path in paths)
            found[which].append((idle, run))
        if any(side[-1][1].seconds > bench.long or side[-1][1].ended != "ok" for side in found):
            break
    return found


def compare(
    case: Case, tools: tuple[Tool, Tool], bench: Bench, folder: Path, runs: int
) -> Iterator[dict[str, Any]]:
    """Yield one row for each level."""
    paths = (bench.two_lines(case.form), case.make(folder))
    for level in case.levels:
        found = alternate(tools, bench, paths, level, runs)
        net = [[run.seconds - idle.seconds for idle, run in side] for side in found]
        used = [[run.cpu - idle.cpu for idle, run in side] for side in found]
        median, cpu = [list(map(statistics.median, side)) for side in (net, used)]
        last = [side[-1][1] for side in found]
        yield {
            "case": case.name,
            "level": level,
            "seconds": median,
            "cpu": cpu,
            "ratio": _ratio(net),
            "cpu_ratio": _ratio(used),
            "noise": max(map(_noise, net)),
            "megabytes": [max(run.megabytes for _, run in side) for side in found],
            "verdicts": [run.report.get("verdict", run.ended) for run in last],
            "runs": len(found[0]),
        }


def _ratio(found: list[list[float]]) -> float | None:
    """Return the ratio of the medians; ``None`` if one of them is less than its noise."""
    a, b = map(statistics.median, found)
    return b / a if min(a, b) > 0 and max(map(_noise, found)) <= 1 else None


def _noise(found: list[float]) -> float:
    if len(found) < 3:
        return 0.0  # unknown
    low, _, high = statistics.quantiles(found, n=4)
    middle = statistics.median(found)
    return (high - low) / middle if middle > 0 else LOST


def _shown(ratio: float | None, mark: str = "") -> str:
    return "–" if ratio is None else f"{mark}{ratio:.2f}{mark}"


def markdown(about: dict[str, Any], names: list[str], rows: list[dict[str, Any]]) -> str:
    """Return the table in Markdown."""
    head = ("case", "level", *names, "ratio", "CPU ratio", "noise", "memory", "verdicts", "runs")

    def line(row: dict[str, Any]) -> tuple[Any, ...]:
        a, b = row["verdicts"]
        return (
            row["case"],
            row["level"],
            *map(seconds, row["seconds"]),
            _shown(row["ratio"], "**"),
            _shown(row["cpu_ratio"]),
            f"±{row['noise']:.0%}" if 0 < row["noise"] < LOST else "",
            " / ".join(f"{m:.0f} MB" for m in row["megabytes"]),
            a if a == b else f"{a} / {b}",
            row["runs"],
        )

    ratios = [row["ratio"] for row in rows if row["ratio"] is not None]
    mean = statistics.geometric_mean(ratios) if ratios else float("nan")
    return (
        f"# {names[0]} and {names[1]}\n\n"
        + table(("", ""), [(k, v) for k, v in about.items() if k != "revision"])
        + f"\nRatios are {names[1]} over {names[0]}: below 1 the second is faster. "
        f"Geometric mean: {mean:.2f}.\n\n" + table(head, map(line, rows))
    )


def main(argv: list[str] | None = None) -> int:
    """Compare two revisions; return 1 if their verdicts differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("revisions", nargs=2, metavar="REV")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=["simulated", "mini"])
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--full", action="store_true", help="not the quick suite")
    parser.add_argument("--corpora", metavar="DIR")
    parser.add_argument("--runs", type=int, default=5, help="of each (default 5)")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for a run")
    parser.add_argument("--memory", type=float, default=4000.0, help="megabytes for a run")
    parser.add_argument("--options", default="", help="further options of isocheck check")
    parser.add_argument("--out", type=Path, default=Path("benchmark-comparison"))
    options = parser.parse_args(argv)
    suite = ["--only", *options.only, "--filter", options.filter]
    suite += [] if options.full else ["--quick"]
    suite += ["--corpora", options.corpora] if options.corpora else []
    cases = list(select(parse_suite(suite)))
    rows: list[dict[str, Any]] = []
    # If SIGTERM ends the program, it still removes its worktrees.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="isolang-compare-") as temporary:
        folder = Path(temporary)
        revisions: list[Revision] = []
        try:
            for number, name in enumerate(options.revisions):
                print(f"building {name}", flush=True)
                revisions.append(Revision(name, folder / str(number)))
            bench = Bench(
                folder, timeout=options.timeout, megabytes=options.memory, runs=options.runs
            )
            a, b = (revision.tool(options.options) for revision in revisions)
            if a.name == b.name:
                b = Tool(name=f"{b.name} again", command=b.command, reports=True,
                         environment=b.environment)  # fmt: skip
            for case in cases:
                for row in compare(case, (a, b), bench, folder, options.runs):
                    rows.append(row)
                    print(
                        f"{row['case']} {row['level']}: {seconds(row['seconds'][0])} → "
                        f"{seconds(row['seconds'][1])}, {_shown(row['ratio'])}",
                        flush=True,
                    )
            names = [a.name, b.name]
        except subprocess.CalledProcessError as error:
            said = (error.stderr or b"").decode(errors="replace").strip()
            print(f"{' '.join(error.cmd)} failed: {said}", file=sys.stderr)
            return 2
        finally:
            for revision in revisions:
                revision.close()
    options.out.mkdir(parents=True, exist_ok=True)
    about = machine()
    (options.out / "comparison.json").write_text(json.dumps({"machine": about, "rows": rows}))
    (options.out / "comparison.md").write_text(markdown(about, names, rows))
    print(f"wrote {options.out / 'comparison.md'}")
    return 1 if any(len(set(row["verdicts"])) > 1 for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
