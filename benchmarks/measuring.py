"""Measures whole commands, each in its own process with a time limit and a memory limit.

The cost of a check is the wall time of the whole command, minus the time of the same command on a
history of two lines. This subtracts only the start of the interpreter and its imports. Memory is
the peak of resident memory, minus the peak of the run on two lines.
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# If an interpreter may not write byte code, it compiles all imported modules in each run. This
# costs about 40 ms for an explanation, which users of an installed package do not pay.
KEEP_BYTE_CODE = {"PYTHONDONTWRITEBYTECODE": ""}

TWO_LINES = {
    "dbcop": ["w(0,1,1,1)", "r(0,1,2,2)"],  # another writer converts it to this format
    "plume": ["w(0,1,1,1)", "r(0,1,2,2)"],
    "edn": [
        "{:index 0, :type :invoke, :process 0, :f :txn, :value [[:w 0 1]]}",
        "{:index 1, :type :ok, :process 0, :f :txn, :value [[:w 0 1]]}",
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A command to measure.

    Attributes:
        name: the name in tables.
        command: the command, which contains ``{history}`` and, if it accepts a level, ``{level}``.
        reports: whether the command prints one JSON report, as ``isocheck check -o json`` does.
        environment: the environment variables that differ from those of this process.
    """

    name: str
    command: tuple[str, ...]
    reports: bool = False
    environment: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Tool:
        """Parse a tool of the form ``name=command {history}``.

        Raises:
            ValueError: if the text has another form.
        """
        name, equals, command = text.partition("=")
        if not equals or "{history}" not in command:
            raise ValueError(f"--peer {text}: expected 'name=command {{history}}'")
        return cls(name=name, command=tuple(shlex.split(command)))

    def on(self, history: Path, level: str) -> list[str]:
        """Return the command line for one history."""
        return [
            part.replace("{history}", str(history)).replace("{level}", level)
            for part in self.command
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of one run of a command.

    Attributes:
        seconds: the wall time in seconds.
        cpu: the user and system time in seconds, including children.
        megabytes: the peak of resident memory.
        ended: ``ok``, ``timeout``, ``memory`` or ``failed`` (by a signal, or without the expected
            report).
        code: the exit code; negative for a signal.
        report: the last line of the output as JSON, if the tool prints reports.
    """

    seconds: float
    cpu: float
    megabytes: float
    ended: str
    code: int
    report: dict[str, Any] = field(default_factory=dict)


def run(
    command: Sequence[str],
    *,
    timeout: float,
    megabytes: float,
    reports: bool = False,
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
) -> Run:
    """Run a command with limits.

    Args:
        command: the command and its arguments.
        timeout: the limit of wall time in seconds.
        megabytes: the limit of private writable memory.
        reports: whether the output ends in a JSON object.
        environment: the environment variables that differ from those of this process.
        folder: the working folder.
    """
    limit = int(megabytes * 1e6)

    def cap() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    start = time.perf_counter()
    # The output goes to a file, because a pipe would have to be read while the command runs.
    with Path(os.devnull).open("rb") as nothing, tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            list(command),
            stdin=nothing,
            stdout=out,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})},
            cwd=folder,
            start_new_session=True,
            preexec_fn=cap,  # noqa: PLW1509 - this program has one thread
        )
        code, used, late = _wait(process, start + timeout)
        seconds = time.perf_counter() - start
        out.seek(0)
        text = out.read().decode(errors="replace")
    report: dict[str, Any] = {}
    ended = "timeout" if late else "failed" if code < 0 else "ok"
    if reports and not late:
        try:
            report = json.loads(text.strip().splitlines()[-1])
        except (IndexError, ValueError):
            ended = "failed"
        if str(report.get("reason", "")).startswith("memory"):
            ended = "memory"
    return Run(
        seconds=seconds,
        cpu=used.ru_utime + used.ru_stime,
        megabytes=used.ru_maxrss / 1024,  # kilobytes on Linux
        ended=ended,
        code=code,
        report=report,
    )


def _wait(process: subprocess.Popen[bytes], deadline: float) -> tuple[int, Any, bool]:
    """Wait for a process until a deadline, and kill it and its children after the deadline.

    Return the exit code, the resources that it used, and whether it was killed.
    """
    late = False
    pause = 0.001
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, used, late
        if not late and time.perf_counter() > deadline:
            late = True
            os.killpg(process.pid, signal.SIGKILL)  # it has its own session
        time.sleep(pause)
        pause = min(pause * 1.2, 0.01)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The median of several runs of a command, minus the cost of a run on two lines.

    Attributes:
        seconds: the net median of the wall time.
        spread: the smallest and the greatest net wall time.
        cpu: the net median of the CPU time.
        megabytes: the greatest net peak of memory.
        gross_seconds: the median of the wall time of whole runs.
        gross_megabytes: the greatest peak of memory of whole runs.
        runs: the number of runs.
        ended: how the last run ended.
        report: the report of the last run.
    """

    seconds: float
    spread: tuple[float, float]
    cpu: float
    megabytes: float
    gross_seconds: float
    gross_megabytes: float
    runs: int
    ended: str
    report: dict[str, Any]


class Bench:
    """Measures tools, and subtracts the cost of each tool on a history of two lines."""

    def __init__(
        self, folder: Path, *, timeout: float, megabytes: float, runs: int, long: float = 20.0
    ) -> None:
        """Set the limits and the number of runs.

        Args:
            folder: the folder for histories of two lines.
            timeout: the time limit for one run in seconds.
            megabytes: the memory limit for one run.
            runs: the number of runs of each command.
            long: if the first run takes more than this many seconds, it is the only run.
        """
        self.folder, self.timeout, self.megabytes = folder, timeout, megabytes
        self.runs, self.long = runs, long
        self._idle: dict[tuple[str, str, str], tuple[float, float, float]] = {}

    def two_lines(self, form: str) -> Path:
        """Return a history of two lines, in a format similar to the measured format."""
        from isolang.api import load_history
        from isolang.history import write_history

        form = form if form in TWO_LINES else "plume"
        path = self.folder / f"two-lines.{form}"
        if not path.exists():
            text = "\n".join(TWO_LINES[form]) + "\n"
            if form == "dbcop":
                plume = self.two_lines("plume")
                write_history(load_history(plume), path, format="dbcop")
            else:
                path.write_text(text)
        return path

    def once(self, tool: Tool, history: Path, level: str) -> Run:
        """Run a tool once under the limits."""
        return run(
            tool.on(history, level),
            timeout=self.timeout,
            megabytes=self.megabytes,
            reports=tool.reports,
            environment=tool.environment,
        )

    def idle(self, tool: Tool, form: str, level: str) -> tuple[float, float, float]:
        """Return the cost of a tool on two lines: median seconds, CPU seconds and megabytes."""
        key = (tool.name, form, level)
        if key not in self._idle:
            times = min(5, 2 * self.runs - 1)
            found = [self.once(tool, self.two_lines(form), level) for _ in range(times)]
            self._idle[key] = (
                statistics.median(r.seconds for r in found),
                statistics.median(r.cpu for r in found),
                statistics.median(r.megabytes for r in found),
            )
        return self._idle[key]

    def measure(self, tool: Tool, history: Path, form: str, level: str) -> Measured:
        """Run a command several times.

        If the difference to the run on two lines is small, each run directly follows a run on two
        lines, so that both see the same state of the machine.
        """
        wall, cpu, memory = self.idle(tool, form, level)
        found: list[Run] = []
        idle: list[Run] = []
        while len(found) < self.runs:
            if not found or found[-1].seconds < 5 * wall:
                idle.append(self.once(tool, self.two_lines(form), level))
            found.append(self.once(tool, history, level))
            if found[-1].seconds > self.long or found[-1].ended != "ok":
                break
        if len(idle) == len(found) > 1:
            wall = statistics.median(r.seconds for r in idle)
            cpu = statistics.median(r.cpu for r in idle)
        return measured(found, wall, cpu, memory)


def measured(found: Sequence[Run], wall: float, cpu: float, memory: float) -> Measured:
    """Summarize runs, and subtract the cost of a run on two lines."""
    seconds = sorted(r.seconds - wall for r in found)
    peak = max(r.megabytes for r in found)
    return Measured(
        seconds=max(0.0, statistics.median(seconds)),
        spread=(max(0.0, seconds[0]), max(0.0, seconds[-1])),
        cpu=max(0.0, statistics.median(r.cpu for r in found) - cpu),
        megabytes=max(0.0, peak - memory),
        gross_seconds=statistics.median(r.seconds for r in found),
        gross_megabytes=peak,
        runs=len(found),
        ended=found[-1].ended,
        report=found[-1].report,
    )
