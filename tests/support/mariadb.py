"""A MariaDB server with a binary log, as `isocheck observe mariadb` starts one."""

import shutil
from contextlib import closing

import pytest

from isolang.errors import TargetError
from isolang.observe.log.mariadb import SERVER_OPTIONS, LogReader, snapshot
from isolang.observe.log.tables import Catalogue
from isolang.run.servers import mariadb as servers
from isolang.run.servers.server import Server
from support.paths import ROOT

TLS_FILES = ROOT / "tests" / "data" / "tls"


class MariaDB:
    """A server on a socket, whose role root has no password, and that offers TLS."""

    def __enter__(self):
        """Start the server, or skip the test if none is installed."""
        pytest.importorskip("pymysql")
        self._server = Server("mariadb", "mysql")
        try:
            options = {**SERVER_OPTIONS}
            for name, option in (("server.pem", "ssl-cert"), ("server-key.pem", "ssl-key")):
                options[option] = shutil.copyfile(TLS_FILES / name, f"{self._server.folder}/{name}")
            servers.start(self._server, options, lambda: self.connect().close())
        except TargetError as error:
            self._server.stop()
            if "no server is installed" in str(error):
                pytest.skip(str(error))
            raise
        return self

    def __exit__(self, *_):
        """Stop the server."""
        self._server.stop()

    @property
    def socket(self):
        """The path of the server's socket."""
        return servers.socket_of(self._server)

    def connect(self, database=None, **more):
        """Connect in autocommit mode and UTC."""
        import pymysql

        return pymysql.connect(
            unix_socket=self.socket, user=more.pop("user", "root"), database=database,
            autocommit=True, ssl_disabled=True, init_command="SET time_zone = '+00:00'", **more,
        )  # fmt: skip

    def run(self, *statements, database="test_log"):
        """Run statements on a new connection, and return the last one's rows."""
        with closing(self.connect(database)) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall()

    def fresh(self, *statements, name="test_log"):
        """Create an empty database, and run statements in it."""
        self.run(f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}", database=None)
        self.run(*statements, database=name)

    def reader(self, **more):
        """Start to read the log from now on."""
        catalogue = Catalogue(self.connect)
        start, rows = snapshot(self.connect, catalogue, **more)
        return LogReader(self.connect, catalogue, start, rows, **more)
