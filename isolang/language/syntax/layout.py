"""The standard layout of a specification, as written by ``isocheck spec format``.

An item is written on one line if it fits. If not, the line is broken before the operators that bind
least tightly, and each part that is still too long is broken again with one more level of
indentation. Comments keep their places: on separate lines, after an item, or between two tokens.
Several consecutive empty lines become one. Tokens are neither added nor removed, so the meaning of
the text does not change.

Formatting twice changes nothing, BECAUSE the layout depends only on the tokens, on the comments,
and on which of them share a line, and formatting changes none of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from isolang.language.syntax.ast import ITEM, POSTFIX, TERM_OPERATORS
from isolang.language.syntax.parser import parse, tokens
from isolang.language.syntax.source import SourceText

WIDTH = 120
INDENT = "    "

_COMMENT = re.compile(r"//[^\n]*|\(\*(?:.|\n)*?\*\)")
_CLAUSES = frozenset(("in", "containing", "within"))
_CALLS = frozenset(("domain", "range"))


class _Piece(Struct, frozen=True):
    """A token or comment, with the details of its place that affect the layout."""

    kind: Literal["token", "line comment", "block comment"]
    text: str
    type: str = ""
    own_line: bool = False
    blank_before: bool = False

    @property
    def is_comment(self) -> bool:
        return self.kind != "token"


def format_text(source: SourceText) -> str:
    """Return a specification in the standard layout.

    Raises:
        SpecError: if the text does not follow the grammar.
    """
    parse(source)
    text = SourceText(source.name, source.text.replace("\r\n", "\n").replace("\r", "\n"))
    lines: list[str] = []
    # the kind of element at the end of the last line, if a comment may follow on that line
    after = ""
    for element in _elements(_pieces(text)):
        first = element[0]
        same_line = bool(after) and not first.own_line
        if lines and first.blank_before and not same_line:
            lines.append("")
        if first.is_comment:
            shown = _comment(first.text)
            if same_line:
                lines[-1] += ("  " if after == "item" else " ") + shown[0]
                lines += shown[1:]
            else:
                lines += shown
            place = "behind" if same_line and after != "comment" else "comment"
            after = place if first.kind == "block comment" and len(shown) == 1 else ""
        else:
            # A comment at the end of a line belongs to the item on that line. A comment that starts
            # an item's line stays before the item.
            prefix = lines.pop() + " " if same_line and after == "comment" else ""
            laid = _item(element, len(prefix))
            lines += [prefix + laid[0], *laid[1:]]
            after = "item"
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _comment(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n")]


def _pieces(source: SourceText) -> list[_Piece]:
    """Return the tokens and comments of a text, in order."""
    pieces: list[_Piece] = []
    at = 0
    for token in [*tokens(source), None]:
        start = len(source.text) if token is None else token.start_pos or 0
        for found in _COMMENT.finditer(source.text, at, start):
            kind: Literal["line comment", "block comment"] = (
                "line comment" if found[0].startswith("//") else "block comment"
            )
            own, blank = _line_start(source.text, found.start())
            pieces.append(_Piece(kind, found[0], own_line=own, blank_before=blank))
        if token is not None:
            own, blank = _line_start(source.text, start)
            pieces.append(_Piece("token", str(token), token.type, own, blank))
            at = token.end_pos or start
    return pieces


def _line_start(text: str, at: int) -> tuple[bool, bool]:
    """Return whether ``at`` is at the start of its line, and whether the line above is empty.

    Leading spaces are ignored.
    """
    line = text.rfind("\n", 0, at) + 1
    own = not text[line:at].strip()
    return own, own and line > 0 and not text[text.rfind("\n", 0, line - 1) + 1 : line].strip()


def _elements(pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    """Yield each item with the comments inside it, and each comment between items."""
    item: list[_Piece] = []
    for i, piece in enumerate(pieces):
        each = piece.text == "for" and any(p.text == "each" for p in pieces[i + 1 : i + 2])
        later = next((p for p in pieces[i + 1 :] if not p.is_comment), None)
        of_keys = (
            piece.text == "not"
            and later is not None
            and (later.text == "in" or later.type == "STRING")
        )
        if not piece.is_comment and not of_keys and _begins_item(piece, item, each=each):
            yield from _split(item)
            item = []
        item.append(piece)
    yield from _split(item)


def _begins_item(piece: _Piece, item: Sequence[_Piece], *, each: bool) -> bool:
    if (piece.text not in ITEM and not each) or piece.type == "STRING":
        return False
    before = next((p.text for p in reversed(item) if not p.is_comment), "")
    # `flag not acyclic …` and `for each x: acyclic …` are single items.
    return before != ":" and not (before in ("flag", "not") and piece.text != "flag")


def _split(item: list[_Piece]) -> Iterator[list[_Piece]]:
    """Yield the comments before an item's first token, the item, and the comments after it."""
    inside = [i for i, piece in enumerate(item) if not piece.is_comment]
    first, last = (inside[0], inside[-1]) if inside else (len(item), len(item) - 1)
    for piece in item[:first]:
        yield [piece]
    if inside:
        yield item[first : last + 1]
    for piece in item[last + 1 :]:
        yield [piece]


# --- one item ---


def _item(pieces: Sequence[_Piece], used: int) -> list[str]:
    """Return the lines of an item whose first line already contains ``used`` characters."""
    lines: list[str] = []
    run: list[_Piece] = []

    def flush() -> None:
        if run:
            lines.extend(_break_lines(run, INDENT if lines else "", 0 if lines else used))
            run.clear()

    breaks = any(p.kind == "line comment" or "\n" in p.text for p in pieces)
    if not breaks:
        # Comments inside a line are laid out like tokens.
        return _break_lines(list(pieces), "", used)
    for piece in pieces:
        if piece.kind == "line comment" or "\n" in piece.text:
            if piece.own_line or (not run and not lines):
                flush()
                shown = _comment(piece.text)
                lines += [INDENT + shown[0], *shown[1:]]
            else:
                flush()
                shown = _comment(piece.text)
                lines[-1] += "  " + shown[0]
                lines += shown[1:]
        else:
            run.append(piece)
    flush()
    return lines


def _break_lines(pieces: Sequence[_Piece], indent: str, used: int, deeper: str = "") -> list[str]:
    """Return the pieces on one line if they fit, and otherwise on several indented lines."""
    line = indent + _join_pieces(pieces)
    ranks = _break_ranks(pieces)
    if len(line) + used <= WIDTH or not ranks:
        return [line]
    least = min(ranks.values())
    places = [i for i, rank in ranks.items() if rank == least]
    parts = [pieces[a:b] for a, b in zip([0, *places], [*places, len(pieces)], strict=True)]
    inner = deeper or indent + INDENT
    lines = _break_lines(parts[0], indent, used, inner + INDENT)
    for part in parts[1:]:
        lines += _break_lines(part, inner, 0)
    return lines


def _break_ranks(pieces: Sequence[_Piece]) -> dict[int, tuple[int, int]]:
    """Return the rank of each piece before which a line may be broken.

    Lines are broken before the pieces with the lowest rank: the operators that bind least tightly.
    The first piece has no rank, because a break before it would leave an empty line.
    """
    ranks: dict[int, tuple[int, int]] = {}
    depth = 0
    for i, piece in enumerate(pieces):
        text = piece.text
        if text in (")", "]"):
            depth -= 1
        if i > 0 and not piece.is_comment:
            if text == "as":
                ranks[i] = (depth, 0)
            elif text in _CLAUSES:
                ranks[i] = (depth, 1)
            elif text == "|":
                ranks[i] = (depth, 2)
            elif text in TERM_OPERATORS:
                ranks[i] = (depth, 3)
        if text in ("(", "["):
            depth += 1
    return ranks


def _join_pieces(pieces: Sequence[_Piece]) -> str:
    text = ""
    for i, piece in enumerate(pieces):
        if i and _needs_space(pieces, i):
            text += " "
        text += piece.text
    return text


def _needs_space(pieces: Sequence[_Piece], i: int) -> bool:
    """Return whether a space separates piece ``i`` from the previous piece."""
    before, piece = pieces[i - 1], pieces[i]
    if before.is_comment or piece.is_comment:
        return True
    if before.text in ("(", "[") or piece.text in (")", "]", ",", *POSTFIX):
        return False
    if piece.text == "[":
        return before.type != "NAME"
    if piece.text == "(":
        # A bracket follows without a space only in `f(a)`, `f[x](a)` and `domain(a)`.
        return not (before.type == "NAME" or before.text in (*_CALLS, "]"))
    if piece.text == ":":
        # The colon of a `for` follows its key variable or patterns without a space.
        return not (before.type == "STRING" or (i >= 2 and pieces[i - 2].text in ("for", "each")))
    return True
