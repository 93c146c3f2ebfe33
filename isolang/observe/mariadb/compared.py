"""Says how MariaDB compares the values of a column, and writes values for a history.

A history has integers for all that MariaDB orders like numbers: decimals of a fixed scale as whole
numbers, dates and times as microseconds since 1970. A text is written so that two texts that the
column's collation takes for equal are equal. Where that is not certain, the constant of a condition
is rejected, and the condition counts as unseen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, Protocol

from isolang.observe.sql.lexer import Token
from isolang.observe.sql.predicates import Constant, Parameters, ParsedCondition, Predicate
from isolang.observe.sql.values import (
    BOOL,
    NUMERIC,
    TEXT,
    UnknownValueError,
    shifted,
    short_text,
)

_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum"})
_BYTES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_TIMES: Final = frozenset({"date", "datetime"})
# The collations of one language may take letters of ASCII for equal, or pairs of them for one.
_COLLATION: Final = re.compile(
    r"(?:utf8|utf8mb3|utf8mb4|latin1|ascii|ucs2|utf16|utf32)_"
    r"(?:(?:general|unicode|unicode_520|swedish)(?:_nopad)?_ci|(?:nopad_)?bin"
    r"|uca1400(?:_nopad)?_a[is]_ci)"
)
_PLAIN: Final = re.compile(r"[ -~]*")  # other control characters may have no weight
_SCALE: Final = 6  # the largest number of digits after the point of a decimal that is compared
_INT8: Final = 20
_LARGEST: Final = 2**63 - 1
_EXACT: Final = 2**53  # from here on, MariaDB compares some numbers as floats
_EXACT_DIGITS: Final = 15  # of a decimal that is compared with a text
_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d*)?|[+-]?\.\d+", re.ASCII)
_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?", re.ASCII
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = 86_400_000_000
_TRUTH: Final = "\0true"  # stands for the comparison in `WHERE active`


class CatalogueColumn(Protocol):
    """A column as the catalogue describes it."""

    name: str
    type: str
    scale: int
    collation: str
    required: bool


class ComparedColumn:
    """A column as conditions compare it.

    Attributes:
        oid: the number of a type that compares equal values as equal; 0 for others.
        is_odd: whether a row has a value that the history cannot compare: a text beyond ASCII, or a
            date such as 2026-00-00.
        was_compared: whether a condition was evaluated on it before such a row was recorded.
    """

    def __init__(self, column: CatalogueColumn) -> None:
        """Store the description."""
        self.name, self.type, self.scale = column.name, column.type, column.scale
        self.required = column.required
        self.collation = column.collation or ""
        # The readers of joins know types by PostgreSQL's numbers.
        is_text = column.type in _TEXTS and column.type != "enum"
        self.oid = _INT8 if column.type in _INTEGERS else TEXT if is_text else 0
        self.is_odd = self.was_compared = False

    @property
    def ordered(self) -> bool:
        """Return whether the column's values are numbers in a history."""
        is_decimal = self.type == "decimal" and self.scale <= _SCALE
        return not self.is_odd and (self.type in _INTEGERS | _TIMES or is_decimal)

    @property
    def comparable(self) -> bool:
        """Return whether a condition on this column can be evaluated."""
        if self.type in _TEXTS:
            return not self.is_odd and _COLLATION.fullmatch(self.collation) is not None
        return self.ordered

    @property
    def form(self) -> str:
        """Return what the column's numbers in a history mean, for people; empty for others."""
        if self.type == "decimal" and self.ordered:
            return f"numeric {self.scale}" if self.scale else ""
        return {"date": "date", "datetime": "timestamp", "timestamp": "timestamptz"}.get(
            self.type, ""
        )

    def recorded(self, value: Any) -> Any:
        """Return the value in a history for a canonical value of the column."""
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool):
            return max(-_LARGEST, min(value, _LARGEST))
        if isinstance(value, float):
            return repr(value)
        if self.type in _TIMES:
            if value.startswith("0000-00-00"):
                return -_LARGEST
            self.is_odd = True
        return short_text(self._folded(value) if self.type in _TEXTS else value)

    def _folded(self, value: str) -> str:
        """Return the same text for all texts that the collation takes for equal.

        SOUND BECAUSE: the collations that are compared have a weight for each printable character
        of ASCII, and take only letters of both cases for equal. Under most of them, é equals e: so
        once a column has such a text, no condition on it is evaluated.
        """
        if "_nopad_" not in self.collation:
            value = value.rstrip(" ")
        if self._is_binary:
            return value
        if _PLAIN.fullmatch(value):
            return value.lower()
        self.is_odd = True
        return f"={value}"

    @property
    def _is_binary(self) -> bool:
        return self.collation.endswith("_bin")

    def constant(self, value: Any, oid: int) -> Any:
        """Return the value in a history for a constant that is compared with the column.

        Args:
            value: the text of the constant.
            oid: 0 for a string, and the numbers of PostgreSQL's types for others.

        Raises:
            UnknownValueError: the comparison is not certain.
        """
        self.was_compared = True
        if isinstance(value, bytes):
            raise UnknownValueError("a parameter whose value is not certain")
        if oid == BOOL:
            if not self.ordered or self.type in _TIMES:
                raise UnknownValueError("a truth value")
            return _TRUTH if value == "t" else int(value == "true") * 10 ** self._digits()
        if self.type in _TIMES:
            return self._moment(value, oid)
        if self.ordered:
            return self._number(value, oid)
        if oid:
            raise UnknownValueError("a number or a time")
        return self._text(value)

    def _digits(self) -> int:
        return self.scale if self.type == "decimal" else 0

    def _number(self, value: str, oid: int) -> int:
        if not _NUMBER.fullmatch(value):
            raise UnknownValueError("a text of another form")
        scaled = shifted(Decimal(value), self._digits())
        if scaled != scaled.to_integral_value():
            raise UnknownValueError("a fraction finer than the column's")
        # SOUND BECAUSE: a decimal is compared with a text as a float, which has 15 digits.
        digits = len(scaled.as_tuple().digits) if oid == 0 else 0
        if abs(scaled) >= _EXACT or (self.type == "decimal" and digits > _EXACT_DIGITS):
            raise UnknownValueError("a large number")
        return int(scaled)

    def _moment(self, value: str, oid: int) -> int:
        if oid == NUMERIC:
            raise UnknownValueError("a number")
        microseconds = moment_of(value)
        if self.type == "date" and microseconds % _DAY:
            raise UnknownValueError("a time")
        return microseconds

    def _text(self, value: str) -> str:
        if not _PLAIN.fullmatch(value) and not (
            self._is_binary and self.collation.startswith("utf8")
        ):
            raise UnknownValueError("a text under a collation")
        if self.type == "enum" and value.isdigit():
            raise UnknownValueError("a number")
        return short_text(self._folded(value))


def fixed_columns(
    condition: ParsedCondition,
    columns: Mapping[str, CatalogueColumn],
    part: Sequence[Token],
    parameters: Parameters,
) -> frozenset[str]:
    """Return the columns of which a condition selects one value.

    SOUND BECAUSE: a text is compared with a number as a number, so many texts may equal it: each
    word equals 0.
    """
    return frozenset(
        name
        for name, constant in condition.equal.items()
        if columns[name].type not in (_TEXTS - {"enum"}) | _BYTES
        or _is_text(constant, part, parameters)
    )


def _is_text(constant: Constant, part: Sequence[Token], parameters: Parameters) -> bool:
    if constant.oid or constant.negative:
        return False
    if constant.parameter:
        return dict(enumerate(parameters.oids, 1)).get(constant.parameter) == 0
    return part[constant.place].kind == "text"


def moment_of(text: str) -> int:
    """Return the microseconds from 1970 to a date and time.

    >>> moment_of("1970-01-02"), moment_of("1970-01-01 00:00:01.5")
    (86400000000, 1500000)

    Raises:
        UnknownValueError: the text has another form.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise UnknownValueError("a time of another form")
    year, month, day, hour, minute, second, fraction = match.groups("0")
    try:
        moment = datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC
        )
    except ValueError:
        raise UnknownValueError("a time that does not exist") from None
    passed = moment - _EPOCH
    return (passed.days * 86_400 + passed.seconds) * 1_000_000 + int(fraction.ljust(6, "0"))


def with_truths(predicate: Predicate) -> Predicate:
    """Return a predicate in which a column that stands alone is one that is not 0.

    >>> with_truths(("and", ("=", "active", _TRUTH), ("=", "id", 1)))
    ('and', ('!=', 'active', 0), ('=', 'id', 1))
    """
    if isinstance(predicate, str):
        return predicate
    name, *rest = predicate
    if name in ("and", "or", "not"):
        return (name, *map(with_truths, rest))
    if rest[-1] == _TRUTH:
        return ("!=", rest[0], 0)
    return predicate
