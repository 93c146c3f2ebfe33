"""A stranger's predicate reads overlook rows as its other reads do."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from foresee import rows_by_schedule as schedules
from foresee import with_predicates as rows
from foresee.with_predicates import Rows, Statement

import isolang
from isolang import History, Transaction, predict
from isolang.history.remarks import UNIQUE_COMMENT, read_column_forms, read_unique_indexes

WEAK = ("si", "ra", "cc", "rc")
PROFILES = ("postgresql-repeatable-read", "postgresql-read-committed")

SCAN = Statement("scan")
Case = tuple[str, tuple[int, ...], list[list[Statement]], dict[str, int | None]]


def get(key: str, number: int = 0, lock: str = "") -> Statement:
    return Statement("get", key, number=number, lock=lock)


def write(key: str, value: int, number: int = 0) -> Statement:
    return Statement("write", key, value, number=number)


def delete(key: str, number: int = 0) -> Statement:
    return Statement("delete", key, number=number)


def scan(number: int, lock: str = "") -> Statement:
    return Statement("scan", number=number, lock=lock)


# --- agreement with the definitions ---


def predictions(brute_force: ModuleType, at: str, seed: int, n: int, count: int) -> int:
    """Check that brute force and the search agree; return how many runs have a prediction."""
    yes = 0
    for run in brute_force.random_runs(seed, n, count):
        expected, searched = brute_force.compared(run, at)
        assert searched == expected, run.programs
        yes += expected[1]
    return yes


@pytest.mark.parametrize("at", WEAK)
def test_a_few_runs_agree_with_the_definitions(at: str) -> None:
    """Nothing is missed, and nothing is extra."""
    predictions(rows, at, 7, 3, 25)


@pytest.mark.slow
@pytest.mark.parametrize("at", WEAK)
@pytest.mark.parametrize(("seed", "n", "count"), [(8, 3, 250), (9, 4, 25)])
def test_the_search_predicts_what_the_definitions_do(
    at: str, seed: int, n: int, count: int
) -> None:
    """Nothing is missed, and nothing is extra, for both rules."""
    assert predictions(rows, at, seed, n, count)


@pytest.mark.parametrize("at", PROFILES)
def test_a_few_runs_agree_with_all_schedules(at: str) -> None:
    """Of a database with locks and unique indexes."""
    predictions(schedules, at, 7, 3, 25)


@pytest.mark.slow
@pytest.mark.parametrize("at", PROFILES)
@pytest.mark.parametrize(("seed", "n", "count"), [(8, 3, 300), (9, 4, 60)])
def test_the_search_predicts_what_schedules_do(at: str, seed: int, n: int, count: int) -> None:
    """Nothing is missed, and nothing is extra, for both rules."""
    assert predictions(schedules, at, seed, n, count)


ONCE_MISTAKEN: list[Case] = [
    # Another transaction shows the row first, so that its absence proves something later.
    ("ra", (0, 1, 2), [[get("x"), delete("x")], [SCAN, get("x"), write("x", 0)], [write("x", 1)]],
     {"x": None, "y": 0}),
    ("rc", (0, 0, 1), [[get("x"), delete("x")], [SCAN], [write("x", 1), SCAN]],
     {"x": None, "y": 1}),
    # The absence of a row proves that one transaction was seen, if another is overlooked.
    ("ra", (0, 1, 2), [[get("y"), write("y", 0)], [write("y", 0), get("x"), write("x", 1)],
                       [SCAN, SCAN]], {"x": None, "y": 1}),
    # The stranger notices a write only after an earlier transaction of the writer's session.
    ("si", (0, 1, 1), [[SCAN, write("y", 1), get("z")], [get("x"), write("x", 1)],
                       [get("x"), write("x", 0), SCAN]], {"x": 0, "y": 0, "z": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("at", "sessions", "programs", "initial"), ONCE_MISTAKEN)
def test_a_run_that_was_once_missed(
    at: str,
    sessions: tuple[int, ...],
    programs: list[list[Statement]],
    initial: dict[str, int | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the second rule predicts something."""
    monkeypatch.setattr(rows, "KEYS", tuple(initial))
    expected, searched = rows.compared(Rows(sessions, programs, initial), at)
    assert searched == expected == (False, True)


BY_SCHEDULE: list[tuple[Case, bool]] = [
    # A row that is not there is not locked.
    (("postgresql-repeatable-read", (0, 1, 0),
      [[write("y", 1, 1), get("x", 3, "share")],
       [write("x", 0, 1), scan(2, "share"), get("x", 3, "share")], [write("y", 1, 1)]],
      {"x": None, "y": None}), True),
    # A row that nobody writes is locked.
    (("postgresql-read-committed", (0, 1, 2),
      [[delete("x", 1)], [scan(1, "update"), scan(2)], [write("x", 1, 1), scan(2, "share")]],
      {"x": 1, "y": 1}), False),
    # A statement that writes the rows that it finds must find the same rows.
    (("postgresql-read-committed", (0, 1, 1),
      [[write("x", 0, 1)], [scan(1), write("x", 1, 2)],
       [scan(1), scan(2), delete("x", 2), scan(3)]], {"x": 0, "y": 0}), False),
    # A third transaction deletes the row that would be locked.
    (("postgresql-read-committed", (0, 1, 2),
      [[scan(1), delete("x", 1)], [delete("y", 1), write("x", 1, 3)],
       [scan(1, "update"), scan(2, "share")]], {"x": 1, "y": 0}), True),
    # An INSERT succeeds if a transaction that does not depend on anything deletes the row first.
    (("postgresql-read-committed", (0, 1, 2),
      [[delete("x", 2)], [write("y", 1, 1), write("x", 1, 2)],
       [get("y", 1, "update"), scan(2), delete("x", 2), delete("y", 2), scan(3)]],
      {"x": 0, "y": None}), True),
    # An INSERT fails if only the stranger, which has not ended, deletes the row.
    (("postgresql-read-committed", (0, 1, 0, 2),
      [[write("y", 0, 1), scan(2), scan(3), delete("x", 3)], [scan(1), write("y", 2, 2)],
       [get("x", 1, "update")], [write("x", 1, 1), scan(3)]], {"x": 1, "y": 0}), False),
    (("postgresql-read-committed", (0, 1),
      [[scan(1), scan(2), delete("x", 2)], [write("x", 1, 1)]], {"x": 1, "y": 0}), False),
    # The stranger and an earlier transaction delete the row, and one inserts it in between.
    (("postgresql-read-committed", (0, 1, 2, 3),
      [[delete("x", 1)], [write("x", 1, 1)], [scan(1), scan(2), delete("x", 3)],
       [write("x", 1, 1), write("y", 1, 2)]], {"x": 0, "y": 0}), True),
    # A transaction that does not depend on anything writes the row that an overlooked one deletes.
    (("postgresql-read-committed", (0, 1, 2, 3),
      [[scan(1)], [scan(1), scan(2), write("y", 2, 2)], [write("x", 1, 2)], [delete("x", 2)]],
      {"x": 0, "y": 1}), True),
    # An INSERT fails if the row that another transaction deleted is there.
    (("postgresql-read-committed", (0, 1, 1),
      [[scan(1), scan(2), delete("y", 2)],
       [get("x", 1, "share"), scan(2, "share"), get("x", 3)], [write("y", 1, 1)]],
      {"x": 0, "y": 1}), False),
]  # fmt: skip


@pytest.mark.parametrize(("case", "predicted"), BY_SCHEDULE)
def test_a_run_whose_schedules_were_once_mistaken(case: Case, predicted: bool) -> None:
    """Locks, statements that write what they find, and unique indexes."""
    at, sessions, programs, initial = case
    expected, searched = schedules.compared(Rows(sessions, programs, initial), at)
    assert searched == expected
    assert expected[1] == predicted


# --- what applications do ---

ROOM = {"table": "booking", "where": ("=", "room", 7)}


def test_two_bookings_of_one_room_are_predicted() -> None:
    """Each counts the guests, and does not see the other's."""
    run = History.from_transactions([
        Transaction([("scan", ROOM, {}), ("insert", ("booking", 1), {"room": 7, "of": "a"})],
                    session="a", label="book('a')"),
        Transaction([("scan", ROOM, {("booking", 1): {"room": 7, "of": "a"}}),
                     ("insert", ("booking", 2), {"room": 7, "of": "b"})],
                    session="b", label="book('b')"),
    ])  # fmt: skip
    for at in (*WEAK, *PROFILES):
        (prediction,) = predict(run, at).found
        assert prediction.programs == ("book", "book", "book")
        (changed,) = prediction.changed
        assert (changed.recorded, changed.predicted) == ("T1", "")


def test_a_branch_that_the_run_does_not_show_is_left_out() -> None:
    """A program that books or refuses may do anything if it finds a number never found before.

    A program of which the run shows only one sequence is assumed to do the same.
    """
    first, second = (("booking", n) for n in (1, 2))
    row = {"room": 7}
    transactions = [
        Transaction([("scan", ROOM, {}), ("insert", first, row)], session="a", label="block()"),
        Transaction([("scan", ROOM, {first: row}), ("insert", second, row | {"of": "b"})],
                    session="b", label="book('b')"),
    ]  # fmt: skip
    refused = Transaction([("scan", ROOM, {first: row, second: row | {"of": "b"}})],
                          session="c", label="book('c')")  # fmt: skip
    for at in (*WEAK, *PROFILES):
        assert predict(History.from_transactions(transactions), at).found
        predictions = predict(History.from_transactions([*transactions, refused]), at)
        assert not predictions.found
        assert "the run does not show which ones" in " ".join(predictions.gave_up)


def recorded(folder: Path, *, unique: str) -> History:
    """A check for a name, and the insert of a row with this name, twice."""
    name = '[:rp {:table "user" :where [:= :name "%s"]} {}]'
    row = '[:insert ["user" "%s"] {"id" %s "name" "%s" "xmin" "%s(0,1)"}]'
    path = folder / "users.edn"
    first = f"[{name % 'ann'} {row % (1, 1, 'ann', 801)}]"
    renamed = '[:r ["user" "1"] {"id" 1 "name" "ann" "xmin" "801(0,1)"}] ' \
        '[:w ["user" "1"] {"id" 1 "name" "bob" "xmin" "802(0,2)"}]'  # fmt: skip
    second = f"[{name % 'ann'} {row % (2, 2, 'ann', 803)}]"
    path.write_text(
        f'{{:type :ok, :process 0, :value {first}, :statements ["1" "2"]}}\n'
        f'{{:type :ok, :process 1, :value [{renamed}], :statements ["1" "1"]}}\n'
        f'{{:type :ok, :process 2, :value {second}, :statements ["1" "2"]}}\n{unique}'
    )
    return isolang.load_history(path)


def test_a_row_that_holds_a_unique_index_cannot_be_overlooked_by_an_insert(tmp_path: Path) -> None:
    """The server makes the INSERT wait or fail; an index over other columns does not matter."""
    at = "postgresql-read-committed"
    assert predict(recorded(tmp_path, unique=""), at).found
    by_name = UNIQUE_COMMENT + '{"user": [["id"], ["name"]]}\n'
    assert not predict(recorded(tmp_path, unique=by_name), at).found
    by_key = UNIQUE_COMMENT + '{"user": [["id"]]}\n;:columns {"user": {"at": "date"}}\n'
    history = recorded(tmp_path, unique=by_key)
    assert predict(history, at).found
    path = history.files[0]
    assert read_unique_indexes(path) == {"user": [["id"]]}
    assert read_column_forms(path) == {"user": {"at": "date"}}


# --- what a recording does not know ---

SKEW = """\
{:type :ok, :process 0, :value [[:r ["t" "2"] nil] [:insert ["t" "1"] {"a" 1 "xmin" "1"}]]}
{:type :ok, :process 1, :value [%s[:insert ["t" "2"] {"a" 1 "xmin" "2"}]]%s}
"""
READ = '[:r ["t" "1"] {"a" 1 "xmin" "1"}]'


def test_a_prediction_does_not_rest_on_a_possible_fact(tmp_path: Path) -> None:
    """Nothing is predicted about a read that may have decided nothing, and this is said."""
    path = tmp_path / "run.edn"
    path.write_text(SKEW % (READ, ""))
    assert predict(isolang.load_history(path), "rc").found
    path.write_text(SKEW % ("", f", :perhaps [[0 {READ}]]"))
    predictions = predict(isolang.load_history(path), "rc")
    assert (predictions.outcome, predictions.gave_up) == (
        "gave up",
        (f"the search does not consider everything: {isolang.load_history(path).lacking()}",),
    )
    predictions = predict(isolang.load_history(path), "psi", "si")
    assert "1 of 2 transactions were left out" in " ".join(predictions.gave_up)


def test_what_was_not_seen_is_named(tmp_path: Path) -> None:
    """Nothing found is then not "nothing found"."""
    path = tmp_path / "run.edn"
    path.write_text(
        '{:type :ok, :process 0, :value [[:r "x" nil]]}\n'
        '{:type :ok, :process 1, :value [[:r "x" nil]]}\n;:unseen {"limits": ["2 rows (1)"]}\n'
    )
    predictions = predict(isolang.load_history(path), "rc")
    assert predictions.outcome == "gave up"
    assert predictions.gave_up == ("the search does not consider everything: not seen: 2 rows (1)",)
    allowed = isolang.load_history(path, allow_unseen=["limits"])
    assert predict(allowed, "rc").outcome == "nothing found"
