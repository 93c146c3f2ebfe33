"""Parses the condition of a statement as a predicate that ``isocheck`` can evaluate on rows.

Predicates follow the logic of SQL. If no predicate expresses a condition exactly,
``CannotEvaluateError`` is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct

from isolang.observe.sql.evaluated import ServerCondition, ServerExpression
from isolang.observe.sql.lexer import Token, catalogue_name, string_value
from isolang.observe.sql.values import (
    INTEGERS,
    NUMERIC,
    TEXT,
    UNKNOWN,
    USER_TYPE,
    VARCHAR,
    UnknownValueError,
    array_items,
    keeps_value,
    oid_of_cast,
)

_FIRST_USER_TYPE: Final = 16384  # the smallest number of a user-defined type
_COMPARISONS: Final = {"=": "=", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NOT_NAMES: Final = frozenset({
    "and", "or", "not", "between", "in", "is", "like", "ilike", "similar", "any", "all", "some",
    "null", "true", "false", "case", "when", "then", "else", "end", "exists", "select", "array",
    "cast", "collate", "distinct", "from", "isnull", "notnull", "symmetric", "current_date",
    "current_timestamp", "localtimestamp", "current_time", "localtime", "current_user",
    "session_user", "user", "current_role", "current_catalog", "current_schema",
})  # fmt: skip
_TYPED: Final = frozenset({"date", "timestamp", "timestamptz"})
_DEEPEST: Final = 50  # the deepest nesting of parentheses, signs and NOTs

Predicate: TypeAlias = tuple[Any, ...] | str
"""A predicate in the form of ``isolang.history``; ``"true"`` for every row."""

FoundBy: TypeAlias = Predicate | ServerCondition
"""A predicate, or a condition that the server evaluates."""


class CannotEvaluateError(ValueError):
    """Raised when a condition cannot be expressed; the message states the reason."""


class Constant(Struct, frozen=True):
    """A constant in a condition; its value may differ from one execution to the next.

    Attributes:
        place: the position of its token in the statement, or -1 for a parameter.
        parameter: the number of the parameter, starting from 1; 0 for a literal.
    """

    place: int
    parameter: int = 0
    negative: bool = False
    oid: int = 0


class Parameters(Struct, frozen=True, gc=False):
    """The parameters of one execution of a statement.

    Attributes:
        values: the text of each parameter, its bytes in binary format, or ``None`` for NULL.
        oids: the type number of each parameter; 0 if unknown.
    """

    values: Sequence[str | bytes | None] = ()
    oids: Sequence[int] = ()

    def text(self, number: int) -> str | None:
        """Return a parameter as text; ``None`` if it is NULL, or binary and no integer."""
        value = self.values[number - 1] if number <= len(self.values) else None
        if isinstance(value, bytes):
            is_integer = len(value) in (2, 4, 8)
            return str(int.from_bytes(value, "big", signed=True)) if is_integer else None
        return value


class ColumnComparison(Protocol):
    """A column as a database compares it with constants."""

    @property
    def comparable(self) -> bool:
        """Return whether a condition on this column can be evaluated."""

    @property
    def ordered(self) -> bool:
        """Return whether the column's values are numbers in a history."""

    def constant(self, value: Any, oid: int) -> Any:
        """Return the value used in a history for a constant compared with this column."""


Node: TypeAlias = tuple[Any, ...]
ColumnLookup: TypeAlias = Callable[[Sequence[str]], str | None]
"""A function that returns the column a name refers to, given the parts of the name.

It returns ``None`` if the column belongs to another table.
"""


class ParsedCondition(Struct, frozen=True, kw_only=True):
    """A parsed condition on one table.

    Attributes:
        among: for each column that must equal one of several constants, the list of constants.
        why: why the condition has no predicate; empty if it has one.
        expression: the condition as the server can evaluate it; ``None`` if it cannot.
    """

    node: Node = ("true",)
    columns: frozenset[str] = frozenset()
    equal: Mapping[str, Constant] = {}
    among: Mapping[str, Node] = {}
    why: str = ""
    expression: ServerExpression | None = None

    def predicate(
        self, columns: Mapping[str, ColumnComparison], part: Sequence[Token], parameters: Parameters
    ) -> Predicate:
        """Return the predicate, using the constants of one execution.

        Raises:
            CannotEvaluateError: a constant or a column cannot be compared with certainty.
        """
        if self.why:
            raise CannotEvaluateError(self.why)
        return _evaluated(self.node, columns, part, parameters)

    def parameters(self) -> dict[int, tuple[str, int]]:
        """Return the column and cast type of each parameter that is a constant.

        Parameters that are arrays are left out.
        """
        return dict(_parameters_in(self.node))


def _parameters_in(node: Node) -> Iterator[tuple[int, tuple[str, int]]]:
    for one in node[1:]:
        if isinstance(one, tuple):
            yield from _parameters_in(one)
        elif isinstance(one, Constant) and one.parameter and node[0] != "in-array":
            yield one.parameter, (node[1], one.oid)


def parse_condition(
    part: Sequence[Token], begin: int, end: int, column: ColumnLookup
) -> ParsedCondition:
    """Parse the condition between two positions of a statement. An empty condition is true.

    Raises:
        CannotEvaluateError: the condition cannot be expressed as a predicate.
    """
    if begin >= end:
        return ParsedCondition(node=("true",))
    parser = _ConditionParser(part, begin, end, column)
    node = parser.disjunction()
    if parser.at != end:
        raise CannotEvaluateError(parser.remaining_text())
    parts = node[1:] if node[0] == "and" else (node,)
    return ParsedCondition(
        node=node,
        columns=frozenset(parser.columns),
        # SOUND BECAUSE: a constant of a user-defined type may equal several values of the column.
        equal={
            one[1]: one[2]
            for one in parts
            if one[0] == "=" and isinstance(one[2], Constant) and one[2].oid != USER_TYPE
        },
        among={one[1]: one for one in parts if one[0] in ("in", "in-array")},
    )


def constant_between(
    part: Sequence[Token], begin: int, end: int, column: ColumnComparison, parameters: Parameters
) -> Any:
    """Return the value of the constant between two positions, in the form used in histories.

    Raises:
        CannotEvaluateError: the constant is missing, or its value is uncertain.
    """
    parser = _ConditionParser(part, begin, end, lambda names: None)
    constant = parser.constant()
    if parser.at != end:
        raise CannotEvaluateError(parser.remaining_text())
    try:
        return _value(constant, column, part, parameters)
    except UnknownValueError as error:
        raise CannotEvaluateError(str(error)) from None


def parse_known_parts(
    part: Sequence[Token], begin: int, end: int, column: ColumnLookup
) -> ParsedCondition:
    """Parse a condition; if it has no predicate, return the reason and the columns it fixes.

    SOUND BECAUSE: a row matches only if it matches every part connected by AND.
    """
    try:
        return parse_condition(part, begin, end, column)
    except CannotEvaluateError as error:
        why = str(error) or "its shape"
    equal: dict[str, Constant] = {}
    among: dict[str, Node] = {}
    for first, last in conjuncts(part, begin, end):
        try:
            found = parse_condition(part, first, last, column)
        except CannotEvaluateError:
            continue
        equal |= found.equal
        among |= found.among
    return ParsedCondition(equal=equal, among=among, why=why)


def conjuncts(part: Sequence[Token], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each part of a condition connected by AND.

    Yield nothing if OR or CASE occurs outside parentheses, because a part then need not hold.
    """
    depth, between, first = 0, False, begin
    found = []
    closed = 0  # the position where the first parenthesis closes
    for n in range(begin, end):
        text = part[n].text
        depth += (text == "(") - (text == ")")
        if not depth and text == ")":
            closed = closed or n
        if depth or part[n].kind != "word":
            continue
        if text in ("or", "case"):
            return
        if text == "and" and not between:
            found.append((first, n))
            first = n + 1
        between = text == "between" or (between and text != "and")
    found.append((first, end))
    if len(found) == 1 and begin < end and part[begin].text == "(" and closed == end - 1:
        yield from conjuncts(part, begin + 1, end - 1)
        return
    for first, last in found:
        if len(found) > 1 and first < last and part[first].text == "(":
            yield from conjuncts(part, first, last)
        else:
            yield first, last


class _ConditionParser:
    """A recursive-descent parser for conditions."""

    def __init__(self, part: Sequence[Token], at: int, end: int, column: ColumnLookup) -> None:
        self.part, self.at, self.end = part, at, end
        self.column = column
        self.columns: set[str] = set()
        self._depth = 0

    @contextmanager
    def _nested(self) -> Iterator[None]:
        """Track the nesting depth within the block, and limit it."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise CannotEvaluateError("a deep condition")
        try:
            yield
        finally:
            self._depth -= 1

    def remaining_text(self) -> str:
        """Return the text where the parser stopped."""
        return " ".join(t.text for t in self.part[self.at : min(self.end, self.at + 6)])

    def accept(self, *words: str) -> bool:
        """Consume these words if they come next. Return whether they did."""
        following = self.part[self.at : min(self.at + len(words), self.end)]
        found = [t.text for t in following if t.kind in ("word", "mark", "operator")]
        if found != list(words):
            return False
        self.at += len(words)
        return True

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise CannotEvaluateError(self.remaining_text())

    def disjunction(self) -> Node:
        return self._connected("or", self.conjunction)

    def conjunction(self) -> Node:
        return self._connected("and", self.negation)

    def _connected(self, word: str, part: Callable[[], Node]) -> Node:
        parts = [part()]
        while self.accept(word):
            parts.append(part())
        if len(parts) == 1:
            return parts[0]
        flat: list[Node] = []
        for one in parts:
            flat += one[1:] if one[0] == word else (one,)
        return (word, *flat)

    def negation(self) -> Node:
        with self._nested():
            if self.accept("not"):
                return ("not", self.negation())
            return self.primary()

    def primary(self) -> Node:
        if self.at < self.end and self.part[self.at].text == "(":
            before = self.at, set(self.columns)
            try:
                return self._operand_first()
            except CannotEvaluateError:
                self.at, self.columns = before
            self.expect("(")
            found = self.disjunction()
            self.expect(")")
            return found
        return self._operand_first()

    def _operand_first(self) -> Node:
        left = self.operand()
        token = self.part[self.at] if self.at < self.end else None
        if token is not None and token.kind == "operator" and token.text in _COMPARISONS:
            self.at += 1
            return self._compared(left, _COMPARISONS[token.text])
        if not isinstance(left, str):
            raise CannotEvaluateError(self.remaining_text())
        if self.accept("is", "not", "null") or self.accept("notnull"):
            return ("not", ("null", left))
        if self.accept("is", "null") or self.accept("isnull"):
            return ("null", left)
        if self.accept("is"):
            raise CannotEvaluateError(f"is {self.remaining_text()}")
        negated = self.accept("not")
        found: Node
        if self.accept("between"):
            low = self.constant()
            self.expect("and")
            found = ("and", (">=", left, low), ("<=", left, self.constant()))
        elif self.accept("in", "(", "select", "unnest", "("):
            found = ("in-array", left, self.constant(array=True))
            self.expect(")")
            self.expect(")")
        elif self.accept("in", "("):
            values = [self.constant()]
            while self.accept(","):
                values.append(self.constant())
            self.expect(")")
            found = ("in", left, *values)
        elif negated:
            raise CannotEvaluateError(f"not {self.remaining_text()}")
        else:
            return ("true-column", left)
        return ("not", found) if negated else found

    def _compared(self, left: str | Constant, sign: str) -> Node:
        if isinstance(left, str) and sign in ("=", "!="):
            word = "any" if sign == "=" else "all"
            if self.accept(word, "("):
                array = self.constant(array=True)
                self.expect(")")
                found = ("in-array", left, array)
                return found if sign == "=" else ("not", found)
        right = self.operand()
        if isinstance(left, str) and isinstance(right, Constant):
            return (sign, left, right)
        if isinstance(left, Constant) and isinstance(right, str):
            return (_MIRRORED[sign], right, left)
        if self._is_integer(left) and self._is_integer(right) and sign == "=":
            return ("same", left, right)  # such as 1=1 and 1=0, as generated by libraries
        raise CannotEvaluateError(
            "a comparison of two columns" if isinstance(left, str) else "a comparison of constants"
        )

    def _is_integer(self, one: str | Constant) -> bool:
        if isinstance(one, str):
            return False
        token = self.part[one.place]
        plain = not (one.parameter or one.oid or one.negative)
        return plain and token.kind == "number" and token.text.isdigit()

    def constant(self, *, array: bool = False) -> Constant:
        """Parse a constant."""
        found = self.operand(array=array)
        if isinstance(found, str):
            raise CannotEvaluateError(f"the column {found} in place of a constant")
        return found

    def operand(self, *, array: bool = False) -> str | Constant:
        """Parse a column or a constant. A column is returned as its name."""
        with self._nested():
            return self._operand(array=array)

    def _operand(self, *, array: bool) -> str | Constant:
        if self.accept("("):
            inside = self.operand(array=array)
            self.expect(")")
            return self._cast(inside, array=array)
        if self.at >= self.end:
            raise CannotEvaluateError("its end")
        token = self.part[self.at]
        if token.kind in ("text", "number") or token.kind == "parameter":
            self.at += 1
            number = int(token.text[1:]) if token.kind == "parameter" else 0
            return self._cast(Constant(self.at - 1, number), array=array)
        if token.text in ("-", "+"):
            self.at += 1
            inside = self.operand()
            # A sign binds less tightly than a cast.
            if isinstance(inside, str) or not (
                inside.oid in (0, NUMERIC) or inside.oid in INTEGERS
            ):
                raise CannotEvaluateError(f"-{inside}")
            negative = (token.text == "-") != inside.negative
            return Constant(inside.place, inside.parameter, negative, inside.oid)
        if token.kind == "word" and token.text in ("true", "false"):
            self.at += 1
            return self._cast(Constant(self.at - 1), array=array)
        if token.kind == "word" and token.text in _TYPED and self._next_is_text():
            self.at += 2
            return Constant(self.at - 1, 0, oid=oid_of_cast(token.text))
        if self.accept("cast", "("):
            inside = self.operand()
            self.expect("as")
            found = self._with_type(inside, array=array)
            self.expect(")")
            return found
        return self._column()

    def _next_is_text(self) -> bool:
        return self.at + 1 < self.end and self.part[self.at + 1].kind == "text"

    def _column(self) -> str:
        names: list[str] = []
        while self.at < self.end:
            token = self.part[self.at]
            named = token.kind == "quoted" or (
                token.kind == "word" and (names or token.text not in _NOT_NAMES)
            )
            if not named:
                break
            names.append(catalogue_name(token.text))
            self.at += 1
            if not (self.at < self.end and self.part[self.at].text == "."):
                break
            self.at += 1
        following = self.part[self.at].text if self.at < self.end else ""
        found = self.column(names) if names and following not in ("(", "[", "::") else None
        if found is None:
            raise CannotEvaluateError(" ".join((".".join(names), self.remaining_text())).strip())
        self.columns.add(found)
        return found

    def _cast(self, value: str | Constant, *, array: bool) -> str | Constant:
        while self.accept("::"):
            value = self._with_type(value, array=array)
        return value

    def _with_type(self, value: str | Constant, *, array: bool) -> Constant:
        words: list[str] = []
        while self.at < self.end and self.part[self.at].kind == "word":
            if words and self.part[self.at].text not in (
                "varying", "precision", "with", "without", "time", "zone"
            ):  # fmt: skip
                break
            words.append(self.part[self.at].text)
            self.at += 1
        if not words and self.at < self.end and self.part[self.at].kind == "quoted":
            self.at += 1
        schema = self.accept(".")
        if schema:
            self.at += 1
        try:
            oid = USER_TYPE if schema or not words else oid_of_cast(" ".join(words))
        except UnknownValueError as error:
            if len(words) > 1:
                raise CannotEvaluateError(str(error)) from None
            oid = USER_TYPE
        brackets = self.accept("[", "]")
        accepted = (0, oid, TEXT, VARCHAR) if oid == USER_TYPE else (0, oid)
        if isinstance(value, str) or value.oid not in accepted or brackets != array:
            raise CannotEvaluateError(f"a cast to {' '.join(words)}")
        return Constant(value.place, value.parameter, value.negative, oid)


def _evaluated(
    node: Node,
    columns: Mapping[str, ColumnComparison],
    part: Sequence[Token],
    parameters: Parameters,
) -> Predicate:
    """Return the predicate for a tree."""
    name = node[0]
    if name == "true":
        return "true"
    if name in ("and", "or", "not"):
        return (name, *(_evaluated(one, columns, part, parameters) for one in node[1:]))
    if name == "same":
        numbers = [part[one.place].text for one in node[1:]]
        # Another statement of the same shape may have different constants.
        if not all(map(str.isdigit, numbers)):
            raise CannotEvaluateError("a comparison of constants")
        return "true" if len({*map(int, numbers)}) == 1 else ("not", "true")
    column = columns.get(node[1])
    if name == "null" and column is not None:
        if not column.comparable:
            raise CannotEvaluateError(f"the column {node[1]}, whose values are not recorded")
        return ("null", node[1])
    if column is None or not column.comparable:
        raise CannotEvaluateError(f"the column {node[1]}, whose values are not recorded")
    try:
        if name == "true-column":
            return ("=", node[1], column.constant("t", 16))
        if name == "in":
            return ("in", node[1], tuple(_value(one, column, part, parameters) for one in node[2:]))
        if name == "in-array":
            return ("in", node[1], tuple(_list_values(node[2], column, part, parameters)))
        if name in ("<", "<=", ">", ">=") and not column.ordered:
            raise CannotEvaluateError(f"the order of texts, of the column {node[1]}")
        return (name, node[1], _value(node[2], column, part, parameters))
    except UnknownValueError as error:
        raise CannotEvaluateError(f"{error}, compared with {node[1]}") from None


def _value(
    one: Constant, column: ColumnComparison, part: Sequence[Token], parameters: Parameters
) -> Any:
    """Return a constant's value in the form used in histories."""
    value, oid = _constant_text(one, part, parameters)
    found = column.constant(value, oid)
    if one.negative:
        if isinstance(found, (str, bool)):
            raise UnknownValueError("a sign")
        return -found
    return found


def _list_values(
    one: Constant, column: ColumnComparison, part: Sequence[Token], parameters: Parameters
) -> list[Any]:
    if one.parameter:
        value, known = _parameter(one, parameters)
    else:
        value, known = _constant_text(one, part, parameters)[0], 0
    items, oid = array_items(value, known)
    if one.oid and oid and not keeps_value(oid, one.oid):
        raise UnknownValueError("a cast that may change the members of an array")
    return [column.constant(item, oid or one.oid) for item in items]


def _parameter(one: Constant, parameters: Parameters) -> tuple[str | bytes, int]:
    """Return the text or bytes of a parameter, and its type before the cast."""
    if one.parameter > len(parameters.values):
        raise UnknownValueError("a parameter that is missing")
    value = parameters.values[one.parameter - 1]
    known = parameters.oids[one.parameter - 1] if one.parameter <= len(parameters.oids) else 0
    if value is None:
        raise UnknownValueError("NULL")
    if isinstance(value, bytes) and not known:
        raise UnknownValueError("a binary parameter of unknown type")
    return value, 0 if known == UNKNOWN else known


def _constant_text(
    one: Constant, part: Sequence[Token], parameters: Parameters
) -> tuple[str | bytes, int]:
    """Return the text or bytes of a constant, and its type."""
    if one.parameter:
        value, known = _parameter(one, parameters)
        if one.oid == USER_TYPE and (known in (TEXT, VARCHAR) or known >= _FIRST_USER_TYPE):
            known = 0
        elif known and one.oid and not keeps_value(known, one.oid):
            if isinstance(value, bytes) or known not in (TEXT, VARCHAR):
                raise UnknownValueError("a cast that may change a value")
            known = 0
        return value, known or one.oid
    token = part[one.place]
    if token.kind == "word":
        return token.text, 16
    if token.kind == "number":
        # SOUND BECAUSE: a number without a cast is an integer or a decimal, never a float.
        exact = one.oid in INTEGERS and token.text.isdigit()
        if one.oid not in (0, NUMERIC) and not exact:
            raise UnknownValueError("a cast that may change a number")
        return token.text, one.oid or NUMERIC
    text = string_value(token.text)
    if text is None:
        raise UnknownValueError("a string with escapes")
    return text, one.oid
