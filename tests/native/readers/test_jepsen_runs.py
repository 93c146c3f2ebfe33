"""Random Jepsen runs in random spellings: the native reader finds the transactions they mean."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.readers import ABORTED, COMMITTED, END_UNKNOWN, INDETERMINATE, UNKNOWN, transactions

from isolang import _native


@dataclass
class Run:
    """A run of some processes: the operation maps in order, and the transactions they mean."""

    maps: list[dict[str, Any]]
    txns: list[tuple[int, int, list[tuple[str, Any, Any]], int, int]]


def random_run(rng: random.Random) -> Run:
    maps: list[dict[str, Any]] = []
    txns: list[list[Any]] = []
    open_: dict[int, tuple[int, list[list[Any]]]] = {}
    sessions: dict[int, int] = {}
    count = 0
    keys = [1, -2, "k", "é"]
    for _ in range(rng.randint(1, 25)):
        process = rng.choice((0, 1, 5, 10**6))
        if rng.random() < 0.1:
            maps.append({"type": "info", "f": "kill", "value": ["n1", [2]], "process": "nemesis"})
            continue
        position = len(maps)
        if process not in open_:
            ops: list[list[Any]] = []
            for _ in range(rng.randint(0, 4)):
                kind = rng.choice("wra")
                name = "append" if kind == "a" else kind
                value = None if kind == "r" else rng.choice((1, 2, 99, 2**63, "v", True))
                ops.append([name, rng.choice(keys), value])
            if process not in sessions:
                sessions[process] = count
                count += 1
            unknown = [(k, x, UNKNOWN if k == "r" else v) for k, x, v in ops]
            open_[process] = (len(txns), ops)
            txns.append([sessions[process], INDETERMINATE, unknown, position, END_UNKNOWN])
            maps.append({"type": "invoke", "f": "txn", "value": ops, "process": process})
            continue
        number, ops = open_.pop(process)
        kind = rng.choice(("ok", "ok", "fail", "info"))
        done: list[list[Any]] = []
        for name, key, value in ops:
            result = rng.choice((None, 3, [], [1, "v"])) if name == "r" and kind == "ok" else value
            done.append([name, key, result])
        txns[number][1] = {"ok": COMMITTED, "fail": ABORTED, "info": INDETERMINATE}[kind]
        if kind == "ok":
            txns[number][2] = [("list" if isinstance(v, list) else k, x, v) for k, x, v in done]
        if kind == "info":
            del sessions[process]  # it goes on as a new one
        else:
            txns[number][4] = position
        value = None if kind == "info" and rng.random() < 0.5 else done
        maps.append({"type": kind, "f": "txn", "value": value, "process": process})
    shown = [
        (s, status, [(k, x, as_shown(v)) for k, x, v in ops], b, e) for s, status, ops, b, e in txns
    ]
    return Run(maps=maps, txns=shown)


def as_shown(value: Any) -> Any:
    if isinstance(value, list):
        return [as_shown(v) for v in value]
    return ("true",) if value is True else value


def as_edn(rng: random.Random, value: Any, name: bool = False) -> str:
    gap = lambda: rng.choice((" ", " ", ", ", "\n", " #_ [x] ", " ;]\n"))  # noqa: E731
    if isinstance(value, dict):
        fields = list(value.items())
        rng.shuffle(fields)
        body = gap().join(f":{k} {as_edn(rng, v, k in ('type', 'f'))}" for k, v in fields)
        return rng.choice(("", "#jepsen.history.Op")) + "{" + body + "}"
    if isinstance(value, list):
        micro = len(value) == 3 and value[0] in ("w", "r", "append")
        parts = [as_edn(rng, v, micro and i == 0) for i, v in enumerate(value)]
        return "[" + gap().join(parts) + "]"
    if value == "nemesis" or name:
        return f":{value}"
    return "nil" if value is None else json.dumps(value)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_random_runs_in_random_spellings(seed: int) -> None:
    rng = random.Random(seed)
    run = random_run(rng)
    numbered = rng.random() < 0.5
    if numbered:
        for index, each in enumerate(run.maps):
            each["index"] = 10 * index
            each["time"] = 5 * index
    spelling = rng.choice(("edn lines", "edn vector", "json lines", "json array"))
    maps = list(run.maps)
    if numbered:
        rng.shuffle(maps)  # :index is the order
    if spelling.startswith("edn"):
        text = "\n".join(as_edn(rng, each) for each in maps)
        text = f"({text})" if spelling == "edn vector" else text
    elif spelling == "json lines":
        text = "\n".join(json.dumps(each) for each in maps)
    else:
        text = json.dumps(maps, indent=rng.choice((None, 2)))
    columns, remarks = _native.read_edn(text.encode())
    got = [(t.session, t.status, t.ops, t.begin, t.end) for t in transactions(columns)]
    assert got == run.txns
    assert columns.has_time or not run.txns
    assert remarks["order"] == ("index" if numbered else "line")
    assert remarks["nonclient"] == sum(each["process"] == "nemesis" for each in maps)
