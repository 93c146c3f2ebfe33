"""Generates random streams of registers and lists, and watches them in small rounds."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from isolang.api import check, load_history
from isolang.history import History, Transaction
from isolang.history.values import UNKNOWN
from isolang.simulator import BUGS, RULES, Workload, generate
from isolang.watch import Stream, Watch, WatchReport, position_in

LEVELS = ("ser", "sser", "si", "strong-si", "pc", "psi", "cc", "ra", "rc", "pl-2", "pl-3")


#: Levels that distinguish transactions or keys by their names.
NAMED = (
    "mixed",
    "mixed-levels",
    'acyclic so | wr | ww | rw["1", "2"] as of-some-keys',
    'acyclic so | (for x not in "1", "3": wr[x] | ww[x] | rw[x]) as of-others',
    'acyclic so | wr | ww | [label "a*"] ; rw as of-some-transactions',
    "acyclic so | wr | ww ; [not-a] ; rw? as with-a-test",
)


def named_level(rng: random.Random, folder: Path) -> str:
    """Return one of the levels in ``NAMED``; if it is not in the library, save it as a file."""
    level = rng.choice(NAMED)
    if level.startswith("mixed"):
        return level
    path = folder / "named.iso"
    path.write_text(
        'spec named "by names"\ninclude "adya.iso"\n'
        f'let not-a = [label "b"] | [label "c"]\n{level.replace("[not-a]", "not-a")}\n'
    )
    return str(path)


def with_names(rng: random.Random, history: History) -> History:
    """Return the history with random labels and levels for its transactions."""
    levels = ("ser", "si", "pc", "cc", "ra", "rc", "pl-3", "pl-2", None)
    return History.from_transactions(
        [
            replace(one, label=rng.choice(("a1", "a2", "b", None)), level=rng.choice(levels))
            for one in history.transactions()
        ]
    )


def random_history(rng: random.Random) -> History:
    """Return the history of a simulated database, which may have a bug.

    The history has only registers or only lists.
    """
    lists = rng.random() < 0.35
    replicated = {"causal", "read-atomic"}  # under these rules, lists have no single order
    rules = [name for name in sorted(RULES) if not (lists and name in replicated)]
    workload = Workload(
        rule=rng.choice(rules),
        bugs=tuple(rng.sample(sorted(BUGS), rng.choice((0, 0, 1)))),
        sessions=rng.randint(4, 9),
        transactions=rng.randint(20, 250),
        operations=rng.randint(2, 5),
        read_share=rng.uniform(0.3, 0.8),
        keys=rng.choice((2, 4, 10, 40)),
        values=0 if lists else rng.choice((0, 0, 2, 10, 40)),
        lists=lists,
        appends=rng.choice((4, 32, 200)),
        read_modify_write=rng.choice((0.0, 0.2)),
        info_rate=rng.choice((0.0, 0.0, 0.05, 0.2)),
        abort_rate=rng.choice((0.0, 0.1)),
        lag=rng.choice((0, 10, 60)),
        seed=rng.randrange(1 << 30),
    )
    made: Any = generate(workload)
    history: History = getattr(made, "history", made)
    if lists:
        return with_wrong_lists(rng, history) if rng.random() < 0.4 else history
    if rng.random() < 0.3:
        history = with_stale_reads(rng, history)
    return with_deletes(rng, history) if rng.random() < 0.3 else history


def with_wrong_lists(rng: random.Random, history: History) -> History:
    """Return the history in which one or two reads return a list that is wrong or too old."""
    given = list(history.transactions())
    reads = [
        (t, i)
        for t, one in enumerate(given)
        for i, op in enumerate(one.ops)
        if op[0] == "r" and isinstance(op[2], list) and op[2] and one.status == "committed"
    ]
    changed: dict[tuple[int, int], list[Any]] = {}
    for at in rng.sample(reads, min(len(reads), rng.choice((1, 1, 2)))):
        was = list(given[at[0]].ops[at[1]][2])
        place = rng.randrange(len(was))
        how = rng.choice(("swap", "drop", "short", "twice", "other"))
        if how == "swap":
            other = rng.randrange(len(was))
            was[place], was[other] = was[other], was[place]
        elif how == "drop":
            del was[place]
        elif how == "short":
            del was[place:]
        else:
            was[place] = was[0] if how == "twice" else 10**6
        changed[at] = was
    made = [
        replace(
            one,
            ops=[(*op[:2], changed.get((t, i), op[2])) for i, op in enumerate(one.ops)],
            label=None,
        )
        for t, one in enumerate(given)
    ]
    return History.from_transactions(made)


def with_deletes(rng: random.Random, history: History) -> History:
    """Return the history in which some writes are deletes, and reads of their values return nil."""
    given = list(history.transactions())
    gone = {
        (op[1], op[2])
        for one in given
        for op in one.ops
        if op[0] == "w" and op[2] is not None and rng.random() < 0.2
    }

    def changed(op: tuple[Any, ...]) -> tuple[Any, ...]:
        if op[2] is UNKNOWN or (op[1], op[2]) not in gone:
            return op
        return ("delete", op[1]) if op[0] == "w" else ("r", op[1], None)

    made = [replace(one, ops=[changed(op) for op in one.ops], label=None) for one in given]
    return History.from_transactions(made)


def with_rows_before(rng: random.Random, history: History) -> tuple[History, dict[str, Any]]:
    """Return the history of a database that had rows before, and the options for reading it.

    Either the first transactions are removed, so that the values that they wrote seem initial, or 0
    replaces nil.
    """
    given = [replace(one, label=None) for one in history.transactions()]
    lists = any(op[0] == "append" for one in given for op in one.ops)
    if not lists and rng.random() < 0.3:
        made = [
            replace(
                one,
                ops=[(*op[:2], 0) if (op[0], op[2:]) == ("r", (None,)) else op for op in one.ops],
            )
            for one in given
        ]
        return History.from_transactions(made), {"initial_value": ("0",)}

    def written(some: list[Transaction]) -> set[tuple[object, object]]:
        return {(op[1], op[2]) for one in some for op in one.ops if op[0] in {"w", "append"}}

    # The removed transactions must not share a value with the others. Otherwise a read of this
    # value would seem to read from a transaction that was not invoked yet.
    first = rng.randint(1, len(given) // 2)
    if not written(given[:first]) & written(given[first:]):
        given = given[first:]
    return History.from_transactions(given), {"unwritten_initial": True}


def with_crashes(rng: random.Random, text: str) -> str:
    """The same log where some operations end much later, or never, and their clients went on.

    As in Jepsen, a client goes on as a new process.
    """
    share, process = rng.choice((0.02, 0.1, 0.3)), dict[str, int]()
    came: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines()):
        match = re.search(r":type :(\w+), :process (\d+)", line)
        assert match
        kind, client = match.groups()
        now = process.setdefault(client, int(client))
        own = line.replace(f":process {client},", f":process {now},", 1)
        if kind == "invoke" or rng.random() >= share:
            came.append((number, own))
            continue
        process[client] += 100
        if rng.random() < 0.5:
            came.append((number + rng.choice((5, 50, 300)), own))
    came.sort(key=lambda one: one[0])
    told = []
    for number, (_, line) in enumerate(came):
        own = re.sub(r":index \d+", f":index {number}", line, count=1)
        told.append(re.sub(r":time \d+", f":time {number}", own, count=1) + "\n")
    return "".join(told)


def split_by_client(text: str, folder: Path) -> None:
    """Write a folder with one log for each client; the :time of each map is its line in the text.

    The processes of a client have the same last two digits.
    """
    folder.mkdir()
    logs: dict[int, list[str]] = {}
    for number, line in enumerate(text.splitlines(keepends=True)):
        match = re.search(r":process (\d+)", line)
        assert match
        own = re.sub(r" :time \d+,?", "", line).replace("{", f"{{:time {number}, ", 1)
        logs.setdefault(int(match[1]) % 100, []).append(own)
    for client, lines in logs.items():
        (folder / f"c{client}.edn").write_text("".join(lines))


class Scans:
    """A random log with predicate reads, reads, writes and deletes.

    Each transaction sees one state of all rows: the state at its commit, at its begin, or any older
    state. Sometimes a predicate read lacks a row. Rows are numbers or have columns. Some logs have
    times, and can be split into one file for each client. Some transactions have labels and levels.
    """

    PREDICATES = (
        ":true",
        "[:= :value {}]",
        "[:> :value {}]",
        "[:not [:< :value {}]]",
        "[:mod :value 3 1]",
        "[:between :key 1 2]",
    )
    OF_COLUMNS = ("[:= :a {}]", '[:= :b "x1"]', '[:or [:= :b "x2"] [:< :a {}]]', "[:in :a [1 {}]]")

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.keys = range(rng.choice((2, 4, 10, 40)))
        self.most = rng.choice((4, 30, 10**6))
        self.table = rng.random() < 0.5
        self.columns = rng.random() < 0.5
        self.seen = rng.choice(("commit", "commit", "begin", "older"))
        self.wrong = rng.choice((0.0, 0.0, 0.03))
        self.scanned = rng.choice((0.2, 0.5))
        self.timed = rng.random() < 0.5
        self.named = rng.random() < 0.3
        self.now, self.begun = 0, dict[int, int]()
        self.count = 0
        self.states: list[dict[int, int]] = [{}]
        self.lines: list[str] = []
        self.clients: list[int] = []

    def split(self, path: Path) -> None:
        """Write a folder with one log for each client; ``text`` must have been called before."""
        path.mkdir()
        for client in set(self.clients):
            own = [line for line, of in zip(self.lines, self.clients, strict=True) if of == client]
            (path / f"c{client}.edn").write_text("".join(own))

    def text(self) -> str:
        rng = self.rng
        left = rng.randint(12, 70)
        flying: dict[int, tuple[list[Any], int, str]] = {}
        names = list(range(rng.randint(2, 6)))
        while left or flying:
            process = rng.choice(names)
            if process in flying:
                ops, begun, about = flying.pop(process)
                if self.end(process, ops, begun, about) == "info":
                    names[names.index(process)] = process + 10
            elif left:
                left -= 1
                ops = [self.drawn() for _ in range(rng.randint(1, 4))]
                about = self.names()
                flying[process] = ops, len(self.states) - 1, about
                self.line("invoke", process, [self.told(op, None) for op in ops], about)
        return "".join(self.lines)

    def names(self) -> str:
        rng = self.rng
        if not self.named or rng.random() < 0.3:
            return ""
        label, level = rng.choice(("a1", "a2", "b")), rng.choice(("ser", "si", "rc", "pl-3"))
        return f':label "{label}", ' + (f':level "{level}", ' if rng.random() < 0.5 else "")

    def drawn(self) -> tuple[Any, ...]:
        rng = self.rng
        key = rng.choice(self.keys)
        if rng.random() < self.scanned:
            some = self.PREDICATES
            if self.columns:
                some = (*self.OF_COLUMNS, *(one for one in some if ":value" not in one))
            return ("scan", rng.choice(some).format(rng.randint(1, min(self.most, 60))))
        kind = rng.choice(("r", "w", "w", "delete"))
        self.count += 1
        return (kind, key, (self.count - 1) % self.most + 1)

    def end(self, process: int, ops: list[Any], begun: int, about: str) -> str:
        rng, now = self.rng, len(self.states) - 1
        at = {"commit": now, "begin": begun, "older": rng.randint(max(0, begun - 4), now)}[
            self.seen
        ]
        before = self.states[at]
        mine: dict[int, int | None] = {}
        told = []
        for op in ops:
            rows = {k: v for k, v in (before | mine).items() if v is not None}
            told.append(self.told(op, rows))
            if op[0] in {"w", "delete"}:
                mine[op[1]] = op[2] if op[0] == "w" else None
        over = any(before.get(k) != self.states[-1].get(k) for k in mine)
        kind = "fail" if over and self.seen == "begin" else "ok"
        kind = rng.choice(("fail", "info")) if rng.random() < 0.08 else kind
        if kind == "ok" or (kind == "info" and rng.random() < 0.5):
            rows = {k: v for k, v in (self.states[-1] | mine).items() if v is not None}
            self.states.append(rows)
        shown = told if kind == "ok" else [self.told(op, None) for op in ops]
        self.line(kind, process, shown, about)
        return kind

    def told(self, op: tuple[Any, ...], rows: dict[int, int] | None) -> str:
        if op[0] == "scan":
            where = f"{{:table :t :where {op[1]}}}" if self.table else f"{{:where {op[1]}}}"
            if rows is None:
                return f"[:rp {where} nil]"
            found = {k: v for k, v in rows.items() if _holds(op[1], k, v)}
            if found and self.rng.random() < self.wrong:
                del found[self.rng.choice(sorted(found))]
            shown = " ".join(f"{self.key(k)} {self.row(v)}" for k, v in sorted(found.items()))
            return f"[:rp {where} {{{shown}}}]"
        if op[0] == "r":
            seen = None if rows is None else rows.get(op[1])
            return f"[:r {self.key(op[1])} {'nil' if seen is None else self.row(seen)}]"
        return f"[:{op[0]} {self.key(op[1])}{f' {self.row(op[2])}' if op[0] == 'w' else ''}]"

    def row(self, value: int) -> str:
        return f'{{:a {value}, :b "x{value % 5}"}}' if self.columns else str(value)

    def key(self, number: int) -> str:
        return f"[:t {number}]" if self.table else str(number)

    def line(self, kind: str, process: int, ops: list[str], about: str) -> None:
        self.now += self.rng.choice((1, 10, 100))
        when = f":time {self.now}, " if self.timed else ""
        value = f"{when}{about}:f :txn, :value [{' '.join(ops)}]"
        begin = self.begun.setdefault(process, self.now)
        if kind != "invoke":
            ends = [begin + (self.now - begin) * i // len(ops) for i in range(len(ops) + 1)]
            times = " ".join(f"[{a} {b}]" for a, b in itertools.pairwise(ends))
            value += f", :times [{times}]" if self.timed and kind == "ok" else ""
            del self.begun[process]
        self.lines.append(f"{{:type :{kind}, :process {process}, {value}}}\n")
        self.clients.append(process % 10)


def _holds(predicate: str, key: int, value: int) -> bool:
    numbers = [int(w) for w in re.sub(r"[][]", " ", predicate).split() if w.isdigit()]
    match predicate.split(maxsplit=1)[0]:
        case ":true":
            return True
        case "[:=":
            return value == numbers[0] if numbers else value % 5 == 1
        case "[:or":
            return value % 5 == 2 or value < numbers[0]
        case "[:in":
            return value in numbers
        case "[:>":
            return value > numbers[0]
        case "[:not":
            return value >= numbers[0]
        case "[:mod":
            return value % 3 == 1
    return 1 <= key <= 2


def with_stale_reads(rng: random.Random, history: History) -> History:
    """Return the history in which some reads return an older value of their key.

    The older value is never from a transaction that was not invoked yet, because such a read would
    be a thin-air read in the order of the log.
    """
    written: dict[object, list[tuple[int, object]]] = {}
    given = list(history.transactions())
    for t in given:
        for op in t.ops:
            if op[0] == "w" and isinstance(t.begin, int):
                written.setdefault(op[1], []).append((t.begin, op[2]))
    made = []
    for t in given:
        ops = []
        for op in t.ops:
            if op[0] == "r" and t.status == "committed" and rng.random() < 0.03:
                now = t.begin if isinstance(t.begin, int) else 0
                old = [value for begin, value in written.get(op[1], ()) if begin < now]
                ops.append(("r", op[1], rng.choice([None, *old[-4:]])))
            else:
                ops.append(op)
        made.append(
            Transaction(ops=ops, session=t.session, status=t.status, begin=t.begin, end=t.end)
        )
    return History.from_transactions(made)


def watch_in_rounds(
    rng: random.Random,
    path: Path,
    level: str,
    folder: Path,
    counts: Counter[str],
    **reading: Any,
) -> WatchReport:
    """Watch a log in small rounds, and return the report.

    In half of the cases, values are moved to disk soon. In half of the cases, the watch is killed
    and resumed once or twice.
    """
    on_disk, kills = rng.random() < 0.5, rng.choice((0, 0, 1, 2))
    reading = {"memory": 1} | reading if on_disk else reading
    batch = rng.choice((100, 400, 2000)) if not kills else rng.choice((100, 400))
    options: Any = {"follow": False, "batch": batch}
    options["clock_error"] = reading.get("clock_error", 0)
    rounds = rng.randint(3, 50) if not kills else rng.randint(3, 15)
    each = 1 if kills else rng.choice((1, 20)) if on_disk else 10**6
    with patch("isolang.watch.parts._SAVE_EACH", each):
        while True:
            stream = Stream([path], resume=position_in(folder), **options)
            watch = Watch(level, stream=stream, folder=folder, round=rounds, timeout=3, **reading)
            cuts = counts["cuts"]
            for batch in stream:
                for found in watch.feed(batch):
                    counts["rounds"] += 1
                    counts["put back"] += found.put_back
                    counts["cuts"] += found.cut > 0
                    counts["exchanged"] += found.exchanged
                    counts["on disk"] += watch.values.last.keep_removed
                    counts["put back from disk"] += found.put_back * watch.values.last.keep_removed
                if kills and rng.random() < (0.3 if counts["cuts"] > cuts else 0.01):
                    break
            stream.close()
            watch.close()
            if watch.report is not None:
                return watch.report
            kills -= 1
            counts["killed"] += 1
            counts["gone on"] += position_in(folder) is not None


def watch_and_compare(
    rng: random.Random, path: Path, level: str, folder: Path, counts: Counter[str]
) -> WatchReport:
    """Watch a file, and check that the verdict is that of the whole file if both are known."""
    whole = check(load_history(path), level, simplest=False, timeout=2)
    found = watch_in_rounds(rng, path, level, folder, counts)
    assert {whole.outcome, found.outcome} - {"unknown"} in ({"valid"}, {"invalid"}, set())
    counts[found.outcome] += 1
    return found


def lines(*transactions: str) -> str:
    """Return a log in which transactions run one after the other.

    Each argument begins with the number of its process, followed by the operations.
    """
    text = ""
    for given in transactions:
        process, _, value = given.partition(" ")
        for kind in ("invoke", "ok"):
            text += f"{{:type :{kind}, :process {process}, :f :txn, :value [{value}]}}\n"
    return text
