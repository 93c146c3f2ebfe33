"""The levels of the literature, each from its paper: facts by hand, and how they relate."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from oracle import definitions, read_committed, replay, semantics
from oracle.adya import LEVELS as ADYA
from oracle.definitions import DEFINITIONS
from oracle.generate import any_history, random_times, separating
from oracle.generate_rows import cas_history, row_history, set_history
from oracle.history import History, is_list_key, keys, parse, show, sort_by_session, timed
from oracle.levels import WEAK
from oracle.predicates import lower, rich

#: Histories and the levels that allow them, by hand; with times where a level needs them.
FACTS = [
    # Lost update, and the same with a write that does not read.
    ("r(x,nil) w(x,1) || r(x,nil) w(x,2)", {"pl-cs": False, "pl-2l": True, "update-atomic": False}),
    ("r(x,nil) w(x,1) || w(x,2)", {"pl-cs": True}),
    # Read skew: the cursor does not see it.
    ("r(x,nil) r(y,1) || w(x,1) w(y,1)", {"pl-cs": True, "mav": True, "pl-2-plus": False}),
    # Adya's example for PL-2L, and with its reads in the other order.
    (
        "w(x,1) w(y,1) || r(y,1) w(y,2) w(x,2) w(z,2) || r(x,2) w(z,3) r(y,1)",
        {"pl-2": True, "mav": False, "pl-2l": False, "pl-msr": False},
    ),
    (
        "r(x,nil) w(x,1) w(y,1) || r(x,1) r(y,1) w(y,2) w(x,2) || r(y,1) r(x,2)",
        {"pl-2l": True, "mav": True, "pl-2-plus": False, "pl-msr": True},
    ),
    # After a read one must not miss what its writer depends on: PL-2L sees that, MAV does not.
    (
        "w(y,1) || r(y,1) w(x,1) || r(x,1) r(y,nil)",
        {"mav": True, "pl-2l": False, "pl-msr": False},
    ),
    # Two reads from two unrelated writers, in opposite orders: no snapshots that advance.
    (
        "w(x,1) || w(y,1) || r(x,1) r(y,nil) || r(y,1) r(x,nil)",
        {"pl-2-plus": True, "pl-msr": False, "pl-3u": True, "pl-3": False, "gsi": False},
    ),
    # Statement after statement a newer snapshot.
    ("w(x,1) w(y,1) || r(x,nil) r(y,1)", {"pl-msr": True, "ra": None, "pl-2-plus": False}),
    # Adya's examples for PL-3U.
    (
        "r(m,nil) w(x,1) w(y,1) || r(m,nil) r(x,1) w(x,2) w(y,2) || w(m,3) || r(m,3) r(x,1) r(y,1)",
        {"pl-2-plus": True, "pl-3u": False},
    ),
    (
        "w(x,1) w(y,1) || r(x,1) w(x,4) || r(y,1) w(y,5) || r(x,4) r(y,1) || r(x,1) r(y,5)",
        {"pl-3u": True, "pl-3": False},
    ),
    # A read that begins after a write ended misses it.
    (
        "w(x,1) @0-1 || r(x,nil) @2-3",
        {"pl-fcv": False, "pl-3": True, "rss": False, "linearizable": False},
    ),
    # A version order against real time, which Adya leaves free.
    (
        "w(x,1) @0-1 || w(x,2) w(z,1) @2-3 || r(x,1) r(z,1) @2-9",
        {"pl-fcv-literal": True, "pl-fcv": False},
    ),
    # Regular: a later read of another key orders nothing, and two readers need not agree in time.
    ("w(x,1) @0-9 || r(x,1) @1-2 || r(x,nil) @3-4", {"rss": True, "linearizable": False}),
    ("w(x,1) @0-1 || r(y,1) @2-3 || w(y,1) r(x,nil) @4-5", {"rss": False}),
    ("w(x,1) @0-1 || w(y,1) @2-3 || r(x,nil) @0-9", {"rss": True, "linearizable": True}),
    # What PRAM allows and one order of the writes of each key does not.
    (
        "w(x,1) || w(x,2) || r(x,1) -> r(x,2) || r(x,2) -> r(x,1)",
        {"pram": True, "processor": False, "per-key-sequential": False, "tcc-plus": False},
    ),
    ("w(x,1) -> w(y,1) || r(y,1) -> r(x,nil)", {"pram": False, "per-key-sequential": True}),
    (
        "w(x,1) || r(x,1) -> w(y,1) || r(y,1) -> r(x,nil)",
        {"pram": True, "processor": True, "tcc-plus": False, "per-key-causal": True},
    ),
    # A failed compare-and-set, in real time and in its session.
    (
        "w(x,1) @0-1 || notin(x,{1}) @2-3",
        {"linearizable": False, "per-key-sequential": True, "rss": False},
    ),
    ("w(x,1) -> notin(x,{1})", {"per-key-sequential": False, "per-key-causal": False}),
    ("r(x,nil) w(x,1) @0-5 || notin(x,{nil}) @1-2 || notin(x,{1}) @3-4", {"linearizable": False}),
    ("r(x,nil) w(x,1) @0-5 || notin(x,{nil}) @1-4 || notin(x,{1}) @2-3", {"linearizable": True}),
    # An indeterminate write may take effect late, or never.
    ("?w(x,1) @0- || r(x,nil) @1-2 || r(x,1) @3-4", {"linearizable": True}),
    ("?w(x,1) @0- || r(x,1) @1-2 || r(x,nil) @3-4", {"linearizable": False}),
    ("?w(x,1) @0-1 || r(x,nil) @2-3 || r(x,1) @4-5", {"linearizable": True}),
    # The memory of 1988 has no order of all: a value may cause itself.
    ("r(x,1) -> w(y,1) || r(y,1) w(x,1)", {"pram": True, "shared-pram": False}),
    ("r(x,1) -> w(x,1)", {"pram": False, "shared-pram": False}),
]


@pytest.mark.parametrize(("text", "expected"), FACTS)
def test_facts_by_hand(text: str, expected: dict[str, bool]) -> None:
    """What papers give as examples, and the smallest histories that tell levels apart."""
    wanted = {name: verdict for name, verdict in expected.items() if verdict is not None}
    assert definitions.satisfied(parse(text), wanted) == wanted


def test_non_monotonic_si_is_parallel_si_where_nothing_is_written_blindly() -> None:
    """And says nothing of histories that its paper leaves out."""
    assert definitions.non_monotonic_si(parse("w(x,1)")) is None
    assert definitions.non_monotonic_si(parse("r(x,nil) w(x,1) || r(x,nil) w(x,2)")) is False
    long_fork = "r(x,nil) w(x,1) || r(y,nil) w(y,1) || r(x,1) r(y,nil) || r(x,nil) r(y,1)"
    assert definitions.non_monotonic_si(parse(long_fork)) is True
    for history in histories(0, 400):
        verdict = definitions.non_monotonic_si(history) if not rich(history) else None
        if verdict is not None:
            assert semantics.satisfied(history, [WEAK["psi-nosession"]]) == [verdict]


@pytest.mark.parametrize("part", range(2))
def test_linearizability_is_local(part: int) -> None:
    """Of operations on one key each it is strict serializability of all of them."""
    found: Counter[bool] = Counter()
    for number in range(150):
        history = cas_history(random.Random(part << 20 | number))
        whole = replay.satisfied(history, level="SER", session=False, real_time=True)
        assert definitions.linearizable(history) == whole, show(history)
        found[whole] += 1
    assert min(found[True], found[False]) >= 8, found


def test_a_partition_sees_what_it_committed() -> None:
    """Two sessions of one group, and of two."""
    history = parse("w(x,1) @0-1 || r(x,nil) @2-3")
    assert not definitions.strong_partition_si(history, {0: "a", 1: "a"})
    assert definitions.strong_partition_si(history, {0: "a", 1: "b"})
    assert definitions.strong_partition_si(history, {0: "a", 1: "a"}, error=1)


def histories(start: int, stop: int) -> list[History]:
    """Of registers and rows, with times."""
    out = []
    for number in range(start, stop):
        rng = random.Random(number)
        history = rng.choice((any_history, separating, set_history, row_history))(rng)
        if len(history) > 4 or any(is_list_key(history, k) for k in keys(history)):
            continue
        history = sort_by_session(history)
        out.append(history if timed(history) else random_times(rng, history))
    return out


#: (weaker, stronger) of the literature. Real time orders the sessions in none of them: where their
#: times overlap, what is linearizable need not be sequential.
IMPLICATIONS = (
    *(("pl-2", "mav"), ("mav", "pl-2l"), ("pl-2l", "pl-2-plus"), ("pl-2l", "pl-msr")),
    *(("pl-msr", "gsi"), ("pl-cs", "pl-2-plus"), ("pl-cs", "pl-2-99")),
    *(("pl-2-plus", "pl-fcv-literal"), ("pl-fcv-literal", "pl-fcv")),
    *(("pl-2-plus", "pl-3u"), ("pl-3u", "pl-3"), ("pl-3", "rss"), ("pram", "processor")),
    *(("pram", "tcc-plus"), ("processor", "rss"), ("per-key-sequential", "processor")),
    *(("per-key-causal", "per-key-sequential"), ("tcc-plus", "pcsi"), ("gsi", "pcsi")),
    *(("update-atomic-nosession", "update-atomic"), ("pram", "shared-pram")),
    ("shared-pram", "tcc-plus"),
)


@pytest.mark.parametrize("part", range(3))
def test_stronger_levels_allow_less(part: int) -> None:
    """Each pair of the literature is ordered, and some history tells it apart."""
    separated: Counter[tuple[str, str]] = Counter()
    names = [*ADYA, *DEFINITIONS]
    for history in histories(1_000 * part, 1_000 * part + 350):
        single = not rich(history)
        verdicts = definitions.satisfied(
            history, [n for n in names if single or not n.startswith(("per-key", "linear"))]
        )
        for weaker, stronger in IMPLICATIONS:
            if weaker in verdicts and stronger in verdicts:
                assert verdicts[weaker] or not verdicts[stronger], (
                    f"{stronger} allows what {weaker} does not: {show(history)}"
                )
                separated[weaker, stronger] += verdicts[weaker] and not verdicts[stronger]
    rare = {("pl-2l", "pl-msr"), ("pl-3u", "pl-3"), ("pram", "shared-pram")}  # facts above
    assert all(separated[pair] for pair in IMPLICATIONS if pair not in rare), separated


def test_equal_levels() -> None:
    """Monotonic atomic view is the read committed of Biswas and Enea without sessions; PL-2+ is
    parallel SI without sessions.
    """
    for history in histories(5_000, 5_200):
        verdicts = definitions.satisfied(history, ["mav", "pl-2-plus"])
        low = lower(history)
        assert verdicts["mav"] == read_committed.satisfied(low, sessions=False), show(history)
        assert [verdicts["pl-2-plus"]] == semantics.satisfied(low, [WEAK["psi-nosession"]])
