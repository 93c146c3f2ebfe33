"""Starts a server in a temporary folder, as an unprivileged user, and removes it.

The server's parent is a keeper process (:mod:`isolang.run.servers.keeper`), which removes the
server and its folder even if this process is killed.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar, cast

from isolang.errors import NoDriverError, TargetError, message_in_one_line
from isolang.run.servers import keeper
from isolang.run.servers.proxy import Proxy

START_TIMEOUT_S: Final = 30.0  # the time limit for a server to start responding
_POLL: Final = 0.02
_PIPE_TIMEOUT_S: Final = 5.0  # the time limit for a dump and its restore


_Where = TypeVar("_Where", str, tuple[str, int])


class Server:
    """A database server in a temporary folder.

    Attributes:
        folder: the folder with the data and the socket, owned by the user that runs the server.
        proxied: whether clients connect through a proxy.
    """

    proxied = False
    process = 0

    def __init__(self, name: str, user: str = "") -> None:
        """Create the temporary folder, and start the keeper."""
        self.name = name
        self.folder = tempfile.mkdtemp(prefix="isocheck-")
        self._proxy: Proxy | None = None
        who = _unprivileged(user)
        ids = (-1, -1) if who is None else (who.pw_uid, who.pw_gid)
        os.chown(self.folder, *ids)
        self._keeper: subprocess.Popen[str] | None = subprocess.Popen(
            [sys.executable, "-S", keeper.__file__, self.folder, *map(str, ids)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def run(self, command: Sequence[str]) -> None:
        """Run a command to completion, such as the command that creates the server's data.

        Raises:
            TargetError: the command failed.
        """
        code, output = self._ask("run", *command)
        if code is None:
            raise TargetError(f"{self.name}: cannot run {command[0]} ({output})")
        if code:
            lines = output.strip().splitlines() or ["no message"]
            worst = next((one for one in lines if "ERROR" in one), lines[-1])
            raise TargetError(f"{self.name}: {command[0]} failed ({worst.strip()})")

    def start(
        self,
        command: Sequence[str],
        answers: Callable[[], object],
        *,
        again: Sequence[str] = (),
        patience: float = START_TIMEOUT_S,
    ) -> None:
        """Start the server, and wait until it responds.

        Args:
            patience: the number of seconds within which the server must start responding.

        Raises:
            TargetError: the server did not start.
        """
        self._answers, self._command, self._patience = answers, command, patience
        self.control("start")
        self._command = again or command

    def client_address(self, where: _Where) -> _Where:
        """Return the address to which clients must connect: the server's or its proxy's."""
        if not self.proxied:
            return where
        if self._proxy is None:
            self._proxy = Proxy(where)
        return cast("_Where", self._proxy.where)

    def cut_connections(self) -> None:
        """Close all client connections."""
        if self._proxy is not None:
            self._proxy.cut_connections()

    @property
    def proxy(self) -> Proxy:
        """Return the proxy through which clients connect to the server.

        Raises:
            TargetError: no client has connected through a proxy yet.
        """
        if self._proxy is None:
            raise TargetError(f"{self.name}: no connection runs through the proxy")
        return self._proxy

    def control(self, word: str) -> None:
        """Start, kill, pause or resume the server.

        Raises:
            TargetError: the server does not start, or its keeper has ended.
        """
        code, output = self._ask(word, *(self._command if word == "start" else ()))
        if code is None:
            raise TargetError(f"{self.name}: cannot start the server ({output})")
        if word == "start":
            self.process = int(output)
            self._wait()

    def _ask(self, word: str, *command: str) -> tuple[int | None, str]:
        """Send a request to the keeper; return the exit code (``None`` on failure) and output."""
        child = self._keeper
        if child is None or child.stdin is None or child.stdout is None:
            raise TargetError(f"{self.name}: the server was stopped")
        try:
            child.stdin.write(json.dumps([word, *command]) + "\n")
            child.stdin.flush()
            code, output = json.loads(child.stdout.readline())
        except (BrokenPipeError, ValueError):
            return None, f"the process that supervises it has ended; {self._log()}"
        return code, output

    def _wait(self) -> None:
        until = time.monotonic() + self._patience
        while True:
            try:
                self._answers()
            except NoDriverError:
                raise
            except Exception as error:
                if self._ask("status")[1] == "ended":
                    raise TargetError(f"{self.name}: the server has ended; {self._log()}") from None
                if time.monotonic() > until:
                    what = message_in_one_line(error)
                    msg = f"{self.name}: the server does not answer ({what}); {self._log()}"
                    raise TargetError(msg) from None
                time.sleep(_POLL)
            else:
                return

    def _log(self) -> str:
        try:
            lines = Path(self.folder, "log").read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return f"its log ends with: {' | '.join(lines[-2:])}" if lines else "its log is empty"

    def stop(self) -> None:
        """Stop the server, and remove its folder."""
        if self._proxy is not None:
            self._proxy.close()
        child, self._keeper = self._keeper, None
        if child is not None and child.stdin is not None:
            with suppress(BrokenPipeError):
                child.stdin.close()
            child.wait()
            if child.stdout is not None:
                child.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def pipe(source: Sequence[str], sink: Sequence[str], *, seconds: float = _PIPE_TIMEOUT_S) -> None:
    """Pipe the output of one program into another, for example a dump into a restore.

    Raises:
        TargetError: a program failed, or did not end in time.
    """
    with subprocess.Popen(source, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        try:
            done = subprocess.run(
                sink, stdin=writer.stdout, capture_output=True, check=False, timeout=seconds
            )
            _, message = writer.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            writer.kill()
            raise TargetError(f"{source[0]} has not ended in {seconds:g} s") from None
    for command, code, text in (
        (sink, done.returncode, done.stderr), (source, writer.returncode, message),
    ):  # fmt: skip
        if code:
            what = " ".join(text.decode(errors="replace").split())[:200]
            raise TargetError(f"{command[0]} failed (exit code {code}; {what})")


def find_program(name: str, *folders: str) -> str:
    """Return the path of a program on PATH or in these folders, or an empty string."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *folders])
    return shutil.which(name, path=path) or ""


def free_port() -> int:
    """Return a port that is currently free on the loopback interface."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _unprivileged(user: str) -> pwd.struct_passwd | None:
    """Return the user that runs servers if this process runs as root; otherwise ``None``."""
    if os.geteuid() != 0:
        return None
    for name in (user, "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise TargetError(
        "a server must not run as root, and the user nobody does not exist; run isocheck "
        "as an ordinary user"
    )
