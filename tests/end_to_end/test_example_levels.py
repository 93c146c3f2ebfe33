"""The levels of ``examples/levels``, against what their papers define."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from itertools import combinations

import pytest
from oracle import examples
from oracle.generate import any_history, random_times
from oracle.generate_literature import with_groups
from oracle.history import History, Txn, parse, show, timed
from oracle.pipeline import tool_verdict
from support.paths import ROOT

from isolang.api import load_spec
from isolang.comparison.compare import compare
from isolang.language.classify.route import route

LEVELS = {path.stem: path for path in sorted((ROOT / "examples/levels").glob("*.iso"))}
#: Those of whose checks no engine for large histories knows one.
RELATIONAL = {
    "regular-weak",
    "weak-causal",
    "ssi-pivot",
    "slow-memory",
    "fork",
    "red-blue",
    "causal-memory",
}


def drawn(rng: random.Random) -> History:
    """A small history of registers with times, groups and labels, whose reads are known."""
    while True:
        history = any_history(rng)
        if history and len(history) <= 4 and examples.judged(history):
            history = history if timed(history) else random_times(rng, history)
            history = with_groups(rng, history)
            history = tuple(replace(t, labels=rng.choice(((), ("red",)))) for t in history)
            if timed(history) and any(t.group for t in history):
                return history


def goes_on(history: History) -> bool:
    """Whether a session goes on after a transaction of unknown outcome."""
    return any(a.status == "maybe" and a.session == b.session for a, b in combinations(history, 2))


def test_there_are_fifteen() -> None:
    """Each has a definition, a row in docs/levels.md, and a header that names its source."""
    assert LEVELS.keys() == examples.DEFINITIONS.keys()
    assert len(LEVELS) == 15
    page = (ROOT / "docs/levels.md").read_text(encoding="utf-8")
    for name, path in LEVELS.items():
        assert re.search(r"^// Source: ", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert f"| `{name}` |" in page


@pytest.mark.slow
@pytest.mark.parametrize("name", LEVELS)
def test_by_definition(name: str) -> None:
    """The tool says what the paper says, certified, and natively where it can."""
    plan = route(load_spec(LEVELS[name]))
    assert (plan.kind == "relational") == (name in RELATIONAL)
    rng = random.Random(name)
    seen: Counter[str] = Counter()
    for _ in range(60 if name in RELATIONAL else 150):
        history = drawn(rng)
        if name == "causal-memory" and goes_on(history):
            continue
        expected = "valid" if examples.satisfied(history, name) else "invalid"
        assert tool_verdict(history, plan) == expected, show(history)
        seen[expected] += 1
    assert min(seen["valid"], seen["invalid"]) > 5, seen


#: What each allows, and what it forbids.
LITMUS = {
    "strong-prefix": (
        "r(x,nil) w(x,1) @0-5 || r(x,nil) w(x,2) @0-5",
        "w(x,1) @0-1 || r(x,nil) @2-3",
    ),
    "strong-mav": ("w(x,1) @0-1 || r(x,nil) @2-3", "w(x,1) w(y,1) @0-1 || r(y,1) r(x,nil) @2-3"),
    "real-time-causal": (
        "w(x,1) @0-1 || r(x,nil) @2-3",
        "w(x,1) @0-1 || w(x,2) @2-3 || r(x,2) -> r(x,1) @4-5",
    ),
    "bounded-staleness-2": (
        "w(x,1) @0-1 || r(x,nil) @2-3",
        "w(x,1) @0-1 || w(x,2) @2-3 || r(x,nil) @4-5",
    ),
    "regular-strong": (
        "w(x,1) @0-9 || r(x,1) @1-2 || r(x,nil) @3-4",
        "w(x,1) @0-5 || w(x,2) @0-5 || r(x,1) @6-7 || r(x,2) @6-7",
    ),
    "regular-weak": (
        "w(x,1) @0-5 || w(x,2) @0-5 || r(x,1) @6-7 || r(x,2) @6-7",
        "w(x,1) @0-1 || w(x,2) @2-3 || r(x,1) @4-5",
    ),
    "write-si": (
        "w(x,1) || w(x,2)",
        "r(x,nil) r(y,nil) w(x,1) || r(x,nil) r(y,nil) w(y,1)",
    ),
    "weak-causal": (
        "w(x,1) || w(x,2) || r(x,1) -> r(x,2) || r(x,2) -> r(x,1)",
        "w(x,1) || r(x,1) w(y,2) || r(y,2) r(x,nil)",
    ),
    "causal-memory": (
        "w(x,1) || w(x,2) || r(x,1) -> r(x,2) || r(x,2) -> r(x,1)",
        "w(x,1) || w(x,2) || r(x,1) -> r(x,2) -> r(x,1)",
    ),
    "ssi-pivot": (
        "r(x,nil) w(y,1) || r(y,nil) w(z,1)",
        "r(x,nil) w(y,1) || r(y,nil) w(x,1)",
    ),
    "slow-memory": (
        "w(x,1) -> w(y,1) || r(y,1) -> r(x,nil)",
        "w(x,1) -> w(x,2) || r(x,2) -> r(x,1)",
    ),
    "fork": (
        "w(x,1) @0-1 || r(x,nil) @2-3",
        "w(x,1) @0-1 -> r(y,1) @6-7 || r(x,nil) @2-3 -> w(y,1) @4-5",
    ),
    "group-read-your-writes": (
        "w(x,1) @0-1 %a || r(x,nil) @2-3 %b",
        "w(x,1) @0-1 %a || r(x,nil) @2-3 %a",
    ),
    "red-blue": (
        "r(x,nil) w(x,1) ~red || r(x,nil) w(x,2)",
        "r(x,nil) w(x,1) ~red || r(x,nil) w(x,2) ~red",
    ),
    "update-and-read-only": (
        "w(x,1) || w(y,1) || r(x,1) r(y,nil) || r(x,nil) r(y,1)",
        "r(x,nil) w(y,1) || r(y,nil) w(x,1)",
    ),
}


@pytest.mark.parametrize("name", LEVELS)
def test_litmus(name: str) -> None:
    """A history that it allows and one that it forbids, by hand."""
    plan = route(load_spec(LEVELS[name]))
    for operations, expected in zip(LITMUS[name], ("valid", "invalid"), strict=True):
        history = parse(operations)
        if not timed(history):
            history = random_times(random.Random(0), history)
        assert examples.satisfied(history, name) == (expected == "valid"), operations
        assert tool_verdict(history, plan) == expected, operations


@pytest.mark.parametrize(
    ("a", "b", "relation"),
    [
        ("write-si", "ser", "equal"),
        ("strong-prefix", "pc", "stronger"),
        ("strong-prefix", "real-time-causal", "stronger"),
        ("real-time-causal", "cc", "stronger"),
        ("strong-mav", "rc", "stronger"),
        ("update-and-read-only", "ser", "weaker"),
        ("update-and-read-only", "cc", "stronger"),
    ],
)
def test_place(a: str, b: str, relation: str) -> None:
    """By proof in one direction, and by proof or a history in the other."""
    other = LEVELS.get(b, b)
    found = compare(load_spec(LEVELS[a]), load_spec(other), transactions=4)
    assert found.relation == relation


def sessions_of_registers(rng: random.Random) -> History:
    """Up to six small transactions in three sessions, which read what is written anywhere."""
    written: dict[str, list[int | None]] = {"x": [None], "y": [None]}
    shape = []
    for number in range(1, rng.choice((4, 5, 5, 6)) + 1):
        ops = {rng.choice("xxy"): rng.choice("wr") for _ in range(rng.choice((1, 1, 2)))}
        for key, kind in ops.items():
            written[key] += [number] * (kind == "w")
        shape.append((rng.randrange(3), number, ops))
    return tuple(
        Txn(
            session,
            tuple(
                (kind, key, number if kind == "w" else rng.choice(written[key]))
                for key, kind in ops.items()
            ),
        )
        for session, number, ops in sorted(shape, key=lambda t: t[:2])
    )


@pytest.mark.slow
def test_causal_memory_by_definition() -> None:
    """It is no stronger or weaker than convergent causal consistency, and stronger than weak."""
    plans = {
        name: route(load_spec(LEVELS.get(name, name)))
        for name in ("cc", "causal-memory", "weak-causal")
    }
    rng = random.Random(7)
    seen: Counter[tuple[str, ...]] = Counter()
    apart = (
        "r(x,nil) w(x,1) -> r(x,1) r(y,3) || w(x,3) w(y,3)",
        "w(x,1) || w(x,2) || r(x,1) -> r(x,2) || r(x,2) -> r(x,1)",
        "w(x,1) || w(x,2) || r(x,1) -> r(x,2) -> r(x,1)",
    )
    for history in (*map(parse, apart), *(sessions_of_registers(rng) for _ in range(300))):
        expected = "valid" if examples.satisfied(history, "causal-memory") else "invalid"
        verdicts = {name: tool_verdict(history, plan) for name, plan in plans.items()}
        assert verdicts["causal-memory"] == expected, show(history)
        seen[tuple(verdicts.values())] += 1
    assert seen["invalid", "valid", "valid"] > 0
    assert seen["valid", "invalid", "valid"] > 0
    assert seen["invalid", "invalid", "valid"] > 0
    assert seen["invalid", "valid", "invalid"] == 0
