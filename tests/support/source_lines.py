"""Lines of a test's own file, as messages name them."""

from __future__ import annotations

from pathlib import Path


def names_lines(text: str, file: str, *begins: str) -> None:
    """Assert that a text names, by file and number, each line of a file that begins so."""
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    for what in begins:
        number = next(n for n, line in enumerate(lines, 1) if line.strip().startswith(what))
        assert f"{Path(file).name}:{number} " in text, text
