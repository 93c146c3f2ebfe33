"""The statements of recordings: read, kept by writers, refused where they are wrong."""

import json

import pytest

import isolang
from isolang.errors import HistoryError
from isolang.foresee.extract import extract
from isolang.history.objects import operation_statements
from isolang.history.statements import SentStatement
from isolang.run.record.recorder import Recorder

ONE = (
    "{:index 0, :type :invoke, :process 0, :f :txn, :value []}\n"
    "{:index 1, :type :ok, :process 0, :f :txn, :value "
    '[[:r "x" nil] [:r "y" nil] [:w "x" ", :statements ["]]%s}\n'
)


@pytest.fixture
def read(tmp_path):
    """Write a history, and read it."""

    def read(text, name="history.edn"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return isolang.load_history(path)

    return read


def test_each_operation_has_its_statement(read):
    """An empty text says nothing; texts in values are no fields."""
    history = read(ONE % ', :statements ["1 for share" "" "2"], :error "E: [1]"')
    assert history.statements_of(0) == (SentStatement(1, "share"), None, SentStatement(2))
    assert read(ONE % "").statements_of(0) == ()


@pytest.mark.parametrize("suffix", [".edn", ".json"])
def test_writers_keep_them(read, tmp_path, suffix):
    """A saved history has the same statements, and so has one that is saved again."""
    texts = ["1 for no key update holding advisory/7", "", "2 holding a b:shared shown"]
    history = read(ONE % f", :statements {json.dumps(texts)}")
    before = history.statements_of(0)
    assert before == (
        SentStatement(1, "no key update", holds=("advisory/7",)), None,
        SentStatement(2, shown=True, holds=("a", "b:shared")),
    )  # fmt: skip
    for n in range(2):
        path = tmp_path / f"saved-{n}{suffix}"
        isolang.save_history(history, path)
        history = isolang.load_history(path)
        assert history.statements_of(0) == before
    report = isolang.save_history(
        read(ONE.replace('"', "").replace(", :statements [", "1") % ', :statements ["1" "" "2"]'),
        tmp_path / "plain.edn",
    )
    assert not report.notes


def test_other_formats_say_that_they_leave_them_out(read, tmp_path):
    """What a format cannot express is not lost silently."""
    line = '{:type :ok, :process 0, :value [[:r 1 nil] [:w 1 2]], :statements ["1" "1"]}\n'
    report = isolang.save_history(read(line), tmp_path / "history.hist")
    assert any("statements" in note for note in report.notes)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ('["1" "2"]', "wrong number of statements (got 2, expected one for each of 3 operations)"),
        ('["1" "2" "0"]', "not a statement number (got '0'"),
        ('["1" "2" "2 holding"]', "not a statement number (got '2 holding'"),
        ('["1" "2" "2 for key"]', "not a statement number (got '2 for key'"),
        ("[1 2 3]", "not a statement number (got '1 2 3]"),
        ('["2" "" "1"]', "the statements are out of order (got 1 after 2"),
    ],
)
def test_fields_of_another_form_are_refused(read, field, message):
    """The message has the line, and what was expected."""
    with pytest.raises(HistoryError) as error:
        read(ONE % f", :statements {field}").statements_of(0)
    assert message in str(error.value)
    assert "history.edn:2: " in str(error.value)


def test_a_json_field_may_stand_in_a_list(read):
    """Each map of the list has a line of its own."""
    event = {"type": "ok", "process": 0, "value": [["r", "x", None]], "statements": ["4"]}
    history = read(f"[{json.dumps(event)},\n{json.dumps(event)}]\n", "history.json")
    assert [history.statements_of(t) for t in range(2)] == [(SentStatement(4),)] * 2
    with pytest.raises(HistoryError, match=r"not a statement number \(got .*, no list"):
        read(json.dumps({**event, "statements": "4"}), "other.json").statements_of(0)


def test_predicate_reads_are_one_operation(read):
    """In the columns, their rows all have their statement."""
    history = read(
        '{:type :ok, :process 1, :value [[:insert ["t" 1] {:n 1}] [:insert ["t" 2] {:n 2}]]}\n'
        '{:type :ok, :process 0, :value [[:w ["t" 3] {:n 3}] '
        '[:rp {:table "t" :where [:> :n 0]} {["t" 1] {:n 1}, ["t" 2] {:n 2}, ["t" 3] {:n 3}}] '
        '[:w ["t" 3] {:n 0}]], :statements ["1" "2" "3"]}\n'
    )
    numbers = [one and one.number for one in operation_statements(history, 1)]
    assert numbers == [1, 2, 2, 2, 3]


def test_a_recorder_notes_them(tmp_path):
    """Verdicts and hashes of a history do not depend on them."""
    with Recorder(tmp_path / "recorded.edn") as recorder:
        with recorder.transaction("a") as t:
            t.read("x", None)
            t.statement("update")
            t.read("y", None)
            t.statement()
            t.read("z", None)
            t.write("z", 1)
            with pytest.raises(HistoryError, match=r"unknown lock \(got 'key', expected"):
                t.statement("key")
        history = recorder.history()
    assert [one and str(one) for one in history.statements_of(0)] == [
        None,
        "1 for update",
        "2",
        "2",
    ]
    assert isolang.check(history, "ser").outcome == "valid"


@pytest.mark.parametrize("outcome", ["fail", "info"])
def test_the_operations_of_what_did_not_commit_are_those_of_its_invocation(read, outcome):
    """A completion may state the statements of its own operations, which are others."""
    history = read(
        '{:type :invoke, :process 0, :f :txn, :value [[:w "x" 1]]}\n'
        f"{{:type :{outcome}, :process 0, :f :txn, "
        ':value [[:r "x" nil] [:w "x" 1]], :statements ["1" "2"]}\n'
        '{:type :ok, :process 1, :f :txn, :value [[:r "x" nil]], :statements ["3"]}\n'
    )
    assert [history.statements_of(txn) for txn in range(2)] == [(), (SentStatement(3),)]
    extracted = extract(history)
    assert (extracted.transactions, extracted.ignored) == (1, 1)


def test_they_change_no_verdict(read):
    """A lost update with locks that the database did not hold is still one."""
    text = (
        '{:type :ok, :process 0, :value [[:r "x" nil] [:w "x" 1]]%s}\n'
        '{:type :ok, :process 1, :value [[:r "x" nil] [:w "x" 2]]%s}\n'
    )
    note = ', :statements ["1 for update" "2"]'
    verdicts = [isolang.check(read(text % (one, one)), "si") for one in ("", note)]
    assert [v.outcome for v in verdicts] == ["invalid"] * 2
    assert verdicts[0].violation.anomaly == verdicts[1].violation.anomaly
