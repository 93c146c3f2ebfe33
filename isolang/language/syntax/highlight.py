"""The colours for the language, in one table used to generate the rules for all editors.

``python -m isolang.language.syntax.highlight`` writes ``editors/vscode/iso.tmLanguage.json``, the
TextMate grammar for VS Code, Sublime Text and GitHub. The Pygments lexer in
``isolang.language.syntax.pygments_lexer`` uses the same table.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from isolang.language.vocabulary import VOCABULARY

EDITOR: Final = Path(__file__).resolve().parents[3] / "editors" / "vscode" / "iso.tmLanguage.json"


class Colour(Struct, frozen=True):
    """A kind of token with its colour.

    Attributes:
        pattern: a regular expression that works in both Python and Oniguruma; all groups are
            ``(?:…)``.
        end: for tokens that may span several lines, the pattern that ends them; otherwise empty.
    """

    pattern: str
    scope: str
    token: str
    end: str = ""


def _words(*words: str) -> str:
    return rf"(?<![\w-])(?:{'|'.join(words)})(?![\w-])"


COLOURS: Final = (
    Colour(r"//[^\n]*", "comment.line.double-slash", "Comment.Single"),
    Colour(r"\(\*", "comment.block", "Comment.Multiline", end=r"\*\)"),
    Colour(r'"[^"\r\n]*"', "string.quoted.double", "String.Double"),
    Colour(_words("spec", "include", "let", "exists", "show"), "keyword.declaration",
           "Keyword.Declaration"),
    Colour(_words("acyclic", "irreflexive", "empty", "require", "flag", "not", "allows",
                  "forbids"), "keyword.control",
           "Keyword"),
    Colour(_words("order", "choice", "relation", "on", "of", "containing", "within", "in", "as",
                  "for", "each"), "keyword.other", "Keyword.Reserved"),
    Colour(_words("domain", "range", "obs"), "support.function", "Name.Builtin"),
    Colour(_words(*(word.name for word in VOCABULARY)), "support.constant", "Name.Constant"),
    Colour(r"\^(?:-1|\+|\*)|[?|;&\\*=]", "keyword.operator", "Operator"),
    Colour(r"[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*", "variable.other", "Name"),
    Colour(r"[\[\](),:]", "punctuation", "Punctuation"),
)  # fmt: skip


def textmate() -> dict[str, Any]:
    """Return the TextMate grammar as a dictionary."""
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "isolang",
        "scopeName": "source.iso",
        "fileTypes": ["iso"],
        "patterns": [
            {"name": f"{one.scope}.iso", "begin": one.pattern, "end": one.end}
            if one.end
            else {"name": f"{one.scope}.iso", "match": one.pattern}
            for one in COLOURS
        ],
    }


def text() -> str:
    """Return the content of the TextMate grammar file."""
    return json.dumps(textmate(), indent=2) + "\n"


if __name__ == "__main__":
    EDITOR.parent.mkdir(exist_ok=True)
    EDITOR.write_text(text(), encoding="utf-8")
