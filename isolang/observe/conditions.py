"""Parses the conditions of SQL statements into predicates that isolang can evaluate.

The input is the list of the tokens of a WHERE condition, in which the values are literals. Only
comparisons, BETWEEN, IN, IS NULL, AND, OR and NOT of columns with values are parsed; other
conditions have no predicate. PostgreSQL computes the values of columns and of literals
(:meth:`ComparedColumn.comparable`), so that isolang compares integers and texts, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

Predicate: TypeAlias = tuple[Any, ...] | Literal["true"]
"""A predicate as in docs/predicates.md; a value may be an :class:`Operand`."""

_NAME: Final = re.compile(r'[A-Za-z_]\w*|"(?:[^"]|"")*"', re.ASCII)
_STRING: Final = re.compile(r"'((?:[^']|'')*)'")
_INTEGER: Final = re.compile(r"\d+", re.ASCII)
_NUMBER: Final = re.compile(r"\d+(?:\.\d*)?", re.ASCII)
_COMPARISONS: Final = {"=": "=", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_LONGEST: Final = 200  # characters of a text to compare
_LARGEST: Final = 2**62
_DEEPEST: Final = 50  # parentheses and NOTs inside each other

_INTEGERS: Final = frozenset({"smallint", "integer", "int", "bigint", "int2", "int4", "int8"})
_TIMES: Final = ("date", "timestamp", "timestamptz")
# The casts of a literal that do not change its comparison with a column of a type.
_CASTS: Final[Mapping[str, frozenset[str]]] = {
    "int2": _INTEGERS,
    "int4": _INTEGERS,
    "int8": _INTEGERS,
    "text": frozenset({"text", "varchar", "character varying"}),
    "varchar": frozenset({"text", "varchar", "character varying"}),
    "bool": frozenset({"bool", "boolean"}),
    "uuid": frozenset({"uuid"}),
    "enum": frozenset(),
    "date": frozenset({"date"}),
    "timestamp": frozenset({"timestamp", "timestamp without time zone"}),
    "timestamptz": frozenset({"timestamptz", "timestamp with time zone"}),
    "numeric": _INTEGERS | {"numeric", "decimal"},
}
_TYPES: Final = frozenset().union(*_CASTS.values())
_EQUAL_ONLY: Final = frozenset({"text", "varchar", "enum", "uuid", "bool"})
PARAMETER: Final = "isolang:parameter:"
"""The beginning of a text that stands for a value which only the database knows."""

_UNCOMPARABLE: Final = object()
"""The value of a column that isolang cannot compare."""


class ComparedColumn(Struct, frozen=True, kw_only=True):
    """A column whose values isolang can compare.

    Attributes:
        name: the name, as in the catalogue.
        written: the name, as it is written in SQL.
        type: the name of the type; ``enum`` for all enumerations.
        scale: the digits of a ``numeric`` after the point.
    """

    name: str
    written: str
    type: str
    scale: int = 0

    def comparable(self, expression: str) -> str:
        """Return the SQL for the text from which :meth:`value` computes the value.

        SOUND BECAUSE: no text of these expressions depends on the settings of the session, and none
        of them raises an error.
        """
        if self.type in _TIMES:
            return f"extract(epoch FROM {expression})::text"
        return f"left(({expression})::text, {_LONGEST + 1})"

    def value(self, text: str | None) -> Any:
        """Return the value in a history: an integer, a text, a truth value or ``None`` for NULL.

        Times are microseconds since 1970, and numbers with a scale are integers of its last digit.
        The result is :data:`_UNCOMPARABLE` for an infinite time and a long text.
        """
        if text is None:
            return None
        if self.type == "bool":
            return text == "true"
        if self.type not in ("numeric", *_TIMES) and not self.type.startswith("int"):
            return text if len(text) <= _LONGEST else _UNCOMPARABLE
        try:
            number = Decimal(text).scaleb(self.scale if self.type == "numeric" else 0)
        except InvalidOperation:
            return _UNCOMPARABLE
        if self.type in _TIMES:
            number = number.scaleb(6)
        if not number.is_finite() or abs(number) >= _LARGEST or number != int(number):
            return _UNCOMPARABLE
        return int(number)


def is_comparable(value: Any) -> bool:
    """Return whether a value of :meth:`ComparedColumn.value` is one that isolang can compare."""
    return value is not _UNCOMPARABLE


class Operand(Struct, frozen=True):
    """A value with which a condition compares a column.

    Attributes:
        column: the name of the column.
        text: the value, as it is written in SQL.
    """

    column: str
    text: str

    def known(self, column: ComparedColumn) -> Any:
        """Return the value if it needs no database; an uncomparable one for others."""
        if PARAMETER in self.text:
            return _UNCOMPARABLE
        if column.type.startswith("int") and _INTEGER.fullmatch(self.text.lstrip("-")):
            return column.value(self.text)
        string = _STRING.fullmatch(self.text)
        if string is not None and column.type in ("text", "varchar", "enum"):
            return column.value(string[1].replace("''", "'"))
        if column.type == "bool" and self.text in ("true", "false"):
            return column.value(self.text)
        return _UNCOMPARABLE

    def query(self, column: ComparedColumn) -> str:
        """Return the SQL of the value, for :meth:`ComparedColumn.value`."""
        kind = {"enum": "text", "varchar": "text"}.get(column.type, column.type)
        return column.comparable(f"({self.text})::{kind}")


class _Refused(Exception):  # noqa: N818 - no fault: the condition is none that isolang evaluates
    """The condition has no predicate."""


def parse_condition(
    tokens: Sequence[str],
    columns: Mapping[str, ComparedColumn],
    qualifiers: Collection[tuple[str, ...]],
) -> Predicate | None:
    """Return the predicate of a condition; ``None`` if isolang cannot evaluate it.

    Args:
        tokens: the tokens of the condition, whose operators are single characters; none for all
            rows.
        columns: the columns that can be compared, by name.
        qualifiers: the names of the table that may precede a column, as their parts.

    >>> columns = {"room": ComparedColumn(name="room", written="room", type="int4")}
    >>> parse_condition(["room", "=", "1", "AND", "NOT", "room", "IS", "NULL"], columns, [])
    ('and', ('=', 'room', Operand('room', '1')), ('not', ('null', 'room')))
    >>> parse_condition(["lower", "(", "room", ")", "=", "1"], columns, [])
    """
    if not tokens:
        return "true"
    parser = _Parser(tokens, columns, qualifiers)
    try:
        found = parser.disjunction()
        return found if parser.at == len(tokens) else None
    except (_Refused, IndexError):
        return None


class _Parser:
    """A parser of conditions, with its position."""

    def __init__(
        self,
        tokens: Sequence[str],
        columns: Mapping[str, ComparedColumn],
        qualifiers: Collection[tuple[str, ...]],
    ) -> None:
        self.at = 0
        self._tokens = tokens
        self._words = [one.lower() for one in tokens]
        self._columns = columns
        self._qualifiers = {(), *qualifiers}
        self._depth = 0

    def disjunction(self) -> Predicate:
        return self._joined("or", lambda: self._joined("and", self._negation))

    def _joined(self, word: str, part: Callable[[], Predicate]) -> Predicate:
        parts = [part()]
        while self._take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else (word, *parts)

    def _negation(self) -> Predicate:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _Refused
        found = ("not", self._negation()) if self._take("not") else self._primary()
        self._depth -= 1
        return found

    def _primary(self) -> Predicate:
        start = self.at
        if self._take("("):
            # The parenthesis may hold a condition, or the left side of a comparison.
            try:
                found = self.disjunction()
                if self._take(")") and not self._compares():
                    return found
            except _Refused:
                pass
            self.at = start
        return self._comparison()

    def _compares(self) -> bool:
        return self._word() in ("=", "<", ">", "!", "is", "in", "between", "not", ":")

    def _comparison(self) -> Predicate:
        start = self.at
        column = self._column()
        if column is None:
            return self._flipped(start)
        if self._take("is"):
            negated = self._take("not")
            if not self._take("null"):
                raise _Refused
            null = ("null", column.name)
            return ("not", null) if negated else null
        negated = self._take("not")
        found: Predicate
        if self._take("in"):
            found = ("in", column.name, self._listed(column))
        elif self._take("between"):
            self._ordered(column)
            low = self._value(column)
            if not self._take("and"):
                raise _Refused
            found = ("between", column.name, low, self._value(column))
        elif negated:
            raise _Refused
        else:
            operator = self._operator()
            if not operator:
                if column.type != "bool":
                    raise _Refused
                return ("=", column.name, Operand(column.name, "true"))
            if operator not in ("=", "!="):
                self._ordered(column)
            found = (operator, column.name, self._value(column))
        return ("not", found) if negated else found

    def _flipped(self, start: int) -> Predicate:
        """Return the comparison of a value with a column, or a truth value."""
        self.at = start
        if self._take("true"):
            if self._compares():
                raise _Refused
            return "true"
        place = self.at
        while self.at < len(self._words) and self._words[self.at] not in _FLIPPED | {"!": ""}:
            self.at += 1
        operator = self._operator()
        column = self._column() if operator else None
        end = self.at
        if column is None or self._word() in (":", "is", "in", "between", "not", "(", "."):
            raise _Refused
        if operator not in ("=", "!="):
            self._ordered(column)
        self.at = place
        value = self._value(column)
        self._operator()
        self._column()
        if self.at != end:
            raise _Refused
        return (_FLIPPED[operator], column.name, value)

    def _ordered(self, column: ComparedColumn) -> None:
        if column.type in _EQUAL_ONLY:
            raise _Refused  # the order of texts depends on a collation

    def _operator(self) -> str:
        """Return the operator here, or an empty text; refuse all others than comparisons."""
        found = ""
        while self._word() and self._word() in "=<>!~+-*/%^&|#@?:":
            if self._word() == "-" and found in _COMPARISONS:
                break  # the sign of a number
            found += self._words[self.at]
            self.at += 1
        if found and found not in _COMPARISONS:
            raise _Refused
        return _COMPARISONS.get(found, "")

    def _column(self) -> ComparedColumn | None:
        names = []
        at = self.at
        while at < len(self._tokens) and _NAME.fullmatch(self._tokens[at]):
            names.append(_raw(self._tokens[at]))
            at += 1
            if self._words[at : at + 1] != ["."]:
                break
            at += 1
        qualified = tuple(names[:-1])
        if not names or qualified not in self._qualifiers or names[-1] not in self._columns:
            return None
        self.at = at
        return self._columns[names[-1]]

    def _listed(self, column: ComparedColumn) -> list[Operand]:
        if not self._take("("):
            raise _Refused
        found = [self._value(column)]
        while self._take(","):
            found.append(self._value(column))
        if not self._take(")"):
            raise _Refused
        return found

    def _value(self, column: ComparedColumn) -> Operand:
        """Return the literal here, if it is compared as a value of the column's type."""
        if self._take("("):
            found = self._value(column)
            if not self._take(")"):
                raise _Refused
            return found
        sign = "-" if self._take("-") else ""
        literal = self._words[self.at]
        number = _NUMBER if column.type == "numeric" else _INTEGER
        if column.type.startswith("int") or column.type == "numeric":
            fits = number.fullmatch(literal) is not None
        else:
            fits = column.type == "bool" and literal in ("true", "false") and not sign
        if not fits and (sign or _STRING.fullmatch(self._tokens[self.at]) is None):
            raise _Refused
        text = sign + (literal if fits else self._tokens[self.at])
        self.at += 1
        while self._words[self.at : self.at + 2] == [":", ":"]:
            self.at += 2
            kind = self._type()
            if kind not in _CASTS[column.type]:
                raise _Refused
            text = f"({text})::{kind}"
        if self._word() in ("[", "(", ".", "collate", "at"):
            raise _Refused
        return Operand(column.name, text)

    def _type(self) -> str:
        """Return the name of the type here, the longest that is known."""
        for length in (4, 2, 1):
            name = " ".join(self._words[self.at : self.at + length])
            if name in _TYPES and len(self._words[self.at : self.at + length]) == length:
                self.at += length
                return name
        raise _Refused

    def _word(self) -> str:
        return self._words[self.at] if self.at < len(self._words) else ""

    def _take(self, word: str) -> bool:
        """Return whether this word is here, and go past it."""
        here = self._word() == word
        self.at += here
        return here


def shown_text(statement: str) -> str:
    """Return a statement as it is shown, with ``$1`` for a value that only the database knows.

    >>> shown_text("SELECT 1 WHERE a = 'isolang:parameter:2'")
    'SELECT 1 WHERE a = $2'
    """
    return re.sub(rf"'{PARAMETER}(\d+)'", r"$\1", statement)


def operands(predicate: Any) -> Iterator[Operand]:
    """Yield the values in a predicate."""
    if isinstance(predicate, Operand):
        yield predicate
    elif isinstance(predicate, tuple | list):
        for part in predicate:
            yield from operands(part)


def columns_in(predicate: Predicate) -> set[str]:
    """Return the names of the columns in a predicate."""
    if predicate == "true":
        return set()
    if predicate[0] in ("and", "or", "not"):
        return set().union(*map(columns_in, predicate[1:]))
    return {predicate[1]}


def with_values(predicate: Any, values: Mapping[Operand, Any]) -> Any:
    """Return a predicate in which each value is the one that isolang compares."""
    if isinstance(predicate, Operand):
        return values[predicate]
    if isinstance(predicate, tuple | list):
        return type(predicate)(with_values(part, values) for part in predicate)
    return predicate


def _raw(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()
