"""Starts a child process with a new Python interpreter, which shares no memory with its parent.

A forked child would inherit locks that other threads of this process hold (in numpy, in a driver,
in the calling program), but not the threads that would release them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Final

_BEGIN: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from isolang.run.play.child import _begin; _begin(int(sys.argv[1]))"
)


class Child:
    """A child process that leads its own process group and runs one function.

    Attributes:
        pid: the process id of the child, which is also the id of its process group.
        pipe: the connection to the child, for messages in both directions.
    """

    def __init__(
        self, work: Callable[..., None], /, *, files: tuple[int, ...] = (), **arguments: object
    ) -> None:
        """Start the process."""
        self.pipe, theirs = Pipe()
        with theirs:
            paths = [os.path.abspath(one) for one in sys.path]
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BEGIN, str(theirs.fileno()), *paths],
                stdout=2,  # keep the output of drivers and engines out of reports
                pass_fds=(theirs.fileno(), *files),
                start_new_session=True,
            )
        self.pid = self._process.pid
        with contextlib.suppress(OSError):  # the child has ended; the pipe's reader notices
            self.pipe.send((work, arguments))

    def ended(self) -> bool:
        """Return whether the process has ended."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """Kill the child and all processes in its process group, and close the pipe."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self.pipe.close()


def _begin(file: int) -> None:
    """Run the function sent by the parent; the new interpreter calls this function first."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent handles Ctrl-C
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.stdout = sys.stderr
        pipe = Connection(file)
        work: Callable[..., None]
        arguments: dict[str, Any]
        work, arguments = pipe.recv()
        work(pipe, **arguments)
    finally:
        os._exit(0)
