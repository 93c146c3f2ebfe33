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

from isolang.comparison.normal import normal
from isolang.comparison.vacuity import possible_violations
from isolang.errors import IsolangError
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


@pytest.mark.parametrize("kind", ["any", "rows", "times"])
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
    said = "of no two transactions it holds that a, of the same group, had ended before b began"
    assert one.why == ("" if possible else said)
