"""Children that check histories under caps of time and memory, and how they end."""

from __future__ import annotations

import json
import os
import pickle
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from isolang.cli.job import Job
from isolang.cli.report import Report, unknown_report
from isolang.cli.worker import EXIT_MEMORY

# A child that has not given up by itself so long after its deadline is ended. Starting takes time.
_GRACE = 0.5
_START = 5.0
_TICK = 3600.0  # the longest that one wait may be given


# The child imports the package from where this process has it, and nothing (-P) from the current
# folder, in which a history may lie beside some numpy.py.
_WORK = "import sys; sys.path.append(sys.argv[2]); from isolang.cli.worker import run; run()"
_ROOT = str(Path(__file__).resolve().parents[2])


class Pool:
    """The children of one run; ``close`` ends those that still work."""

    def __init__(self) -> None:
        """Begin without children."""
        self._lock = threading.Lock()
        self._children: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def run(self, job: Job, progress: Callable[[str], object]) -> list[Report]:
        """Run a job in a child, and in another one what a child that was ended left undone."""
        reports: list[Report] = []
        while len(reports) < len(job.specs):
            left = replace(job, specs=job.specs[len(reports) :])
            done, ended = self._run_child(left, progress)
            reports += done
            if self._closed:
                return reports
            if len(reports) < len(job.specs):
                name = job.specs[len(reports)][0]
                reports.append(unknown_report(job.history, name, ended))
        return reports

    def close(self) -> None:
        """End all children, at once."""
        with self._lock:
            self._closed = True
            for child in self._children:
                with suppress(OSError):
                    child.kill()

    def _run_child(self, job: Job, progress: Callable[[str], object]) -> tuple[list[Report], str]:
        """Give the reports of one child, and why it ended if not all are there."""
        with tempfile.TemporaryDirectory(prefix="isocheck-") as folder:
            where = Path(folder, "job")
            where.write_bytes(pickle.dumps(job))
            with open(Path(folder, "stderr"), "w+b") as errors:
                with self._lock:
                    if self._closed:
                        return [], "interrupted"
                    # A session of its own: Ctrl-C reaches the parent alone, which ends the child.
                    child = subprocess.Popen(
                        [sys.executable, "-P", "-c", _WORK, str(where), _ROOT],
                        stdout=subprocess.PIPE,
                        stderr=errors,
                        stdin=None if job.history == "-" else subprocess.DEVNULL,
                        start_new_session=True,
                        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                    )
                    self._children.add(child)
                try:
                    reports, phase, late = _listen(child, job, progress)
                finally:
                    if child.poll() is None and sys.exc_info()[0] is not None:
                        child.kill()
                    child.wait()
                    assert child.stdout is not None
                    child.stdout.close()
                    with self._lock:
                        self._children.discard(child)
                errors.seek(0)
                said = errors.read().decode("utf-8", "replace").strip()
        if late:
            return reports, f"timeout: the time ran out in phase {phase}"
        return reports, _why(child.returncode, phase, said, capped=job.options.memory is not None)


def _listen(
    child: subprocess.Popen[bytes], job: Job, progress: Callable[[str], object]
) -> tuple[list[Report], str, bool]:
    """Read what a child says until it ends, or ends too late.

    Returns:
        Its reports, the last phase it began, and whether it was ended for being late.
    """
    assert child.stdout is not None
    reports: list[Report] = []
    phase, buffer = "start", b""
    patience = None if job.options.timeout is None else job.options.timeout + _GRACE
    # Until it has begun to read, the machine is to blame, not the history.
    deadline = None if patience is None else time.monotonic() + patience + _START
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                child.kill()
                return reports, phase, True
            if not selector.select(None if left is None else min(left, _TICK)):
                continue
            chunk = os.read(child.stdout.fileno(), 1 << 16)
            if not chunk:
                return reports, phase, False
            buffer += chunk
            *lines, buffer = buffer.split(b"\n")
            for line in lines:
                kind, what = json.loads(line)
                if kind == "report":
                    reports.append(what)
                else:
                    phase = what
                    progress(what)
                if patience is not None and (kind == "report" or what == "read"):
                    extra = _MINIMAL if job.minimal else 0.0
                    deadline = time.monotonic() + patience + extra


# Looking for a minimal part keeps to the deadline by itself, but writes its last step whole.
_MINIMAL = 1.0


def _why(status: int, phase: str, said: str, *, capped: bool) -> str:
    """Say in words why a child ended without its reports."""
    lowered = said.lower()
    out_of_memory = "memoryerror" in lowered or "bad_alloc" in lowered
    if capped and phase == "start":
        return "memory: the limit is less than the checker itself needs to start"
    if status == EXIT_MEMORY or (capped and (out_of_memory or -status == signal.SIGSEGV)):
        return f"memory: the memory ran out in phase {phase}"
    last = said.splitlines()[-1] if said else ""
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        hint = ""
        if name == "SIGKILL":
            hint = "; perhaps the system had no memory left (--memory sets a limit)"
        return f"crash: the checker was ended by {name} in phase {phase}{hint}"
    return f"crash: the checker ended with status {status} in phase {phase}: {last}".rstrip(": ")
