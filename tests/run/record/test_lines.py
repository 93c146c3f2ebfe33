"""Lines say what they are told, whoever spells it: the core what is frequent, Python the rest."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal

import pytest

from isolang import load_history
from isolang._native import recorded_line
from isolang.errors import IsolangError
from isolang.history.values import Keyword
from isolang.run.operation import range_predicate
from isolang.run.record.lines import UNKNOWN_START, nemesis_line, to_edn

ODD = ["é", 'q"', "back\\slash", "new\nline", "", 1 << 70, -5, True, 1.5, Decimal("1.5"), None,
       Keyword("deleted"), (1, "a"), dt.date(2026, 1, 2), b"\xff"]  # fmt: skip


def invocation(operations, *, index=0, process=0, when=1, began=0):
    """The line before a transaction."""
    head = (index, "invoke", process, when, began)
    return recorded_line(*head, operations, True, [], (), to_edn)


def completion(operations, times=(), commit=(), *, index=1, process=0, when=2, began=0):
    """The line after a transaction that committed."""
    head = (index, "ok", process, when, began)
    return recorded_line(*head, operations, False, list(times), commit, to_edn)


def read(*lines):
    """The transactions of a file with these lines."""
    return list(load_history(io.BytesIO(b"".join(lines)), "edn").transactions())


def test_a_line_by_its_letters():
    """The form that readers, and people's own scripts, know; times are since the beginning."""
    operations = [("r", "x", 7), ("w", "y", 3), ("delete", "z", None), ("append", "l", 4)]
    times = [11, 12, UNKNOWN_START, 14]
    line = completion(operations, times, (15, 16), index=5, process=2, when=109, began=10)
    assert line == (
        b'{:index 5, :type :ok, :process 2, :time 99, :f :txn, :value [[:r "x" 7] [:w "y" 3] '
        b'[:delete "z"] [:append "l" 4]], :times [[1 2] nil], :commit [5 6]}\n'
    )
    planned = (("r", "x", 7), ("w", "y", 3))
    assert invocation(planned, index=4, process=2, when=108, began=10) == (
        b'{:index 4, :type :invoke, :process 2, :time 98, :f :txn, :value [[:r "x" nil] '
        b'[:w "y" 3]]}\n'
    )
    predicate = [("rp", range_predicate(1, 9), {"x": 7})]
    assert b'[[:rp [:between :value 1 9] {"x" 7}]]' in completion(predicate)
    assert b":f :kill" in nemesis_line(1, 2, "kill", 'the "server"')


@pytest.mark.parametrize("value", ODD, ids=repr)
@pytest.mark.parametrize("place", ["key", "value"])
def test_values_of_all_types_come_back(value, place):
    """As keys and as values, each of the type that it had."""
    key, written = (value, 1) if place == "key" else ("x", value)
    if value is None:
        pytest.skip("nobody writes nil, and it is no key")
    operations = [("w", key, written)]
    (only,) = read(invocation(operations), completion(operations))
    ((_, found_key, found),) = only.ops
    assert (found_key, found) == (key, written)
    assert (type(found_key), type(found)) == (type(key), type(written))


def test_what_is_no_operation_is_refused():
    """A recorder that writes half a line would spoil the file."""
    for wrong in ([("r", "x")], ["rx"], [("r", object(), 1)]):
        with pytest.raises((IsolangError, TypeError, ValueError, RuntimeError)):
            invocation(wrong)
