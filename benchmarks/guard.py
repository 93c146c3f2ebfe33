"""What got slower by more than a tenth between two revisions, over thirty cases.

    python benchmarks/guard.py c23ec29 .
    python benchmarks/guard.py ../before .          # a folder with a built core is used as it is

Each case is a level, a format and some simulated histories: valid ones and invalid ones, twenty
small ones in one command, or a large one. Runs alternate A B B A A B …; what counts is the median
of the processor seconds of the whole command, starting included. The exit code is 1 if a case got
slower by more than a tenth, and by more than its noise (the greater interquartile range of the
two), or if the exit codes of the two revisions differ.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from compare_revisions import Revision
from measuring import KEEP_BYTE_CODE
from msgspec import Struct
from report import table

SLOWER = 1.1
_SMALL, _MANY, _LARGE = (
    60,
    20,
    20_000,
)  # transactions of a small history, such histories, of a large


class Case(Struct, frozen=True, kw_only=True):
    """Some histories of one kind, judged by one command.

    Attributes:
        form: their format.
        level: by which they are judged.
        bug: what was planted in each; empty for valid ones.
        histories: how many.
        transactions: of each.
    """

    form: str
    level: str
    bug: str
    histories: int
    transactions: int

    @property
    def name(self) -> str:
        """What the table calls it."""
        size = f"{self.histories} × {self.transactions:,}"
        return f"{self.form}, {size}, {self.level}, {self.bug or 'valid'}"

    def make(self, folder: Path) -> list[Path]:
        """Write the histories."""
        from isolang.history.writers import write_history
        from isolang.simulator import Workload, generate

        paths = []
        for seed in range(self.histories):
            bugs = (self.bug,) if self.bug else ()
            made = generate(Workload(transactions=self.transactions, bugs=bugs, seed=seed))
            paths.append(folder / f"{len(list(folder.iterdir()))}.{self.form}")
            write_history(made, paths[-1], format=self.form, drop={"real-time"})
        return paths


CASES = tuple(
    Case(form=form, level=level, bug=bug, histories=histories, transactions=transactions)
    for form in ("edn", "dbcop", "plume", "cobra", "viper")
    for histories, transactions in ((_MANY, _SMALL), (1, _LARGE))
    for level, bug in (("ser", ""), ("ser", "write skew"), ("si", "lost update"))
)


class Row(Struct, frozen=True, kw_only=True):
    """A case, measured.

    Attributes:
        name: of the case.
        seconds: the median of processor seconds, of each revision.
        noise: the greater interquartile range, over its median.
        codes: the exit codes.
    """

    name: str
    seconds: tuple[float, float]
    noise: float
    codes: tuple[int, int]

    @property
    def ratio(self) -> float:
        """How much longer the second revision took."""
        return self.seconds[1] / self.seconds[0]

    @property
    def slower(self) -> bool:
        """Whether it got slower by more than a tenth, and by more than the noise."""
        return self.ratio > max(SLOWER, 1 + self.noise)

    @property
    def differs(self) -> bool:
        """Whether the two gave other verdicts."""
        return self.codes[0] != self.codes[1]


class Built:
    """A revision in a folder, with a built core: used as it is."""

    def __init__(self, folder: Path) -> None:
        """Take it."""
        self.python, self.environment = Path(sys.executable), {"PYTHONPATH": str(folder.resolve())}

    def close(self) -> None:
        """Leave it as it is."""


def revision_of(name: str, folder: Path) -> Built | Revision:
    """A folder with a built core, or what git knows by the name, installed."""
    if list(Path(name).glob("isolang/_native*.so")):
        return Built(Path(name))
    return Revision(name, folder)


def processor_seconds(
    revision: Built | Revision, level: str, histories: Sequence[Path], timeout: float
) -> tuple[float, int]:
    """What one command takes, with its exit code."""
    environment = {"PYTHONPATH": "", **getattr(revision, "environment", {}), **KEEP_BYTE_CODE}
    command = [
        revision.python,
        "-P",
        "-m",
        "isolang.cli.main",
        "check",
        "--spec",
        level,
        "-o",
        "json",
    ]
    before = os.times()
    done = subprocess.run(
        [*map(str, command), "--jobs", "1", *map(str, histories)],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=timeout,
        check=False,
    )
    after = os.times()
    used = after.children_user - before.children_user
    return used + after.children_system - before.children_system, done.returncode


def measured(
    cases: Sequence[Case],
    revisions: tuple[Built | Revision, Built | Revision],
    runs: int,
    timeout: float,
) -> Iterator[Row]:
    """A row for each case."""
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="isolang-guard-") as temporary:
            histories = case.make(Path(temporary))
            found: tuple[list[tuple[float, int]], ...] = ([], [])
            for i in range(runs):
                for which in ((0, 1), (1, 0))[i % 2]:
                    found[which].append(
                        processor_seconds(revisions[which], case.level, histories, timeout)
                    )
        yield row_of(case.name, found)


def row_of(name: str, found: Sequence[Sequence[tuple[float, int]]]) -> Row:
    """The row of a case of which each revision has some runs: seconds and exit code."""
    seconds = [[used for used, _ in side] for side in found]
    a, b = map(statistics.median, seconds)
    return Row(
        name=name,
        seconds=(a, b),
        noise=max(map(_noise, seconds)),
        codes=(found[0][-1][1], found[1][-1][1]),
    )


def _noise(seconds: Sequence[float]) -> float:
    if len(seconds) < 3:
        return 0.0  # not known
    low, middle, high = statistics.quantiles(seconds, n=4)
    return (high - low) / middle


def markdown(names: Sequence[str], rows: Sequence[Row]) -> str:
    """The table."""

    def line(row: Row) -> tuple[str, ...]:
        said = "other verdicts" if row.differs else "slower" if row.slower else ""
        times = (f"{1000 * one:.0f} ms" for one in row.seconds)
        return (row.name, *times, f"{row.ratio:.2f}", f"±{row.noise:.0%}", said)

    return table(("case", *names, "ratio", "noise", ""), map(line, rows))


def main(argv: list[str] | None = None) -> int:
    """Compare; 1 if something got slower, or verdicts differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("revisions", nargs=2, metavar="REV")
    parser.add_argument("--runs", type=int, default=5, help="of each (default 5)")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for a run")
    parser.add_argument("--filter", default="", help="only cases with this in their names")
    options = parser.parse_args(argv)
    cases = [case for case in CASES if options.filter in case.name]
    rows: list[Row] = []
    revisions: list[Built | Revision] = []
    with tempfile.TemporaryDirectory(prefix="isolang-guard-") as temporary:
        try:
            for number, name in enumerate(options.revisions):
                revisions.append(revision_of(name, Path(temporary) / str(number)))
            a, b = revisions
            for row in measured(cases, (a, b), options.runs, options.timeout):
                rows.append(row)
                print(f"{row.name}: {row.ratio:.2f} ±{row.noise:.0%}", flush=True)
        finally:
            for revision in revisions:
                revision.close()
    print(markdown(options.revisions, rows))
    return 1 if any(row.slower or row.differs for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
