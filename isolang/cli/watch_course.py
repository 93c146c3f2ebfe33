"""Reports the progress of a watch as a status line, a record for each round, and a page."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from isolang.output.terminal import escaped, warn

if TYPE_CHECKING:
    from isolang.watch import Round, WatchReport

_REFRESH: Final = 3  # the seconds between updates of the page
_MOST: Final = 4000  # the maximum number of points in a curve


class WatchLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of ``--output json``: about a round, and finally about the whole watch.

    Attributes:
        outcome: ``valid`` so far, or ``invalid``, ``suspected`` or ``unknown``.
        ended: whether this is the last line.
        transactions: the transactions seen, without those in flight.
        parts: the parts of the certificate.
        window: the transactions in memory.
        put_back: the cuts that this round put back.
        exchanged: the parts in which this round exchanged the order of writers.
        waiting: the bytes of the log that are not checked yet.
        holding: why the window is long, in words.
        keys: the keys whose last value is in memory.
        given_up: the transactions of unknown outcome that the watch no longer waits for.
        violations: the violations found.
        seconds: the time since the watch began.
        rate: the recent transactions per second; finally, the average since the watch began or
            resumed.
        memory: the megabytes of the process.
        note: what the outcome rests on, or what the watch waits for, in words.
        places: the places of the transactions of a violation: ``file:line``.
        verdict: the violation, or why the outcome is unknown, as text.
    """

    outcome: str
    ended: bool
    transactions: int
    parts: int
    window: int = 0
    put_back: int = 0
    exchanged: int = 0
    waiting: int = 0
    holding: str = ""
    keys: int = 0
    given_up: int = 0
    violations: int = 0
    seconds: float = 0.0
    rate: float = 0.0
    memory: float = 0.0
    note: str = ""
    places: tuple[str, ...] = ()
    verdict: str | None = None


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """The unchecked bytes of the logs, and the client that the watermark is waiting for."""

    bytes: int
    holding: str


class Progress:
    """Collects the rounds of a watch, and reports them in several forms.

    Attributes:
        last_round: when the last round ended, in seconds since 1970; ``None`` before the first
            round.
    """

    def __init__(self, name: str, level: str, *, page: str = "", before: int = 0) -> None:
        """Create the progress before the first round."""
        self._first = before
        self.name, self.level, self._page = name, level, page
        self.last_round: float | None = None
        self._began = self._written = time.monotonic()
        self._points: list[tuple[float, float, float, float, float]] = []
        self._each = 1
        self._round = 0
        self._before = (0.0, before)
        self._rate = 0.0
        self._memory = 0.0
        self._last: tuple[Round, Lag] | None = None
        self._complained = False  # whether the user has been warned that the page cannot be saved

    def add(self, found: Round, lag: Lag) -> None:
        """Add the latest round, and write the page from time to time."""
        now = time.monotonic() - self._began
        then, seen = self._before
        if now - then >= 1.0 or not self._points:
            self._rate = (found.seen - seen) / max(now - then, 1e-3)
            self._before = (now, found.seen)
        self._memory = _resident()
        self._last = found, lag
        self.last_round = time.time()
        self._round += 1
        if self._round % self._each == 0:
            self._points.append(
                (now, self._rate, float(found.kept), float(lag.bytes), self._memory)
            )
        if len(self._points) > _MOST:
            self._points = self._points[1::2]
            self._each *= 2
        if self._page and time.monotonic() - self._written >= _REFRESH:
            try:
                self._write(found.outcome, refresh=_REFRESH)
            except OSError as error:  # the watch continues, and reports the error again at the end
                if not self._complained:
                    warn(escaped(f"cannot save the page: {error}"))
                self._complained = True

    def record(self, report: WatchReport | None = None) -> WatchLine:
        """Return the record of the last round, or of the whole watch if it has ended."""
        assert self._last is not None
        (found, lag), seconds = self._last, time.monotonic() - self._began
        line = WatchLine(
            outcome=found.outcome, ended=False, transactions=found.seen, parts=found.parts,
            window=found.kept, put_back=found.put_back, waiting=lag.bytes, holding=found.holding,
            exchanged=found.exchanged, keys=found.keys, given_up=found.given_up,
            violations=found.violations, note=found.note, seconds=round(seconds, 3),
            rate=round(self._rate, 1), memory=round(_resident(), 1),
        )  # fmt: skip
        if report is None:
            return line
        return msgspec.structs.replace(
            line, ended=True, rate=round((report.seen - self._first) / max(seconds, 1e-3), 1),
            note=report.note, places=report.places,
            verdict=None if report.verdict is None else str(report.verdict),
        )  # fmt: skip

    def line(self, found: Round, lag: Lag) -> str:
        """Return the status-line text after a round."""
        holding = f"; {found.holding}" if found.holding else ""
        waits = f"; all clients wait for {lag.holding}" if lag.holding else ""
        many = "violation" if found.violations == 1 else "violations"
        note = f"; {found.note}" if found.note and not waits else ""
        more = f"; {found.violations:,} {many}" if found.violations else ""
        return escaped(
            f"{found.outcome}: {found.seen:,} transactions, {self._rate:,.0f}/s, window "
            f"{found.kept:,}, {lag.bytes / 1e6:,.1f} MB unchecked, {self._memory:,.0f} "
            f"MB{more}{holding}{waits}{note}"
        )

    def save_end(self, report: WatchReport) -> str:
        """Write the final page, and return a line about it.

        If the watch found a violation, the page is about that.
        """
        from isolang.report import page, save_page
        from isolang.verdict import Invalid

        path = Path(self._page)
        if isinstance(report.verdict, Invalid):
            return f"page {save_page(page(report.verdict, name=self.name), path)}"
        self._write(report.outcome, note=report.note)
        return f"page {path}"

    def _write(self, outcome: str, *, note: str = "", refresh: int = 0) -> None:
        from isolang.files import write_atomically
        from isolang.report.watched import Curve, watched_page

        self._written = time.monotonic()
        rows = [("level", self.level)]
        if self._last is not None:
            last, lag = self._last
            rows += [
                (
                    "transactions",
                    f"{last.seen:,} in {last.parts:,} parts, each certified by itself",
                ),
                (
                    "window",
                    f"{last.kept:,} transactions" + (f"; {last.holding}" * bool(last.holding)),
                ),
                (
                    "behind",
                    f"{lag.bytes / 1e6:,.1f} MB"
                    + (f"; all clients wait for {lag.holding}" * bool(lag.holding)),
                ),
                ("last values", f"{last.keys:,} keys in memory"),
            ]
            if last.given_up:
                rows.append(("given up", f"{last.given_up:,} transactions of unknown outcome"))
            if last.violations:
                rows.append(("violations", f"{last.violations:,}"))
            note = note or last.note
        if note:
            rows.append(("note", note))
        rows.append(("written", time.strftime("%Y-%m-%d %H:%M:%S")))
        seconds = [point[0] for point in self._points]
        names = (
            "transactions a second",
            "transactions in the window",
            "bytes behind",
            "memory, MB",
        )
        curves = [
            Curve(name=name, values=[point[i] for point in self._points])
            for i, name in enumerate(names, 1)
        ]
        write_atomically(
            Path(self._page),
            watched_page(
                self.name, outcome=outcome, rows=rows, seconds=seconds, curves=curves,
                refresh=refresh,
            ),
        )  # fmt: skip


def _resident() -> float:
    """Return the resident memory of this process in megabytes; 0 if it cannot be determined."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
