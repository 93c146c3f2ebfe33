"""Reads of nil by key, of rows that were there before the history began."""

import io

import pytest

from isolang import History, Transaction, check, load_history
from isolang.history import write_history

INIT = "{:f :init, :type :ok, :process 0, :value {:x 1}}"
JSON = '{"f":"init","type":"ok","process":0,"value":{"x":1}}'


def read(*lines, form="edn", **options):
    """Return the history in these lines."""
    return load_history(io.BytesIO("\n".join(lines).encode()), format=form, **options)


def txn(process, ops, outcome="ok"):
    return f"{{:f :txn, :type :{outcome}, :process {process}, :value [{ops}]}}"


@pytest.mark.parametrize(
    ("lines", "expected", "anomaly"),
    [
        ([txn(0, "[:r :x nil]"), txn(1, "[:r :x 1]")], "invalid", "thin-air read"),
        ([txn(0, "[:rp :true {}]")], "invalid", "thin-air read"),
        ([txn(0, "[:r-in :x [nil 2]]")], "invalid", "thin-air read"),
        ([txn(0, "[:r-not-in :x [nil]]")], "valid", None),
        ([txn(0, "[:r :y nil]")], "valid", None),
        ([txn(0, "[:r :x nil]"), txn(1, "[:delete :x]")], "valid", None),
        ([txn(0, "[:r :x nil]"), txn(1, "[:delete :x]", "info")], "valid", None),
        ([txn(0, "[:r :x nil]"), txn(1, "[:delete :x]", "fail")], "invalid", "G1a"),
        ([txn(0, "[:r :x nil]"), txn(1, "[:delete :x] [:insert :x 2]")], "invalid", "G1b"),
        ([txn(0, "[:delete :x] [:r :x nil]")], "valid", None),
        ([txn(0, "[:r :x nil] [:delete :x]")], "invalid", "future read"),
        # The delete comes later in the session.
        ([txn(0, "[:r :x nil]"), txn(0, "[:delete :x]")], "invalid", "non-monotonic read"),
    ],
)
def test_a_read_of_nil_follows_a_deletion(lines, expected, anomaly):
    """Without one that may have taken effect, nobody reads the row as nil."""
    verdict = check(read(INIT, *lines), "ser")
    assert (verdict.outcome, verdict.certified) == (expected, True)
    if anomaly not in (None, "non-monotonic read"):
        assert verdict.violation.anomaly == anomaly


def test_the_report_says_that_the_row_was_there():
    """No option is offered that would not explain the read."""
    verdict = check(read(INIT, txn(0, "[:r :x nil]")), "ser")
    shown = " ".join(str(verdict).split())
    assert "but :x = 1 was there from the start, and no transaction deleted it" in shown
    assert "--unwritten-initial" not in shown


def test_json_declares_rows_too():
    """The line means the same as in EDN."""
    line = '{"f":"txn","type":"ok","process":0,"value":[["r","x",null]]}'
    assert check(read(JSON, line, form="jepsen-json"), "ser").outcome == "invalid"


@pytest.mark.parametrize(
    ("more", "expected"),
    [("[:delete :y]", "invalid"), ("[:rp [:= 7] {}]", "invalid"), ("[:w :y 1]", "valid")],
)
def test_initial_values_of_registers_keep_nil(more, expected):
    """``--initial`` and ``initial=`` replace nil if the history has rows."""
    lines = [txn(0, "[:w :x 1]"), txn(1, "[:r :x nil]"), txn(2, more)]
    assert check(read(*lines, initial=1), "ser").outcome == expected
    op = {"[:delete :y]": ("delete", "y"), "[:w :y 1]": ("w", "y", 1)}
    other = op.get(more, ("scan", ("=", "value", 7), {}))
    txns = [Transaction([("r", "x", None)]), Transaction([other])]
    for initial in (1, {"x": 1}):
        assert check(History.from_transactions(txns, initial=initial), "ser").outcome == expected


def test_the_smallest_part_keeps_the_read_of_nil():
    """It was saved as a read of the initial value, which is valid."""
    history = read(txn(0, "[:r :x nil]"), txn(1, "[:r :x 1]"), initial_value=(":x=1",))
    out = io.BytesIO()
    write_history(history, out, format="edn")
    assert "[:r :x nil]" in out.getvalue().decode()
    assert check(read(out.getvalue().decode()), "ser").outcome == "invalid"
