"""Texts, places in them, and messages that show a place with its source line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from isolang.errors import SpecError

MAX_WIDTH = 120
"""The maximum width of a source line in a message. For longer lines, messages show only the part
around the caret.
"""


class SourceText(Struct, frozen=True, eq=False):
    """A text with its name in messages.

    Attributes:
        name: the name: a path, ``library:NAME.iso`` or ``<text>``.
    """

    name: str
    text: str


class Position(NamedTuple):
    """A place in a text, for messages. Lines and columns are numbered from 1."""

    file: str
    line: int
    column: int
    end_column: int = 0
    """The column after the place's last character on its line; 0 if the end is unknown."""


class Span(NamedTuple):
    """A part of a text, ending before ``end_column``. Lines and columns are numbered from 1."""

    source: SourceText
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def position(self) -> Position:
        """The span's place, without its text; the end column is set only for single-line spans."""
        end = self.end_column if self.end_line == self.line else 0
        return Position(self.source.name, self.line, self.column, end)


def excerpt(text: str, line: int, column: int, end_column: int = 0) -> str:
    """Return a source line with carets below the given columns, or "" if there is no such line."""
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
    # The caret line repeats the source line's tabs, so that the carets are below their characters
    # in every terminal.
    indent = "".join("\t" if char == "\t" else " " for char in content[: column - 1])
    carets = "^" * max(1, end - column)
    return f"  {gutter} | {content}\n  {' ' * len(gutter)} | {indent}{carets}"


def message_at(
    pos: Position, texts: Mapping[str, str], what: str, *, hint: str = "", context: str = ""
) -> str:
    """Return a message with its place, the source line with carets, a context and a hint."""
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
    """Return an error whose message shows the source line with carets below the span."""
    pos = span.position
    text = message_at(pos, {span.source.name: span.source.text}, what, hint=hint, context=context)
    return SpecError(text, file=pos.file, line=pos.line, column=pos.column, hint=hint)


def warning_at(span: Span, what: str, *, hint: str = "") -> str:
    """Return the text of a warning that shows the source line with carets below the span."""
    pos = span.position
    return message_at(pos, {pos.file: span.source.text}, f"warning: {what}", hint=hint)


def did_you_mean(names: Iterable[str]) -> str:
    """Return a hint that suggests these names."""
    return "did you mean " + " or ".join(f"`{name}`" for name in names) + "?"
