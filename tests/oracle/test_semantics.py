"""The oracle is right: it agrees with replay, and its levels form the hierarchy of the
literature.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from support.sampling import quick_first

from oracle import replay, semantics
from oracle.generate import any_history, random_history
from oracle.history import History, from_columns, is_list_key, parse, show, timed, to_columns
from oracle.levels import ADJACENT, IMPLICATIONS, LEVELS, SLOWER, TIMED

NAMES = list(LEVELS)

#: level -> (model, with sessions, with real time)
REPLAYED = {
    "pl-3": ("SER", False, False),
    "ser-nosession": ("SER", False, False),
    "ser": ("SER", True, False),
    "sser-nosession": ("SER", False, True),
    "sser": ("SER", True, True),
    "si-nosession": ("SI", False, False),
    "si": ("SI", True, False),
    "strong-si-nosession": ("SI", False, True),
    "strong-si": ("SI", True, True),
    "pc-nosession": ("PC", False, False),
    "pc": ("PC", True, False),
}


def reads_its_own_append(history: History) -> bool:
    """An internal list read shows its transaction's snapshot, and the final order, too."""
    for t in history:
        appended = set()
        for kind, key, _ in t.ops:
            if kind == "append":
                appended.add(key)
            elif key in appended and is_list_key(history, key):
                return True
    return False


@pytest.mark.parametrize("part", quick_first(range(4), 2, rest="campaign"))
def test_relational_and_replayed_definitions_agree(part: int) -> None:
    """SER, SI and PC are also "some order of snapshots and commits explains every read".

    PC is left out where a transaction reads its own append: replay lets another transaction
    commit between the snapshot and the commit, while the reference counts such a read as one of
    the final list.
    """
    rng = random.Random(part)
    for _ in range(250):
        history = random_history(rng, times=True)
        verdicts = dict(
            zip(NAMES, semantics.satisfied(history, list(LEVELS.values())), strict=True)
        )
        skip_pc = reads_its_own_append(history)
        for name, (model, session, real_time) in REPLAYED.items():
            if model == "PC" and skip_pc:
                continue
            replayed = replay.satisfied(history, level=model, session=session, real_time=real_time)
            assert verdicts[name] == replayed, f"{name}: {show(history)}"


@pytest.mark.parametrize("part", quick_first(range(4), rest="campaign"))
def test_stronger_levels_allow_less(part: int) -> None:
    """SSER ⇒ SER ⇒ SI ⇒ PSI ⇒ CC ⇒ RA, SI ⇒ PC ⇒ CC, and each -nosession form is the weaker one."""
    rng = random.Random(100 + part)
    specs = LEVELS | SLOWER
    pairs = [*IMPLICATIONS, ("psi", "si"), ("cc", "psi"), ("ra", "cc"), ("cc", "pc")]
    for _ in range(250):
        history = random_history(rng, times=True)
        verdict = dict(zip(specs, semantics.satisfied(history, list(specs.values())), strict=True))
        for weaker, stronger in pairs:
            assert verdict[weaker] or not verdict[stronger], (
                f"{stronger} ⇏ {weaker}: {show(history)}"
            )


@pytest.mark.parametrize(
    ("history", "level", "expected"),
    [
        ("w(x,1) -> r(x,nil)", "ser", False),
        ("w(x,1) -> r(x,nil)", "ser-nosession", True),
        ("r(x,1) -> w(y,1) || r(y,1) w(x,1)", "pl-3", True),
        ("r(x,1) -> w(y,1) || r(y,1) w(x,1)", "ser", False),
        ("w(x,1) -> w(x,2) w(y,1) || r(y,1) r(x,1)", "ser", False),
        ("append(x,1) -> append(x,2) || r(x,[2])", "ser", False),
        ("?w(x,1) @0-5 || r(x,nil) @6-7 || r(x,1) @8-9", "sser", True),
        ("w(x,1) @0-5 || r(x,nil) @6-7 || r(x,1) @8-9", "sser", False),
        ("!w(x,1) || r(x,1)", "pl-2", False),
        ("!w(x,1) || r(x,1)", "pl-1", True),
    ],
)
def test_verdicts_known_by_hand(history: str, level: str, expected: bool) -> None:
    assert semantics.satisfied(parse(history), [LEVELS[level]]) == [expected]


@pytest.mark.slow
def test_the_generators_separate_every_pair_of_levels() -> None:
    """Plain random histories would leave most of these at 0."""
    rng = random.Random(9)
    separated: Counter[tuple[str, str]] = Counter()
    for _ in range(1_500):
        history = any_history(rng)
        names = [n for n in NAMES if n not in TIMED or timed(history)]
        try:
            valid = semantics.satisfied(history, [LEVELS[n] for n in names], limit=2_000)
        except semantics.TooLargeError:
            continue
        satisfies = dict(zip(names, valid, strict=True))
        for weaker, stronger in ADJACENT:
            if satisfies.get(weaker) and satisfies.get(stronger) is False:
                separated[weaker, stronger] += 1
    assert all(separated[pair] for pair in ADJACENT), separated


def test_real_time_without_times_is_an_error() -> None:
    with pytest.raises(ValueError, match="never a pass"):
        semantics.satisfied(parse("w(x,1)"), [LEVELS["sser"]])


def test_notation_and_columns_round_trip() -> None:
    """What the pipeline gets is what the oracle judged."""
    rng = random.Random(7)
    for _ in range(200):
        history = random_history(rng, times=True)
        assert parse(show(history)) == history
        columns = from_columns(to_columns(history))
        assert [t.ops for t in columns] == [t.ops for t in history]
        assert [(t.session, t.status) for t in columns] == [(t.session, t.status) for t in history]
