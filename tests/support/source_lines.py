"""Checks that messages name the right lines of a test's source file."""

from __future__ import annotations

from pathlib import Path


def assert_names_lines(text: str, file: str, *begins: str) -> None:
    """Assert that a text names, by file and number, the lines that begin with these texts."""
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    for what in begins:
        number = next(n for n, line in enumerate(lines, 1) if line.strip().startswith(what))
        assert f"{Path(file).name}:{number} " in text, text
