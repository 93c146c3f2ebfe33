"""What each part of the engine is worth: the same histories with the part and without.

    python benchmarks/ablations.py                      # 10k simulated transactions
    python benchmarks/ablations.py --only clocks --transactions 2000
    python benchmarks/ablations.py HISTORY...           # these instead

A part is taken out by changing a few statements of a scratch copy, which is built as a release:
comments ``// ablation: MARK`` mark them, and ``ablations.toml`` says what becomes of them. Figures
are the CPU time of solving alone, best of seven, within one process for each history and level; a
run that takes longer than ``--timeout`` is ended. No verdict may change. Exits with 1 if one does,
2 if the table no longer fits the sources.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from report import table
from scratch import ROOT, Change, Scratch, misfits

SIMULATED = {
    "all values different": {},
    "50 values": {"values": 50},
}

RUN = """
import json, sys, time
from isolang import load_history, load_spec
from isolang.language.classify.route import native_plan
from isolang.problem import build_problem
from isolang.solvers import engine
history = load_history(sys.argv[1])
problem = build_problem(history)
automata = native_plan(load_spec(sys.argv[2])).automata
best = None
for _ in range(7):
    start = time.process_time()
    result = engine.solve(history.columns, problem.native, automata)
    seconds = time.process_time() - start
    best = seconds if best is None else min(best, seconds)
figures = dict(result.statistics)
figures["seconds"] = best
figures["verdict"] = result.outcome
print(json.dumps(figures))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """A part of the engine, with the changes that remove it."""

    name: str
    without: str
    changes: list[Change]


def load() -> list[Ablation]:
    """Return the ablations in ``ablations.toml``."""
    with (ROOT / "benchmarks" / "ablations.toml").open("rb") as file:
        entries = tomllib.load(file)["ablation"]
    return [
        Ablation(
            name=entry["name"],
            without=entry["without"],
            changes=[Change(**change) for change in entry["change"]],
        )
        for entry in entries
    ]


def measure(scratch: Scratch, history: Path, level: str, timeout: float) -> dict[str, Any] | None:
    """Return the figures of one history; ``None`` if solving takes longer than the timeout."""
    command = [sys.executable, "-c", RUN, str(history), level]
    try:
        done = subprocess.run(
            command, check=True, cwd=scratch.folder, capture_output=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return None
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def simulate(folder: Path, transactions: int) -> dict[str, Path]:
    """Write simulated histories, and return their paths by name.

    Each history has 24 sessions, transactions of 8 operations, and one key for every ten
    transactions. Half of the operations are reads.
    """
    from isolang.history import write_history
    from isolang.simulator import Workload, generate

    made = {}
    for name, options in SIMULATED.items():
        workload = Workload(
            transactions=transactions, sessions=24, keys=transactions // 10, seed=1, **options
        )
        path = folder / f"{len(made)}.bincode"
        write_history(generate(workload), path, format="dbcop", drop=("real-time",))
        made[name] = path
    return made


def show(figures: dict[str, Any] | None, whole: dict[str, Any] | None) -> str:
    """Return the text of one cell of the table."""
    if figures is None:
        return "too long"
    text = f"{1000 * figures['seconds']:.0f} ms"
    if whole is not None and whole is not figures:
        text += f" (×{figures['seconds'] / whole['seconds']:.2f})"
    text += f", {figures['edges_after_pruning'] / 1000:.0f}k edges"
    if "decisions" in figures:
        text += f", {figures['decisions']:.0f} / {figures['conflicts']:.0f}"
    return text


def main() -> int:
    """Measure all ablations, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description="The engine without one of its parts.")
    parser.add_argument("histories", nargs="*", type=Path, help="instead of simulated ones")
    parser.add_argument("--only", default="", help="parts whose name contains this")
    parser.add_argument("--levels", default="ser,si")
    parser.add_argument("--transactions", type=int, default=10_000, help="of simulated histories")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds, for seven runs")
    parser.add_argument("--list", action="store_true", help="list the parts, check the table")
    options = parser.parse_args()
    ablations = [a for a in load() if options.only in a.name]
    if wrong := misfits([change for a in ablations for change in a.changes]):
        print("\n".join(wrong))
        return 2
    if options.list:
        print("\n".join(f"{a.name}: {a.without}" for a in ablations))
        return 0
    changed = 0
    with tempfile.TemporaryDirectory(prefix="isolang-ablations-") as name:
        folder = Path(name)
        (folder / "tree").mkdir()
        scratch = Scratch(folder / "tree", "-O3 -DNDEBUG -w")
        given = {path.stem: path.resolve() for path in options.histories}
        histories = given or simulate(folder, options.transactions)
        columns = [(h, level) for h in histories for level in options.levels.split(",")]
        whole: dict[tuple[str, str], dict[str, Any] | None] = {}
        rows = []
        for part in [Ablation(name="everything", without="", changes=[]), *ablations]:
            with scratch.changed(part.changes) as error:
                if error:
                    print(f"{part.name}: does not build\n{error[-1500:]}")
                    return 2
                row = []
                for h, level in columns:
                    found = measure(scratch, histories[h], level, options.timeout)
                    whole.setdefault((h, level), found)
                    full = whole[h, level]
                    row.append(show(found, full))
                    if found and full and found["verdict"] != full["verdict"]:
                        print(f"WRONG: {h} {level} without {part.name}: {found['verdict']}")
                        changed += 1
            rows.append((part.name if not part.changes else f"without {part.name}", *row))
            print("; ".join(rows[-1]), file=sys.stderr, flush=True)
    print(table(("", *(f"{h}, {level}" for h, level in columns)), rows))
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
