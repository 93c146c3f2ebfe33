"""Runs the benchmark, and writes a table, the numbers, and plots.

    python benchmarks/run.py                          everything (hours)
    python benchmarks/run.py --quick                  a few minutes
    python benchmarks/run.py --only simulated --filter 'balanced.*24 sessions'
    python benchmarks/run.py --only hard --seeds 1-3 --timeout 10
    python benchmarks/run.py --peer 'other=/opt/other/checker --level {level} {history}'
    python benchmarks/run.py --quick --write          the page docs/results.md as well

The folder ``--out`` gets ``results.json``, ``results.md`` and, with matplotlib, ``*.svg``. The JSON
file is written after each case, so an interrupted run is not lost. See ``benchmarks/README.md``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cases import (
    PARTS,
    Case,
    anomalies,
    corpora,
    hard,
    hidden_violations,
    mini,
    published,
    simulated_histories,
    weak_levels,
)
from measuring import KEEP_BYTE_CODE, Bench, Tool
from report import markdown, plots

import isolang

ROOT = Path(__file__).resolve().parent.parent


PAGE = """# Results

Made by `benchmarks/run.py --write`; do not edit. [Performance](performance.md) says how it is
measured, and what the stages are.

"""


def isocheck(threads: int = 1, options: str = "") -> Tool:
    """Return this package as a tool, run by the current interpreter."""
    package = str(Path(isolang.__file__).resolve().parents[1])
    return Tool(
        name="isocheck" if threads == 1 else f"isocheck, {threads} threads",
        command=(
            sys.executable, "-P", "-m", "isolang.cli.main", "check", "--spec", "{level}",
            "-o", "json", "--threads", str(threads), *options.split(), "{history}",
        ),
        reports=True,
        environment={"PYTHONPATH": package, **KEEP_BYTE_CODE},
    )  # fmt: skip


def machine() -> dict[str, Any]:
    """Return facts about the machine and the versions on which the numbers depend."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":", 1)[1].strip()
            for line in cpuinfo.read_text().splitlines()
            if line.startswith("model name")
        ]
        model = names[0] if names else model
    revision = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "revision": revision or "unknown",
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": "python " + " ".join(sys.argv),
    }


def select(options: argparse.Namespace) -> Iterator[Case]:
    """Yield the cases that the command line selects."""
    found: list[Iterator[Case]] = []
    if "corpora" in options.only:
        folder = options.corpora
        if folder is None or not (folder / "LABELS.tsv").is_file():
            print("corpora: no folder with a LABELS.tsv (--corpora, ISOLANG_CORPORA): skipped")
        else:
            found.append(corpora(folder))
    if "published" in options.only:
        folder = options.corpora
        found.append(published(folder if folder and folder.is_dir() else None))
    if "simulated" in options.only:
        found.append(simulated_histories(quick=options.quick))
    if "hidden" in options.only:
        found.append(hidden_violations(quick=options.quick))
    if "mini" in options.only:
        found.append(mini(quick=options.quick))
    if "weak" in options.only:
        found.append(weak_levels(quick=options.quick))
    if "hard" in options.only:
        found.append(hard(quick=options.quick, seeds=options.seeds))
    for cases in found:
        yield from (case for case in cases if re.search(options.filter, case.name))


def measure(case: Case, tools: list[Tool], bench: Bench, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield one row for each level and tool."""
    path = case.make(folder)
    for level in case.levels:
        for tool in tools:
            m = bench.measure(tool, path, case.form, level)
            report = m.report
            wanted = case.expected.get(level)
            verdict = report.get("verdict", "") if tool.reports else ""
            wrong = wanted is not None and verdict in ("valid", "invalid") and verdict != wanted
            yield {
                "part": case.part,
                "case": case.name,
                "level": level,
                "tool": tool.name,
                **{k: v for k, v in asdict(m).items() if k != "report"},
                "verdict": verdict,
                "certified": report.get("certified"),
                "reason": report.get("reason", ""),
                "expected": wanted,
                "wrong": wrong,
                "transactions": report.get("transactions"),
                "operations": report.get("operations"),
                "stages": report.get("seconds", {}),
                "statistics": report.get("statistics", {}),
                "shape": case.shape,
                "bytes": path.stat().st_size if path.is_file() else None,
                "made_by": case.command() if case.path is None else "",
            }


def measure_anomalies(folder: Path) -> dict[str, Any]:
    """Check all anomalous histories in one process, and return the seconds for each.

    The seconds exclude the start of the process.
    """
    script = (
        "import sys, time, json\n"
        "from isolang import load_history, load_spec, check\n"
        "spec = load_spec('si')\n"
        "check(load_history(sys.argv[1]), spec)\n"
        "took, invalid, certified = [], 0, 0\n"
        "for path in sys.argv[1:]:\n"
        "    start = time.perf_counter()\n"
        "    verdict = check(load_history(path), spec)\n"
        "    took.append(time.perf_counter() - start)\n"
        "    invalid += verdict.outcome == 'invalid'\n"
        "    certified += verdict.certified\n"
        "took.sort()\n"
        "print(json.dumps({'histories': len(took), 'invalid': invalid, 'certified': certified,"
        " 'mean': sum(took) / len(took), 'median': took[len(took) // 2], 'worst': took[-1]}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, *map(str, anomalies(folder))],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **isocheck().environment},
    )
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def seeds(text: str) -> range:
    """Parse a range of seeds such as ``1-10``, or a single seed such as ``3``."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = os.environ.get("ISOLANG_CORPORA")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts")
    parser.add_argument("--filter", default="", metavar="REGEX", help="cases whose name matches")
    parser.add_argument("--quick", action="store_true", help="the smallest size, few shapes")
    parser.add_argument(
        "--seeds", type=seeds, metavar="A-B", help="of the hard part: 1-10, quick 1-2"
    )
    parser.add_argument("--corpora", type=Path, default=default and Path(default), metavar="DIR")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND",
                        help="another checker: {history}, and {level} if it takes one")  # fmt: skip
    parser.add_argument("--runs", type=int, default=3, help="of each command (default 3)")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for a run")
    parser.add_argument("--memory", type=float, default=4000.0, help="megabytes for a run")
    parser.add_argument("--threads", type=int, nargs="+", default=[1], metavar="N",
                        help="of isocheck (default 1); several are tried in turn")  # fmt: skip
    parser.add_argument("--options", default="", help="further options of isocheck check")
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"), help="folder")
    parser.add_argument("--histories", type=Path, metavar="DIR",
                        help="keep generated histories here (default: nowhere)")  # fmt: skip
    parser.add_argument("--write", action="store_true", help="write docs/results.md, too")
    parser.add_argument("--list", action="store_true", help="only say what would be measured")
    options = parser.parse_args(argv)
    options.seeds = options.seeds or (range(1, 3) if options.quick else range(1, 11))
    return options


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return 1 if a verdict contradicts a known verdict."""
    options = parse(argv)
    cases = list(select(options))
    if options.list:
        for case in cases:
            print(f"{case.part}: {case.name} ({', '.join(case.levels)})  {case.command()}")
        return 0
    try:
        own = [isocheck(n, options.options) for n in options.threads]
        tools = [*own, *map(Tool.parse, options.peer)]
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {"machine": machine(), "rows": []}
    with tempfile.TemporaryDirectory(prefix="isolang-benchmark-") as temporary:
        folder = options.histories or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(
            Path(temporary), timeout=options.timeout, megabytes=options.memory, runs=options.runs
        )
        if "corpora" in options.only and any(case.part == "corpora" for case in cases):
            results["anomalies"] = measure_anomalies(options.corpora)
        for case in cases:
            for row in measure(case, tools, bench, folder):
                results["rows"].append(row)
                said = row["verdict"] or row["ended"]
                print(
                    f"{row['part']}: {row['case']}  {row['level']}  {row['tool']}: {said}"
                    f"{' WRONG' if row['wrong'] else ''}  {row['seconds']:.3f} s  "
                    f"{row['megabytes']:.0f} MB",
                    flush=True,
                )
            (options.out / "results.json").write_text(json.dumps(results, indent=1))
            made = case.path is None and options.histories is None
            if made:
                case.make(folder).unlink()
    (options.out / "results.md").write_text(markdown(results))
    if options.write:
        (ROOT / "docs" / "results.md").write_text(PAGE + markdown(results).split("\n", 1)[1])
    for path in plots(results, options.out):
        print(f"wrote {path}")
    print(f"wrote {options.out / 'results.md'}")
    return 1 if any(row["wrong"] for row in results["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
