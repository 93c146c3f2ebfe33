"""``isocheck generate``: a random workload on the simulated database, as a history file."""

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
from isolang.files import write_whole
from isolang.options import OUTPUT
from isolang.output.records import EXIT_VALID
from isolang.simulator.workload import Workload

if TYPE_CHECKING:
    from isolang.history.history import History


def generate(
    *,
    target: Annotated[str, typer.Argument(metavar="[OUT]", help="Where; - is stdout.")] = "-",
    to: Annotated[
        str, typer.Option("--to", help="The format to write.", rich_help_panel=OUTPUT, **TO)
    ] = "edn",
    drop: Annotated[
        list[str],
        typer.Option("--drop", metavar="WHAT", help="As of convert.", rich_help_panel=OUTPUT),
    ] = [],  # noqa: B006
    truth: Annotated[
        str,
        typer.Option(
            "--truth", metavar="FILE", help="Write what is true of it here, as JSON.",
            rich_help_panel=OUTPUT,
        ),
    ] = "",
    workload: Annotated[
        str,
        typer.Option(
            "--workload", metavar="NAME", rich_help_panel="Size",
            help="One of isocheck run's, on a database in memory that is strict-serializable, "
            "strong-snapshot or read-committed.",
        ),
    ] = "",
    options: Workload,
) -> int:  # fmt: skip
    """Write a simulated history whose truth is known."""
    from isolang.history import load_history
    from isolang.history.formats import ALIASES
    from isolang.history.writers import WITH_REAL_TIME, write_history
    from isolang.simulator import SimulatedHistory
    from isolang.simulator import generate as simulate

    if workload and (drop or truth):
        raise Mistake("--workload takes no --drop and no --truth: its history is as it was played")
    left_out = set(drop)
    if ALIASES.get(to, to) not in WITH_REAL_TIME:
        left_out.add("real-time")
    history: SimulatedHistory | History
    history = _played(workload, options) if workload else simulate(options)
    where = sys.stdout.buffer if target == "-" else target
    report = write_history(history, where, format=to, drop=left_out)
    notes = list(history.notes)
    if isinstance(history, SimulatedHistory):
        known = history.truth
        if known.planted and target != "-":  # as check will name them
            known = known.named_as_in(history, load_history(target, format=to))
            notes = list(known.sentences())
        if truth:
            write_whole(Path(truth), json.dumps(known.as_json(), indent=2) + "\n")
    notes += report.notes
    if "real-time" in left_out:
        notes.append("without real time sser and strong-si have no verdict")
    report_written(target, report, notes)
    return EXIT_VALID


_WITH_WORKLOAD = frozenset({"rule", "sessions", "transactions", "operations", "keys", "seed"})


def _played(workload: str, options: Workload) -> History:
    """A workload of ``isocheck run``; sizes that are not given are its own.

    Raises:
        Mistake: an option was given that says nothing about it.
    """
    from isolang.run.play.simulate import simulate
    from isolang.run.workloads import Shape

    given = {
        name: getattr(options, name)
        for name, option in options_of(Workload).items()
        if getattr(options, name) != option.default
    }
    for name in given.keys() - _WITH_WORKLOAD:
        flag = options_of(Workload)[name].flag
        raise Mistake(f"{flag} does not go with --workload: it chooses all that is played")
    gc.disable()  # nothing here refers to itself: to look for that takes an eighth of the time
    try:
        return simulate(
            workload,
            rule=given.get("rule", "strict-serializable"),
            shape=Shape(keys=given.get("keys"), operations=given.get("operations")),
            transactions=options.transactions,
            sessions=options.sessions,
            seed=options.seed,
        )
    finally:
        gc.enable()
