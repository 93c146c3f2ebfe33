"""Runs work in child processes with limited time and memory, and survives children that end early.

The parent passes the task to the child as a pickle. The child sends messages as lines of JSON:
``[kind, content]``. All files are unnamed, so a run that is killed leaves no files behind.
"""

from __future__ import annotations

import json
import os
import pickle
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

from msgspec import Struct

from isolang.output.terminal import open_streams


class Limit(Struct, frozen=True):
    """The time for which a child may go on.

    Attributes:
        cpu: seconds of its own processor time.
        clock: seconds on the clock.
    """

    cpu: float = float("inf")
    clock: float = float("inf")


#: The function that receives a message. It returns how many more seconds the child may run, or
#: ``None`` to leave the limit unchanged.
Receive: TypeAlias = Callable[[str, Any], float | Limit | None]
Send: TypeAlias = Callable[[str, Any], None]

EXIT_MEMORY: Final = 77  # the exit status of a child without enough memory for its imports
NO_LIMIT: Final = float("inf")
_TICK = 3600.0  # the longest wait in seconds accepted by the operating system
_CLOCK_TICK = 0.01  # the precision in seconds of the processor time of another process

# The child imports the package from the same folder as this process. It imports no files from the
# current folder (-P), because that folder may contain a file such as numpy.py.
_WORK = (
    "import sys; sys.path.append(sys.argv[3]); from isolang.jobs.child import serve; "
    "serve(sys.argv[1], int(sys.argv[2]))"
)
_ROOT = str(Path(__file__).resolve().parents[2])


class EndedChild(Struct, frozen=True, kw_only=True):
    """The exit status, error output and peak memory of a child process that has ended.

    Attributes:
        timed_out: whether the child was killed for exceeding its time limit.
        peak_megabytes: the peak memory of the child in megabytes; ``None`` if it was not measured
            or is unknown.
    """

    status: int
    errors: str
    timed_out: bool = False
    peak_megabytes: float | None = None

    @property
    def last_line(self) -> str:
        """Return the last line of the child's standard error output; empty without output."""
        return self.errors.splitlines()[-1] if self.errors else ""

    @property
    def lacked_memory(self) -> bool:
        """Return whether the child ended because it ran out of memory."""
        return self.status == EXIT_MEMORY or any(word in self.errors for word in _OUT_OF_MEMORY)


# Texts in the messages that libraries print when an allocation fails.
_OUT_OF_MEMORY = (
    "MemoryError", "bad_alloc", "out of memory", "failed to map segment", "Cannot allocate",
    "Resource temporarily unavailable", "Memory allocation still failed",
)  # fmt: skip


class Children:
    """The child processes of one run; ``close`` kills any that have not ended."""

    def __init__(self, folder: str | None = None) -> None:
        """Store the folder in which children will run; start no child yet."""
        self._folder = folder
        self._lock = threading.Lock()
        self._there: set[subprocess.Popen[bytes]] = set()
        self.closed = False

    def run(
        self, work: str, task: object, receive: Receive, *, first: float = NO_LIMIT,
        stdin: bool = False, measured: bool = False,
    ) -> EndedChild:  # fmt: skip
        """Run a task in a new child process, and receive its messages until it ends.

        Args:
            first: kill the child if it has not sent a message after this many seconds.
            measured: whether to measure the peak memory of the child. If so, the child is killed
                after its last message, so that no time is spent on freeing memory.
        """
        with tempfile.TemporaryFile() as task_file, tempfile.TemporaryFile() as errors:
            task_file.write(pickle.dumps(task))
            task_file.flush()
            with self._lock:
                if self.closed:
                    return EndedChild(status=0, errors="interrupted")
                child = self._start(work, task_file, errors, stdin=stdin)
                self._there.add(child)
            peak = None
            try:
                late = _listen(child, receive, first)
                peak = peak_megabytes(child.pid) if measured else None
                if late or measured:
                    child.kill()
            finally:
                if child.poll() is None and sys.exc_info()[0] is not None:
                    child.kill()
                child.wait()
                assert child.stdout is not None
                child.stdout.close()
                with self._lock:
                    self._there.discard(child)
            errors.seek(0)
            text = errors.read().decode("utf-8", "replace").strip()
        return EndedChild(status=child.returncode, errors=text, timed_out=late, peak_megabytes=peak)

    def close(self) -> None:
        """Kill all children that have not yet ended."""
        with self._lock:
            self.closed = True
            for child in self._there:
                with suppress(OSError):
                    child.kill()

    def _start(
        self, work: str, task_file: IO[bytes], errors: IO[bytes], *, stdin: bool
    ) -> subprocess.Popen[bytes]:
        # The child gets a new process session, so that Ctrl-C reaches only the parent, which then
        # kills the child.
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _WORK, work, str(task_file.fileno()), _ROOT],
            stdin=None if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            pass_fds=[task_file.fileno()],
            start_new_session=True,
            cwd=self._folder,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )


def _listen(child: subprocess.Popen[bytes], receive: Receive, first: float) -> bool:
    """Receive messages until the child ends or its time is up; return whether the time was up."""
    assert child.stdout is not None
    buffer, deadline, cpu_limit = b"", time.monotonic() + first, NO_LIMIT
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            remaining = deadline - time.monotonic()
            if cpu_limit != NO_LIMIT:
                unused = cpu_limit - cpu_seconds(child.pid)
                # It cannot use this time faster, unless several threads run.
                remaining = min(remaining, unused if unused <= 0 else max(unused, _CLOCK_TICK))
            if remaining <= 0:
                return True
            if not selector.select(min(remaining, _TICK)):
                continue
            chunk = os.read(child.stdout.fileno(), 1 << 16)
            if not chunk:
                return False
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                more = receive(*json.loads(line))
                if isinstance(more, Limit):
                    deadline = time.monotonic() + more.clock
                    cpu_limit = NO_LIMIT
                    if more.cpu != NO_LIMIT:
                        cpu_limit = cpu_seconds(child.pid) + more.cpu
                elif more is not None:
                    deadline, cpu_limit = time.monotonic() + more, NO_LIMIT


# --- in the child ---


def serve(work: str, task_file: int) -> None:
    """Run the task passed by the parent, and then exit."""
    open_streams()
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii", buffering=1)
    _die_with_parent()

    def send(kind: str, content: Any) -> None:
        out.write(json.dumps([kind, content]) + "\n")
        out.flush()

    status = 0
    try:
        os.lseek(task_file, 0, os.SEEK_SET)
        with os.fdopen(task_file, "rb") as file:
            task = pickle.load(file)
        module, function = work.split(":")
        getattr(import_module(module), function)(task, send)
    except MemoryError:
        status = EXIT_MEMORY
    except BaseException:
        import traceback

        traceback.print_exc()
        status = 1
    # Exit without clean-up, because freeing large columns one by one takes time.
    sys.stderr.flush()
    os._exit(status)


def _die_with_parent() -> None:
    """Make this process exit when its parent ends, even if the parent is killed."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def cpu_seconds(process: int) -> float:
    """Return the processor time of a process so far.

    Where the system does not say, this is the time on the clock, which is never less.
    """
    try:
        fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")  # with children that ended
    except (OSError, ValueError, UnicodeDecodeError):
        return time.monotonic()


def peak_megabytes(process: int) -> float | None:
    """Return the peak memory of a process in megabytes; ``None`` if it is unknown.

    This is not ``ru_maxrss``, because on Linux a child inherits that value from its parent.
    """
    try:
        with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return round(int(line.split()[1]) / 1e3, 1)
    except OSError:
        pass
    return None
