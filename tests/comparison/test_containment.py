"""Containment of relations by their form, beside the values of both in random worlds."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace
from oracle import relational
from support.sampling import quick_first

from isolang.comparison.containment import contains, follows_from
from isolang.language.meaning.core import (
    Check,
    Diff,
    Domain,
    ForKey,
    Inter,
    Inverse,
    Lift,
    Opt,
    Plus,
    Product,
    Range,
    Rel,
    Seq,
    Star,
    Union,
)

KEYED, PLAIN = ("ww", "rw"), ("so", "rt")


def random_relation(rng, depth, keys=()):
    """An expression with every operator of the language; ``keys`` are the variables in scope."""

    def inner():
        return random_relation(rng, depth - 1, keys)

    if not depth or rng.random() < 0.15:
        name = rng.choice((*KEYED, *PLAIN, "id"))
        return Rel(name, rng.choice(keys) if keys and name in KEYED else None)
    kind = rng.choice((Union, Seq, Seq, Inter, Diff, Opt, Plus, Star, Inverse, Lift, ForKey))
    if kind is ForKey:
        key = rng.choice("xy")
        return ForKey(key, random_relation(rng, depth - 1, (*keys, key)))
    if kind is Lift:
        return Lift(random_set(rng, depth - 1, keys))
    if kind is Diff:
        return Diff(inner(), inner())
    if kind in (Union, Seq, Inter):
        return kind(tuple(inner() for _ in range(rng.choice((2, 2, 3)))))
    return kind(inner())


def random_set(rng, depth, keys):
    if not depth or rng.random() < 0.5:
        return Rel(rng.choice("WR"), rng.choice(keys) if keys and rng.random() < 0.5 else None)
    kind = rng.choice((Diff, Domain, Range))
    if kind is Diff:
        return Diff(random_set(rng, depth - 1, keys), random_set(rng, depth - 1, keys))
    return kind(random_relation(rng, depth - 1, keys))


def grown(rng, e):
    """An expression that is often larger: with alternatives added, or with a closure."""
    rebuilt = e
    if isinstance(e, Union | Seq | Inter):
        rebuilt = replace(e, parts=tuple(grown(rng, part) for part in e.parts))
    elif isinstance(e, Diff):
        rebuilt = Diff(grown(rng, e.left), e.right if rng.random() < 0.8 else grown(rng, e.right))
    elif isinstance(e, ForKey):
        rebuilt = e.of(grown(rng, e.body))
    elif isinstance(e, Plus | Star | Opt | Inverse | Lift | Domain | Range):
        rebuilt = type(e)(grown(rng, e.arg))
    kind = rng.random()
    if kind > 0.4 or isinstance(e, Domain | Range) or getattr(e, "name", "") in ("W", "R"):
        return rebuilt
    if isinstance(e, Diff) and isinstance(e.left, Rel | Domain | Range | Diff):
        return rebuilt  # it may be a set
    if kind < 0.2:
        return Union((rebuilt, random_relation(rng, 1)))
    return rng.choice((Plus, Opt, Star))(rebuilt)


def random_world(rng, size=3, n_keys=2):
    """Any values for all names, since containment must hold whatever the names mean."""

    def bits(n):
        return sum(1 << i for i in range(n) if rng.random() < 0.3)

    return relational.World(
        size=size,
        n_keys=n_keys,
        plain={name: bits(size * size) for name in PLAIN},
        keyed={
            **{name: [bits(size * size) for _ in range(n_keys)] for name in KEYED},
            **{name: [bits(size) for _ in range(n_keys)] for name in "WR"},
        },
    )


@pytest.mark.parametrize("seed", quick_first(range(20), 5, rest="campaign"))
def test_what_is_contained_has_no_pair_of_its_own(seed):
    """In no world; and at least a share of the pairs made to be contained is recognised."""
    rng = random.Random(seed)
    proved = 0
    for _ in range(300):
        small = random_relation(rng, 2)
        large = grown(rng, small) if rng.random() < 0.8 else random_relation(rng, 2)
        if not contains(large, small):
            continue
        proved += large != small
        for _ in range(20):
            world = random_world(rng)
            more = relational.evaluate(small, world) & ~relational.evaluate(large, world)
            assert not more, (large, small)
    assert proved > 30


@pytest.mark.parametrize("seed", quick_first(range(20), 10, rest="campaign"))
def test_a_check_that_follows_is_met_where_the_other_is(seed):
    """All kinds of checks, negated or not."""
    rng = random.Random(1000 + seed)
    kinds = ("acyclic", "irreflexive", "empty", "require")
    proved = 0
    for _ in range(400):
        small = random_relation(rng, 1)
        large = grown(rng, small)
        bound = random_relation(rng, 1)
        checks = [
            Check(
                name=name, kind=rng.choice(kinds), expr=e, negated=rng.random() < 0.3,
                bound=rng.choice((bound, grown(rng, bound))),
            )
            for name, e in rng.sample((("a", small), ("b", large)), 2)
        ]  # fmt: skip
        if not follows_from(*checks):
            continue
        proved += 1
        weaker, stronger = checks
        for _ in range(20):
            world = random_world(rng)
            assert relational.holds(weaker, world) or not relational.holds(stronger, world), checks
    assert proved > 20


@pytest.mark.parametrize(
    ("large", "small"),
    [
        (ForKey("y", Opt(Rel("rw", "y"))), ForKey("x", Seq((Lift(Rel("W", "x")), Rel("rw", "x"))))),
        (Rel("ww"), ForKey("x", Rel("ww", "x"))),
        (Plus(Union((Rel("so"), Rel("wr")))), Seq((Rel("wr"), Rel("so"), Rel("wr")))),
        (Star(Rel("so")), Plus(Seq((Rel("so"), Lift(Rel("W")))))),
        (Rel("rt"), Seq((Rel("rt"), Lift(Diff(Rel("T"), Rel("W")))))),
        (Diff(Rel("rt"), Rel("so")), Diff(Rel("rt"), Union((Rel("so"), Rel("wr"))))),
        (Product(Rel("W"), Rel("T")), Product(Diff(Rel("W"), Rel("R")), Rel("T"))),
    ],
)  # fmt: skip
def test_forms_that_are_recognised(large, small):
    """And not the other way round."""
    assert contains(large, small)
    assert not contains(small, large)


def test_a_key_is_not_captured():
    """``for y: for x: ww[x] ; rw[y]`` speaks of two keys, ``for x: ww[x] ; rw[x]`` of one."""
    two = ForKey("y", ForKey("x", Seq((Rel("ww", "x"), Rel("rw", "y")))))
    one = ForKey("x", ForKey("y", Seq((Rel("ww", "x"), Rel("rw", "x")))))
    assert not contains(one, two)
