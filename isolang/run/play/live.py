"""Judges the growing prefix of a history in a child process, while the clients continue to play.

A short prefix is always judged as a whole. Each such prefix is a quarter longer than the previous
one, so all checks together cost at most five times as much as the last check. A longer prefix is
watched (:mod:`isolang.watch`) if the watch supports the level and the history: then each check
judges only the new transactions, in bounded memory. A refuted prefix ends the run. The final
verdict is then the verdict on the whole file, because with repeated values a later write may
explain a read that no earlier write explains. For a long file, the final verdict comes from the
watch, which judges the remaining transactions and saves its chain next to the history.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from isolang.errors import IsolangError

if TYPE_CHECKING:
    from isolang.watch import Stream, Watch, WatchReport

FIRST_CHECK: Final = 10  # the number of transactions before the first check
GROWTH: Final = 1.25
_VACUITY_LIMIT: Final = 1 << 22  # the size in bytes up to which a prefix is tested for vacuity
_WATCH_FROM: Final = 1 << 23  # the size in bytes from which a prefix is watched if possible
LONG_FILE: Final = 1 << 25  # the size in bytes from which the watch gives a history's final verdict
_ROUND: Final = 2_000  # the number of transactions between two checks of a watched prefix


class LiveVerdict(Struct, frozen=True, kw_only=True):
    """The verdict on a prefix of the history.

    Attributes:
        anomaly: the name of the anomaly that violates the level; empty if no violation was found.
        little: for a vacuous verdict, why the prefix could not have violated the level; otherwise
            empty.
        watched: whether the next check will judge only the new transactions.
        ended: whether this is the verdict on the whole file, after the end of the run.
        note: the assumptions on which the watch's verdict depends; empty unless ``ended``.
        places: the file's line for each transaction that violates the level.
        folder: the folder that contains the chain and the violation, if there is one.
    """

    outcome: str
    transactions: int
    anomaly: str = ""
    little: str = ""
    watched: bool = False
    ended: bool = False
    parts: int = 0
    note: str = ""
    places: tuple[str, ...] = ()
    folder: str = ""


class Watcher:
    """A thread that checks a growing file until the run ends.

    Attributes:
        last: the most recent verdict; ``None`` before the first check.
    """

    def __init__(self, path: Path, spec: str, *, seconds: float) -> None:
        """Start the child process."""
        self.last: LiveVerdict | None = None
        self.refuted = threading.Event()
        self._path, self._spec, self._seconds = path, spec, seconds
        self._little = ""
        self._end = threading.Event()
        self._child = self._start()
        self._thread: threading.Thread | None = None

    def watch(self, count: Callable[[], int]) -> None:
        """Start the thread that checks the growing file.

        Args:
            count: a function that returns the number of transactions currently in the file.
        """
        self._thread = threading.Thread(target=self._watch, args=(count,), daemon=True)
        self._thread.start()

    def rest(self) -> None:
        """Stop checking prefixes; afterwards, :meth:`finish` can still judge a long file."""
        self._end.set()
        if self.last is None or not self.last.watched:
            self._child.kill()

    def finish(self) -> LiveVerdict | None:
        """Return the watch's verdict on the whole file, after the recorder has closed the file."""
        last = self.last
        if last is None or not last.watched or self._path.stat().st_size < LONG_FILE:
            return None
        if self._thread is not None:
            self._thread.join()
        found = self._look(self._path.stat().st_size, last=True)
        if found is None or not found.ended or found.outcome == "unknown":
            return None
        return replace(found, little=self._little)

    def end(self) -> None:
        """Stop checking, and kill the child process."""
        self._end.set()
        self._child.kill()
        if self._thread is not None:
            self._thread.join()
        self._child.kill()  # the thread may have started a new child in the meantime
        self._child.communicate()

    def _watch(self, count: Callable[[], int]) -> None:
        due = FIRST_CHECK
        while not self._end.wait(0.05):
            size = count()
            if size < due:
                continue
            due = int(size * GROWTH) + 1
            look = self._look(self._path.stat().st_size)
            if look is None:
                continue
            if look.watched:
                due = size + _ROUND
            self.last = look
            if not look.watched:
                self._little = look.little
            if look.outcome == "invalid":
                self.refuted.set()
                return

    def _look(self, size: int, *, last: bool = False) -> LiveVerdict | None:
        """Return the child's verdict on a prefix of this many bytes; ``None`` if it fails."""
        if self._child.poll() is not None:
            self._child = self._start()
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(b"%d%s\n" % (size, b" last" if last else b""))
            child.stdin.flush()
            return msgspec.json.decode(child.stdout.readline(), type=LiveVerdict)
        except (BrokenPipeError, msgspec.DecodeError):
            child.kill()  # the prefix gets no verdict, but the whole file will be checked
            return None

    def _start(self) -> subprocess.Popen[bytes]:
        # Without -P, "-m" would find the sources in a checkout, which have no compiled core.
        command = [sys.executable, "-P", "-m", "isolang.run.play.live", str(self._path), self._spec,
                   str(self._seconds)]  # fmt: skip
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip


def main() -> None:
    """Judge prefixes of a file in the child process, reading their sizes from standard input."""
    import isolang.api  # noqa: F401 - imported before the first request

    path, spec, seconds = sys.argv[1:]
    growing = _GrowingWatch(Path(path), spec, float(seconds), folder=chain_folder(Path(path)))
    for line in sys.stdin.buffer:
        number, _, last = line.strip().partition(b" ")
        size = int(number)
        look = growing.look(size, last=bool(last)) if size >= _WATCH_FROM else None
        if look is None:
            with open(path, "rb") as file:
                data = file.read(size)
            look = judge_prefix(data[: data.rfind(b"\n") + 1], spec, float(seconds))
        sys.stdout.buffer.write(msgspec.json.encode(look) + b"\n")
        sys.stdout.buffer.flush()


def chain_folder(path: Path) -> Path:
    """Return the folder in which the watch of this history saves its chain."""
    return path.with_suffix(".watched")


class _GrowingWatch:
    """A watch of a growing file; it gives up if it does not support the history in the file."""

    def __init__(self, path: Path, spec: str, seconds: float, *, folder: Path) -> None:
        self._path, self._spec, self._seconds = path, spec, seconds
        self._watch: Watch | None = None
        self._stream: Stream | None = None
        self._folder = folder
        self._refused = False

    def look(self, size: int, *, last: bool = False) -> LiveVerdict | None:
        """Judge the new transactions of a prefix; return ``None`` if the file cannot be watched.

        Args:
            size: the length of the prefix in bytes.
        """
        if self._refused:
            return None
        try:
            return self._look(size, last=last)
        except IsolangError:
            self._refused = True
            shutil.rmtree(self._folder, ignore_errors=True)
            return None

    def _look(self, size: int, *, last: bool) -> LiveVerdict:
        from isolang.history.not_seen import NOT_AUDITED
        from isolang.verdict import Invalid

        watch, stream = self._begin()
        outcome, seen = "valid", 0
        while watch.report is None:
            if last and stream.read_bytes >= size:
                stream.stop()
            batch = stream.next(0.0)
            for _ in watch.feed(batch):
                pass
            if not last and (not batch.spans or stream.read_bytes >= size):
                break
        if watch.report is None:
            found = watch.judge_now()
            outcome, seen = found.outcome, found.seen
        verdict = None
        if watch.report is not None:
            outcome, seen = watch.report.outcome, watch.report.seen
            verdict = watch.report.verdict
            if outcome == "suspected" and watch.report.note == NOT_AUDITED:
                outcome = "invalid"  # the observer says that its audit decides
        if last and watch.report is not None:
            return self._whole(watch.report)
        return LiveVerdict(
            outcome=outcome if outcome in {"valid", "invalid"} else "unknown",
            transactions=seen,
            anomaly=verdict.violation.anomaly if isinstance(verdict, Invalid) else "",
            watched=True,
        )

    def _whole(self, report: WatchReport) -> LiveVerdict:
        """Return the verdict on the whole file, and save any violation in the chain's folder."""
        from isolang.watch.violation import save_violation

        saved = None
        with contextlib.suppress(OSError):
            saved = save_violation(report, self._folder)
        certain = report.outcome == "valid" or saved is not None
        return LiveVerdict(
            outcome=report.outcome if certain and report.outcome != "suspected" else "unknown",
            transactions=report.seen,
            watched=True,
            ended=True,
            parts=report.parts,
            note=report.note,
            places=report.places,
            folder=str(self._folder),
        )

    def _begin(self) -> tuple[Watch, Stream]:
        from isolang.watch import Stream, Watch

        if self._watch is None or self._stream is None:
            self._stream = Stream([self._path])
            self._watch = Watch(
                self._spec,
                stream=self._stream,
                folder=self._folder,
                sources=[str(self._path)],
                round=_ROUND,
                grace_seconds=30.0,
                timeout=self._seconds,
            )
        return self._watch, self._stream


def judge_prefix(data: bytes, spec: str, seconds: float) -> LiveVerdict:
    """Judge a prefix of the history as a whole, and return the verdict."""
    import io

    from isolang.api import check, load_history
    from isolang.comparison.vacuity import vacuity_reasons
    from isolang.history.not_seen import NO_END
    from isolang.verdict import Invalid, Valid

    # A growing file has no end; the observer's audit at the end decides later.
    history = load_history(io.BytesIO(data), "edn", allow_unseen=(NO_END,))
    verdict = check(history, spec, timeout=seconds, threads=1, simplest=False)
    little = ""
    if isinstance(verdict, Valid) and len(data) < _VACUITY_LIMIT:
        little = vacuity_reasons(history, verdict.spec)
    certain = isinstance(verdict, Invalid) and verdict.certified
    return LiveVerdict(
        outcome="unknown" if isinstance(verdict, Invalid) and not certain else verdict.outcome,
        transactions=history.counts()["transactions"],
        anomaly=verdict.violation.anomaly if isinstance(verdict, Invalid) else "",
        little=little,
    )


if __name__ == "__main__":
    main()
