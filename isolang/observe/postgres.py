"""Puts together the parts of the observer for PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from isolang.observe.database import ChangeLog, ObservedDatabase
from isolang.observe.sql.postgres import PostgresDialect
from isolang.observe.versions.postgres import PostgresVersions
from isolang.observe.wire.connection import PostgresWire


def _open_log(connect: Callable[[], Any], name: str) -> ChangeLog:
    from isolang.run.drivers.postgres_log import PostgresLog

    return PostgresLog(connect, name)


POSTGRES: Final = ObservedDatabase(
    wire=PostgresWire, dialect=PostgresDialect(), versions=PostgresVersions(), log=_open_log
)
"""The parts for PostgreSQL."""
