"""Labels and levels of transactions, and keys by name: judged as the definitions say."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import msgspec
import pytest
from oracle import semantics, versions
from oracle.expressions import named_text, random_named_checks
from oracle.history import parse
from oracle.judged import judged_by_names
from oracle.levels import acyclic, irreflexive, rw, seq, so, union, wr, ww
from oracle.pipeline import as_judged, initial_of, to_tool, tool_verdict_of
from oracle.predicates import lower

from isolang import History, Transaction, check, load_spec
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.native import check_natively
from isolang.certify.proofs import check_proof
from isolang.comparison.compare import compare
from isolang.language.classify.event_graph import NotAnEventGraph
from isolang.language.classify.route import native_plan, route
from isolang.language.meaning import core
from isolang.language.meaning.mentions import children, rebuild
from isolang.language.syntax.ast import KeyClass

SKEW = "r(x,nil) r(y,nil) w(x,1) %s || r(x,nil) r(y,nil) w(y,1) %s"


def one_of(word: str, *names: str) -> core.Core:
    """``[word "a" | word "b"]``, by hand."""
    return core.Lift(core.Union(tuple(core.Named(word, name) for name in names)))


#: The library's levels for several levels, written down a second time.
MIXED = {
    "mixed": (
        acyclic(
            "mixing",
            union(
                ww,
                seq(wr, one_of("level", "pl-2", "rc", "pl-2-99", "pl-3", "ser")),
                seq(one_of("level", "pl-2-99"), core.Rel("irw")),
                seq(one_of("level", "pl-3", "ser"), rw),
            ),
        ),
    ),
    "postgresql-mixed": (
        acyclic(
            "snapshots",
            union(so, wr, ww, seq(union(so, wr, ww), one_of("level", "si", "ser"), rw)),
        ),
    ),
    "mixed-levels": (
        acyclic(
            "order",
            union(
                so,
                wr,
                ww,
                seq(one_of("level", "ser"), rw),
                seq(union(so, wr, ww), one_of("level", "si"), rw),
                seq(union(so, wr), one_of("level", "pc"), rw),
            ),
        ),
        irreflexive("cc", seq(core.Plus(union(so, wr)), one_of("level", "cc"), rw)),
        irreflexive("ra", seq(union(so, wr), one_of("level", "ra"), rw)),
    ),
}


def test_random_checks_with_names() -> None:
    """On any mixture of features the engine says what the oracle says, certified."""
    rng, seen = random.Random(5), Counter[str]()
    for _ in range(30):
        checks = random_named_checks(rng)
        try:
            plan = native_plan(load_spec(named_text(checks)))
        except NotAnEventGraph:
            continue
        for crossed, expected in judged_by_names(rng, checks, 4):
            given = to_tool(
                crossed.history, initial_of(crossed.history, crossed.initial), crossed.error
            )
            got = tool_verdict_of(given, plan)
            seen[expected] += 1
            assert got == expected or got.startswith("unknown: unsupported"), named_text(checks)
    assert min(seen["valid"], seen["invalid"]) > 10


def test_relations_and_other_encodings_agree() -> None:
    """What knows no automaton, and an encoding without the engine's pruning, say the same."""
    pytest.importorskip("pysat")
    rng, seen = random.Random(6), Counter[str]()
    while seen.total() < 12:
        checks = random_named_checks(rng)
        spec = load_spec(named_text(checks))
        try:
            plan = native_plan(spec)
        except NotAnEventGraph:
            continue
        for crossed, expected in judged_by_names(rng, checks, 2):
            if crossed.error or crossed.initial is not None:
                continue
            given = to_tool(crossed.history)
            by_relations = check(given, plan, encoding="relational", solver="sat", certify=False)
            if by_relations.outcome == "unknown":
                continue
            assert by_relations.outcome == expected, named_text(checks)
            if plan.kind == "event graph":
                other = check(given, plan, encoding="monosat", prune="none", certify=False)
                assert other.outcome == expected, named_text(checks)
            seen[expected] += 1
    assert len(seen) == 2


@pytest.mark.parametrize("name", MIXED)
def test_levels_of_the_library(name: str) -> None:
    """The two levels for transactions of several levels mean what their papers say."""
    rng, seen = random.Random(7), Counter[str]()
    plan = route(load_spec(name))
    known = ("ser", "si", "pc", "cc", "ra", "pl-1", "pl-2", "pl-2-99", "rc")
    for crossed, _ in judged_by_names(rng, MIXED[name], 50):
        levels = [rng.choice(known) for _ in crossed.history]
        history = tuple(
            replace(t, level=level) for t, level in zip(crossed.history, levels, strict=True)
        )
        said, before = as_judged(history, crossed.initial, crossed.error)
        resolved = versions.resolved(said, before)  # None: it contradicts itself
        valid = resolved is not None and all(
            semantics.satisfied(lower(resolved, before), [MIXED[name]], initial=before)
        )
        given = to_tool(history, initial_of(history, crossed.initial), crossed.error)
        got = tool_verdict_of(given, plan)
        expected = "valid" if valid else "invalid"
        seen[expected] += 1
        assert got == expected or got.startswith("unknown: unsupported")
    assert min(seen["valid"], seen["invalid"]) > 5


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [("ser", "ser", "invalid"), ("ser", "rc", "valid"), ("pl-2-99", "ser", "invalid")],
)
def test_mixing(first: str, second: str, verdict: str) -> None:
    """A write skew is a violation iff both transactions were promised to be without."""
    history = to_tool(parse(SKEW % ("^a", "^b")))
    txns = [
        Transaction(t.ops, session=t.session, level=level)
        for t, level in zip(history.transactions(), (first, second), strict=True)
    ]
    assert check(History.from_transactions(txns), "mixed").outcome == verdict


def test_all_but_one_table() -> None:
    """Serializable, except for some keys: a write skew over them is none."""
    text = 'include "adya.iso"\nacyclic so | (for x not in "%s": wr[x] | ww[x] | rw[x]) as c\n'
    history = to_tool(parse(SKEW % ("", "")))
    assert check(history, load_spec(text % "y*")).outcome == "valid"
    assert check(history, load_spec(text % "z*")).outcome == "invalid"


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [("~a", "~a", "valid"), ("~a", "", "valid"), ("~b", "", "invalid"), ("~b", "~b", "invalid")],
)
def test_all_but_who_bears_a_label(first: str, second: str, outcome: str) -> None:
    """A write skew is a violation iff both are among those that do not bear the label."""
    text = 'include "adya.iso"\nacyclic so | wr | ww | ([T \\ label "a"] ; rw) as c\n'
    verdict = check(to_tool(parse(SKEW % (first, second))), load_spec(text))
    assert (verdict.outcome, verdict.certified) == (outcome, True)


def test_names_without_effect_are_said() -> None:
    """A verdict says which names select nothing; without any level it is none."""
    history = to_tool(parse(SKEW % ("~audit", "")))
    said = check(
        history, load_spec('include "adya.iso"\nacyclic ww["q/*"] | [label "audits"] ; rw as c\n')
    )
    assert said.outcome == "valid"
    assert 'no transaction has the label "audits", which the spec names' in said.notes
    assert 'no key matches "q/*", which the spec names' in said.notes
    unknown = check(history, "mixed")
    assert unknown.outcome == "unknown"
    assert "no transaction of the history names one" in unknown.reason


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("ser", set()),
        ("serial", {"level", "requested"}),
    ],
)
def test_levels_that_nobody_asked_for_are_news_only_if_none_was(asked: str, said: set[str]) -> None:
    """Of the levels that a specification names, those not in use are not told one by one."""
    history = History.from_transactions([Transaction([("w", "x", 1)], session=0, level=asked)])
    notes = [note for note in check(history, "mixed").notes if "the spec" in note]
    assert len(notes) == len(said)
    assert all(any(word in note for note in notes) for word in said)


@pytest.mark.slow
def test_proofs_of_other_names_are_refused() -> None:
    """A proof for some names proves nothing for others, whatever both checkers are told."""
    rng, refused = random.Random(4), Counter[str]()
    while min(refused["valid"], refused["invalid"]) < 1:
        checks = random_named_checks(rng)
        others = tuple(msgspec.structs.replace(c, expr=renamed(rng, c.expr)) for c in checks)
        spec, other = load_spec(named_text(checks)), load_spec(named_text(others))
        try:
            plan, _ = native_plan(spec), native_plan(other)
        except NotAnEventGraph:
            continue
        for crossed, expected in judged_by_names(rng, checks, 4):
            if crossed.error or crossed.initial is not None:
                continue
            given = to_tool(crossed.history)
            verdict, second = check(given, plan), check(given, other)
            if "unknown" in (verdict.outcome, second.outcome) or verdict.outcome == second.outcome:
                continue
            assert verdict.outcome == expected
            proof = verdict.witness if expected == "valid" else verdict.refutation
            for checker in (check_natively, check_proof):
                checker(given, spec, proof)
                with pytest.raises((CertificateRejected, NotCertifiedError)):
                    checker(given, other, proof)
            refused[expected] += 1


def test_a_key_that_no_edge_is_about_may_be_asked_for() -> None:
    """The reader of y reads x, too, which no edge of the cycle is about."""
    spec = load_spec('include "adya.iso"\nirreflexive rt ; [R["x"]] ; rw as c\n')
    for key, outcome in (("x", "invalid"), ("z", "valid")):
        stale = Transaction([("r", "y", None), ("r", key, None)], session=1, begin=2, end=3)
        first = Transaction([("w", "y", 1)], session=0, begin=0, end=1)
        history = History.from_transactions([first, stale])
        verdict = check(history, spec)
        assert (verdict.outcome, verdict.certified) == (outcome, True)
        if outcome == "invalid":
            check_proof(history, spec, verdict.refutation)


def renamed(rng: random.Random, e: core.Core) -> core.Core:
    """The expression with other names."""
    match e:
        case core.Named():
            return core.Named(e.word, rng.choice(("a", "b", "ser", "none", "*")))
        case core.ForKey() if e.within is not None:
            within = KeyClass((rng.choice("xyz*"),), rng.random() < 0.5)
            return core.ForKey(e.key, renamed(rng, e.body), within)
        case _:
            return rebuild(e, tuple(renamed(rng, part) for part in children(e)))


def test_comparison_knows_names() -> None:
    """Labels, levels and classes of keys are free in small histories, and names are found."""
    weaker = load_spec('include "adya.iso"\nacyclic so | wr | ww | [label "a"] ; rw as c\n')
    report = compare(load_spec("ser"), weaker)
    assert report.relation == "stronger"
    other = load_spec('include "adya.iso"\nacyclic so | wr["t/*"] | ww["t/*"] | rw["t/*"] as c\n')
    assert compare(load_spec("ser"), other).relation == "stronger"


def test_an_order_of_some_keys_is_none_of_all():
    """That `ww["x"]` goes with the sessions says nothing of the versions of z, which need not."""
    spec = load_spec('include "adya.iso"\nacyclic ww["x"] | so as c\nacyclic so | rw as d\n')
    history = History.from_transactions(
        [
            Transaction(session="1", ops=[("w", "z", 1), ("r", "x", None), ("r", "z", 1)]),
            Transaction(session="1", ops=[("w", "z", 2), ("w", "z", 3), ("r", "x", None)]),
            Transaction(session="1", ops=[("r", "z", 1)]),
        ]
    )
    assert check(history, spec).outcome == "valid"
