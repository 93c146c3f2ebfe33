"""Runs a server for a parent process; when the parent ends, stops it and removes its folder.

The keeper is a separate program: ``python -S keeper.py FOLDER UID GID``. It reads requests from its
standard input. Each request is a JSON list on one line, and begins with a word: ``run`` or
``start`` with a command, ``kill`` (SIGKILL to the server and all its descendants), ``pause``,
``resume`` or ``status``. The response is an exit code (null if the request failed) and the output;
for ``start``, the output is the process id, and for ``status``, it is ``ended`` if the server has
ended by itself. When the input ends, perhaps because the parent was killed, the keeper
stops the server and removes the folder.
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

GRACE_S = 10.0  # seconds from SIGTERM to SIGKILL


def main() -> None:
    """Carry out the requests until the input ends; then stop the server and remove its folder."""
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
                elif word == "status":
                    output = "running" if server is None or server.poll() is None else "ended"
                elif server is not None:
                    control(server, word)
            except OSError as error:
                code, output = None, f"{error.strerror}"
            with suppress(BrokenPipeError):  # the parent has been killed, so the input ends, too
                os.write(1, json.dumps([code, output]).encode() + b"\n")
    finally:
        if server is not None:
            stop(server)
        shutil.rmtree(folder, ignore_errors=True)


def run(command: list[str], folder: str, user: int, group: int) -> tuple[int, str]:
    """Run a command to completion as a user, and return its exit code and its output."""
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
    """Start the server as a user, in a new process group; its output goes into a file."""
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
        send_signal(process_tree(server.pid), signal.SIGCONT)
        return
    send_signal([server.pid], signal.SIGSTOP)  # a stopped server cannot start more children
    everybody = process_tree(server.pid)
    send_signal(everybody, signal.SIGSTOP if word == "pause" else signal.SIGKILL)
    if word == "kill":
        server.wait()
        while any(map(is_running, everybody)):
            time.sleep(0.01)


def send_signal(processes: list[int], number: int) -> None:
    """Send a signal to processes; ignore processes that have already ended."""
    for one in processes:
        with suppress(ProcessLookupError):
            os.kill(one, number)


def process_tree(first: int) -> list[int]:
    """Return a process and its descendants, which may be in other groups (as PostgreSQL's are)."""
    parents = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit() and (fields := status(int(name))):
            parents[int(name)] = int(fields[1])
    found = [first]
    for one in found:  # the list grows while the loop runs
        found += [child for child, parent in parents.items() if parent == one]
    return found


def is_running(process: int) -> bool:
    """Return whether a process is running; a zombie does not count as running."""
    fields = status(process)
    return bool(fields) and fields[0] not in ("Z", "X")


def status(process: int) -> list[str]:
    """Return a process's status fields, beginning with its state; empty if it does not exist."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def stop(server: subprocess.Popen[bytes]) -> None:
    """Stop the server with SIGTERM; if it does not exit, kill it and its descendants."""
    everybody = process_tree(server.pid) if server.poll() is None else []
    send_signal(everybody, signal.SIGCONT)
    if server.poll() is None:
        server.terminate()
        until = time.monotonic() + GRACE_S
        while server.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
    # Descendants that are still alive notice that the server has ended, and exit on their own.
    if server.poll() is None:
        send_signal(everybody, signal.SIGKILL)
    server.wait()


if __name__ == "__main__":
    main()
