"""Expressions as the native checker reads them, and both checkers against sets of pairs."""

import random
import re

import pytest
from support.certify import history, init, rt, rw, so, spec, txn, verdicts_of_both, worlds, wr, ww
from support.certify import witness_arrays as arrays_of

from isolang._native import CheckKind, verify_witness
from isolang.certify.errors import NotCertifiedError
from isolang.certify.prefix import accepts_empty_word, prefix_text
from isolang.certify.proofs import Witness
from isolang.certify.translate import judged_checks
from isolang.language.meaning.core import (
    Check,
    ForKey,
    Inter,
    Inverse,
    Lift,
    Opt,
    Plus,
    Rel,
    Seq,
    Spec,
    Star,
    Union,
)

LETTERS = {"so": "s", "wr": "r", "ww": "w", "rw": "a", "rt": "t", "init": "i"}


def pattern(e):
    if isinstance(e, Rel):
        return LETTERS[e.name]
    if isinstance(e, Union):
        return f"(?:{'|'.join(pattern(p) for p in e.parts)})"
    if isinstance(e, Seq):
        return f"(?:{''.join(pattern(p) for p in e.parts)})"
    return f"(?:{pattern(e.arg)}){ {Plus: '+', Star: '*', Opt: '?'}[type(e)] }"


def random_expression(rng, depth=3):
    kind = rng.randrange(6) if depth else 0
    if kind <= 1:
        return rng.choice((so, wr, ww, rw, rw, ww))
    if kind == 5:
        return rng.choice((Plus, Star, Opt))(random_expression(rng, depth - 1))
    parts = tuple(random_expression(rng, depth - 1) for _ in range(rng.randint(2, 3)))
    return (Seq if kind == 4 else Union)(parts)


def test_nullable_is_the_empty_word():
    rng = random.Random(1)
    answers = {True: 0, False: 0}
    for _ in range(200):
        e = random_expression(rng)
        answers[accepts_empty_word(e)] += 1
        assert accepts_empty_word(e) == bool(re.fullmatch(pattern(e), "")), e
    assert min(answers.values()) > 20


SMALL = [
    history(txn("w(x,1)", 1), txn("w(x,2) w(y,1)", 1), txn("r(x,1) r(y,1) w(x,3)", 2)),
    history(txn("r(x,nil) w(x,1)", 1), txn("r(x,nil) w(x,2)", 2), txn("w(x,3) r(y,nil)", 1)),
    history(txn("r(x,1) w(y,1)", 1), txn("r(y,1) w(x,1)", 2), txn("r(y,1) r(x,nil)", 2)),
    history(txn("r(x,nil) w(x,1)", 1), txn("w(x,2)", 2), txn("w(x,4)", 3), txn("r(x,2)", 2)),
    history(txn("w(x,1)", 1, "maybe"), txn("r(x,1) w(y,2)", 1), txn("r(y,nil) w(x,2)", 2, "maybe")),
    history(
        txn("w(x,1)", 1, begin=0, end=2),
        txn("r(x,nil) w(y,1)", 2, begin=3, end=4),
        txn("r(y,nil)", 3, begin=4, end=6),
        txn("w(x,2)", 1, "maybe", begin=5),
    ),
]


@pytest.mark.parametrize("kind", ["acyclic", "irreflexive"])
def test_any_expression_is_judged_as_its_set_of_pairs(kind):
    """EXACT: no condition on the expression, immediate pairs or not, loops off the start or not."""
    rng = random.Random(f"{kind} expressions")
    counts = {"accepted": 0, "rejected": 0}
    for i in range(240):
        e = random_expression(rng)
        s = spec((kind, e))
        h = SMALL[i % len(SMALL)]
        everything = list(worlds(h))
        for world in rng.sample(everything, min(3, len(everything))):
            expected = "rejected" if world.broken_check(s) else "accepted"
            assert verdicts_of_both(h, s, Witness.of(*arrays_of(world))) == (expected, expected), (
                e,
                world.orders,
            )
            counts[expected] += 1
    assert min(counts.values()) > 100, counts


@pytest.mark.parametrize(
    "e", [rt, Seq((rt, Opt(rw))), Seq((rt, wr)), Seq((ww, rt)), Plus(Seq((rw, rt)))]
)
def test_real_time_is_judged_as_its_set_of_pairs(e):
    s = spec(("acyclic", e))
    for world in worlds(SMALL[5]):
        expected = "rejected" if world.broken_check(s) else "accepted"
        assert verdicts_of_both(SMALL[5], s, Witness.of(*arrays_of(world))) == (expected, expected)


def test_rw_leaves_out_the_reader_itself():
    """Without the exception ``irreflexive rw`` would break on a lost update's reader in between."""
    h = history(txn("r(x,nil) w(x,1)", 1), txn("w(x,2)", 2))
    s = spec(("irreflexive", rw))
    assert verdicts_of_both(h, s, Witness.of([2, -1, -1], [0, 2], [1, 0])) == (
        "accepted",
        "accepted",
    )


def test_an_inner_loop_is_no_cycle_of_the_expression():
    """A ``ww`` loop on an accepting state of ``wr ; ww^*`` completes no word."""
    h = history(txn("w(x,1) w(y,2)", 1), txn("w(x,2) w(y,1)", 2))
    s = spec(("acyclic", Seq((wr, Star(ww)))))
    crossing = Witness.of([-1] * 4, [0, 2, 4], [0, 1, 1, 0])
    assert verdicts_of_both(h, s, crossing) == ("accepted", "accepted")
    assert verdicts_of_both(h, spec(("acyclic", ww)), crossing) == ("rejected", "rejected")


def test_identity_in_an_expression_holds_of_nothing():
    h = history(txn("w(x,1)", 1))
    for e in (Opt(ww), Star(so), Union((Rel("id"), wr)), Union((Lift(Rel("T")), wr))):
        witness = Witness.of([-1], [0, 1], [0])
        assert verdicts_of_both(h, spec(("acyclic", e)), witness) == ("rejected", "rejected")


@pytest.mark.parametrize(
    ("e", "said"),
    [
        (Rel("co"), "'co'"),
        (Rel("ww", "x"), "ww[x]"),
        (Inter((ww, so)), "Inter"),
        (Seq((ww, Inverse(so))), "Inverse"),
        (ForKey("x", Seq((Rel("ww", "x"), Rel("rw", "x")))), "for x"),
    ],
)
def test_what_is_no_event_graph_is_not_certified(e, said):
    with pytest.raises(NotCertifiedError, match=re.escape(said)):
        prefix_text(e)


def test_a_union_over_keys_is_the_relation_without_its_key():
    keyed = ForKey("x", Union((Rel("ww", "x"), Rel("rw", "x"), so)))
    assert prefix_text(keyed) == "(| ww rw so)"
    assert prefix_text(Seq((Plus(Union((so, wr))), Opt(rw)))) == "(; (+ (| so wr)) (? rw))"
    assert prefix_text(Star(init)) == "(* init)"


def test_only_plain_checks_are_judged():
    def one(**options):
        return Spec(name="", title="", source="", checks=(Check(name="c", expr=ww, **options),))

    assert judged_checks(one(kind="acyclic", flag=True)) == ()
    for check in ({"kind": "empty"}, {"kind": "require"}, {"kind": "acyclic", "negated": True}):
        with pytest.raises(NotCertifiedError, match="check c"):
            judged_checks(one(**check))


@pytest.mark.parametrize(
    "text", ["", "(", "(|", "(| so", "so wr", "(? so wr)", "(& so wr)", "xx", "())", "(? )"]
)
def test_malformed_text_is_not_certified(text):
    h = history(txn("w(x,1)", 1))
    w = Witness.of([-1], [0, 1], [0])
    reason = verify_witness(
        h.columns, [("c", CheckKind.acyclic, text)], w.source, w.order_start, w.order_txn
    )
    assert reason.startswith("not certified"), reason


def test_deep_text_is_not_certified():
    h = history(txn("w(x,1)", 1))
    w = Witness.of([-1], [0, 1], [0])
    checks = [("c", CheckKind.acyclic, "(? " * 5000 + "so" + ")" * 5000)]
    reason = verify_witness(h.columns, checks, w.source, w.order_start, w.order_txn)
    assert "too large" in reason
