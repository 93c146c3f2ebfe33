"""Which checks a history could violate, beside all choices that the oracle tries."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter

import pytest
from msgspec.structs import replace
from oracle import moments, relational
from oracle.generate import any_history, well_formed
from oracle.generate_rows import row_history
from oracle.history import as_edn_says, parse, timed
from oracle.pipeline import to_tool
from oracle.predicates import lower, rich
from oracle.simulate import timed_history
from support.sampling import quick_first

from isolang.comparison import vacuity
from isolang.comparison.normal import normal
from isolang.comparison.vacuity import possible_violations
from isolang.encodings.relational.bounded import Bounded
from isolang.encodings.relational.circuit import Circuit
from isolang.errors import IsolangError
from isolang.history import History, Transaction
from isolang.language.load import load_spec

LEVELS = ["ser", "si", "psi", "cc", "ra", "rc", "pl-1", "pl-2", "pl-2-99", "pl-cs", "pl-3u", "rss",
          "sser", "mr", "per-key-sequential", "per-key-causal", "locking-repeatable-read",
          "strong-pl-1", "innodb-serializable", "sqlite"]  # fmt: skip


@pytest.fixture(scope="module")
def levels():
    return {name: normal(load_spec(name)) for name in LEVELS}


def histories(kind, count, seed):
    rng = random.Random(f"{kind} {seed}")
    for _ in range(count):
        if kind == "rows":
            one = row_history(rng)
        elif kind == "times":
            one = timed_history(rng, rng.choice(list(moments.KINDS.values())), fault=True)
        else:
            one = any_history(rng)
        if well_formed(one):
            yield one


def without_idle_reads(history):
    """Without what no predicate read can have missed: a read that any version satisfies is none."""
    written = {
        (key, value)
        for t in history
        if t.status != "aborted"
        for kind, key, value in t.ops
        if kind == "w"
    }
    found = []
    for t in history:
        kept = [
            i
            for i, (kind, key, values) in enumerate(t.ops)
            if kind != "miss" or any((key, value) in written for value in values)
        ]
        of_each = {
            name: tuple(getattr(t, name)[i] for i in kept)
            for name in ("ops", "statements", "times")
            if getattr(t, name) is not None
        }
        found.append(dataclasses.replace(t, **of_each))
    return tuple(found)


def violated_by_some_choice(history, axiom, level):
    """Whether the oracle finds a choice for which the check is not met."""
    said = without_idle_reads(lower(as_edn_says(history))) if rich(history) else history
    broken = replace(axiom.check, negated=not axiom.check.negated)
    spec = replace(level.spec, checks=(broken,), exists=level.exists)
    return relational.satisfied(said, spec, limit=3_000)


@pytest.mark.slow
@pytest.mark.parametrize("kind", quick_first(["any", "rows", "times"], 1, rest="campaign"))
def test_a_check_that_cannot_be_violated_is_met_by_every_choice(levels, kind):
    """And some are found that can, and that cannot."""
    counts = Counter()
    for one in histories(kind, 60, 1):
        try:
            history = to_tool(one)
        except IsolangError:
            continue
        for name, level in levels.items():
            if not timed(one) and level.mentioned() & {"rt", "done", "late", "locked"}:
                continue
            try:
                found = possible_violations(history, level)
                for possible, axiom in zip(found, level.axioms, strict=True):
                    really = violated_by_some_choice(one, axiom, level)
                    assert possible.possible or not really, (name, possible, one)
                    counts[possible.possible, really] += 1
            except (IsolangError, relational.TooLargeError):
                counts["left out"] += 1
    assert counts[False, False] > 100
    assert counts[True, True] > 50


@pytest.mark.parametrize(("groups", "possible"), [(("a", "a"), True), (("a", "b"), False)])
def test_a_given_relation_has_the_pairs_that_its_definition_gives_it(groups, possible):
    """`group-rt` is of one group; where it has no pair its meaning says so."""
    first, second = groups
    history = to_tool(parse(f"w(x,1) @0-1 %{first} || r(x,nil) @2-3 %{second}"))
    level = normal(load_spec('include "adya.iso"\nacyclic group-rt ; rw as a\n'))
    (one,) = possible_violations(history, level)
    assert one.possible == possible
    said = "there are no two transactions such that a, of the same group, had ended before b began"
    assert one.why == ("" if possible else said)


@pytest.mark.slow
def test_no_literal_is_made_for_a_source(monkeypatch):
    """Of reads of few values by many, whose sources are millions: none is chosen here."""

    def never(self, literals):
        raise AssertionError(literals)

    monkeypatch.setattr(Circuit, "at_most_one", never)
    history = History.from_transactions(
        [Transaction([("r", "x", 1), ("w", "x", 1)], session=n % 5) for n in range(200)]
    )
    (one,) = possible_violations(history, normal(load_spec("ser")))
    assert one.possible


def test_what_is_beyond_the_budget_counts_as_possible(monkeypatch):
    """Work is counted: the same answer on every machine, and never that a check cannot fail."""
    history = to_tool(parse("w(x,1) || r(x,1)"))
    level = normal(load_spec("ser"))
    (one,) = possible_violations(history, level)
    assert (one.possible, one.why.endswith("its steps can close no such cycle")) == (False, True)
    counted = dict(one.pairs)
    for work, possible in ((0, True), (2, True), (vacuity.WORK, False)):
        monkeypatch.setattr(vacuity, "WORK", work)
        (one,) = possible_violations(history, level)
        assert one.possible == possible
        assert all(one.pairs[letter] >= count for letter, count in counted.items())


@pytest.mark.parametrize("relation", ["done", "rt", "late"])
def test_times_of_many_transactions_are_not_compared_each_with_each(monkeypatch, relation):
    """Two thousand that all overlap have few pairs, which would take four million steps."""

    def never(self, name, key):
        raise AssertionError(name)

    monkeypatch.setattr(Bounded, "of_history", never)
    history = History.from_transactions(
        [Transaction([("w", "x", n)], session=n, begin=0, end=n + 1) for n in range(2_000)]
    )
    level = normal(load_spec(f'include "adya.iso"\nacyclic {relation} | ww as c\n'))
    (one,) = possible_violations(history, level)
    assert one.possible
