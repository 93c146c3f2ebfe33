"""``isocheck spec format``: files in the usual layout."""

from __future__ import annotations

import difflib
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from isolang.cli.parameters import SpecFiles
from isolang.cli.report import EXIT_INPUT, EXIT_INVALID, EXIT_VALID
from isolang.cli.terminal import complain, data, say, visible
from isolang.errors import SpecError


def format_files(
    *,
    files: SpecFiles,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit 1 if a file would change.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Change nothing; print what would.")] = False,
) -> int:
    """Bring files into the usual layout; `-` is standard input to standard output."""
    from isolang.language.includes import read_source
    from isolang.language.syntax.layout import format_text
    from isolang.language.syntax.source import Source

    changed = failed = False
    for name in files:
        try:
            stdin = name == "-"
            source = Source("<stdin>", sys.stdin.read()) if stdin else read_source(Path(name))
            text = format_text(source)
        except SpecError as error:
            complain(f"isocheck: {error}")
            failed = True
            continue
        differs = text != source.text
        changed |= differs
        if differs and diff:
            say("".join(_diff(source.text, text, name)).rstrip("\n"))
        if differs and check:
            complain(f"{visible(name)}: would be reformatted")
        if not check and not diff:
            if name == "-":
                data(text)
            elif differs:
                _replace(Path(name), text)
                complain(f"{visible(name)}: reformatted")
    if failed:
        return EXIT_INPUT
    return EXIT_INVALID if check and changed else EXIT_VALID


def _diff(old: str, new: str, name: str) -> list[str]:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), name, f"{name} (formatted)"
    )
    end = "\n\\ No newline at end of file\n"
    return [line if line.endswith("\n") else line + end for line in lines]


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all, with the permissions that it has."""
    path = path.resolve()
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        os.chmod(temporary, path.stat().st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
