"""Redis's package: commands over one connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from isolang.run.address import Address

Command: TypeAlias = Sequence[Any]

_SWAP: Final = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
"""


class Commands:
    """A connection."""

    def __init__(self, redis: Any, a: Address, path: str) -> None:
        """Connect.

        Args:
            redis: the package.
            a: of the server.
            path: of its socket; empty for the place that the address names.
        """
        common = {"decode_responses": True, "protocol": 2, "db": int(a.database or 0),
                  "username": a.user or None, "password": a.password or None}  # fmt: skip
        if not path and a.host.startswith("/"):
            path = a.host
        if path:
            self.raw = redis.UnixDomainSocketConnection(path=path, **common)
        else:
            self.raw = redis.Connection(host=a.host, port=a.port or 6379, **common)
        self.ask(["PING"])

    def version(self) -> str:
        """The server's."""
        return self.info("server")["redis_version"]

    def info(self, section: str) -> dict[str, str]:
        """What the server says of itself."""
        (said,) = self.ask(["INFO", section])
        return dict(line.split(":", 1) for line in str(said).splitlines() if ":" in line)

    def ask(self, *commands: Command) -> list[Any]:
        """Send commands in one go, and give their answers."""
        self.raw.send_packed_command(self.raw.pack_commands(commands))
        return [self.raw.read_response() for _ in commands]

    def execute(self, commands: Sequence[Command]) -> bool:
        """Do commands all at once; false if a watched key has changed."""
        return self.ask(["MULTI"], *(commands or [["PING"]]), ["EXEC"])[-1] is not None

    @property
    def open(self) -> bool:
        """Whether it can be used."""
        return bool(self.raw.is_connected)

    def unwatch(self) -> None:
        """Forget the watched keys; where that fails, close: nothing but reads was sent."""
        try:
            self.ask(["UNWATCH"])
        except Exception:
            self.close()

    def swap(self, key: str, expected: Any, value: Any) -> bool:
        """Compare and set by a script."""
        return bool(self.ask(["EVAL", _SWAP, 1, key, expected, value])[0])

    def exists(self, keys: Sequence[str]) -> str:
        """Give one of these keys that is there; empty if none is."""
        found = self.ask(*(["EXISTS", key] for key in keys))
        return next((key for key, one in zip(keys, found, strict=True) if one), "")

    def claim(self, key: str, value: str) -> bool:
        """Write a key that is not there; false if it is."""
        return self.ask(["SET", key, value, "NX"])[0] is not None

    def put(self, key: str, value: str) -> None:
        """Write a key."""
        self.ask(["SET", key, value])

    def get(self, key: str) -> str:
        """Give the value of a key; empty if it is not there."""
        return str(self.ask(["GET", key])[0] or "")

    def remove(self, key: str) -> None:
        """Delete a key, if it is there."""
        self.ask(["DEL", key])

    def close(self) -> None:
        """Close it."""
        self.raw.disconnect()
