"""Implements ``isocheck generate``, which writes the history of a simulated database."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolang.cli.convert import TO, report_written
from isolang.cli.parameters import Mistake
from isolang.declared import options_of
from isolang.files import write_atomically
from isolang.options import OUTPUT
from isolang.output.records import EXIT_VALID
from isolang.simulator.workload import Workload

if TYPE_CHECKING:
    from isolang.history.history import History


def generate(
    *,
    target: Annotated[
        str, typer.Argument(metavar="[OUT]", help="The file to write; - for standard output.")
    ] = "-",
    to: Annotated[
        str, typer.Option("--to", help="The format to write.", rich_help_panel=OUTPUT, **TO)
    ] = "edn",
    drop: Annotated[
        list[str],
        typer.Option(
            "--drop", metavar="WHAT", rich_help_panel=OUTPUT,
            help="Leave out what the format cannot express, as `isocheck convert --drop` does.",
        ),
    ] = [],  # noqa: B006
    truth: Annotated[
        str,
        typer.Option(
            "--truth", metavar="FILE", rich_help_panel=OUTPUT,
            help="Write the levels and planted anomalies of the history to this file, as JSON.",
        ),
    ] = "",
    workload: Annotated[
        str,
        typer.Option(
            "--workload", metavar="NAME", rich_help_panel="Size",
            help="Run this workload of `isocheck run` on an in-memory database, which is "
            "strict-serializable, strong-snapshot or read-committed.",
        ),
    ] = "",
    options: Workload,
) -> int:  # fmt: skip
    """Simulate a database, and write a history whose isolation level is known."""
    from isolang.history import read_history
    from isolang.history.formats import ALIASES
    from isolang.history.writers import WITH_REAL_TIME, write_history
    from isolang.options import ReadOptions
    from isolang.simulator import SimulatedHistory
    from isolang.simulator import generate as simulate

    if workload and (drop or truth):
        raise Mistake("--workload takes neither --drop nor --truth")
    dropped = set(drop)
    if ALIASES.get(to, to) not in WITH_REAL_TIME:
        dropped.add("real-time")
    history: SimulatedHistory | History
    history = _played_history(workload, options) if workload else simulate(options)
    where = sys.stdout.buffer if target == "-" else target
    report = write_history(history, where, format=to, drop=dropped)
    notes = list(history.notes)
    if isinstance(history, SimulatedHistory):
        known = history.truth
        # Planted anomalies are described with the transaction names used by `isocheck check`.
        if known.planted and target != "-":
            known = known.with_names_of(history, read_history(target, ReadOptions(format=to)))
            notes = list(known.sentences())
        if truth:
            write_atomically(Path(truth), json.dumps(known.as_json(), indent=2) + "\n")
    notes += report.notes
    if "real-time" in dropped:
        notes.append("sser and strong-si cannot be checked without real time")
    report_written(target, report, notes)
    return EXIT_VALID


_WITH_WORKLOAD = frozenset({"rule", "sessions", "transactions", "operations", "keys", "seed"})


def _played_history(workload: str, options: Workload) -> History:
    """Play a workload of ``isocheck run`` on an in-memory database, and return the history.

    If the user has not set an option, the workload's own default is used.
    """
    from isolang.run.play.simulate import simulate
    from isolang.run.workloads import Shape

    changed = {
        name: getattr(options, name)
        for name, option in options_of(Workload).items()
        if getattr(options, name) != option.default
    }
    for name in changed.keys() - _WITH_WORKLOAD:
        flag = options_of(Workload)[name].flag
        raise Mistake(f"{flag} does not apply to --workload, which chooses all operations itself")
    gc.disable()  # the run creates no reference cycles, and searching for them would be slow
    try:
        return simulate(
            workload,
            rule=changed.get("rule", "strict-serializable"),
            shape=Shape(keys=changed.get("keys"), operations=changed.get("operations")),
            transactions=options.transactions,
            sessions=options.sessions,
            seed=options.seed,
        )
    finally:
        gc.enable()
