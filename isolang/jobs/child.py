"""Runs work in child processes with limits of time and memory; a child that dies ends no run.

The parent passes a task to the child as a pickle, and the child sends messages as lines of JSON:
``[kind, content]``. No file has a name, so a run that is killed leaves nothing behind.
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

#: Receives a message; returns how many seconds the child has from now, ``None`` for no change.
Receive: TypeAlias = Callable[[str, Any], float | None]
Send: TypeAlias = Callable[[str, Any], None]

EXIT_MEMORY: Final = 77  # the memory did not even suffice for the modules
NO_LIMIT: Final = float("inf")
_TICK = 3600.0  # seconds: the longest that one wait may be given

# The child imports the package from the folder from which this process imported it, and nothing
# (-P) from the current folder, which may contain some numpy.py.
_WORK = (
    "import sys; sys.path.append(sys.argv[3]); from isolang.jobs.child import serve; "
    "serve(sys.argv[1], int(sys.argv[2]))"
)
_ROOT = str(Path(__file__).resolve().parents[2])


class Ended(Struct, frozen=True, kw_only=True):
    """The end of a child.

    Attributes:
        status: its exit status; negative for a signal.
        errors: what it wrote on the standard error output.
        late: whether it was killed because its time was up.
        peak: its largest use of memory in megabytes, if it was measured and is known.
    """

    status: int
    errors: str
    late: bool = False
    peak: float | None = None

    @property
    def last_line(self) -> str:
        """The last line that it wrote on the standard error output."""
        return self.errors.splitlines()[-1] if self.errors else ""

    @property
    def lacked_memory(self) -> bool:
        """Return whether it ended for lack of memory."""
        return self.status == EXIT_MEMORY or any(word in self.errors for word in _OUT_OF_MEMORY)


# Parts of the messages of libraries when an allocation fails.
_OUT_OF_MEMORY = (
    "MemoryError", "bad_alloc", "out of memory", "failed to map segment", "Cannot allocate",
    "Resource temporarily unavailable",
)  # fmt: skip


class Children:
    """The children of one run; ``close`` kills those that still work."""

    def __init__(self) -> None:
        """Start without children."""
        self._lock = threading.Lock()
        self._there: set[subprocess.Popen[bytes]] = set()
        self.closed = False

    def run(
        self, work: str, task: object, receive: Receive, *, first: float = NO_LIMIT,
        stdin: bool = False, measured: bool = False,
    ) -> Ended:  # fmt: skip
        """Run a task in a child, and receive its messages until it ends.

        Args:
            work: ``module:function``, called in the child with the task and with ``send``.
            task: an object that can be pickled.
            receive: called with the kind and the content of each message.
            first: seconds after which the child is killed, unless it sends a message before.
            stdin: whether it reads the standard input of this process.
            measured: measure its memory, and kill it after its last message, before it frees it.
        """
        with tempfile.TemporaryFile() as task_file, tempfile.TemporaryFile() as errors:
            task_file.write(pickle.dumps(task))
            task_file.flush()
            with self._lock:
                if self.closed:
                    return Ended(status=0, errors="interrupted")
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
        return Ended(status=child.returncode, errors=text, late=late, peak=peak)

    def close(self) -> None:
        """Kill all children."""
        with self._lock:
            self.closed = True
            for child in self._there:
                with suppress(OSError):
                    child.kill()

    def _start(
        self, work: str, task_file: IO[bytes], errors: IO[bytes], *, stdin: bool
    ) -> subprocess.Popen[bytes]:
        # In a new session, so that Ctrl-C reaches only the parent, which kills the child.
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _WORK, work, str(task_file.fileno()), _ROOT],
            stdin=None if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            pass_fds=[task_file.fileno()],
            start_new_session=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )


def _listen(child: subprocess.Popen[bytes], receive: Receive, first: float) -> bool:
    """Receive the messages of a child until it ends or is late; return whether it is late."""
    assert child.stdout is not None
    buffer, deadline = b"", time.monotonic() + first
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            remaining = deadline - time.monotonic()
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
                if more is not None:
                    deadline = time.monotonic() + more


# --- in the child ---


def serve(work: str, task_file: int) -> None:
    """Do the work that the parent requests, and end the process."""
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
    # Exit without clean-up, since freeing large columns one by one takes time.
    sys.stderr.flush()
    os._exit(status)


def _die_with_parent() -> None:
    """End this process when the parent has ended, for whatever reason."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def peak_megabytes(process: int) -> float | None:
    """Return the peak memory of a process in megabytes; ``None`` if it is not known.

    This is not ``ru_maxrss``, which on Linux a child inherits from its parent.
    """
    try:
        with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return round(int(line.split()[1]) / 1e3, 1)
    except OSError:
        pass
    return None
