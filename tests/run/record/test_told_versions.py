"""What PostgreSQL and etcd tell of their versions, on real servers."""

from __future__ import annotations

import time

import pytest
from support.servers import start_target

import isolang
from isolang.run.drivers.postgres_log import PostgresLog, change_of
from isolang.run.operation import DELETED, Delete, Insert, Read, UndoneWrite, Write
from isolang.run.play.transaction import driver_for, play
from isolang.run.record.recorder import Recorder
from isolang.run.target import TargetError
from isolang.run.targets import target_named

KEYS = ("x", "y", "z")


@pytest.fixture(scope="module")
def server():
    """A PostgreSQL that logs which rows are changed."""
    pytest.importorskip("psycopg")
    target = target_named("postgres")
    target.reports_versions = True
    try:
        target.start()
        yield target
    finally:
        target.close()


@pytest.fixture
def target(server):
    """Its tables, with a row for each key."""
    server.options(level="repeatable read")
    server.setup(KEYS, ())
    yield server
    server.log.close()
    server.remove()


@pytest.fixture
def log(server):
    """Its log, from here on."""
    log = PostgresLog(server._connect_to_log, "test")
    yield log
    log.close()


def sql(server, *statements):
    """Run them one by one, each a transaction unless it begins one."""
    connection = server._connect_to_log()
    try:
        for statement in statements:
            connection.execute(statement)
    finally:
        connection.close()


def told(log):
    """What the log says, without its numbers."""
    return [(one.kind, one.row, one.old) for one in log.changes()]


# --- the log ---


def test_the_traps_of_rows(server, log):
    """Deletes, keys that change, long columns that do not, and rows without identity."""
    sql(
        server,
        'CREATE TABLE t (k text PRIMARY KEY, v int, "odd name" text, long text)',
        "ALTER TABLE t ALTER long SET STORAGE EXTERNAL",
        "INSERT INTO t VALUES ('it''s', 1, 'a [b]: ''c''', repeat('x', 9000))",
        "UPDATE t SET v = NULL",
        "UPDATE t SET k = 'new'",
        "DELETE FROM t",
        "ALTER TABLE t REPLICA IDENTITY NOTHING",
        "INSERT INTO t VALUES ('k', 2)",
        "UPDATE t SET v = 3",
        "DELETE FROM t",
        "TRUNCATE t",
        "DROP TABLE t",
    )
    inserted, changed, moved, deleted, *rest = told(log)
    assert inserted[1]["k"] == "it's"
    assert inserted[1]["odd name"] == "a [b]: 'c'"
    assert len(inserted[1]["long"]) == 9000
    assert changed == ("UPDATE", {"k": "it's", "v": None, "odd name": "a [b]: 'c'"}, {})
    assert (moved[1]["k"], moved[2]) == ("new", {"k": "it's"})
    assert deleted == ("DELETE", {"k": "new"}, {})
    nobody = {"odd name": None, "long": None}
    assert rest == [
        ("INSERT", {"k": "k", "v": "2", **nobody}, {}),
        ("UPDATE", {"k": "k", "v": "3", **nobody}, {}),
        ("DELETE", {}, {}),
        ("TRUNCATE", {}, {}),
    ]


def test_what_was_rolled_back_is_not_in_the_log(server, log):
    """Nor is what a savepoint took back; what stays bears the number of the whole transaction."""
    sql(server, "CREATE TABLE t (k int PRIMARY KEY)")
    with server._connect_to_log() as connection:
        connection.autocommit = False
        (number,) = connection.execute("SELECT pg_current_xact_id()::text").fetchone()
        connection.execute("SAVEPOINT a")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("ROLLBACK TO a")
        connection.execute("INSERT INTO t VALUES (2)")
        connection.execute("RELEASE a")
        connection.commit()
        connection.execute("INSERT INTO t VALUES (3)")
        connection.rollback()
    sql(server, "DROP TABLE t")
    found = [(one.transaction, one.row) for one in log.changes()]
    assert found == [(int(number), {"k": "2"})]


def slots(server):
    return server.admin().execute("SELECT slot_name FROM pg_replication_slots", ()).fetchall()


def gone(server):
    """Whether no slot is left, as soon as the server has ended the connection."""
    until = time.monotonic() + 10
    while slots(server) and time.monotonic() < until:
        time.sleep(0.02)
    return not slots(server)


def test_the_slot_goes_with_its_connection(server):
    """Whether it is closed or killed: a slot that stayed would fill the disk."""
    log = PostgresLog(server._connect_to_log, "test")
    assert slots(server) == [(log._slot,)]
    log.close()
    assert gone(server)
    log = PostgresLog(server._connect_to_log, "test")
    sql(server, "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots")
    with pytest.raises(TargetError, match="cannot read the server's log"):
        list(log.changes())
    assert gone(server)


def test_a_role_that_may_not_is_told_what_to_grant(server):
    """And nothing stays behind."""
    sql(server, "CREATE ROLE plain LOGIN")

    def connect():
        connection = server._connect_to_log()
        connection.execute("SET SESSION AUTHORIZATION plain")
        return connection

    with pytest.raises(TargetError, match="ALTER ROLE … REPLICATION"):
        PostgresLog(connect, "test")
    assert gone(server)


@pytest.mark.server
def test_a_server_without_such_a_log_is_told_from_one():
    """By a message that says what to set."""
    target = start_target("postgres")
    try:
        with pytest.raises(TargetError, match="got wal_level = replica, expected logical"):
            PostgresLog(target._connect_to_log, "postgres")
    finally:
        target.close()


def test_a_line_that_is_none_is_refused():
    """With what it was."""
    with pytest.raises(TargetError, match="not a change from the server's log"):
        change_of(1, "nonsense")


# --- histories ---


def record(target, path, programs, between=lambda number: None, level=None):
    """Play programs one after the other, each by a session of its own; give the history."""
    with Recorder(path, versions="ordered" if target.ordered else None) as recorder:
        for number, program in enumerate(programs):
            client = target.connect()
            played = play(
                program,
                recorder=recorder,
                session=number,
                client=client,
                driver=driver_for(target),
                level=level or target.levels[0].name,
            )
            assert played == ("committed", None)
            client.close()
            between(number)
    said = target.account(path)
    return isolang.load_history(path), said


def stated(history):
    return [
        [(*op[:3], version) for op, version in zip(t.ops, t.versions or [None] * 9, strict=False)]
        for t in map(history.transaction, range(history.columns.transactions()))
    ]


@pytest.mark.parametrize("level", ["read committed", "serializable"])
def test_what_clients_did_on_postgresql(target, tmp_path, level):
    """Two writes of one transaction, a savepoint, a delete, and what was there before."""
    programs = [
        (Read("x"), Write("x", 1), Write("x", 2), Read("x")),
        (UndoneWrite(Write("y", 9)), Write("y", 3), Read("x")),
        (Delete("x"), Read("y"), Read("x")),
        (Insert("x", 2), Read("x")),
    ]
    history, said = record(target, tmp_path / "h.edn", programs, level=level)
    assert stated(history) == [
        [("r", "x", None, 0), ("w", "x", 1, 1), ("w", "x", 2, 2), ("r", "x", 2, 2)],
        [("w", "y", 3, 1), ("r", "x", 2, 2)],
        [("w", "x", DELETED, 3), ("r", "y", 3, 1), ("r", "x", DELETED, None)],
        [("w", "x", 2, 4), ("r", "x", 2, 4)],
    ]
    assert "5 versions" in said[0]
    verdict = isolang.check(history, "sser")
    assert (verdict.outcome, verdict.certified) == ("valid", True)


def test_a_writer_that_nobody_recorded_is_in_the_history(target, tmp_path):
    """With its versions, in the order of each row, and without a claim of its time."""
    table = f"{target.prefix}registers"

    def psql(number):
        if number == 0:
            sql(target, f"UPDATE {table} SET v = 1 WHERE k = 'x'")

    programs = [(Write("x", 1), Read("y")), (Read("x"), Write("x", 1)), (Read("x"),)]
    history, said = record(target, tmp_path / "h.edn", programs, between=psql)
    assert "1 transactions of other writers" in said[0]
    told = stated(history)
    assert [("w", "x", 1, 2)] in told
    assert [("r", "x", 1, 2), ("w", "x", 1, 3)] in told
    # All wrote the same value, and each read has one source all the same.
    assert isolang.check(history, "ser").outcome == "valid"
    reads = history.columns.op_source[(history.columns.op_kind == 0)]
    assert (reads != -1).all()


def test_what_the_log_says_is_judged(target, tmp_path):
    """A client that answers something else than the row holds is found at every level."""
    path = tmp_path / "h.edn"
    history, _ = record(target, path, [(Write("x", 1),), (Read("x"),)])
    assert isolang.check(history, "pl-1").outcome == "valid"
    lying = path.read_bytes().replace(b'[:r "x" 1]', b'[:r "x" 7]')
    (tmp_path / "lying.edn").write_bytes(lying)
    verdict = isolang.check(isolang.load_history(tmp_path / "lying.edn"), "pl-1")
    assert verdict.violation.anomaly == "contradicting versions"


@pytest.mark.server
def test_what_clients_did_on_etcd(tmp_path):
    """Every answer has the revision of its row, and COMMIT that of what it puts."""
    target = target_named("etcd")
    target.reports_versions = True
    try:
        target.start()
    except TargetError as error:
        target.close()
        pytest.skip(str(error))
    try:
        target.setup(KEYS, ())
        programs = [
            (Read("x"), Write("x", 1), Write("y", 2)),
            (Read("x"), Write("x", 1), Read("x")),
            (Read("x"), Delete("y")),
        ]
        history, _ = record(target, tmp_path / "h.edn", programs)
    finally:
        target.close()
    (_, first, _), (_, second, _) = ([op[3] for op in t] for t in stated(history)[:2])
    assert 0 < first < second
    told = stated(history)
    assert told[1][:2] == [("r", "x", 1, first), ("w", "x", 1, second)]
    assert told[2][0] == ("r", "x", 1, second)
    verdict = isolang.check(history, "sser")
    assert (verdict.outcome, verdict.certified) == ("valid", True)
