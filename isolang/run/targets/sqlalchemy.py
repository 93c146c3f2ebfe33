"""Adapts every database for which SQLAlchemy has a dialect, as ``sqlalchemy:URL``.

SQLAlchemy connects, sets the isolation level, and knows the column types. The statements are the
same as for all SQL databases. At COMMIT, an SQLSTATE of class 40 means that the transaction
aborted; isolang's driver for the connection classifies all other errors.
"""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Final

from isolang.run.adapter import connection_errors, import_package
from isolang.run.outcome import Driver, Failure, Phase, RolledBack, driver_of
from isolang.run.sql import Dialect, SqlClient, SqlTarget
from isolang.run.sql.statements import ON_CONFLICT, ON_DUPLICATE_KEY
from isolang.run.target import Level, TargetError

if TYPE_CHECKING:
    from isolang.run.address import Address

# The levels of SQL:2023, 4.41.4, as Adya's levels; SNAPSHOT is not in the standard. REPEATABLE READ
# must ensure that a second read of a row returns the same value. Databases that read from a
# snapshot do so but allow write skew, and other databases do not lock keys without a row. Therefore
# the claim is PL-2 and not PL-2.99. PostgreSQL documents a stronger level.
_CLAIMS: Final = {
    "SERIALIZABLE": "ser",
    "SNAPSHOT": "si",
    "REPEATABLE READ": "pl-2",
    "READ COMMITTED": "pl-2",
    "READ UNCOMMITTED": "pl-1",
}
_DOCUMENTED: Final = {("postgresql", "REPEATABLE READ"): "si"}
_MIXES: Final = {"postgresql": "postgresql-mixed"}
_STATE: Final = re.compile(r"[0-9A-Z]{5}")
_CONCAT: Final = {"mysql": "CONCAT(v, {mark})", "mariadb": "CONCAT(v, {mark})",
                  "mssql": "v + {mark}"}  # fmt: skip


class SqlAlchemyClient(SqlClient):
    """A connection opened by the driver that SQLAlchemy chose."""

    target: SqlAlchemy
    lost = False
    at = ""

    def _begin(self, level: str) -> None:
        """Set the level; according to PEP 249, the first statement then begins the transaction."""
        if level not in (self.at, _DEFAULT):
            self.target.engine.dialect.set_isolation_level(self.raw, level.upper())
            self.at = level

    def execute(self, sql: str, values: tuple[Any, ...]) -> Any:
        cursor = self.raw.cursor()
        try:
            cursor.execute(*self.target.adapt_parameters(sql, values))
        except Exception as error:
            self.lost = self.lost or self.target.is_lost(error, self.raw)
            raise
        return cursor

    def usable(self) -> bool:
        return not self.lost

    def isolation(self) -> str:
        try:
            reported = self.target.engine.dialect.get_isolation_level(self.raw)
        except NotImplementedError:
            return ""
        return str(reported).lower().replace("_", " ")


class SqlAlchemy(SqlTarget):
    """A database named by an SQLAlchemy URL."""

    name: ClassVar = "sqlalchemy"
    client: ClassVar = SqlAlchemyClient
    lacks: ClassVar = frozenset({"savepoints"})
    # The following attributes depend on the dialect in the URL.
    levels: tuple[Level, ...]  # type: ignore[misc]
    dialect: Dialect
    driver: Driver  # type: ignore[misc]

    def __init__(self, address: Address, prefix: str) -> None:
        if not address.database:
            raise TargetError(
                "sqlalchemy: the URL is missing; isocheck run sqlalchemy:mssql+pyodbc://host/db"
            )
        alchemy = import_package("sqlalchemy", "sqlalchemy")
        try:
            self.engine = alchemy.create_engine(address.database, poolclass=alchemy.NullPool)
        except (alchemy.exc.SQLAlchemyError, ImportError, ValueError, TypeError) as error:
            what = " ".join(str(error).split())
            raise TargetError(f"{address}: SQLAlchemy cannot use this URL ({what})") from None
        own = self.engine.dialect
        if own.is_async:
            msg = f"{address}: the driver {own.driver} is asynchronous; name a synchronous driver"
            raise TargetError(f"{msg}, as in postgresql+psycopg://")
        self.dialect = _dialect(own, alchemy)
        self.levels = tuple(_levels(own))
        self.mixes = _MIXES.get(own.name, "")
        super().__init__(address, prefix)

    def open(self, *, direct: bool) -> Any:
        fairy = self.engine.raw_connection()
        raw = fairy.driver_connection
        fairy.detach()
        self.driver = driver_of(raw)
        return raw

    def adapt_parameters(self, sql: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a statement and its parameters in the driver's parameter style."""
        style = self.engine.dialect.paramstyle
        if style in ("qmark", "format", "pyformat"):
            return (sql, values) if values else (sql,)
        sign, number = "$" if style == "numeric_dollar" else ":", count(1)
        letter = "p" if style == "named" else ""
        sql = re.sub(r"\?", lambda _: f"{sign}{letter}{next(number)}", sql)
        if style == "named":
            return sql, {f"p{place}": value for place, value in enumerate(values, 1)}
        return sql, values

    def is_lost(self, error: Exception, raw: Any) -> bool:
        """Return whether an error means that the connection has been lost."""
        own = self.engine.dialect
        return isinstance(error, own.loaded_dbapi.Error) and own.is_disconnect(error, raw, None)

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        reported = [getattr(error, name, None) for name in ("sqlstate", "pgcode")] + [
            *error.args[:1]
        ]
        state = next((x for x in reported if isinstance(x, str) and _STATE.fullmatch(x)), "")
        # SQLSTATE class 40 means "transaction rollback", except 40003, "completion unknown".
        if phase == "commit" and state.startswith("40") and state != "40003":
            return "aborted"
        if isinstance(error, RolledBack):
            return "aborted"
        return self.driver.classify(error, phase)

    def version(self) -> str:
        with connection_errors(self.address), self.engine.connect() as connection:
            own = connection.dialect
            number = ".".join(map(str, own.server_version_info or ()))
            return f"{own.name} {number} through {own.driver}".replace("  ", " ")


_DEFAULT: Final = "default"


def _levels(own: Any) -> list[Level]:
    """Return the levels supported by a dialect, strongest first."""
    try:
        named = set(own.get_isolation_level_values(None))
    except NotImplementedError:
        named = set()
    found = [
        Level(
            name=name.lower(),
            claims=_DOCUMENTED.get((own.name, name), claims),
            says=f"set by SQLAlchemy: {name}",
        )
        for name, claims in _CLAIMS.items()
        if name in named
    ]
    return found or [Level(name=_DEFAULT, claims="ser", says="the connection's default")]


def _dialect(own: Any, alchemy: Any) -> Dialect:
    mark = "%s" if own.paramstyle in ("format", "pyformat") else "?"
    return Dialect(
        mark=mark,
        upsert=ON_DUPLICATE_KEY if own.name in ("mysql", "mariadb") else ON_CONFLICT,
        concat=_CONCAT.get(own.name, "v || {mark}"),
        key=alchemy.String(64).compile(dialect=own),
        text=alchemy.Text().compile(dialect=own),
        changed=" RETURNING k" if own.update_returning else "",
    )
