"""Adds initial values that were not written by any transaction in the history.

If a database already had rows when recording began, some reads return values that no transaction in
the history wrote. Either the user declares these initial values (``--initial-value``), or they are
taken from such reads (``--unwritten-initial``). In both cases the initial values replace nil, and a
read of nil is no longer a read of the initial state.

``native/readers/before.hpp`` defines the rule for reads: each key has at most one value that no
transaction wrote, and this value comes first in the key's version order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from isolang.arrays import np
from isolang.errors import HistoryError, UnsupportedError
from isolang.history import columns as c
from isolang.history.predicates import derive_set_reads
from isolang.history.values import UNKNOWN, Keyword, Literal, encode, preview, value_text

if TYPE_CHECKING:
    from isolang._native import Columns
    from isolang.history.history import History

_HINT: Final = "expected a value such as 0, or KEY=VALUE"


def initial_value_texts(initial: object) -> tuple[str, ...]:
    """Return initial values in the form accepted by ``--initial-value``: ``V`` or ``KEY=V``.

    Raises:
        HistoryError: an object cannot be used as a key or a value.

    >>> t = initial_value_texts
    >>> t(0), t({"x": [1, 2]}), t(("x=5",)), t(None)
    (('0',), ('x=[1 2]',), ('x=5',), ())
    """
    if initial is None:
        return ()
    if isinstance(initial, tuple) and all(isinstance(one, str) for one in initial):
        return initial
    if isinstance(initial, Mapping):
        return tuple(
            f"{_key_text(key)}={_initial_value_text(value)}" for key, value in initial.items()
        )
    return (_initial_value_text(initial),)


def _initial_value_text(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(_initial_value_text, value))}]"
    return value_text(value, "the initial value")


def _key_text(key: object) -> str:
    is_name = isinstance(key, str) and key.isidentifier()
    return str(key) if is_name else value_text(key, "the key of an initial value")


def with_initial(
    history: History, values: Sequence[str] = (), *, unwritten: bool = False
) -> History:
    """Return a copy of the history with the given initial values in place of nil.

    Args:
        values: the initial values that replace nil: ``V`` for all keys, or ``KEY=V`` for one key. A
            list applies only to keys that hold lists, and any other value only to the other keys.
            Keys written by a declared initial transaction keep the values it wrote.

    Raises:
        HistoryError: both ``values`` and ``unwritten`` are set, or a value applies to no key.
        UnsupportedError: the initial value of a key was read only by indeterminate transactions,
            and they read different values.

    >>> from isolang import History, Transaction, check
    >>> history = History.from_transactions([
    ...     Transaction([("r", "x", 7), ("w", "x", 1)]),
    ...     Transaction([("r", "x", 7), ("w", "x", 2)]),
    ... ])
    >>> check(history, "si").violation.anomaly
    'thin-air read'
    >>> check(with_initial(history, unwritten=True), "si").violation.anomaly
    'lost update'
    """
    if values and unwritten:
        raise HistoryError(
            f"{history.name}: initial values are declared twice (got --initial-value and "
            "--unwritten-initial, expected one of them)"
        )
    if not values and not unwritten:
        return history
    columns = copy(history.columns)
    made = replace(history, columns=columns, _lazy=history.about_the_file())
    initial_sentence = (
        _declare_initial_values(made, values) if values else _adopt_unwritten_values(made)
    )
    derive_set_reads(columns, lambda txn, _: history.where(txn))
    columns.name_sources()
    return replace(made, initial=initial_sentence)


def _adopt_unwritten_values(history: History) -> str:
    registers, lists, open_ = history.columns.take_unwritten_for_initial()
    if open_:
        first, other = (
            f"{history.describe_op(op)} of {history.name_of(history.transaction_of(op))} "
            f"({history.where_op(op)})"
            for op in open_
        )
        key = history.key(int(history.columns.op_key[open_[0]]))
        raise UnsupportedError(
            f"{history.name}: the initial value of {key} is ambiguous: {first}, which no "
            f"transaction wrote, or {other}; it is unknown whether the first transaction took "
            "effect, and no committed transaction settles it; state it with --initial-value "
            f"{key}=VALUE"
        )
    many = f"{registers:,} key{'' if registers == 1 else 's'} had such a value"
    if lists:
        many += (
            f", {lists:,} list{'' if lists == 1 else 's'} began with elements, which are left out"
        )
    return f"{history.initial}, or a value that was read but that no transaction wrote: {many}"


def _declare_initial_values(history: History, values: Sequence[str]) -> str:
    """Set the initial values declared by the user, and return a sentence describing them."""
    columns = history.columns
    declared_values = [parse_initial_value(text) for text in values]
    everywhere = [value for key, value in declared_values if key is None]
    if len(everywhere) > 1:
        raise HistoryError(
            f"--initial-value: {len(everywhere)} values for all keys (expected one; use "
            "KEY=VALUE for a key with another initial value)"
        )
    by_key = {key: value for key, value in declared_values if key is not None}
    lists, registers, declared = *list_and_register_keys(columns), _declared_keys(columns)
    fitting = 0
    for k in range(columns.n_keys()):
        name = history.key(k) if by_key else ""
        name = name if name in by_key else name.removeprefix(":")
        own = name in by_key
        value = by_key.pop(name) if own else everywhere[0] if everywhere else UNKNOWN
        if value is UNKNOWN or (k in declared and not own):
            continue
        if k in declared:
            raise HistoryError(
                f"--initial-value {name}: the initial transaction of {history.name} wrote it"
            )
        if k not in (registers if isinstance(value, tuple) else lists) or value is None:
            fitting += 1
            _set_initial_value(columns, k, value)
        elif own:
            kind, right = (
                ("list", "[…]") if k in lists else ("register", "a single value, not a list")
            )
            raise HistoryError(
                f"--initial-value {name}: {name} is a {kind} "
                f"(got {preview(value)}, expected {right})"
            )
    if by_key:
        key = next(iter(by_key))
        some = ", ".join(history.key(k) for k in range(min(4, columns.n_keys())))
        raise HistoryError(
            f"--initial-value {key}: {history.name} has no such key (expected a key such as {some})"
        )
    if not fitting and columns.n_keys():
        raise HistoryError(
            f"--initial-value {values[0]}: no key of {history.name} can hold it (got "
            f"{preview(everywhere[0])}, expected {'[…]' if lists else 'a value, not a list'})"
        )
    return f"a read of {', '.join(values)}, as declared; nil for other keys"


def parse_initial_value(text: str) -> tuple[str | None, Any]:
    """Split ``KEY=V`` into the key and the parsed value.

    If the text is just ``V``, the key is ``None``.
    """
    from isolang.history.edn import forms

    where = f"--initial-value {text}"
    key: str | None = None
    if text[:1] not in "[{" and (cut := _index_of_equals(text)) > 0:
        key, text = text[:cut], text[cut + 1 :]
    is_list = text.lstrip().startswith("[")
    found = [form for _, form in forms(text, where)]
    found = [_plain_value(form) for form in found]
    if is_list:
        return key, tuple(found)
    if len(found) != 1:
        raise HistoryError(f"{where}: not a value (got {text!r}, {_HINT})")
    return key, found[0]


def _plain_value(form: Any) -> Any:
    """Convert a parsed form to a value: symbols become text, and maps become rows."""
    if isinstance(form, dict):
        return {
            k.name if isinstance(k, Keyword) else str(k): _plain_value(v) for k, v in form.items()
        }
    return form.text if isinstance(form, Literal) else form


def _index_of_equals(text: str) -> int:
    """Return the index of the first equals sign outside quotes, or -1 if there is none."""
    quoted = False
    for at, character in enumerate(text):
        if character == '"' and text[at - 1 : at] != "\\":
            quoted = not quoted
        elif character == "=" and not quoted:
            return at
    return -1


def _set_initial_value(columns: Columns, key: int, value: Any) -> None:
    where = "--initial-value"
    if isinstance(value, tuple):
        atoms = [columns.intern_value(*encode(one, where)) for one in value]
        columns.begin_list_with(key, atoms)
    elif value is not None:
        columns.set_initial_value(key, columns.intern_value(*encode(value, where)), alone=True)
    else:
        columns.set_initial_value(key, c.NIL_ATOM)


def list_and_register_keys(columns: Columns) -> tuple[set[int], set[int]]:
    """Return two sets: the keys used as lists, and the keys used as registers."""
    kind, known = columns.op_kind, columns.op_value != c.UNKNOWN_VALUE
    lists = (kind == c.APPEND) | ((kind == c.READ_LIST) & known)
    reads = (kind == c.READ) & known & (columns.op_value != c.NIL_ATOM)
    registers = (kind == c.WRITE) | reads | np.isin(kind, c.SET_READS)
    return set(columns.op_key[lists].tolist()), set(columns.op_key[registers].tolist())


def _declared_keys(columns: Columns) -> set[int]:
    """Return the keys written by a declared initial transaction."""
    found: set[int] = set()
    for txn in np.flatnonzero(columns.txn_status == c.INITIAL).tolist():
        ops = slice(int(columns.op_start[txn]), int(columns.op_start[txn + 1]))
        wrote = (columns.op_kind[ops] == c.WRITE) & (columns.op_ok[ops] == 1)
        found.update(columns.op_key[ops][wrote].tolist())
    return found
