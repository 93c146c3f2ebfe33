"""``isocheck compare``: every encoding with every solver on the same histories."""

from __future__ import annotations

import csv
import json
import os
import pickle
import selectors
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isolang.cli.arguments import UsageProblem
from isolang.cli.check import load_routes
from isolang.cli.contest import Entry, peak_megabytes
from isolang.cli.progress import Bar
from isolang.cli.report import EXIT_INPUT, EXIT_REJECTED
from isolang.errors import IsolangError

if TYPE_CHECKING:
    from isolang.language.classify.route import Route
    from isolang.solvers.registry import Pair

Row = dict[str, Any]

COLUMNS: Final = (
    "history", "transactions", "spec", "encoding", "solver", "prune_stage", "verdict", "total",
    "prune", "encode", "solve", "variables", "clauses", "edges", "conflicts", "peak_mb", "detail",
)  # fmt: skip

_WORK = "import sys; sys.path.append(sys.argv[2]); from isolang.cli.contest import run; run()"
_ROOT = str(Path(__file__).resolve().parents[2])
# What libraries say when the system gives them no more.
_OUT_OF_MEMORY = (
    "MemoryError", "bad_alloc", "out of memory", "failed to map segment", "Cannot allocate",
    "Resource temporarily unavailable",
)  # fmt: skip
_GRACE = 2.0  # so long after its deadline a run is ended that has not given up by itself


def compare(
    *,
    spec: str,
    histories: Sequence[str],
    include: Sequence[str],
    output: str,
    only: Sequence[str],
    prune: Sequence[str],
    repeat: int,
    timeout: float,
    memory: float | None,
    plot: str,
    seed: int,
    format: str,  # noqa: A002 - the option's name
    timestamps: bool,
    initial: int | None,
) -> int:
    """Compare, and give the exit code; see ``isocheck compare --help`` for the arguments.

    Raises:
        UsageProblem: options that do not go together.
    """
    if plot:
        _require_plottable(plot)
    try:
        ((_, route),) = load_routes([spec], include)
    except IsolangError as error:
        print(f"isocheck: {error}", file=sys.stderr)
        return EXIT_INPUT
    pairs, missing = _chosen(only, prune or ["fixpoint"], route)
    if not pairs and not missing:
        raise UsageProblem(f"--only {' '.join(only)}: no such pair for {spec}")
    rows: list[Row] = []
    with Bar(len(histories) * len(pairs)) as bar:
        for history in histories:
            for pair in pairs:
                entry = Entry(
                    history=history,
                    route=route,
                    pair=pair,
                    timeout=timeout,
                    memory=memory,
                    seed=seed,
                    format=format,
                    timestamps=timestamps,
                    initial=initial,
                )
                bar.phase(str(pair))
                rows.append(_row(spec, entry, [_run(entry) for _ in range(repeat)]))
                bar.step()
            rows += [_absent(history, spec, *one) for one in missing]
    _show(rows, output)
    if plot:
        _draw(rows, plot)
    for message in disagreements(rows):
        print(f"isocheck: {message}", file=sys.stderr)
    if any(True for _ in disagreements(rows)):
        return EXIT_REJECTED
    return EXIT_INPUT if any(row["verdict"] == "error" for row in rows) else 0


def disagreements(rows: Sequence[Row]) -> list[str]:
    """Histories on which the verdicts contradict each other, and pairs that are wrong, in words."""
    said = [
        f"{row['history']}: {row['encoding']}/{row['solver']} is wrong: {row['detail']}"
        for row in rows
        if row["verdict"] == "wrong"
    ]
    for history in dict.fromkeys(row["history"] for row in rows):
        found = {
            verdict: [
                f"{r['encoding']}/{r['solver']}/{r['prune_stage']}"
                for r in rows
                if r["history"] == history and r["verdict"] == verdict
            ]
            for verdict in ("valid", "invalid")
        }
        if all(found.values()):
            valid, invalid = (", ".join(found[v]) for v in ("valid", "invalid"))
            said.append(f"{history}: disagreement: valid by {valid}; invalid by {invalid}")
    return said


def _chosen(
    only: Sequence[str], prune: Sequence[str], route: Route
) -> tuple[list[Pair], list[tuple[str, str, str]]]:
    """The pairs to run, and (encoding, solver, why) of those that are not installed."""
    from isolang.errors import SolverError
    from isolang.problem.polygraph import PRUNE
    from isolang.solvers.registry import SOLVERS, Pair, fitting, solver_of, stages_of

    for stage in prune:
        if stage not in PRUNE:
            raise UsageProblem(f"--prune: got {stage!r}, expected {', '.join(PRUNE)}")
    pairs, missing = [], []
    parts = [name for name in only if ":" in name]  # sat:glucose4, alone or after an encoding
    for encoding, base in fitting(route, installed=False):
        solvers = [
            base,
            *(p.split("/")[-1] for p in parts if p.split("/")[-1].startswith(f"{base}:")),
        ]
        for solver in solvers:
            names = {encoding, solver, f"{encoding}/{solver}"}
            if only and not names & set(only):
                continue
            if not SOLVERS[base].installed:
                missing.append((encoding, solver, SOLVERS[base].missing))
                continue
            try:
                solver_of(solver)
            except SolverError as error:
                raise UsageProblem(str(error)) from None
            stages = stages_of(encoding)
            wanted = [stage for stage in prune if stage in stages] if len(stages) > 1 else stages
            pairs += [Pair(encoding, solver, stage) for stage in wanted]
    return pairs, missing


def _run(entry: Entry) -> Row:
    """One run in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="isocheck-") as folder:
        where = Path(folder, "entry")
        where.write_bytes(pickle.dumps(entry))
        with open(Path(folder, "stderr"), "w+b") as errors:
            child = subprocess.Popen(
                [sys.executable, "-P", "-c", _WORK, str(where), _ROOT],
                stdout=subprocess.PIPE,
                stderr=errors,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
            try:
                row, phase = _listen(child, entry)
            finally:
                peak = peak_megabytes(child.pid)
                child.kill()
                child.wait()
                assert child.stdout is not None
                child.stdout.close()
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip().splitlines()
    if row is None:
        last = said[-1] if said else f"status {child.returncode}"
        detail = f"crash in {phase}: {last}"
        if any(word in line for line in said for word in _OUT_OF_MEMORY):
            detail = f"memory in {phase}"
        elif entry.memory is not None:
            detail = f"crash in {phase}, under a memory cap: {last}"
        row = {"verdict": "unknown", "detail": detail}
    return {"peak_mb": peak, **row}


def _listen(child: subprocess.Popen[bytes], entry: Entry) -> tuple[Row | None, str]:
    """Read what a run says until it has a result, ends, or is late."""
    assert child.stdout is not None
    phase, buffer, deadline = "start", b"", None
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return {"verdict": "unknown", "detail": f"timeout in {phase}"}, phase
            if not selector.select(left):
                continue
            chunk = os.read(child.stdout.fileno(), 1 << 16)
            if not chunk:
                return None, phase
            buffer += chunk
            *lines, buffer = buffer.split(b"\n")
            for line in lines:
                kind, what = json.loads(line)
                if kind == "result":
                    return what, phase
                phase = what
                if phase == "prepare":
                    deadline = time.monotonic() + entry.timeout + _GRACE
                elif phase == "certify":
                    deadline = None


def _row(spec: str, entry: Entry, runs: list[Row]) -> Row:
    """The run with the median time stands for all."""
    decided = [run for run in runs if "total" in run]
    row = runs[0]
    if len(decided) == len(runs):
        middle = statistics.median_low([run["total"] for run in runs])
        row = next(run for run in runs if run["total"] == middle)
    pair = entry.pair
    named = {"history": entry.history, "spec": spec, "encoding": pair.encoding}
    named |= {"solver": pair.solver, "prune_stage": pair.prune}
    return {name: {**row, **named}.get(name) for name in COLUMNS}


def _absent(history: str, spec: str, encoding: str, solver: str, why: str) -> Row:
    row = dict.fromkeys(COLUMNS)
    row.update(history=history, spec=spec, encoding=encoding, solver=solver)
    row.update(verdict="not installed", detail=why)
    return row


# --- output ---


def _show(rows: Sequence[Row], output: str) -> None:
    if output == "json":
        for row in rows:
            print(json.dumps(row))
    elif output == "csv":
        writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        _table(rows)
    sys.stdout.flush()


def _table(rows: Sequence[Row]) -> None:
    from rich.table import Table

    from isolang.cli.text import console

    out = console(sys.stdout)
    out.width = max(out.width, 132)
    for history in dict.fromkeys(row["history"] for row in rows):
        table = Table(title=history, title_justify="left", box=None, pad_edge=False)
        for name in ("encoding", "solver", "pruned", "verdict"):
            table.add_column(name, no_wrap=True)
        for name in ("seconds", "prune", "encode", "solve", "variables", "clauses", "edges"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("conflicts", justify="right", no_wrap=True)
        table.add_column("MB", justify="right", no_wrap=True)
        mine = [row for row in rows if row["history"] == history]
        for row in sorted(mine, key=lambda r: (r["total"] is None, r["total"] or 0.0)):
            table.add_row(
                row["encoding"],
                row["solver"],
                row["prune_stage"] or "",
                row["verdict"],
                *(_seconds(row[name]) for name in ("total", "prune", "encode", "solve")),
                *(_count(row[name]) for name in ("variables", "clauses", "edges", "conflicts")),
                "" if row["peak_mb"] is None else f"{row['peak_mb']:.0f}",
            )
        out.print(table)
        for row in mine:
            if row["verdict"] not in ("valid", "invalid"):
                pair = "/".join(filter(None, (row["encoding"], row["solver"], row["prune_stage"])))
                out.print(
                    f"{pair}: {row['verdict']}: {row['detail']}", markup=False, soft_wrap=True
                )
        out.print()


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"


def _require_plottable(path: str) -> None:
    """See before the runs that there can be a picture after them."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise UsageProblem("--plot needs matplotlib; pip install 'isolang[plot]'")
    kinds = (".svg", ".png", ".pdf")
    if not path.endswith(kinds):
        raise UsageProblem(f"--plot: no kind of picture (got {path}, expected {', '.join(kinds)})")
    if not Path(path).absolute().parent.is_dir():
        raise UsageProblem(f"--plot: there is no folder for it (got {path})")


def _draw(rows: Sequence[Row], path: str) -> None:
    """Time against size, one line per pair, log axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "isolang"  # equal rows give equal files
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5))
    lines: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for row in rows:
        if row["total"] is not None and row["transactions"]:
            name = (row["encoding"], row["solver"], row["prune_stage"])
            lines.setdefault(name, []).append((row["transactions"], row["total"]))
    for i, (name, points) in enumerate(sorted(lines.items())):
        marker = "osD^vPX*"[i // 10 % 8]
        points.sort()
        axes.plot(*zip(*points, strict=True), marker=marker, label="/".join(name))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("transactions")
    axes.set_ylabel("seconds (prune, encode, solve)")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(
        path, bbox_inches="tight", metadata={"Date": None} if path.endswith(".svg") else None
    )
    plt.close(figure)
