"""What an error in a specification must say, and where."""

from __future__ import annotations

import pytest

from isolang.errors import SpecError
from isolang.language.load import load_spec


def check_error(text: str, line: int, column: int, what: str, hint: str) -> None:
    """Loading ``text`` fails there, in these words, with a caret below the place and this hint."""
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
    # The source line is there, and the caret stands in its column.
    lines = message.split("\n")
    shown = next(i for i, content in enumerate(lines) if content.startswith(f"  {line} | "))
    assert lines[shown + 1].index("^") - len(f"  {line} | ") + 1 == column
