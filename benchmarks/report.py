"""Formats the results of the benchmark as Markdown tables, and as plots with matplotlib."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def seconds(x: float) -> str:
    """Return a time as text, with as many digits as are significant."""
    return f"{x * 1000:.0f} ms" if x < 1 else f"{x:.1f} s"


def markdown(results: dict[str, Any]) -> str:
    """Return the whole report in Markdown."""
    about = results["machine"]
    out = ["# Benchmark results\n"]
    out.append(table(("", ""), [(k, f"`{v}`" if k == "command" else v) for k, v in about.items()]))
    out.append(
        "Times and memory are those of the whole command, in a process of its own, less those of "
        "the same command on a history of two lines; medians. A *whole command* is not reduced.\n"
    )
    rows = results["rows"]
    if growing := [row for row in rows if row["part"] in ("simulated", "hidden", "mini")]:
        out += ["## Growth\n", growth(growing)]
    for part in ("corpora", "simulated", "hidden", "mini", "weak"):
        mine = [row for row in rows if row["part"] == part]
        if mine:
            out += [f"## {part.capitalize()}\n", _plain(mine)]
    if mine := [row for row in rows if row["part"] == "published"]:
        out += ["## Beside the papers' own figures\n", PUBLISHED, _published(mine)]
        out += ["## Beside other checkers\n", _peers()]
    if found := results.get("anomalies"):
        out.append("## Anomalous histories, by SI, in one process\n")
        out.append(table(("figure", ""), [(k, _figure(k, v)) for k, v in found.items()]))
    mine = [row for row in rows if row["part"] == "hard"]
    if mine:
        out += ["## The hard region\n", _hard(mine)]
    wrong = [row for row in rows if row["wrong"]]
    if wrong:
        out.append("## WRONG VERDICTS\n")
        out += [f"* {r['case']} {r['level']}: {r['verdict']}, not {r['expected']}\n" for r in wrong]
    return "\n".join(out)


def _figure(name: str, value: Any) -> str:
    return seconds(value) if name in ("mean", "median", "worst") else str(value)


def growth(rows: list[Row]) -> str:
    """Return a table of CPU time and memory by size, and of how the time per transaction grows."""
    rows = [row for row in rows if "size" in row["shape"]]
    sizes = sorted({row["shape"]["size"] for row in rows})
    shapes: dict[tuple[str, ...], dict[int, Row]] = {}
    for row in rows:
        shape = row["shape"]
        name = (shape["reads"], shape["values"], shape["sessions"], row["level"], row["tool"])
        shapes.setdefault(name, {})[shape["size"]] = row

    def cell(row: Row | None) -> str:
        if row is None:
            return ""
        if row["verdict"] not in ("valid", "invalid"):
            return row["verdict"] or str(row["ended"])
        return f"{seconds(row['cpu'])}, {row['megabytes']:.0f} MB"

    def line(name: tuple[str, ...], mine: dict[int, Row]) -> tuple[str, ...]:
        decided = [size for size in sizes if "valid" in (mine.get(size) or {}).get("verdict", "")]
        each = [max(mine[size]["cpu"], 1e-3) / size for size in decided]
        ratio = f"{each[-1] / each[0]:.1f}" if len(each) > 1 else ""
        return (*name, *(cell(mine.get(size)) for size in sizes), ratio)

    head = ("reads", "values", "sessions", "level", "tool", *(f"{size:,}" for size in sizes),
            "for each txn, last : first")  # fmt: skip
    return table(head, (line(name, mine) for name, mine in shapes.items()))


PUBLISHED = (
    "The papers measured on larger machines: Vbox on a Xeon Gold 6130 with 512 GB, VeriStrong on "
    "an EPYC 7H12 with 1 TB, Cobra with a V100 GPU. `anomalies/cobra/yuga-G2-a.cobra` is the "
    "history that Cobra's paper measured. The other histories have the shapes of those in the "
    "papers. VeriStrong also states mean times for 2,507 small anomalous histories (Table 2): "
    "143 ms by SER and 18 ms by SI. The section on anomalous histories has the times for some of "
    "them. The papers state the times of whole programs, so *whole command* is the column to "
    "compare with them: it includes the start of the interpreter and its imports.\n"
)

PEERS = (
    "Other checkers on the same files and the same machine, run in turn with isocheck: CPU seconds "
    "and memory of whole commands, whose start they include. AWDIT decides read committed, read "
    "atomic and causal consistency, and Porcupine linearizability. "
    "`benchmarks/peers/` says which programs these are, and repeats the table.\n"
)


def peers_table(rows: list[Row]) -> str:
    """Return the table of isocheck beside other checkers, measured by ``peers/compare.py``."""
    head = (
        "the other checker, and its task",
        "isocheck",
        "the other",
        "isocheck was",
        "since then",
    )
    return table(head, map(_beside, rows))


def _beside(row: Row) -> tuple[str, ...]:
    mine, other = row["isocheck"], row["peer"]
    ratio = other["cpu"] / mine["cpu"]
    verdict = f"{ratio:.1f} × as fast" if ratio >= 1 else f"behind: {1 / ratio:.1f} × the time"
    since = f"isocheck takes {row['since']:.2f} of its time" if "since" in row else ""
    since += f" and {row['megabytes_since']} MB" if "megabytes_since" in row else ""
    return row["task"], _cost(mine), _cost(other), verdict, since


def _cost(side: Row) -> str:
    memory = f", {side['megabytes']:.0f} MB" if "megabytes" in side else ""
    return f"{side['cpu']:.2f} s{memory}"


def _peers() -> str:
    kept = json.loads((Path(__file__).parent / "peers" / "measured.json").read_text())
    about = f"Measured with isocheck {kept['isocheck']} on {kept['machine']}.\n"
    return "\n".join((PEERS, about, peers_table(kept["rows"])))


def _published(rows: list[Row]) -> str:
    head = ("history", "as published", "level", "verdict", "whole command", "without the start",
            "CPU", "memory", "memory of the whole command")  # fmt: skip
    return table(
        head,
        (
            (
                row["case"],
                row["shape"]["published"],
                row["level"],
                row["verdict"] or row["ended"],
                seconds(row["gross_seconds"]),
                seconds(row["seconds"]),
                seconds(row["cpu"]),
                f"{row['megabytes']:.0f} MB",
                f"{row['gross_megabytes']:.0f} MB",
            )
            for row in rows
        ),
    )


_STAGES = ("graph", "prune", "search", "refute")


def _plain(rows: list[Row]) -> str:
    head = ("case", "level", "tool", "verdict", "time", "from – to", "CPU", "for each txn",
            "memory", "read", "prepare", *_STAGES, "certify")  # fmt: skip

    def line(row: Row) -> Iterator[Any]:
        verdict = row["verdict"] or row["ended"]
        yield from (row["case"], row["level"], row["tool"])
        yield f"{verdict}{'' if row['certified'] in (None, True) else ', not certified'}"
        yield seconds(row["seconds"])
        yield f"{seconds(row['spread'][0])} – {seconds(row['spread'][1])}"
        yield seconds(row["cpu"])
        n = row["transactions"] or row["shape"].get("size")
        yield f"{row['seconds'] / n * 1e6:.1f} µs" if n else ""
        yield f"{row['megabytes']:.0f} MB"
        stages, inner = row["stages"], row["statistics"]
        yield from (seconds(stages[s]) if s in stages else "" for s in ("read", "prepare"))
        for stage in _STAGES:
            took = inner.get(f"seconds_{stage}")
            yield "" if took is None else seconds(took)
        yield seconds(stages["certify"]) if "certify" in stages else ""

    return table(head, (tuple(line(row)) for row in rows))


def _hard(rows: list[Row]) -> str:
    shapes: dict[tuple[Any, ...], list[Row]] = {}
    names = list(rows[0]["shape"])
    for row in rows:
        shapes.setdefault((*row["shape"].values(), row["tool"]), []).append(row)
    head = (*names, "tool", "histories", "valid", "invalid", "not decided", "median",
            "worst decided")  # fmt: skip

    def line(shape: tuple[Any, ...], mine: list[Row]) -> tuple[Any, ...]:
        by = {v: [r for r in mine if r["verdict"] == v] for v in ("valid", "invalid")}
        decided = by["valid"] + by["invalid"]
        return (
            *shape,
            len(mine),
            len(by["valid"]),
            len(by["invalid"]),
            len(mine) - len(decided),
            seconds(statistics.median(row["seconds"] for row in mine)),
            seconds(max((row["seconds"] for row in decided), default=0.0)),
        )

    return table(head, (line(shape, mine) for shape, mine in shapes.items()))


# --- plots ---


def plots(results: dict[str, Any], folder: Path) -> list[Path]:
    """Save plots of time and memory against size, and of the stages, as SVG.

    Without matplotlib, return an empty list.
    """
    try:
        import matplotlib
    except ImportError:
        print("no plots: matplotlib is not installed")
        return []
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "isolang"
    parts = ("simulated", "hidden", "mini", "weak")
    rows = [r for r in results["rows"] if r["part"] in parts and r["ended"] == "ok"]
    made = []
    if len({row["shape"]["size"] for row in rows}) > 1:
        for level in sorted({row["level"] for row in rows}):
            mine = [row for row in rows if row["level"] == level]
            made.append(_against_size(mine, level, "seconds", "seconds", folder))
            made.append(_against_size(mine, level, "megabytes", "MB", folder))
    if rows:
        made.append(_stages(rows, folder))
    return made


def _against_size(rows: list[Row], level: str, what: str, unit: str, folder: Path) -> Path:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    lines: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        shape = row["shape"]
        name = f"{shape['reads']}, {shape['values']}, {shape['sessions']}"
        if len({r["tool"] for r in rows}) > 1:
            name += f", {row['tool']}"
        lines.setdefault(name, []).append((shape["size"], max(row[what], 1e-3)))
    for name, points in sorted(lines.items()):
        axes.loglog(*zip(*sorted(points), strict=True), marker="o", label=name)
    axes.set_xlabel("transactions")
    axes.set_ylabel(f"{unit}, less those of two lines")
    axes.set_title(f"{level}: {'time' if what == 'seconds' else 'memory'} against size")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend(fontsize="x-small")
    return _save(figure, folder / f"{level}-{what}.svg")


def _stages(rows: list[Row], folder: Path) -> Path:
    from matplotlib import pyplot

    size = max(row["shape"]["size"] for row in rows)
    mine = [row for row in rows if row["shape"]["size"] == size and row["stages"]]
    names = [f"{row['case']} ({row['level']})" for row in mine]
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.3 * len(mine)))
    left = [0.0] * len(mine)
    for stage in ("read", "prepare", *_STAGES, "certify"):
        took = [
            row["stages"].get(stage, row["statistics"].get(f"seconds_{stage}", 0.0)) for row in mine
        ]
        axes.barh(names, took, left=left, label=stage)
        left = [a + b for a, b in zip(left, took, strict=True)]
    axes.set_xlabel("seconds")
    axes.tick_params(axis="y", labelsize="x-small")
    axes.legend(fontsize="x-small")
    return _save(figure, folder / "stages.svg")


def _save(figure: Any, path: Path) -> Path:
    from matplotlib import pyplot

    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return path
