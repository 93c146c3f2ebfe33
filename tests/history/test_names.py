"""Labels and levels of transactions, through readers, writers, Python and the recorder."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import pytest

from isolang import History, Recorder, Transaction
from isolang.api import load_history
from isolang.errors import HistoryError
from isolang.history.select import sub_history
from isolang.history.writers import write_history

EDN = """\
{:index 0, :type :invoke, :process 0, :value [[:w :x 1]], :label [:audit "n1" 7], :level :ser}
{:index 1, :type :ok, :process 0, :value [[:w :x 1]], :level "ser"}
{:index 2, :type :ok, :process 1, :value [[:r :x 1]], :label audit, :level nil}
{:index 3, :type :ok, :process 2, :value [[:r :x 1]], :label []}
"""
JSON = '{"type":"ok","process":1,"value":[["w",1,1]],"label":["b","a"],"level":"rc"}\n'


def names(history: History) -> list[tuple[tuple[str, ...], str]]:
    return [(history.labels_of(t), history.level_of(t)) for t in range(history.t0 + 1)]


def test_names_are_read() -> None:
    """Keywords, strings, symbols and numbers are names; either map of a transaction has them."""
    history = load_history(io.BytesIO(EDN.encode()), format="edn")
    found = names(history)
    assert [(sorted(labels), level) for labels, level in found] == [
        (["7", "audit", "n1"], "ser"),
        (["audit"], ""),
        ([], ""),
        ([], ""),
    ]
    assert "labels of transactions: audit (2), 7 (1), n1 (1)" in history.notes
    assert "requested levels: ser (1)" in history.notes
    read = load_history(io.BytesIO(JSON.encode()), format="jepsen-json")
    assert (set(read.labels_of(0)), read.level_of(0)) == ({"a", "b"}, "rc")


@pytest.mark.parametrize("form", ["edn", "jepsen-json"])
def test_names_are_written(form: str) -> None:
    """What is written is read again, quotes and all; other formats refuse, or leave them out."""
    history = History.from_transactions(
        [
            Transaction([("w", 1, 1)], session=0, label='a "b"', level="ser"),
            Transaction([("r", 1, 1)], session=1, label=("x", "y")),
            Transaction([("r", 1, 1)], session=2),
        ]
    )
    out = io.BytesIO()
    write_history(history, out, format=form)
    again = load_history(io.BytesIO(out.getvalue()), format=form)
    assert names(again) == names(history)
    assert [t.label for t in again.transactions()] == ['a "b"', ("x", "y"), None]
    assert [t.level for t in again.transactions()] == ["ser", None, None]
    with pytest.raises(HistoryError, match="labels and levels of transactions cannot be expressed"):
        write_history(history, io.BytesIO(), format="plume")
    report = write_history(history, io.BytesIO(), format="plume", drop=["labels"])
    assert "left out: labels and levels" in report.notes


def test_names_go_along() -> None:
    """Parts of a history, copies and pickles have the names of their transactions."""
    history = load_history(io.BytesIO(EDN.encode()), format="edn")
    assert names(pickle.loads(pickle.dumps(history))) == names(history)
    part = sub_history(history, [1])
    assert part.labels_of(0) == ("audit",)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{:type :ok, :process 0, :value [], :level [a b]}", "a :level of several names"),
        ("{:type :ok, :process 0, :value [], :label [a", "the file ends inside"),
        ("{:type :ok, :process 0, :value [], :label [{}]}", "line 1: expected a string, a keyword"),
        ("{:type :ok, :process 0, :value [], :label [:a [:b]]}", "number for :label .got '\\['"),
        ("{:type :ok, :process 0, :value [], :level #{:a}}", "number for :level .got '#' at"),
        (
            "{:type :invoke, :process 0, :value [], :level a}\n"
            "{:type :ok, :process 0, :value [], :level b}",
            "another :level than that of the invocation",
        ),
    ],
)
def test_names_that_are_none(line: str, what: str) -> None:
    """What is wrong is said with its line."""
    with pytest.raises(HistoryError, match=what):
        load_history(io.BytesIO(line.encode()), format="edn")


def test_labels_in_python_are_names() -> None:
    """Nothing but text is a label or a level."""
    for wrong in ({"label": 3}, {"label": [1]}, {"level": 3}):
        with pytest.raises(HistoryError, match="expected"):
            History.from_transactions([Transaction([], **wrong)])


def test_the_recorder_notes_names(tmp_path: Path) -> None:
    """A recorded transaction has its labels and its level."""
    with Recorder(tmp_path / "h.edn") as recorder:
        with recorder.transaction("a", label="audit", level="ser") as t:
            t.write("x", 1)
        with recorder.transaction("b", label=("p", "q")) as t:
            t.read("x", 1)
        history = recorder.history()
    assert names(history)[:2] == [(("audit",), "ser"), (("p", "q"), "")]
