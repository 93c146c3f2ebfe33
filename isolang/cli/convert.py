"""Implements ``isocheck convert``, which writes a history in another format."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from isolang.cli import choices
from isolang.cli.parameters import accept_names
from isolang.options import ReadOptions
from isolang.output.records import EXIT_VALID
from isolang.output.terminal import warn

if TYPE_CHECKING:
    from isolang.history.writers.report import WriteReport

TO: Final[Any] = accept_names(choices.written_formats, "FORMAT")


def convert(
    *,
    source: Annotated[str, typer.Argument(metavar="IN", help="A history.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="The file to write; - for standard "
    "output.")],
    to: Annotated[str, typer.Option("--to", help="The format to write.", **TO)],
    reading: ReadOptions,
    renumber: Annotated[
        bool,
        typer.Option("--renumber", help="Replace keys and values that the format cannot express by "
        "numbers."),
    ] = False,
    drop: Annotated[
        list[str],
        typer.Option(
            "--drop", metavar="WHAT",
            help="Leave out what the format cannot express: real-time, groups, labels, "
            "failed-operations, unknown-reads, empty-transactions, order-after-unknown; may be "
            "repeated.",
        ),
    ] = [],  # noqa: B006
) -> int:  # fmt: skip
    """Write a history in another format."""
    from isolang.history import read_history
    from isolang.history.writers import write_history

    history = read_history(source, reading)
    where = sys.stdout.buffer if target == "-" else target
    report = write_history(history, where, format=to, renumber=renumber, drop=drop)
    report_written(target, report, (*history.ignored, *report.notes))
    return EXIT_VALID


def report_written(target: str, report: WriteReport, notes: Iterable[str]) -> None:
    """Report the written file and the changes made by the conversion, on stderr."""
    if target == "-":
        sys.stdout.buffer.flush()
    name = "the standard output" if target == "-" else target
    warn(
        f"{name}: {report.transactions} transactions, {report.operations} operations "
        f"as {report.format}",
        *(f"  {note}" for note in notes),
    )
