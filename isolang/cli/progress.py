"""Provides a progress bar and a status line, shown only if stderr is a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Generic, ParamSpec

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_LONG = 0.7  # the seconds after which the bar appears

_What = ParamSpec("_What")


class Bar:
    """A progress bar that shows the number of processed histories and the current phase."""

    def __init__(self, total: int = 0, budget: float | None = None) -> None:
        """Prepare the bar, which appears only after a short time.

        Args:
            budget: the time limit for one verdict in seconds, for showing the remaining time;
                ``None`` means no limit.
        """
        self._total = total
        self._budget = budget
        self._began = time.monotonic()
        self._done = 0
        self._phase = ""
        self._lock = threading.Lock()
        self._shown: tuple[Progress, TaskID] | None = None
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Bar:
        if sys.stderr.isatty():
            self._timer = threading.Timer(_LONG, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._shown is not None:
                self._shown[0].stop()
                self._shown = None

    def phase(self, name: str) -> None:
        """Show the name of the phase that is beginning; ``read`` restarts the time limit."""
        with self._lock:
            if name == "read":
                self._began = time.monotonic()
            self._phase = name
            self._update()

    def step(self) -> None:
        """Count one more history as processed."""
        with self._lock:
            self._done += 1

    def reached(self, done: int, total: int) -> None:
        """Show how much of the work is done."""
        with self._lock:
            self._done, self._total = done, total
            self._update()

    def pause(self) -> None:
        """Hide the bar before something is printed; the next :meth:`phase` shows it again."""
        with self._lock:
            if self._shown is not None:
                self._shown[0].stop()
                self._shown = None

    def _update(self) -> None:
        if self._shown is not None:
            progress, task = self._shown
            progress.update(task, completed=self._done, total=self._total, phase=self._text())
        elif self._timer is not None and not self._timer.is_alive():
            self._start()

    def _text(self) -> str:
        if self._budget is None:
            return self._phase
        remaining = max(0.0, self._budget - (time.monotonic() - self._began))
        return f"{self._phase} ({remaining:.0f} s left)"

    def _show(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._start()

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed

        console = Console(stderr=True)
        columns = (MofNCompleteColumn(), BarColumn(), TextColumn("{task.fields[phase]}"), Elapsed())
        progress = Progress(*columns, console=console, transient=True)
        task = progress.add_task("", total=self._total, completed=self._done, phase=self._text())
        progress.start()
        self._shown = (progress, task)


class StatusLine(Generic[_What]):
    """A status line that overwrites itself on a terminal, and writes nothing to other streams."""

    def __init__(self, stream: IO[str], text: Callable[_What, str]) -> None:
        """Prepare an empty line."""
        self._stream, self._text = stream, text
        self._shown = stream.isatty()
        self._wrote = False

    def show(self, *what: _What.args, **named: _What.kwargs) -> None:
        """Replace the line's text with the text for these arguments."""
        if self._shown:
            self._write(f"\r\x1b[K{self._text(*what, **named)}")
            self._wrote = True

    def end(self) -> None:
        """Clear the line."""
        if self._wrote:
            self._write("\r\x1b[K")
            self._wrote = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
