"""Where a text stops being a specification: the token that does not fit, and those before it.

It is what a rule about a slip may look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from lark import Token

# The words of the grammar, by what they do.
TESTS = frozenset(("acyclic", "irreflexive", "empty", "require"))
ITEM = TESTS | {"spec", "include", "let", "exists", "flag", "not", "show"}
TERM_OPERATORS = frozenset((";", "&", "\\", "*"))
POSTFIX = frozenset(("^-1", "^+", "^*", "?"))
STARTS = frozenset(("NAME", "(", "[", "domain", "range", "for"))


class Got(Struct, frozen=True):
    """The token that did not fit.

    Attributes:
        type: its terminal, ``$END`` at the end of the text, ``character`` if it is no token.
        text: as it stands in the text.
        accepts: what would have fitted, as the user would type it.
    """

    type: str
    text: str
    accepts: frozenset[str]


class Place(Struct, frozen=True):
    """Where the parser stopped.

    Attributes:
        before: the tokens before.
        got: the one that did not fit.
        keywords: the words that cannot be names.
        rest: the text from there on.
    """

    before: Sequence[Token]
    got: Got
    keywords: frozenset[str]
    rest: str

    @property
    def last(self) -> str:
        """The token before, or nothing."""
        return str(self.before[-1]) if self.before else ""

    @property
    def item(self) -> str:
        """The keyword that began the item we are in."""
        return next((str(t) for t in reversed(self.before) if t in ITEM), "")

    @property
    def ends_item(self) -> bool:
        """Whether the item stops here: the text ends, or another item begins."""
        return self.got.type == "$END" or self.got.text in ITEM

    @property
    def open_bracket(self) -> Token | None:
        """The innermost bracket that is open here."""
        stack: list[Token] = []
        for token in self.before:
            if token in ("(", "["):
                stack.append(token)
            elif token in (")", "]") and stack:
                stack.pop()
        return stack[-1] if stack else None

    @property
    def term_operator(self) -> str:
        """The operator of the term that ends here, or nothing."""
        depth = 0
        for token in reversed(self.before):
            if token in (")", "]"):
                depth += 1
            elif token in ("(", "["):
                depth -= 1
                if depth < 0:
                    return ""
            elif depth == 0:
                if token in TERM_OPERATORS:
                    return str(token)
                if token == "|" or (token in self.keywords and token not in ("domain", "range")):
                    return ""
        return ""
