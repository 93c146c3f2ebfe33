"""How libraries that are not installed here are moved to the proxy, shown by stand-ins for them."""

import sys
from types import ModuleType

import pytest

from isolang.errors import IsolangError
from isolang.observe.unseen import OUTSIDE
from isolang.observe.ways import mysqlclient
from isolang.observe.ways.inside_mariadb import MariaDBInsideProxy
from isolang.observe.ways.library import LibraryWatch
from isolang.observe.ways.mysql_connector import MySQLConnector
from isolang.observe.ways.mysqlclient import Mysqlclient

pytest.importorskip("pymysql")
PROXY = {"host": "127.0.0.1", "port": 7777}
SQL = "SELECT 1"


class StandInProxy(MariaDBInsideProxy):
    """The proxy of a server on the host `db`, which listens on port 7777."""

    port = 7777

    def __init__(self, tmp_path):
        super().__init__(self.server_of("watch", "mysql://me@db/shop", {}), tmp_path / "h.edn")
        self._socket, self._port = "/s/server.sock", 3306


def stand_in(monkeypatch, *names):
    """Install empty modules, and return them."""
    made = [ModuleType(name) for name in names]
    for module in made:
        module.__path__ = []
        monkeypatch.setitem(sys.modules, module.__name__, module)
        parent, _, name = module.__name__.rpartition(".")
        if parent:
            setattr(sys.modules[parent], name, module)
    return made


@pytest.fixture
def connector(monkeypatch):
    """A stand-in for MySQL Connector/Python: its module, and its two classes of connections."""
    names = ("", ".connector", ".connector.pooling", ".connector.connection",
             ".connector.connection_cext", ".connector.cursor",
             ".connector.cursor_cext")  # fmt: skip
    modules = stand_in(monkeypatch, *(f"mysql{name}" for name in names))
    pooling, python, cext, cursors, cursors_cext = modules[2:]

    class MySQLConnection:
        def __init__(self, host, port=3306, unix_socket=None):
            self._host, self._port, self._unix_socket = host, port, unix_socket
            self._ssl_disabled = False
            self.connection_id = 5
            self._open_connection()

        def _open_connection(self):
            self.opened = self._unix_socket, self._host, self._port, self._ssl_disabled

        def cmd_query(self, query):
            return query

    class CMySQLConnection(MySQLConnection):
        def _open_connection(self):
            super()._open_connection()

        def cmd_query(self, query):
            return query

    class Prepared:
        def execute(self, operation):
            return operation

    python.MySQLConnection, cext.CMySQLConnection = MySQLConnection, CMySQLConnection
    pooling.CMySQLConnection = CMySQLConnection
    cursors.MySQLCursorPrepared = cursors_cext.CMySQLCursorPrepared = Prepared
    return pooling, MySQLConnection, CMySQLConnection


def test_connector_is_moved(connector, tmp_path):
    """Its connections go to the proxy without TLS, and have their own arguments afterwards."""
    pooling, in_python, in_c = connector
    before = in_python("db")
    with LibraryWatch(StandInProxy(tmp_path), MySQLConnector()) as watch:
        assert pooling.CMySQLConnection is None
        connection = in_python("db")
        assert connection.opened == (None, PROXY["host"], PROXY["port"], True)
        assert (connection._host, connection._port, connection._ssl_disabled) == ("db", 3306, False)
        assert in_python("db", unix_socket="/s/server.sock").opened[0] is None
        assert in_python("other").opened == (None, "other", 3306, False)
        with pytest.raises(IsolangError, match=r"use_pure=True"):
            in_c("db")
        assert connection.cmd_query(SQL) == SQL
        assert watch.proxy.outside == {}
        assert before.cmd_query(SQL) == SQL
        assert watch.proxy.outside == {OUTSIDE: 1}
    assert pooling.CMySQLConnection is in_c
    assert in_python("db").opened == in_c("db").opened == (None, "db", 3306, False)


@pytest.fixture
def mysqldb(monkeypatch):
    """The class of connections of a stand-in for mysqlclient."""
    _, module = stand_in(monkeypatch, "MySQLdb", "MySQLdb.connections")

    class Connection:
        open, port = 1, 3307

        def __init__(self, *args, **options):
            self.arguments = args, options

        def query(self, query):
            return query

        def thread_id(self):
            return 5

        def get_host_info(self):
            return "other via TCP/IP"

    module.Connection = Connection
    return Connection


@pytest.mark.parametrize(
    ("args", "options", "rest"),
    [
        (("db", "me", "pw", "shop"), {}, {"user": "me", "password": "pw", "database": "shop"}),
        (("db",), {"ssl": {"ca": "f"}, "ssl_mode": "REQUIRED", "charset": "u"}, {"charset": "u"}),
        ((), {"host": "localhost", "unix_socket": "/s/server.sock", "db": "s"}, {"database": "s"}),
        ((), {"host": "db", "port": 3306, "passwd": "x"}, {"password": "x"}),
        (("other",), {"db": "shop"}, None),
        ((), {"host": "db", "port": 3307}, None),
        ((), {"unix_socket": "/s/other.sock"}, None),
    ],
)  # fmt: skip
def test_mysqlclient_is_moved(mysqldb, tmp_path, args, options, rest):
    """Positions and synonyms mean the same; a connection to another server stays as it is."""
    with LibraryWatch(StandInProxy(tmp_path), Mysqlclient()):
        connection = mysqldb(*args, **options)
        moved = (args, options) if rest is None else ((), {**PROXY, **rest})
        assert connection.arguments == moved
        assert connection.query(SQL) == SQL
    assert mysqldb(*args, **options).arguments == (args, options)


def test_a_file_of_options(tmp_path):
    """It may name the server, unless the arguments do."""
    file = tmp_path / "my.cnf"
    file.write_text("[client]\nhost = db\nport = 3307\n[shop]\nsocket = /s/shop.sock\n")
    of_file = {"read_default_file": str(file)}
    assert mysqlclient._address(of_file) == ("db", 3307)
    assert mysqlclient._address({**of_file, "host": "other", "port": 1}) == ("other", 1)
    assert mysqlclient._address({**of_file, "read_default_group": "shop"}) == ("/s/shop.sock", 0)
