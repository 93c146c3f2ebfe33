"""Generates random logs of operation maps, with all features of the format."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from isolang import load_history
from isolang.history.columns import UNKNOWN_BEGIN, UNKNOWN_END
from isolang.history.history import History
from isolang.history.transaction import Transaction
from isolang.watch.stream import Batch, Stream, transactions
from isolang.watch.stream.batch import LogPlace

FEATURES = (
    "lists",
    "deletes",
    "info",
    "fail",
    "groups",
    "times",
    "set-reads",
    "predicates",
    "nemesis",
    "uninvoked",
    "open",
    "json",
    "tagged",
    "index",
    "comments",
    "strings",
    "init",
)


def random_log(
    seed: int, *, features: frozenset[str], transactions: int = 40, clients: int = 4
) -> list[tuple[int, str]]:
    """Return the lines of a log in the order in which they were written, each with its client."""
    return _Writer(random.Random(seed), features, clients).lines(transactions)


class _Writer:
    def __init__(self, rng: random.Random, features: frozenset[str], clients: int) -> None:
        self.rng = rng
        self.features = features
        self.clients = clients
        self.out: list[tuple[int, str]] = []
        self.time = 0
        self.value = 0

    def lines(self, transactions: int) -> list[tuple[int, str]]:
        rng, has = self.rng, self.features
        open_: dict[int, tuple[list[object], list[object]]] = {}
        process = {client: client for client in range(self.clients)}
        if "init" in has and "json" not in has:
            self.put(0, "invoke", 0, {":x": 7, ":y": 8}, f=":init")
            self.put(0, "ok", 0, {":x": 7, ":y": 8}, f=":init")
        begun = 0
        while begun < transactions or open_:
            if "nemesis" in has and "json" not in has and rng.random() < 0.05:
                self.put(0, "info", ":nemesis", [":start", {":a": [1]}], f=":kill")
            if "comments" in has and "json" not in has and rng.random() < 0.1:
                self.out.append(
                    (rng.randrange(self.clients), rng.choice(["; {:a", "", "#_{:b 1}"]))
                )
            client = rng.randrange(self.clients)
            if client not in open_:
                if begun >= transactions:
                    if "open" in has and rng.random() < 0.5:
                        break
                    continue
                begun += 1
                asked, answered = self.operations()
                if "uninvoked" not in has or rng.random() < 0.9 or not self.out:
                    self.put(client, "invoke", process[client], asked)
                open_[client] = (asked, answered)
                continue
            asked, answered = open_.pop(client)
            chance = rng.random()
            if "info" in has and chance < 0.15:
                self.put(client, "info", process[client], rng.choice([asked, answered, ":timeout"]))
                if rng.random() < 0.5:
                    process[client] += self.clients
            elif "fail" in has and chance < 0.3:
                self.put(client, "fail", process[client], asked)
            else:
                self.put(client, "ok", process[client], answered)
        return self.out

    def put(self, client: int, kind: str, process: object, value: object, f: str = ":txn") -> None:
        rng, has = self.rng, self.features
        self.time += rng.randrange(1, 50)
        fields = [
            ("type", f":{kind}"),
            ("process", process),
            ("f", f),
            ("value", value),
            ("time", self.time),
        ]
        if "index" in has:
            fields.append(("index", len(self.out)))
        if "groups" in has and kind == "ok" and rng.random() < 0.5:
            fields.append(("group", rng.choice([":a", "b", 3])))
        if "times" in has and kind == "ok" and f == ":txn":
            at = self.time - 1
            fields.append(("times", [[at - 1, at] for _ in value]))
            fields.append(("commit", [at, self.time]))
        rng.shuffle(fields)
        if "json" in has:
            line = json.dumps({name: _plain(one) for name, one in fields})
        else:
            line = "{" + ", ".join(f":{name} {_edn(one)}" for name, one in fields) + "}"
        if "tagged" in has and "json" not in has and rng.random() < 0.3:
            line = "#jepsen.history.Op" + line
        self.out.append((client, line))

    def operations(self) -> tuple[list[object], list[object]]:
        """Return the operations of a transaction as invoked and as completed."""
        rng, has = self.rng, self.features
        asked: list[object] = []
        answered: list[object] = []
        for _ in range(rng.randrange(1 if "times" in has else 0, 4)):
            key = rng.choice(["k 1", 2, ":x", ":y"] if "strings" in has else [1, 2, 3])
            self.value += 1
            value: object = self.value
            if "strings" in has and rng.random() < 0.3:
                value = f'v{self.value} }}{{; "x" :type :ok'
            choice = rng.random()
            if "predicates" in has and "json" not in has and choice < 0.15:
                asked.append([":rp", [":=", ":value", 3], None])
                answered.append([":rp", [":=", ":value", 3], rng.choice([{}, {99: 3}])])
            elif "set-reads" in has and choice < 0.25:
                asked.append([":r-in", key, None])
                answered.append([":r-in", key, [max(self.value - 2, 1), None]])
            elif "deletes" in has and choice < 0.35:
                asked.append([":delete", key])
                answered.append([":delete", key])
            elif choice < 0.65:
                name = ":append" if "lists" in has else ":w"
                asked.append([name, key, value])
                answered.append([name, key, value])
            else:
                seen: object = max(self.value - rng.randrange(1, 5), 1)
                if "lists" in has:
                    seen = list(range(1, rng.randrange(1, 4)))
                asked.append([":r", key, None])
                answered.append([":r", key, seen])
        return asked, answered


def _edn(value: object) -> str:
    match value:
        case None:
            return "nil"
        case str() if value.startswith(":"):
            return value
        case list():
            return f"[{' '.join(map(_edn, value))}]"
        case dict():
            return f"{{{', '.join(f'{_edn(k)} {_edn(v)}' for k, v in value.items())}}}"
    return json.dumps(value)


def _plain(value: object) -> object:
    """Return a value for JSON, in which keywords become strings."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.removeprefix(":") if isinstance(value, str) else value


def comparable_content(transaction: Transaction, order: dict[int, int]) -> tuple[object, ...]:
    """Return the content of a transaction, with times replaced by their ranks in ``order``."""

    def rank(time: object, unknown: int) -> object:
        return None if time is None or time in (unknown, -(2**62)) else order.get(time, time)

    return (
        transaction.session,
        transaction.status,
        [repr(op) for op in transaction.ops],
        rank(transaction.begin, UNKNOWN_BEGIN),
        rank(transaction.end, UNKNOWN_END),
        transaction.times,
        transaction.commit,
        transaction.group,
        transaction.failed,
    )


def ranks(transactions: list[Transaction]) -> dict[int, int]:
    """Return the rank of each time of these transactions."""
    times = {t.begin for t in transactions} | {t.end for t in transactions}
    return {t: i for i, t in enumerate(sorted(times - {None, -(2**62)}))}


class Dripping(io.RawIOBase):
    """A stream that returns its bytes in pieces of random sizes."""

    def __init__(self, data: bytes, rng: random.Random, largest: int) -> None:
        self.data, self.rng, self.largest, self.at = data, rng, largest, 0

    def fileno(self) -> int:
        raise OSError

    def read(self, size: int = -1) -> bytes:
        end = self.at + min(size, self.rng.randrange(1, self.largest))
        found, self.at = self.data[self.at : end], min(end, len(self.data))
        return found


def text_of(lines: list[tuple[int, str]]) -> bytes:
    return "".join(line + "\n" for _, line in lines).encode()


def finished_transactions(batches: list[Batch]) -> list[Transaction]:
    """Return all transactions of a stream, including those in flight at its end."""
    found = []
    for batch in batches:
        kept = ~batch.in_flight if not batch.ended else batch.in_flight | True
        found += [t for t, keep in zip(transactions(batch.history), kept, strict=True) if keep]
    if batches[-1].clock == "none":  # without invocations, times cannot be compared
        found = [replace(t, begin=None, end=None) for t in found]
    return found


def by_session(found: list[Transaction]) -> dict[object, list[object]]:
    order = ranks(found)
    sessions: dict[object, list[object]] = {}
    for transaction in found:
        sessions.setdefault(transaction.session, []).append(comparable_content(transaction, order))
    return sessions


def transactions_at(stream: Stream, places: Sequence[LogPlace]) -> list[Transaction]:
    """Read transactions of a log again, and return them in the order of their places.

    The number of a transaction is its position among the transactions that are read again.
    """
    at = np.array([[-1, p.file, p.offset, p.done_file, p.done] for p in places], np.int64)
    rows = stream.log.rows_at(at)
    assert rows.at.tolist() == at.tolist()
    return transactions(
        History(
            columns=rows.columns,
            name="again",
            format="edn",
            position_unit="byte",
            session_names=tuple(rows.names),
        )
    )


def transaction_at(stream: Stream, place: LogPlace) -> Transaction:
    """Read one transaction of a log again, and return it."""
    (found,) = transactions_at(stream, [place])
    return found


def load_transactions(path: Path, format: str = "auto") -> list[Transaction]:  # noqa: A002
    history = load_history(path, format=format)
    return transactions(history)


def log_of(seed: int) -> tuple[bytes, frozenset[str]]:
    rng = random.Random(seed)
    features = frozenset(f for f in FEATURES if rng.random() < 0.4)
    lines = random_log(seed, features=features, transactions=rng.randrange(1, 60))
    return text_of(lines), features
