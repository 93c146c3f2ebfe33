"""Adapts Redis: transactions use MULTI/EXEC, with or without WATCH on the keys they read."""

from __future__ import annotations

from typing import Any, ClassVar

from isolang.run.adapter import connection_errors, import_package
from isolang.run.drivers.redis import Command, Commands
from isolang.run.families.key_value import BufferedClient, KeyValueTarget
from isolang.run.operation import DELETED
from isolang.run.outcome import RolledBack
from isolang.run.servers import redis as servers
from isolang.run.servers.server import Server
from isolang.run.target import Level


class Redis(KeyValueTarget):
    """A Redis server with a database for the keys."""

    name: ClassVar = "redis"
    levels: ClassVar = (
        Level(name="watch", claims="sser", says="WATCH each key, then read; MULTI … EXEC"),
        Level(name="multi", claims="rc", says="reads at once; writes in MULTI … EXEC"),
    )
    mixes = ""
    port = 0
    client_package: ClassVar = ("redis", "redis")

    def start_server(self, server: Server) -> None:
        answers = lambda: self.connect(direct=True).close()  # noqa: E731
        servers.start(server, self.address.options, answers, port=self.port)

    def connect(self, *, direct: bool = False) -> RedisClient:
        with connection_errors(self.address):
            return self.open(direct=direct)

    def open(self, *, direct: bool) -> RedisClient:
        redis, path = import_package("redis", self.name), ""
        if self.server is not None:
            path = servers.socket_of(self.server)
            path = path if direct else self.server.client_address(path)
        return RedisClient(self, Commands(redis, self.address, path))

    def statement(self, operation: str, key: str, value: object) -> str:
        name = self.prefix + key
        if operation == "r":
            return f"LRANGE {name} 0 -1" if key in self.lists else f"GET {name}"
        if value == DELETED:
            return f"DEL {name}"
        return f"{'RPUSH' if operation == 'append' else 'SET'} {name} {value}"


class RedisClient(BufferedClient):
    """A connection to a Redis server."""

    raw: Commands

    def _begin(self, level: str) -> None:
        self.watch = level == "watch"

    def _fetch(self, key: str) -> Any:
        name = self.target.prefix + key
        if key in self.appended:
            raise RolledBack(
                f"{key}: cannot read a list in this transaction, because other clients may append "
                "before EXEC"
            )
        if self.watch:
            self.raw.ask(["WATCH", name])
        if key in self.target.lists:
            return [int(one) for one in self.raw.ask(["LRANGE", name, 0, -1])[0]]
        (value,) = self.raw.ask(["GET", name])
        return DELETED if value is None else int(value) if value else None

    def _swap(self, name: str, expected: int | None, value: int) -> bool:
        self.watch = False
        return self.raw.swap(name, "" if expected is None else expected, value)

    def append(self, key: str, value: int) -> bool:
        if self.watch:
            return super().append(key, value)
        self.appended.setdefault(key, []).append(value)
        return True

    def commit(self) -> None:
        commands = [self._command(key) for key in {**self.own_writes, **self.appended}]
        if token := self.new_token():
            self.raw.ask(["WATCH", token])
            commands.append(["SET", token, 1])
        if (commands or self.watch) and not self.raw.execute(commands):
            raise RolledBack("EXEC: a watched key has changed")

    def _command(self, key: str) -> Command:
        name = self.target.prefix + key
        if key in self.appended:
            return ["RPUSH", name, *self.appended[key]]
        value = self.own_writes[key]
        gone = value in (DELETED, [])
        return ["DEL", name] if gone else ["SET", name, "" if value is None else value]

    def rollback(self) -> None:
        super().rollback()
        self.raw.unwatch()

    def usable(self) -> bool:
        return self.raw.open

    def claim_token(self, token: str) -> bool:
        return bool(self.raw.ask(["SET", token, 0, "NX"], ["GET", token])[1] == "1")
