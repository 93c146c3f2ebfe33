"""What applications do on MariaDB through a watched library, with the lines of their statements."""

import importlib
from contextlib import closing, suppress
from types import SimpleNamespace

import pytest
from support.source_lines import assert_names_lines
from support.watched import sources, transactions

import isolang
from isolang.errors import IsolangError
from isolang.observe.unseen import OUTSIDE
from isolang.observe.ways.inside_mariadb import mariadb_server_of
from isolang.testing import django
from isolang.testing.assertion import UndecidedError

READ = "SELECT balance FROM account WHERE id = %s"
SET = "UPDATE account SET balance = %s WHERE id = %s"
SCHEMA = (
    "CREATE TABLE account (id INT PRIMARY KEY, balance INT NOT NULL)",
    "INSERT INTO account VALUES (0, 100), (1, 100)",
    "CREATE TABLE booking (id INT AUTO_INCREMENT PRIMARY KEY, room INT NOT NULL, KEY (room))",
    "INSERT INTO booking (room) VALUES (0), (0), (0), (0)",
)
MODULES = {
    "watch_pymysql": "pymysql", "watch_mysqlclient": "MySQLdb",
    "watch_mysql_connector": "mysql.connector",
}  # fmt: skip


@pytest.fixture
def where(mariadb):
    """The arguments of `connect` for a new database with accounts and bookings."""
    mariadb.fresh(*SCHEMA)
    return {"unix_socket": mariadb.socket, "user": "root", "database": "test_log"}


def asked(connection, query, values=()):
    """The rows of a statement."""
    cursor = connection.cursor()
    cursor.execute(query, values)
    rows = [*cursor.fetchall()] if cursor.description else []
    cursor.close()
    return rows


def lost_update(connect, lock=""):
    """Two transactions that each read a balance, and write what they have computed."""
    with closing(connect()) as first_client, closing(connect()) as second_client:
        ((first,),) = asked(first_client, READ + lock, (0,))
        if not lock:
            ((second,),) = asked(second_client, READ, (0,))
        asked(first_client, SET, (first + 1, 0))
        first_client.commit()
        if lock:
            ((second,),) = asked(second_client, READ + lock, (0,))
        second_client.cursor().execute(SET, (second + 2, 0))
        second_client.commit()


@pytest.mark.server
@pytest.mark.parametrize("method", MODULES)
def test_a_lost_update_and_what_mends_it(where, isolation, method):
    """The verdict names the lines; the observation goes on behind it."""
    module = pytest.importorskip(MODULES[method])
    library = importlib.import_module(MODULES[method])
    with closing(library.connect(**where)) as before:
        watch = getattr(isolation, method)(**where)

        def connect():
            return module.connect(**where)

        lost_update(connect, " FOR UPDATE")
        assert watch.unseen == {}
        isolation.assert_level("ser")
        lost_update(connect)
        assert len([*transactions(isolation.history())]) == 4
        with pytest.raises(isolang.IsolationError, match="lost update") as error:
            isolation.assert_level("ser")
        assert_names_lines(str(error.value), __file__, "cursor.execute(query", "second_client.cur")
        assert watch.unseen == {}
        asked(before, READ, (0,))
        assert {*watch.unseen} == {OUTSIDE}, watch.unseen.forms
        lost_update(connect, " FOR UPDATE")
        isolation.end_watches()
        lost_update(connect)  # past the proxy, which is gone
        with pytest.raises(IsolangError, match="before the watch ends"):
            isolation.history()


@pytest.mark.server
def test_the_orm(where, isolation):
    """Each write has the line that assigned the value; conditions and names are there, too."""
    pytest.importorskip("pymysql")
    orm = pytest.importorskip("sqlalchemy.orm")
    from sqlalchemy import Integer, create_engine, func, select

    base, column = orm.declarative_base(), orm.mapped_column

    class Account(base):
        __tablename__ = "account"
        id = column(Integer, primary_key=True)
        balance = column(Integer)

    class Booking(base):
        __tablename__ = "booking"
        id = column(Integer, primary_key=True)
        room = column(Integer)

    url = f"mysql+pymysql://root@/test_log?unix_socket={where['unix_socket']}"
    engine = create_engine(url)
    with engine.connect():
        pass  # a connection of before, which the pool replaces
    watch = isolation.watch(engine, base.registry)
    with orm.Session(engine) as session:
        account = session.get(Account, 1)
        account.balance += 7
        session.add(Booking(room=1))
        booked = select(func.count()).select_from(Booking).where(Booking.room == 0)
        assert session.scalar(booked) == 4
        session.commit()
    history = isolation.history()
    assert {*sources(history)} >= {"account.balance += 7", "account = session.get(Account, 1)"}
    assert watch.unseen == {}
    isolation.assert_level("ser")
    engine.dispose()


@pytest.mark.server
def test_calls(where, isolation):
    """Transactions belong to the calls of the test; the state before them cannot be put back."""
    pymysql = pytest.importorskip("pymysql")

    def connect():
        return pymysql.connect(**where)

    def deposit(amount):
        with closing(connect()) as connection:
            ((balance,),) = asked(connection, READ, (0,))
            connection.commit()
            asked(connection, SET, (balance + amount, 0))
            connection.commit()

    isolation.setup(lambda: None)
    isolation.watch_pymysql(**where, names={"account": "bank.Account"})
    isolation.concurrently(lambda: isolation.call(deposit, 5), times=1, clients=2)
    history = isolation.history()
    assert "bank.Account" in history.describe_op(0)
    labels = {label for n in range(4) for label in history.labels_of(n)}
    assert labels == {"deposit(5)"}
    assert len({*isolation.proxies[0].clients.values()}) == 2
    with suppress(isolang.IsolationError):  # it lost an update if both had read before
        isolation.assert_level("ser", unit="request")
    with pytest.raises(IsolangError, match="only levels of PostgreSQL"):
        isolation.foresee("read committed")


@pytest.mark.server
def test_a_transaction_that_goes_on_while_the_log_is_read(where, isolation):
    """What it writes then belongs to none of the statements that were recorded before."""
    pymysql = pytest.importorskip("pymysql")
    watch = isolation.watch_pymysql(**where)
    observer = watch.proxy._observer
    call, raise_all = observer.call, "UPDATE account SET balance = balance + 1"
    with closing(pymysql.connect(**where)) as connection:
        asked(connection, raise_all)

        def call_and_go_on(function):
            copied = call(function)
            asked(connection, raise_all)
            connection.commit()
            return copied

        observer.call = call_and_go_on
        isolation.assert_level("pl-2", allow_unseen=True)
        observer.call = call
        isolation.assert_level("ser")
        assert watch.unseen == {}


@pytest.mark.server
def test_what_is_refused(where, isolation):
    """A second watch of a server; and a verdict on conditions that nobody can evaluate."""
    pymysql = pytest.importorskip("pymysql")
    isolation.watch_pymysql(**where)
    with pytest.raises(IsolangError, match="already being watched"):
        isolation.watch_pymysql(**where)
    with closing(pymysql.connect(**where)) as connection:
        asked(connection, "SELECT COUNT(*) FROM booking WHERE room = 0 AND id / 2 > 0")
        connection.commit()
    with pytest.raises(UndecidedError, match="conditions that"):
        isolation.assert_level("ser")


@pytest.mark.parametrize(
    ("url", "parameters", "expected"),
    [
        ("mysql://me:secret@db/shop", {}, ("db", 3306, "me", "secret", "shop", "")),
        ("", {"host": "db", "port": "3307", "user": "me", "passwd": b"secret", "db": "shop"},
         ("db", 3307, "me", "secret", "shop", "")),
        ("", {"unix_socket": "/s", "host": "db", "charset": "utf8mb4"},
         ("/s", 3306, "root", "", "", "")),
        ("", {"host": "db", "ssl": {"check_hostname": False}}, ("db", 3306, "root", "", "", "")),
        ("", {"host": "db", "ssl": True}, ("db", 3306, "root", "", "", "REQUIRED")),
        ("", {"host": "db", "ssl_mode": "REQUIRED", "ssl_disabled": True},
         ("db", 3306, "root", "", "", "")),
        ("", {}, ("localhost", 3306, "root", "", "", "")),
    ],
)  # fmt: skip
def test_arguments_of_connect(url, parameters, expected):
    """The arguments of any library name the server, and how to encrypt."""
    server = mariadb_server_of("watch_pymysql", url, parameters)
    named = (server.host, server.port, server.user, server.password, server.database)
    assert (*named, server.tls.mode) == expected


@pytest.mark.parametrize(
    ("url", "parameters", "message"),
    [
        ("host=db", {}, "not a URL of MariaDB .got 'host=db', expected mysql://"),
        ("mysql://db/shop", {"user": "me"}, "both a URL and arguments .got user"),
        ("", {"ssl_ca": "/no/file"}, "watch_pymysql: cannot read a certificate or key"),
    ],
)
def test_arguments_that_are_refused(url, parameters, message):
    """A message names the watch."""
    with pytest.raises(IsolangError, match=message):
        mariadb_server_of("watch_pymysql", url, parameters)


@pytest.mark.parametrize(
    ("vendor", "module", "method"),
    [
        ("mysql", "MySQLdb", "watch_mysqlclient"), ("mysql", "pymysql", "watch_pymysql"),
        ("mysql", "mysql.connector", "watch_mysql_connector"), ("mysql", "other", ""),
        ("sqlite", "sqlite3", ""),
    ],
)  # fmt: skip
def test_the_library_of_django(vendor, module, method):
    """The driver's module decides, which may stand in for another one."""
    connection = SimpleNamespace(vendor=vendor, Database=SimpleNamespace(__name__=module))
    assert django._method(connection) == method
