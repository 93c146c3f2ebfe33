"""Declares ``isocheck check``, which checks histories against specifications.

:mod:`isolang.cli.checking` implements it. Its imports take longer than printing the help. The
annotations are not strings, because each start evaluates them.
"""

from typing import Annotated, Final

import typer

from isolang.cli.choices import number
from isolang.cli.parameters import (
    HistoryPaths,
    Include,
    Plugins,
    SelectedOptions,
    Specs,
    WorkersURL,
)
from isolang.declared import About
from isolang.options import DECIDING, LIMITS, OUTPUT, Options, OutputOptions, ReadOptions

# The output forms that show each verdict separately. Their modules are imported on demand.
FORMS: Final = ("dot", "graphml", "markdown", "mermaid", "perfetto")
# The output forms that contain all verdicts in one file.
FILES: Final = ("junit", "sarif")


def check(
    *,
    histories: HistoryPaths,
    options: Options,
    reading: ReadOptions,
    output: Annotated[
        OutputOptions,
        SelectedOptions(
            *OutputOptions.__struct_fields__,
            forms=("text", "json", "edn", *FILES, *FORMS),
            about={
                "html": About(
                    "Write the verdict as an HTML page to FILE.html, or each verdict to a page in "
                    "the folder DIR.",
                    "FILE|DIR", OUTPUT,
                ),
            },
        ),
    ],
    specs: Specs = [],  # noqa: B006 - Typer's way to say that it may be left out
    models: Annotated[
        str,
        typer.Option(
            "--consistency-models", metavar="NAMES", show_default=False,
            help="Levels by their names in Elle, separated by commas.",
        ),
    ] = "",
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", metavar="N", help="Check N histories at the same time.",
            rich_help_panel=LIMITS, parser=number(int, 1, 256),
        ),
    ] = 1,
    workers: WorkersURL = "",
    cross_check: Annotated[
        str,
        typer.Option(
            "--cross-check", metavar="[PAIR|all]", show_default=False,
            rich_help_panel=DECIDING,
            help="Also decide with another encoding and solver, and compare the verdicts. Without "
            "a value: a pair that shares no code with the first; all: every pair; or "
            "encoding/solver/prune.",
        ),
    ] = "",
    plugin: Plugins = [],  # noqa: B006
    include: Include = [],  # noqa: B006 - Typer's way to say that it may be left out
) -> int:  # fmt: skip
    """Check histories against isolation levels."""
    from isolang.cli.checking import check_histories

    return check_histories(
        histories=histories,
        specs=specs,
        models=models,
        options=options,
        reading=reading,
        output=output,
        jobs=jobs,
        workers=workers,
        cross_check=cross_check,
        include=include,
    )
