"""Predicate reads, judged once more: which rows match, from the texts of predicate and rows.

Neither the reader's evaluation nor the native checker's is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from isolang.certify.errors import NotCertifiedError
from isolang.certify.facts import READ_NONE_OF, READ_ONE_OF, WRITE, Facts
from isolang.history.values import KEYWORD, NIL, STRING

if TYPE_CHECKING:
    from isolang.history.history import History

# The text of a scalar as it is; a vector as a list, a map as a dictionary of these.
Form: TypeAlias = Any
Row: TypeAlias = Mapping[str, str]
Test: TypeAlias = Callable[[Row, str], bool | None]  # of a row and its key; None is SQL's unknown

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|#\w[^\s\[\]{}]* |[\[\]{}]|[^\s\[\]{}"]+)')
_CLOSE: Final = {"[": "]", "{": "}"}


def check_statements(history: History, facts: Facts) -> None:
    """Check that each predicate read has the operations that its predicate and its rows ask for.

    Raises:
        NotCertifiedError: one has not, or it cannot be evaluated.
    """
    columns = history.columns
    if not len(columns.statement_start):
        return
    rows = {atom: _text(*columns.value(atom)) for atom in range(columns.n_values())}
    keys = [_text(*columns.key(key)) for key in range(facts.keys)]
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
    predicates = [_predicate(text) for text in columns.predicates]
    for start, end, txn, number, known in zip(
        columns.statement_start.tolist(),
        columns.statement_end.tolist(),
        columns.statement_txn.tolist(),
        columns.statement_predicate.tolist(),
        columns.statement_known.tolist(),
        strict=True,
    ):
        ops = range(start, end)
        if number < 0 or known != 1 or not facts.live(txn) or not all(facts.ok[op] for op in ops):
            continue
        table, test = predicates[number]

        def holds(
            key: int, value: int, table: str | None = table, test: Test = test
        ) -> bool | None:
            """Whether the row matches; None for one of another table."""
            name = _key_in(table, keys[key])
            return None if name is None else test(_row(rows[value]), name) is True

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
        expected: dict[int, frozenset[int]] = {}
        for key, value in held:
            # mutant: python-own-rows
            if key not in returned and own.get(key, value) == value and holds(key, value):
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


def _number(text: Form) -> int | float | None:
    if not isinstance(text, str) or not re.match(r"-?\d", text):
        return None
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        raise NotCertifiedError(f"not certified: a predicate over {text}") from None


def _equal(a: Form, b: Form) -> bool:
    numbers = _number(a), _number(b)
    if None in numbers:
        return numbers == (None, None) and bool(a == b)
    return numbers[0] == numbers[1]


def _ordered(a: Form, b: Form) -> tuple[int | float, int | float]:
    x, y = _number(a), _number(b)
    if x is None or y is None:
        raise NotCertifiedError("not certified: an order of values that are no numbers")
    return x, y


def _less(a: Form, b: Form) -> bool:
    x, y = _ordered(a, b)
    return x < y


def _not_more(a: Form, b: Form) -> bool:
    x, y = _ordered(a, b)
    return x <= y


_COMPARISONS: Final[dict[str, Callable[[Form, Form], bool]]] = {
    "=": _equal,
    "!=": lambda a, b: not _equal(a, b),
    "<": _less,
    "<=": _not_more,
    ">": lambda a, b: _less(b, a),
    ">=": lambda a, b: _not_more(b, a),
}


def _test(form: Form) -> Test:
    head, *parts = form
    name = _name(head)
    if name == "not":
        (inner,) = map(_test, parts)
        # mutant: python-unknown-negated
        return lambda row, key: None if (t := inner(row, key)) is None else not t
    if name in ("and", "or"):
        tests = [_test(part) for part in parts]
        decisive = name == "or"

        def joined(row: Row, key: str) -> bool | None:
            values = {test(row, key) for test in tests}
            if decisive in values:
                return decisive
            # mutant: python-unknown-joined
            return None if None in values else not decisive

        return joined
    column, *constants = parts
    of = _name(column)

    def value(row: Row, key: str) -> str:
        if of == "key":
            return key
        if of not in row:
            raise NotCertifiedError(f"not certified: a row without the column {of}")
        return row[of]

    if name == "null":
        return lambda row, key: value(row, key) == "nil"
    if name == "mod":
        by, rest = map(_number, constants)

        def remainder(row: Row, key: str) -> bool | None:
            if value(row, key) == "nil" or constants[1] == "nil":
                return None
            whole = _number(value(row, key))
            if not isinstance(whole, int) or not isinstance(by, int):
                raise NotCertifiedError("not certified: a remainder of what is no integer")
            return whole % by == rest

        return remainder
    compare = _COMPARISONS.get(name)
    if compare is None:
        raise NotCertifiedError(f"not certified: the predicate {name} is unknown")
    (constant,) = constants

    def compared(row: Row, key: str) -> bool | None:
        given = value(row, key)
        # mutant: python-null-compared
        return None if "nil" in (given, constant) else compare(given, constant)

    return compared
