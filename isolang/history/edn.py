"""Parses EDN and JSON into the same Python objects, for the readers written in Python.

Vectors and lists become tuples, sets become ``Elements``, maps become dictionaries, and keywords
become ``Keyword``; tags (``#jepsen.history.Op{…}``, ``#inst "…"``) are dropped. This parser is only
for small inputs. Histories of transactions are read by the native reader, which does not create an
object per operation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from isolang.errors import HistoryError
from isolang.history.json_forms import json_forms
from isolang.history.values import Keyword, Literal
from isolang.patterns import pattern

_CLOSE: Final = {"(": ")", "[": "]", "{": "}", "#{": "}"}
_WORDS: Final[dict[str, Any]] = {"nil": None, "null": None, "true": True, "false": False}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_TOKEN: Final = pattern(
    r"(?P<blank>[\s,]+|;[^\n]*)"
    r'|(?P<string>#?"[^"\\]*+(?:\\.[^"\\]*+)*+")'
    r"|(?P<open>\#\{|[(\[{])|(?P<close>[)\]}])|(?P<discard>\#_)"
    r"|(?P<tag>\#[A-Za-z][\w./+-]*)|(?P<char>\\\w+|\\.)"
    r'|(?P<atom>[^\s,()\[\]{}";]+)',
    re.DOTALL,
)
_MOST_NESTED = 200


class Elements(Struct, frozen=True):
    """A set that keeps its elements in file order, so that equal files produce equal results."""

    elements: tuple[Any, ...]


def forms(text: str, name: str) -> Iterator[tuple[int, Any]]:
    """Yield a pair for each form in a text: its line number and the form itself.

    If the text is a single vector or list, yield the forms inside it.

    Raises:
        HistoryError: the text is malformed; the message names the line and column where reading
            stopped.
    """
    json = re.match(r'[\s\[]*\{\s*"', text) is not None
    return json_forms(text, name) if json else _Forms(text, name).all()


class _Forms:
    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.at = 0
        self.line = 1

    def fail(self, what: str) -> HistoryError:
        column = self.at - self.text.rfind("\n", 0, self.at)
        return HistoryError(f"{self.name}: line {self.line}, column {column}: {what}")

    def all(self) -> Iterator[tuple[int, Any]]:
        kind, token = self.token()
        if kind == "open" and token in "([":
            inside: str | None = _CLOSE[token]
            kind, token = self.token()
        else:
            inside = None
        while kind and not (kind == "close" and token == inside):
            line = self.line
            yield line, self.form(kind, token, 0)
            kind, token = self.token()
        if inside and not kind:
            raise self.fail(f"the file ends inside a vector (expected {inside!r}); truncated?")
        if inside and self.token()[0]:
            raise self.fail("text after the enclosing vector (expected the end of the file)")

    def token(self) -> tuple[str, str]:
        """Return the next token that is neither whitespace nor discarded by ``#_``."""
        while self.at < len(self.text):
            found = _TOKEN.match(self.text, self.at)
            if found is None:
                raise self.fail(f"not EDN (got {self.text[self.at : self.at + 20]!r})")
            kind, token = str(found.lastgroup), found[0]
            self.at = found.end()
            if kind == "discard":
                self.form(*self.token(), 0)
                continue
            if kind == "blank":
                self.line += token.count("\n")
                continue
            return kind, token
        return "", ""

    def form(self, kind: str, token: str, depth: int) -> Any:
        if depth > _MOST_NESTED:
            raise self.fail("forms are nested too deeply (expected at most 200 levels)")
        match kind:
            case "atom":
                return self.atom(token)
            case "string":
                self.line += token.count("\n")
                if token[0] == "#":
                    return Literal(token)
                return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _unescape, token[1:-1], flags=re.DOTALL)
            case "open":
                return self.collection(token, depth + 1)
            case "tag":
                return self.form(*self.token(), depth + 1)
            case "char":
                return token[1:]
        got = repr(token) if token else "the end of the file"
        raise self.fail(f"the bracket does not match (got {got}, expected a form)")

    def collection(self, open_: str, depth: int) -> Any:
        start = self.line
        items = []
        while True:
            kind, token = self.token()
            if kind == "close" and token == _CLOSE[open_]:
                break
            if not kind:
                raise self.fail(
                    f"the file ends inside the {open_} of line {start} (expected "
                    f"{_CLOSE[open_]!r}); truncated?"
                )
            items.append(self.form(kind, token, depth))
        try:
            if open_ == "{":
                if len(items) % 2:
                    raise self.fail("a map with a key and no value")
                return dict(zip(items[::2], items[1::2], strict=True))
        except TypeError:
            raise self.fail("a map as a key of a map") from None
        return Elements(tuple(items)) if open_ == "#{" else tuple(items)

    def atom(self, token: str) -> Any:
        if token in _WORDS:
            return _WORDS[token]
        if token[0] == ":" and len(token) > 1:
            return Keyword(token[1:])
        if re.fullmatch(r"[+-]?\d{1,4000}N?", token):
            return int(token.rstrip("N"))
        if re.fullmatch(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", token):
            return float(token)
        return Literal(token)


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)
