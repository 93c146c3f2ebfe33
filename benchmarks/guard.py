"""Finds what became slower by more than a tenth between two revisions, in thirty cases.

    python benchmarks/guard.py c23ec29 .
    python benchmarks/guard.py ../before .          # a folder with a built core is used unchanged

Each case is a level, a format, and some simulated histories: valid or invalid ones, and either
twenty small histories in one command or one large history. The runs have the order A B B A A B ….
The measure is the median processor time of the whole command, including its start. The exit code is
1 if a case became slower by more than a tenth and by more than its noise (the greater interquartile
range of the two revisions), or if the exit codes of the revisions differ.
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
)  # transactions of a small history, number of such histories, transactions of a large history


class Case(Struct, frozen=True, kw_only=True):
    """Some histories of one kind, which one command judges.

    Attributes:
        form: the format of the histories.
        level: the level to check.
        bug: the bug that was planted in each history; empty for valid histories.
        histories: the number of histories.
        transactions: the number of transactions in each history.
    """

    form: str
    level: str
    bug: str
    histories: int
    transactions: int

    @property
    def name(self) -> str:
        """The name of the case in the table."""
        size = f"{self.histories} × {self.transactions:,}"
        return f"{self.form}, {size}, {self.level}, {self.bug or 'valid'}"

    def make(self, folder: Path) -> list[Path]:
        """Write the histories, and return their paths."""
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
    """The measured times of a case.

    Attributes:
        name: the name of the case.
        seconds: the median of the processor seconds, for each revision.
        noise: the greater interquartile range, divided by its median.
        codes: the exit codes of both revisions.
    """

    name: str
    seconds: tuple[float, float]
    noise: float
    codes: tuple[int, int]

    @property
    def ratio(self) -> float:
        """The time of the second revision divided by the time of the first."""
        return self.seconds[1] / self.seconds[0]

    @property
    def slower(self) -> bool:
        """Whether the case became slower by more than a tenth and by more than the noise."""
        return self.ratio > max(SLOWER, 1 + self.noise)

    @property
    def differs(self) -> bool:
        """Whether the verdicts of the two revisions differ."""
        return self.codes[0] != self.codes[1]


class Built:
    """A revision in a folder with a built core, which is used unchanged."""

    def __init__(self, folder: Path) -> None:
        """Use the revision in this folder."""
        self.python, self.environment = Path(sys.executable), {"PYTHONPATH": str(folder.resolve())}

    def close(self) -> None:
        """Do nothing, because the folder must stay as it is."""


def revision_of(name: str, folder: Path) -> Built | Revision:
    """Return the revision in a folder with a built core, or install a revision from git."""
    if list(Path(name).glob("isolang/_native*.so")):
        return Built(Path(name))
    return Revision(name, folder)


def processor_seconds(
    revision: Built | Revision, level: str, histories: Sequence[Path], timeout: float
) -> tuple[float, int]:
    """Return the processor seconds of one command, and its exit code."""
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
    """Yield a row for each case."""
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
    """Return the row of a case, given the seconds and exit codes of each revision's runs."""
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
    """Return the table in Markdown."""

    def line(row: Row) -> tuple[str, ...]:
        said = "other verdicts" if row.differs else "slower" if row.slower else ""
        times = (f"{1000 * one:.0f} ms" for one in row.seconds)
        return (row.name, *times, f"{row.ratio:.2f}", f"±{row.noise:.0%}", said)

    return table(("case", *names, "ratio", "noise", ""), map(line, rows))


def main(argv: list[str] | None = None) -> int:
    """Compare two revisions; return 1 if a case became slower or if verdicts differ."""
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
