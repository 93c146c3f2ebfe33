"""Adapts Redis with an optional replica: a second server that copies the primary's writes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from typing import Final

from isolang.run.adapter import connection_errors, import_package
from isolang.run.drivers.redis import Commands
from isolang.run.servers import redis as servers
from isolang.run.servers.server import START_TIMEOUT_S, Server, free_port
from isolang.run.target import TargetError
from isolang.run.targets.redis import Redis, RedisClient
from isolang.run.targets.standby import WithStandby

_POLL: Final = 0.01


class RedisWithReplica(WithStandby, Redis):
    """A Redis server, with a replica if ``standby`` is set before ``start``."""

    def start_server(self, server: Server) -> None:
        if self.standby:
            self.port = free_port()
        super().start_server(server)

    def follow(self, server: Server) -> None:
        self.follower = Server("redis (replica)", self.server_user)
        self.link, self._next = servers.start_replica(
            self.follower, self.address.options, self.port, self._has_followed
        )

    def _has_followed(self) -> None:
        with closing(self.connect_standby()) as client:
            state = client.raw.info("replication")
            if state["master_link_status"] != "up":
                raise ConnectionError("the replica is not connected")

    def take_over(self) -> None:
        with closing(self.connect_standby()) as client:
            client.raw.ask(["REPLICAOF", "NO", "ONE"])
        self.port = self._next

    def connect_standby(self) -> RedisClient:
        assert self.follower is not None
        with connection_errors(self.address):
            path = servers.socket_of(self.follower)
            return RedisClient(
                self, Commands(import_package("redis", self.name), self.address, path)
            )

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        super().setup(registers, lists)
        if self.follower is not None:
            self._wait()

    def _wait(self) -> None:
        """Wait until the replica has received all writes currently on the primary."""
        until = time.monotonic() + START_TIMEOUT_S
        with closing(self.connect(direct=True)) as one, closing(self.connect_standby()) as other:
            end = int(one.raw.info("replication")["master_repl_offset"])
            while int(other.raw.info("replication")["slave_repl_offset"]) < end:
                if time.monotonic() > until:
                    raise TargetError("redis: the replica does not catch up")
                time.sleep(_POLL)
