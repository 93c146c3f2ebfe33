"""Faults before, during and after COMMIT: the record agrees with what the server then holds."""

from __future__ import annotations

import socket
import sys
import threading
from contextlib import suppress

import pytest

from isolang.run.adapter import import_package
from isolang.run.address import Address
from isolang.run.operation import Read, Write
from isolang.run.outcome import RolledBack
from isolang.run.play.transaction import driver_for, play
from isolang.run.record.recorder import Recorder
from isolang.run.servers.server import Server
from isolang.run.target import NoDriverError, TargetError
from isolang.run.targets import BUILT_IN, target_named

psycopg = pytest.importorskip("psycopg")


@pytest.fixture(scope="module")
def postgres():
    one = target_named("postgres")
    try:
        one.start()
        one.setup([f"k{i}" for i in range(20)], [])
        yield one
    finally:
        one.close()


def terminate(target, client):
    """End a backend, and wait until it is gone."""
    raw = target.admin().raw
    raw.execute("SELECT pg_terminate_backend(%s, 10000)", (client.raw.info.backend_pid,))
    raw.rollback()


def holds(target, key):
    raw = target.admin().raw
    (value,) = raw.execute("SELECT v FROM isocheck_registers WHERE k = %s", (key,)).fetchone()
    raw.rollback()
    return value


def recorded(target, tmp_path, client, key):
    """Write 1 to a key in one transaction; give the recorded status, and what the server holds."""
    with Recorder(tmp_path / "h.edn") as recorder:
        outcome, _ = play(
            (Write(key, 1), Read(key)),
            recorder=recorder,
            session=0,
            client=client,
            driver=driver_for(target),
            level="serializable",
        )
        (only,) = recorder.history().transactions()
    assert outcome == only.status
    return only.status, holds(target, key)


@pytest.mark.server
def test_a_backend_that_ends_before_commit(postgres, tmp_path):
    """Nothing was applied: aborted."""
    client = postgres.connect()
    read = client.read
    client.read = lambda key: (terminate(postgres, client), read(key))
    assert recorded(postgres, tmp_path, client, "k0") == ("aborted", None)
    assert not client.usable()


@pytest.mark.server
def test_a_backend_that_ends_when_commit_is_sent(postgres, tmp_path):
    """The error leaves it open; the server, asked by the transaction's number, says aborted."""
    client = postgres.connect()
    commit = client.commit
    client.commit = lambda: (terminate(postgres, client), commit())
    assert recorded(postgres, tmp_path, client, "k1") == ("aborted", None)


@pytest.mark.server
def test_an_answer_to_commit_that_is_lost(postgres, tmp_path):
    """The error leaves it open; the server, asked by the transaction's number, says committed."""
    client = postgres.connect()
    commit = client.commit

    def lose():
        commit()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    client.commit = lose
    assert recorded(postgres, tmp_path, client, "k2") == ("committed", 1)


@pytest.mark.server
def test_nothing_is_concluded_after_a_restart(tmp_path):
    """A restarted server uses the numbers of lost transactions again: the outcome stays maybe."""
    one = target_named("postgres")
    try:
        one.start()
        one.setup(["k"], [])
        client = one.connect()
        commit = client.commit

        def lose():
            commit()
            one.server.control("kill")
            one.server.control("start")
            raise psycopg.OperationalError("server closed the connection unexpectedly")

        client.commit = lose
        with Recorder(tmp_path / "h.edn") as recorder:
            outcome, _ = play(
                (Write("k", 1),),
                recorder=recorder,
                session=0,
                client=client,
                driver=driver_for(one),
                level="serializable",
            )
    finally:
        one.close()
    assert outcome == "maybe"


@pytest.mark.server
def test_a_failed_statement_that_somebody_swallowed(postgres, tmp_path):
    """PostgreSQL answers COMMIT with ROLLBACK and no error; the recorder notices."""
    raw = postgres.connect().raw
    with Recorder(tmp_path / "h.edn") as recorder:
        transaction = recorder.transaction("mine", raw)
        t = transaction.__enter__()
        t.write("k3", 1)
        raw.execute("UPDATE isocheck_registers SET v = 1 WHERE k = 'k3'")
        with pytest.raises(psycopg.errors.DivisionByZero):
            raw.execute("SELECT 1 / 0")
        with pytest.raises(RolledBack):
            transaction.__exit__(None, None, None)
        (only,) = recorder.history().transactions()
    raw.close()
    assert (only.status, holds(postgres, "k3")) == ("aborted", None)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgres", "postgres"),
        (
            "postgresql+psycopg://me:pw@host:5433/db?sslmode=require",
            "postgresql://me@host:5433/db?sslmode=require",
        ),
        ("sqlite:////tmp/a.db", "sqlite:////tmp/a.db"),
        (
            "postgresql://me:pw@%2FRun%2Fpg:5433/db?sslmode=disable",
            "postgresql://me@:5433/db?host=/Run/pg&sslmode=disable",
        ),
        ("mysql://me:pw@localhost/db?unix_socket=/s", "mysql://me@/db?unix_socket=/s"),
        ("mariadb://?unix_socket=ON", "mariadb://?unix_socket=ON"),
        ("exec:./client --fast", "exec:./client --fast"),
    ],
)
def test_addresses(text, shown):
    """The syntax of SQLAlchemy's URLs; what is shown has no password."""
    assert str(Address.parse(text)) == shown
    assert str(Address.parse(shown)) == shown


@pytest.fixture
def answering():
    """Start servers that say something to whoever connects, or nothing at all."""
    listeners = []

    def start(answer):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def serve():
            with suppress(OSError):
                while True:
                    one, _ = listener.accept()
                    listeners.append(one)
                    if answer:
                        one.recv(1000)
                        one.sendall(answer)
                        one.close()

        threading.Thread(target=serve, daemon=True).start()
        return listener.getsockname()[1]

    yield start
    for one in listeners:
        one.close()


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"]
)
@pytest.mark.parametrize("kind", ["etcd", "redis"])
def test_a_port_where_no_such_server_is(monkeypatch, answering, kind, answer):
    """Nothing is internal about an answer that never comes, or is none; cleaning says so, too."""
    monkeypatch.setattr("isolang.run.drivers.etcd.RESPONSE_TIMEOUT_S", 0.3)
    if kind == "redis":
        redis = pytest.importorskip("redis")
        plain = redis.Connection
        monkeypatch.setattr(
            redis, "Connection", lambda **more: plain(**{"socket_timeout": 0.3, **more})
        )
    target = target_named(f"{kind}://127.0.0.1:{answering(answer)}")
    with pytest.raises(TargetError, match=r"cannot connect \(.*is it running\?"):
        target.start()
    with pytest.raises(TargetError, match=r"cannot connect \(.*is it running\?"):
        target.clean()


@pytest.mark.parametrize(
    ("kind", "driver", "extra"),
    [
        ("postgres", "psycopg", "postgres"),
        ("mariadb", "pymysql", "mariadb"),
        ("galera", "pymysql", "mariadb"),
        ("redis", "redis", "redis"),
    ],
)
def test_a_missing_driver_is_said_before_a_server_is_started(monkeypatch, kind, driver, extra):
    """It was said after 32 s, as that the server does not answer."""
    monkeypatch.setitem(sys.modules, driver, None)
    target = target_named(kind)
    with pytest.raises(
        TargetError, match=rf"no driver is installed; pip install 'isolang\[{extra}\]'"
    ):
        target.start()
    assert target.server is None


@pytest.mark.server
def test_a_driver_that_is_missed_later_ends_the_wait():
    """Of an adapter that has not said what it needs."""
    server = Server("mine")
    try:
        with pytest.raises(NoDriverError, match="mine: no driver"):
            server.start(
                ["sleep", "60"], lambda: import_package("no_such_package", "mine"), patience=60
            )
    finally:
        server.stop()


@pytest.mark.parametrize("kind", ["postgresql", "mysql", "redis"])
def test_a_socket_is_a_server_that_runs(kind):
    """No server of our own is started beside the one whose socket the URL names."""
    name = "host" if kind == "postgresql" else "unix_socket"
    target = target_named(f"{kind}:///0?{name}=/nowhere/here")
    assert target.shared
    with pytest.raises(TargetError, match=r"cannot connect .*is it running\?"):
        target.start()
    assert target.server is None


@pytest.mark.parametrize("url", ["postgresql:///shop", "mysql://me@", "redis:///1", "etcd:///x"])
def test_a_database_without_a_host_is_no_server_of_ours(url):
    """Who names a database means one that is there: it would be ignored without a word."""
    target = target_named(url)
    with pytest.raises(TargetError, match=r"the URL has no host, .*hint: \w+://(me@)?localhost/"):
        target.start()
    assert target.server is None


def test_every_target_says_what_its_levels_claim():
    """Each claim is a specification of the library."""
    import isolang

    for name in BUILT_IN:
        target = target_named(name + {"exec": ":true", "sqlalchemy": ":sqlite://"}.get(name, ""))
        for level in target.levels:
            assert isolang.load_spec(level.claims).title


def test_names_of_tables_are_names():
    """They stand in SQL as they are."""
    with pytest.raises(TargetError, match="--table-prefix: expected only letters"):
        target_named("sqlite", prefix="x; drop table a --")


def test_a_file_that_is_no_database(tmp_path):
    """Said in one sentence; the file stays as it is."""
    file = tmp_path / "notes.txt"
    file.write_text("no database " * 100)
    target = target_named(f"sqlite:///{file}")

    def use():
        target.start()
        target.setup(["x"], [])

    with pytest.raises(TargetError, match="not a database"):
        use()
    target.close()
    assert file.read_text() == "no database " * 100


def test_an_upsert_always_writes(monkeypatch):
    """It counts as a write, whatever the driver counts: Firebird counts no row that it updates."""
    target = target_named("sqlite")
    target.options(level=target.levels[0].name, update="upsert")
    try:
        target.start()
        target.setup(["x"], [])
        client = target.connect()
        monkeypatch.setattr(client, "count_written", lambda cursor: 0)
        assert client.write("x", 1)
        assert client.read("x") == 1
        client.rollback()
        client.close()
    finally:
        target.close()


def test_a_database_without_upserts_refuses_them():
    """Else each transaction of a run would fail; a swarm does not draw them."""
    with pytest.raises(TargetError, match=r"no upsert \(got 'upsert', expected update, row or ins"):
        target_named("derby").options(level="serializable", update="upsert")


@pytest.mark.server
def test_a_server_that_has_ended_is_not_waited_for():
    server = Server("mine")
    try:
        with pytest.raises(TargetError, match=r"mine: the server has ended; its log ends with: no"):
            server.start(["sh", "-c", "echo no; exit 1"], lambda: 1 / 0, patience=200)
    finally:
        server.stop()
