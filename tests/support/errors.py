"""Checks the message of an error in a specification, and the place that it names."""

from __future__ import annotations

import pytest

from isolang.errors import SpecError
from isolang.language.load import load_spec


def check_error(text: str, line: int, column: int, what: str, hint: str) -> None:
    """Check that loading ``text`` fails at a place, with a message, a caret and a hint."""
    with pytest.raises(SpecError) as caught:
        load_spec(text if "\n" in text else text + "\n")
    error = caught.value
    message = str(error)
    assert (error.file, error.line, error.column) == ("<text>", line, column), message
    first = message.split("\n", 1)[0]
    assert first.startswith(f"<text>:{line}:{column}: ")
    assert what in first
    assert hint in error.hint
    if hint:
        assert message.endswith(f"  hint: {error.hint}")
    # The message shows the source line, with a caret in the column of the error.
    lines = message.split("\n")
    shown = next(i for i, content in enumerate(lines) if content.startswith(f"  {line} | "))
    assert lines[shown + 1].index("^") - len(f"  {line} | ") + 1 == column
