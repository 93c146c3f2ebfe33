"""Rows that were there from the start: who reads one as nil has to follow its deletion."""

from __future__ import annotations

import io
import random
from collections import Counter
from typing import Any

import pytest
from support.sampling import quick_first

from isolang import check, load_history, load_spec
from isolang.certify.proofs import check_proof
from isolang.history import History as ToolHistory
from isolang.history import write_history
from oracle import semantics
from oracle.before import Before
from oracle.history import History, Op, Txn, as_edn_says, is_write, show, to_edn
from oracle.history import keys as keys_of
from oracle.pipeline import Levels, tool_verdict_of

LEVELS = ("pl-1", "pl-2", "pl-2-99", "pl-3", "rc", "ra", "cc", "psi", "si", "ser")


def drawn(rng: random.Random) -> tuple[History, dict[str, Any]]:
    """Transactions on two keys, and the rows that ``:init`` declares: of no key, one or both."""
    keys = "xy"
    rows = {key: rng.randint(1, 3) for key in keys if rng.random() < 0.7}
    values: dict[str, list[Any]] = {key: [None, None, rows.get(key)] for key in keys}
    out = []
    for number in range(rng.randint(2, 4)):
        ops: list[Op] = []
        for _ in range(rng.randint(1, 3)):
            key = rng.choice(keys)
            kind = rng.choice(("r", "r", "r", "w", "insert", "delete", "in", "notin", "scan"))
            if kind in ("r", "in", "notin"):
                some = tuple({rng.choice(values[key]), rng.choice((None, 1, 2))})
                ops.append((kind, key, rng.choice(values[key]) if kind == "r" else some))
            elif kind == "scan":
                returned = {k: v for k in keys if (v := rng.choice(values[k])) is not None}
                ops.append(("scan", ("in", "value", (1, 2, 3)), tuple(returned.items())))
            elif kind == "delete":
                ops.append(("delete", key))
            else:
                ops.append((kind, key, rng.randint(1, 3)))
                values[key].append(ops[-1][2])
        status = rng.choice(("committed", "committed", "committed", "aborted", "maybe"))
        out.append(Txn(rng.choice((0, number + 1)), tuple(ops), status=status))
    history = tuple(sorted(out, key=lambda t: t.session))
    named = keys_of(history)  # of other keys the oracle knows nothing
    return history, {key: row for key, row in rows.items() if key in named}


def features(history: History, rows: dict[str, Any]) -> set[str]:
    """What of this subject a history has."""
    found = set()
    for t in history:
        for j, op in enumerate(t.ops):
            own = any(is_write(o) and o[1] == op[1] for o in t.ops[:j])
            if op[0] == "delete" and op[1] in rows:
                found.add(f"{t.status} delete")
            if op[0] == "r" and op[2] is None and t.status == "committed" and not own:
                found.add("nil of a row" if op[1] in rows else "nil of no row")
    return found


def read_back(history: ToolHistory) -> ToolHistory:
    """What was written as EDN, read again."""
    out = io.BytesIO()
    write_history(history, out, format="edn")
    return load_history(io.BytesIO(out.getvalue()), format="edn")


@pytest.mark.slow
@pytest.mark.parametrize("part", quick_first(range(4), rest="campaign"))
def test_the_tool_judges_rows_from_the_start_as_the_oracle_does(part: int) -> None:
    """At every level, certified by both checkers, and the same after a way through a file."""
    levels, rng, met = Levels(LEVELS), random.Random(part), Counter[tuple[str, str]]()
    for number in range(60):
        history, rows = drawn(rng)
        given = load_history(io.BytesIO(to_edn(history, rows).encode()), format="edn")
        try:
            expected = levels.expected(as_edn_says(history), Before(rows), limit=3_000)
        except semantics.TooLargeError:
            continue
        back = read_back(given)
        for name, verdict in expected.items():
            got = tool_verdict_of(given, levels.plans[name], seed=number)
            assert got == verdict, f"{name}: {rows} {show(history)}"
            assert check(back, name).outcome == verdict, f"{name}: {rows} {show(history)}"
            met.update((feature, verdict) for feature in features(history, rows))
        name = rng.choice(sorted(expected))
        proof = check(given, name).certificate().proof
        check_proof(given, load_spec(name), proof)
    for feature in ("nil of a row", "nil of no row", "committed delete", "maybe delete"):
        assert min(met[feature, "valid"], met[feature, "invalid"]) > 5, met
    assert met["aborted delete", "invalid"] > 5, met
