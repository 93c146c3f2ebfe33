"""Adapts PostgreSQL with an optional standby: a second server that follows the primary's log."""

from __future__ import annotations

from contextlib import closing

from isolang.run.adapter import connection_errors, import_package
from isolang.run.servers import postgres as servers
from isolang.run.servers.server import Server
from isolang.run.targets.postgres import Postgres, PostgresClient
from isolang.run.targets.standby import WithStandby


class StandbyClient(PostgresClient):
    """A connection to the standby, where serializable transactions run at repeatable read."""

    def _begin(self, level: str) -> None:
        weaker = "repeatable read" if level == "serializable" else level
        super()._begin(weaker)


class PostgresWithStandby(WithStandby, Postgres):
    """A PostgreSQL server, with a standby if ``standby`` is set before ``start``."""

    def follow(self, server: Server) -> None:
        self.follower = Server("postgres (standby)", self.server_user)
        answers = lambda: self.connect_standby().close()  # noqa: E731
        self.link = servers.start_standby(self.follower, server, self.started, answers)

    def take_over(self) -> None:
        with closing(self.connect_standby()) as client:
            client.raw.autocommit = True
            client.raw.execute("SELECT pg_promote(true, 30)")

    def connect_standby(self) -> StandbyClient:
        assert self.follower is not None
        with connection_errors(self.address):
            where = {"host": self.follower.folder, "user": "postgres", "dbname": "postgres"}
            raw = import_package("psycopg", self.name).connect(**where, connect_timeout=10)
            return StandbyClient(self, raw)

    def after_load(self) -> None:
        super().after_load()
        if self.follower is not None:
            with closing(self.connect_standby()) as client:
                client.raw.autocommit = True
                servers.wait_until_followed(self.admin().raw, client.raw)
