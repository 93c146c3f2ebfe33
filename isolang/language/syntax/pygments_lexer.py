"""A Pygments lexer for ``.iso`` files, found by Sphinx, MkDocs and LaTeX via its entry point."""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Text, string_to_tokentype

from isolang.language.syntax.highlight import COLOURS


def _rules() -> dict[str, list[Any]]:
    states: dict[str, list[Any]] = {"root": [(r"\s+", Text)]}
    for number, one in enumerate(COLOURS):
        token = string_to_tokentype(one.token)
        if not one.end:
            states["root"].append((one.pattern, token))
            continue
        inside = f"inside-{number}"
        states["root"].append((one.pattern, token, inside))
        states[inside] = [(one.end, token, "#pop"), (r"(?s).", token)]
    return states


class IsoLexer(RegexLexer):  # type: ignore[misc]
    """A lexer for highlighting specifications."""

    name = "isolang"
    aliases: ClassVar = ["iso", "isolang"]
    filenames: ClassVar = ["*.iso"]
    tokens: ClassVar = _rules()
