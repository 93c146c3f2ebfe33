"""Re-evaluates predicate reads, by matching the texts of rows against those of predicates.

The history readers and the native checker also evaluate predicates, but with different code.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from isolang.certify.errors import NotCertifiedError
from isolang.certify.facts import Facts
from isolang.certify.history_index import READ_NONE_OF, READ_ONE_OF, WRITE
from isolang.history.values import KEYWORD, NIL, STRING
from isolang.patterns import pattern

if TYPE_CHECKING:
    from isolang.history.history import History

# A parsed form: text for a scalar, a list of forms for a vector, a dictionary for a map.
Form: TypeAlias = Any
Row: TypeAlias = Mapping[str, str]
# SQL's truth values. A predicate has a lower and an upper bound among these values. A part that
# cannot be evaluated has the bounds false and true. The other parts may still determine the value
# of the whole predicate.
FALSE, UNKNOWN, TRUE = range(3)
Between: TypeAlias = tuple[int, int]
Test: TypeAlias = Callable[[Row, str], Between]  # takes a row and its key
Judge: TypeAlias = Callable[[int, int], bool | None]  # takes a key and a value
_OPEN: Final = (FALSE, TRUE)
IMPLICIT: Final = 3
"""The value of ``statement_known`` for a predicate read with implicit set-reads."""

_TOKEN = pattern(r'\s*("[^"\\]*+(?:\\.[^"\\]*+)*+"|#\w[^\s\[\]{}]* |[\[\]{}]|[^\s\[\]{}"]+)')
_CLOSE: Final = {"[": "]", "{": "}"}


def judged_statements(history: History, facts: Facts) -> frozenset[int]:
    """Return the predicate reads whose rows are checked.

    These are the reads whose returned rows are known and whose transaction may be included.
    """
    columns = history.columns
    return frozenset(
        s
        for s, (start, end, txn, number, known) in enumerate(
            zip(
                columns.statement_start.tolist(),
                columns.statement_end.tolist(),
                columns.statement_txn.tolist(),
                columns.statement_predicate.tolist(),
                columns.statement_known.tolist(),
                strict=True,
            )
        )
        if number >= 0
        and known in (1, IMPLICIT)
        and facts.live(txn)
        and all(facts.ok[op] for op in range(start, end))
    )


class StatedRows:
    """All rows that may ever have existed in a history, and the predicates of its predicate reads.

    A row is a key with a value, which is the key's initial value or was written by a transaction
    that may be included.
    """

    def __init__(self, history: History, facts: Facts) -> None:
        """Collect all rows; deletions are left out, because no predicate matches a deleted row."""
        columns = history.columns
        self._keys = [_text(*columns.key(key)) for key in range(facts.keys)]
        self._number: list[int] = columns.statement_predicate.tolist()
        self.versions = sorted(
            {
                (facts.key[op], facts.value[op])
                for t in facts.could_be_included
                for op in range(facts.op_start[t], facts.op_start[t + 1])
                # mutant: python-failed-rows
                if facts.kind[op] == WRITE and facts.ok[op] and facts.value[op] != facts.deleted
            }
            # mutant: python-loaded-rows
            | {(k, v) for k, v in enumerate(facts.initial_value) if v != 0}
        )
        self.by_key = {
            key: [value for _, value in same] for key, same in groupby(self.versions, itemgetter(0))
        }
        self._row_of = cache(lambda value: _row(_text(*columns.value(value))))
        self._predicate = cache(lambda number: _predicate(columns.predicates[number]))
        self._name = cache(self._name_in)
        self._sorted = cache(self._sort)

    def _name_in(self, table: str | None, key: int) -> str | None:
        return _key_in(table, self._keys[key])

    def judge(self, s: int) -> Judge:
        """Return a function that decides whether a row matches the predicate of read ``s``.

        For a row of a different table, the function returns ``None``.
        """
        table, test, _ = self._predicate(self._number[s])
        name_of, row_of = self._name, self._row_of

        def holds(key: int, value: int) -> bool | None:
            name = name_of(table, key)
            return None if name is None else _matches(test(row_of(value), name))

        return holds

    def around(self, s: int) -> Sequence[tuple[int, int]]:
        """Return the rows that may match a read's predicate, leaving out most rows that do not.

        If the predicate implies an interval for the numbers in a column, rows with a number outside
        this interval are left out. Numbers are compared as floats, because some databases round
        them to floats.
        """
        table, _, interval = self._predicate(self._number[s])
        if interval is None:
            return self.versions
        column, low, high = interval
        numbers, rows, others = self._sorted(table, column)
        # mutant: python-bounds
        within = rows[bisect_left(numbers, low) : bisect_right(numbers, high)]
        # mutant: python-no-numbers
        return within + others

    def _sort(
        self, table: str | None, column: str
    ) -> tuple[list[float], list[tuple[int, int]], list[tuple[int, int]]]:
        """Sort the rows of a table by the number in a column.

        Returns:
            The numbers in ascending order; the rows with these numbers, in the same order; and the
            rows without a number in the column.
        """
        numbered, others = list[tuple[float, tuple[int, int]]](), list[tuple[int, int]]()
        for row in self.versions:
            name = self._name(table, row[0])
            if name is None:
                continue
            number = _rounded(name if column == "key" else self._row_of(row[1]).get(column))
            if number is None:
                others.append(row)
            else:
                numbered.append((number, row))
        numbered.sort()
        return [number for number, _ in numbered], [row for _, row in numbered], others

    def missed(self, s: int, explained: Container[int]) -> Iterator[int]:
        """Yield each key outside ``explained`` that has a row matching predicate read ``s``."""
        found, holds = set[int](), self.judge(s)
        for key, value in self.around(s):
            if key not in found and key not in explained and holds(key, value):
                found.add(key)
                yield key


class Matching(Struct, frozen=True):
    """The set of all values for which a given key's row matches a predicate.

    Membership is computed lazily, when ``in`` is evaluated.
    """

    holds: Judge
    key: int

    def __contains__(self, value: object) -> bool:
        """Return whether the key's row matches the predicate when it has this value."""
        assert isinstance(value, int)
        return bool(self.holds(self.key, value))


def check_statements(history: History, facts: Facts) -> StatedRows | None:
    """Check that each predicate read has the operations required by its predicate and the rows.

    Raises:
        NotCertifiedError: if a predicate read has operations other than those required, or if its
            predicate cannot be evaluated.
    """
    columns = history.columns
    if not len(columns.statement_start):
        return None
    rows = StatedRows(history, facts)
    for s in sorted(judged_statements(history, facts)):
        start, end = int(columns.statement_start[s]), int(columns.statement_end[s])
        holds = rows.judge(s)
        returned: set[int] = set()
        missed: dict[int, frozenset[int]] = {}
        for op in range(start, end):
            key, kind = facts.key[op], facts.kind[op]
            if kind == READ_NONE_OF:
                missed[key] = frozenset(facts.list_of(op))
                continue
            (value,) = frozenset(facts.list_of(op)) if kind == READ_ONE_OF else (facts.value[op],)
            # mutant: python-returned-rows
            if key in returned or holds(key, value) is not (kind != READ_ONE_OF):
                raise NotCertifiedError(
                    f"not certified: the predicate read of operation {op} does not return the "
                    "rows that match its predicate"
                )
            returned.add(key)
        own = own_rows(history, facts, s)
        # If set-reads are implicit, only keys with a set-read or an own write are compared.
        implicit = columns.statement_known[s] == IMPLICIT
        explained = {*missed, *own} & rows.by_key.keys()
        around = ((k, v) for k in explained for v in rows.by_key[k]) if implicit else rows.around(s)
        expected: dict[int, frozenset[int]] = {}
        for key, value in around:
            # mutant: python-own-rows
            if key not in returned and own.get(key, value) == value and holds(key, value):
                expected[key] = expected.get(key, frozenset()) | {value}
        # mutant: python-missed-rows
        if missed != expected:
            raise NotCertifiedError(
                f"not certified: the predicate read before operation {end} does not "
                "state which rows it found absent"
            )
    return rows


def own_rows(history: History, facts: Facts, s: int) -> dict[int, int]:
    """Return, by key, the last value written by the reader before predicate read ``s``."""
    txn, start = int(history.columns.statement_txn[s]), int(history.columns.statement_start[s])
    return {
        facts.key[op]: facts.value[op]
        for op in range(facts.op_start[txn], start)
        if facts.kind[op] == WRITE and facts.ok[op]
    }


# --- forms ---


def _text(kind: int, payload: Any) -> str:
    if kind == NIL:
        return "nil"
    if kind == STRING:
        return '"' + str(payload).replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f":{payload}" if kind == KEYWORD else str(payload)


def _read(text: str) -> Form:
    tokens = _TOKEN.findall(text)
    form, rest = _form(tokens)
    if rest:
        raise NotCertifiedError(f"not certified: {text} is not a form")
    return form


def _form(tokens: list[str]) -> tuple[Form, list[str]]:
    head, *rest = tokens
    if head.startswith("#") and head.endswith(" "):
        inner, after = _form(rest)
        return head + str(inner), after
    if head not in _CLOSE:
        return head, rest
    parts = []
    while rest and rest[0] != _CLOSE[head]:
        part, rest = _form(rest)
        parts.append(part)
    if head == "[":
        return parts, rest[1:]
    return dict(zip(map(str, parts[::2]), parts[1::2], strict=True)), rest[1:]


def _name(form: Form) -> str:
    text = str(form)
    return text[1:] if text[:1] == ":" else text[1:-1]


def _row(text: str) -> Row:
    form = _read(text) if text.startswith("{") else {":value": text}
    return {_name(column): value for column, value in form.items()}


def _key_in(table: str | None, text: str) -> str | None:
    """Return the value of ``:key`` in a row, or ``None`` if the row is in a different table."""
    if table is None:
        return text
    form = _read(text)
    return form[1] if isinstance(form, list) and len(form) == 2 and form[0] == table else None


# --- predicates ---


def _predicate(text: str) -> tuple[str | None, Test, tuple[str, float, float] | None]:
    form = _read(text)
    return form.get(":table"), _test(form[":where"]), _interval(form[":where"])


def _interval(form: Form) -> tuple[str, float, float] | None:
    """Return a column and the interval that a predicate implies for the column's numbers.

    The predicate is false for every row whose number in that column lies outside the interval.
    Return ``None`` if the predicate implies no interval.
    """
    head, *parts = [":and"] if form == ":true" else form
    name = _name(head)
    if name == "and":
        found = [part for part in map(_interval, parts) if part is not None]
        same = [part for part in found if part[0] == found[0][0]]
        lows, highs = [low for _, low, _ in same], [high for _, _, high in same]
        return (found[0][0], max(lows), min(highs)) if found else None
    if name not in ("=", "<", "<=", ">", ">="):
        return None
    column, constant = parts
    number = _rounded(constant)
    if number is None:
        return None
    low, high = -math.inf if name in ("<", "<=") else number, number
    return _name(column), low, math.inf if name in (">", ">=") else high


def _matches(found: Between) -> bool:
    if found[0] != TRUE and found[1] == TRUE:
        raise NotCertifiedError("not certified: it is open whether a row matches a predicate")
    return found[0] == TRUE


def _exactly(holds: bool) -> Between:
    return (TRUE, TRUE) if holds else (FALSE, FALSE)


class _OddError(Exception):
    """Raised for a number that is neither a 64-bit integer nor a float."""


def _number(text: Form) -> int | float | None:
    """Return the number represented by a text, or ``None`` if the text is not a number."""
    return _number_of(text) if isinstance(text, str) else None


@lru_cache(1 << 20)
def _number_of(text: str) -> int | float | None:
    if not re.match(r"-?\d", text):
        return None
    if re.fullmatch(r"-?\d+", text):
        if len(text) > 20 or not -(2**63) <= int(text) < 2**64:
            raise _OddError
        return int(text)
    try:
        real = float(text)
    except ValueError:
        raise _OddError from None
    if math.isinf(real):
        raise _OddError
    return real


def _rounded(text: Form) -> float | None:
    """Return the number represented by a text as a float, or ``None`` if it is not a number."""
    try:
        number = _number(text)
    except _OddError:
        return None
    return None if number is None else float(number)


def _whole(number: float | None) -> int | None:
    """Return a number as a 64-bit integer, or ``None`` if it is not one."""
    if number is None or number != math.floor(number) or not -(2**63) <= number < 2**64:
        return None
    return int(number)


_ACCEPTED_SIGNS: Final = {
    "=": (0,),
    "!=": (-1, 1),
    "<": (-1,),
    "<=": (-1, 0),
    ">": (1,),
    ">=": (0, 1),
}


def _comparison(name: str, constant: Form) -> Callable[[Form], bool | None]:
    """Return a function that decides whether a comparison of a cell with a constant holds.

    Where databases disagree on the result, the function returns ``None``.
    """
    accepted = _ACCEPTED_SIGNS[name]

    def holds(cell: Form) -> bool | None:
        x = _number(cell)
        y = None if x is None else _number(constant)
        if x is None or y is None:
            return (cell == constant) is (name == "=") if name in ("=", "!=") else None
        exact = (x > y) - (x < y)
        # If only one of the numbers is a float, some databases round the other to a float.
        if type(x) is not type(y) and (float(x) > float(y)) - (float(x) < float(y)) != exact:
            return None
        return exact in accepted

    return holds


def _remainder(by: Form, rest: Form) -> Callable[[Form], bool | None]:
    """Return a function that decides whether a cell modulo ``by`` equals ``rest``.

    If the cell is not an integer, the function returns ``None``.
    """
    modulus, accepted = _whole(_number(by)), _whole(_number(rest)) if rest != "nil" else 0
    if modulus is None or modulus < 1 or accepted is None:
        raise NotCertifiedError("not certified: a remainder needs an integer")

    def holds(cell: Form) -> bool | None:
        whole = _whole(_number(cell))
        return None if whole is None else whole % modulus == accepted

    return holds


def _test(form: Form) -> Test:
    head, *parts = [":and"] if form == ":true" else form
    name = _name(head)
    if name == "not":
        (inner,) = map(_test, parts)

        def negated(row: Row, key: str) -> Between:
            least, most = inner(row, key)
            # mutant: python-unknown-negated
            return TRUE - most, TRUE - least

        return negated
    if name in ("and", "or"):
        tests = [_test(part) for part in parts]
        join = min if name == "and" else max

        def joined(row: Row, key: str) -> Between:
            found = [test(row, key) for test in tests] or [_exactly(name == "and")]
            least, most = zip(*found, strict=True)
            # mutant: python-unknown-joined
            return join(least), join(most)

        return joined
    column, *constants = parts
    of = _name(column)

    if name == "null":

        def null(row: Row, key: str) -> Between:
            cell = key if of == "key" else row.get(of)
            return _OPEN if cell is None else _exactly(cell == "nil")

        return null
    constant = constants[-1]
    if name == "mod":
        compare = _remainder(*constants)
    elif name in _ACCEPTED_SIGNS:
        compare = _comparison(name, constant)
    else:
        raise NotCertifiedError(f"not certified: the predicate {name} is unknown")

    def compared(row: Row, key: str) -> Between:
        cell = key if of == "key" else row.get(of)
        if cell is None:
            return _OPEN
        # mutant: python-null-compared
        if "nil" in (cell, constant):
            return UNKNOWN, UNKNOWN
        try:
            holds = compare(cell)
        except _OddError:
            return _OPEN
        return _OPEN if holds is None else _exactly(holds)

    return compared
