"""Facts that only may have decided an answer: ``:perhaps``."""

import io
import random
from itertools import permutations

import pytest
from support.cli import run_here

import isolang
from isolang.errors import HistoryError
from isolang.history import save_history
from isolang.options import Options
from isolang.pipeline.levels import least_clock_error, levels_of

PERHAPS = """\
{:index 0, :type :invoke, :process 0, :time 1, :f :txn, :value [[:w :y 1]]}
{:index 1, :type :invoke, :process 1, :time 2, :f :txn, :value [[:w :x 1]]}
{:index 2, :type :ok, :process 0, :time 3, :f :txn, :value [[:w :y 1]], :callers ["a.py:1"], \
:perhaps [[0 [:r :x nil] "" "a.py:7" ""]]}
{:index 3, :type :ok, :process 1, :time 4, :f :txn, :value [[:r :y nil] [:w :x 1]]}
"""


def read(text, **options):
    return isolang.load_history(io.BytesIO(text.encode()), "edn", **options)


def test_a_violation_with_possible_facts_alone_is_unknown():
    history = read(PERHAPS)
    verdict = isolang.check(history, "ser")
    assert (verdict.outcome, verdict.cause) == ("unknown", "possible facts")
    assert "r(:x, nil)" in verdict.reason
    assert isolang.check(history, "si").outcome == "valid"
    assert isolang.check(read(PERHAPS, possible_facts="ignore"), "ser").outcome == "valid"
    assert isolang.check(read(PERHAPS, possible_facts="count"), "ser").outcome == "invalid"


def test_a_violation_of_certain_facts_stays_one():
    text = PERHAPS.replace("[:w :y 1]], :callers", "[:r :x nil] [:w :y 1]], :callers")
    assert isolang.check(read(text), "ser").violation.anomaly == "write skew"


def test_a_level_is_satisfied_only_with_all_facts():
    levels = levels_of(read(PERHAPS), Options()).levels
    assert levels["ser"].standing == "unknown"
    assert levels["ser"].reason == (
        "depends on facts that only may have decided an answer (write skew)"
    )
    assert levels["si"].standing == "satisfied"
    certain = PERHAPS.replace(":perhaps [[0 [:r :x nil]", ":perhaps [[0 [:r :z nil]")
    assert levels_of(read(certain), Options()).levels["ser"].standing == "satisfied"
    violated = PERHAPS.replace("[:w :y 1]], :callers", "[:r :x nil] [:w :y 1]], :callers")
    assert levels_of(read(violated), Options()).levels["ser"].standing == "violated"


def test_commands_count_all_facts(tmp_path, capfd):
    path = tmp_path / "run.edn"
    path.write_text(PERHAPS)
    assert run_here(capfd, "levels", "--at-least", "ser", path).code == 3
    run = run_here(capfd, "check", "-s", "si", path)
    assert (run.code, "strongest satisfied: strong-si;" in run.out) == (0, True)
    assert run_here(capfd, "predict", "--at", "si", path).code == 2
    assert "1 fact that only may have" in run_here(capfd, "stats", path).err


def test_predictions_have_certain_facts(tmp_path, capfd):
    path = tmp_path / "run.edn"
    path.write_text(PERHAPS.replace(":r :x nil", ":r :z nil"))
    run = run_here(capfd, "predict", "--at", "si", path)
    assert (run.code, "1 fact that only may have decided an answer" in run.out) == (3, True)


def test_a_clock_error_explains_all_facts():
    """Not only the certain ones, and not if others were not seen."""
    text = """\
{:type :invoke, :process 0, :time 1000, :value [[:w :x 1]]}
{:type :ok, :process 0, :time 2000, :value [[:w :x 1]], :times [[1100 1200]]}
{:type :invoke, :process 1, :time 3000, :value [[:r :x nil]]}
{:type :ok, :process 1, :time 4000, :value [[:r :x nil]], :times [[3100 3200]]%s}
"""
    assert least_clock_error(read(text % ""), "sser")
    assert least_clock_error(read(text % ", :perhaps [[1 [:r :x 2]]]"), "sser") is None
    lacking = text % "" + ';:unseen {"limits": ["rows (1)"]}\n'
    assert least_clock_error(read(lacking), "sser") is None
    assert least_clock_error(read(lacking, allow_unseen=["limits"]), "sser")


@pytest.mark.parametrize("text", [PERHAPS, PERHAPS + ';:unseen {"limits": ["rows (1)"]}\n'])
def test_edn_keeps_what_a_history_lacks(tmp_path, text):
    into = tmp_path / "other.edn"
    history = read(text)
    report = save_history(history, into)
    assert "1 fact that only may have decided an answer, as :perhaps" in report.notes
    again = isolang.load_history(into)
    assert (again.possible_facts, again.unseen) == (1, history.unseen)
    assert isolang.check(again, "ser").outcome == "unknown"
    assert isolang.check(again.with_all_facts(), "ser").outcome == "invalid"


def test_other_formats_say_that_they_cannot(tmp_path, capfd):
    path = tmp_path / "run.edn"
    text = PERHAPS.replace(" :x", ' "x"').replace(" :y", ' "y"')
    path.write_text(text + ';:unseen {"limits": ["rows (1)"]}\n')
    run = run_here(capfd, "convert", path, tmp_path / "o.json", "--to", "jepsen-json")
    assert "left out: 1 fact that only may have decided an answer" in run.err
    assert "left out: not seen: rows (1)" in run.err


@pytest.mark.parametrize(
    ("perhaps", "message"),
    [
        ("[[:r :x nil]]", "not an operation of :perhaps"),
        ("[[2 [:r :x nil]]]", "the places of :perhaps"),
        ("nil", "not a vector"),
    ],
)
def test_a_malformed_field_is_refused(perhaps, message):
    text = f"{{:type :ok, :process 0, :value [[:w :y 1]], :perhaps {perhaps}}}\n"
    with pytest.raises(HistoryError, match=message):
        isolang.check(read(text), "ser")


def test_a_field_in_a_map_of_several_lines_is_refused():
    """Rather than ignored."""
    with pytest.raises(HistoryError, match=":2: a map with :perhaps must be alone on one line"):
        read("{:type :ok, :process 0, :value [[:w :y 1]]\n :perhaps [[0 [:r :y nil]]]}\n")
    with pytest.raises(HistoryError, match=":1: :perhaps without :value"):
        isolang.check(read("{:type :ok, :perhaps [[0 [:r :y nil]]]\n :value [[:w :y 1]]}"), "ser")
    assert read('{:type :ok, :process 0, :value [[:w :y ", :perhaps ["]]}\n').counts()["keys"] == 1


# --- brute force: no level is judged by the code above ---


def serial(transactions):
    """Whether some order of transactions gives every read its value."""
    for order in permutations(transactions):
        rows = {}
        for operations in order:
            own = dict(rows)
            for kind, key, value in operations:
                if kind == "r" and own.get(key) != value:
                    break
                if kind == "w":
                    own[key] = value
            else:
                rows = own
                continue
            break
        else:
            return True
    return False


def line(number, operations, possible):
    """A transaction in EDN, with the operations at some places in :perhaps."""

    def text(operation):
        kind, key, value = operation
        return f"[:{kind} :{key} {'nil' if value is None else value}]"

    certain, perhaps = [], []
    for place, operation in enumerate(operations):
        if place in possible:
            perhaps.append(f"[{len(certain)} {text(operation)}]")
        else:
            certain.append(text(operation))
    return (
        f"{{:type :ok, :process {number}, :value [{' '.join(certain)}]"
        f", :perhaps [{' '.join(perhaps)}]}}\n"
    )


def test_random_histories_agree_with_brute_force():
    """INVALID exactly if the certain facts are, VALID exactly if all are."""
    chance = random.Random(4)
    outcomes = set()
    for turn in range(24):
        transactions, values = [], {"x": [None], "y": [None]}
        for number in range(3):
            operations = []
            for key in chance.sample("xy", 2):
                operations.append(("r", key, chance.choice(values[key])))
                if chance.random() < 0.6:
                    operations.append(("w", key, number + 1))
            transactions.append(operations)
            for kind, key, value in operations:
                if kind == "w":
                    values[key].append(value)
        possible = [
            {
                at
                for at, (kind, *_) in enumerate(operations)
                if kind == "r" and chance.random() < 0.4
            }
            for operations in transactions
        ]
        certain = [
            [operation for at, operation in enumerate(operations) if at not in possible[number]]
            for number, operations in enumerate(transactions)
        ]
        text = "".join(map(line, range(3), transactions, possible))
        expected = "unknown"
        if not serial(certain):
            expected = "invalid"
        elif serial(transactions):
            expected = "valid"
        assert isolang.check(read(text), "ser-nosession").outcome == expected, text
        if not turn % 6:
            standing = {"valid": "satisfied", "invalid": "violated"}.get(expected, "unknown")
            levels = levels_of(read(text), Options(), explained=False).levels
            assert levels["ser-nosession"].standing == standing, text
        outcomes.add(expected)
    assert outcomes == {"valid", "invalid", "unknown"}


@pytest.mark.parametrize(("more", "noted"), [("", True), (", :perhaps [[0 [:r :y 7]]]", False)])
def test_no_note_promises_a_valid_verdict(tmp_path, capfd, more, noted):
    """That one would be unknown, or depend on possible facts."""
    path = tmp_path / "run.edn"
    path.write_text(f"{{:type :ok, :process 0, :value [[:r :x 1]]{more}}}\n")
    run = run_here(capfd, "check", "-s", "ser", path)
    assert (run.code, "then valid" in " ".join(run.out.split())) == (1, noted)
