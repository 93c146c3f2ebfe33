"""The oracle of the whole language is right: it agrees with the one for dependencies, the styles of
a level agree, and the session guarantees are those of the literature.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import permutations, product

import pytest

from isolang.language.library import list_library
from isolang.language.load import load_spec
from isolang.language.meaning.core import Spec
from oracle import read_committed, relational, semantics
from oracle.generate import litmus_table, mutated_litmus, random_history
from oracle.guarantees import GUARANTEE_LITMUS
from oracle.history import History, Txn, has_time, parse, show, timed, with_wide_times
from oracle.levels import LEVELS, SLOWER, TIMED

load = cache(load_spec)
STYLED = [entry.name for entry in list_library() if not entry.alias_of]
GUARANTEES = ("ryw", "mr", "mw", "wfr")


def level_of(name: str) -> str:
    """The level of a file, whatever its style: `si-co-nosession` is `si-nosession`."""
    for style in ("-adya", "-co", "-vis"):
        name = name.replace(style, "")
    return name


def as_filed(operations: str) -> History:
    history = parse(operations)
    return history if has_time(history) else with_wide_times(history)


def rows(size: int) -> list[dict[str, str]]:
    return [row for row in litmus_table() if len(parse(row["operations"])) <= size]


@pytest.mark.parametrize("row", rows(3), ids=lambda row: row["history"])
def test_every_style_is_what_the_litmus_table_says(row: dict[str, str]) -> None:
    """Whatever a level's style, its verdict is its level's; the other levels' styles agree too."""
    history = as_filed(row["operations"])
    found = {name: relational.satisfied(history, load(name)) for name in STYLED}
    for name, got in found.items():
        level = level_of(name)
        if level in row:
            assert got == (row[level] == "valid"), name
        assert got == found[level], name


def test_it_agrees_with_the_oracle_for_dependencies() -> None:
    rng = random.Random(1)
    specs = {name: load(name) for name in ("pl-1", "pl-2", "pc", "psi", "sser", "ra-adya")}
    checks = LEVELS | SLOWER | {"ra-adya": SLOWER["ra"]}
    for _ in range(60):
        history = random_history(rng, times=True)
        names = [name for name in specs if name not in TIMED or timed(history)]
        expected = semantics.satisfied(history, [checks[name] for name in names])
        got = [relational.satisfied(history, specs[name]) for name in names]
        assert got == expected, show(history)


def test_events_mean_what_read_committed_needs() -> None:
    """RC looks inside transactions."""
    rng = random.Random(2)
    spec = load("rc")
    for _ in range(60):
        history = mutated_litmus(rng) if rng.random() < 0.7 else random_history(rng)
        if len(history) <= 4:
            expected = read_committed.satisfied(history)
            assert relational.satisfied(history, spec) == expected, show(history)


@pytest.mark.parametrize("level", ["ra", "cc", "pc", "psi", "si", "ser", "strong-si", "sser"])
def test_styles_agree_on_random_histories(level: str) -> None:
    rng = random.Random(level)
    names = [name for name in STYLED if level_of(name) == level and name != level]
    assert names
    for _ in range(25):
        history = random_history(rng, times=True)
        if len(history) > 3 or (level in TIMED and not timed(history)):
            continue
        expected = relational.satisfied(history, load(level))
        for name in names:
            got = relational.satisfied(history, load(name))
            assert got == expected, f"{name}: {show(history)}"


# What the reference says of single constructs

SMALL = parse("w(x,1) -> r(y,1) || w(y,1) r(x,1)")
CONSTRUCTS = [
    ("empty id \\ id as c", True),
    ("not empty T * T as c", True),
    ("empty domain(wr) \\ W as c", True),
    ("empty range(wr) \\ R as c", True),
    ("require [T] in id as c", True),
    ("empty (tx ; tx^-1) & po as c", False),
    ("require po in tx ; tx^-1 as c", True),
    ("require for x: (tx^-1 ; rf[x] ; tx) in wr as c", True),
    ("require rf in cand as c", True),
    ("require for x: (W[x] * R[x]) in so^* | wr | (T * T) as c", True),
    ("require for x: (ww[x] ; ww[x]) in ww as c", True),
    ("require for x: for y: (ww[x] ; ww[y]) in ww as c", True),
    ("exists r : relation on T within so\nrequire r in so as c\nrequire so in r as d", True),
    ("exists r : relation on T within so\nrequire so^-1 in r as d", False),
    ("exists r : order on T containing wr\nrequire r in so as c", False),
    ("exists r[x] : choice of cand[x]\nrequire r in rf as c\nrequire rf in r as d", True),
    ("let f(a, b) = a | b\nacyclic f(so, wr) as c", True),
    ("let k[z] = [W[z]] ; wr[z]\nrequire k in wr as c\nrequire wr in k as d", True),
    ("irreflexive so? as c", False),
    ("flag irreflexive so? as c", True),
]


@pytest.mark.parametrize(("text", "expected"), CONSTRUCTS)
def test_constructs(text: str, expected: bool) -> None:
    spec = load(f'include "adya.iso"\n{text}\n')
    assert relational.satisfied(SMALL, spec) == expected


def test_flags() -> None:
    """A flag holds iff no assignment that meets the checks also meets it."""
    history = parse("w(x,1) || w(x,2)")
    spec = load(
        'include "adya.iso"\nacyclic ww as c\nflag empty ww as never\nflag acyclic ww as always\n'
        "flag not acyclic ww as cyclic\n"
    )
    assert relational.flags(history, spec) == {"never": True, "always": False, "cyclic": True}


def test_a_maybe_transaction_that_nobody_reads_may_be_in_or_out() -> None:
    history = parse("w(x,1) || ?w(x,2)")
    both = load('include "adya.iso"\nnot empty ww \\ init as c\n')
    assert relational.satisfied(history, both)
    assert not relational.satisfied(parse("w(x,1)"), both)


def test_real_time_needs_times() -> None:
    with pytest.raises(ValueError, match="never a pass"):
        relational.satisfied(parse("w(x,1)"), load("sser-co"))


def test_too_many_assignments() -> None:
    spec = load('include "adya.iso"\nexists r : relation on T\nempty r & (r^-1 \\ r) as c')
    with pytest.raises(relational.TooLargeError):
        relational.satisfied(parse("w(x,1) || w(x,2) || w(x,3) || w(y,1)"), spec)


# Session guarantees


@pytest.mark.parametrize(("operations", "forbid"), GUARANTEE_LITMUS)
def test_what_session_guarantees_forbid(operations: str, forbid: str) -> None:
    history = parse(operations)
    got = {name for name in GUARANTEES if not relational.satisfied(history, load(name))}
    assert got == set(forbid.split())


def _together(guarantees: Sequence[str]) -> Spec:
    """Several of them, of one visibility and one arbitration."""
    return load("".join(f'include "{name}.iso"\n' for name in guarantees))


def test_the_four_session_guarantees_together_are_causal_consistency() -> None:
    """Brzeziński, Sobaniec, Wawrzyniak, PDP 2004; and each alone is implied by it."""
    rng = random.Random(4)
    causal, together = load("cc"), _together(GUARANTEES)
    seen = set()
    for _ in range(120):
        history = mutated_litmus(rng) if rng.random() < 0.5 else random_history(rng)
        if len(history) > 3:
            continue
        expected = relational.satisfied(history, causal)
        seen.add(expected)
        assert relational.satisfied(history, together) == expected, show(history)
    assert seen == {True, False}


def _single_operations(rng: random.Random) -> History:
    """Two sessions of transactions with one operation each, every value written once."""
    written: dict[str, list[int | None]] = {"x": [None], "y": [None]}
    shape = [(rng.randint(0, 1), rng.choice("wr"), rng.choice("xxy")) for _ in range(4)]
    for number, (_, kind, key) in enumerate(shape):
        if kind == "w":
            written[key].append(number)
    return tuple(
        Txn(session, ((kind, key, number if kind == "w" else rng.choice(written[key])),))
        for number, (session, kind, key) in sorted(enumerate(shape), key=lambda s: s[1][0])
    )


def _servers(history: History, guarantees: Sequence[str]) -> bool:
    """The definition of Terry et al. 1994, by trying every order of the writes and every database
    that a read may have met.

    A read of x returns the last write of x in its database; its relevant write is that one.
    """
    writes = [i for i, t in enumerate(history) if t.ops[0][0] == "w"]
    reads = [i for i, t in enumerate(history) if t.ops[0][0] == "r"]
    source = {
        i: next((j for j in writes if history[j].ops[0][1:] == history[i].ops[0][1:]), None)
        for i in reads
    }

    def before(first: list[int], second: list[int]) -> Iterator[tuple[int, int]]:
        for i, j in product(first, second):
            if i < j and history[i].session == history[j].session:
                yield i, j

    needs: dict[int, set[int]] = {i: set() for i in reads}  # what a read's database must have
    pairs: set[tuple[int, int]] = set()  # who has the second write has the first, ranked below
    if "ryw" in guarantees:
        for w, r in before(writes, reads):
            needs[r].add(w)
    if "mr" in guarantees:
        for r1, r2 in before(reads, reads):
            needs[r2] |= {source[r1]} - {None}
    if "mw" in guarantees:
        pairs |= set(before(writes, writes))
    if "wfr" in guarantees:
        pairs |= {(source[r], w) for r, w in before(reads, writes) if source[r] is not None}
    for order in permutations(writes):
        if any(order.index(a) >= order.index(b) for a, b in pairs):
            continue

        def explained(r: int, order: tuple[int, ...] = order) -> bool:
            for chosen in product((False, True), repeat=len(order)):
                database = [w for w, there in zip(order, chosen, strict=True) if there]
                same_key = [w for w in database if history[w].ops[0][1] == history[r].ops[0][1]]
                if (
                    needs[r] <= set(database)
                    and (same_key[-1] if same_key else None) == source[r]
                    and all(a in database for a, b in pairs if b in database)
                ):
                    return True
            return False

        if all(map(explained, reads)):
            return True
    return False


@pytest.mark.parametrize(
    "guarantees", ["ryw", "mr", "mw", "wfr", "ryw mw", "mr mw", "mr wfr", "ryw mr mw wfr"]
)
def test_session_guarantees_are_those_of_terry_et_al(guarantees: str) -> None:
    """Together too; monotonic writes alone forbid nothing, where a read sees one key only."""
    chosen = guarantees.split()
    rng = random.Random(guarantees)
    spec = _together(chosen)
    verdicts = []
    for _ in range(50):
        history = _single_operations(rng)
        expected = _servers(history, chosen)
        verdicts.append(expected)
        assert relational.satisfied(history, spec) == expected, show(history)
    assert set(verdicts) == ({True} if chosen == ["mw"] else {True, False})
