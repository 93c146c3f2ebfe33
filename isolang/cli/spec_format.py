"""``isocheck spec format``: files in the usual layout."""

from __future__ import annotations

import difflib
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from isolang.cli.report import EXIT_INPUT, EXIT_INVALID, EXIT_VALID
from isolang.errors import SpecError


def format_files(files: Sequence[str], *, check: bool, diff: bool) -> int:
    """Format each file, and give the exit code.

    Args:
        files: paths, or ``-`` for standard input.
        check: change nothing; 1 if a file would change.
        diff: change nothing; print what would.
    """
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
            print(f"isocheck: {error}", file=sys.stderr)
            failed = True
            continue
        differs = text != source.text
        changed |= differs
        if differs and diff:
            sys.stdout.writelines(_diff(source.text, text, name))
        if differs and check:
            print(f"{name}: would be reformatted", file=sys.stderr)
        if not check and not diff:
            if name == "-":
                sys.stdout.write(text)
            elif differs:
                _replace(Path(name), text)
                print(f"{name}: reformatted", file=sys.stderr)
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
