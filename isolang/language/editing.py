"""Answers an editor's queries about a specification, for ``isocheck lsp``.

Lines and columns are numbered from 1, as everywhere in the language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from isolang.errors import SpecError
from isolang.language import vocabulary
from isolang.language.load import Buffer, load_buffer
from isolang.language.syntax import ast
from isolang.language.syntax.source import Span

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*")
_PLACE: Final = re.compile(r"(?P<file>.*?):(?P<line>\d+):(?P<column>\d+): (?:warning: )?")
BUILTIN_MEANINGS: Final = {word.name: word.sentence for word in vocabulary.BUILTIN_WORDS}
"""For each builtin name, a sentence that explains its meaning."""


class Note(Struct, frozen=True, kw_only=True):
    """A message about a place in the text.

    Attributes:
        line: the line, counted from 1.
        column: the column, counted from 1.
    """

    severity: Literal["error", "warning"]
    line: int
    column: int
    message: str


def notes(text: str, path: Path) -> list[Note]:
    """Return the errors in a text, or its warnings if it has no errors."""
    found = load_buffer(text, path)
    if found.spec is None:
        return [_note("error", error, path) for error in found.errors]
    from isolang.language.classify.route import route
    from isolang.language.meaning.polarity import polarity_warnings

    try:
        warnings = [*route(found.spec).warnings, *polarity_warnings(found.spec)]
    except SpecError:  # a text without checks is a fragment to be included by other files
        warnings = [*found.spec.warnings]
    return [_warning(one, path) for one in warnings]


def _note(severity: Literal["error", "warning"], error: SpecError, path: Path) -> Note:
    here = error.file == str(path) and error.line > 0
    message = str(error)
    if here:
        message = _short(message)
    return Note(
        severity=severity,
        line=error.line if here else 1,
        column=max(1, error.column) if here else 1,
        message=message,
    )


def _warning(text: str, path: Path) -> Note:
    place = _PLACE.match(text)
    here = place is not None and place["file"] == str(path)
    return Note(
        severity="warning",
        line=int(place["line"]) if here and place else 1,
        column=int(place["column"]) if here and place else 1,
        message=_short(text),
    )


def _short(message: str) -> str:
    """Return a message without its place and source line, which the editor shows anyway."""
    first, *rest = message.splitlines()
    return "\n".join([_PLACE.sub("", first), *(line.strip() for line in rest if "hint:" in line)])


def word_at(text: str, line: int, column: int) -> str:
    """Return the name at a place in a text, or an empty string if it has none."""
    lines = text.splitlines()
    if not 1 <= line <= len(lines):
        return ""
    for found in _NAME.finditer(lines[line - 1]):
        if found.start() < column <= found.end() + 1:
            return found[0]
    return ""


def hover(text: str, path: Path, line: int, column: int) -> str:
    """Return a description of the definition, check or builtin named at a place."""
    name = word_at(text, line, column)
    found = load_buffer(text, path)
    if not name:
        return ""
    for item in _items(found):
        if isinstance(item, ast.CheckItem) and item.name.text == name and found.spec is not None:
            return "\n\n".join(_about_check(found, name))
        if _declares(item, name):
            return f"```iso\n{_source(item.span)}\n```"
    return f"`{name}`: {BUILTIN_MEANINGS[name]}" if name in BUILTIN_MEANINGS else ""


def _about_check(found: Buffer, name: str) -> Iterator[str]:
    from isolang.language.classify.route import route
    from isolang.language.meaning.show import show_check

    assert found.spec is not None
    check = next(one for one in found.spec.checks if one.name == name)
    yield f"```iso\n{show_check(check)}\n```"
    way = route(found.spec)
    yield f"decided by: {way.kind}"
    yield from way.reasons


def definition(text: str, path: Path, line: int, column: int) -> tuple[str, int, int] | None:
    """Return the file, line and column where the name at a place is declared.

    If the name is never declared, return ``None``.
    """
    name = word_at(text, line, column)
    for item in _items(load_buffer(text, path)):
        if name and _declares(item, name):
            return item.span.source.name, item.span.line, item.span.column
    return None


def completions(text: str, path: Path) -> dict[str, str]:
    """Return the words and names that can be used in a text, each with a description."""
    from isolang.language.library import list_library
    from isolang.language.syntax.parser import keywords

    found = load_buffer(text, path)
    words = dict.fromkeys(sorted(keywords()), "word of the language") | BUILTIN_MEANINGS
    for item in _items(found):
        if isinstance(item, ast.Let | ast.ExistsItem):
            words[item.name.text] = _source(item.span).splitlines()[0]
    if found.gathered is None:  # the text has a syntax error, so offer every name in it
        words |= {name: "name" for name in _NAME.findall(text) if name not in words}
    return words | {f'"{entry.name}.iso"': entry.title for entry in list_library()}


def format_buffer(text: str, path: Path) -> str | None:
    """Return a text in the standard layout, or ``None`` if it does not follow the grammar."""
    from isolang.language.syntax.layout import format_text
    from isolang.language.syntax.source import SourceText

    try:
        return format_text(SourceText(str(path), text))
    except SpecError:
        return None


def _items(found: Buffer) -> Iterator[ast.Item]:
    if found.gathered is not None:
        yield from found.gathered.items


def _declares(item: ast.Item, name: str) -> bool:
    return isinstance(item, ast.Let | ast.ExistsItem) and item.name.text == name


def _source(span: Span) -> str:
    lines = span.source.text.splitlines()[span.line - 1 : span.end_line]
    if lines:
        lines[-1] = lines[-1][: span.end_column - 1]
        lines[0] = lines[0][span.column - 1 :]
    return "\n".join(lines)
