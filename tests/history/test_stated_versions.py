"""Versions that operations state, as they are read, written and built."""

from __future__ import annotations

import io
import pickle

import pytest

from isolang import load_history, save_history
from isolang.errors import HistoryError, UnsupportedError
from isolang.history import History, Transaction
from isolang.history.select import sub_history
from isolang.history.writers import write_history
from isolang.run.record.recorder import Recorder
from isolang.watch.stream import Stream

EDN = """{:versions :ordered}
{:process 0, :type :ok, :f :txn, :value [[:w :x 1] [:r :y nil]], :versions [12 nil]}
{:process 1, :type :ok, :f :txn, :value [[:r :x 1]], :versions [12]}
"""


def read(text: str, form: str = "auto") -> History:
    return load_history(io.BytesIO(text.encode()), form)


def stated(history: History) -> list[object]:
    return [history.version(op) for op in range(history.columns.operations())]


def test_edn_states_versions_beside_values():
    """And says once that they are ordered; the verdict's notes count them."""
    history = read(EDN)
    assert history.format == "edn"
    assert stated(history) == [12, None, 12]
    assert history.columns.versions_ordered
    assert history.columns.op_source.tolist() == [-1, -1, 0]
    assert history.notes[-1].startswith("versions, ordered, are stated by 2 operations of 3")


def test_json_says_the_same():
    """With null for nil."""
    text = """{"versions": "ordered"}
{"process": 0, "type": "ok", "f": "txn", "value": [["w", "x", 1], ["r", "y", null]],
 "versions": [12, null]}
{"process": 1, "type": "ok", "f": "txn", "value": [["r", "x", 1]], "versions": [12]}
"""
    history = read(text)
    assert (history.format, stated(history)) == ("jepsen-json", [12, None, 12])
    assert history.columns.versions_ordered


@pytest.mark.parametrize("form", ["edn", "jepsen-json"])
@pytest.mark.parametrize("versions", [[3, None], ["3(0,1)", "é"], [2**63 - 1, -5]])
def test_what_is_written_is_read_again(form, versions):
    """Versions are no sources then, which these formats cannot say."""
    history = History.from_transactions(
        [
            Transaction([("w", "x", 1), ("w", "y", 1)], versions=versions),
            Transaction([("r", "x", 1)], versions=versions[:1]),
            Transaction([("w", "z", 1)], status="aborted"),
        ]
    )
    out = io.BytesIO()
    write_history(history, out, format=form)
    again = read(out.getvalue().decode(), form)
    assert stated(again) == stated(history) == [*versions, *versions[:1], None]
    assert again.columns.op_source.tolist() == history.columns.op_source.tolist()


def test_other_formats_leave_them_out_if_they_may(tmp_path):
    """Or refuse."""
    history = read(EDN)
    with pytest.raises(HistoryError, match=r"versions cannot be expressed.*drop versions"):
        save_history(history, tmp_path / "h.txt", renumber=True)
    save_history(history, tmp_path / "h.txt", renumber=True, drop=["versions"])
    assert not load_history(tmp_path / "h.txt").columns.has_versions


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (":value [[:w :x 1]], :versions [1 2]", ":versions of 2 operations, :value of 1"),
        (":value [[:append :x 1]], :versions [1]", "is about a list"),
        (":value [[:r :x [1]]], :versions [1]", "is about a list"),
        (":value [[:r-in :x [1]]], :versions [1]", "set of values"),
        (":value [[:w :x 1]], :versions 7", "expected the versions"),
        (
            ':value [[:w :x 1]], :versions ["a"]}\n{:versions :ordered',
            "although versions are ordered",
        ),
        (":value [[:w :x 1]], :versions :ordered", "a map of its own"),
        (":value [[:w :x 1]], :versions [1", "expected a value"),
    ],
)
def test_mistakes_are_told_with_their_line(line, message):
    """Nothing is guessed."""
    with pytest.raises((HistoryError, UnsupportedError), match=message):
        read(f"{{:type :ok, :process 0, {line}}}\n", "edn")


@pytest.mark.parametrize(
    ("ops", "versions", "message"),
    [
        ([("w", "x", 1)], [1, 2], "got 2, expected one for each of 1"),
        ([("append", "x", 1)], [1], "not an operation on a register"),
        ([("r", "x", [1])], [1], "not an operation on a register"),
        ([("w", "x", 1)], ["a"], "not a 64-bit integer"),
        ([("r", "x", 1, "initial")], [1], "states both its source and its version"),
    ],
)
def test_mistakes_of_transactions_in_python(ops, versions, message):
    """Likewise."""
    with pytest.raises(HistoryError, match=message):
        History.from_transactions([Transaction(ops, versions=versions)], versions="ordered")


def test_parts_and_copies_keep_what_is_stated():
    """With the sources that they had in the whole."""
    history = read(EDN)
    assert stated(sub_history(history, [2])) == [12]
    copy = pickle.loads(pickle.dumps(history.columns))
    assert copy.op_version.tolist() == history.columns.op_version.tolist()
    assert copy.versions_ordered
    transaction = history.transaction(0)
    assert transaction.versions == [12, None]
    assert transaction.ops[1] == ("r", history.key_object(1), None)


def test_a_declared_initial_transaction_has_versions_too():
    """A read of one of them reads from T0."""
    history = History.from_transactions(
        [
            Transaction([("w", "x", 1)], status="initial", versions=[4]),
            Transaction([("r", "x", 1)], versions=[4]),
        ]
    )
    assert history.columns.op_source.tolist() == [-1, 0]
    again = load_history(io.BytesIO(EDN.encode()), initial=1)
    assert again.columns.op_source.tolist() == [-1, -1, 0]


def test_a_recorder_writes_them(tmp_path):
    """As they are said, or once COMMIT has told them."""

    class Connection:
        def __init__(self):
            self.installed = {"y": 7}

        def commit(self):
            pass

        def rollback(self):
            pass

    path = tmp_path / "h.edn"
    with Recorder(path, versions="ordered") as recorder:
        with recorder.transaction("a") as t:
            t.write("x", 1, version=5)
        with recorder.transaction("b", Connection()) as t:
            t.read("x", 1, version=5)
            t.write("y", 2)
            t.write("y", 3)
    history = load_history(path)
    assert stated(history) == [5, 5, None, 7]
    assert history.columns.versions_ordered


def test_a_stream_refuses_them(tmp_path):
    """The version of a read may be written by what comes later."""
    path = tmp_path / "log"
    path.write_text(EDN.partition("\n")[2])
    with pytest.raises(UnsupportedError, match=":versions cannot be followed"):
        list(Stream([path], follow=False))
