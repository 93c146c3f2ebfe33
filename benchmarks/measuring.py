"""Timing whole commands: each run is a process of its own, with a time limit and a memory limit.

What a check costs is the wall time of the whole command less that of the same command on a history
of two lines: the start of the interpreter and its imports count for nothing, and nothing else is
left out. Memory is the peak of resident memory, less that of the same two-line run.
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

# An interpreter that is told to write no byte code compiles every module that a run imports anew:
# an explanation, say, then costs 40 ms of compiling that nobody with an installed package has.
KEEP_BYTE_CODE = {"PYTHONDONTWRITEBYTECODE": ""}

TWO_LINES = {
    "dbcop": ["w(0,1,1,1)", "r(0,1,2,2)"],  # written through the converter
    "plume": ["w(0,1,1,1)", "r(0,1,2,2)"],
    "edn": [
        "{:index 0, :type :invoke, :process 0, :f :txn, :value [[:w 0 1]]}",
        "{:index 1, :type :ok, :process 0, :f :txn, :value [[:w 0 1]]}",
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """Something to time.

    Attributes:
        name: what tables call it.
        command: with ``{history}`` and, if it can, ``{level}`` in it.
        reports: whether it prints one JSON report, as ``isocheck check -o json`` does.
        environment: what is different in its environment.
    """

    name: str
    command: tuple[str, ...]
    reports: bool = False
    environment: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Tool:
        """Read ``name=command {history}``.

        Raises:
            ValueError: if that is not what it is.
        """
        name, equals, command = text.partition("=")
        if not equals or "{history}" not in command:
            raise ValueError(f"--peer {text}: expected 'name=command {{history}}'")
        return cls(name=name, command=tuple(shlex.split(command)))

    def on(self, history: Path, level: str) -> list[str]:
        """The command line for one history."""
        return [
            part.replace("{history}", str(history)).replace("{level}", level)
            for part in self.command
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of one command.

    Attributes:
        seconds: wall time.
        cpu: user and system time, children included.
        megabytes: peak resident memory.
        ended: ``ok``, ``timeout``, ``memory`` or ``failed`` (a signal, or no report where one is
            expected).
        code: the exit code; negative for a signal.
        report: the last line of the output as JSON, for tools that report.
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
) -> Run:
    """Run a command under limits.

    Args:
        command: its words.
        timeout: seconds of wall time.
        megabytes: of private writable memory.
        reports: whether its output ends in a JSON object.
        environment: what is different in its environment.
    """
    limit = int(megabytes * 1e6)

    def cap() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    start = time.perf_counter()
    # A file, not a pipe: nobody has to read while it runs.
    with Path(os.devnull).open("rb") as nothing, tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            list(command),
            stdin=nothing,
            stdout=out,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})},
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
    """Wait for a process, or end it and its children; exit code, resources, whether it was late."""
    late = False
    pause = 0.001
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, used, late
        if not late and time.perf_counter() > deadline:
            late = True
            os.killpg(process.pid, signal.SIGKILL)  # its own session: nobody else is in it
        time.sleep(pause)
        pause = min(pause * 1.2, 0.01)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Several runs of one command, less what it costs on nothing.

    Attributes:
        seconds: the median, net.
        spread: the smallest and the greatest, net.
        cpu: the median, net.
        megabytes: the greatest peak, net.
        gross_seconds: the median, whole.
        gross_megabytes: the greatest peak, whole.
        runs: how many.
        ended: how the last one ended.
        report: of the last one.
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
    """Measures tools, each against its own two-line run."""

    def __init__(
        self, folder: Path, *, timeout: float, megabytes: float, runs: int, long: float = 20.0
    ) -> None:
        """Prepare.

        Args:
            folder: where two-line histories are written.
            timeout: seconds for one run.
            megabytes: for one run.
            runs: of each command; one only if the first takes more than ``long`` seconds.
            long: see ``runs``.
        """
        self.folder, self.timeout, self.megabytes = folder, timeout, megabytes
        self.runs, self.long = runs, long
        self._idle: dict[tuple[str, str, str], tuple[float, float, float]] = {}

    def two_lines(self, form: str) -> Path:
        """A history of two lines, in a format like the one that is measured."""
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
        """One run under the limits."""
        return run(
            tool.on(history, level),
            timeout=self.timeout,
            megabytes=self.megabytes,
            reports=tool.reports,
            environment=tool.environment,
        )

    def idle(self, tool: Tool, form: str, level: str) -> tuple[float, float, float]:
        """What the command costs on nothing: medians of seconds, CPU seconds, megabytes."""
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
        """Run a command some times.

        Where the difference to two lines is small, each run is paired with a two-line run just
        before it, so that both meet the same state of the machine.
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
    """Sum runs up, less what they cost on nothing."""
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
