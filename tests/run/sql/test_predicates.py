"""Predicates, and statements that not every database has: what they did is recorded."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from support.servers import start_target

import isolang
from isolang.run.operation import (
    Delete,
    DeleteRange,
    Insert,
    InsertRows,
    Read,
    SelectRange,
    TakeRow,
    UndoneWrite,
    UpdateRange,
    Upsert,
    Write,
    child_key,
    range_predicate,
    with_available_features,
)
from isolang.run.outcome import BadAnswer
from isolang.run.play.interleave import interleave
from isolang.run.play.transaction import driver_for, play
from isolang.run.record.recorder import Recorder
from isolang.run.targets import target_named

LEVELS = {"postgres": "repeatable read", "mariadb": "repeatable read"}


@pytest.fixture(scope="module", params=["memory", "sqlite", "duckdb", "postgres", "mariadb"])
def target(request):
    """A database with rows that are loaded with NULL, for each test its own."""
    keys = [f"{test}{row}" for test in "abcdefg" for row in "xy"]
    one = start_target(request.param, keys=keys, cascading=True)
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


@pytest.mark.server
def test_rows_are_found_changed_and_missed(target, tmp_path):
    """Reads and updates by ranges of values, on what the transaction sees; NULL is in no range."""

    def conversation():
        assert (yield SelectRange(10, 19)) == {"ax": 11}
        assert (yield UpdateRange(10, 19, 21)) == ["ax"]
        assert (yield UpdateRange(10, 19, 31)) == []
        yield Delete("ax")
        assert (yield Read("ax")) is not None  # no row: the value of one that was deleted
        yield Insert("ax", 12)

    client = target.connect()
    with Recorder(tmp_path / "h.edn") as recorder:
        transact(target, recorder, client, SelectRange(0, 99), Write("ax", 11))
        transact(target, recorder, client, conversation())
        transact(target, recorder, client, SelectRange(0, 99))
        history = recorder.history()
    client.close()
    first, second, third = (transaction.ops for transaction in history.transactions())
    assert [op[0] for op in first] == ["scan", "w"]
    assert [op[0] for op in second] == ["scan", "w", "delete", "r", "w"]
    assert second[3] == ("r", "ax", None)
    assert third[0][2] == {"ax": 12}
    assert isolang.check(history, "sser").outcome == "valid"


@pytest.mark.server
def test_predicate_write_skew(target, tmp_path):
    """Each of two reads a group without rows and moves a row into the other's: not SER, but SI."""
    level = LEVELS.get(target.name, target.levels[0].name)
    with Recorder(tmp_path / "h.edn") as recorder:
        interleave(
            [(SelectRange(100, 199), Write("bx", 201)), (SelectRange(200, 299), Write("by", 101))],
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


@pytest.mark.server
def test_a_row_that_was_not_found_is_a_violation(target, tmp_path):
    """A database whose predicate read leaves a row out is caught."""
    client = target.connect()
    with Recorder(tmp_path / "h.edn") as recorder:
        transact(target, recorder, client, Write("cx", 401))
        client.select = lambda low, high: {}
        transact(target, recorder, client, SelectRange(400, 499))
        history = recorder.history()
    client.close()
    assert isolang.check(history, "ser").outcome == "invalid"


@pytest.mark.server
def test_statements_that_not_every_database_has(target, tmp_path):
    """Each does what it says, or a similar statement is in its place."""

    def conversation():
        yield Delete("dx")
        yield Delete("dy")
        yield InsertRows((("dx", 501), ("dy", 502)))
        assert (yield SelectRange(500, 599, keys=("dx",))).keys() <= {"dx", "dy"}
        taken = yield TakeRow(501, 501)
        assert taken == {"dx": 501}
        yield Upsert("dx", 503)
        yield Upsert("dy", 504, merge=True)
        gone = yield DeleteRange(504, 504)
        assert list(gone) == ["dy"]
        yield Read("dx", lock="share")
        yield Read("dx", lock="update")
        yield Read("dy")

    client, offers = target.connect(), target.offers
    with Recorder(tmp_path / "h.edn") as recorder:
        transact(target, recorder, client, with_available_features(conversation(), offers))
        ops = next(iter(recorder.history().transactions())).ops
    client.close()
    assert [op[0] for op in ops[:4]] == ["delete", "delete", "w", "w"]
    assert (":= :key" in str(ops[4][1])) == ("two ranges" in offers)
    assert ops[5] == ("r", "dx", 501) if "skip locked" in offers else ops[5][0] == "scan"
    assert list(ops[6:8]) == [("w", "dx", 503), ("w", "dy", 504)]
    assert ops[8][:2] == ("delete", "dy")
    assert list(ops[9:]) == [("r", "dx", 503), ("r", "dx", 503), ("r", "dy", None)]


@pytest.mark.server
def test_rows_that_were_skipped_are_not_recorded(target, tmp_path):
    """A worker skips the job that another one has; what it did not get is not missing."""
    if "skip locked" not in target.offers:
        pytest.skip("it cannot skip locked rows")
    clients = [target.connect() for _ in range(3)]
    level = LEVELS.get(target.name, target.levels[0].name)
    with Recorder(tmp_path / "h.edn") as recorder:
        transact(target, recorder, clients[0], Write("ex", 601))
        clients[1].begin(level)
        assert clients[1].take(600, 699) == {"ex": 601}

        def work():
            assert (yield TakeRow(600, 699)) == {}
            yield Write("ey", 700)

        transact(target, recorder, clients[0], work())
        clients[1].rollback()
        ops = list(recorder.history().transactions())[1].ops
    for client in clients:
        client.close()
    assert list(ops) == [("w", "ey", 700)]


@pytest.mark.server
def test_what_a_cascade_deletes_is_recorded(target, tmp_path):
    """A child row is deleted with its parent; who then reads it reads what the cascade wrote."""
    if "cascades" not in target.offers:
        pytest.skip("its foreign keys have no cascades")
    client, child, other = target.connect(), child_key("fx", "a"), child_key("fx", "b")
    with Recorder(tmp_path / "h.edn") as recorder:
        transact(target, recorder, client, Insert(child, 801), Insert(other, 802), Read(child))
        undone = (
            (UndoneWrite(Delete("fx")), Read(child)) if "savepoints" not in target.lacks else ()
        )
        transact(target, recorder, client, Write("fx", 800), *undone)
        transact(target, recorder, client, Delete("fx", (child, other)), Read(other))
        transact(target, recorder, client, Read(child), Read("fx"))
        history = recorder.history()
    *_, third, fourth = (list(transaction.ops) for transaction in history.transactions())
    assert [op[:2] for op in third[:3]] == [("delete", "fx"), ("delete", child), ("delete", other)]
    assert fourth == [("r", child, None), ("r", "fx", None)]
    assert isolang.check(history, "sser").outcome == "valid"
    outcome, _ = play(
        (Insert(child, 803),),
        recorder=Recorder(tmp_path / "orphan.edn"),
        session=0,
        client=client,
        driver=driver_for(target),
        level=target.levels[0].name,
    )
    assert outcome == "aborted"  # the foreign key allows no row without a parent
    client.close()


@pytest.mark.parametrize(
    ("target", "sent"),
    [
        (
            "sqlite",
            "SELECT k, v FROM isocheck_registers WHERE v BETWEEN 3 AND 9 AND k BETWEEN 'a' AND 'c'",
        ),
        ("memory", "select value between 3 and 9 and key between a and c"),
    ],
)
def test_the_statement_of_a_query_by_two_ranges_has_both(target, sent):
    """A counterexample shows what was sent, not a wider query."""
    text = f"{{:type :ok, :value [[:rp {range_predicate(3, 9, ['a', 'b', 'c']).text} {{}}]]}}"
    history = isolang.load_history(io.BytesIO(text.encode()), "edn")
    (predicate,) = history.columns.predicates
    assert target_named(target).statement("scan", predicate, None) == sent


@pytest.mark.parametrize(
    ("ask", "arguments"), [("select", (3, 9)), ("scan", ("a", "c")), ("within", (3, 9, "a", "c"))]
)
def test_a_row_that_is_returned_twice_is_no_answer(monkeypatch, ask, arguments):
    """A database whose query returns one row twice is reported, whatever the query asks for."""
    target = target_named("sqlite")
    try:
        target.start()
        target.setup(["a", "b"], [])
        client = target.connect()
        client.begin("serializable")
        rows = SimpleNamespace(fetchall=lambda: [("a", 5), ("b", 6), ("a", 5)])
        monkeypatch.setattr(client, "execute", lambda sql, values: rows)
        with pytest.raises(BadAnswer, match="a row was returned twice"):
            getattr(client, ask)(*arguments)
        client.close()
    finally:
        target.close()
