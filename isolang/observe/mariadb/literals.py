"""Writes the parameters of an execution as literals into a text."""

from __future__ import annotations

from collections.abc import Sequence

from isolang.observe.sql.predicates import Parameters
from isolang.observe.sql.values import NUMERIC, TIMESTAMP


def with_literals(text: str, numbers: Sequence[int], parameters: Parameters) -> str | None:
    """Return a text whose parameters are literals; ``None`` if a value is not certain.

    Args:
        numbers: the number of the parameter that each ``?`` of the text stands for.

    >>> from isolang.observe.sql.predicates import Parameters
    >>> with_literals("a = ? AND b = ? OR a = ?", [1, 2, 1], Parameters(["5", "x'"], [NUMERIC, 0]))
    "a = 5 AND b = 'x''' OR a = 5"
    """
    if not numbers:
        return text
    pieces = text.split("?")
    if len(pieces) != len(numbers) + 1:  # a string has a question mark
        return None
    written = [pieces[0]]
    for number, piece in zip(numbers, pieces[1:], strict=True):
        literal = literal_of(parameters, number)
        if literal is None:
            return None
        written += [literal, piece]
    return "".join(written)


def literal_of(parameters: Parameters, number: int) -> str | None:
    """Return a parameter in SQL; ``None`` if it is not certain."""
    if number > len(parameters.values):
        return None
    value = parameters.values[number - 1]
    if value is None:
        return "NULL"
    if isinstance(value, bytes) or "\\" in value:  # what a backslash means depends on the mode
        return None
    oid = parameters.oids[number - 1] if number <= len(parameters.oids) else 0
    if oid == NUMERIC:
        return value
    escaped = value.replace("'", "''")
    if oid == TIMESTAMP:  # a text is compared with it as a time
        return f"{'TIMESTAMP' if ' ' in value else 'DATE'}'{escaped}'"
    return f"'{escaped}'"
