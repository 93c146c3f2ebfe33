"""Recognises conditions that the server can evaluate on the recorded versions of rows.

isolang itself evaluates comparisons with constants. For any other condition (LIKE, arithmetic,
casts, JSON, the order of texts), the server is asked later which versions satisfy it
(:mod:`isolang.observe.versions.evaluation`). This works only if the condition depends on nothing
but the row, its constants, and a few settings of the session.

SOUND BECAUSE: every word of the condition is explained: it is a column of the only table, a
keyword, a function, or a type. So the condition contains no subquery, no system column, and no
whole row, whose type is the application's. The functions, operators and types are named here, and
the server's catalogue decides whether they can be trusted. A name is never looked up in the
application's tables, because each column is qualified by the row that is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from isolang.history.statement_text import one_line
from isolang.observe.sql.lexer import Token, catalogue_name

ROW: Final = "isolang_row"
"""The name of the evaluated row in the text of a condition."""

_STRUCTURE: Final = frozenset({
    "and", "or", "not", "is", "null", "true", "false", "unknown", "like", "ilike", "similar", "to",
    "between", "symmetric", "asymmetric", "in", "any", "some", "all", "case", "when", "then",
    "else", "end", "distinct", "from", "escape", "isnull", "notnull", "array", "row", "for",
    "coalesce", "nullif", "greatest", "least", "both", "leading", "trailing", "placing",
})  # fmt: skip
_REFUSED: Final = frozenset({
    "select", "table", "values", "with", "exists", "over", "filter", "within", "lateral", "union",
    "intersect", "except", "unique", "current_user", "session_user", "user", "current_role",
    "current_catalog", "current_schema", "current_time", "localtime", "current", "variadic",
    "returning", "as", "using", "document", "json", "normalized", "system_user",
})  # fmt: skip
# Forms of the grammar, whose functions are always those of pg_catalog, and immutable or dependent
# on the recorded settings only.
_FORMS: Final = frozenset({"extract", "position", "overlay", "trim"})
_OPERATORS_OF: Final = {
    "like": ("~~", "!~~"), "ilike": ("~~*", "!~~*"), "similar": ("~", "!~"),
    "between": ("<=", ">=", "<", ">"), "in": ("=", "<>"), "distinct": ("=",), "case": ("=",),
    "nullif": ("=",), "greatest": ("<", ">"), "least": ("<", ">"), "row": ("=", "<", ">"),
}  # fmt: skip
_TYPE_WORDS: Final = frozenset({"varying", "precision", "with", "without", "time", "zone"})
_CLOCK: Final = {
    "now": "", "transaction_timestamp": "", "current_timestamp": "",
    "current_date": "::pg_catalog.date", "localtimestamp": "::pg_catalog.timestamp",
}  # fmt: skip
_TIMES: Final = re.compile(r"(date|time|timestamp|timetz|timestamptz)\b")
_READS_CLOCK: Final = re.compile(r"\b(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_NAMES: Final = frozenset({"word", "quoted"})  # the kinds of tokens that may be names
_OWN_COLUMN: Final = re.compile(rf'{ROW}\.["`](\w+)["`]')
_NO_SPACE_BEFORE: Final = frozenset({")", ",", "[", "]", "::"})
_NO_SPACE_AFTER: Final = frozenset({"(", "[", "::", "trim(", "extract(", "position(", "overlay("})
_LONGEST_SHOWN: Final = 300  # the largest number of characters of a condition to show
_ORDER_WORDS: Final = frozenset({"asc", "desc", "nulls", "first", "last"})

Piece: TypeAlias = tuple[Literal["token", "text", "parameter", "now"], int | str]
"""A piece of a condition's text: a token by its position, a text, or a parameter by its number."""
ColumnLookup: TypeAlias = Callable[[Sequence[str]], str | None]


class ServerExpression(Struct, frozen=True, kw_only=True):
    """An expression that the server can evaluate, apart from the values of its constants.

    Attributes:
        functions: the names of the functions that it calls.
        operators: the names of its operators, with those that keywords stand for.
        types: the types that it names, as SQL texts.
        timed: the columns that are cast to a date or a time, and so must have such a type.
        uses_now: whether it uses the beginning of the transaction, as ``now()`` does.
    """

    pieces: tuple[Piece, ...] = ()
    columns: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    timed: frozenset[str] = frozenset()
    uses_now: bool = False


class SessionSettings(Struct, frozen=True, gc=False):
    """The settings of a session that the value of a condition may depend on.

    Attributes:
        schemas: the schemas that are searched for names, in order.
        values: the values of the settings in :data:`SETTINGS`.
    """

    schemas: tuple[str, ...]
    values: tuple[str | None, ...]


SETTINGS: Final = (
    "TimeZone", "DateStyle", "IntervalStyle", "timezone_abbreviations", "extra_float_digits",
    "bytea_output", "lc_monetary", "lc_numeric", "lc_time", "default_text_search_config",
    "array_nulls", "transform_null_equals", "quote_all_identifiers",
)  # fmt: skip
"""The settings that stable functions of pg_catalog and the input of constants depend on."""


SETTINGS_SQL: Final = (
    "pg_catalog.json_build_array(pg_catalog.array_to_json(pg_catalog.current_schemas(true)), "
    "pg_catalog.json_build_array("
    + ", ".join(f"pg_catalog.current_setting('{name}', true)" for name in SETTINGS)
    + "), pg_catalog.to_char(pg_catalog.timezone('UTC', pg_catalog.now()), "
    "'YYYY-MM-DD HH24:MI:SS.US'))"
)
"""The SQL expression for a session's settings, and for the beginning of its transaction in UTC."""


class ServerCondition(Struct, frozen=True, kw_only=True):
    """A condition with the constants and settings of an execution.

    Attributes:
        columns: the columns that it uses; the next attributes are those of the expression.
        text: its text, with the numbers of parameters, from 0, between its pieces.
        parameters: for each parameter, its type (0 if the server infers it) and its value.
        reads_clock: whether a constant is a word such as ``today``, if it is taken for a time.
        order: the text of ORDER BY, if a LIMIT was reached; empty otherwise.
        last: the version of the last returned row, if a LIMIT was reached.
    """

    columns: frozenset[str]
    functions: frozenset[str]
    operators: frozenset[str]
    types: frozenset[str]
    timed: frozenset[str]
    text: tuple[str | int, ...]
    parameters: tuple[tuple[int, str | bytes | None], ...]
    settings: SessionSettings
    reads_clock: bool = False
    order: tuple[str | int, ...] = ()
    last: str = ""

    @property
    def shown(self) -> str:
        """Return the condition as people write it, with the values of parameters."""
        texts = [_shown(self.text, self.parameters)]
        if self.order:
            texts.append(f"ORDER BY {_shown(self.order, self.parameters)}")
        return one_line(" ".join(filter(None, texts)), _LONGEST_SHOWN)


class RefusedExpressionError(ValueError):
    """Raised when an expression may depend on more than the row and the settings."""


def server_expression(
    part: Sequence[Token], ranges: Iterable[tuple[int, int]], column: ColumnLookup
) -> ServerExpression | None:
    """Return the expression of a condition's parts, all of which hold; else ``None``."""
    reader = _ExpressionReader(part, column)
    try:
        for begin, end in ranges:
            if begin < end:
                reader.text(" AND (" if reader.pieces else "(")
                reader.read(begin, end)
                reader.text(")")
    except RefusedExpressionError:
        return None
    return reader.expression()


def order_expression(
    part: Sequence[Token], begin: int, end: int, place: int, column: ColumnLookup
) -> ServerExpression | None:
    """Return the expressions of ORDER BY; ``None`` if they cannot be evaluated on rows.

    SOUND BECAUSE: a number is the position of a result's column, and a single name first refers to
    a column of the result. So such a name must not occur there as the name of another expression.
    """
    depth, first = 0, begin
    for n in range(begin, end + 1):
        if n < end:
            depth += (part[n].text == "(") - (part[n].text == ")")
        if n == end or (part[n].text == "," and not depth):
            words = [t for t in part[first:n] if t.text not in _ORDER_WORDS]
            alone = words[0] if len(words) == 1 else None
            if not words or (alone is not None and alone.kind not in ("word", "quoted")):
                return None
            if alone is not None and is_name_of_another(part[:place], catalogue_name(alone.text)):
                return None
            first = n + 1
    reader = _ExpressionReader(part, column, orders=True)
    try:
        reader.read(begin, end)
    except RefusedExpressionError:
        return None
    return reader.expression()


def is_name_of_another(listed: Sequence[Token], name: str) -> bool:
    """Return whether a SELECT's result may have another expression under a column's name.

    SOUND BECAUSE: the result's column of ``name::text``, ``name[1]``, ``name COLLATE "C"`` or
    ``(composite).name`` is called ``name``, too, and ORDER BY sorts by its values. The column
    itself follows SELECT, a comma or its table, and precedes a comma or its new name.
    """
    for n, token in enumerate(listed):
        if token.kind not in _NAMES or catalogue_name(token.text) != name:
            continue
        before, after = listed[n - 1].text, listed[n + 1] if n + 1 < len(listed) else None
        begins = before in ("select", ",") or (before == "." and listed[n - 2].kind in _NAMES)
        is_label = after is not None and after.kind in _NAMES and after.text != "collate"
        if not begins or not (after is None or after.text in (",", ".") or is_label):
            return True
    return False


class _ExpressionReader:
    """Explains each word of an expression."""

    def __init__(
        self, part: Sequence[Token], column: ColumnLookup, *, orders: bool = False
    ) -> None:
        self._part, self._column, self._orders = part, column, orders
        self.pieces: list[Piece] = []
        self._columns: set[str] = set()
        self._functions: set[str] = set()
        self._operators: set[str] = set()
        self._types: set[str] = set()
        self._timed: set[str] = set()
        self._now = False
        self._casts = 0  # how many CAST( have not met their AS

    def expression(self) -> ServerExpression:
        """Return what was read."""
        return ServerExpression(
            pieces=tuple(self.pieces),
            columns=frozenset(self._columns),
            functions=frozenset(self._functions),
            operators=frozenset(self._operators),
            types=frozenset(self._types),
            timed=frozenset(self._timed),
            uses_now=self._now,
        )

    def text(self, text: str) -> None:
        """Add a text."""
        self.pieces.append(("text", text))

    def read(self, begin: int, end: int) -> None:
        """Read the tokens between two positions."""
        at = begin
        while at < end:
            at = self._read_token(at, begin, end)

    def _read_token(self, at: int, begin: int, end: int) -> int:
        """Read a token; return the position after what belongs to it."""
        token = self._part[at]
        if token.kind in ("text", "number"):
            self.pieces.append(("token", at))
        elif token.kind == "parameter":
            self.pieces.append(("parameter", int(token.text[1:])))
        elif token.kind == "operator":
            self._operators.add(token.text)
            self.pieces.append(("token", at))
        elif token.text == "::":
            self._check_times(begin, at, at + 1, end)
            self.text("::")
            return self._read_type(at + 1, end)
        elif token.kind == "mark":
            if token.text not in ("(", ")", ",", "[", "]", ":"):
                raise RefusedExpressionError(token.text)
            self.pieces.append(("token", at))
        else:
            return self._read_word(at, begin, end)
        return at + 1

    def _text_at(self, at: int, end: int) -> str:
        return self._part[at].text if at < end else ""

    def _read_word(self, at: int, begin: int, end: int) -> int:
        token = self._part[at]
        word = token.text if token.kind == "word" else ""
        following = self._text_at(at + 1, end)
        if word == "as" and self._casts:
            self._casts -= 1
            self._check_times(begin, at, at + 1, end)
            self.text("AS")
            return self._read_type(at + 1, end)
        if word == "cast" and following == "(":
            self._casts += 1
            self.text("CAST")
            return at + 1
        if word in _REFUSED:
            raise RefusedExpressionError(word)
        if word in _CLOCK and (word[:1] in "cl") == (following != "("):
            return self._read_clock(at, end)
        if word == "at" and [t.text for t in self._part[at + 1 : at + 3]] == ["time", "zone"]:
            self.text("AT TIME ZONE")
            self._functions.add("timezone")
            return at + 3
        if word == "collate":
            self.pieces.append(("token", at))
            return self._read_name(at + 1, end)
        if word in _STRUCTURE or (self._orders and word in _ORDER_WORDS):
            self._operators.update(_OPERATORS_OF.get(word, ()))
            self.pieces.append(("token", at))
            return at + 1
        if word in _FORMS and following == "(":
            self.text(f"{word}(")
            if word == "extract" and self._text_at(at + 3, end) == "from":
                self.pieces.append(("token", at + 2))
                return at + 3
            return at + 2
        if word and (behind := self._end_of_typed_literal(at, end)):
            self._read_type(at, behind)
            return behind
        return self._read_column_or_call(at, begin, end)

    def _read_clock(self, at: int, end: int) -> int:
        """Read the beginning of the transaction."""
        word = self._part[at].text
        called = self._text_at(at + 1, end) == "("
        if called and self._text_at(at + 2, end) != ")":
            raise RefusedExpressionError(word)
        self._now = True
        self.pieces.append(("now", _CLOCK[word]))
        return at + 3 if called else at + 1

    def _read_name(self, at: int, end: int) -> int:
        """Read a name with its schema."""
        while at < end and self._part[at].kind in ("word", "quoted"):
            self.pieces.append(("token", at))
            at += 1
            if self._text_at(at, end) != ".":
                return at
            self.text(".")
            at += 1
        raise RefusedExpressionError("a name")

    def _read_column_or_call(self, at: int, begin: int, end: int) -> int:
        names, first = [catalogue_name(self._part[at].text)], at
        at += 1
        while self._text_at(at, end) == "." and at + 1 < end:
            if self._part[at + 1].kind not in ("word", "quoted"):
                raise RefusedExpressionError("a whole row")
            names.append(catalogue_name(self._part[at + 1].text))
            at += 2
        if self._text_at(at, end) == "(":
            if names[:-1] not in ([], ["pg_catalog"]):
                raise RefusedExpressionError(".".join(names))
            self._functions.add(names[-1])
            if _TIMES.fullmatch(names[-1]):
                self._check_group(at, self._close(at, end))
            self.text(" . ".join(t.text for t in self._part[first:at] if t.text != "."))
            return at
        column = self._column(names)
        if column is None or self._text_at(at, end) == ".":
            raise RefusedExpressionError(".".join(names))
        self._columns.add(column)
        self.text(f"{ROW}.{_quoted(column)}")
        return at

    # --- types ---

    def _end_of_type(self, at: int, end: int) -> int:
        """Return the position after a type's name; ``at`` if there is none."""
        if at >= end or self._part[at].kind not in ("word", "quoted"):
            return at
        at += 1
        if self._text_at(at, end) == "." and at + 1 < end:
            at += 2
        if self._text_at(at, end) == "(":
            behind = self._close(at, end)
            inside = [t.kind for t in self._part[at + 1 : behind - 1]]
            if not set(inside) <= {"number", "mark"}:
                return at
            at = behind
        while at < end and self._part[at].kind == "word" and self._part[at].text in _TYPE_WORDS:
            at += 1
        if self._text_at(at, end) == "(" and self._part[at - 1].text in ("varying", "zone"):
            at = self._close(at, end)
        while self._text_at(at, end) == "[":
            at += 1 + (at + 1 < end and self._part[at + 1].kind == "number")
            if self._text_at(at, end) != "]":
                raise RefusedExpressionError("a type")
            at += 1
        return at

    def _read_type(self, at: int, end: int) -> int:
        behind = self._end_of_type(at, end)
        if behind == at:
            raise RefusedExpressionError("a type")
        name = " ".join(t.text for t in self._part[at:behind])
        self._types.add(name)
        self.text(f" {name} ")
        return behind

    def _end_of_typed_literal(self, at: int, end: int) -> int:
        """Return the position of the literal in ``date '2026-01-01'``; 0 if there is none."""
        behind = self._end_of_type(at, end)
        typed = behind < end and self._part[behind].kind == "text"
        return behind if typed and self._part[behind - 1].text not in _STRUCTURE else 0

    # --- texts that may be taken for the time of the evaluation, such as 'today' ---

    def _check_times(self, begin: int, operand_end: int, type_at: int, end: int) -> None:
        """Note which columns a cast to a date or time is of; refuse other texts in rows."""
        if type_at >= end or not _TIMES.match(self._part[type_at].text.strip('"')):
            return
        last = self._part[operand_end - 1]
        if last.kind in ("text", "parameter", "number"):
            return
        if last.text in (")", "]"):
            opened = self._open(operand_end - 1, begin)
            self._check_group(opened, operand_end)
            before = self._part[opened - 1] if opened > begin else None
            if before is not None and before.kind in ("word", "quoted"):
                allowed = {*_STRUCTURE, *_FORMS, *_CLOCK, "timezone", "date_trunc", "cast"}
                if before.text not in allowed:
                    raise RefusedExpressionError("a cast to a time")
        elif last.kind in ("word", "quoted"):
            if last.text not in _CLOCK and last.text != "end":
                self._timed.add(catalogue_name(last.text))
            elif last.text == "end":
                raise RefusedExpressionError("a cast to a time")

    def _check_group(self, begin: int, end: int) -> None:
        """Note that the columns in a range are cast to a date or time."""
        for n in range(begin, end):
            token, following = self._part[n], self._text_at(n + 1, end)
            if token.kind == "operator" and token.text not in ("+", "-"):
                raise RefusedExpressionError("a cast to a time")
            if token.kind not in ("word", "quoted") or following == ".":
                continue
            if following == "(" and token.text not in ("date_trunc", "timezone", "now", "coalesce"):
                raise RefusedExpressionError("a cast to a time")
            known = {*_STRUCTURE, *_CLOCK, "at", "time", "zone", "interval", "date", "timestamp"}
            if token.text not in known and following != "(" and self._part[n - 1].text != "::":
                self._timed.add(catalogue_name(token.text))

    def _close(self, at: int, end: int) -> int:
        """Return the position after the parenthesis closing the one at a position."""
        depth = 0
        for n in range(at, end):
            depth += (self._part[n].text in ("(", "[")) - (self._part[n].text in (")", "]"))
            if not depth:
                return n + 1
        raise RefusedExpressionError("parentheses")

    def _open(self, at: int, begin: int) -> int:
        depth = 0
        for n in range(at, begin - 1, -1):
            depth += (self._part[n].text in (")", "]")) - (self._part[n].text in ("(", "["))
            if not depth:
                return n
        raise RefusedExpressionError("parentheses")


def bound_condition(
    expression: ServerExpression,
    part: Sequence[Token],
    values: Sequence[str | bytes | None],
    oids: Sequence[int],
    *,
    settings: SessionSettings | None,
    now: str = "",
    order: ServerExpression | None = None,
    last: str = "",
    whole: Sequence[Token] = (),
) -> ServerCondition | None:
    """Return a condition with the constants of an execution; ``None`` if they are not certain.

    SOUND BECAUSE: the server infers the type of a parameter from its first use. If all uses are in
    the condition, it infers the same type from the condition alone.

    Args:
        whole: the tokens of the statement, if ``part`` are those of one of its queries.
    """
    uses_now = expression.uses_now or (order is not None and order.uses_now)
    if settings is None or (uses_now and not now):
        return None
    binder = _Binder(part, values, oids, now, whole or part)
    text = binder.text(expression)
    ordered = () if order is None else binder.text(order)
    if text is None or ordered is None:
        return None
    used = [expression] if order is None else [expression, order]
    return ServerCondition(
        columns=frozenset().union(*(each.columns for each in used)),
        functions=frozenset().union(*(each.functions for each in used)),
        operators=frozenset().union(*(each.operators for each in used)),
        types=frozenset().union(*(each.types for each in used)),
        timed=frozenset().union(*(each.timed for each in used)),
        text=text,
        parameters=tuple(binder.parameters),
        settings=settings,
        reads_clock=binder.reads_clock,
        order=ordered,
        last=last,
    )


class _Binder:
    """Puts the constants of one execution into expressions."""

    def __init__(
        self,
        part: Sequence[Token],
        values: Sequence[str | bytes | None],
        oids: Sequence[int],
        now: str,
        whole: Sequence[Token],
    ) -> None:
        self._part, self._values, self._oids, self._now = part, values, oids, now
        self._whole = whole
        self._places: dict[int, int] = {}
        self.parameters: list[tuple[int, str | bytes | None]] = []
        self.reads_clock = False

    def text(self, expression: ServerExpression) -> tuple[str | int, ...] | None:
        """Return the text of an expression; ``None`` if a parameter's type is not certain."""
        texts: list[str | int] = []
        for kind, piece in expression.pieces:
            if kind == "parameter":
                number = int(piece)
                uses = expression.pieces.count((kind, number))
                if not self._add_parameter(number, uses):
                    return None
                texts.append(self._places[number])
                continue
            if kind == "token":
                text = self._token_text(int(piece))
            elif kind == "now":
                text = f"('{self._now}+00'::pg_catalog.timestamptz){piece}"
            else:
                text = str(piece)
            # Two strings are one string only with a new line between them, as they were sent.
            if texts and isinstance(texts[-1], str):
                texts[-1] += f"\n{text}"
            else:
                texts.append(text)
        return tuple(texts)

    def _token_text(self, at: int) -> str:
        token = self._part[at]
        if token.kind == "text":
            # An escape may spell a word that reads the clock.
            escaped = token.text[0] in "eE" and "\\" in token.text
            self.reads_clock |= escaped or bool(_READS_CLOCK.search(token.text))
        return token.text

    def _add_parameter(self, number: int, uses: int) -> bool:
        """Add a parameter; return whether the server infers its type from the expression alone."""
        if number in self._places:
            return True
        if number > len(self._values):
            return False
        oid = self._oids[number - 1] if number <= len(self._oids) else 0
        others = sum(t.kind == "parameter" and t.text == f"${number}" for t in self._whole) - uses
        if not oid and others:
            return False
        value = self._values[number - 1]
        self._places[number] = len(self.parameters)
        self.parameters.append((oid, value))
        self.reads_clock |= isinstance(value, str) and bool(_READS_CLOCK.search(value))
        return True


def _shown(
    pieces: Sequence[str | int], parameters: Sequence[tuple[int, str | bytes | None]]
) -> str:
    """Return a bound expression as people write it."""
    tokens: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            tokens += (token.strip() for token in piece.split("\n"))
            continue
        _, value = parameters[piece]
        if isinstance(value, bytes):
            tokens.append(f"${piece + 1}")
        else:
            tokens.append("NULL" if value is None else "'" + value.replace("'", "''") + "'")
    tokens = [_OWN_COLUMN.sub(r"\1", token) for token in tokens if token]
    if tokens[:1] == ["("] and tokens.count("AND (") == 0:
        tokens = tokens[1:-1]  # the parentheses around the whole condition
    text = before = ""
    for token in tokens:
        opens = token == "(" and before.isidentifier() and before not in _STRUCTURE
        joins = opens or token in _NO_SPACE_BEFORE or before in _NO_SPACE_AFTER
        text += token if joins or not text else f" {token}"
        before = token
    return text


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
