"""Parses the address of a database: a name such as ``postgres``, or a URL as in SQLAlchemy.

``my_adapter.py:MyDatabase`` names an adapter class in a user's file. After the class name, the
address may continue like a URL: ``my_adapter.py:MyDatabase://me@host/db?size=3``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from isolang.errors import TargetError


class Address(Struct, frozen=True, kw_only=True):
    """A database, as named by the user: ``postgres``, or a URL in SQLAlchemy's syntax.

    Attributes:
        kind: the part before ``:``, without the driver's name (``mysql`` for ``mysql+pymysql``);
            for an adapter in a file, the file and the class: ``my_adapter.py:MyDatabase``.
        user: the user name in the URL; empty if there is none.
        password: the password in the URL, never shown in reports; empty if there is none.
        host: a host name or IP address, or the path of a server's socket, beginning with ``/``:
            ``postgresql:///db?host=/run/postgresql``, ``mysql:///db?unix_socket=/run/mysqld.sock``.
        port: the port in the URL; ``None`` if there is none.
        nodes: the host and port of each node, if the URL lists several hosts, separated by commas;
            in that case, ``host`` and ``port`` are those of the first node.
        database: the name of the database; for a file, its path; for ``exec``, the command; for
            ``sqlalchemy``, the whole URL, with its password.
    """

    kind: str
    user: str = ""
    password: str = ""
    host: str = ""
    port: int | None = None
    nodes: tuple[tuple[str, int | None], ...] = ()
    database: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Address:
        """Parse an address from the text that the user typed.

        Raises:
            TargetError: the text is neither a name nor a URL.
        """
        kind, colon, rest = text.partition(":")
        if kind.endswith(".py"):
            name, colon, rest = rest.partition(":")
            kind = f"{kind}:{name}"
        else:
            kind = kind.partition("+")[0].lower()
        if kind in _WHOLE:
            return cls(kind=kind, database=rest)
        if not colon:
            return cls(kind=kind)
        try:
            rest, nodes = _nodes(rest)
            parts = urlsplit(f"any:{rest}")
            port = parts.port
        except ValueError as error:
            raise TargetError(f"{kind}: not a valid URL ({error}); {_URL}") from None
        if not rest.startswith("//"):
            raise TargetError(f"{kind}: not a valid URL (got no '//' after {kind + ':'!r}); {_URL}")
        options = dict(parse_qsl(parts.query))
        host = parts.hostname or ""
        if "%" in host:  # a path, which urlsplit has converted to lower case
            host = unquote(parts.netloc.rpartition("@")[2].partition(":")[0])
        named = _SOCKETS.get(kind, "")
        if (named == "host" and not host) or options.get(named, "").startswith("/"):
            host = options.pop(named, "")
        return cls(
            kind=kind,
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
            host=host,
            port=port,
            nodes=nodes,
            database=unquote(parts.path.removeprefix("/")),
            options=options,
        )

    def node(self, number: int) -> Address:
        """Return the address of the node with this number, modulo the number of nodes."""
        if not self.nodes:
            return self
        host, port = self.nodes[number % len(self.nodes)]
        return replace(self, host=host, port=port, nodes=())

    def __str__(self) -> str:
        """Return the address as text, without its password and other secrets."""
        socket = self.host if self.host.startswith("/") else ""
        every = self.nodes or (("" if socket else self.host, self.port),)
        where = ",".join(host + ("" if port is None else f":{port}") for host, port in every)
        if self.kind == "exec":
            return f"exec:{self.database}"
        if self.kind == "sqlalchemy":
            return f"sqlalchemy:{_OPTION.sub('', _PASSWORD.sub('', self.database))}"
        shown = {name: one for name, one in self.options.items() if not _SECRET.search(name)}
        if socket:
            shown = {_SOCKETS.get(self.kind, "host"): socket, **shown}
        options = f"?{urlencode(shown, safe='/:,')}" if shown else ""
        if not (where or self.database or options):
            return self.kind
        user = f"{self.user}@" if self.user else ""
        database = f"/{self.database}" if where or self.database else ""
        return f"{self.kind}://{user}{where}{database}{options}"


_SOCKETS: Final = {
    "postgres": "host", "postgresql": "host", "mariadb": "unix_socket", "mysql": "unix_socket",
    "redis": "unix_socket",
}  # fmt: skip
"""For each kind of database, the URL option that names the server's socket, as in SQLAlchemy."""

_WHOLE: Final = ("exec", "sqlalchemy")  # the kinds whose text after ``:`` is not parsed
_PASSWORD: Final = re.compile(r"(?<=[^:/?#@]):[^@/]*(?=@)|(?<=//):[^@/]*(?=@)")
_SECRET: Final = re.compile(r"pass|pwd|secret|token|key", re.IGNORECASE)  # names of secret options
_OPTION: Final = re.compile(r"(?<=[?&])(password|passwd|pwd)=[^&]*&?")


def _nodes(rest: str) -> tuple[str, tuple[tuple[str, int | None], ...]]:
    """Return a URL with only the first host of its host list, and the nodes of that list."""
    found = _HOSTS.match(rest)
    if found is None:
        return rest, ()
    before, hosts = found.groups()
    parts = [urlsplit(f"//{one}") for one in hosts.split(",")]
    nodes = tuple((one.hostname or "", one.port) for one in parts)
    return f"{before}{hosts.partition(',')[0]}{rest[found.end() :]}", nodes


_HOSTS: Final = re.compile(r"(//(?:[^/?#]*@)?)([^/?#@]+,[^/?#@]+)(?=[/?#]|$)")
_URL: Final = "write it as postgresql://user@host:5432/database, or sqlite:///file.db"
