"""Measures how the cost of thirty-one recorded shapes grows with n, 2n and 4n transactions.

    python benchmarks/recorded.py                       # all shapes: some minutes of CPU
    python benchmarks/recorded.py --only watch --size 20000
    python benchmarks/recorded.py --plot growth.svg

A shape is a kind of history that databases and applications produce, and the command that judges
it: runs with faults, SmallBank and TPC-C, status columns, long transactions, many short sessions,
unknown outcomes, and the watch of an application. Each command runs in its own process. The measure
is the processor time of the whole command, the least of --repeat runs, minus the time of the same
command on two lines. Noise hides the growth of times below a third of a second, so --size must be
large enough. The growth is the exponent of n between the first and the last size. The table begins
with the shapes that grow fastest. If a growth is above 1.2, the exit code is 1.
"""

from __future__ import annotations

import argparse
import math
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from measuring import KEEP_BYTE_CODE, Run, run
from msgspec import Struct
from report import table

from isolang.report.chart import chart
from isolang.report.picture import save_picture

BAR: Final = 1.2  # growth above it is superlinear
_TOO_SHORT: Final = 0.1  # in seconds; for shorter runs, noise hides the growth
_ISOCHECK: Final = (sys.executable, "-m", "isolang.cli.main")
_COMMANDS: Final = {
    "check": ("check", "--spec"),
    "watch": ("watch", "--until-idle", "0", "--spec"),
    "levels": ("levels",),
}

Write = Callable[[Path, int], None]


class Shape(Struct, frozen=True, kw_only=True):
    """One kind of history and the command that judges it.

    Attributes:
        name: the name in the table.
        write: a function that writes a history with a number of transactions.
        level: the level; ignored for the command ``levels``.
        command: ``check``, ``watch`` or ``levels``.
        share: the number of transactions for each transaction of ``--size``; less than 1 if the
            shape is expensive.
    """

    name: str
    write: Write
    level: str = "ser"
    command: str = "check"
    share: float = 1.0

    @property
    def judged(self) -> str:
        """The command and the level, as the table shows them."""
        return self.command if self.command == "levels" else f"{self.command} {self.level}"

    def words(self, path: Path) -> list[str]:
        """Return the command line for a history."""
        level = () if self.command == "levels" else (self.level,)
        return [*_ISOCHECK, *_COMMANDS[self.command], *level, str(path)]


def generated(options: str, *, keys: float = 0.1, sessions: float = 16) -> Write:
    """Return a function that writes histories of ``isocheck generate``.

    Args:
        options: further options of the command.
        keys: the number of keys; if it is less than 1, the number for each transaction; 0 for the
            default.
        sessions: the number of sessions; if it is less than 1, the number for each transaction.
    """

    def write(path: Path, n: int) -> None:
        words = options.split()
        for name, number in (("--keys", keys), ("--sessions", sessions)):
            if number:
                words += [name, str(int(number) if number >= 1 else max(10, int(number * n)))]
        command = [*_ISOCHECK, "generate", *words, "--transactions", str(n), "--seed", "9"]
        subprocess.run([*command, str(path)], check=True, capture_output=True)

    return write


def interleaved(transaction: Callable[[random.Random, int, dict[Any, Any]], list[str]]) -> Write:
    """Return a function that writes transactions of 16 clients, one after the other.

    Args:
        transaction: a function that returns the operations of the transaction with a number, as
            EDN; it may change the state that it gets.
    """

    def write(path: Path, n: int) -> None:
        rng = random.Random(9)
        state: dict[Any, Any] = {}
        with path.open("w") as file:
            for i in range(n):
                value = " ".join(transaction(rng, i, state))
                for kind, at in (("invoke", 2 * i), ("ok", 2 * i + 1)):
                    file.write(
                        f"{{:index {at}, :type :{kind}, :process {i % 16}, :time {at}, :f :txn, "
                        f":value [{value}]}}\n"
                    )

    return write


def status_column(rows: int, values: int) -> Callable[..., list[str]]:
    """Return a function that makes transactions which select rows by a status column.

    Half of the transactions also set the status of two rows.
    """

    def transaction(rng: random.Random, i: int, state: dict[Any, Any]) -> list[str]:
        if not i:
            state.update({row: row % values for row in range(rows)})
            return [f"[:w {row} {{:v {value}}}]" for row, value in state.items()]
        asked = rng.randrange(values)
        found = " ".join(f"{row} {{:v {v}}}" for row, v in state.items() if v == asked)
        ops = [f"[:rp [:= :v {asked}] {{{found}}}]"]
        if rng.random() < 0.5:
            for row in rng.sample(range(rows), 2):
                state[row] = rng.randrange(values)
                ops.append(f"[:w {row} {{:v {state[row]}}}]")
        return ops

    return transaction


def long_transactions(rng: random.Random, i: int, state: dict[Any, Any]) -> list[str]:
    """Return a transaction: one of a hundred reads 300 keys, like a report; others change two."""
    if i % 100 == 99:
        return [f"[:r {key} {state.get(key, 'nil')}]" for key in rng.sample(range(1000), 300)]
    ops = []
    for key in rng.sample(range(1000), 2):
        ops.append(f"[:r {key} {state.get(key, 'nil')}]")
        state[key] = i + 1
        ops.append(f"[:w {key} {i + 1}]")
    return ops


def application(rng: random.Random, i: int, state: dict[Any, Any]) -> list[str]:
    """Return a transaction of a shop: an order is placed and takes from a stock, or is paid.

    Most rows are never read again.
    """
    kind = rng.random()
    if kind < 0.4 or not state.get("open"):
        item = rng.randrange(500)
        stock = f"stock/{item}"
        ops = [f"[:r {stock} {state.get(stock, 'nil')}]"]
        state[stock] = i + 1
        state.setdefault("open", []).append(i)
        return [*ops, f"[:w {stock} {i + 1}]", f"[:w order/{i} :new]"]
    order = state["open"].pop(rng.randrange(max(1, len(state["open"]) // 50 + 1)))
    return [f"[:r order/{order} :new]", f"[:w order/{order} :paid]"]


def crashing(path: Path, n: int) -> None:
    """Write transactions of which one in forty never ends."""
    words = ["--transactions", str(n), "--keys", "20000", "--crashes", "40"]
    with path.open("wb") as file:
        endless = str(Path(__file__).with_name("endless.py"))
        subprocess.run([sys.executable, endless, *words], check=True, stdout=file)


STRICT: Final = "--rule strict-serializable"
FAULTS: Final = "--info-rate 0.02 --abort-rate 0.05"
MAYBE: Final = f"{STRICT} --operations 4 --info-rate 0.2"
WORKLOAD: Final = f"{STRICT} --workload"
SNAPSHOT: Final = f"--rule snapshot {FAULTS}"
HOT: Final = f"{STRICT} --key-distribution hotspot"
STATUS: Final = interleaved(status_column(1000, 10))
SELECTED: Final = interleaved(status_column(1000, 100))


def checked(name: str, write: Write, level: str = "ser", share: float = 1.0) -> Shape:
    """Return a shape that ``isocheck check`` judges."""
    return Shape(name=name, write=write, level=level, share=share)


def followed(name: str, write: Write) -> Shape:
    """Return a shape that ``isocheck watch`` judges."""
    return Shape(name=name, write=write, command="watch")


SHAPES: Final = (
    checked("2 % unknown, 5 % aborted", generated(f"{STRICT} {FAULTS}")),
    checked("2 % unknown, 5 % aborted", generated(SNAPSHOT), "si"),
    checked("2 % unknown, 5 % aborted, lists", generated(f"{STRICT} {FAULTS} --lists")),
    checked("20 % unknown", generated(MAYBE)),
    checked("20 % unknown", generated(MAYBE), "cc", 0.5),
    checked("20 % unknown", generated(MAYBE), "psi", 0.5),
    checked("SmallBank", generated(f"{WORKLOAD} smallbank", keys=1000)),
    checked("SmallBank", generated(f"{WORKLOAD} smallbank", keys=1000), "si"),
    checked("TPC-C", generated(f"{WORKLOAD} tpcc", keys=0), share=0.25),
    checked("RUBiS", generated(f"{WORKLOAD} rubis", keys=0)),
    checked("Twitter", generated(f"{WORKLOAD} twitter", keys=0)),
    checked("YCSB", generated(f"{WORKLOAD} ycsb", keys=1000)),
    checked("counters", generated(f"{WORKLOAD} counter", keys=0), share=0.25),
    checked("compare-and-set", generated(f"{WORKLOAD} cas", keys=0), share=0.25),
    checked("bank transfers", generated(f"{WORKLOAD} bank", keys=0), share=0.25),
    checked("a status column of 10 values, 1,000 rows", STATUS, share=0.15),
    checked("a category of 100 values, 1,000 rows", SELECTED, share=0.25),
    checked("a category of 100 values, 1,000 rows", SELECTED, "cc", 0.25),
    checked("long transactions among short ones", interleaved(long_transactions)),
    checked("each transaction a session", generated(f"{STRICT} --session-each")),
    checked("each transaction a session", generated("--rule causal --session-each"), "cc", 0.5),
    checked("1,000 sessions", generated("--rule causal", sessions=1000), "cc", 0.5),
    checked("10 repeated values, 2 % unknown", generated(f"{STRICT} --values 10 --info-rate 0.02")),
    checked("a hot spot: 80 % on 20 keys", generated(HOT, keys=100)),
    checked("an application", interleaved(application)),
    Shape(name="2 % unknown, 5 % aborted", write=generated(SNAPSHOT), command="levels", share=0.5),
    followed("an application", interleaved(application)),
    followed("blind writes over many keys", generated(STRICT, keys=20_000)),
    followed("blind appends over many lists", generated(f"{STRICT} --lists", keys=20_000)),
    followed("2 % unknown, 5 % aborted", generated(f"{STRICT} {FAULTS}")),
    followed("clients that crash every 320 operations", crashing),
)  # fmt: skip


class Measured(Struct, frozen=True, kw_only=True):
    """The cost of a shape.

    Attributes:
        shape: the shape.
        sizes: the number of transactions in each run.
        runs: the result of the run for each size.
        empty: the seconds of the command on two lines.
    """

    shape: Shape
    sizes: tuple[int, ...]
    runs: tuple[Run, ...]
    empty: float

    @property
    def seconds(self) -> tuple[float, ...]:
        """The seconds of each run, without the seconds of the start."""
        return tuple(max(0.0, one.cpu - self.empty) for one in self.runs)

    @property
    def growth(self) -> float | None:
        """The exponent from the first to the last size; ``None`` if a run failed or was short."""
        if self.failed:
            return None
        first, *_, last = self.seconds
        if first < _TOO_SHORT:
            return None
        return math.log(last / first) / math.log(self.sizes[-1] / self.sizes[0])

    @property
    def failed(self) -> bool:
        """Whether a run had no valid verdict, although each history satisfies its level."""
        return any(one.ended != "ok" or one.code for one in self.runs)

    @property
    def is_superlinear(self) -> bool:
        """Whether the growth is above the bar, or unknown because a run failed."""
        return self.failed or (self.growth or 0.0) > BAR

    def row(self) -> list[str]:
        """Return the row of the table."""
        growth = "–" if self.growth is None else f"{self.growth:.2f}"
        times = [
            f"{seconds:.2f} s" if one.ended == "ok" else one.ended
            for one, seconds in zip(self.runs, self.seconds, strict=True)
        ]
        megabytes = f"{max(one.megabytes for one in self.runs):.0f} MB"
        codes = ", ".join(sorted({str(one.code) for one in self.runs}))
        return [
            self.shape.name,
            self.shape.judged,
            f"{self.sizes[0]:,}",
            *times,
            growth,
            megabytes,
            codes,
        ]


def measure(shape: Shape, size: int, *, repeat: int, timeout: float, folder: Path) -> Measured:
    """Write and judge a shape at n, 2n and 4n transactions."""
    n = max(100, int(size * shape.share))

    def once(path: Path) -> Run:
        environment = KEEP_BYTE_CODE
        return run(shape.words(path), timeout=timeout, megabytes=16_000, environment=environment)

    def cost(path: Path) -> Run:
        runs = [once(path) for _ in range(repeat)]
        failed = [one for one in runs if one.ended != "ok" or one.code]
        return failed[0] if failed else min(runs, key=lambda one: one.cpu)

    two = folder / "two.edn"
    two.write_text(
        "".join(
            f"{{:index {i}, :type :{kind}, :process 0, :time {i}, :f :txn, :value [[:w 0 1]]}}\n"
            for i, kind in enumerate(("invoke", "ok"))
        )
    )
    runs, sizes = [], (n, 2 * n, 4 * n)
    for transactions in sizes:
        path = folder / "history.edn"
        shape.write(path, transactions)
        runs.append(cost(path))
    return Measured(shape=shape, sizes=sizes, runs=tuple(runs), empty=cost(two).cpu)


def chosen(only: Sequence[str]) -> Iterator[Shape]:
    """Yield the shapes whose name or command contains one of the given words."""
    for shape in SHAPES:
        if not only or any(word in f"{shape.judged} {shape.name}" for word in only):
            yield shape


def plot(found: Sequence[Measured], path: str) -> None:
    """Draw time against size with one curve for each shape, the most expensive shapes first."""
    curves = {}
    for one in sorted(found, key=lambda one: -one.seconds[-1]):
        points = [(float(n), s) for n, s in zip(one.sizes, one.seconds, strict=True) if s > 0]
        growth = "" if one.growth is None else f", n^{one.growth:.2f}"
        curves[f"{one.shape.judged}: {one.shape.name}{growth}"] = points
    title = "Time against size, for recorded shapes"
    save_picture(chart(curves, title=title, across="transactions", up="CPU seconds"), path)


def main() -> int:
    """Measure all shapes, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=20_000, help="n (default: %(default)s)")
    parser.add_argument("--only", action="append", default=[], help="a word of the name")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds of one run")
    parser.add_argument("--plot", metavar="FILE", help="draw time against size")
    parser.add_argument("--list", action="store_true", help="print the shapes")
    given = parser.parse_args()
    shapes = list(chosen(given.only))
    if given.list:
        for shape in shapes:
            print(f"{shape.judged:11}{shape.name}")
        return 0
    found = []
    with tempfile.TemporaryDirectory() as name:
        for number, shape in enumerate(shapes, 1):
            found.append(
                measure(
                    shape,
                    given.size,
                    repeat=given.repeat,
                    timeout=given.timeout,
                    folder=Path(name),
                )
            )
            print(
                f"{number}/{len(shapes)}", *found[-1].row(), sep="  ", file=sys.stderr, flush=True
            )
    found.sort(key=lambda one: (not one.is_superlinear, -(one.growth or 0.0)))
    headings = ["shape", "command", "n", "time for n", "2n", "4n", "growth", "memory", "exit code"]
    print(table(headings, [one.row() for one in found]))
    if given.plot:
        plot(found, given.plot)
    return int(any(one.is_superlinear for one in found))


if __name__ == "__main__":
    sys.exit(main())
