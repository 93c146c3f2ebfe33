"""How a watch goes: the live line, a record for each round, and the page that is rewritten."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from isolang.output.terminal import escaped, warn

if TYPE_CHECKING:
    from isolang.watch import Report, Round

_REFRESH: Final = 3  # seconds after which the page is written again
_MOST: Final = 4000  # points that are kept of the course


class WatchLine(msgspec.Struct, frozen=True, kw_only=True):
    """What one line of ``--output json`` says: of a round, or in the end of the whole.

    Attributes:
        outcome: ``valid`` so far, or what was found: ``invalid``, ``suspected``, ``unknown``.
        ended: whether this is the last line.
        transactions: how many have been seen, those in flight left out.
        parts: how many parts the certificate has.
        window: how many transactions are held in memory.
        put_back: how many cuts were put back for this round.
        waiting: bytes that are there and are not judged yet.
        holding: what keeps the window long, in words.
        keys: how many keys have a last value in memory.
        given_up: how many of unknown outcome are no longer waited for.
        violations: how many were found.
        seconds: since the watch began.
        rate: transactions a second, of late; in the end, since the watch began or was resumed.
        memory: megabytes of the process.
        note: what the outcome rests on, or is waited for, in words.
        places: where the transactions of a violation stand: ``file:line``.
        verdict: the violation, or why nothing is known, as text.
    """

    outcome: str
    ended: bool
    transactions: int
    parts: int
    window: int = 0
    put_back: int = 0
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
    """How far the watch is behind: bytes that are there, and the client that all wait for."""

    bytes: int
    holding: str


class Course:
    """The rounds of a watch over time.

    Attributes:
        name: what is watched.
        level: by which level.
        last_round: when the last round ended, in seconds since 1970; ``None`` before the first.
    """

    def __init__(self, name: str, level: str, *, page: str = "", before: int = 0) -> None:
        """Begin.

        Args:
            name: what is watched.
            level: by which level.
            page: the file of the page; empty for none.
            before: transactions that the watch had seen before it was resumed.
        """
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
        self._complained = False  # that the page cannot be saved

    def add(self, found: Round, lag: Lag) -> None:
        """Take a round."""
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
            except OSError as error:  # the watch goes on; its end says it again
                if not self._complained:
                    warn(escaped(f"the page could not be saved: {error}"))
                self._complained = True

    def told(self, report: Report | None = None) -> WatchLine:
        """The last round, for programs.

        Args:
            report: what was found; then the line is the last, and about the whole.
        """
        assert self._last is not None
        (found, lag), seconds = self._last, time.monotonic() - self._began
        line = WatchLine(
            outcome=found.outcome, ended=False, transactions=found.seen, parts=found.parts,
            window=found.kept, put_back=found.put_back, waiting=lag.bytes, holding=found.holding,
            keys=found.keys, given_up=found.given_up, violations=found.violations, note=found.note,
            seconds=round(seconds, 3), rate=round(self._rate, 1), memory=round(_resident(), 1),
        )  # fmt: skip
        if report is None:
            return line
        return msgspec.structs.replace(
            line, ended=True, rate=round((report.seen - self._first) / max(seconds, 1e-3), 1),
            note=report.note, places=report.places,
            verdict=None if report.verdict is None else str(report.verdict),
        )  # fmt: skip

    def line(self, found: Round, lag: Lag) -> str:
        """A round, for people."""
        held = f"; {found.holding}" if found.holding else ""
        waits = f"; all wait for {lag.holding}" if lag.holding else ""
        many = "violation" if found.violations == 1 else "violations"
        note = f"; {found.note}" if found.note and not waits else ""
        more = f"; {found.violations:,} {many}" if found.violations else ""
        return escaped(
            f"{found.outcome}: {found.seen:,} transactions, {self._rate:,.0f}/s, window "
            f"{found.kept:,}, {lag.bytes / 1e6:,.1f} MB behind, {self._memory:,.0f} MB"
            f"{more}{held}{waits}{note}"
        )

    def save_end(self, report: Report) -> str:
        """Write the page a last time: of a violation its own page; returns what to say of it."""
        from isolang.report import page, save_page
        from isolang.verdict import Invalid

        path = Path(self._page)
        if isinstance(report.verdict, Invalid):
            return f"page {save_page(page(report.verdict, name=self.name), path)}"
        self._write(report.outcome, note=report.note)
        return f"page {path}"

    def _write(self, outcome: str, *, note: str = "", refresh: int = 0) -> None:
        from isolang.files import write_whole
        from isolang.report.watched import Curve, watched_page

        self._written = time.monotonic()
        said = [("level", self.level)]
        if self._last is not None:
            last, lag = self._last
            said += [
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
                    + (f", all wait for {lag.holding}" * bool(lag.holding)),
                ),
                ("last values", f"{last.keys:,} keys in memory"),
            ]
            if last.given_up:
                said.append(("given up", f"{last.given_up:,} of unknown outcome"))
            if last.violations:
                said.append(("violations", f"{last.violations:,}"))
            note = note or last.note
        if note:
            said.append(("note", note))
        said.append(("written", time.strftime("%Y-%m-%d %H:%M:%S")))
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
        write_whole(
            Path(self._page),
            watched_page(
                self.name, outcome=outcome, said=said, seconds=seconds, curves=curves,
                refresh=refresh,
            ),
        )  # fmt: skip


def _resident() -> float:
    """Megabytes of this process; 0 where that is not told."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
