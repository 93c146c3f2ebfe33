"""Syntax errors in words: what stands there, what was expected, and what was probably meant.

The parser knows only the token that did not fit. What was meant shows in the tokens before it:
``slips.py`` has a rule for each known slip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isolang.language.place import ITEM, POSTFIX, STARTS, TERM_OPERATORS, Got, Place
from isolang.language.slips import RULES
from isolang.language.source import Span, error_at

if TYPE_CHECKING:
    from lark import Token

    from isolang.errors import SpecError


def explain(
    span: Span,
    before: Sequence[Token],
    got: Got,
    keywords: frozenset[str],
    *,
    rest: str = "",
) -> SpecError:
    """The error for a token or character that does not fit.

    Args:
        span: where it stands.
        before: the tokens before it.
        got: the token itself.
        keywords: the words that cannot be names.
        rest: the text from there on.
    """
    place = Place(before, got, keywords, rest)
    what, hint = next((said for rule in RULES if (said := rule(place))), ("syntax error", ""))
    moved = place.ends_item and got.text != "spec"
    if moved and before and before[-1].end_line != span.line:
        # The slip is where the last item stops, not where the next one begins, lines below.
        last = before[-1]
        line, column = last.end_line or 1, last.end_column or 1
        back = 1 if last == ";" else 0
        span = Span(span.source, line, column - back, line, column - back + 1)
    shown = got.text if got.text.isprintable() else ascii(got.text)[1:-1]
    found = "the end of the text" if got.type == "$END" else f"`{shown}`"
    expected = _expected(got.accepts)
    detail = f"got {found}, expected {expected}" if expected else f"got {found}"
    return error_at(span, f"{what} ({detail})", hint=hint)


def _expected(accepts: frozenset[str]) -> str:
    """A set of terminals in words, from the specific to the general."""
    left = set(accepts) - {"$END", "LINE_COMMENT", "BLOCK_COMMENT", "WHITESPACE"}
    words: list[str] = []
    if {"NAME", "("} <= left:
        words.append("an expression")
        left -= STARTS
    if "as" in left:
        words.append("`as NAME`")
        left -= {"as"}
    at_end = len(left & {"include", "let", "acyclic"}) == 3
    operators = left & (TERM_OPERATORS | POSTFIX | {"|"})
    if len(operators) > 2:
        left -= operators | {"(", "["}
    spoken = {"NAME": "a name", "STRING": 'a text in double quotes "…"'}
    for terminal in sorted(left - (ITEM if at_end else set())):
        words.append(spoken.get(terminal, f"`{terminal}`"))
    if len(operators) > 2:
        words.append("an operator")
    if at_end:
        words.append("a new item (`let`, `acyclic`, …)")
    return " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)
