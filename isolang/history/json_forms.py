"""Parses JSON into the same objects as :mod:`isolang.history.edn`, such as tuples for lists.

Commas and colons are required, as in RFC 8259, whereas EDN treats commas as whitespace. Otherwise a
log with a missing character could be read as a different history.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final, NoReturn

from isolang.errors import HistoryError
from isolang.patterns import pattern

_BLANK: Final = pattern(r"[ \t\r\n]*")
_TOKEN: Final = pattern(r"[^\s,:()\[\]{}\"]{1,40}|.", re.DOTALL)


def json_forms(text: str, name: str) -> Iterator[tuple[int, Any]]:
    """Yield a pair for each value in a text: its line number and the value itself.

    Raises:
        HistoryError: the text is malformed; the message names the line and column.
    """
    return _Json(text, name).all()


class _Json:
    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.at = 0
        self.line = 1
        self.decode = JSONDecoder(parse_constant=_reject_constant).raw_decode

    def all(self) -> Iterator[tuple[int, Any]]:
        self.blank()
        listed = self.take("[")
        more = not (listed and self.take("]"))
        while more and (listed or not self.at_end()):
            line = self.line
            yield line, self.value()
            ended = self.line
            self.blank()
            if listed:
                more = self.take(",")
                if not more and not self.take("]"):
                    raise self.expected("',' or ']'")
            elif self.line == ended and not self.at_end():
                raise self.expected("the end of the line after a value")
        if not self.at_end():
            raise self.expected("the end of the file")

    def value(self) -> Any:
        try:
            found, end = self.decode(self.text, self.at)
        except JSONDecodeError as error:
            self.move(error.pos)
            raise self.expected(f"JSON: {error.msg}") from None
        except (RecursionError, ValueError) as error:
            raise HistoryError(
                f"{self.name}: line {self.line}: cannot read the JSON ({error})"
            ) from None
        self.move(end)
        return _plain(found)

    def move(self, to: int) -> None:
        self.line += self.text.count("\n", self.at, to)
        self.at = to

    def blank(self) -> None:
        found = _BLANK.match(self.text, self.at)
        assert found is not None
        self.move(found.end())

    def take(self, character: str) -> bool:
        if not self.text.startswith(character, self.at):
            return False
        self.at += 1
        self.blank()
        return True

    def at_end(self) -> bool:
        return self.at >= len(self.text)

    def expected(self, what: str) -> HistoryError:
        token = _TOKEN.match(self.text, self.at)
        column = self.at - self.text.rfind("\n", 0, self.at)
        got = f"{token[0]!r} at column {column}" if token else "the end of the file"
        hint = "" if token else "; truncated?"
        return HistoryError(f"{self.name}: line {self.line}: expected {what} (got {got}){hint}")


def _reject_constant(word: str) -> NoReturn:
    """Reject NaN and infinities, which Python accepts even though they are not valid JSON."""
    raise ValueError(f"got {word}, expected a JSON number")


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return value
