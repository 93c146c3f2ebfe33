"""What all small histories say of one specification, for lint."""

from __future__ import annotations

from itertools import pairwise

import pytest
from oracle import relational
from oracle.concrete import EVENT_NAMES, given, satisfiable
from oracle.concrete_histories import all_histories
from oracle.history import parse
from support.sampling import quick_first

from isolang.comparison.compare import compare
from isolang.comparison.search import search
from isolang.language.library import list_library
from isolang.language.load import load_spec
from isolang.language.meaning import mentions


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
    """The oracle judges alike what it finds. A bound beyond two transactions is the same code."""
    spec = load_spec(f'include "adya.iso"\n{text}\n')
    found = search(spec, transactions=2)
    assert (found.satisfied is not None) == satisfied
    if satisfied:
        assert [check.name for check in found.cannot_fail] == cannot_fail
    assert found.complete or not (cannot_fail or not satisfied)
    for small in found.failed.values():
        assert not relational.satisfied(parse(str(small)), spec)
    for small in (found.satisfied, found.written_twice):
        assert small is None or relational.satisfied(parse(str(small)), spec)


def test_a_check_that_only_matters_beside_another_one_can_fail() -> None:
    """Alone, `vis ; vis in vis` is met by a large enough `vis`."""
    found = search(load_spec("cc-vis"))
    assert found.cannot_fail == ()
    assert set(found.failed) == {"EXT", "TRANSVIS"}


def test_what_only_predicate_reads_violate_can_fail() -> None:
    """They are among the small histories."""
    found = search(load_spec('include "adya.iso"\nempty pwr as c\n'))
    assert found.cannot_fail == ()
    assert "rp(x,none)" in str(found.failed["c"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "check",
    quick_first(
        [
            "acyclic ww | tx^-1 ; po ; tx as c",
            "empty for x: [last-write[x]] ; rf[x] ; po as c",
            "irreflexive for x: tx^-1 ; cand[x] ; tx ; rw[x] as c",
            "require for x: W[x] * R[x] in ww^* as c",
            "not empty (wr ; ww) \\ so as c",
        ],
        2,
        rest="campaign",
    ),
)
def test_a_check_can_fail_where_trying_all_histories_says_so(check: str) -> None:
    """Of two transactions, with checks of single operations and of every kind."""
    spec = load_spec(f'include "adya.iso"\n{check}\n')
    events = bool(mentions.mentioned(spec) & EVENT_NAMES)
    fails, holds = set(), set()
    for size, keys, lists in ((n, k, kind) for n in (1, 2) for k in (1, 2) for kind in (0, 1)):
        for history in all_histories(size, keys, lists=bool(lists), real_time=False, orders=True):
            met = satisfiable(given(history, events=events), spec, spec.checks, lambda: None)
            (holds if met else fails).add(size)
    found = search(spec, transactions=2)
    if found.failed and not fails:  # those all read a key once
        witness = parse(str(found.failed["c"]))
        reads = [(i, op[1]) for i, t in enumerate(witness) for op in t.ops if op[0] == "r"]
        assert len(reads) > len(set(reads))
        assert not relational.satisfied(witness, spec)
    else:
        assert bool(found.failed) == bool(fails)
    assert (found.satisfied is not None) == bool(holds)


def test_specifications_of_single_operations_are_compared() -> None:
    """Also those that do not mention the order of the operations."""
    one = load_spec('include "adya.iso"\nempty for x: [last-write[x]] ; rf[x] as c\n')
    other = load_spec('include "adya.iso"\nacyclic wr as c\n')
    witness = compare(one, other).back.witness
    assert (str(witness.small), witness.certified) == ("r(x,nil)", True)


def test_the_time_ends_the_search_and_the_bound_says_so() -> None:
    spec = load_spec('include "adya.iso"\nacyclic so as c\n')
    found = search(spec, seconds=0)
    assert not found.complete
    assert found.bound() == "some histories, then the limit was reached"
    assert [check.name for check in found.cannot_fail] == ["c"]


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("acyclic so | wr | ww | rw as c", False),
        ("acyclic so | wr | ww | rw^-1 as c", True),
        ("acyclic so | rt | wr | ww | rw as c", False),
        ("acyclic so | rt^-1 as c", True),
        ("empty rw ; ww as c", True),
        ("empty wr \\ (so | init) as c", True),
        ("empty pwr \\ init as c", False),
        ("irreflexive rw ; ww^-1 as c", True),
        ("acyclic (wr | ww)^-1 | rw as c", True),
    ],
)
def test_a_serial_history_that_is_refused(text: str, refused: bool) -> None:
    """It is one: the oracle finds it strictly serializable, and a violation."""
    spec = load_spec(f'include "adya.iso"\n{text}\n')
    found = search(spec).refused
    assert (found is not None) == refused
    if found is not None:
        history = parse(str(found))
        assert relational.satisfied(history, load_spec("sser"))
        assert not relational.satisfied(history, spec)
        begins = [begin for begin, _ in found.intervals()]
        ends = [end for _, end in found.intervals()]
        order = sorted(range(len(begins)), key=begins.__getitem__)
        assert all(ends[a] < begins[b] for a, b in pairwise(order))


@pytest.mark.campaign
@pytest.mark.slow
def test_no_level_of_the_library_refuses_a_serial_history() -> None:
    for entry in list_library():
        if not entry.alias_of:
            assert search(load_spec(entry.name)).refused is None, entry.name
