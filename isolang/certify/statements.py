"""Predicate reads, judged once more: which rows match, from the texts of predicate and rows.

Neither the reader's evaluation nor the native checker's is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from isolang.certify.errors import NotCertifiedError
from isolang.certify.facts import READ_NONE_OF, READ_ONE_OF, WRITE, Facts
from isolang.history.values import KEYWORD, NIL, STRING

if TYPE_CHECKING:
    from isolang.history.history import History

# The text of a scalar as it is; a vector as a list, a map as a dictionary of these.
Form: TypeAlias = Any
Row: TypeAlias = Mapping[str, str]
# SQL's false, unknown and true. The truth of a predicate lies between two of them: where a part
# cannot be evaluated these are false and true, and the rest of it may leave one of them.
FALSE, UNKNOWN, TRUE = range(3)
Between: TypeAlias = tuple[int, int]
Test: TypeAlias = Callable[[Row, str], Between]  # of a row and its key
_OPEN: Final = (FALSE, TRUE)
IMPLICIT: Final = 3
"""Of a predicate read: its set-reads are not all operations."""

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|#\w[^\s\[\]{}]* |[\[\]{}]|[^\s\[\]{}"]+)')
_CLOSE: Final = {"[": "]", "{": "}"}


def judged_statements(history: History, facts: Facts) -> frozenset[int]:
    """The predicate reads whose rows are judged: known ones of what may be included."""
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


def check_statements(history: History, facts: Facts) -> None:
    """Check that each predicate read has the operations that its predicate and its rows ask for.

    Raises:
        NotCertifiedError: one has not, or it cannot be evaluated.
    """
    columns = history.columns
    if not len(columns.statement_start):
        return
    keys = [_text(*columns.key(key)) for key in range(facts.keys)]

    @cache
    def row_of(value: int) -> Row:
        return _row(_text(*columns.value(value)))

    @cache
    def name_of(table: str | None, key: int) -> str | None:
        return _key_in(table, keys[key])

    held = sorted(
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
    by_key = {key: [value for _, value in same] for key, same in groupby(held, itemgetter(0))}
    predicates = [_predicate(text) for text in columns.predicates]
    for s in sorted(judged_statements(history, facts)):
        start, end = int(columns.statement_start[s]), int(columns.statement_end[s])
        ops, txn = range(start, end), int(columns.statement_txn[s])
        table, test = predicates[columns.statement_predicate[s]]

        def holds(
            key: int, value: int, table: str | None = table, test: Test = test
        ) -> bool | None:
            """Whether the row matches; None for one of another table."""
            name = name_of(table, key)
            return None if name is None else _matches(test(row_of(value), name))

        returned: set[int] = set()
        missed: dict[int, frozenset[int]] = {}
        for op in ops:
            key, kind = facts.key[op], facts.kind[op]
            if kind == READ_NONE_OF:
                missed[key] = facts.set_of(op)
                continue
            (value,) = facts.set_of(op) if kind == READ_ONE_OF else (facts.value[op],)
            # mutant: python-returned-rows
            if key in returned or holds(key, value) is not (kind != READ_ONE_OF):
                raise NotCertifiedError(
                    f"not certified: the predicate read of operation {op} was judged otherwise"
                )
            returned.add(key)
        own = {
            facts.key[op]: facts.value[op]
            for op in range(facts.op_start[txn], start)
            if facts.kind[op] == WRITE and facts.ok[op]
        }
        # Where set-reads are implicit, of the keys that it tells of, or its transaction wrote.
        implicit = columns.statement_known[s] == IMPLICIT
        told = sorted({*missed, *own} & by_key.keys()) if implicit else by_key
        expected: dict[int, frozenset[int]] = {}
        for key in told:
            for value in () if key in returned else by_key[key]:
                # mutant: python-own-rows
                if own.get(key, value) == value and holds(key, value):
                    expected[key] = expected.get(key, frozenset()) | {value}
        # mutant: python-missed-rows
        if missed != expected:
            raise NotCertifiedError(
                f"not certified: the predicate read before operation {end} does not say of which "
                "rows it says that they were not there"
            )


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
        raise NotCertifiedError(f"not certified: {text} is no form")
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
    """What ``:key`` is for a key, or None if it is of another table."""
    if table is None:
        return text
    form = _read(text)
    return form[1] if isinstance(form, list) and len(form) == 2 and form[0] == table else None


# --- predicates ---


def _predicate(text: str) -> tuple[str | None, Test]:
    form = _read(text)
    return form.get(":table"), _test(form[":where"])


def _matches(found: Between) -> bool:
    if found[0] != TRUE and found[1] == TRUE:
        raise NotCertifiedError("not certified: whether a row matches a predicate stays open")
    return found[0] == TRUE


def _exactly(holds: bool) -> Between:
    return (TRUE, TRUE) if holds else (FALSE, FALSE)


class _OddError(Exception):
    """A number that is neither an integer of 64 bits nor a float."""


def _number(text: Form) -> int | float | None:
    """The number that a text is, None if it is none.

    Raises:
        _OddError: it is one that cannot be compared.
    """
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


def _whole(number: float | None) -> int | None:
    """The integer of 64 bits that a number is, if it is one."""
    if number is None or number != math.floor(number) or not -(2**63) <= number < 2**64:
        return None
    return int(number)


def _order(a: Form, b: Form) -> int | None:
    """-1, 0, 1 for less, equal, greater; None if they have no order that all databases share.

    Raises:
        _OddError: one is a number that cannot be compared.
    """
    x, y = _number(a), _number(b)
    if x is None or y is None:
        return None
    exact = (x > y) - (x < y)
    # One of them is rounded to a float where the other one is such, in some databases.
    rounded = (float(x) > float(y)) - (float(x) < float(y))
    return exact if exact == rounded or type(x) is type(y) else None


def _equal(a: Form, b: Form) -> bool | None:
    if _number(a) is None or _number(b) is None:
        return bool(a == b)
    order = _order(a, b)
    return None if order is None else order == 0


def _ordered(holds: Callable[[int], bool]) -> Callable[[Form, Form], bool | None]:
    return lambda a, b: None if (order := _order(a, b)) is None else holds(order)


_COMPARISONS: Final[dict[str, Callable[[Form, Form], bool | None]]] = {
    "=": _equal,
    "!=": lambda a, b: None if (equal := _equal(a, b)) is None else not equal,
    "<": _ordered(lambda order: order < 0),
    "<=": _ordered(lambda order: order <= 0),
    ">": _ordered(lambda order: order > 0),
    ">=": _ordered(lambda order: order >= 0),
}


def _remainder(by: Form, rest: Form) -> Callable[[Form, Form], bool | None]:
    """Whether the rest of a whole number, from 0 up to the modulus, is this one."""
    modulus, wanted = _whole(_number(by)), _whole(_number(rest)) if rest != "nil" else 0
    if modulus is None or modulus < 1 or wanted is None:
        raise NotCertifiedError("not certified: a remainder of what is no integer")

    def holds(given: Form, _: Form) -> bool | None:
        whole = _whole(_number(given))
        return None if whole is None else whole % modulus == wanted

    return holds


def _test(form: Form) -> Test:
    head, *parts = form
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
            # mutant: python-unknown-joined
            return join(least for least, _ in found), join(most for _, most in found)

        return joined
    column, *constants = parts
    of = _name(column)

    def value(row: Row, key: str) -> str | None:
        return key if of == "key" else row.get(of)

    if name == "null":
        return lambda row, key: _OPEN if (v := value(row, key)) is None else _exactly(v == "nil")
    if name == "mod":
        compare: Callable[[Form, Form], bool | None] | None = _remainder(*constants)
    else:
        compare = _COMPARISONS.get(name)
    if compare is None:
        raise NotCertifiedError(f"not certified: the predicate {name} is unknown")
    constant = constants[-1]

    def compared(row: Row, key: str) -> Between:
        given = value(row, key)
        if given is None:
            return _OPEN
        # mutant: python-null-compared
        if "nil" in (given, constant):
            return UNKNOWN, UNKNOWN
        try:
            holds = compare(given, constant)
        except _OddError:
            return _OPEN
        return _OPEN if holds is None else _exactly(holds)

    return compared
