"""What recordings say for people beside what is checked: callers and rows."""

import os
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from msgspec import structs

import isolang
from isolang.history import Keyword, sub_history
from isolang.history.remarks import Remark, read_remarks
from isolang.run.record.recorder import Recorder

LINE = (
    "{:index 1, :type :ok, :process 0, :time 3, :f :txn, "
    ':value [[:r "user/7" nil] [:w "user/7" 765]], '
    r':callers ["a, \"b\" [c].py:1" ""], :rows ["{age: 4}" "{age: 4 → 5}"], '
    ':error "E: , :rows [x]"}\n'
)


@pytest.fixture
def read(tmp_path):
    """Write a history, and read it."""

    def read(text):
        path = tmp_path / "history.edn"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return isolang.load_history(path)

    return read


def test_operations_are_shown_with_their_rows(read):
    """Keys of rows stand without quotes, and the columns in place of the value."""
    history = read(LINE)
    assert [history.describe_op(op) for op in range(2)] == [
        "r(user/7 {age: 4})",
        "w(user/7 {age: 4 → 5})",
    ]
    assert history.op_value(1) == "{age: 4 → 5}"
    assert history.remark(0) == Remark('a, "b" [c].py:1', "{age: 4}")
    assert history.value_object(int(history.columns.op_value[1])) == 765


def test_predicate_reads_are_shown_with_their_statements(read):
    """Their predicates may contain other lists, and a transaction may have several."""
    history = read(
        '{:index 0, :type :ok, :f :txn, :process 1, :value [[:w ["t" 1] {:n 1 :v 5}]]}\n'
        "{:index 1, :type :ok, :f :txn, :process 0, :value "
        '[[:rp {:table "t" :where [:and [:> :n 0] [:= :v 5]]} {}] '
        '[:rp {:table "t" :where [:= :n 1]} {["t" 1] {:n 1 :v 5}}] '
        '[:w ["t" 2] {:n 3 :v 6}] [:rp {:table "t" :where [:or [:= :n 1] [:= :n 2]]} {}]], '
        ':callers ["a:1" "a:2" "a:3" "a:4"], '
        ':rows ["not found by A" "not found by B" "{n: 3}" "not found by C"]}\n'
    )
    remarks = [history.remark(op) for op in range(1, len(history.columns.op_kind))]
    assert Remark("a:1", "not found by A") in remarks
    assert Remark("a:3", "{n: 3}") in remarks
    assert Remark("a:4", "not found by C") in remarks


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ('["t" 1]', '{"id" 1 "left" 2 "code" "a"}'),
        ('["t" 1]', '{"text" "two\\nlines\\tand \\u00e9" "id" 1}'),
        ('["t" 1]', '{"price" 1.50, "id" +7, "big" 1e3, "b" 12N}'),
        ('["t"  1]', '{"of" {"y" 1 "x" [1 {"b" 1 "a" 2}]} "in" #{2 1}}'),
        ('("t" 1)', "#{:b :a}"),
        ('["t" 1]', '"a, :callers [ \\"quoted\\""'),
        ('"caf\\u00e9/1"', "(1 2)"),
    ],
)
def test_a_remark_is_found_however_the_operation_is_written(read, key, value):
    """The columns of a row may be in any order, and a string or a number has several forms."""
    history = read(
        f"{{:index 0, :type :ok, :f :txn, :process 0, :value [[:w {key} {value}]], "
        ':callers ["a.py:1"]}\n'
        f"{{:index 1, :type :ok, :f :txn, :process 1, :value [[:r {key} {value}] "
        f"[:rp {{:where :true}} {{{key} {value}}}] [:delete {key}]], "
        ':callers ["a.py:2" "a.py:3" "a.py:4"]}\n'
    )
    callers = [history.remark(op).caller for op in range(len(history.columns.op_kind))]
    assert callers == ["a.py:1", "a.py:2", "a.py:3", "a.py:4"]


def test_a_row_that_a_predicate_read_returned_shows_its_columns(read):
    """Not the text for the rows that the predicate read did not return."""
    history = read(
        '{:type :ok, :f :txn, :process 0, :value [[:w ["t" 1] {"v" 5}]]}\n'
        '{:type :ok, :f :txn, :process 1, :value [[:rp {:where [:= :v 5]} {["t" 1] {"v" 5}}]], '
        ':callers ["a.py:2"], :rows ["not found by SELECT 1"]}\n'
    )
    assert history.remark(1) == Remark("a.py:2", "not found by SELECT 1")
    assert "not found" not in history.describe_op(1)


def test_a_window_looks_for_no_remarks(read, monkeypatch):
    """What is told of a window of a log does not read the log, which may be larger than memory."""
    history = structs.replace(read(LINE), position_unit="byte")
    monkeypatch.setattr("isolang.history.remarks.read_remarks", pytest.fail)
    assert history.describe_op(0) == "r(user/7, nil)"


def test_remarks_change_no_verdict(read, tmp_path):
    """The same history without them has the same transactions, and the same outcome."""
    with Recorder(tmp_path / "recorded.edn") as recorder:
        for session in range(2):
            with recorder.transaction(session) as t:
                t.read("user/7", None)
                t.write("user/7", session)
                t.callers = ["a.py:1", "a.py:2"]
    callers, rows = '"a.py:1" "a.py:2"]', ', :rows ["{age: 4}" "{age: 4 → 5}"]'
    path = tmp_path / "recorded.edn"
    path.write_text(path.read_text().replace(callers, callers + rows))
    history, lines = isolang.load_history(path), path.read_text().splitlines()
    bare = read("".join(line.split(", :callers")[0].removesuffix("}") + "}\n" for line in lines))
    assert bare.remarks() == {} != history.remarks()
    assert list(bare.transactions()) == list(history.transactions())
    verdicts = [isolang.check(one, "si") for one in (bare, history)]
    assert {verdict.outcome for verdict in verdicts} == {"invalid"}
    assert ["{age: 4 → 5}" in str(verdict) for verdict in verdicts] == [False, True]
    assert ["a.py:2 " in str(verdict) for verdict in verdicts] == [False, True]


def test_operations_of_every_kind_have_callers(tmp_path):
    """Whatever keys and values are; in a part of the history, too."""
    with Recorder(tmp_path / "recorded.edn") as recorder:
        with recorder.transaction("a") as t:
            t.caller = lambda: f"app.py:{len(t.operations)}"
            t.read(1, [])
            t.append(1, 2)
            t.write(Keyword("x"), 'a "b" [c]')
            t.write("y z", Decimal("2.50"))
            t.write("when", datetime(2026, 1, 2, 3, 4, tzinfo=UTC))
            t.delete("gone")
            t.read(("t", 7), True)
        history = recorder.history()
    expected = [f"app.py:{place}" for place in range(7)]
    assert [history.remark(op).caller for op in range(7)] == expected
    part = sub_history(history, [2, 5])
    assert [part.remark(op).caller for op in range(2)] == ["app.py:2", "app.py:5"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (' "{age: 4 → 5}"', ""),  # one too few
        ('"{age: 4 → 5}"', '"{age: 4 → 5}" "{}"'),
    ],
)
def test_remarks_of_other_operations_are_none(tmp_path, old, new):
    """What may belong to another operation is not shown."""
    path = tmp_path / "history.edn"
    path.write_text(LINE.replace(old, new))
    assert not read_remarks(str(path)).get(1)


def test_damaged_files_are_no_reason_to_fail(tmp_path):
    """Whatever bytes there are, remarks are found or not; a pipe is not opened."""
    random_ = random.Random(3)
    path = tmp_path / "history.edn"
    for _ in range(300):
        text = bytearray(LINE.encode())
        for _ in range(random_.randrange(1, 4)):
            text[random_.randrange(len(text))] = random_.randrange(256)
        path.write_bytes(bytes(text[: random_.randrange(len(text) + 1)]))
        remarks = read_remarks(str(path))
        assert all(isinstance(of_line, Mapping) for of_line in remarks.values())
    os.mkfifo(tmp_path / "pipe")
    assert read_remarks(str(tmp_path / "pipe")) == read_remarks(str(tmp_path)) == {}
