"""Proofs that one specification implies another, beside a plain and slow matcher of words."""

from __future__ import annotations

import dataclasses
import random
from itertools import product

import pytest
from msgspec.structs import replace
from oracle import relational
from oracle.generate import any_history, well_formed
from oracle.history import is_list_key, keys, sort_by_session, timed
from support.sampling import quick_first

from isolang.comparison.lattice import library_levels
from isolang.comparison.normal import normal
from isolang.comparison.walks import prove_implication, settled_by_version_orders
from isolang.language.classify.expression import simplify, visits_statements
from isolang.language.hierarchy import IMPLIES
from isolang.language.load import load_spec
from isolang.language.meaning.core import ForKey, Lift, Opt, Plus, Rel, Seq, Star, Union

ENDS = {"so": ("", ""), "rt": ("", ""), "wr": ("W", "R"), "ww": ("W", "W"), "rw": ("R", "W")}


def ends(e, word, kinds, at):
    """Where a path of the expression may end that begins at a place of a word."""
    match e:
        case Rel(name="id"):
            return {at}
        case Rel(name=name):
            return {at + 1} if at < len(word) and word[at] == name else set()
        case Lift(arg=Rel(name=name)):
            return {at} if name in kinds[at % len(word)] else set()
        case Lift():
            return set()  # nobody here bears a name
        case Union(parts=parts):
            return set().union(*(ends(p, word, kinds, at) for p in parts))
        case Seq(parts=parts):
            now = {at}
            for part in parts:
                now = set().union(*(ends(part, word, kinds, i) for i in now))
            return now
        case Opt(arg=arg):
            return {at} | ends(arg, word, kinds, at)
        case Plus(arg=arg) | Star(arg=arg):
            now = ends(arg, word, kinds, at)
            while more := set().union(*(ends(arg, word, kinds, i) for i in now)) - now:
                now |= more
            return now | {at} if isinstance(e, Star) else now
    raise AssertionError(e)


def violates(check, word, kinds):
    """Whether a closed walk, read from its first transaction on, violates a check."""
    e = simplify(check.expr)
    return len(word) in ends(Plus(e) if check.kind == "acyclic" else e, word, kinds, 0)


def readings(word, kinds):
    """A closed walk from each of its transactions on, with or without steps that orders skip."""
    todo, seen = [(word, kinds)], set()
    while todo:
        word, kinds = one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        yield one
        todo.append((word[1:] + word[:1], kinds[1:] + kinds[:1]))
        if len(word) > 1 and word[0] == word[1] and word[0] in ("so", "rt"):
            todo.append((word[1:], kinds[:1] + kinds[2:]))


def closed_walks(letters, length):
    """Words, and of each transaction on them whether it writes and reads: least, and most."""
    for size in range(1, length + 1):
        for word in product(letters, repeat=size):
            if len(set(word)) == 1 and word[0] in ("so", "rt"):
                continue  # an order does not come back
            least = tuple(
                "".join(sorted({*ENDS[word[i]][0], *ENDS[word[i - 1]][1]})) for i in range(size)
            )
            yield word, least
            if set(least) != {"RW"}:
                yield word, ("RW",) * size


@pytest.fixture(scope="module")
def library():
    return library_levels()


@pytest.mark.slow
@pytest.mark.parametrize(
    "weaker",
    quick_first(
        ["si", "psi", "pc", "cc", "ra", "pl-2", "mr", "mw", "ryw", "wfr"], 4, rest="campaign"
    ),
)
def test_no_short_word_contradicts_a_proof(library, weaker):
    """Each closed walk of up to four steps that violates the weaker level violates the stronger."""
    checks = library[weaker].checks
    names = {"so", "rt", "wr", "ww", "rw"}
    letters = sorted(names & library[weaker].mentioned() | {"so", "wr", "ww", "rw"})
    bad = [
        (word, kinds)
        for word, kinds in closed_walks(letters, 4)
        if any(violates(c, w, k) for c in checks for w, k in readings(word, kinds))
    ]
    assert bad
    proved = [
        a
        for a in library
        if a not in (weaker, "pl-2-99", "locking-repeatable-read")  # which tell reads apart
        and prove_implication(library[a], library[weaker])
    ]
    assert proved
    for stronger in proved:
        # What a check of one key forbids, these walks, of any keys, need not be.
        forbids = [
            c
            for c in library[stronger].checks
            if c.kind in ("acyclic", "irreflexive")
            and not isinstance(simplify(c.expr), ForKey)
            and not visits_statements(c.expr)
        ]
        if not forbids:
            continue  # its walks pass operations: see below
        for word, kinds in bad:
            assert any(violates(c, w, k) for c in forbids for w, k in readings(word, kinds)), (
                stronger,
                word,
                kinds,
            )


@pytest.mark.parametrize(
    ("stronger", "weaker", "proved"),
    [
        ("per-key-sequential", "per-key-causal", True),
        ("per-key-causal", "per-key-sequential", False),
        ("ser", "per-key-sequential", True),
        ("pl-cs", "per-key-causal", False),
        ("per-key-sequential", "pl-2", False),
        ("pram", "mr", True),
        ("pram", "ra", True),
        ("ra", "pram", False),
    ],
)
def test_levels_of_one_key_and_of_many_words(stronger, weaker, proved):
    """Walks of one key are compared with each other; what is too large, by its single steps."""
    found = prove_implication(normal(load_spec(stronger)), normal(load_spec(weaker)))
    assert (found is not None) == proved


def test_what_the_library_is_known_to_imply_is_proved(library):
    """Each edge of the lattice that `isocheck levels` rests on has a proof."""
    for stronger, weaker in ((a, b) for a, below in IMPLIES.items() for b in below):
        proof = prove_implication(library[stronger], library[weaker])
        assert proof is not None, (stronger, weaker)
        assert proof.holds()


OPERATIONS = 'include "operations.iso"\n'
GOES_ON = "statement ; (po ; statement)? ; "


@pytest.mark.parametrize(
    ("stronger", "weaker", "proved"),
    [
        ("pl-msr", "pl-2l", True),
        ("pl-2l", "pl-msr", False),
        ("pl-2l", "rc-nosession", True),
        ("rc-nosession", "pl-2l", False),
        ("psi-nosession", "pl-2l", True),
        ("pl-2l", "psi-nosession", False),
        ("si-nosession", "pl-msr", True),
        ("pl-cs", "pl-2l", False),
        # A return path by reads only is one of all dependencies, and not the other way round.
        ("pl-2l", "wr", True),
        ("wr", "pl-2l", False),
        # Sessions say more; without them nothing of sessions follows.
        ("so", "pl-2l", True),
        ("pl-2l", "so", False),
        ("psi", "so", True),
    ],
)
def test_walks_over_operations(stronger, weaker, proved):
    """Each is compared as it passes operations, or whole transactions where the other does so."""
    written = {
        "wr": f"acyclic wr | ww as a\nirreflexive wr^* ; met ; {GOES_ON} missed as b",
        "so": f"acyclic so | wr | ww as a\n"
        f"irreflexive (so | wr | ww)^* ; met ; {GOES_ON} missed as b",
    }
    one, other = (
        normal(load_spec(OPERATIONS + written[name] if name in written else name))
        for name in (stronger, weaker)
    )
    found = prove_implication(one, other)
    assert (found is not None) == proved
    assert found is None or found.holds()


@pytest.mark.parametrize("level", ["ser", "si", "pc", "cc", "ra", "psi", "sser", "strong-si"])
def test_the_styles_of_a_level_are_equal_by_proof(library, level):
    """By dependencies, by commit order and by visibility, with sessions and without."""
    for end in ("", "-nosession"):
        styles = [
            f"{level}{style}{end}"
            for style in ("", "-adya", "-co", "-vis")
            if f"{level}{style}{end}" in library
        ]
        assert len(styles) > 1
        for a, b in product(styles, repeat=2):
            assert prove_implication(library[a], library[b]) is not None, (a, b)


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        # Reads of aborted values violate only the weaker one.
        ("acyclic so | ww as c", "acyclic wr as c"),
        # A negation asks for a cycle.
        ("acyclic wr | ww as c", "not acyclic wr as c"),
        # The stronger one knows keys, the weaker one does not.
        ("acyclic wr as d\nirreflexive for x: rw[x] ; ww[x] as c", "irreflexive rw ; ww as c"),
        # A test on the stronger side only.
        ("acyclic [R] ; so ; [R] | wr as c", "acyclic so | wr as c"),
        # A single step, where two in a row are not forbidden.
        ("acyclic wr | ww as d\nirreflexive wr ; rw as c", "acyclic wr ; rw as c"),
    ],
)
def test_what_does_not_follow_is_not_proved(stronger, weaker):
    one, other = (normal(load_spec(f'include "adya.iso"\n{t}\n')) for t in (stronger, weaker))
    assert prove_implication(one, other) is None


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        # Keys may be forgotten on the implied side.
        ("acyclic wr | ww | rw as c", "irreflexive for x: rw[x] ; ww[x] as c"),
        # What a wr step enters reads, and what a ww step leaves writes.
        ("acyclic [W] ; wr ; [R] | ww as c", "acyclic wr | ww as c"),
        # Two steps of an order are one.
        ("acyclic so ; wr as c", "acyclic so ; so ; wr as c"),
        # A cycle may begin anywhere.
        ("irreflexive ww ; so ; rw as c", "irreflexive so ; rw ; ww as c"),
        # The same check stands in both, whatever it is.
        ("empty wr & rw^-1 as c\nacyclic wr as d", "empty wr & rw^-1 as e"),
        # What is declared alike is chosen alike.
        (
            "exists r : relation on T within so\nrequire r in wr as c\nrequire so in r as d",
            "exists r : relation on T within so\nrequire so in r as e",
        ),
    ],
)
def test_what_follows_is_proved(stronger, weaker):
    one, other = (normal(load_spec(f'include "adya.iso"\n{t}\n')) for t in (stronger, weaker))
    proof = prove_implication(one, other)
    assert proof is not None
    assert all(proof.argument())


_SETTLED = {
    "irreflexive so ; ww as c": {"c"},
    "acyclic so | ww as c": {"c"},
    "acyclic rt | [W] ; ww as c": {"c"},
    "acyclic so | wr as b\nirreflexive (so | wr)^+ ; ww as c": {"c"},
    "acyclic wr as b\nacyclic [W] ; wr | ww as c": set(),  # b is implied: who is read from writes
    "acyclic so | wr as b\nacyclic so | wr | ww as c": set(),  # b is implied
    "acyclic so | rt | ww as c": set(),  # times may contradict sessions
    "acyclic wr | ww as c": set(),
    "acyclic wr | ww | rw as b\nirreflexive so ; ww as c": set(),
    "acyclic so as b\nacyclic wr | ww as c": set(),
    "acyclic so | ww as b\nacyclic rt | ww as c": set(),
}


@pytest.mark.parametrize("text", _SETTLED)
def test_checks_that_version_orders_always_meet(text):
    """On registers the level is the same without them; else some history shows that it is not."""
    spec = load_spec(f'spec s "s"\ninclude "adya.iso"\n{text}\n')
    found = {check.name for check in settled_by_version_orders(normal(spec))}
    assert found == _SETTLED[text]
    rest = tuple(check for check in spec.checks if check.name not in found)
    rng, looked = random.Random(text), 0
    while found and looked < 60:
        history = any_history(rng)
        lists = any(is_list_key(history, key) for key in keys(history))
        if lists or not well_formed(history) or ("rt" in text and not timed(history)):
            continue
        looked += 1
        if not rest or relational.satisfied(history, replace(spec, checks=rest)):
            assert relational.satisfied(history, spec), history


@pytest.mark.slow
def test_a_cycle_of_one_key_contains_a_short_one():
    """The lemma of docs/comparison.md, on random histories of one key."""
    rng, cyclic = random.Random(3), 0
    for _ in range(20_000):
        size = rng.randint(2, 5)
        writers = [t for t in range(1, size + 1) if rng.random() < 0.7]
        rng.shuffle(writers)
        place = {t: i for i, t in enumerate([0, *writers])}
        so = {(a, b) for a in range(1, size) for b in range(a + 1, size + 1) if a % 2 == b % 2}
        reads = {
            (t, rng.choice([s for s in place if s != t]))
            for t in range(1, size + 1)
            for _ in range(rng.randint(0, 2))
        }
        wr = {(s, t) for t, s in reads if s}
        ww = {(a, b) for a in writers for b in writers if place[a] < place[b]}
        rw = {(t, b) for t, s in reads for b in writers if place[s] < place[b] and b != t}
        if not acyclic(so | wr | ww):
            continue
        short = so | wr | ww | then(wr, so)
        assert acyclic(so | wr | ww | rw) == (not any(a == b for a, b in then(short, rw)))
        loops = closed(so | wr)
        assert any(a == b for a, b in then(loops, rw)) == any(
            a == b for a, b in then(so | wr | then(wr, so), rw)
        )
        cyclic += not acyclic(so | wr | ww | rw)
    assert cyclic > 2_000


def then(one, other):
    return {(a, d) for a, b in one for c, d in other if b == c}


def closed(relation):
    """The transitive closure."""
    while more := then(relation, relation) - relation:
        relation = relation | more
    return relation


def acyclic(relation):
    return not any(a == b for a, b in closed(relation))


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [("psi", "per-key-sequential"), ("pram", "per-key-causal"),
     ("update-atomic-nosession", "per-key-sequential-nosession"),
     ("ra-nosession", "per-key-causal-nosession"),
     ("postgresql-read-committed", "strong-pl-2"),
     ("postgresql-read-committed", "consistent-read-by-statement"),
     ("pl-3", "pl-2-99"), ("pl-2-99", "locking-repeatable-read")],
)  # fmt: skip
def test_proofs_of_single_keys_statements_and_predicates(stronger, weaker):
    """Each is found, holds, and is none the other way round."""
    one, other = (normal(load_spec(name)) for name in (stronger, weaker))
    proof = prove_implication(one, other)
    assert proof is not None
    assert proof.holds()
    assert prove_implication(other, one) is None


def test_single_keys_are_not_implied_by_less():
    """A lost update has no cycle of `(so | wr | ww)^+`, nor of a causal one."""
    for weak in ("cc", "rc", "pl-2"):
        assert (
            prove_implication(normal(load_spec(weak)), normal(load_spec("per-key-sequential")))
            is None
        )


def one_at_a_time(rng, history):
    """The history with times: each transaction of a session begins after the one before ended.

    An indeterminate transaction never ends, and no session order leads from it.
    """
    now, txns = {}, []
    for txn in history:
        begin = now.get(txn.session, 0) + rng.randint(1, 3)
        now[txn.session] = begin + rng.randint(1, 5)
        end = None if txn.status == "maybe" else now[txn.session]
        group = "ab"[txn.session % 2]
        txns.append(
            dataclasses.replace(txn, begin=begin, end=end, times=None, commit=None, group=group)
        )
    return tuple(txns)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stronger", "weaker"),
    quick_first([
        ("sser-nosession", "sser"), ("strong-si-nosession", "strong-si"), ("pl-fcv", "psi"),
        ("strong-pl-2-nosession", "strong-pl-2"), ("strong-pl-1-nosession", "strong-pl-1"),
        ("rss", "strong-pl-1"), ("rss-nosession", "ryw"), ("rss-nosession", "mw"),
        ("strong-partition-si-nosession", "strong-partition-si"),
        ("strong-si-nosession", "strong-partition-si"), ("pl-fcv", "pram"),
    ], 5, rest="campaign"),
)  # fmt: skip
def test_sessions_that_do_one_thing_at_a_time_are_of_real_time(stronger, weaker):
    """Such a proof says that it needs that, and no such history contradicts it."""
    one, other = normal(load_spec(stronger)), normal(load_spec(weaker))
    assert prove_implication(one, other) is None
    proof = prove_implication(one, other, one_at_a_time=True)
    assert proof.holds()
    assert proof.one_at_a_time
    assert any("sessions do one thing at a time" in line for line in proof.argument())
    rng, violated, looked = random.Random(stronger), 0, 0
    while looked < 150:
        history = sort_by_session(one_at_a_time(rng, any_history(rng)))
        if not well_formed(history) or len(history) > 5:
            continue
        looked += 1
        if not relational.satisfied(history, other.spec):
            violated += 1
            assert not relational.satisfied(history, one.spec), history
    assert violated > 5


def test_no_proof_rests_on_that_where_it_is_not_asked_for():
    """A history of a session that overlaps tells them apart: `levels` may not conclude it."""
    for stronger, weaker in ((a, b) for a, below in IMPLIES.items() for b in below):
        proof = prove_implication(normal(load_spec(stronger)), normal(load_spec(weaker)))
        assert not proof.one_at_a_time


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        # Real time is not of sessions.
        ("acyclic so | wr | ww as c", "acyclic rt | wr | ww as c"),
        # A step of one order alone does not forbid steps of the other one.
        ("acyclic so ; wr | ww as c", "acyclic rt ; wr | ww as c"),
        # What a group does, in real time, is less than real time.
        ("acyclic group-rt | wr as c", "acyclic rt | wr as c"),
    ],
)
def test_the_order_of_sessions_is_not_all_of_real_time(stronger, weaker):
    one, other = (normal(load_spec(f'include "adya.iso"\n{t}\n')) for t in (stronger, weaker))
    assert prove_implication(one, other, one_at_a_time=True) is None
