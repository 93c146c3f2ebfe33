"""Compares how many mini-transactions and how many general transactions a database aborts.

    python benchmarks/abort_rates.py [TARGET] [--seconds S]

The command draws docs/images/abort-rates.svg and prints its figures as a Markdown table. As in
Figure 11 of the paper on MTC, it uses 100 keys at the strictest level and varies the number of
clients. A mini-transaction has one or two reads and at most two writes; a general transaction has
20 operations.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import matplotlib as mpl

from isolang.run.play.runner import Runner
from isolang.run.settings import Settings
from isolang.run.target import Target
from isolang.run.targets import target_named
from isolang.run.workloads import Shape

PLOT = Path(__file__).resolve().parents[1] / "docs" / "images" / "abort-rates.svg"
SESSIONS = (2, 4, 8, 16)
WORKLOADS = {"mini": "mini-transactions", "general": "general, 20 operations"}
LEVEL = "serializable"
_LIGHT_AND_DARK = "#777777"  # readable on a white page and on a black one


def abort_rate(target: Target, workload: str, sessions: int, seconds: float) -> float:
    """Return the share of the transactions of one run that aborted."""
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(
            Settings(
                target=target.name, level=LEVEL, workload=workload, sessions=sessions,
                seconds=seconds, shape=Shape(keys=100), folder=folder, watched=False,
            ),
            target,
        )  # fmt: skip
        try:
            runner.start()
            state = runner.run().state
        finally:
            runner.close()
    return state.aborted / max(1, state.total())


def draw(rates: dict[str, list[float]], version: str) -> None:
    """Draw the abort rates as curves, and save the picture."""
    mpl.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {"svg.hashsalt": "isolang", "svg.fonttype": "none", "text.color": _LIGHT_AND_DARK,
         "axes.labelcolor": _LIGHT_AND_DARK, "axes.edgecolor": _LIGHT_AND_DARK,
         "xtick.color": _LIGHT_AND_DARK, "ytick.color": _LIGHT_AND_DARK}
    )  # fmt: skip
    figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
    for (workload, label), colour, mark in zip(
        WORKLOADS.items(), ("#0a84d8", "#d2691e"), ("o", "s"), strict=True
    ):
        percent = [100 * rate for rate in rates[workload]]
        axes.plot(SESSIONS, percent, marker=mark, color=colour, label=label)
    axes.set(xlabel="sessions", ylabel="aborted, %", ylim=(0, 100), xticks=SESSIONS)
    axes.set_title(f"{version}, {LEVEL}, 100 keys", fontsize=10)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    PLOT.parent.mkdir(exist_ok=True)
    figure.savefig(PLOT, transparent=True, metadata={"Date": None})


def main() -> None:
    """Measure the abort rates, draw them, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="?", default="postgres")
    parser.add_argument("--seconds", type=float, default=8.0)
    options = parser.parse_args()
    target = target_named(options.target)
    try:
        target.start()
        version = target.version()
        rates = {
            workload: [abort_rate(target, workload, n, options.seconds) for n in SESSIONS]
            for workload in WORKLOADS
        }
    finally:
        target.close()
    draw(rates, version)
    print("| sessions | " + " | ".join(WORKLOADS.values()) + " |")
    print("|---" * (1 + len(WORKLOADS)) + "|")
    for i, sessions in enumerate(SESSIONS):
        shown = " | ".join(f"{100 * rates[name][i]:.1f} %" for name in WORKLOADS)
        print(f"| {sessions} | {shown} |")


if __name__ == "__main__":
    main()
