"""Texts, places in texts, and how messages show a place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from isolang.errors import SpecError

MAX_WIDTH = 120
"""The greatest width of a source line in a message. A longer line is cut around the caret."""


class SourceText(Struct, frozen=True, eq=False):
    """A text with its name.

    Attributes:
        name: the name in messages: a path, ``library:NAME.iso`` or ``<text>``.
        text: the content.
    """

    name: str
    text: str


class Position(NamedTuple):
    """A place in a text, for messages; lines and columns count from 1."""

    file: str
    line: int
    column: int
    end_column: int = 0
    """The column after the last character on that line, or 0 if it is unknown."""


class Span(NamedTuple):
    """A part of a text; lines and columns count from 1, and ``end_column`` is not part of it."""

    source: SourceText
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def position(self) -> Position:
        """The place without the text; it ends at the end of the first line of the span."""
        end = self.end_column if self.end_line == self.line else 0
        return Position(self.source.name, self.line, self.column, end)


def excerpt(text: str, line: int, column: int, end_column: int = 0) -> str:
    """Return the source line with carets below the columns, or "" if there is no such line."""
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        return ""
    content = lines[line - 1].rstrip("\r")
    column = max(1, min(column, len(content) + 1))
    end = min(end_column, len(content) + 1)
    content = "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in content)
    if len(content) > MAX_WIDTH:
        first = max(0, min(column - 1 - MAX_WIDTH // 2, len(content) - MAX_WIDTH))
        content = content[first : first + MAX_WIDTH]
        column, end = column - first, min(end - first, MAX_WIDTH + 1)
    gutter = str(line)
    # The caret's line repeats the tabs of the source line, so the caret is below its character in
    # every terminal.
    indent = "".join("\t" if char == "\t" else " " for char in content[: column - 1])
    carets = "^" * max(1, end - column)
    return f"  {gutter} | {content}\n  {' ' * len(gutter)} | {indent}{carets}"


def message_at(
    pos: Position, texts: Mapping[str, str], what: str, *, hint: str = "", context: str = ""
) -> str:
    """Return a message with its place, the source line and a caret, the context, and the hint."""
    where = f"{pos.file}:{pos.line}:{pos.column}" if pos.line else pos.file
    parts = [f"{where}: {what}"]
    if pos.line and (shown := excerpt(texts.get(pos.file, ""), *pos[1:])):
        parts.append(shown)
    if context:
        parts.append(f"  {context}")
    if hint:
        parts.append(f"  hint: {hint}")
    return "\n".join(parts)


def error_at(span: Span, what: str, *, hint: str = "", context: str = "") -> SpecError:
    """Return the error ``what`` at ``span``, with its caret."""
    pos = span.position
    text = message_at(pos, {span.source.name: span.source.text}, what, hint=hint, context=context)
    return SpecError(text, file=pos.file, line=pos.line, column=pos.column, hint=hint)


def warning_at(span: Span, what: str, *, hint: str = "") -> str:
    """Return the warning ``what`` at ``span``, in one paragraph with its caret."""
    pos = span.position
    return message_at(pos, {pos.file: span.source.text}, f"warning: {what}", hint=hint)


def did_you_mean(names: Iterable[str]) -> str:
    """Return the hint that suggests one of these names."""
    return "did you mean " + " or ".join(f"`{name}`" for name in names) + "?"
