"""Judges what was recorded so far, in a child process, while the clients go on.

The whole prefix is checked each time, at sizes that grow by a quarter: all checks together cost at
most five times the last one. A refuted prefix ends the run; the verdict that counts is that of the
whole file. (With repeated values, a later writer may explain a read that no earlier one could.)
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

FIRST: Final = 200  # transactions before the first look
GROWTH: Final = 1.25


class Look(Struct, frozen=True, kw_only=True):
    """What a look at a prefix found.

    Attributes:
        outcome: ``valid``, ``invalid`` or ``unknown``.
        transactions: how many the prefix has.
        anomaly: of a violation, its name.
    """

    outcome: str
    transactions: int
    anomaly: str = ""


class Watcher:
    """Looks at a growing file until it is told to end.

    Attributes:
        last: what the last look found; ``None`` before the first.
    """

    def __init__(self, path: Path, spec: str, *, count: Callable[[], int], seconds: float) -> None:
        """Begin.

        Args:
            path: the file of a recorder.
            spec: by what to judge it.
            count: the number of transactions that are in the file.
            seconds: for one look.
        """
        self.last: Look | None = None
        self.refuted = threading.Event()
        self._path, self._spec, self._count, self._seconds = path, spec, count, seconds
        self._end = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop looking."""
        self._end.set()
        child = self._child
        if child is not None and child.poll() is None:
            child.kill()
        self._thread.join()

    def _watch(self) -> None:
        due = FIRST
        while not self._end.wait(0.05):
            size = self._count()
            if size < due:
                continue
            due = int(size * GROWTH) + 1
            data = self._path.read_bytes()
            look = self._look(data[: data.rfind(b"\n") + 1])
            if look is None:
                continue
            self.last = look
            if look.outcome == "invalid":
                self.refuted.set()
                return

    def _look(self, data: bytes) -> Look | None:
        command = [sys.executable, "-m", "isolang.run.prefix", self._spec, str(self._seconds)]
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        said, _ = self._child.communicate(data)
        try:
            return msgspec.json.decode(said, type=Look)
        except msgspec.DecodeError:  # it was killed, or cannot judge this: the whole file will tell
            return None


def main() -> None:
    """Judge the history on the standard input; the child's part."""
    import io

    from isolang.api import check, load_history
    from isolang.verdict import Invalid

    os.nice(5)  # the clients go first
    spec, seconds = sys.argv[1:]
    history = load_history(io.BytesIO(sys.stdin.buffer.read()), "edn")
    verdict = check(history, spec, timeout=float(seconds), threads=1)
    certain = isinstance(verdict, Invalid) and verdict.certified
    look = Look(
        outcome="unknown" if isinstance(verdict, Invalid) and not certain else verdict.outcome,
        transactions=history.counts()["transactions"],
        anomaly=verdict.violation.anomaly if isinstance(verdict, Invalid) else "",
    )
    sys.stdout.buffer.write(msgspec.json.encode(look))


if __name__ == "__main__":
    main()
