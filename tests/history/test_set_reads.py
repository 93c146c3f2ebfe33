"""Set-reads: reads that say only that the version seen is in a set, or is not."""

import pytest

import isolang
from isolang import Transaction
from isolang.errors import HistoryError, IsolangError
from isolang.history import UNKNOWN, History


def check(spec, *transactions, **options):
    given = [Transaction(ops=ops) for ops in transactions]
    return isolang.check(History.from_transactions(given, **options), spec)


SKEW = (
    [("r-not-in", "x", [2]), ("w", "y", 1)],
    [("r-in", "y", [None, 3]), ("w", "x", 2)],
)


def test_two_absences_are_a_write_skew():
    """Each misses the other's write: not serializable, and allowed by snapshots."""
    found = check("ser", *SKEW)
    assert (found.outcome, found.violation.anomaly) == ("invalid", "write skew")
    assert check("si", *SKEW).outcome == "valid"


def test_the_figure_of_a_predicate_read():
    """Figure 1 of Vbox: with x = 1 seen, y must not be 1, which only the set-read says."""
    writes = ([("w", k, v) for k in "xy"] for v in range(3))
    assert check("ser", *writes, [("r", "x", 1), ("r-not-in", "y", [1])]).outcome == "invalid"
    writes = ([("w", k, v) for k in "xy"] for v in range(3))
    assert check("ser", *writes, [("r", "x", 1)]).outcome == "valid"


@pytest.mark.parametrize(
    ("kind", "values", "initial", "outcome"),
    [
        ("r-not-in", [None], None, "invalid"),
        ("r-not-in", [None], 5, "valid"),
        ("r-not-in", [5], 5, "invalid"),
        ("r-in", [None], 5, "valid"),
        ("r-in", [5], 5, "valid"),
        ("r-in", [6], 5, "invalid"),
        ("r-not-in", [], None, "valid"),
        ("r-in", [], None, "invalid"),
    ],
)
def test_the_initial_state_is_nil_or_what_is_declared(kind, values, initial, outcome):
    """A declared value is known not to be nil; a read of nil may still see it, as item reads do."""
    assert check("ser", [(kind, "x", values)], initial=initial).outcome == outcome


@pytest.mark.parametrize(
    ("ops", "anomaly"),
    [
        ([("w", "x", 3), ("r-not-in", "x", [3])], "not my own write"),
        ([("w", "x", 3), ("r-in", "x", [4])], "not my own write"),
        ([("r-in", "x", [3]), ("w", "x", 3)], "future read"),
        ([("r-in", "x", [7, 8])], "thin-air read"),
    ],
)
def test_contradictions_have_the_names_of_item_reads(ops, anomaly):
    assert check("ser", ops).violation.anomaly == anomaly


def test_own_writes_are_seen():
    ops = [("w", "x", 3), ("r-in", "x", [3, 4]), ("r-not-in", "x", [4])]
    assert check("ser", ops).outcome == "valid"


def test_python_objects_come_back():
    ops = [("r-in", "x", [1, None]), ("r-not-in", "y", ["a"]), ("r-in", "z", UNKNOWN)]
    history = History.from_transactions([Transaction(ops=ops)])
    assert next(history.transactions()).ops == ops
    assert [history.describe_op(i) for i in range(3)] == [
        "r(x, in {1 nil})",
        'r(y, not in {"a"})',
        "r(z, ?)",
    ]


def test_a_set_read_names_no_source():
    with pytest.raises(HistoryError, match="only a read has a source, not a set-read"):
        History.from_transactions([Transaction(ops=[("r-in", "x", [1], "initial")])])


def test_a_list_has_no_set_reads():
    """Versions of a list are matched by their elements."""
    found = check("ser", [("append", "x", 1)], [("r-in", "x", [1])])
    assert found.outcome == "unknown"
    assert "used as a register by T2" in found.reason


@pytest.mark.parametrize("form", ["edn", "jepsen-json"])
def test_round_trip(form, tmp_path):
    """Jepsen's forms hold set-reads; other formats refuse them by name."""
    ops = [("r-in", "x", [1, None]), ("r-not-in", "y", [2]), ("r", "x", 1)]
    history = History.from_transactions([Transaction(ops=[("w", "x", 1)]), Transaction(ops=ops)])
    path = tmp_path / "history"
    isolang.save_history(history, path, format=form)
    again = isolang.load_history(path)
    assert [list(t.ops) for t in again.transactions()] == [[("w", "x", 1)], ops]
    with pytest.raises(HistoryError, match="a set-read cannot be expressed"):
        isolang.save_history(history, path, format="plume")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[[:r-in x]]", "a read without a value"),
        ("[[:r-in x nil]]", None),
        ("[[:r-in x 3]]", "a set-read without a list of values"),
        ("[[:r-out x [3]]]", "an unknown micro-operation"),
    ],
)
def test_edn(line, message, tmp_path):
    """Not known, a set-read says nothing; it cannot have a single value."""
    path = tmp_path / "history.edn"
    path.write_text(f"{{:type :ok, :f :txn, :process 0, :value {line}}}\n")
    if message is None:
        assert isolang.check(isolang.load_history(path), "ser").outcome == "valid"
    else:
        with pytest.raises(IsolangError, match=message):
            isolang.load_history(path)
