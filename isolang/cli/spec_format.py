"""Implements ``isocheck spec format``, which formats specifications."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Annotated

import typer

from isolang.cli.parameters import SpecFiles
from isolang.errors import SpecError
from isolang.files import write_atomically
from isolang.output.records import EXIT_INPUT, EXIT_INVALID, EXIT_VALID
from isolang.output.terminal import escaped, print_data, print_lines, warn


def format_files(
    *,
    files: SpecFiles,
    check: Annotated[
        bool,
        typer.Option("--check", help="Change nothing; exit with code 1 if a file would change."),
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Change nothing, but print the changes.")
    ] = False,
) -> int:
    """Format files; `-` formats standard input to standard output."""
    from isolang.language.includes import read_source
    from isolang.language.syntax.layout import format_text
    from isolang.language.syntax.source import SourceText

    changed = failed = False
    for name in files:
        try:
            stdin = name == "-"
            source = SourceText("<stdin>", sys.stdin.read()) if stdin else read_source(Path(name))
            text = format_text(source)
        except SpecError as error:
            warn(f"isocheck: {error}")
            failed = True
            continue
        differs = text != source.text
        changed |= differs
        if differs and diff:
            print_lines("".join(_diff(source.text, text, name)).rstrip("\n"))
        if differs and check:
            warn(f"{escaped(name)}: would be reformatted")
        if not check and not diff:
            if name == "-":
                print_data(text)
            elif differs:
                write_atomically(Path(name), text)
                warn(f"{escaped(name)}: reformatted")
    if failed:
        return EXIT_INPUT
    return EXIT_INVALID if check and changed else EXIT_VALID


def _diff(old: str, new: str, name: str) -> list[str]:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), name, f"{name} (formatted)"
    )
    end = "\n\\ No newline at end of file\n"
    return [line if line.endswith("\n") else line + end for line in lines]
