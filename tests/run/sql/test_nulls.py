"""Rows whose value is NULL: how statements find them, and how a history has them."""

from contextlib import closing

import pytest

import isolang
from isolang.run.operation import (
    DELETED,
    NULL,
    Insert,
    Read,
    Scan,
    SelectRange,
    SelectWhere,
    SetNull,
    Write,
    as_read_only,
    condition_in,
    predicate_of,
    with_available_features,
)
from isolang.run.play.simulate import simulate
from isolang.run.play.transaction import driver_for, play
from isolang.run.record.recorder import Recorder
from isolang.run.targets import target_named

KEYS = ("a", "b", "c")
FOUND = {"null": {"b": None}, "not null": {"a": 1, "c": 9}, "outside": {"a": 1, "c": 9}}


@pytest.mark.parametrize("access", ["index", "any"])
@pytest.mark.parametrize("name", ["sqlite", "duckdb", "memory"])
def test_each_form_of_a_condition_finds_the_same_rows(name, access):
    """NULL is in no range and outside of none; other keys are not asked for."""
    with closing(target_named(name)) as target:
        target.start()
        if name != "memory":
            target.options(level=target.levels[0].name, access=access)
        target.setup([], [])
        with closing(target.connect()) as client:
            client.begin(target.levels[0].name)
            for key, value in (("a", 1), ("b", 5), ("c", 9), ("d", 7)):
                client.insert(key, value)
            assert client.clear("b")
            assert not client.clear("nothing")
            for path in range(4):
                for condition, rows in FOUND.items():
                    client.path = path
                    assert client.where(SelectWhere(condition, KEYS, 4, 6)) == rows
            assert client.read("b") is None
            assert client.select(0, 99) == {"a": 1, "c": 9, "d": 7}
            client.commit()


def recorded(tmp_path, program, found=None):
    """The operations of a program on SQLite, and its verdict; queries for NULL find these rows."""
    with closing(target_named("sqlite")) as target:
        target.start()
        target.setup([], [])
        client = target.connect()
        if found is not None:
            client.where = lambda where: found
        with Recorder(tmp_path / "h.edn") as recorder:
            play(
                program, recorder=recorder, session=0, client=client, driver=driver_for(target),
                level="serializable", rows=True, nulls=True,
            )  # fmt: skip
        client.close()
    history = isolang.load_history(tmp_path / "h.edn")
    (transaction,) = history.transactions()
    return list(transaction.ops), isolang.check(history, "ser").outcome


PROGRAM = (
    Insert("a", 1), Insert("b", 5), SetNull("b"), SetNull("c"), Read("b"), Scan(("a", "b")),
    SelectWhere("null", KEYS), SelectWhere("outside", KEYS, 4, 6), SelectRange(0, 99),
)  # fmt: skip
ROW = {"value": None}


def test_a_row_with_null_is_there(tmp_path):
    """It is read as a row without a value; a key without a row is missing."""
    ops, outcome = recorded(tmp_path, PROGRAM)
    assert ops[2:7] == [("w", "b", ROW), ("r", "c", None), ("r", "b", ROW), ("r", "a", 1),
                        ("r", "b", ROW)]  # fmt: skip
    assert [dict(op[2]) for op in ops[7:]] == [{"b": ROW}, {"a": 1}, {"a": 1}]
    assert outcome == "valid"


@pytest.mark.parametrize("found", [{}, {"b": None, "a": 1}, {"b": 5}])
def test_a_wrong_answer_to_a_query_for_null_is_accused(tmp_path, found):
    """A row that the query forgets, one that has a value, and one with an old value."""
    assert recorded(tmp_path, PROGRAM[:7], found)[1] == "invalid"


@pytest.mark.parametrize(("found", "outcome"), [({}, "valid"), ({"b": None}, "invalid")])
def test_null_outside_of_a_range_is_accused(tmp_path, found, outcome):
    """NOT (v BETWEEN 4 AND 6) is not true of NULL."""
    program = (*PROGRAM[:3], PROGRAM[7])
    assert recorded(tmp_path, program, {"a": 1, **found})[1] == outcome


def test_the_condition_of_a_predicate():
    """The statement of a recorded query is known from its predicate."""
    for condition in FOUND:
        assert condition_in(predicate_of(SelectWhere(condition, KEYS, 4, 6)).text) == condition
    assert condition_in("[:between :value 4 6]") is None


def test_without_nulls_there_are_other_statements():
    """A target without them scans and reads; a client that may not write reads, too."""
    program = (SetNull("a"), SelectWhere("null", KEYS), Write("b", 1))
    assert with_available_features(program, {"nulls"}) == program
    assert with_available_features(program, set()) == (Read("a"), Scan(KEYS), Write("b", 1))
    assert as_read_only(program)[:2] == (Read("a"), SelectWhere("null", KEYS))


def test_simulated_histories_have_nulls():
    """They are valid, and say which rows have no value."""
    history = simulate("queries", transactions=600, seed=3)
    ops = [op for one in history.transactions() for op in one.ops]
    assert any(op[:1] == ("w",) and op[2] == ROW for op in ops)
    assert any(op[0] == "scan" and ":null" in op[1] and op[2] for op in ops)
    assert isolang.check(history, "sser").outcome == "valid"
    assert NULL != DELETED
