"""Implements ``isocheck stats``, which summarizes the contents of a history."""

from __future__ import annotations

from typing import Annotated

import typer
from msgspec.structs import replace

from isolang.cli.parameters import HistoryPath, Include, Output
from isolang.options import ReadOptions
from isolang.output.records import EXIT_VALID, json_text
from isolang.output.terminal import escaped_record, print_data, print_lines, warn


def stats(
    *,
    history: HistoryPath,
    reading: ReadOptions,
    spec: Annotated[
        str,
        typer.Option(
            "--spec", "-s", metavar="SPEC", show_default=False,
            help="Report which checks of this level or .iso file the history could violate.",
        ),
    ] = "",
    include: Include = [],  # noqa: B006
    output: Output = "text",
) -> int:  # fmt: skip
    """Summarize what a history contains."""
    from isolang.history import read_history
    from isolang.history.stats import summarize

    found = read_history(history, reading)
    figures = summarize(found)
    if spec:
        from isolang.comparison.normal import normal
        from isolang.comparison.vacuity import possible_violations
        from isolang.language.load import load_spec

        level = load_spec(spec, include_path=include)
        warn(*(f"note: {note}" for note in level.notes))
        figures = replace(figures, checks=tuple(possible_violations(found, normal(level))))
    if lacking := found.lacking():
        warn(f"note: {found.name}: {lacking}")
    if output == "json":
        print_data(json_text(figures))
    else:
        print_lines(escaped_record(figures).to_text().rstrip("\n"))
    return EXIT_VALID
