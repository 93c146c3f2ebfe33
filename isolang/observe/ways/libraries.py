"""The libraries that a watch knows."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from isolang.observe.ways.asyncpg import Asyncpg
from isolang.observe.ways.library import Library
from isolang.observe.ways.mysql_connector import MySQLConnector
from isolang.observe.ways.mysqlclient import Mysqlclient
from isolang.observe.ways.psycopg2 import Psycopg2
from isolang.observe.ways.psycopg3 import Psycopg
from isolang.observe.ways.pymysql import PyMySQL

LIBRARIES: Final[Mapping[str, type[Library]]] = {
    "psycopg": Psycopg, "asyncpg": Asyncpg, "psycopg2": Psycopg2,
}  # fmt: skip
"""The libraries for PostgreSQL by the names of their modules, and of SQLAlchemy's drivers."""


MARIADB_LIBRARIES: Final[Mapping[str, type[Library]]] = {
    "pymysql": PyMySQL, "mysqldb": Mysqlclient, "mysqlconnector": MySQLConnector,
}  # fmt: skip
"""The libraries for MariaDB by the names of SQLAlchemy's drivers."""


def imported_libraries() -> list[Library]:
    """Return the libraries for PostgreSQL that this process has imported."""
    return [library() for name, library in LIBRARIES.items() if name in sys.modules]
