"""Splits SQL texts into tokens and statements, and computes the shape of a statement."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from msgspec import Struct

TokenKind: TypeAlias = Literal["text", "number", "parameter", "quoted", "word", "operator", "mark"]

# The repetitions inside quotes are possessive, because a repetition that may give characters back
# remembers each of them, at about 190 bytes for a character of a literal.
_TOKEN: Final = re.compile(
    r"(?P<space>\s+|--[^\n]*)"
    r"|(?P<escaped>[eE]'[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+')"
    r"|(?P<text>'[^']*+(?:''[^']*+)*+')"
    r"|(?P<other>[eE]'|(?:[bBxXnN]|[uU]&)'[^']*+(?:''[^']*+)*+'|[uU]&\"[^\"]*+(?:\"\"[^\"]*+)*+\")"
    r"|(?P<dollar>\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$)"
    r"|(?P<parameter>\$\d+)"
    r"|(?P<quoted>\"(?:[^\"]|\"\")[^\"]*+(?:\"\"[^\"]*+)*+\")"
    r"|(?P<word>[^\W\d][\w$]*)"
    r"|(?P<number>(?:\d+(?:\.(?!\.)\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?!\w))"
    r"|(?P<cast>::|:=)"
    r"|(?P<operator>[-+*/<>=~!@#%^&|`?]+)"
    r"|(?P<mark>.)",
    re.DOTALL,
)
_SPECIAL: Final = re.compile(r"[~!@#%^&|`?]")
_UNENDED: Final = frozenset("'\"")
_LITERALS: Final = frozenset({"text", "number"})


class Token(Struct, frozen=True):
    """A token of a text.

    Attributes:
        kind: the kind; ``text`` is a string literal, and ``mark`` a punctuation character or
            ``::``.
        end: the position after the last character.
    """

    kind: TokenKind
    text: str
    start: int
    end: int


class UnclearTextError(ValueError):
    """Raised when this module cannot be certain how to split a text."""


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text, skipping whitespace and comments.

    Raises:
        UnclearTextError: a string or a comment is not terminated, or has an unusual form.
    """
    at = 0
    while at < len(text):
        if text.startswith("/*", at):
            at = _comment_end(text, at)
            continue
        found = _TOKEN.match(text, at)
        assert found is not None  # `mark` matches anything
        kind = found.lastgroup or ""
        part = found.group()
        if kind == "operator":
            part = _operator(part)
        end = at + len(part)
        if kind in ("dollar", "tag"):
            kind = "text"
        if kind == "escaped":
            kind = "text"
        elif kind == "cast":
            kind = "mark"
        if kind == "other" or part in _UNENDED:
            raise UnclearTextError(part)
        if kind != "space":
            shown = _folded(part) if kind == "word" else part
            yield Token(kind, shown, at, end)  # type: ignore[arg-type]
        at = end


def _comment_end(text: str, at: int) -> int:
    """Return the position after a comment, which may contain other comments."""
    depth, begin = 0, at
    for found in re.compile(r"/\*|\*/").finditer(text, at):
        depth += 1 if found.group() == "/*" else -1
        if not depth:
            return found.end()
    raise UnclearTextError(text[begin : begin + 20])


def _operator(run: str) -> str:
    """Return the first operator in a run of operator characters, by PostgreSQL's rules.

    >>> _operator("=-"), _operator("<>"), _operator("*/*x"), _operator("@-")
    ('=', '<>', '*', '@-')
    """
    for comment in ("--", "/*"):
        place = run.find(comment, 1)
        if place > 0:
            run = run[:place]
    if not _SPECIAL.search(run):
        run = run.rstrip("+-") or run[0]
    return run


def statements(cut: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each statement in a text with semicolons between statements.

    The body of a function may contain statements: CREATE FUNCTION … BEGIN ATOMIC …; …; END.
    """
    part: list[Token] = []
    depth = 0
    for one in cut:
        if one.kind == "mark":
            depth += (one.text == "(") - (one.text == ")")
            if one.text == ";" and depth <= 0 and not _is_in_body(part):
                if part:
                    yield part
                part, depth = [], 0
                continue
        part.append(one)
    if part:
        yield part


def _is_in_body(part: Sequence[Token]) -> bool:
    """Return whether the tokens end inside the body of a function that they create."""
    if not part or part[0].text != "create":
        return False
    words = [one.text for one in part if one.kind == "word"]
    if not {"function", "procedure"} & {*words[1:2], *words[3:4]} or "atomic" not in words:
        return False
    return sum((word in ("begin", "case")) - (word == "end") for word in words) > 0


def shape(part: Sequence[Token]) -> str:
    """Return a statement's text with each literal, except LIMIT 0, replaced by its kind's name.

    >>> shape([*tokens("SELECT 0 FROM t LIMIT 1")]), shape([*tokens("SELECT 1 FROM t LIMIT 0")])
    ('select <number> from t limit <number>', 'select <number> from t limit 0')
    """
    texts = [f"<{t.kind}>" if t.kind in _LITERALS else t.text for t in part]
    if "limit" in texts:
        for at, (before, token) in enumerate(pairwise(part), 1):
            if before.text == "limit" and token.kind == "number" and not is_natural(token):
                texts[at] = token.text
    return " ".join(texts)


def is_natural(token: Token) -> bool:
    """Return whether a token is a number of digits alone, and not 0."""
    return token.kind == "number" and token.text.isdigit() and int(token.text) > 0


def catalogue_name(name: str) -> str:
    """Return a name as the catalogue stores it.

    >>> catalogue_name("Account"), catalogue_name('"Odd name"'), catalogue_name("GRÖSSE")
    ('account', 'Odd name', 'grÖsse')
    """
    if name.startswith('"'):
        return name[1:-1].replace('""', '"')
    return _folded(name)


def called_functions(part: Sequence[Token]) -> frozenset[str]:
    """Return the names of the functions that a statement may call, as the catalogue stores them.

    SOUND BECAUSE: which letters besides ASCII the server folds depends on the encoding of the
    database (see ``_folded``). So a word with such letters counts as both names.

    >>> sorted(called_functions(list(tokens("SELECT GRÖSSE(1), Now()"))))
    ['grÖsse', 'grösse', 'now']
    """
    names = [
        (a.kind, catalogue_name(a.text))
        for a, b in pairwise(part)
        if b.text == "(" and a.kind in ("word", "quoted")
    ]
    return frozenset(
        one for kind, name in names for one in ((name, name.lower()) if kind == "word" else (name,))
    )


def _folded(word: str) -> str:
    """Return a word without quotes as PostgreSQL folds it in a UTF-8 database: ASCII letters only.

    In a database with a single-byte encoding, the server also folds other letters. Table names are
    sent to the server, which folds the rest of them. A column name with such a letter is not found,
    so its condition is not evaluated.
    """
    return word.lower() if word.isascii() else re.sub("[A-Z]+", lambda m: m[0].lower(), word)


def string_value(literal: str) -> str | None:
    r"""Return the value of a string; ``None`` if it has escapes that this module does not support.

    >>> string_value("'it''s'"), string_value("$a$x$a$"), string_value(r"E'\n'")
    ("it's", 'x', None)
    """
    if literal.startswith("$"):
        tag = literal[: literal.index("$", 1) + 1]
        return literal[len(tag) : -len(tag)]
    if literal[0] in "eE":
        return None if "\\" in literal else literal[2:-1].replace("''", "'")
    return literal[1:-1].replace("''", "'")
