"""Redis: MULTI/EXEC, with the keys that were read watched, or without."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any, ClassVar

from isolang.run.buffered import BufferedClient
from isolang.run.operation import DELETED
from isolang.run.outcome import Failure, Phase, RolledBack
from isolang.run.server import Server, program
from isolang.run.target import Address, Level, TargetError
from isolang.run.tokens import new_token


class Redis:
    """A server; the keys of the history stand behind the prefix."""

    name: ClassVar = "redis"
    levels: ClassVar = (
        Level(name="watch", claims="sser", says="WATCH each key, then read; MULTI … EXEC"),
        Level(name="multi", claims="rc", says="reads at once; writes in MULTI … EXEC"),
    )
    lacks: ClassVar = frozenset({"range reads", "savepoints"})
    server: Server | None = None
    proxied = False
    tokens = False

    def __init__(self, address: Address, prefix: str) -> None:
        self.address, self.prefix = address, prefix
        self._keys: list[str] = []

    def start(self) -> None:
        if not self.address.host:
            daemon = program("redis-server")
            if not daemon:
                hint = "install the package redis-server, or give the URL of a server"
                raise TargetError(f"redis: no server is installed; {hint}")
            server = self.server = Server("redis", "redis")
            # What was answered is with the system, so that it outlives the server.
            settings = {"appendonly": "yes", "appendfsync": "no", **self.address.options}
            server.start(
                [daemon, "--port", "0", "--unixsocket", f"{server.folder}/socket",
                 "--unixsocketperm", "777", "--save", "", "--dir", server.folder,
                 *(word for name, value in settings.items() for word in (f"--{name}", value))],
                lambda: self._open(direct=True).ask(["PING"]),
            )  # fmt: skip
            server.proxied = self.proxied
        try:
            self._open(direct=True).ask(["PING"])
        except TargetError:
            raise
        except Exception as error:
            msg = f"{self.address}: no connection ({error}); is it running?"
            raise TargetError(msg) from None

    def _open(self, *, direct: bool) -> RedisClient:
        try:
            import redis as package
        except ImportError:
            raise TargetError("redis: no driver; pip install 'isolang[redis]'") from None
        redis: Any = package
        common: dict[str, Any] = {"decode_responses": True, "protocol": 2}
        if self.server is not None:
            path = f"{self.server.folder}/socket"
            path = path if direct else self.server.reach(path)
            connection = redis.UnixDomainSocketConnection(path=path, **common)
        else:
            a = self.address
            connection = redis.Connection(
                host=a.host, port=a.port or 6379, db=int(a.database or 0),
                username=a.user or None, password=a.password or None, **common,
            )  # fmt: skip
        return RedisClient(self, connection)

    def version(self) -> str:
        (said,) = self._open(direct=True).ask(["INFO", "server"])
        return "Redis " + str(said).split("redis_version:")[1].split()[0]

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        self.lists = frozenset(self.prefix + key for key in lists)
        client = self._open(direct=True)
        keys = [self.prefix + key for key in registers]
        (there,) = client.ask(["EXISTS", *keys, *self.lists, self.prefix])
        if there:
            hint = "--table-prefix NAME gives other names"
            raise TargetError(f"redis: {there} keys {self.prefix}… are there already; {hint}")
        self._keys = [*keys, *self.lists]
        if keys:
            client.ask(["MSET", *(part for key in keys for part in (key, ""))])

    def connect(self, *, direct: bool = False) -> RedisClient:
        client = self._open(direct=direct)
        client.ask(["PING"])
        return client

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        refused = isinstance(error, RolledBack)
        return "aborted" if phase == "statement" or refused else "maybe"

    def statement(self, operation: str, key: str, value: object) -> str:
        name = self.prefix + key
        if operation == "append":
            return f"RPUSH {name} {value}"
        if operation == "r":
            return f"LRANGE {name} 0 -1" if name in self.lists else f"GET {name}"
        return f"DEL {name}" if value == DELETED else f"SET {name} {value}"

    def remove(self) -> None:
        if self._keys:
            self._open(direct=True).ask(["DEL", *self._keys])
            self._keys.clear()

    def close(self) -> None:
        if self.server is not None:
            self.server.stop()
        else:
            self.remove()


_SWAP = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
"""


class RedisClient(BufferedClient):
    """A connection; writes wait for EXEC, and are seen by the transaction's own reads before."""

    def __init__(self, target: Redis, raw: Any) -> None:
        self.target, self.raw = target, raw

    def ask(self, *commands: Sequence[Any]) -> list[Any]:
        """Send commands in one go, and give their answers."""
        self.raw.send_packed_command(self.raw.pack_commands(commands))
        return [self.raw.read_response() for _ in commands]

    def _begin(self, level: str) -> None:
        self.watch, self.swapping = level == "watch", False

    def _fetch(self, key: str) -> Any:
        name = self.target.prefix + key
        if key in self.appended:
            raise RolledBack(f"{key}: what others append before EXEC is not known, so no read")
        if self.watch:
            self.ask(["WATCH", name])
        if name in self.target.lists:
            return [int(one) for one in self.ask(["LRANGE", name, 0, -1])[0]]
        (value,) = self.ask(["GET", name])
        return DELETED if value is None else int(value) if value else None

    def swap(self, key: str, expected: int | None, value: int) -> bool:
        old = "" if expected is None else expected
        self.swapping, self.watch = True, False
        (swapped,) = self.ask(["EVAL", _SWAP, 1, self.target.prefix + key, old, value])
        self.swapping = False
        return bool(swapped)

    def append(self, key: str, value: int) -> bool:
        if self.watch:
            return super().append(key, value)
        self.appended.setdefault(key, []).append(value)
        return True

    def commit(self) -> None:
        commands = [self._command(key) for key in {**self.own, **self.appended}]
        if not commands and not self.watch:
            return
        if commands and self.target.tokens:
            self.token = self.target.prefix + new_token()
            self.ask(["WATCH", self.token])
            commands.append(["SET", self.token, 1])
        if self.ask(["MULTI"], *(commands or [["PING"]]), ["EXEC"])[-1] is None:
            raise RolledBack("EXEC: a watched key has changed")

    def _command(self, key: str) -> list[Any]:
        name = self.target.prefix + key
        if key in self.appended:
            return ["RPUSH", name, *self.appended[key]]
        return ["DEL", name] if self.own[key] == DELETED else ["SET", name, self.own[key]]

    def rollback(self) -> None:
        if self.swapping:
            raise ConnectionError("the script was sent, and has not answered")
        try:
            self.ask(["UNWATCH"])
        except Exception:  # nothing but reads was sent
            self.close()

    def usable(self) -> bool:
        return bool(self.raw.is_connected)

    def _has_committed(self, token: str) -> bool:
        # SOUND BECAUSE: the transaction watches its token; once ours is there, EXEC fails.
        with closing(self.target.connect(direct=True)) as other:
            *_, found = other.ask(["SET", token, 0, "NX"], ["GET", token])
            return bool(found == "1")

    def close(self) -> None:
        self.raw.disconnect()
