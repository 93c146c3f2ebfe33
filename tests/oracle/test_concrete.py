"""The small histories: they are all there, and judged as by the oracle of the whole language."""

from __future__ import annotations

import random
from itertools import islice, permutations

import pytest

from isolang.language.load import load_spec
from isolang.language.meaning import mentions
from isolang.language.meaning.core import Spec
from oracle import concrete_histories as histories
from oracle import relational
from oracle.concrete import EVENT_NAMES, given, satisfiable
from oracle.concrete_histories import SmallHistory, all_histories, random_histories
from oracle.history import parse

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
    base = given(history, events=bool(mentions.mentioned(spec) & EVENT_NAMES))
    return satisfiable(base, spec, checks, lambda: None)


@pytest.mark.parametrize("name", [*SPECS, ODD], ids=[*SPECS, "odd"])
def test_small_histories_are_judged_as_the_oracle_does(name: str) -> None:
    spec = load_spec(name)
    orders = "po" in mentions.mentioned(spec)
    verdicts = set()
    for size in (2, 3):
        rng = random.Random(size)
        some = random_histories(rng, size, 2, real_time=False, orders=orders)
        for history in islice(some, 25):
            expected = relational.satisfied(parse(str(history)), spec)
            verdicts.add(expected)
            assert _judge(history, spec) == expected, str(history)
    assert verdicts == {True, False}


@pytest.mark.parametrize("orders", [False, True])
@pytest.mark.parametrize("lists", [False, True])
def test_all_histories_are_there_once(lists: bool, orders: bool) -> None:
    """Whatever history one writes down, exactly one with its sessions renamed is among them."""
    every = list(all_histories(2, 2, lists=lists, real_time=False, orders=orders))
    kinds = [_kind(history) for history in every]
    assert len(set(kinds)) == len(kinds)
    kind = set(kinds)
    source = random_histories(random.Random(0), 2, 2, real_time=False, orders=orders)
    found = 0
    for history in islice(source, 400):
        if all(bool(key.shown) == lists for key in history.keys):
            assert _kind(history) in kind, str(history)
            found += 1
    assert found > 20


def _kind(history: SmallHistory) -> object:
    """The same for histories that differ in names only, by trying all names."""
    forms = [
        histories.form(history, new, places)
        for new in histories._same(history.shape)
        for places in permutations(range(len(history.keys)))
    ]
    return history.shape, repr(min(forms))


def test_a_transaction_may_write_before_it_reads_another_key() -> None:
    """Else levels that look at single operations would be compared on half of what there is."""
    wanted = parse("w(x,1) r(y,nil) w(y,1) || w(x,2) r(y,nil) w(y,2)")
    every = all_histories(2, 2, lists=False, real_time=False, orders=True)
    assert [h for h in every if parse(str(h)) == wanted]


def test_real_times_are_the_interval_orders() -> None:
    assert [len(histories._real_times(n)) for n in (1, 2, 3)] == [1, 3, 19]
