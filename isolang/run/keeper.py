"""A child that keeps a server: it ends the server and removes its folder when its parent is gone.

Run as a program of its own: ``python -S keeper.py FOLDER UID GID COMMAND…``. It obeys words on its
standard input, one a line, and answers each with ``done``: ``start``, ``kill`` (SIGKILL to the
server and its children), ``pause``, ``resume``. The end of the input, which also comes when the
parent was killed, stops the server and removes the folder.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

GRACE = 10.0  # seconds from SIGTERM to SIGKILL


def main() -> None:
    """Keep the server that the arguments name."""
    folder, user, group, *command = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    server: subprocess.Popen[bytes] | None = None
    try:
        for line in sys.stdin:
            word = line.strip()
            if word == "start":
                server = start(command, folder, int(user), int(group))
            elif server is not None:
                tell(server, word)
            print("done", flush=True)
    finally:
        if server is not None:
            stop(server)
        shutil.rmtree(folder, ignore_errors=True)


def start(command: list[str], folder: str, user: int, group: int) -> subprocess.Popen[bytes]:
    """Start the server as that user, in a process group of its own, its output in a file."""
    with open(os.path.join(folder, "log"), "ab") as log:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            user=None if user < 0 else user,
            group=None if user < 0 else group,
            extra_groups=None if user < 0 else [],
        )


def tell(server: subprocess.Popen[bytes], word: str) -> None:
    """Kill, pause or resume the server and its children."""
    signals = {"kill": signal.SIGKILL, "pause": signal.SIGSTOP, "resume": signal.SIGCONT}
    send(server, signals[word])
    if word == "kill":
        server.wait()


def send(server: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to all processes of the server that are left."""
    with suppress(ProcessLookupError):
        os.killpg(server.pid, number)


def stop(server: subprocess.Popen[bytes]) -> None:
    """End the server, politely first."""
    send(server, signal.SIGCONT)
    if server.poll() is None:
        server.terminate()
        until = time.monotonic() + GRACE
        while server.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
    send(server, signal.SIGKILL)
    server.wait()


if __name__ == "__main__":
    main()
