"""Explains syntax errors: the mistake, the expected tokens, and a hint.

The parser knows only the unexpected token, but the tokens before it show the author's intention.
There is a rule for each known mistake, and the first rule that applies explains the error. A rule
takes the point where the parser stopped and returns the mistake and a hint.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from isolang.language.syntax.ast import ITEM, POSTFIX, STARTS, TERM_OPERATORS, TESTS
from isolang.language.syntax.source import Span, error_at

if TYPE_CHECKING:
    from lark import Token

    from isolang.errors import SpecError


class Got(Struct, frozen=True):
    """The unexpected token at which the parser stopped.

    Attributes:
        type: the terminal of the token; ``$END`` at the end of the text; ``character`` if the next
            character does not begin a token.
        accepts: the tokens allowed by the grammar here, as users type them.
    """

    type: str
    text: str
    accepts: frozenset[str]


class StopPoint(Struct, frozen=True):
    """The point where the parser stopped, and the tokens around it."""

    before: Sequence[Token]
    got: Got
    keywords: frozenset[str]
    rest: str
    on_new_line: bool

    @property
    def last(self) -> str:
        """The text of the last token before this point; empty if there is none."""
        return str(self.before[-1]) if self.before else ""

    @property
    def item(self) -> str:
        """The keyword that begins the current item."""
        return next((str(t) for t in reversed(self.before) if t in ITEM), "")

    @property
    def ends_item(self) -> bool:
        """Return whether the text ends at this point, or another item begins."""
        return self.got.type == "$END" or self.got.text in ITEM

    @property
    def open_bracket(self) -> Token | None:
        """The innermost bracket open at this point, or ``None``."""
        stack: list[Token] = []
        for token in self.before:
            if token in ("(", "["):
                stack.append(token)
            elif token in (")", "]") and stack:
                stack.pop()
        return stack[-1] if stack else None

    @property
    def term_operator(self) -> str:
        """The operator of the term ending at this point; empty if the term has none."""
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


_MATCH = {")": "(", "]": "["}
_CLOSE = {"(": ")", "[": "]"}
_TEST_FORM = {
    "acyclic": "acyclic EXPRESSION as NAME",
    "irreflexive": "irreflexive EXPRESSION as NAME",
    "empty": "empty EXPRESSION as NAME",
    "require": "require EXPRESSION in EXPRESSION as NAME",
}
_ITEMS = (
    "a file has `let`, `exists`, `include`, `show`, `allows`, `forbids` and checks such as "
    "`acyclic so as c`"
)
_EACH_KEY = "a check of each key is `for each x: acyclic …`, or `acyclic for x: EXPRESSION as NAME`"
_SOME_KEY = "`for x: EXPRESSION` contains the pairs of every key; `exists` declares a choice"
_CHARACTERS = {
    "+": "the transitive closure is `^+`, as in `so^+`",
    "~": "there is no complement; subtract with `\\`, as in `T * T \\ so`",
    "!": "there is no complement; subtract with `\\`; a check is negated with `not`",
    "'": 'texts are in double quotes: "…"',
    "{": "expressions are grouped with parentheses `( … )`",
    "}": "expressions are grouped with parentheses `( … )`",
    "#": "comments are `// …` and `(* … *)`",
    "%": "comments are `// …` and `(* … *)`",
    ".": "composition is `;`, a file name is in double quotes",
    "∪": "union is `|`",
    "∩": "intersection is `&`",
    "∘": "composition is `;`, from left to right",
    "⁺": "the transitive closure is `^+`",
    "⁻": "the inverse is `^-1`",
    "⊆": "inclusion is `require A in B as name`",
    "×": "the product of two sets is `*`",
    "∀": _EACH_KEY,
    "∃": _SOME_KEY,
}

_Diagnosis = tuple[str, str]
"""The texts of the mistake and the hint."""


def _character(place: StopPoint) -> _Diagnosis | None:
    char = place.got.text
    if place.got.type != "character":
        return None
    if char == '"':
        return (
            "the closing quote of a text is missing",
            'a text stands on one line, in double quotes: "…"',
        )
    if char == "^" and place.rest.startswith("^?"):
        return "unknown operator", "for zero or one step, write `?` without the caret, as in `rw?`"
    if char == "~" and re.match(r"~\s*(acyclic|irreflexive|empty|require)\b", place.rest):
        return "unexpected character", "a check is negated with `not`, as in `not acyclic so as c`"
    if char == "0" and not place.rest[1:2].isalnum():
        return "unexpected digit", "there is no name for the empty relation; `so \\ so` is empty"
    if char == "^":
        hint = "after `^` comes `+` (closure), `*` (with identity) or `-1` (inverse)"
        return "unknown operator", hint
    if char == "-" and place.rest.startswith("--"):
        return "unexpected character", "comments are `// …` and `(* … *)`"
    if char == "-" and place.rest.startswith("->"):
        return "unexpected character", "composition is `;`, inclusion is `require A in B as name`"
    if char == "/":
        return "unexpected character", "a comment is `// …`; difference is `\\`"
    if char.isdigit():
        return "unexpected digit", "a name begins with a letter; the inverse is `^-1`"
    return "unexpected character", _CHARACTERS.get(char, "")


def _open_comment(place: StopPoint) -> _Diagnosis | None:
    begins = place.got.text == "(" and place.rest.startswith("(*")
    if not begins and not (place.got.text == "*" and place.last == "("):
        return None
    return "the comment is never closed", "a comment is `(* … *)` or `// …`"


def _comma(place: StopPoint) -> _Diagnosis | None:
    if place.got.text != "," or place.item not in TESTS | {"let", "show", "exists"}:
        return None
    if "," in place.got.accepts or {"NAME", "("} <= place.got.accepts:
        return None
    return "`,` is not an operator", "union is `|`, as in `so | wr`; composition is `;`"


def _quantifier(place: StopPoint) -> _Diagnosis | None:
    for word in (place.got.text, place.last):
        if word.lower() in ("forall", "foreach") and place.got.type == "NAME":
            return f"`{word}` is not a word of the language", _EACH_KEY
    if place.got.text == "exists" and place.last in TESTS | TERM_OPERATORS | {"|", "(", "="}:
        return "`exists` cannot be inside an expression", _SOME_KEY
    return None


def _mixed(place: StopPoint) -> _Diagnosis | None:
    new, old = place.got.text, place.term_operator
    if new not in TERM_OPERATORS or not old or new in place.got.accepts or place.last == old:
        return None
    what = f"`{old}` and `{new}` are mixed without parentheses"
    if old == new:
        what = f"`{new}` is used twice without parentheses"
    return what, f"write `(a {old} b) {new} c` or `a {old} (b {new} c)`"


def _star(place: StopPoint) -> _Diagnosis | None:
    got = place.got
    if place.last == "*" and got.text not in STARTS and got.type != "NAME":
        what = "`*` is the product of two sets and needs a right side"
        return what, "the closure with identity is `^*`, as in `(so | wr)^*`"
    return None


def _terminator(place: StopPoint) -> _Diagnosis | None:
    if place.last != ";" or not place.ends_item:
        return None
    return "`;` needs a right side", "`;` is composition; items need no terminator, remove it"


def _unclosed(place: StopPoint) -> _Diagnosis | None:
    bracket = place.open_bracket
    got = place.got
    if got.text in _MATCH:
        if bracket is None:
            return f"`{got.text}` closes nothing", "remove it, or add the opening bracket"
        if bracket != _MATCH[got.text]:
            where = f"line {bracket.line}, column {bracket.column}"
            what = f"`{got.text}` does not close the `{bracket}` of {where}"
            return what, f"close it with `{_CLOSE[str(bracket)]}`"
    elif bracket is not None and (place.ends_item or got.text in ("as", "in")):
        where = f"line {bracket.line}, column {bracket.column}"
        return f"the `{bracket}` of {where} is never closed", f"add `{_CLOSE[str(bracket)]}`"
    return None


def _missing_name(place: StopPoint) -> _Diagnosis | None:
    item, accepts = place.item, place.got.accepts
    if item == "require" and "in" in accepts and "as" not in accepts:
        return "`require` needs `in`", "write `require EXPRESSION in EXPRESSION as NAME`"
    if "as" in accepts and (place.ends_item or place.got.type == "STRING"):
        if item == "show":
            return "`show` needs a name", "write `show EXPRESSION as NAME`"
        form = _TEST_FORM.get(item, "acyclic EXPRESSION as NAME")
        return "the check has no name", f"every check has a name: `{form}`"
    if "as" in accepts and item in TESTS and place.got.text in ("is", "named", "called"):
        return f"`{place.got.text}` cannot stand before the name of a check", "write `as NAME`"
    if place.last == "as" and place.got.type == "STRING":
        return "a check's name is not quoted", 'write `as NAME "text"`; the text is optional'
    return None


def _missing_expression(place: StopPoint) -> _Diagnosis | None:
    got = place.got
    if not {"NAME", "("} <= got.accepts or not (
        place.ends_item or got.text in place.keywords or got.text in ("=", ":", ",", ")", "]")
    ):
        return None
    if place.last in TESTS:
        return f"`{place.last}` needs an expression", f"write `{_TEST_FORM[place.last]}`"
    if place.last in TERM_OPERATORS or place.last == "|":
        return f"`{place.last}` needs a right side", f"write `a {place.last} b`"
    return "an expression is missing", ""


def _form(place: StopPoint) -> _Diagnosis | None:
    """Explain a mistake after a word, such as ``for``, that only a few other words may follow."""
    got = place.got
    if place.last in ("flag", "not"):
        return f"`{place.last}` needs a check", f"write `{place.last} acyclic EXPRESSION as NAME`"
    if place.last == "order" and "on" in got.accepts:
        return "`order` needs `on`", "write `order on SET`"
    if place.last == "choice" and "of" in got.accepts:
        return "`choice` needs `of`", "write `choice of RELATION`"
    if place.last == "relation" and "on" in got.accepts:
        return "`relation` needs `on`", "write `relation on SET`"
    if place.last == "for" and "each" in got.accepts:
        hint = "write `acyclic for x: EXPRESSION as NAME`, or `for each x: acyclic …`"
        return "`for` is allowed only in a check", hint
    if place.last == "for" or (":" in got.accepts and place.item in TESTS | {"let", "show"}):
        return "`for` needs a key", "write `for x: EXPRESSION`"
    return None


def _definition_sign(place: StopPoint) -> _Diagnosis | None:
    got = place.got.text
    if place.item == "let" and got == ":" and "=" in place.got.accepts:
        return (
            "a definition cannot contain `:`",
            "`let` defines with `=`; `exists` declares with `:`",
        )
    if place.item == "exists" and got == "=" and ":" in place.got.accepts:
        return (
            "a declaration cannot contain `=`",
            "`exists` declares with `:`; `let` defines with `=`",
        )
    if place.item in TESTS and got in ("=", ":"):
        return "syntax error", "a check compares nothing; inclusion is `require A in B as name`"
    return None


def _quotes(place: StopPoint) -> _Diagnosis | None:
    got = place.got
    if place.last == "include" and got.type != "STRING":
        return "`include` needs a file name in quotes", 'write `include "adya.iso"`'
    if place.last == "spec" and got.type == "STRING":
        return "a specification's name is not quoted", 'write `spec NAME "title"`'
    if place.last in ("label", "level") and got.type == "NAME":
        return "the name needs quotes", f'write `{place.last} "{got.text}"`'
    in_header = len(place.before) == 2 and place.before[0] == "spec"
    if (
        in_header
        and got.type == "NAME"
        and not place.on_new_line
        and not _closest_word(got.text, ITEM)
    ):
        name = place.before[1]
        hint = f'write `spec {name}-{got.text}`, or `spec {name} "{got.text} …"`'
        return "a name is one word, and a title is in double quotes", hint
    if got.type == "STRING":
        return "a text in quotes does not belong here", ""
    return None


def _header(place: StopPoint) -> _Diagnosis | None:
    if place.got.text != "spec" or not place.before:
        return None
    if place.before[0] == "spec":
        return (
            "only one `spec` header is allowed",
            "a file has one header; put the other one into a file of its own",
        )
    return "the `spec` header must come first", "move it above everything else"


def _keyword(place: StopPoint) -> _Diagnosis | None:
    got = place.got
    binds = place.last in ("let", "exists", "as", "spec")
    if got.text not in place.keywords or "NAME" not in got.accepts:
        return None
    if got.text in ITEM and not binds:
        return None
    return f"`{got.text}` is a keyword", f"choose another name, such as `my-{got.text}`"


def _for_inside(place: StopPoint) -> _Diagnosis | None:
    if place.got.text == "for" and place.got.text not in place.got.accepts and place.before:
        return "`for` inside an expression needs parentheses", "put it in parentheses: `(for x: …)`"
    return None


def _misspelt(place: StopPoint) -> _Diagnosis | None:
    got = place.got
    if got.type != "NAME":
        return None
    if got.text.lower() in ("and", "or", "union", "inter", "intersect"):
        return f"`{got.text}` is not an operator", "union is `|`, intersection `&`, composition `;`"
    words = {terminal for terminal in got.accepts if terminal.isalpha() and terminal.islower()}
    if close := _closest_word(got.text, words):
        return "unknown word", f"did you mean `{close}`?"
    if "|" in got.accepts:
        what = "an operator is missing between two expressions"
        return what, "union is `|`, intersection `&`, composition `;`"
    if "include" in got.accepts:
        if len(place.before) > 1 and place.before[-2] == "as" and not place.on_new_line:
            return "a name is one word", f"write `as {place.last}-{got.text}`"
        return "unknown word", _ITEMS
    if "order" in got.accepts:
        if got.text in ("total", "linear", "strict"):
            return "unknown kind", "an `order` is strict and total: write `order on SET`"
        return "unknown kind", "write `order on SET`, `choice of RELATION` or `relation on SET`"
    return None


def _closest_word(word: str, words: frozenset[str] | set[str]) -> str:
    return next(iter(difflib.get_close_matches(word.lower(), sorted(words), 1, 0.7)), "")


def _recursive_let(place: StopPoint) -> _Diagnosis | None:
    if place.item == "let" and place.last == "rec" and place.got.type == "NAME":
        return "definitions cannot be recursive", "closures are `^+` and `^*`"
    return None


def _fallback(place: StopPoint) -> _Diagnosis | None:
    accepts = place.got.accepts
    if place.got.type == "$END":
        return "the text ends too early", ""
    if "include" in accepts and "(" not in accepts and "|" not in accepts:
        return "no item of a specification begins like this", _ITEMS
    if {"NAME", "("} <= accepts and place.got.text in TERM_OPERATORS | POSTFIX | {"|"}:
        return f"`{place.got.text}` needs a left side", "write an expression before it"
    return None


RULES: tuple[Callable[[StopPoint], _Diagnosis | None], ...] = (
    _character,
    _open_comment,
    _comma,
    _quantifier,
    _mixed,
    _star,
    _terminator,
    _header,
    _for_inside,
    _unclosed,
    _missing_name,
    _definition_sign,
    _quotes,
    _form,
    _missing_expression,
    _keyword,
    _recursive_let,
    _misspelt,
    _fallback,
)


def explain(
    span: Span,
    before: Sequence[Token],
    got: Got,
    keywords: frozenset[str],
    *,
    rest: str = "",
) -> SpecError:
    """Return an error that explains an unexpected token or character."""
    on_new_line = not before or before[-1].end_line != span.line
    place = StopPoint(before, got, keywords, rest, on_new_line)
    what, hint = next((one for rule in RULES if (one := rule(place))), ("syntax error", ""))
    moved = place.ends_item and got.text != "spec"
    if moved and before and on_new_line:
        # The mistake is at the end of the last item, not at the beginning of the next one.
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
    """Return a phrase listing the expected terminals, for the error message."""
    remaining = set(accepts) - {"$END", "LINE_COMMENT", "BLOCK_COMMENT", "WHITESPACE"}
    words: list[str] = []
    if {"NAME", "("} <= remaining:
        words.append("an expression")
        remaining -= STARTS
    if "as" in remaining:
        words.append("`as NAME`")
        remaining -= {"as"}
    at_end = len(remaining & {"include", "let", "acyclic"}) == 3
    operators = remaining & (TERM_OPERATORS | POSTFIX | {"|"})
    if len(operators) > 2:
        remaining -= operators | {"(", "["}
    spoken = {"NAME": "a name", "STRING": 'a text in double quotes "…"'}
    for terminal in sorted(remaining - (ITEM if at_end else set())):
        words.append(spoken.get(terminal, f"`{terminal}`"))
    if len(operators) > 2:
        words.append("an operator")
    if at_end:
        words.append("a new item (`let`, `acyclic`, …)")
    return " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)
