"""The levels of the literature: litmus histories, the definitions by brute force, the hierarchy."""

from __future__ import annotations

import random

import pytest
from oracle import semantics
from oracle.generate import any_history, litmus_histories
from oracle.history import History, parse, show, timed, with_wide_times
from oracle.levels import GUARANTEES, LEVELS, WEAK
from oracle.literature import ABOVE, LITERATURE
from oracle.pipeline import tool_verdict

from isolang.api import load_spec
from isolang.language.classify.route import Route, route

#: History, and the levels that forbid it. Without times each transaction may have been any time,
#: but for the order of its session.
LITMUS = {
    "r(x,nil) w(x,1) || r(x,nil) w(x,2)": (
        "pl-cs pl-fcv pl-3u update-atomic rss per-key-sequential"
    ),
    "r(x,nil) w(x,1) || w(x,2) || r(x,2) r(x,1)": (
        "pl-fcv pl-3u update-atomic rss per-key-sequential per-key-causal"
    ),
    "w(x,1) w(y,1) || r(x,nil) r(y,1)": ("pl-fcv pl-3u update-atomic rss"),
    "w(x,1) || w(y,1) || r(x,1) r(y,nil) || r(x,nil) r(y,1)": "rss",
    "r(x,nil) r(y,nil) w(x,1) || r(x,nil) r(y,nil) w(y,1)": "pl-3u rss",
    "r(x,nil) r(y,nil) w(x,1) || r(y,nil) w(y,1) || r(x,nil) r(y,1)": ("pl-3u rss"),
    "w(x,1) || r(x,1) w(y,1) || r(y,1) r(x,nil)": "pl-fcv pl-3u rss",
    "w(x,1) -> r(x,nil)": ("pl-fcv update-atomic rss per-key-sequential per-key-causal"),
    "w(x,1) || r(x,1) -> r(x,nil)": ("pl-fcv rss per-key-sequential per-key-causal"),
    "w(x,1) -> w(y,1) || r(y,1) -> r(x,nil)": "pl-fcv rss",
    "w(x,1) @1-2 || r(x,nil) @3-4": "pl-fcv rss",
    "w(x,1) @1-9 || r(x,1) @2-3 || r(x,nil) @4-5": "pl-fcv",
    "w(x,1) @1-2 || w(x,2) @3-4 || r(x,2) @5-6 || r(x,1) @7-8": ("pl-fcv rss"),
    "w(x,1) @1-2 || w(x,2) @3-4 || r(x,2) r(x,2) @1-6 || r(x,1) @1-8": "",
    "w(x,1) @0-1 || w(x,2) w(z,1) @2-3 || r(x,1) r(z,1) @2-9": "pl-fcv rss",
    "r(x,2) -> w(x,1) || r(x,1) w(x,2)": (
        "pl-fcv update-atomic rss per-key-sequential per-key-causal strong-session-pl-2 strong-pl-2"
    ),
}


@pytest.fixture(scope="module")
def plans() -> dict[str, Route]:
    return {name: route(load_spec(name)) for name in LITERATURE}


@pytest.mark.parametrize("name", [*LITERATURE, "update-atomic-vis", "pram"])
def test_each_is_decided_natively(name: str) -> None:
    assert route(load_spec(name)).kind != "relational"


@pytest.mark.slow
@pytest.mark.parametrize("name", LITERATURE)
def test_by_brute_force(name: str, plans: dict[str, Route]) -> None:
    """The tool says what the definition says, on random histories and on all litmus histories."""
    rng = random.Random(sum(map(ord, name)))
    prepared = semantics.prepare(LITERATURE[name])
    histories = [*litmus_histories(), *(any_history(rng) for _ in range(150))]
    verdicts = set()
    for history in histories:
        judged = _timed(history) if prepared.real_time else history
        try:
            (valid,) = semantics.satisfied(judged, [prepared], limit=3_000)
        except semantics.TooLargeError:
            continue
        verdicts.add(valid)
        expected = "valid" if valid else "invalid"
        assert tool_verdict(judged, plans[name]) == expected, show(judged)
    assert verdicts == {True, False}


@pytest.mark.parametrize("operations", LITMUS)
def test_litmus(operations: str, plans: dict[str, Route]) -> None:
    history = _timed(parse(operations))
    forbidding = {n for n in plans if tool_verdict(history, plans[n]) == "invalid"}
    assert forbidding == set(LITMUS[operations].split())
    by_vis = tool_verdict(history, route(load_spec("update-atomic-vis")))
    assert (by_vis == "invalid") == ("update-atomic" in forbidding)


@pytest.mark.slow
def test_hierarchy() -> None:
    """What satisfies a level satisfies those below it, and some history tells them apart."""
    rng = random.Random(7)
    known = LEVELS | WEAK | GUARANTEES | LITERATURE
    pairs = [pair for pair in ABOVE if set(pair) <= known.keys()]
    names = sorted({name for pair in pairs for name in pair})
    prepared = [semantics.prepare(known[name]) for name in names]
    apart = set()
    histories = [*litmus_histories(), *map(parse, LITMUS), *(any_history(rng) for _ in range(300))]
    for history in map(_timed, histories):
        try:
            satisfied = semantics.satisfied(history, prepared, limit=2_000)
        except semantics.TooLargeError:
            continue
        met = dict(zip(names, satisfied, strict=True))
        for weaker, stronger in pairs:
            assert met[weaker] or not met[stronger], (weaker, stronger, show(history))
            if met[weaker] and not met[stronger]:
                apart.add((weaker, stronger))
    assert apart == set(pairs)


@pytest.mark.parametrize("weaker", ["ryw", "mr", "mw"])
def test_pram_is_between_the_guarantees_and_causal_consistency(weaker: str) -> None:
    routes = [route(load_spec(name)) for name in (weaker, "pram", "cc")]
    seen = set()
    for history in litmus_histories():
        met = [tool_verdict(history, plan) == "valid" for plan in routes]
        assert met == sorted(met, reverse=True), show(history)
        seen.add(tuple(met))
    assert len(seen) >= 3


def test_pram_forbids_reading_what_the_session_writes_later() -> None:
    assert tool_verdict(parse("r(x,1) -> w(x,1)"), route(load_spec("pram"))) == "invalid"


def _timed(history: History) -> History:
    return history if timed(history) else with_wide_times(history)
