"""Recognises conditions that MariaDB can evaluate on the recorded rows of a table.

isolang itself evaluates comparisons with constants. For any other condition (LIKE, arithmetic,
functions, JSON, texts beyond ASCII), the server is asked at the end which recorded rows satisfy it
(:mod:`isolang.observe.mariadb.evaluation`).

SOUND BECAUSE: every word of the condition is explained. It is a column of the only table, of a type
whose values a row's image shows, a keyword, a constant, or a built-in function whose result follows
from its arguments and from ``sql_mode``. A built-in function is never looked up in a database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from isolang.observe.log.tables import LoggedColumn
from isolang.observe.mariadb.literals import literal_of
from isolang.observe.mariadb.statements import Statement
from isolang.observe.sql.evaluated import ROW, ServerCondition, SessionSettings
from isolang.observe.sql.lexer import Token, catalogue_name

INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
CHARSETS: Final = frozenset({"utf8mb4", "utf8mb3", "utf8", "latin1", "ascii"})
_TIMES: Final = frozenset({"date", "datetime"})
_SCALE: Final = 6  # the most digits after the point of a decimal whose value is recorded
_KEYWORDS: Final = frozenset({
    "and", "or", "not", "xor", "is", "null", "true", "false", "unknown", "like", "rlike", "regexp",
    "between", "in", "escape", "binary", "div", "mod", "case", "when", "then", "else", "end",
})  # fmt: skip
_UNITS: Final = frozenset({
    "microsecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year",
})  # fmt: skip
_TYPES: Final = frozenset({
    "signed", "unsigned", "integer", "int", "char", "date", "datetime", "decimal", "double",
})  # fmt: skip
_FUNCTIONS: Final = frozenset({
    "lower", "upper", "lcase", "ucase", "length", "char_length", "character_length", "octet_length",
    "concat", "concat_ws", "substring", "substr", "mid", "left", "right", "trim", "ltrim", "rtrim",
    "replace", "reverse", "lpad", "rpad", "instr", "locate", "repeat", "ascii", "ord", "hex",
    "unhex", "md5", "sha1", "sha2", "crc32", "abs", "ceil", "ceiling", "floor", "round", "truncate",
    "mod", "pow", "power", "sign", "greatest", "least", "coalesce", "ifnull", "nullif", "if",
    "isnull", "date", "year", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "quarter",
    "hour", "minute", "second", "weekday", "last_day", "to_days", "datediff", "date_add",
    "date_sub", "adddate", "subdate", "field", "find_in_set", "elt", "json_extract",
    "json_unquote", "json_value", "json_contains", "json_length", "json_valid", "json_type",
    "strcmp", "substring_index", "cast", "in",
})  # fmt: skip
_OPERATORS: Final = frozenset({
    "=", "<>", "!=", "<", "<=", ">", ">=", "<=>", "+", "-", "*", "%", "&&", "||", "!", "&", "|",
    "^", "<<", ">>", "~",
})  # fmt: skip
_OF_TEXTS: Final = frozenset({"like", "rlike", "regexp", "binary"})
# Modes under which the server pads the values of CHAR.
_OTHER_MODES: Final = "PAD_CHAR_TO_FULL_LENGTH"

ColumnLookup = Callable[[Sequence[str]], str | None]


def server_condition(
    statement: Statement, columns: Mapping[str, LoggedColumn], column: ColumnLookup
) -> ServerCondition | None:
    """Return the condition of a statement with its constants; ``None`` if nobody can evaluate it.

    Args:
        columns: the columns of the table by name.
        column: returns the column that a name refers to.
    """
    begin, end = statement.plan.where
    if begin >= end or _OTHER_MODES in statement.mode:
        return None
    reader = _Reader(statement, columns, column)
    try:
        text = reader.read(begin, end)
    except _UnclearError:
        return None
    return ServerCondition(
        columns=frozenset(reader.columns), functions=frozenset(reader.functions),
        operators=frozenset(), types=frozenset(), timed=frozenset(), text=(text,), parameters=(),
        settings=SessionSettings((), (statement.mode,)),
    )  # fmt: skip


def is_evaluable(column: LoggedColumn) -> bool:
    """Return whether a row's image shows what the server knows of a column."""
    if column.virtual:
        return False
    if column.type in TEXTS:
        return column.charset in CHARSETS
    if column.type == "decimal":
        return column.scale <= _SCALE
    return column.type in INTEGERS or column.type in _TIMES or column.type == "double"


class _UnclearError(Exception):
    """Raised when a word of a condition is not explained."""


class _Reader:
    """Explains each word of a condition."""

    def __init__(
        self, statement: Statement, columns: Mapping[str, LoggedColumn], column: ColumnLookup
    ) -> None:
        self._statement, self._part = statement, statement.part
        self._known, self._column = columns, column
        self.columns: set[str] = set()
        self.functions: set[str] = set()

    def read(self, begin: int, end: int) -> str:
        """Return the text of a condition on the evaluated row."""
        if not self._statement.charset and any(not t.text.isascii() for t in self._part[begin:end]):
            raise _UnclearError
        words: list[str] = []
        at = begin
        while at < end:
            at = self._read_token(at, end, words)
        # The digits of a number with leading zeros (ZEROFILL) matter only as a text.
        is_text = self.functions or any(self._word(k) in _OF_TEXTS for k in range(begin, end))
        if is_text and any(self._known[name].unsigned for name in self.columns):
            raise _UnclearError
        return " ".join(words)

    def _word(self, at: int) -> str:
        token = self._part[at]
        return token.text if token.kind == "word" else ""

    def _raw(self, token: Token) -> str:
        return self._statement.text[token.start : token.end]

    def _text_at(self, at: int, end: int) -> str:
        return self._part[at].text if at < end else ""

    def _read_token(self, at: int, end: int, words: list[str]) -> int:
        """Read a token; return the position behind what belongs to it."""
        token = self._part[at]
        if token.kind in ("text", "number"):
            words.append(self._raw(token))
        elif token.kind == "parameter":
            literal = literal_of(self._statement.parameters, int(token.text[1:]))
            if literal is None:
                raise _UnclearError
            words.append(literal)
        elif token.kind == "operator" and token.text in _OPERATORS:
            words.append(token.text)
        elif token.kind == "mark" and token.text in ("(", ")", ","):
            if token.text == "(" and words and words[-1].lower() in self.functions:
                words[-1] += "("  # a blank would make it another function
            else:
                words.append(token.text)
        elif token.kind in ("word", "quoted"):
            return self._read_word(at, end, words)
        else:
            raise _UnclearError
        return at + 1

    def _read_word(self, at: int, end: int, words: list[str]) -> int:
        token, word = self._part[at], self._word(at)
        following = self._text_at(at + 1, end)
        if word == "interval":
            return self._read_interval(at, end, words)
        if word in _FUNCTIONS and following == "(":
            if word != "in":
                self.functions.add(word)
            words.append(word)
            return at + 1
        if word == "as" and "cast" in self.functions and self._text_at(at + 1, end) in _TYPES:
            words += ["AS", self._text_at(at + 1, end)]
            return at + 2
        if word in _KEYWORDS:
            words.append(word)
            return at + 1
        names = [catalogue_name(token.text)]
        at += 1
        while self._text_at(at, end) == "." and at + 1 < end:
            names.append(catalogue_name(self._part[at + 1].text))
            at += 2
        name = self._column(names)
        if name is None or self._text_at(at, end) == "(" or not is_evaluable(self._known[name]):
            raise _UnclearError
        self.columns.add(name)
        words.append(f"{ROW}.`{name}`")
        return at

    def _read_interval(self, at: int, end: int, words: list[str]) -> int:
        """Read an interval of a constant length."""
        length, unit = self._part[at + 1 : at + 3] if at + 3 <= end else (None, None)
        if length is None or unit is None or unit.text not in _UNITS:
            raise _UnclearError
        words.append("INTERVAL")
        self._read_token(at + 1, end, words)
        if length.kind not in ("number", "text", "parameter"):
            raise _UnclearError
        words.append(unit.text)
        return at + 3
