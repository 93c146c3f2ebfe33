"""A process of its own: a new interpreter, which shares no memory with this one.

A fork would copy the locks that other threads of this process hold (numpy's, a driver's, those of
the program that calls us), and none of the threads that would let go of them.
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
    """A process that leads a process group, and does one thing.

    Attributes:
        pid: its number, and that of its group.
        pipe: to it and from it.
    """

    def __init__(
        self, work: Callable[..., None], /, *, files: tuple[int, ...] = (), **arguments: object
    ) -> None:
        """Start it.

        Args:
            work: a function of a module; called there with its end of the pipe and the arguments.
            files: descriptors that are open there, too, under the same numbers.
            **arguments: what can be pickled.
        """
        self.pipe, theirs = Pipe()
        with theirs:
            paths = [os.path.abspath(one) for one in sys.path]
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BEGIN, str(theirs.fileno()), *paths],
                stdout=2,  # what drivers and engines print is no report
                pass_fds=(theirs.fileno(), *files),
                start_new_session=True,
            )
        self.pid = self._process.pid
        with contextlib.suppress(OSError):  # it has ended; who listens hears that
            self.pipe.send((work, arguments))

    def ended(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """Kill it, if it still runs, with all that it has started; its pipe is closed."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self.pipe.close()


def _begin(file: int) -> None:
    """Do what the parent says; the new interpreter's part."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.stdout = sys.stderr
        pipe = Connection(file)
        work: Callable[..., None]
        arguments: dict[str, Any]
        work, arguments = pipe.recv()
        work(pipe, **arguments)
    finally:
        os._exit(0)
