"""``isocheck spec``: the commands for people who write specifications."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="List, show, explain, check and format specifications.",
    epilog="Exit codes: 0 well; 1 something was found (lint), or would change (format --check); "
    "2 an input cannot be used.",
)


class Plain(StrEnum):
    """How results are printed."""

    text = "text"
    json = "json"


Output = Annotated[Plain, typer.Option("--output", "-o", help="How to print.")]
Include = Annotated[
    list[str] | None, typer.Option("--include", metavar="DIR", help="Where to look for includes.")
]
Files = Annotated[list[str], typer.Argument(metavar="FILE", help="Specifications.")]
Name = Annotated[str, typer.Argument(metavar="SPEC", help="A level (si, ser, …) or a .iso file.")]


@app.command("list")
def list_command(output: Output = Plain.text) -> None:
    """The levels of the library."""
    from isolang.cli.spec_library import list_levels

    raise typer.Exit(list_levels(output=output.value))


@app.command("show")
def show_command(
    *,
    name: Name,
    expand: Annotated[
        bool, typer.Option("--expand", help="With what is included, and definitions expanded.")
    ] = False,
    include: Include = None,
    output: Output = Plain.text,
) -> None:
    """The text of a level or a file."""
    from isolang.cli.spec_library import show_level

    raise typer.Exit(show_level(name, expand=expand, include=include or [], output=output.value))


@app.command("explain")
def explain_command(*, name: Name, include: Include = None, output: Output = Plain.text) -> None:
    """What kind of level it is, and what decides it.

    With the conditions that held or failed, and what would make it faster.
    """
    from isolang.cli.spec_explain import explain

    raise typer.Exit(explain(name, include=include or [], output=output.value))


@app.command("lint")
def lint_command(
    *,
    files: Files,
    include: Include = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            metavar="S",
            min=0,
            help="At most, for the search through small histories of each file.",
        ),
    ] = 20.0,
    output: Output = Plain.text,
) -> None:
    """What is wrong, or probably not meant.

    Every error and warning, and what a search through all small histories shows.
    """
    from isolang.cli.spec_lint import lint

    raise typer.Exit(lint(files, include=include or [], seconds=seconds, output=output.value))


@app.command("format")
def format_command(
    *,
    files: Files,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit 1 if a file would change.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Change nothing; print what would.")] = False,
) -> None:
    """Bring files into the usual layout.

    `-` is standard input to standard output.
    """
    from isolang.cli.spec_format import format_files

    raise typer.Exit(format_files(files, check=check, diff=diff))
