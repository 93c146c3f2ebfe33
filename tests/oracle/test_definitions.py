"""The levels of the literature, each from its paper: facts by hand, and how they relate."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from support.sampling import quick_first

from oracle import definitions, read_committed, replay, semantics
from oracle.adya import LEVELS as ADYA
from oracle.definitions import DEFINITIONS
from oracle.facts import FACTS
from oracle.generate import any_history, random_times, separating
from oracle.generate_rows import cas_history, row_history, set_history
from oracle.history import History, is_list_key, keys, parse, show, sort_by_session, timed
from oracle.levels import WEAK
from oracle.predicates import lower, rich


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
    one, other = parse("w(x,1) @0-1 || r(x,nil) @2-3")
    together = (replace(one, group="a"), replace(other, group="a"))
    assert not definitions.strong_partition_si(together)
    assert definitions.strong_partition_si(together, error=1)
    assert definitions.strong_partition_si((together[0], replace(other, group="b")))
    assert definitions.strong_partition_si((one, other))


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


@pytest.mark.parametrize("part", quick_first(range(3), rest="campaign"))
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
