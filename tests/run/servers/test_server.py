"""Servers of our own go away with us, whatever happens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import ENVIRONMENT

CODE = """
import os, signal, sys, threading
from isolang.run.servers.server import Server
server = Server("sleeper")
os.chmod(server.folder, 0o777)
print(server.folder, flush=True)
if sys.argv[1] == "runs":
    server.start(["/bin/sh", "-c", "exec sleep 1000"], lambda: None)
elif sys.argv[1] == "is made":
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
    server.run(["/bin/sh", "-c", "sleep 1; touch data; echo made"])
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("phase", ["has a folder", "is made", "runs"])
def test_a_server_whose_parent_is_killed_is_removed(phase):
    """By its keeper, which has the output open for as long as it lives; and it says nothing."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", CODE, phase],
        capture_output=True, text=True, check=False, env=ENVIRONMENT, timeout=60,
    )  # fmt: skip
    assert done.returncode == -9
    assert done.stderr == ""
    folder = Path(done.stdout.strip())
    assert folder.name.startswith("isocheck-")
    assert not folder.exists()


@pytest.mark.server
def test_what_cannot_be_run_is_said():
    """In a line, with the name of the program."""
    from isolang.run.servers.server import Server
    from isolang.run.target import TargetError

    server = Server("sleeper")
    try:
        with pytest.raises(TargetError, match="cannot run /no/such/program"):
            server.run(["/no/such/program"])
        with pytest.raises(TargetError, match=r"failed .an ERROR of its own"):
            server.run(["/bin/sh", "-c", "echo first; echo an ERROR of its own; exit 3"])
    finally:
        server.stop()
    assert not Path(server.folder).exists()
