"""Finds the columns that the condition of a SQL statement compares with literal values.

The input is a list of tokens. If it is not certain what a condition means, no column is returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from isolang.observe.lexer import raw

NAME: Final = re.compile(r'[A-Za-z_]\w*|"(?:[^"]|"")*"', re.ASCII)
_CAST: Final = re.compile(r"(?:::[\w\"(),. ]+)?")


def split(tokens: Sequence[str], begin: int, end: int, at: str = ",") -> Iterator[tuple[int, int]]:
    """Split a list of tokens at separators outside parentheses.

    Args:
        tokens: the tokens of the whole statement.
        begin: the position of the first token of the list.
        end: the position after the last token of the list.
        at: the separator. The AND of BETWEEN is not a separator.

    Yields:
        The positions at which each part of the list begins and ends.
    """
    depth = 0
    between = False
    for n in range(begin, end):
        depth += (tokens[n] == "(") - (tokens[n] == ")")
        word = tokens[n].lower()
        if depth or word not in (at, "between"):
            continue
        if word == at and not between:
            if begin < n:
                yield begin, n
            begin = n + 1
        between = word == "between"
    if begin < end:
        yield begin, end


def sought(tokens: Sequence[str], alias: str) -> tuple[frozenset[str], dict[str, int]]:
    """Find the columns that a condition restricts to literal values.

    Args:
        tokens: the tokens of the condition.
        alias: the name of the table in the statement.

    Returns:
        The columns that the condition equates to one literal (``column = 1``), and for each column
        in a list (``column IN (1, 2)``) the number of different literals in the list.
    """
    equal: set[str] = set()
    among: dict[str, int] = {}
    for part in conjuncts(list(tokens)):
        words = [one.lower() for one in part]
        if words.count("=") == 1:
            place = words.index("=")
            sides = part[:place], part[place + 1 :]
            for column, value in (sides, sides[::-1]):
                name = column_of(column, alias)
                if name and _is_value(value):
                    equal.add(name)
        elif words[-1:] == [")"] and "in" in words:
            place = words.index("in")
            name = column_of(part[:place], alias)
            last = len(part) - 1
            values = [part[a:b] for a, b in split(part, place + 2, last)]
            if name and words[place + 1] == "(" and all(map(_is_value, values)):
                among[name] = len(set(map(tuple, values)))
    return frozenset(equal), among


def conjuncts(tokens: list[str]) -> Iterator[list[str]]:
    """Yield the parts of a condition that AND connects, each as a list of tokens.

    Yield nothing if OR or CASE occurs outside parentheses, because then a part need not hold.
    """
    while tokens and tokens[0] == "(" and _closing(tokens) == len(tokens) - 1:
        tokens = tokens[1:-1]
    parts = list(split(tokens, 0, len(tokens), "and"))
    if any(one.lower() in ("or", "case") for one in _outside(tokens)):
        return
    for begin, end in parts:
        if len(parts) > 1 and tokens[begin] == "(":
            yield from conjuncts(tokens[begin:end])
        else:
            yield tokens[begin:end]


def _closing(tokens: Sequence[str]) -> int:
    """Return the position of the parenthesis that closes the parenthesis at position 0."""
    depth = 0
    for n, one in enumerate(tokens):
        depth += (one == "(") - (one == ")")
        if not depth:
            return n
    return len(tokens)


def _outside(tokens: Sequence[str]) -> Iterator[str]:
    """Yield the tokens outside all parentheses, and each outermost closing parenthesis."""
    depth = 0
    for one in tokens:
        depth += (one == "(") - (one == ")")
        if not depth:
            yield one


def column_of(tokens: Sequence[str], alias: str) -> str:
    """Return the column of the table that an expression names, without quotes.

    Return an empty string if the expression is not just a column of the table.

    Args:
        tokens: the tokens of the expression.
        alias: the name of the table in the statement.
    """
    names, dots = tokens[::2], tokens[1::2]
    if not names or len(tokens) % 2 == 0 or set(dots) - {"."}:
        return ""
    if not all(map(NAME.fullmatch, names)) or names[0].lower() in ("true", "false", "null"):
        return ""
    qualified = [raw(one) for one in NAME.findall(alias)]
    own = [raw(one) for one in names[:-1]]
    return raw(names[-1]) if not own or own == qualified[-len(own) :] else ""


def _is_value(tokens: Sequence[str]) -> bool:
    """Return whether the tokens are a literal, optionally with a minus sign and a cast."""
    first = int(tokens[:1] == ["-"])
    literal = tokens[first] if len(tokens) > first else ""
    if not (literal[:1] in ("'", *"0123456789") and literal):
        return literal.lower() in ("true", "false") and len(tokens) == 1
    cast = tokens[first + 1 :]
    tests = {"is", "isnull", "notnull"} & {
        one.lower() for one in cast
    }  # tests of the literal, such as IS NULL
    return not tests and _CAST.fullmatch("".join(cast)) is not None
