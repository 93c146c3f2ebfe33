"""Predicates on databases: what was read and changed is recorded, and anomalies are found."""

from __future__ import annotations

import pytest
from support.servers import started

import isolang
from isolang.run.operation import Change, Delete, Insert, Read, Select, Write
from isolang.run.play.interleave import interleave
from isolang.run.play.transaction import driver_for, play
from isolang.run.record.recorder import Recorder

LEVELS = {"postgres": "repeatable read", "mariadb": "repeatable read"}


@pytest.fixture(scope="module", params=["memory", "sqlite", "duckdb", "postgres", "mariadb"])
def target(request):
    """A database with rows that are loaded with NULL, for each test its own."""
    one = started(request.param, keys=[f"{test}{row}" for test in "abc" for row in "xy"])
    yield one
    one.close()


def transact(target, recorder, client, *program, rows=True):
    """Play a program, which may be a conversation, as one transaction that commits."""
    outcome, error = play(
        program[0] if hasattr(program[0], "send") else program,
        recorder=recorder,
        session=0,
        client=client,
        driver=driver_for(target),
        level=LEVELS.get(target.name, target.levels[0].name),
        rows=rows,
    )
    assert (outcome, error) == ("committed", None)


def test_rows_are_found_changed_and_missed(target, tmp_path):
    """Reads and updates by ranges of values, on what the transaction sees; NULL is in no range."""

    def conversation():
        assert (yield Select(10, 19)) == {"ax": 11}
        assert (yield Change(10, 19, 21)) == ["ax"]
        assert (yield Change(10, 19, 31)) == []
        yield Delete("ax")
        assert (yield Read("ax")) is not None  # no row: the value of one that was deleted
        yield Insert("ax", 12)

    client = target.connect()
    with Recorder(tmp_path / "h.edn") as recorder:
        transact(target, recorder, client, Select(0, 99), Write("ax", 11))
        transact(target, recorder, client, conversation())
        transact(target, recorder, client, Select(0, 99))
        history = recorder.history()
    client.close()
    first, second, third = (transaction.ops for transaction in history.transactions())
    assert [op[0] for op in first] == ["scan", "w"]
    assert [op[0] for op in second] == ["scan", "w", "delete", "r", "w"]
    assert second[3] == ("r", "ax", None)
    assert third[0][2] == {"ax": 12}
    assert isolang.check(history, "sser").outcome == "valid"


def test_predicate_write_skew(target, tmp_path):
    """Each of two reads a group without rows and moves a row into the other's: not SER, but SI."""
    level = LEVELS.get(target.name, target.levels[0].name)
    with Recorder(tmp_path / "h.edn") as recorder:
        interleave(
            [(Select(100, 199), Write("bx", 201)), (Select(200, 299), Write("by", 101))],
            [0, 1, 0, 1, 0, 1],
            target=target,
            level=level,
            recorder=recorder,
        )
        history = recorder.history()
    strict = target.name in ("memory", "sqlite")
    committed = history.counts()["committed"]
    assert committed == (1 if strict else 2)
    assert isolang.check(history, "si").outcome == "valid"
    verdict = isolang.check(history, "ser")
    assert verdict.outcome == ("valid" if strict else "invalid")
    assert strict or verdict.violation.anomaly == "predicate write skew"


def test_a_row_that_was_not_found_is_a_violation(target, tmp_path):
    """A database whose predicate read leaves a row out is caught."""
    client = target.connect()
    with Recorder(tmp_path / "h.edn") as recorder:
        transact(target, recorder, client, Write("cx", 401))
        client.select = lambda low, high: {}
        transact(target, recorder, client, Select(400, 499))
        history = recorder.history()
    client.close()
    assert isolang.check(history, "ser").outcome == "invalid"
