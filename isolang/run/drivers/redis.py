"""Sends commands to a Redis server over one connection, with the package ``redis``."""

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
    """A connection to a Redis server."""

    def __init__(self, redis: Any, a: Address, path: str) -> None:
        """Connect to the server."""
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
        """Return the version reported by the server."""
        return self.info("server")["redis_version"]

    def info(self, section: str) -> dict[str, str]:
        """Return a section of the server's INFO as a dictionary."""
        (response,) = self.ask(["INFO", section])
        return dict(line.split(":", 1) for line in str(response).splitlines() if ":" in line)

    def ask(self, *commands: Command) -> list[Any]:
        """Send several commands in one batch, and return their responses."""
        self.raw.send_packed_command(self.raw.pack_commands(commands))
        return [self.raw.read_response() for _ in commands]

    def execute(self, commands: Sequence[Command]) -> bool:
        """Execute commands as a transaction; return false if a watched key has changed."""
        return self.ask(["MULTI"], *(commands or [["PING"]]), ["EXEC"])[-1] is not None

    @property
    def open(self) -> bool:
        """Return whether the connection can be used."""
        return bool(self.raw.is_connected)

    def unwatch(self) -> None:
        """Stop watching all keys; if that fails, disconnect, because only reads were sent."""
        try:
            self.ask(["UNWATCH"])
        except Exception:
            self.close()

    def swap(self, key: str, expected: Any, value: Any) -> bool:
        """Compare and set with a script; return whether the key had the expected value."""
        return bool(self.ask(["EVAL", _SWAP, 1, key, expected, value])[0])

    def exists(self, keys: Sequence[str]) -> str:
        """Return one of the keys that exist, or an empty string if none of them does."""
        found = self.ask(*(["EXISTS", key] for key in keys))
        return next((key for key, one in zip(keys, found, strict=True) if one), "")

    def claim(self, key: str, value: str) -> bool:
        """Create a key and return true; if the key already exists, return false."""
        return self.ask(["SET", key, value, "NX"])[0] is not None

    def put(self, key: str, value: str) -> None:
        """Write a value to a key."""
        self.ask(["SET", key, value])

    def get(self, key: str) -> str:
        """Return the value of a key; if the key does not exist, return an empty string."""
        return str(self.ask(["GET", key])[0] or "")

    def remove(self, key: str) -> None:
        """Delete a key if it exists."""
        self.ask(["DEL", key])

    def close(self) -> None:
        """Close the connection."""
        self.raw.disconnect()
