"""Child processes: work under limits of time and memory, whose end is never the run's.

The child is given a task, a pickle that the parent made for it alone, and says what comes of it in
lines of JSON: ``[kind, what]``. Nothing that it needs is a file with a name, so that a run that is
killed leaves nothing behind.
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

#: What a child may have said so far; gives how many seconds more it has, ``None`` for as before.
Hear: TypeAlias = Callable[[str, Any], float | None]
Say: TypeAlias = Callable[[str, Any], None]

EXIT_MEMORY: Final = 77  # not even the modules fitted
NO_LIMIT: Final = float("inf")
_TICK = 3600.0  # seconds: the longest that one wait may be given

# The child imports the package from where this process has it, and nothing (-P) from the current
# folder, in which a history may lie beside some numpy.py.
_WORK = (
    "import sys; sys.path.append(sys.argv[3]); from isolang.jobs.child import serve; "
    "serve(sys.argv[1], int(sys.argv[2]))"
)
_ROOT = str(Path(__file__).resolve().parents[2])


class Ended(Struct, frozen=True, kw_only=True):
    """How a child ended.

    Attributes:
        status: its exit status; negative for a signal.
        said: what it wrote on the standard error output.
        late: whether it was ended because its time was up.
        peak: the most megabytes that it has had at a time, if that was asked for and is known.
    """

    status: int
    said: str
    late: bool = False
    peak: float | None = None

    @property
    def last_line(self) -> str:
        """The end of what it said."""
        return self.said.splitlines()[-1] if self.said else ""

    @property
    def lacked_memory(self) -> bool:
        """Whether it ended as what has no memory left ends."""
        return self.status == EXIT_MEMORY or any(word in self.said for word in _OUT_OF_MEMORY)


# What libraries say when the system gives them no more.
_OUT_OF_MEMORY = (
    "MemoryError", "bad_alloc", "out of memory", "failed to map segment", "Cannot allocate",
    "Resource temporarily unavailable",
)  # fmt: skip


class Children:
    """The children of one run; ``close`` ends those that still work."""

    def __init__(self) -> None:
        """Begin without children."""
        self._lock = threading.Lock()
        self._there: set[subprocess.Popen[bytes]] = set()
        self.closed = False

    def run(
        self, work: str, task: object, hear: Hear, *, first: float = NO_LIMIT, stdin: bool = False,
        measured: bool = False,
    ) -> Ended:  # fmt: skip
        """Run a task in a child, and hear what it says until it ends.

        Args:
            work: ``module:function``, called in the child with the task and with ``say``.
            task: can be pickled.
            hear: called with each kind and what was said.
            first: seconds until it is ended, if it says nothing before.
            stdin: whether it reads the standard input of this process.
            measured: end it when it has nothing more to say, before its memory is given back.
        """
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as errors:
            given.write(pickle.dumps(task))
            given.flush()
            with self._lock:
                if self.closed:
                    return Ended(status=0, said="interrupted")
                child = self._start(work, given, errors, stdin=stdin)
                self._there.add(child)
            peak = None
            try:
                late = _listen(child, hear, first)
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
            said = errors.read().decode("utf-8", "replace").strip()
        return Ended(status=child.returncode, said=said, late=late, peak=peak)

    def close(self) -> None:
        """End all children, at once."""
        with self._lock:
            self.closed = True
            for child in self._there:
                with suppress(OSError):
                    child.kill()

    def _start(
        self, work: str, given: IO[bytes], errors: IO[bytes], *, stdin: bool
    ) -> subprocess.Popen[bytes]:
        # A session of its own: Ctrl-C reaches the parent alone, which ends the child.
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _WORK, work, str(given.fileno()), _ROOT],
            stdin=None if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            pass_fds=[given.fileno()],
            start_new_session=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )


def _listen(child: subprocess.Popen[bytes], hear: Hear, first: float) -> bool:
    """Hear what a child says until it has ended, or is late; whether it is."""
    assert child.stdout is not None
    buffer, deadline = b"", time.monotonic() + first
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return True
            if not selector.select(min(left, _TICK)):
                continue
            chunk = os.read(child.stdout.fileno(), 1 << 16)
            if not chunk:
                return False
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                more = hear(*json.loads(line))
                if more is not None:
                    deadline = time.monotonic() + more


# --- in the child ---


def serve(work: str, given: int) -> None:
    """Do the work that the parent asks for, and end the process."""
    open_streams()
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii", buffering=1)
    _die_with_parent()

    def say(kind: str, what: Any) -> None:
        out.write(json.dumps([kind, what]) + "\n")
        out.flush()

    status = 0
    try:
        os.lseek(given, 0, os.SEEK_SET)
        with os.fdopen(given, "rb") as file:
            task = pickle.load(file)
        module, function = work.split(":")
        getattr(import_module(module), function)(task, say)
    except MemoryError:
        status = EXIT_MEMORY
    except BaseException:
        import traceback

        traceback.print_exc()
        status = 1
    # No clean-up at the end: freeing large columns one by one would only take time.
    sys.stderr.flush()
    os._exit(status)


def _die_with_parent() -> None:
    """End when the parent has ended, however it did."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def peak_megabytes(process: int) -> float | None:
    """The most memory that a process has had at a time; ``None`` where it cannot be known.

    Not ``ru_maxrss``: on Linux a child begins with what its parent had.
    """
    try:
        with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return round(int(line.split()[1]) / 1e3, 1)
    except OSError:
        pass
    return None
