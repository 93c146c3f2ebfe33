"""Keeps a server: a child that ends the server and removes its folder when its parent ends.

The keeper is a separate program: ``python -S keeper.py FOLDER UID GID``. It obeys words on its
standard input, one JSON list per line: ``run`` or ``start`` with a command, ``kill`` (SIGKILL to
the server and all its descendants), ``pause``, ``resume``. It responds with an exit code (null if
the word failed) and the output; for ``start``, with the process id. When its input ends, also
because the parent was killed, the keeper stops the server and removes the folder.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

GRACE = 10.0  # seconds from SIGTERM to SIGKILL


def main() -> None:
    """Obey words for a server until the input ends; then stop the server and remove its folder."""
    folder, *ids = sys.argv[1:]
    user, group = map(int, ids)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent handles Ctrl-C
    server: subprocess.Popen[bytes] | None = None
    try:
        for line in sys.stdin:
            word, *command = json.loads(line)
            code: int | None = 0
            output = ""
            try:
                if word == "run":
                    code, output = run(command, folder, user, group)
                elif word == "start":
                    server = start(command, folder, user, group)
                    output = str(server.pid)
                elif server is not None:
                    control(server, word)
            except OSError as error:
                code, output = None, f"{error.strerror}"
            with suppress(BrokenPipeError):  # the parent was killed: the input ends, too
                os.write(1, json.dumps([code, output]).encode() + b"\n")
    finally:
        if server is not None:
            stop(server)
        shutil.rmtree(folder, ignore_errors=True)


def run(command: list[str], folder: str, user: int, group: int) -> tuple[int, str]:
    """Run a command as a user until it ends; return its exit code and output."""
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        user=None if user < 0 else user,
        group=None if group < 0 else group,
        extra_groups=None if user < 0 else [],
    )
    return done.returncode, done.stdout.decode(errors="replace")


def start(command: list[str], folder: str, user: int, group: int) -> subprocess.Popen[bytes]:
    """Start the server as a user, in a new process group, with its output in a file."""
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


def control(server: subprocess.Popen[bytes], word: str) -> None:
    """Kill, pause or resume the server and all its descendants."""
    if word == "resume":
        send(family(server.pid), signal.SIGCONT)
        return
    send([server.pid], signal.SIGSTOP)  # a stopped server starts no more children
    everybody = family(server.pid)
    send(everybody, signal.SIGSTOP if word == "pause" else signal.SIGKILL)
    if word == "kill":
        server.wait()
        while any(map(runs, everybody)):
            time.sleep(0.01)


def send(processes: list[int], number: int) -> None:
    """Send a signal to processes, some of which may have ended."""
    for one in processes:
        with suppress(ProcessLookupError):
            os.kill(one, number)


def family(first: int) -> list[int]:
    """Return a process and its descendants, which may be in other groups (PostgreSQL's are)."""
    parents = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit() and (fields := status(int(name))):
            parents[int(name)] = int(fields[1])
    found = [first]
    for one in found:  # the list grows in the loop
        found += [child for child, parent in parents.items() if parent == one]
    return found


def runs(process: int) -> bool:
    """Return whether a process runs; a zombie does not run."""
    fields = status(process)
    return bool(fields) and fields[0] not in ("Z", "X")


def status(process: int) -> list[str]:
    """Return the fields of a process's status, from its state on; empty if it does not exist."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def stop(server: subprocess.Popen[bytes]) -> None:
    """End the server by SIGTERM, or by SIGKILL if it does not end."""
    everybody = family(server.pid) if server.poll() is None else []
    send(everybody, signal.SIGCONT)
    if server.poll() is None:
        server.terminate()
        until = time.monotonic() + GRACE
        while server.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
    # Descendants that outlive the server wait for its end, and then end themselves.
    if server.poll() is None:
        send(everybody, signal.SIGKILL)
    server.wait()


if __name__ == "__main__":
    main()
