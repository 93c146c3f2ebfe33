"""The search of lint through small histories: they are all there, and judged as the oracle does."""

from __future__ import annotations

import random
from itertools import islice

import pytest
from oracle import relational
from oracle.history import parse

from isolang.language.load import load_spec
from isolang.language.meaning import facts
from isolang.language.meaning.core import Spec
from isolang.smallscope import histories, search
from isolang.smallscope.evaluate import EVENT_NAMES, given, satisfiable
from isolang.smallscope.histories import SmallHistory, all_histories, random_histories

SPECS = ["si", "ser-vis", "pc-co", "psi", "rc", "cc-vis", "mr", "wfr", "ra-adya", "pl-1"]
ODD = """\
include "adya.iso"
exists r : relation on T within so | wr
exists o : order on T containing r
exists c[x] : choice of cand[x]
require for x: (tx^-1 ; c[x] ; tx) in o as one
not empty (W * R) & (o \\ ww^*) as two
irreflexive domain(rw) * range(rw) as three
"""


def _judge(history: SmallHistory, spec: Spec) -> bool:
    checks = [check for check in spec.checks if not check.flag]
    base = given(history, events=bool(facts.mentioned(spec) & EVENT_NAMES))
    return satisfiable(base, spec, checks, lambda: None)


@pytest.mark.parametrize("name", [*SPECS, ODD], ids=[*SPECS, "odd"])
def test_small_histories_are_judged_as_the_oracle_does(name: str) -> None:
    spec = load_spec(name)
    both_ways = "po" in facts.mentioned(spec)
    verdicts = set()
    for size in (2, 3):
        rng = random.Random(size)
        some = random_histories(rng, size, 2, real_time=False, both_ways=both_ways)
        for history in islice(some, 25):
            expected = relational.satisfied(parse(str(history)), spec)
            verdicts.add(expected)
            assert _judge(history, spec) == expected, str(history)
    assert verdicts == {True, False}


@pytest.mark.parametrize("lists", [False, True])
def test_all_histories_are_there_once(lists: bool) -> None:
    """Whatever history one writes down, exactly one with its sessions renamed is among them."""
    every = list(all_histories(2, 2, lists=lists, real_time=False, both_ways=False))
    kinds = [_kind(history) for history in every]
    assert len(set(kinds)) == len(kinds)
    kind = set(kinds)
    source = random_histories(random.Random(0), 2, 2, real_time=False, both_ways=False)
    found = 0
    for history in islice(source, 400):
        if all(bool(key.shown) == lists for key in history.keys):
            assert _kind(history) in kind, str(history)
            found += 1
    assert found > 20


def _kind(history: SmallHistory) -> object:
    """The same for histories that differ in names only, by trying all names."""
    forms = []
    for new in histories._same(history.shape):
        forms.append(tuple(sorted(histories._renamed(key, new) for key in history.keys)))
    return history.shape, min(forms)


def test_real_times_are_the_interval_orders() -> None:
    assert [len(histories._real_times(n)) for n in (1, 2, 3)] == [1, 3, 19]


@pytest.mark.parametrize(
    ("text", "satisfied", "cannot_fail"),
    [
        ("acyclic so | wr as c", True, []),
        ("acyclic so | init as c", True, ["c"]),
        ("require so in T * T as c\nacyclic wr | ww as d", True, ["c"]),
        ("irreflexive so? as c", False, []),
        ("acyclic wr as c\nnot acyclic wr as d", False, []),
        ("exists r : relation on T\nrequire r in so as c", True, ["c"]),
        ("exists r : relation on T containing wr\nrequire r in so as c", True, []),
        ("empty for x: (ww[x] ; ww[x]) \\ ww[x] as c", True, ["c"]),
        ("flag acyclic so as c\nacyclic ww | wr as d", True, []),
    ],
)
def test_what_a_search_finds(text: str, satisfied: bool, cannot_fail: list[str]) -> None:
    """Up to two transactions here; the largest bound is the same code for longer."""
    spec = load_spec(f'include "adya.iso"\n{text}\n')
    found = search.search(spec, seconds=60, transactions=2)
    assert (found.satisfied is not None) == satisfied
    if satisfied:
        assert [check.name for check in found.cannot_fail] == cannot_fail
    assert found.complete == bool(cannot_fail or not satisfied)
    for name, history in found.failed.items():
        alone = [check for check in spec.checks if check.name == name]
        assert not _judge(history, spec)
        assert len(alone) == 1


def test_a_check_that_only_matters_beside_another_one_can_fail() -> None:
    """Alone, `vis ; vis in vis` is met by a large enough `vis`."""
    found = search.search(load_spec("cc-vis"), seconds=60)
    assert found.cannot_fail == ()
    assert set(found.failed) == {"EXT", "TRANSVIS"}


def test_the_time_ends_the_search_and_the_bound_says_so() -> None:
    ticks = iter(range(10**6))
    spec = load_spec('include "adya.iso"\nacyclic so as c\n')
    found = search.search(spec, seconds=300, clock=lambda: float(next(ticks)))
    assert not found.complete
    assert found.bound().endswith("then the time was over")
    assert [check.name for check in found.cannot_fail] == ["c"]


def test_too_many_choices_end_a_history_not_the_search() -> None:
    text = 'include "adya.iso"\nexists r : relation on T\nrequire T * T in r as c\nempty r as d\n'
    spec = load_spec(text)
    found = search.search(spec, seconds=10, transactions=3)
    assert found.skipped
    assert not found.complete
