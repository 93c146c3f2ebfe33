"""Computes the course of a recorded run: throughput, latency, outcomes and faults over time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from numpy.typing import NDArray

from isolang.arrays import np

if TYPE_CHECKING:
    from isolang.history.history import History

_BINS: Final = 120
_LINE: Final = 4096  # the first line of a recorded history is shorter, in bytes
_LEAST: Final = 0.1  # the minimum length of an interval, in seconds
_OUTCOMES: Final = ("ok", "fail", "info")
# Recorders write these fields before any values, because a value may contain arbitrary text.
_EVENT: Final = re.compile(rb"^\{[^[\"]*?:type :(invoke|ok|fail|info)\b[^[\"]*?:process (-?\d+)\b")
_FAULT: Final = re.compile(
    rb":process :nemesis\b.*?:f :([\w-]+)|:f :([\w-]+).*?:process :nemesis\b"
)
_TIME: Final = re.compile(rb"^\{[^[\"]*?:time (\d+)")


class Fault(Struct, frozen=True, kw_only=True):
    """A fault injected by the run, with the time since the start of the run in seconds."""

    at: float
    name: str


class Course(Struct, frozen=True, kw_only=True):
    """The course of a run, divided into equal intervals.

    Attributes:
        seconds: the length of the whole run in seconds.
        stretch: the length of one interval in seconds.
        maybe: for each interval, the number of indeterminate transactions that ended in it.
        median: for each interval, the median latency of its committed transactions in milliseconds;
            ``None`` if none ended in it.
        slow: for each interval, the 95th percentile of these latencies.
        about: facts about the run, as names and values, such as the database and its version, the
            level, the workload, the seed, and the command that repeats the run.
    """

    seconds: float
    stretch: float
    committed: list[int]
    aborted: list[int]
    maybe: list[int]
    median: list[float | None]
    slow: list[float | None]
    faults: list[Fault]
    about: list[tuple[str, str]]


def course_of(path: Path) -> Course | None:
    """Compute the course of a run from its recorded history.

    Args:
        path: an EDN file with one event per line, and ``:time`` in nanoseconds.

    Raises:
        OSError: if the file cannot be read.
    """
    began: dict[bytes, int] = {}
    ended: tuple[list[int], ...] = ([], [], [])
    latencies: tuple[list[int], list[int]] = ([], [])
    faults: list[tuple[int, str]] = []
    about: list[str] = []
    with path.open("rb") as lines:
        for line in lines:
            if line.startswith(b";"):
                about.append(line.decode("utf-8", "replace").lstrip("; ").rstrip())
                continue
            time = _TIME.match(line)
            if time is None:
                continue
            at = int(time[1])
            event = _EVENT.match(line)
            if event is None:
                fault = _FAULT.search(line)
                if fault is not None:
                    faults.append((at, fault[1].decode()))
            elif event[1] == b"invoke":
                began[event[2]] = at
            else:
                outcome = _OUTCOMES.index(event[1].decode())
                ended[outcome].append(at)
                start = began.pop(event[2], None)
                if outcome == 0 and start is not None:
                    latencies[0].append(at)
                    latencies[1].append(at - start)
    last = max((max(times) for times in ended if times), default=0)
    if not last:
        return None
    bins = min(_BINS, max(1, int(last * 1e-9 / _LEAST)))
    stretch = last * 1e-9 / bins

    def stretches(times: list[int]) -> NDArray[np.int64]:
        of = np.array(times, dtype=np.float64) * 1e-9 / stretch
        return np.minimum(of.astype(np.int64), bins - 1)

    counts = [np.bincount(stretches(times), minlength=bins).tolist() for times in ended]
    median, slow = _quantiles(stretches(latencies[0]), np.array(latencies[1]), bins)
    return Course(
        seconds=round(last * 1e-9, 3),
        stretch=stretch,
        committed=counts[0],
        aborted=counts[1],
        maybe=counts[2],
        median=median,
        slow=slow,
        faults=[Fault(at=round(at * 1e-9, 3), name=name) for at, name in faults],
        about=list(_header_facts(about)),
    )


def database_of(history: History) -> str:
    """Return the database named in the first line of a recorded history; empty if there is none."""
    if history.format != "edn" or len(history.files) != 1:
        return ""
    try:
        with open(history.files[0], "rb") as file:
            line = file.readline(_LINE).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
    facts = dict(_header_facts([line.lstrip("; ").rstrip()])) if line.startswith(";") else {}
    return facts.get("database", "")


def _header_facts(about: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the facts about a run in the first lines of its recorded history."""
    if not about:
        return
    version, *parts = about[0].split("; ")
    if not any(part.startswith("level ") for part in parts):  # a custom recorder
        yield "about", "; ".join((version, *parts))
        return
    yield "database", version
    for part in parts:
        word, _, rest = part.partition(" ")
        named = word in ("level", "workload", "seed", "fault")
        yield (word, rest) if named else ("", part)
    yield from (("run again by", line) for line in about[1:] if line.startswith("isocheck "))


def _quantiles(
    of: NDArray[np.int64], latency: NDArray[np.int64], bins: int
) -> tuple[list[float | None], list[float | None]]:
    median: list[float | None] = [None] * bins
    slow: list[float | None] = [None] * bins
    order = np.argsort(of, kind="stable")
    ends = np.searchsorted(of[order], np.arange(bins + 1))
    for i in range(bins):
        part = latency[order[ends[i] : ends[i + 1]]]
        if len(part):
            middle, high = np.quantile(part, [0.5, 0.95]) * 1e-6
            median[i], slow[i] = round(float(middle), 3), round(float(high), 3)
    return median, slow
