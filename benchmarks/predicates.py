"""Measures checks of histories with predicate reads, by size.

    python benchmarks/predicates.py --sizes 10000 20000 40000
    python benchmarks/predicates.py --shapes "1000 rows, 1 %, 2 writes" --phantom --sizes 100000
    python benchmarks/predicates.py --levels levels "all anomalies" rc per-key-sequential pl-2l
    python benchmarks/predicates.py --shapes BlindW-Pred --levels ser si --recorded overlapping

The rows of a table are loaded once and stay. Half of the transactions read a random range of one
column, and the other half write a few rows. A shape says how many rows the table has, how many of
them a range matches, how many rows a writer writes, and perhaps how many different ranges there
are. ``BlindW-Pred`` is a shape of Vbox, with one row for each transaction, two columns, and ranges
of ten rows; its writers write the rows that they find. ``Elle`` and ``Viper`` are the tables of
these tools' workloads: closed predicates ``[:mod m r]`` over rows that ``:init`` declares, and
ranges of keys, some of which are deleted. With ``--phantom``, one predicate read misses a row that
its transaction then reads by key; with ``--unread``, the transaction does not read that row.

The transactions of 24 sessions take effect one after another. ``--recorded`` says what the file
shows of this order: the order itself (``in turn``), invocations and answers that overlap
(``overlapping``), or each session by itself (``by session``).

Each check runs in its own process, which reads a file. The seconds are processor seconds; those of
the whole check include the start and reading the file. The peak is the peak memory of the process.
``levels`` stands for all levels of the library (``isocheck levels``), and ``all anomalies`` for
``isocheck check --all``. The growth compares the seconds of the whole check with those for the
previous size.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from report import table

SESSIONS = 24
_DOMAIN = 10**9

_CHECK = """
import resource, sys, time
import isolang
history = isolang.load_history(sys.argv[1], initial=int(sys.argv[3]) or None)
read = time.process_time()
proved = ""
if sys.argv[2] == "levels":
    from isolang.pipeline.levels import levels_of
    outcome, made = " ".join(levels_of(history).strongest()), ""
elif sys.argv[2] == "all anomalies":
    from isolang.pipeline.findings import findings_of
    outcome, made = ", ".join(one.anomaly for one in findings_of(history).anomalies) or "none", ""
else:
    verdict = isolang.check(history, sys.argv[2])
    assert verdict.certified, verdict
    str(verdict)
    outcome, made = verdict.outcome, verdict.history.set_reads
whole = time.process_time()
if sys.argv[4] == "True":
    from isolang.certify.proofs import check_proof
    check_proof(verdict.history, verdict.spec, verdict.certificate().proof)
    proved = f"{time.process_time() - whole:.2f}"
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(outcome, made if isinstance(made, str) else len(made), f"{read:.2f}",
      f"{whole - read:.2f}", proved, f"{whole:.2f}", peak, sep="\\t")
"""


class Shape(NamedTuple):
    """The shape of a table and of the transactions on it.

    The fields are: ``rows``, the number of rows, or 0 for one row per transaction; ``matching``,
    the number of rows that a range matches; ``writes``, the number of rows that a writer writes, or
    0 if it writes the rows that its own read finds; ``columns``, the number of columns; ``ranges``,
    the number of different ranges, or 0 if each read draws its own range.
    """

    rows: int
    matching: int
    writes: int
    columns: int = 1
    ranges: int = 0


SHAPES = {
    "1000 rows, 1 %, 2 writes": Shape(1_000, 10, 2),
    "1000 rows, 1 %, 10 writes": Shape(1_000, 10, 10),
    "100 rows, 10 %, 2 writes": Shape(100, 10, 2),
    "100 rows, 50 %, 2 writes": Shape(100, 50, 2),
    "1000 rows, 1 %, 2 writes, 1 range": Shape(1_000, 10, 2, ranges=1),
    "1000 rows, 1 %, 2 writes, 20 ranges": Shape(1_000, 10, 2, ranges=20),
    "1000 rows, 1 %, 2 writes, 200 ranges": Shape(1_000, 10, 2, ranges=200),
    "BlindW-Pred": Shape(0, 10, 0, columns=2),
}


class Table:
    """The current rows, with their texts and an index of each column."""

    def __init__(self, rng: random.Random, rows: int, columns: int) -> None:
        """Create random rows."""
        self._random = rng.random
        self.columns = columns
        self.held = [self._row() for _ in range(rows)]
        self.text = [self._text(row) for row in self.held]
        self.index = [
            sorted((row[c], k) for k, row in enumerate(self.held)) for c in range(columns)
        ]

    def _row(self) -> tuple[int, ...]:
        return tuple(int(self._random() * _DOMAIN) for _ in range(self.columns))

    def _text(self, row: tuple[int, ...]) -> str:
        return "{" + " ".join([f":v{c} {value}" for c, value in enumerate(row)]) + "}"

    def write(self, key: int) -> str:
        """Replace the row of a key by a random row, and return the write as text."""
        row, old = self._row(), self.held[key]
        for index, was, value in zip(self.index, old, row, strict=True):
            del index[bisect_left(index, (was, key))]
            insort(index, (value, key))
        self.held[key], text = row, self._text(row)
        self.text[key] = f"{key} {text}"
        return f"[:w {key} {text}]"

    def find(self, column: int, low: int, high: int) -> list[int]:
        """Return the keys of the rows whose value in a column is in a range."""
        index = self.index[column]
        first, last = bisect_left(index, (low, -1)), bisect_right(index, (high, len(self.held)))
        return [key for _, key in index[first:last]]


def play(
    transactions: int, shape: Shape, *, phantom: bool = False, unread: bool = False, seed: int = 1
) -> Iterator[str]:
    """Yield the operations of each transaction as its client saw them.

    The first transaction loads the rows. A transaction runs only when the caller asks for it.
    """
    rng = random.Random(seed)
    rows = shape.rows or transactions
    width = _DOMAIN * shape.matching // rows
    now = Table(rng, rows, shape.columns)
    yield " ".join([f"[:w {k} {text}]" for k, text in enumerate(now.text)])
    now.text = [f"{k} {text}" for k, text in enumerate(now.text)]
    for number in range(transactions):
        writes = rng.random() < 0.5
        ops = []
        found: list[int] = []
        if not (writes and shape.writes):
            column = int(rng.random() * shape.columns)
            at = rng.random()
            if shape.ranges:
                at = (int(at * shape.ranges) + 0.5) / shape.ranges
            low = int(at * (_DOMAIN - width))
            found = now.find(column, low, low + width - 1)
            missed = ""
            if phantom and number > transactions // 2 and len(found) > 1:
                missed = now.text[found.pop(rng.randrange(len(found)))]
                phantom = False
            rows_found = ", ".join([now.text[key] for key in found])
            ops = [f"[:rp [:between :v{column} {low} {low + width - 1}] {{{rows_found}}}]"]
            if missed and not unread:  # The next read shows that the missed row exists.
                ops.append(f"[:r {missed}]")
        if writes:
            keys = {int(rng.random() * rows) for _ in range(shape.writes)} or found
            ops += [now.write(key) for key in keys]
        yield " ".join(ops)


def _line(kind: str, session: int, ops: str) -> str:
    return f"{{:type :{kind}, :process {session}, :value [{ops}]}}\n"


def in_turn(played: Iterator[str]) -> Iterator[str]:
    """Yield a log in which the transactions run one after another."""
    for number, ops in enumerate(played):
        yield _line("ok", (number - 1) % SESSIONS if number else SESSIONS, ops)


def by_session(played: Iterator[str], seed: int = 2) -> Iterator[str]:
    """Yield a log with all transactions of a session before those of the next session.

    The log does not show how the sessions overlap.
    """
    rng = random.Random(seed)
    yield _line("ok", SESSIONS, next(played))
    lines: list[list[str]] = [[] for _ in range(SESSIONS)]
    for ops in played:
        session = int(rng.random() * SESSIONS)
        lines[session].append(_line("ok", session, ops))
    for of_session in lines:
        yield from of_session


def overlapping(played: Iterator[str], seed: int = 2) -> Iterator[str]:
    """Yield a log with concurrent sessions.

    Each transaction takes effect between its invocation and its answer.
    """
    rng = random.Random(seed)
    yield _line("ok", SESSIONS, next(played))
    seen: dict[int, str | None] = {}
    while True:
        session = int(rng.random() * SESSIONS)
        if session not in seen:
            seen[session] = None
            yield _line("invoke", session, "")
        elif (answer := seen[session]) is not None:
            del seen[session]
            yield _line("ok", session, answer)
        else:
            ops = next(played, None)
            if ops is None:
                break
            seen[session] = ops
    for session, answer in seen.items():
        if answer is not None:
            yield _line("ok", session, answer)


def elle(transactions: int, folder: Path, *, phantom: bool, seed: int = 1) -> None:
    """Write a history with closed predicates over 100 rows, one in ten of which matches."""
    rng = random.Random(seed)
    held = {key: rng.randrange(_DOMAIN) for key in range(100)}

    def texts(keys: Iterable[int]) -> str:
        return ", ".join([f"{key} {held[key]}" for key in keys])

    with (folder / "history.edn").open("w", encoding="utf-8") as out:
        first = f"{{:type :ok, :process {SESSIONS}, :f :init, :value {{{texts(held)}}}}}\n"
        out.write(first)
        for number in range(transactions):
            if rng.random() < 0.5:
                ops = []
                for key in rng.sample(range(len(held)), 2):
                    held[key] = rng.randrange(_DOMAIN)
                    ops.append(f"[:w {texts([key])}]")
            else:
                rest = rng.randrange(10)
                found = [key for key, value in held.items() if value % 10 == rest]
                missed = []
                if phantom and number > transactions // 2 and found:
                    missed, phantom = [found.pop()], False
                ops = [f"[:rp [:mod 10 {rest}] {{{texts(found)}}}]"]
                ops += [f"[:r {texts([key])}]" for key in missed]
            out.write(_line("ok", number % SESSIONS, " ".join(ops)))


def viper(transactions: int, folder: Path, *, phantom: bool, seed: int = 1) -> None:
    """Write a history with ranges of ten of 1,000 keys, which do not exist at first.

    Deleted rows are tombstones.
    """
    rng = random.Random(seed)
    held: dict[int, int] = {}
    dead: dict[int, int] = {}
    value = 0

    def told(rows: dict[int, int], keys: Iterable[int]) -> str:
        some = [f'{{"id": {key}, "val": {rows[key]}}}' for key in keys if key in rows]
        return f"[{', '.join(some)}]"

    logs = [(folder / f"J{s}.log").open("w", encoding="utf-8") for s in range(SESSIONS)]
    for number in range(transactions):
        if rng.random() < 0.5:
            ops = []
            for key in rng.sample(range(1_000), 2):
                value += 1
                old = held.pop(key, None)
                if old is not None and rng.random() < 0.25:
                    dead[key] = value
                    ops.append(f'["d", {key}, {value}, {old}, false, true]')
                else:
                    dead.pop(key, None)
                    held[key] = value
                    ops.append(f'["w", {key}, {value}, true]')
        else:
            low = rng.randrange(990)
            keys = list(range(low, low + 10))
            missed = []
            if phantom and number > transactions // 2 and any(key in held for key in keys):
                missed, phantom = [next(key for key in keys if key in held)], False
            rows = told(held, [key for key in keys if key not in missed])
            ops = [f'["range", {low}, {low + 9}, {rows}, {told(dead, keys)}, false]']
            ops += [f'["r", {key}, {held[key]}, false]' for key in missed]
        logs[number % SESSIONS].write(f'{{"value": [{", ".join(ops)}]}}\n')
    for log in logs:
        log.close()


FORMATS = {
    "Elle: 100 rows, 10 %, 2 writes": elle,
    "Viper: 1000 keys, 1 %, 2 writes": viper,
}
RECORDED = {"in turn": in_turn, "by session": by_session, "overlapping": overlapping}


def write(
    shape: str, size: int, folder: Path, recorded: str, *, phantom: bool, unread: bool
) -> Path:
    """Write a history of a shape to a file, or to a folder of files, and return its path."""
    if shape in FORMATS:
        inside = folder / shape.partition(":")[0]
        inside.mkdir(exist_ok=True)
        FORMATS[shape](size, inside, phantom=phantom)
        return inside if shape.startswith("Viper") else inside / "history.edn"
    history = folder / "history.edn"
    with history.open("w", encoding="utf-8") as out:
        out.writelines(
            RECORDED[recorded](play(size, SHAPES[shape], phantom=phantom, unread=unread))
        )
    return history


def measure(history: Path, level: str, *, loads: bool, by_definition: bool) -> list[str]:
    """Return the seconds and the peak memory of a check, as cells of the table.

    If ``loads`` is true, the first transaction loads the rows.
    """
    found = subprocess.run(
        [sys.executable, "-c", _CHECK, history, level, str(int(loads)), str(by_definition)],
        check=True,
        capture_output=True,
        text=True,
    )
    return found.stdout.strip().split("\t")


def main() -> None:
    """Measure all shapes, and print a table."""
    kinds = [*SHAPES, *FORMATS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 20_000, 40_000])
    parser.add_argument("--shapes", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--levels", nargs="+", default=["ser"])
    parser.add_argument("--recorded", choices=RECORDED, default="in turn")
    parser.add_argument("--phantom", action="store_true", help="one read misses a row")
    parser.add_argument("--unread", action="store_true", help="its transaction does not read it")
    parser.add_argument(
        "--by-definition",
        action="store_true",
        help="time the checker by definition, too, which takes up to 2,000 transactions",
    )
    chosen = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for shape in chosen.shapes:
            before: dict[str, float] = {}
            for size in chosen.sizes:
                start = time.process_time()
                history = write(
                    shape,
                    size,
                    Path(folder),
                    chosen.recorded,
                    phantom=chosen.phantom,
                    unread=chosen.unread,
                )
                each = (time.process_time() - start) / size
                for level in chosen.levels:
                    *told, whole, peak = measure(
                        history,
                        level,
                        loads=shape in SHAPES,
                        by_definition=chosen.by_definition,
                    )
                    growth = f"{float(whole) / before[level]:.1f}" if level in before else ""
                    before[level] = float(whole)
                    made = [whole, growth, f"{peak} MB", f"{1e6 * each:.0f}"]
                    rows.append([shape, f"{size:,}", level, *told, *made])
    columns = "shape", "transactions", "level", "verdict", "set-reads", "read, s", "check, s"
    columns = *columns, "by definition, s"
    print(table([*columns, "whole, s", "growth", "peak", "playing, µs each"], rows))


if __name__ == "__main__":
    main()
